"""The report in a browser: from a file, without a network, at two widths, by mouse and by keys.

A whole Chromium is driven, since escaping, tabs and layout are facts about browsers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Tab, chromium_tab, find_chromium

from corl.report import write_report
from report_cases import (
    ATTACK,
    accuracy,
    result_row,
    write_lines,
    write_rollouts,
    write_run,
    write_study,
)

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="no chromium on this machine")


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with chromium_tab(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two methods, one of them with a failed seed, hostile texts, an alarm, an own scale."""
    root = tmp_path_factory.mktemp("study") / "a study"
    rows = [result_row("base", 0, 0.5)]
    rows += [result_row("peer", seed, 0.8 + seed / 100) for seed in range(3)]
    rows += [result_row("entropy", 0, 0.1)]
    rows += [result_row("entropy", 1, None, status="failed", error=ATTACK)]
    long = "a_method_of_one_very_long_name_without_a_single_space_in_it.And.Dotted"
    rows += [result_row(long, 0, 0.4)]
    write_study(root, rows)
    for row in rows[1:]:
        cell = write_run(
            root / row["run"],
            method=row["method"],
            steps=40,
            reward_mean=-0.2 if row["method"] == "entropy" else 0.6,
        )
        for agent in ("left", "right"):
            for step in (1, 20, 40):
                texts = ["\\boxed{2}", "\\boxed{2}", ATTACK, f"{agent} at {step} " + "x" * 400]
                write_rollouts(cell, agent, step, texts, prompt=ATTACK)
        write_lines(cell / "evaluations.jsonl", [{"step": 9, "agent": "left", **accuracy(0.6)}])
    write_lines(
        root / "cells" / "entropy-pair-seed0" / "health.jsonl",
        [{"step": 9, "agent": "left", "detector": "std", "level": "alarm", "message": "collapse"}],
    )
    return write_report([root], root.parent).as_uri()


def _shown(tab: Tab, selector: str) -> list[str]:
    """Texts of the elements that can be seen."""
    return tab.evaluate(
        f"[...document.querySelectorAll({selector!r})].filter(e => e.checkVisibility())"
        ".map(e => e.textContent)"
    )


def _complaints(tab: Tab) -> list[dict[str, object]]:
    """Errors of scripts, refusals by the content policy, and anything loaded but the page."""
    return [
        event
        for event in tab.events
        if event.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded")
        or (
            event.get("method") == "Network.requestWillBeSent"
            and not event["params"]["request"]["url"].split("#")[0].endswith("/report.html")
        )
    ]


def test_tabs_choose_the_measure_and_the_agent(tab: Tab, report: str) -> None:
    tab.open(report)
    assert _shown(tab, "#results .note")[0] == "Held-out accuracy, avg@8, in %"
    assert "81.0" in _shown(tab, ".headline .figure")
    tab.click("#tab-greedy")
    assert "40.5" in _shown(tab, ".headline .figure")
    assert _shown(tab, "#results .note")[0] == "Held-out accuracy, greedy, in %"
    tab.click("#tab-agent-1")
    assert set(_shown(tab, ".panel-title")) == set()
    labels = tab.evaluate(
        "[...document.querySelectorAll('.chart')].filter(e => e.checkVisibility())"
        ".map(e => e.getAttribute('aria-label'))"
    )
    assert labels and all(" of right." in label for label in labels)
    assert not _complaints(tab)


def test_arrow_keys_move_between_tabs(tab: Tab, report: str) -> None:
    tab.open(report)
    tab.evaluate("document.getElementById('tab-avg_at_8').focus()")
    tab.press("ArrowRight")
    assert tab.evaluate("document.activeElement.id") == "tab-greedy"
    tab.press("ArrowLeft")
    tab.press("ArrowLeft")
    assert tab.evaluate("document.activeElement.id") == "tab-pass_at_8"
    assert "81.0" in _shown(tab, ".headline .figure")


