"""The report's table of checkpoints chosen without labels."""

import json
from pathlib import Path

import pytest

from corl.report.page import write_report
from corl.report.picks import load_picks
from report_cases import ATTACK, result_row, write_study

SUMMARY = {
    "method": "peer",
    "setting": "different_family",
    "first": 0.5,
    "label_free": 0.75,
    "last": 0.875,
    "labelled": 0.9,
    "regret": 0.15,
    "regret_interval": [0.05, 0.25],
}


def write_selection(root: Path, *summary: object) -> None:
    (root / "selection.json").write_text(json.dumps({"rows": [], "summary": summary}))


def test_every_pick_stands_in_the_page_and_leads_to_its_file(tmp_path: Path) -> None:
    write_study(tmp_path / "s", [result_row("peer", 0, 0.9)])
    write_selection(tmp_path / "s", SUMMARY)
    page = write_report([tmp_path / "s"], tmp_path / "r.html").read_text()
    section = page[page.index('id="checkpoints"') :]
    for shown in ("50.0", "75.0", "87.5", "90.0", "+15.0", "+5.0 to +25.0", "different family"):
        assert shown in section
    assert "s/selection.json summary[0].label_free" in section


def test_without_a_choice_there_is_no_section(tmp_path: Path) -> None:
    write_study(tmp_path / "s", [result_row("peer", 0, 0.9)])
    page = write_report([tmp_path / "s"], tmp_path / "r.html").read_text()
    assert 'id="checkpoints"' not in page


def test_names_are_text(tmp_path: Path) -> None:
    write_study(tmp_path / "s", [result_row("peer", 0, 0.9)])
    write_selection(tmp_path / "s", {**SUMMARY, "method": ATTACK, "setting": ATTACK})
    assert ATTACK not in write_report([tmp_path / "s"], tmp_path / "r.html").read_text()


@pytest.mark.parametrize("content", ["", "[]", "{", '{"summary": 3}', '{"summary": [3]}'])
def test_a_damaged_file_shows_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "selection.json").write_text(content)
    assert load_picks(tmp_path / "selection.json") == []


def test_figures_that_are_none_are_left_out(tmp_path: Path) -> None:
    write_selection(tmp_path, {"method": "peer", "last": "high", "regret_interval": [1]})
    (line,) = load_picks(tmp_path / "selection.json")
    assert set(line.accuracy.values()) == {None}
    assert line.regret is None and line.interval is None
