"""`corl ensemble`, `corl comas` and `corl contamination` as they are typed, on tables by hand."""

import json

import pytest
from typer.testing import CliRunner

from corl.cli import app
from corl.errors import CorlError
from corl.evaluation.sandbox import isolation_level

SUMS = """
name: sums
title: Sums
fields: {prompt: prompt, answer: answer, id: id}
grader: number
"""
GOLDS = {"r0": "1", "r1": "2", "r2": "3", "r3": "4"}


def run(*typed):
    """What the command printed; its own errors are raised."""
    result = CliRunner().invoke(app, [str(one) for one in typed], env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return " ".join(result.output.split())


def write_lines(file, records):
    file.write_text("".join(json.dumps(one) + "\n" for one in records))
    return file


def saved(file, answers):
    """Completions that state these answers; None says nothing."""
    return write_lines(
        file,
        [
            {"id": row, "sample": number, "completion": f"\\boxed{{{said}}}" if said else ""}
            for row, of_row in answers.items()
            for number, said in enumerate(of_row)
        ],
    )


@pytest.fixture
def sums(tmp_path):
    (tmp_path / "sums.yaml").write_text(SUMS)
    rows = [{"id": row, "prompt": f"{row}?", "answer": gold} for row, gold in GOLDS.items()]
    return f"{tmp_path / 'sums.yaml'}={write_lines(tmp_path / 'rows.jsonl', rows)}"


def graded(tmp_path, benchmark, **members):
    for name, answers in members.items():
        file = saved(tmp_path / f"{name}.jsonl", answers)
        run("eval", "--completions", file, "--benchmarks", benchmark, "--out", tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def pair(sums, tmp_path):
    """Two members whose first two and last two completions differ."""
    left = {"r0": "1199", "r1": "2227", "r2": [None] * 4, "r3": "6644"}
    right = {"r0": "8811", "r1": "7777", "r2": "5533", "r3": "4466"}
    return graded(tmp_path, sums, left=left, right=right)


def test_an_ensemble_by_hand(pair):
    printed = run("ensemble", pair, "--members", "left", "right", "--votes", "4")
    found = json.loads((pair / "ensemble.json").read_text())["sums"]
    # Pooled are the first two of left and the last two of right: 1111, 2277, --33, 6666.
    assert found["ensemble"]["value"] == 0.5
    # Alone, ties and silence are wrong: left has r1, right has nothing.
    assert found["members"]["left"]["value"] == 0.25
    assert found["members"]["right"]["value"] == 0
    assert found["problems"] == 4
    assert found["against_best"]["difference"] == 0.25  # won r0 and r2, lost r1
    assert found["against_best"]["p_value"] == 1.0
    assert "50.0" in printed and "+25.0" in printed


def test_weights_break_the_tie(pair):
    run("ensemble", pair, "--members", "left", "right", "--votes", "4", "--weights", "3", "1")
    found = json.loads((pair / "ensemble.json").read_text())["sums"]
    assert found["ensemble"]["value"] == 0.75
    run("ensemble", pair, "--members", "left", "right", "--votes", "4", "--weights", "1", "3")
    found = json.loads((pair / "ensemble.json").read_text())["sums"]
    assert found["ensemble"]["value"] == 0.5


@pytest.mark.parametrize(
    ("typed", "seen"),
    [
        (("--members", "left", "nobody"), "no model 'nobody'"),
        (("--members", "left", "left"), "two different members"),
        (("--members", "left", "right", "--votes", "8"), "lower --votes"),
        (("--members", "left", "right", "--votes", "4", "--weights", "1"), "weights"),
    ],
)
def test_ensembles_that_cannot_be_are_named(pair, typed, seen):
    with pytest.raises(CorlError, match=seen):
        run("ensemble", pair, *typed)
    assert not (pair / "ensemble.json").exists()


def test_a_directory_without_samples_is_named(tmp_path):
    for typed in (["ensemble", tmp_path, "--members", "a", "b"], ["comas", tmp_path]):
        with pytest.raises(CorlError, match="no samples of an evaluation"):
            run(*typed)


def test_comas_by_hand(sums, tmp_path):
    answers = {
        "r0": ["1", "1", "9", "9", None],  # a shared first place, one of two right
        "r1": ["2", "2", "2", "7", "7"],
        "r2": [None, None, None, None, "3"],  # silence takes no part
        "r3": ["6", "6", "4", "5", "7", "4", "4", "4"],  # the first five only
    }
    short = {row: said[:4] for row, said in answers.items()}
    with pytest.raises(CorlError, match="--samples 5"):
        run("comas", graded(tmp_path, sums, short=short))
    answers = {row: (said + [None] * 3)[:8] for row, said in answers.items()}
    (tmp_path / "out").rename(tmp_path / "short")
    out = graded(tmp_path, sums, model=answers)
    printed = run("comas", out)
    found = json.loads((out / "comas.json").read_text())["model"]
    assert found["benchmarks"]["sums"]["value"] == (0.5 + 1 + 1 + 0) / 4
    assert found["mean_of_seven"] is None
    assert "62.5" in printed and "no mean of the seven without gsm8k" in printed


PROGRAM = {
    "task_id": "HumanEval/0",
    "prompt": (
        "def inc(x):\n    '''Add one.\n    >>> inc(1)\n    2\n    >>> inc(2)\n    3\n    '''\n"
    ),
    "entry_point": "inc",
    "canonical_solution": "    return x + 1\n",
    "test": "def check(candidate):\n    assert candidate(9) == 10\n",
}


def test_programs_are_one_answer_when_their_examples_agree(tmp_path):
    if isolation_level() == "limits":
        pytest.skip("the sandbox contains no hostile code here")
    rows = write_lines(tmp_path / "rows.jsonl", [PROGRAM])
    said = [
        "    return x + 1\n", "    y = 1\n    return y + x\n",  # right
        "    return min(x + 1, 5)\n",  # alike on the examples, wrong in the tests
        "    return x\n", "    return x\n",
    ]  # fmt: skip
    file = write_lines(
        tmp_path / "coder.jsonl",
        [
            {"id": "HumanEval/0", "sample": number, "completion": text}
            for number, text in enumerate(said)
        ],
    )
    out = tmp_path / "out"
    run("eval", "--completions", file, "--benchmarks", f"humaneval={rows}", "--out", out)
    with pytest.raises(CorlError, match="humaneval is code: give its rows"):
        run("comas", out)
    run("comas", out, "--benchmarks", f"humaneval={rows}")
    found = json.loads((out / "comas.json").read_text())["coder"]["benchmarks"]["humaneval"]
    assert found["value"] == pytest.approx(2 / 3, abs=1e-6)


QUESTION = (
    "A farmer keeps {} hens and {} ducks in one pen; every bird lays one egg a day. How many eggs "
    "does the farmer collect in a week of seven days?"
)


def test_contamination_tells_copies_from_siblings(tmp_path):
    (tmp_path / "sums.yaml").write_text(SUMS)
    asked = [
        {"id": "copied", "prompt": QUESTION.format(3, 4), "answer": "49"},
        {"id": "reworded", "prompt": "How long is the " + "long " * 3 + "way from the old mill "
         "past the church to the harbour, in whole metres, if each step is one metre?",
         "answer": "500"},
        {"id": "clean", "prompt": "Name the largest prime below thirty.", "answer": "29"},
    ]  # fmt: skip
    trained = [
        {"prompt": "  " + asked[0]["prompt"].upper().replace(" ", "  "), "answer": "49"},
        {"prompt": asked[1]["prompt"].replace("whole metres", "metres"), "answer": "500"},
        {"prompt": QUESTION.format(3, 9), "answer": "84"},
        {"prompt": "What is the capital of France?", "answer": "0"},
    ]
    rows = write_lines(tmp_path / "rows.jsonl", asked)
    prompts = write_lines(tmp_path / "prompts.jsonl", trained)
    out = tmp_path / "found.json"
    typed = ["--benchmarks", f"{tmp_path / 'sums.yaml'}={rows}", "--out", out]
    printed = run("contamination", prompts, *typed)
    found = json.loads(out.read_text())["sums"]
    kinds = {
        kind: [(one["benchmark_id"], one["train_text"]) for one in found[kind]]
        for kind in ("exact", "near", "siblings")
    }
    assert [name for name, _ in kinds["exact"]] == ["copied"]
    assert kinds["near"] == [("reworded", trained[1]["prompt"])]
    assert kinds["siblings"] == [("copied", trained[2]["prompt"])]
    assert (found["problems"], found["exact_problems"], found["near_problems"]) == (3, 1, 1)
    assert "sums 3 1 1 1" in printed

    run("contamination", prompts, *typed, "--similarity", "1")
    found = json.loads(out.read_text())["sums"]
    assert [len(found[kind]) for kind in ("exact", "near", "siblings")] == [1, 0, 0]
