"""`corl eval` and `corl doctor` as they are typed: real models, files on disk, kills and errors."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cohorts import train
from typer.testing import CliRunner

from corl.cli import app
from corl.errors import CorlError
from corl.evaluation.samples import read_samples

PACKAGE = Path(__file__).parents[2] / "src" / "corl"
MODELS = PACKAGE / "quickstart" / "models"
DATA = PACKAGE / "quickstart" / "prompts" / "heldout.jsonl"
SUMS = """
name: sums
title: Sums
fields: {prompt: prompt, answer: answer, id: id}
grader: number
"""


@pytest.fixture(scope="module")
def sums(tmp_path_factory):
    """An own benchmark: the quickstart's held-out problems, without math-verify."""
    own = tmp_path_factory.mktemp("own") / "sums.yaml"
    own.write_text(SUMS)
    return f"{own}={DATA}"


def run(*typed):
    """What the command printed; its own errors are raised."""
    result = CliRunner().invoke(app, [str(one) for one in typed])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def evaluate(sums, out, *more, models=(MODELS / "qwen3",)):
    return run(
        "eval", *models, "--benchmarks", sums, "--limit", "24", "--samples", "4",
        "--temperature", "1", "--top-p", "1", "--max-tokens", "16", "--batch-rows", "16",
        "--out", out, *more,
    )  # fmt: skip


def tree(root):
    return {
        str(file.relative_to(root)): file.read_bytes()
        for file in sorted(root.rglob("*"))
        if file.is_file()
    }


@pytest.fixture(scope="module")
def whole(sums, tmp_path_factory):
    """Two models evaluated without a break."""
    out = tmp_path_factory.mktemp("whole")
    printed = evaluate(sums, out, "--greedy", models=(MODELS / "qwen3", MODELS / "llama")).stdout
    return out, printed


