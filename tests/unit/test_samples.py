"""Completions on disk, and options with several values."""

import json

import pytest

from corl.errors import PromptError
from corl.evaluation.samples import Sample, grouped, read_samples
from corl.many_values import _repeated


def write(path, *lines, end="\n"):
    path.write_text("\n".join(lines) + end, encoding="utf-8")
    return path


def test_what_is_written_is_read(tmp_path):
    samples = [Sample("b", 1, "x"), Sample("b", 0, "y\n", True), Sample("a", 0, "é")]
    write(tmp_path / "one.jsonl", *(json.dumps(one.to_json()) for one in samples))
    assert read_samples(tmp_path) == samples
    assert grouped(samples) == {"b": [samples[1], samples[0]], "a": [samples[2]]}


def test_a_last_line_cut_short_is_left_out(tmp_path):
    path = write(tmp_path / "one.jsonl", '{"id": 1, "completion": "x"}', '{"id": 2, "comp', end="")
    assert read_samples(path) == [Sample("1", 0, "x")]


@pytest.mark.parametrize(
    ("lines", "seen"),
    [
        (["[1]"], "line 1: is list"),
        (['{"completion": "x"}'], "`id`"),
        (['{"id": 1, "completion": 3}'], "`completion`"),
        (['{"id": 1, "completion": "x", "sample": -1}'], "`sample`"),
        (['{"id": 1, "completion": "x", "truncated": "no"}'], "`truncated`"),
        (['{"id": 1, "completion": "x"}', '{"id": "1", "completion": "y"}'], "stands twice"),
        (['{"id": 1', '{"id": 2, "completion": "x"}'], "line 1: not JSON"),
        ([""], "holds no completions"),
    ],
)
def test_what_is_no_sample_is_named(tmp_path, lines, seen):
    with pytest.raises(PromptError, match=seen):
        read_samples(write(tmp_path / "one.jsonl", *lines))


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("--seeds 0 1 2 --out x", "--seeds 0 --seeds 1 --seeds 2 --out x"),
        ("m --seeds 0 --out x y", "m --seeds 0 --out x y"),
        ("--seeds 0 -1 3", "--seeds 0 --seeds -1 --seeds 3"),
        ("--study --out x", "--study --out x"),
    ],
)
def test_an_option_takes_every_value_up_to_the_next(typed, read):
    assert _repeated(typed.split(), {"--seeds"}) == read.split()


def test_the_command_hands_all_values_on(monkeypatch):
    import corl.quickstart.demonstration
    from corl.cli import app

    seen = []
    monkeypatch.setattr(
        corl.quickstart.demonstration,
        "run_quickstart",
        lambda seeds, out, **rest: seen.append(seeds),
    )
    app(["quickstart", "--seeds", "3", "4", "--out", "x"], standalone_mode=False)
    app(["quickstart"], standalone_mode=False)
    assert seen == [[3, 4], [0, 1, 2]]
