"""`corl kappa` as it is typed: shipped models, saved completions, with and without labels."""

import json
from pathlib import Path

import pytest
from sklearn.metrics import cohen_kappa_score
from typer.testing import CliRunner

from corl.cli import app
from corl.errors import PromptError

PACKAGE = Path(__file__).parents[2] / "src" / "corl"
DATA = "corl:quickstart/prompts/heldout.jsonl"
MODELS = [f"corl:quickstart/models/{name}" for name in ("qwen3", "gpt_neox", "llama")]
PROBLEMS = 40


def run(*typed):
    """What the command printed; its own errors are raised."""
    result = CliRunner().invoke(app, [str(one) for one in typed])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def kappa(models, out, *more, data=DATA, problems=PROBLEMS):
    printed = run(
        "kappa", *models, "--data", data, "--problems", problems, "--max-tokens", 16, "--out", out,
        *more,
    )  # fmt: skip
    return printed, json.loads((out / "kappa.json").read_text())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    printed, tree = kappa(MODELS, out, "--temperature", 1, "--seeds", 2)
    return out, printed, tree


def test_three_models_give_every_pair_and_themselves(whole):
    _, printed, tree = whole
    assert [one["name"] for one in tree["models"]] == ["qwen3", "gpt_neox", "llama"]
    assert [one["model"] for one in tree["models"]] == MODELS
    assert [(one["a"], one["b"], one["seeds"]) for one in tree["pairs"]] == [
        ("qwen3", "gpt_neox", [0, 0]), ("qwen3", "llama", [0, 0]), ("gpt_neox", "llama", [0, 0]),
        ("qwen3", "qwen3", [0, 1]), ("gpt_neox", "gpt_neox", [0, 1]), ("llama", "llama", [0, 1]),
    ]  # fmt: skip
    for word in ("qwen3", "itself, seed 0 and 1", "kappa", "exactly one right", "figures:"):
        assert word in printed
    # One model with two seeds errs alike, but does not repeat itself.
    apart, alike = tree["pairs"][:3], tree["pairs"][3:]
    assert min(one["kappa"]["value"] for one in alike) > max(one["kappa"]["value"] for one in apart)
    assert all(one["kappa"]["value"] < 0.95 for one in alike)


def test_figures_are_those_of_the_completions_on_disk(whole):
    out, _, tree = whole
    golds = [
        json.loads(line)["answer"]
        for line in (PACKAGE / "quickstart/prompts/heldout.jsonl").read_text().splitlines()
    ][:PROBLEMS]

    def said(name):
        lines = (out / "completions" / name / "completions.jsonl").read_text().splitlines()
        return [json.loads(line)["completion"].rpartition("{")[2].rstrip("}") for line in lines]

    a, b = said("qwen3"), said("llama")
    right_a = [one.isdigit() and int(one) == int(gold) for one, gold in zip(a, golds, strict=True)]
    right_b = [one.isdigit() and int(one) == int(gold) for one, gold in zip(b, golds, strict=True)]
    pair = tree["pairs"][1]
    assert pair["kappa"]["value"] == pytest.approx(cohen_kappa_score(right_a, right_b), abs=1e-6)
    assert pair["exactly_one_right"]["value"] == pytest.approx(
        sum(x != y for x, y in zip(right_a, right_b, strict=True)) / PROBLEMS
    )
    assert [one["right"] for one in tree["models"][0]["problems"]] == [*map(int, right_a)]
    assert pair["kappa"]["low"] < pair["kappa"]["value"] < pair["kappa"]["high"]
    assert pair["kappa"]["value"] <= pair["kappa_max"] <= 1


def test_a_second_probe_costs_nothing(whole):
    out, _, tree = whole
    files = {file: file.stat().st_size for file in out.rglob("completions.jsonl")}
    assert len(files) == 6
    before = (out / "kappa.json").read_bytes()
    _, again = kappa(MODELS, out, "--temperature", 1, "--seeds", 2)
    assert again == tree
    assert (out / "kappa.json").read_bytes() == before


def test_saved_completions_stand_for_their_models(whole, tmp_path):
    out, _, tree = whole
    folders = [out / "completions" / name for name in ("qwen3", "gpt_neox", "llama")]
    printed, again = kappa(folders, tmp_path, "--seeds", 2)
    assert again["models"] == tree["models"]
    assert [one["kappa"] for one in again["pairs"]] == [one["kappa"] for one in tree["pairs"][:3]]
    assert "no further seed" in printed
    assert not (tmp_path / "completions").exists()


def test_without_labels_only_what_needs_none_is_said(whole, tmp_path):
    out, _, _ = whole
    rows = (PACKAGE / "quickstart/prompts/heldout.jsonl").read_text().splitlines()[:PROBLEMS]
    bare = tmp_path / "bare.jsonl"
    bare.write_text(
        "".join(
            json.dumps({key: json.loads(row)[key] for key in ("id", "prompt")}) + "\n"
            for row in rows
        )
    )
    folders = [*(out / "completions").glob("*"), *(out / "completions").glob("*/seed-1")]
    printed, tree = kappa(folders, tmp_path / "o", data=bare)
    assert "no problem has a label" in printed
    assert "Error overlap" not in printed
    assert "exactly one right" not in printed
    assert all("kappa" not in one for one in tree["pairs"])
    assert all(one["accuracy"] is None for one in tree["models"])
    assert all(
        one["label"] is None and one["right"] is None for one in tree["models"][0]["problems"]
    )
    assert all(one["label_free"]["kappa_estimate"] is not None for one in tree["pairs"])


def test_two_models_with_one_sample_have_no_estimate(whole, tmp_path):
    out, _, _ = whole
    folders = [out / "completions" / name for name in ("qwen3", "llama")]
    printed, tree = kappa(folders, tmp_path)
    assert tree["pairs"][0]["label_free"]["kappa_estimate"] is None
    assert "raise --samples" in printed


def test_where_both_are_wrong_everywhere_kappa_is_undefined(whole, tmp_path):
    out, _, _ = whole
    folders = [out / "completions" / name for name in ("qwen3", "llama")]
    impossible = tmp_path / "wrong.jsonl"
    rows = (PACKAGE / "quickstart/prompts/heldout.jsonl").read_text().splitlines()[:PROBLEMS]
    impossible.write_text(
        "".join(json.dumps({**json.loads(row), "answer": "-7"}) + "\n" for row in rows)
    )
    printed, tree = kappa(folders, tmp_path / "o", data=impossible)
    assert tree["pairs"][0]["kappa"] is None
    assert "wrong on every problem" in tree["pairs"][0]["kappa_reason"]
    assert "kappa is undefined; both models are wrong on every problem" in printed


def test_completions_of_other_problems_are_refused(whole, tmp_path):
    out, _, _ = whole
    with pytest.raises(PromptError, match="1 of 41 problems have no completion"):
        kappa([out / "completions" / "qwen3"], tmp_path, problems=PROBLEMS + 1)
