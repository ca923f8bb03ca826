"""Broken input through the real command: one line on stderr, exit 1, nothing loaded or written."""

import json

import pytest

from corl import cli
from e2e.cohorts import RECIPE

MODEL = "corl:quickstart/models/qwen3"


@pytest.fixture
def corl(capsys, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a model was loaded")

    monkeypatch.setattr("corl.launch.assembly.load_policy", refuse)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["corl", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, capsys.readouterr()

    return run


def prompts(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("unknown key", "did you mean `steps`?"),
        ("missing model", "/no/such/model"),
        ("empty prompts", "has no rows"),
        ("no field", "no field 'question'"),
        ("two of a name", "two agents are named 'qwen3'"),
        ("alone", "agent 'qwen3' has no peer"),
        ("long prompt", "context of 64"),
        ("misaligned", "do not align"),
        ("unwritable", "cannot be written"),
        ("no labels", "needs labels"),
        ("too large", "GiB are free"),
    ],
)
def test_broken_input_is_one_line(corl, tmp_path, monkeypatch, case, says):
    row = {"prompt": "7+5-8*3m6+4=", "id": "a"}
    rows = [{**row, "id": str(number)} for number in range(16)]
    out = tmp_path / "run"
    too_long = prompts(tmp_path / "long.jsonl", *rows[1:], {**row, "prompt": "7+" * 50})
    bare = prompts(tmp_path / "bare.jsonl", *rows)
    overrides = {
        "unknown key": ["stepz=3"],
        "missing model": ["agents.0.model=/no/such/model"],
        "empty prompts": [f"prompts={prompts(tmp_path / 'empty.jsonl')}"],
        "no field": ["prompts.field=question"],
        "two of a name": ["agents.1.name=qwen3"],
        "alone": [f"agents=[{{name: qwen3, model: '{MODEL}'}}]"],
        "long prompt": [f"prompts={too_long}"],
        "misaligned": [
            f"prompts={prompts(tmp_path / 'a.jsonl', *rows)}",
            f"agents.1.prompts={prompts(tmp_path / 'b.jsonl', *rows[1:])}",
        ],
        "unwritable": ["steps=1"],
        "no labels": [f"prompts={bare}", "supervision=ground_truth"],
        "too large": ["steps=1"],
    }[case]
    if case == "too large":
        monkeypatch.setattr("corl.launch.memory_check.available_bytes", lambda device: 2**20)
    if case == "unwritable":
        (tmp_path / "file").write_text("")
        out = tmp_path / "file" / "run"
    code, printed = corl("train", RECIPE, "--out", out, *overrides)
    assert code == 1
    lines = printed.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: ")
    assert says in lines[0]
    assert not (out / "run.json").exists()


def test_check_prints_what_the_recipe_comes_to(corl):
    code, printed = corl("check", RECIPE)
    assert code == 0
    assert "160 steps of 16 prompts x 8 completions" in printed.out
    assert "the recipe holds together" in printed.out


@pytest.mark.parametrize("verb", ["train", "resume", "check", "quickstart"])
def test_every_verb_shows_an_example(corl, verb):
    code, printed = corl(verb, "--help")
    assert code == 0
    assert f"corl {verb}" in printed.out


def test_resuming_what_is_no_run_is_one_line(corl, tmp_path):
    code, printed = corl("resume", tmp_path)
    assert code == 1
    assert "is not a run" in printed.err
