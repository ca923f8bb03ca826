"""Curves: thinning, means over seeds, axes, alarms."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from corl.report import write_report
from corl.report.chart import Curve, draw
from corl.report.conditions import group_runs
from corl.report.curves import curves_section
from corl.report.records import load_study
from corl.report.series import (
    HELD_OUT,
    METRICS,
    Metric,
    benchmark_metrics,
    mean_curve,
    points_of,
)
from report_cases import accuracy, metric_line, result_row, write_lines, write_run, write_study

REWARD = next(metric for metric in METRICS if metric.key == "reward_mean")


def test_a_bucket_is_the_mean_of_its_steps(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", steps=0, agents=("left",))
    values = [0.0, 1.0, 0.5, None, 0.2]
    lines = [metric_line(s, "left", reward_mean=v) for s, v in enumerate(values, start=1)]
    write_lines(run / "metrics.jsonl", lines)
    (loaded,) = load_study([run]).runs
    # Steps 1-2, 3-4 (one value is missing), 5-6 (not all there yet).
    assert points_of(loaded, "left", REWARD, 2) == [(1.5, 0.5), (3.5, 0.5), (5.5, 0.2)]


def test_the_mean_stands_only_where_every_seed_has_a_value() -> None:
    long, short = [(1.0, 0.2), (2.0, 0.4), (3.0, 0.9)], [(1.0, 0.4), (2.0, 0.0)]
    assert mean_curve([long, short]) == [(1.0, pytest.approx(0.3)), (2.0, 0.2)]
    assert mean_curve([[], []]) == []


def test_held_out_accuracy_joins_both_ends_and_the_evaluations(tmp_path: Path) -> None:
    study = write_study(tmp_path / "s", [result_row("peer", 0, 0.8)])
    cell = study / "cells" / "peer-pair-seed0"
    write_lines(cell / "evaluations.jsonl", [{"step": 2, "agent": "left", **accuracy(0.6)}])
    (run,) = load_study([study]).runs
    assert points_of(run, "left", HELD_OUT, 1) == [(0, 0.5), (2, 0.6), (4, 0.8)]


def test_without_evaluations_or_results_that_chart_is_left_out(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", accuracy=None)
    page = write_report([run], tmp_path).read_text()
    titles = re.findall(r"<figcaption><b>([^<]+)</b>", page)
    assert "Held-out accuracy" not in titles and "Accuracy of the samples" not in titles
    assert titles.count("Reward") == 2, "a panel for each agent"
    assert "No held-out accuracy was measured" in page


def test_a_run_without_metrics_yet_has_no_curves(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", steps=0)
    page = write_report([run], tmp_path).read_text()
    assert 'class="chart"' not in page and "unfinished" in page


def test_a_failed_seed_is_drawn_but_not_averaged(tmp_path: Path) -> None:
    rows = [
        result_row("peer", 0, 0.8),
        result_row("peer", 1, None, status="failed", error="boom"),
    ]
    study = write_study(tmp_path / "s", rows)
    write_run(
        study / "cells" / "peer-pair-seed1", seed=1, steps=1, agents=("left",), reward_mean=0.0
    )
    section = str(curves_section(group_runs(load_study([study]).runs)))
    reward = section[section.index("<b>Reward</b>") :]
    summary = re.search(r'aria-label="([^"]+)"', reward)
    assert summary and summary[1] == "Reward of left. Co-RL · pair from 50.0 to 50.0 percent"
    seeds = re.search(r'd="([^"]+)" class="seed"', reward)
    assert seeds and seeds[1].count("M") == 2


def test_intrinsic_rewards_get_axes_of_their_own(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a", method="peer"),
        write_run(tmp_path / "b", method="self_certainty", reward_mean=9.0),
    ]
    page = write_report(runs, tmp_path / "out").read_text()
    assert "<b>Reward, Intuitor · demo</b>" in page
    reward = page[page.index("<b>Reward</b>") :]
    assert "Intuitor" not in reward[: reward.index("</svg>")]


def test_the_first_alarm_of_a_run_is_marked(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", agents=("left",))
    said = {"agent": "left", "detector": "d", "level": "alarm"}
    write_lines(
        run / "health.jsonl",
        [
            {**said, "step": 3, "message": "second"},
            {**said, "step": 2, "message": "first"},
            {**said, "step": 1, "message": "only saying", "level": "info"},
        ],
    )
    page = write_report([run], tmp_path).read_text()
    marks = set(re.findall(r"<title>([^<]+)</title><path", page))
    assert marks == {"seed 0, step 2: first"}
    assert "Information (1)" in page and "second" in page


def test_agents_of_one_name_and_two_models_have_two_panels(tmp_path: Path) -> None:
    one, two = write_run(tmp_path / "a"), write_run(tmp_path / "b", seed=1)
    recipe = (two / "recipe.yaml").read_text().replace("models/left", "models/other")
    (two / "recipe.yaml").write_text(recipe)
    page = write_report([one, two], tmp_path / "out").read_text()
    tabs = re.findall(r'aria-controls="agent-\d+" type="button">([^<]+)<', page)
    assert tabs == ["left (left)", "right", "left (other)"]


@pytest.mark.parametrize(
    "values",
    [[0.0, 0.0], [5.0], [-3.0, -3.0], [1e-9, 2e-9], [0.0, 1e12], [-1e-300, 1e-300], [1.0, 1.5]],
)
@pytest.mark.parametrize("scale", ["share", "zero", "free"])
def test_axes_hold_every_value(values: list[float], scale: str) -> None:
    points = [(float(step), value) for step, value in enumerate(values, start=1)]
    metric = Metric("x", "X", "", scale)  # type: ignore[arg-type]
    svg = str(draw([Curve("c", 1, None, 0, points, [points])], metric, last_step=2, agent="a"))
    assert "nan" not in svg and "inf" not in svg
    path = re.search(r'd="([^"]+)" class="mean"', svg)
    assert path
    for x, y in re.findall(r"([\d.-]+) ([\d.-]+)", path[1]):
        assert 38 <= float(x) <= 350 and 10 <= float(y) <= 184
    assert 2 <= svg.count('text-anchor="end"') <= 12


def test_benchmarks_measured_while_training_have_charts_of_their_own(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", steps=4)
    lines = [
        {"step": step, "agent": "left", "benchmark": "gsm8k", "metric": "avg@2", "avg@2": figure}
        for step, figure in [
            (0, {"value": 0.25, "interval": [0.1, 0.4]}),
            (4, {"value": 0.75, "interval": None}),
            (2, "damaged"),
        ]
    ]
    write_lines(run / "agents" / "left" / "evaluations.jsonl", lines)
    study = load_study([run])
    (metric,) = benchmark_metrics(study.runs, "left")
    assert points_of(study.runs[0], "left", metric, 1) == [(0, 0.25), (4, 0.75)]
    assert benchmark_metrics(study.runs, "right") == []
    assert "gsm8k" in str(curves_section(group_runs(study.runs)))