def test_a_legend_hides_its_condition_in_every_chart(tab: Tab, report: str) -> None:
    tab.open(report)
    button = ".legend button[data-condition='1']"
    count = (
        "[...document.querySelectorAll('.curve.c1')]"
        ".filter(e => getComputedStyle(e).display !== 'none').length"
    )
    assert tab.evaluate(count) > 5
    tab.click(button)
    assert tab.evaluate(count) == 0
    tab.click(button)
    assert tab.evaluate(count) > 5


def test_a_chart_is_read_by_mouse_and_by_keys(tab: Tab, report: str) -> None:
    tab.open(report)
    x, y = tab.evaluate(
        "(() => { const e = document.querySelectorAll('.chart')[1];"
        " e.scrollIntoView({block: 'center', behavior: 'instant'});"
        " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2] })()"
    )
    tab.move_to(x, y)
    (tip,) = _shown(tab, ".tip")
    assert tip.startswith("step 1") or tip.startswith("step 2")
    assert "Co-RL · pair40 %" in tip
    tab.move_to(2, 2)
    assert not _shown(tab, ".tip")
    tab.evaluate("document.querySelectorAll('.chart')[1].focus({focusVisible: true})")
    tab.press("Home")
    assert _shown(tab, ".tip")[0].startswith("step 1a_method")
    tab.press("ArrowRight")
    assert _shown(tab, ".tip")[0].startswith("step 2a_method")
    tab.press("Escape")
    assert not _shown(tab, ".tip")


def test_rollouts_are_browsed_by_run_agent_and_step(tab: Tab, report: str) -> None:
    tab.open(report)
    choose = (
        "(() => {{ const s = document.querySelectorAll('.picker select')[{0}];"
        " s.value = {1!r}; s.dispatchEvent(new Event('change')); return s.value }})()"
    )
    assert tab.evaluate(choose.format(0, "RENT · pair · seed 0")) == "RENT · pair · seed 0"
    assert tab.evaluate(choose.format(1, "right")) == "right"
    tab.click(".picker button:nth-of-type(2)")
    texts = _shown(tab, "pre.completion")
    assert len(texts) == 3, "two equal completions are one entry"
    assert texts[-1].startswith("right at 20 ")
    assert ATTACK in texts and ATTACK in _shown(tab, "pre.prompt")
    assert _shown(tab, ".reward") == ["1", "0", "0"]


def test_a_figure_leads_to_its_seeds(tab: Tab, report: str) -> None:
    tab.open(report)
    tab.click(".headline tbody:nth-of-type(2) .gain .figure")
    target = tab.evaluate("document.querySelector(':target').textContent")
    assert "Co-RL · pair" in target and "rows[1].agents[0]" in target
    files = tab.evaluate("[...document.querySelectorAll(':target a')].map(a => a.href)")
    assert files and all(
        Path(file.removeprefix("file://").replace("%20", " ")).is_file() for file in files
    )


@pytest.mark.parametrize("width", [1280, 800, 380, 360])
def test_nothing_sticks_out_of_the_window(tab: Tab, report: str, width: int) -> None:
    tab.open(report, width=width)
    tab.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    wide = tab.evaluate(
        "[...document.querySelectorAll('main *')].filter(e => e.checkVisibility()"
        " && e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll'))"
        ".map(e => e.outerHTML.slice(0, 80))"
    )
    assert wide == []


def test_dark_and_light_follow_the_system(tab: Tab, report: str) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    tab.open(report)
    light = tab.evaluate(ground)
    tab.open(report, dark=True)
    assert light == "rgb(246, 246, 243)" and tab.evaluate(ground) == "rgb(19, 21, 24)"


def test_hostile_text_runs_nothing_and_nothing_is_loaded(tab: Tab, report: str) -> None:
    tab.open(report)
    tab.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert tab.evaluate("document.title").startswith("Co-RL: ")
    assert tab.evaluate("document.querySelectorAll('img, script').length") == 1
    assert not _complaints(tab)


def test_without_scripts_the_page_is_whole(tab: Tab, report: str) -> None:
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(report)
        assert len(_shown(tab, ".headline")) == 4
        assert _shown(tab, ".panel-title") == ["left", "right"]
        assert not _shown(tab, ".tabs") and not _shown(tab, ".picker")
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)