def test_every_sample_is_on_disk_and_graded(whole):
    out, _ = whole
    lines = (out / "qwen3" / "sums" / "samples.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    golds = [json.loads(line)["answer"] for line in DATA.read_text().splitlines()[:24]]
    assert [(one["id"], one["sample"]) for one in records] == [
        (f"heldout-{row:04d}", number) for row in range(24) for number in range(4)
    ]
    for index, one in enumerate(records):
        said = one["answer"]
        is_right = said is not None and int(said) == int(golds[index // 4])
        assert one["right"] is is_right
        assert one["verdict"] == ("right" if is_right else "wrong" if said else "no_answer")
    assert 0 < sum(one["right"] for one in records) < len(records)
    assert len(read_samples(out / "qwen3" / "sums")) == 96
    assert len(read_samples(out / "qwen3" / "sums" / "greedy")) == 24


def test_figures_are_those_of_the_samples(whole):
    out, printed = whole
    results = json.loads((out / "results.json").read_text())
    found = results["models"]["qwen3"]["benchmarks"]["sums"]
    records = [
        json.loads(line)
        for line in (out / "qwen3" / "sums" / "samples.jsonl").read_text().splitlines()
    ]
    groups = [records[start : start + 4] for start in range(0, 96, 4)]
    right = [sum(one["right"] for one in group) for group in groups]
    assert found["avg@4"]["value"] == pytest.approx(sum(right) / 96, abs=1e-6)
    assert found["pass@4"]["value"] == pytest.approx(sum(r > 0 for r in right) / 24, abs=1e-6)
    # One of two drawn from r right of four is right with 1 - C(4-r, 2)/6.
    at_two = sum(1 - (4 - r) * (3 - r) / 12 for r in right) / 24
    assert found["pass@2"]["value"] == pytest.approx(at_two, abs=1e-6)
    low, high = found["avg@4"]["interval"]
    assert low < found["avg@4"]["value"] < high
    assert f"{100 * found['avg@4']['value']:.1f} [{100 * low:.1f}, {100 * high:.1f}]" in printed
    for figure in ("greedy", "maj@2", "maj@4"):
        assert 0 <= found[figure]["value"] <= 1


def test_two_models_are_compared_by_problem(whole):
    out, printed = whole
    results = json.loads((out / "results.json").read_text())
    (entry,) = results["comparisons"]
    values = [
        results["models"][name]["benchmarks"]["sums"]["avg@4"]["value"]
        for name in ("qwen3", "llama")
    ]
    assert (entry["a"], entry["b"], entry["problems"]) == ("qwen3", "llama", 24)
    assert entry["difference"] == pytest.approx(values[0] - values[1], abs=2e-6)
    assert entry["interval"][0] <= entry["difference"] <= entry["interval"][1]
    assert 0 <= entry["p_value"] <= 1
    assert "a - b" in printed


def test_a_rerun_has_the_same_bytes_and_asks_nothing_again(sums, whole, tmp_path, monkeypatch):
    out, _ = whole
    models = (MODELS / "qwen3", MODELS / "llama")
    evaluate(sums, tmp_path / "again", "--greedy", models=models)
    assert tree(tmp_path / "again") == tree(out)
    import corl.policy

    def refuse(*_, **__):
        raise AssertionError("a finished evaluation loads no model")

    monkeypatch.setattr(corl.policy, "load_policy", refuse)
    evaluate(sums, tmp_path / "again", "--greedy", models=models)
    assert tree(tmp_path / "again") == tree(out)


def test_another_seed_gives_other_samples(sums, whole, tmp_path):
    evaluate(sums, tmp_path, "--seed", "1")
    name = Path("qwen3") / "sums" / "samples.jsonl"
    assert (tmp_path / name).read_bytes() != (whole[0] / name).read_bytes()


@pytest.mark.parametrize("share", [0.0, 0.4, 0.99])
def test_a_file_cut_anywhere_is_continued_to_the_same_bytes(sums, whole, tmp_path, share):
    name = Path("qwen3") / "sums" / "samples.jsonl"
    content = (whole[0] / name).read_bytes()
    evaluate(sums, tmp_path)
    (tmp_path / name).write_bytes(content[: int(share * len(content))])
    evaluate(sums, tmp_path)
    assert (tmp_path / name).read_bytes() == content


def test_a_killed_evaluation_is_continued_to_the_same_bytes(sums, tmp_path):
    typed = [
        "eval", str(MODELS / "qwen3"), "--benchmarks", sums, "--limit", "96", "--samples", "4",
        "--max-tokens", "16", "--batch-rows", "16", "--out",
    ]  # fmt: skip
    name = Path("qwen3") / "sums" / "samples.jsonl"
    killed = subprocess.Popen(
        [sys.executable, "-m", "corl.cli", *typed, str(tmp_path / "killed")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    file = tmp_path / "killed" / name
    while killed.poll() is None and not (file.exists() and file.stat().st_size):
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    size = file.stat().st_size
    run(*typed, tmp_path / "killed")
    run(*typed, tmp_path / "whole")
    assert file.read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert 0 < size <= file.stat().st_size


@pytest.mark.parametrize(
    ("more", "seen"),
    [
        (("--max-tokens", "12"), "max_tokens 16 -> 12"),
        (("--seed", "5"), "seed 0 -> 5"),
        (("--limit", "8"), "rows 24 -> 8"),
        (("--batch-rows", "8"), "batch_rows 16 -> 8"),
    ],
)
def test_other_settings_are_never_mixed_in(sums, whole, more, seen):
    before = tree(whole[0])
    with pytest.raises(CorlError, match=seen):
        evaluate(sums, whole[0], *more)
    assert tree(whole[0]) == before


def test_other_weights_under_one_name_are_never_mixed_in(sums, tmp_path):
    import shutil

    shutil.copytree(MODELS / "qwen3", tmp_path / "model")
    evaluate(sums, tmp_path / "out", models=(tmp_path / "model",))
    shutil.rmtree(tmp_path / "model")
    shutil.copytree(MODELS / "qwen3_twin", tmp_path / "model")
    with pytest.raises(CorlError, match="model '"):
        evaluate(sums, tmp_path / "out", models=(tmp_path / "model",))


def test_a_run_is_evaluated_agent_by_agent(sums, tmp_path):
    train(tmp_path / "first", "steps=1")
    printed = evaluate(sums, tmp_path / "out", models=(tmp_path / "first",)).stdout
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert list(results["models"]) == ["first-qwen3", "first-gpt_neox"]
    assert "first-qwen3" in printed and "first-gpt_neox" in printed
    (tmp_path / "first" / "agents" / "qwen3" / "final").rename(tmp_path / "elsewhere")
    with pytest.raises(CorlError, match="agent 'qwen3' has no trained model"):
        evaluate(sums, tmp_path / "out", models=(tmp_path / "first",))


def test_saved_completions_are_graded_alike(sums, whole, tmp_path):
    out, _ = whole
    asked = out / "qwen3" / "sums"
    run("eval", "--completions", asked, "--benchmarks", sums, "--limit", "24", "--out", tmp_path)
    again = (tmp_path / "sums" / "sums" / "samples.jsonl").read_bytes()
    assert again == (asked / "samples.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ({"id": "heldout-0001", "completion": "x"}, "1 of 2 problems have no completion"),
        ({"id": "heldout-0000", "completion": "x", "sample": 1}, "every problem needs the same"),
        ({"id": "nobody", "completion": "x"}, "1 rows are none of the 512"),
    ],
)
def test_completions_that_do_not_fit_are_named(sums, tmp_path, line, seen):
    lines = [line]
    if "none of" not in seen and line["id"] == "heldout-0000":
        lines = [
            {"id": "heldout-0000", "completion": "x"},
            {"id": "heldout-0001", "completion": "x"}, line,
        ]  # fmt: skip
    file = tmp_path / "c.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in lines))
    limit = () if "none of" in seen else ("--limit", "2")
    with pytest.raises(CorlError, match=seen):
        run("eval", "--completions", file, "--benchmarks", sums, *limit, "--out", tmp_path / "o")


@pytest.mark.parametrize(
    ("typed", "seen"),
    [
        (["/no/model", "--benchmarks", "SUMS"], "/no/model"),
        ([MODELS / "qwen3", "--benchmarks", "gsm8"], "did you mean gsm8k"),
        ([MODELS / "qwen3", "--benchmarks", f"gsm8k={DATA}"], "no field 'question'"),
        ([MODELS / "qwen3"], "name benchmarks"),
        (["--benchmarks", "SUMS"], "one of the two"),
        ([MODELS / "qwen3", "--benchmarks", "SUMS", "--preset", "papers"], "did you mean paper"),
        ([MODELS / "qwen3", "--benchmarks", "SUMS", "--chat", "always"], "no chat template"),
        ([MODELS / "qwen3", "--benchmarks", "VISION"], "reads text alone"),
        ([MODELS / "qwen3", "--benchmarks", "LONG"], "no room for a completion"),
    ],
)
def test_everything_is_checked_before_a_weight_is_loaded(sums, tmp_path, monkeypatch, typed, seen):
    import corl.policy

    def refuse(*_, **__):
        raise AssertionError("weights were loaded")

    monkeypatch.setattr(corl.policy, "load_policy", refuse)
    vision = {"question": "x", "id": 1, "options": [], "answer": "4"}
    (tmp_path / "vision.jsonl").write_text(json.dumps(vision))
    long = {"prompt": "1+" * 5000, "answer": "4", "id": "1"}
    (tmp_path / "long.jsonl").write_text(json.dumps(long))
    files = {
        "SUMS": sums,
        "VISION": f"mathvision={tmp_path / 'vision.jsonl'}",
        "LONG": f"{sums.partition('=')[0]}={tmp_path / 'long.jsonl'}",
    }
    with pytest.raises(CorlError, match=seen):
        run("eval", *[files.get(one, one) for one in typed], "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_policy_in_memory_is_scored_alike(sums, whole):
    from corl.evaluation.benchmarks import choose, load_items
    from corl.evaluation.completions import Asking
    from corl.evaluation.suite import evaluate_policy
    from corl.policy import load_policy

    (chosen,) = choose([sums])
    items = load_items(chosen.benchmark, chosen.data, limit=24)
    policy = load_policy(MODELS / "qwen3")
    asking = Asking(max_tokens=16, max_rows=16)
    score = evaluate_policy(policy, chosen.benchmark, items, asking, samples=4, greedy=True)
    results = json.loads((whole[0] / "results.json").read_text())
    found = results["models"]["qwen3"]["benchmarks"]["sums"]
    assert score.to_json() == found


def test_doctor_names_what_is_there_and_what_is_missing(monkeypatch):
    import importlib.metadata

    import corl.doctor

    real = importlib.metadata.version

    def version(name):
        if name == "datasets":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(corl.doctor.importlib.metadata, "version", version)
    result = run("doctor")
    assert result.exit_code == 0
    for said in ("python", "torch", "cores", "memory", "threads", "sandbox", "not installed"):
        assert said in result.stdout
    assert "pip install 'corl[datasets]'" in result.stdout


def test_doctor_survives_a_machine_without_a_sandbox(monkeypatch):
    from corl.evaluation import sandbox

    def broken():
        raise sandbox.SandboxError("the sandbox needs Linux")

    monkeypatch.setattr(sandbox, "describe", broken)
    result = run("doctor")
    assert result.exit_code == 0 and "the sandbox needs Linux" in result.stdout


folder = os.environ.get("CORL_DATA")


@pytest.mark.skipif(not folder, reason="CORL_DATA names no folder with the data")
@pytest.mark.parametrize("wrong", [False, True])
def test_a_slice_of_oracle_completions_end_to_end(tmp_path, wrong):
    """All rows: benchmarks/oracle_completions.py."""
    pytest.importorskip("math_verify")
    root, rows = tmp_path / "oracle", 12
    root.mkdir()
    texts = {
        "gsm8k": [one["answer"] for one in _lines("gsm8k_test.jsonl", rows)],
        "amc": [f"\\boxed{{{one['answer']:g}}}" for one in _lines("amc_83.jsonl", rows)],
        "humaneval": [one["canonical_solution"] for one in _lines("humaneval.jsonl.gz", rows)],
    }
    files = {"gsm8k": "gsm8k_test.jsonl", "amc": "amc_83.jsonl", "humaneval": "humaneval.jsonl.gz"}
    ids = {"humaneval": "HumanEval/{}"}
    for name, said in texts.items():
        said = said[1:] + said[:1] if wrong else said
        (root / f"{name}.jsonl").write_text(
            "".join(
                json.dumps({"id": ids.get(name, "{}").format(n), "completion": text}) + "\n"
                for n, text in enumerate(said)
            )
        )
    named = [f"{name}={Path(str(folder)) / file}" for name, file in files.items()]
    run("eval", "--completions", root, "--benchmarks", *named, "--limit", rows,
        "--out", tmp_path / "out")  # fmt: skip
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    found = results["models"]["oracle"]["benchmarks"]
    for name in files:
        assert found[name]["avg@1"]["value"] == (0.0 if wrong else 1.0), name


@pytest.mark.slow
@pytest.mark.skipif(not folder, reason="CORL_DATA names no folder with the data")
def test_all_oracle_completions_are_right_and_their_neighbours_wrong():
    pytest.importorskip("math_verify")
    script = Path(__file__).parents[2] / "benchmarks" / "oracle_completions.py"
    done = subprocess.run(
        [sys.executable, str(script), "--data", str(folder)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _lines(name, count):
    import gzip

    content = (Path(str(folder)) / name).read_bytes()
    text = (gzip.decompress(content) if name.endswith(".gz") else content).decode()
    return [json.loads(line) for line in text.split("\n")[:count]]
