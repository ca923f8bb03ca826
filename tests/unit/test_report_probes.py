"""The report's section of error overlap."""

import json
from pathlib import Path

import pytest

from corl.errors import CheckpointError
from corl.report import write_report
from report_cases import ATTACK, result_row, write_study


def figure(value, low=None, high=None):
    return {"value": value, "low": low, "high": high}


def model(name, *right, samples=8):
    problems = [
        {"id": str(place), "right": hits, "samples": samples, "answers": {}, "label": "1"}
        for place, hits in enumerate(right)
    ]
    return {"name": name, "model": name, "problems": problems}


def pair(a, b, kappa=None, **changes):
    entry = {
        "a": a,
        "b": b,
        "kappa": figure(kappa, None if kappa is None else kappa - 0.1, kappa and kappa + 0.1),
        "kappa_max": 0.93,
        "exactly_one_right": figure(0.4, 0.35, 0.45),
        "same_wrong_answer": figure(0.125),
        "at_least_one_right": figure(0.8),
        "label_free": {"agreement": figure(0.61)},
    }
    return {**entry, **changes}


def page_of(root: Path, models, pairs, predictions=None) -> str:
    root.mkdir(parents=True, exist_ok=True)
    (root / "kappa.json").write_text(json.dumps({"models": models, "pairs": pairs}))
    if predictions is not None:
        (root / "basins.json").write_text(json.dumps({"predictions": predictions}))
    return write_report([root], root.parent / "r.html").read_text()


def test_every_figure_of_a_pair_stands_in_the_page(tmp_path):
    models = [model("left", 8, 4, 0), model("right", 0, 4, 8)]
    prediction = {"method": "peer", "pupil": "left", "teacher": "right", "start": 0.5,
                  "ceiling": 0.925, "signal": 0.75, "gained": ["1", "2"], "lost": []}  # fmt: skip
    page = page_of(tmp_path / "probe", models, [pair("left", "right", 0.25)], [prediction])
    section = page[page.index('id="overlap"') :]
    shown = ("0.25 [0.15, 0.35]", "0.93", "40.0 [35.0, 45.0]", "12.5", "80.0", "61.0", "92.5")
    for text in (*shown, "75.0", "left and right", "--k: 25%", "probe/kappa.json"):
        assert text in section
    assert section.count('class="dot"') == 3
    # Problem 0: left always right, right never: the lower right corner.
    assert 'cx="224.0" cy="198.0"' in section


def test_what_was_not_measured_is_shown_as_none(tmp_path):
    models = [model("left", 1, 0, samples=1), model("right", 1, 0, samples=1)]
    free = pair("left", "right", None, kappa_reason="all right", exactly_one_right=None)
    page = page_of(tmp_path / "probe", models, [free])
    assert 'class="dot"' not in page and 'class="heat"' not in page
    assert "all right" in page


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"models": 3, "pairs": [4]}', '{"pairs": [{}], "models": [{}, {}]}'],
)
def test_a_damaged_probe_breaks_nothing(tmp_path, content):
    root = tmp_path / "probe"
    root.mkdir()
    (root / "kappa.json").write_text(content)
    write_study(tmp_path / "s", [result_row("peer", 0, 0.9)])
    page = write_report([root, tmp_path / "s"], tmp_path / "r.html").read_text()
    assert "Co-RL" in page


def test_names_are_text(tmp_path):
    names = [ATTACK, "right"]
    page = page_of(
        tmp_path / "probe", [model(name, 8, 4) for name in names], [pair(*names, 0.5)], [{}]
    )
    assert ATTACK not in page


def test_a_directory_that_is_nothing_says_what_it_could_be(tmp_path):
    with pytest.raises(CheckpointError, match="kappa.json"):
        write_report([tmp_path], tmp_path / "r.html")
