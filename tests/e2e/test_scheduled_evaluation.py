"""Benchmarks measured while a run trains: on schedule, beside the training, and resumable."""

import json

import pytest

from corl.errors import PromptError, RecipeError
from corl.run.directory import RunDirectory
from e2e.cohorts import final_weights, metrics, resume, train

STEPS = ("steps=3", "prompts.limit=32")


@pytest.fixture
def benchmark(tmp_path):
    """A benchmark of one's own over six held-out chains, as overrides of a recipe."""
    rows = [{"problem": f"7+5-8*3m{digit}+4=", "answer": "60"} for digit in range(3, 9)]
    (tmp_path / "chains.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "chains.yaml").write_text(
        "name: chains\ntitle: Chains\ngrader: number\n"
        "fields: {prompt: problem, answer: answer}\nsamples: 2\n"
    )
    entry = f"{{benchmark: {tmp_path / 'chains.yaml'}, file: {tmp_path / 'chains.jsonl'}}}"
    return ("evaluation.every=2", f"evaluation.benchmarks=[{entry}]", "evaluation.greedy=true")


def lines(run, name="qwen3"):
    """What was measured on an agent."""
    return [json.loads(line) for line in RunDirectory(run).evaluations(name).open()]


@pytest.mark.parametrize("launch", ["in_process", "processes"])
def test_it_measures_before_on_schedule_and_after_and_changes_nothing(tmp_path, benchmark, launch):
    train(tmp_path / "plain", *STEPS)
    train(tmp_path / "measured", *STEPS, *benchmark, launch=launch)
    assert metrics(tmp_path / "measured") == metrics(tmp_path / "plain")
    assert final_weights(tmp_path / "measured") == final_weights(tmp_path / "plain")
    for name in ("qwen3", "gpt_neox"):
        found = lines(tmp_path / "measured", name)
        assert [line["step"] for line in found] == [0, 2, 3]
        assert {line["agent"] for line in found} == {name}
        for line in found:
            assert (line["benchmark"], line["rows"], line["samples"]) == ("chains", 6, 2)
            for figure in ("greedy", "avg@2", "maj@2", "pass@2"):
                low, high = line[figure]["interval"]
                assert 0 <= low <= line[figure]["value"] <= high <= 1


def test_the_figures_are_those_of_corl_eval(tmp_path, benchmark):
    """The trained model asked by the command says what the last line says."""
    from rich.console import Console

    from corl.evaluation.suite import EvalSettings, run_suite

    train(tmp_path / "run", *STEPS, *benchmark)
    outcome = run_suite(
        [str(tmp_path / "run")],
        [f"{tmp_path / 'chains.yaml'}={tmp_path / 'chains.jsonl'}"],
        EvalSettings.of(greedy=True, max_tokens=20),
        tmp_path / "eval",
        console=Console(quiet=True),
    )
    (score,) = outcome.scores["run-qwen3"]
    last = lines(tmp_path / "run")[-1]
    assert {key: last[key] for key in ("greedy", "avg@2", "maj@2", "pass@2", "verdicts")} == {
        key: score.to_json()[key] for key in ("greedy", "avg@2", "maj@2", "pass@2", "verdicts")
    }


def test_what_was_measured_behind_the_checkpoint_is_measured_again(tmp_path, benchmark):
    train(tmp_path / "whole", *STEPS, *benchmark)
    train(tmp_path / "run", *STEPS, *benchmark)
    run = RunDirectory(tmp_path / "run")
    for name in ("qwen3", "gpt_neox"):  # as if it had been killed before it was done
        run.final(name).rename(run.agent(name) / "gone")
    resume(tmp_path / "run")
    assert lines(tmp_path / "run") == lines(tmp_path / "whole")


@pytest.mark.parametrize(
    ("override", "error", "seen"),
    [
        ("evaluation.benchmarks=[{benchmark: gsm8}]", RecipeError, "did you mean gsm8k"),
        ("evaluation.benchmarks=[]", RecipeError, "names none"),
        (
            "evaluation.benchmarks=[{benchmark: gsm8k, file: /nowhere.jsonl}]",
            PromptError,
            "nowhere",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused_before_training(tmp_path, override, error, seen):
    with pytest.raises(error, match=seen):
        train(
            tmp_path / "run",
            *STEPS,
            "evaluation={every: 2, benchmarks: [{benchmark: gsm8k}]}",
            override,
        )
    assert not (tmp_path / "run" / "run.json").exists()


def test_training_prompts_that_are_benchmark_problems_are_pointed_out(tmp_path, benchmark):
    from corl.report import write_report

    prompts = tmp_path / "prompts.jsonl"
    texts = [f"{digit}+5-8*3m6+4=" for digit in range(2, 9)]
    prompts.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in texts))
    (tmp_path / "chains.jsonl").write_text(json.dumps({"problem": texts[2], "answer": "60"}) + "\n")
    train(tmp_path / "run", "steps=1", f"prompts.file={prompts}", *benchmark)
    shared = json.loads((tmp_path / "run" / "contamination.json").read_text())["chains"]
    assert (shared["exact_problems"], shared["problems"]) == (1, 1)
    page = write_report([tmp_path / "run"], tmp_path / "r.html").read_text()
    assert "of the 1 problems of benchmark chains 1 stand in the training prompts" in page
