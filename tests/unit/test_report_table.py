"""The headline table and the records behind it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from corl.errors import CheckpointError
from corl.report import write_report
from corl.report.conditions import group_runs
from corl.report.html import percent
from corl.report.records import load_study
from corl.report.table import figures
from corl.report.training import start_and_end
from report_cases import accuracy, metric_line, result_row, write_lines, write_run, write_study


def _report(tmp_path: Path, *roots: Path) -> str:
    return write_report(roots, tmp_path / "out.html").read_text(encoding="utf-8")


def test_mean_and_interval_over_seeds_are_the_students(tmp_path: Path) -> None:
    # After 0.80, 0.84, 0.88: mean 0.84, deviation 0.04, t(2) = 4.303,
    # half width 4.303 * 0.04 / sqrt(3) = 0.0994. Every gain is half a point less.
    rows = [result_row("peer", s, a) for s, a in ((0, 0.80), (1, 0.84), (2, 0.88))]
    (condition,) = group_runs(load_study([write_study(tmp_path / "s", rows)]).runs)
    found = figures(condition, "left", "avg_at_8")
    assert found.after == pytest.approx(0.84)
    assert found.after_interval == pytest.approx((0.7406, 0.9394), abs=1e-4)
    assert found.gain == pytest.approx(0.34)
    assert found.gain_interval == pytest.approx((0.2406, 0.4394), abs=1e-4)
    page = _report(tmp_path, tmp_path / "s")
    assert "74.1 to 93.9" in page and "+24.1 to +43.9" in page


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    study = write_study(tmp_path / "s", [result_row("peer", 0, 0.8)])
    page = _report(tmp_path, study)
    assert ">80.0<" in page and 'class="interval"' not in page


def test_missing_figures_are_left_out_of_the_mean(tmp_path: Path) -> None:
    rows = [result_row("peer", 0, 0.8), result_row("peer", 1, 0.6), result_row("peer", 2, 0.7)]
    rows[1]["agents"][0]["after"]["avg_at_8"] = None
    rows[2]["agents"][0]["after"] = {"avg_at_8": float("nan")}
    (condition,) = group_runs(load_study([write_study(tmp_path / "s", rows)]).runs)
    found = figures(condition, "left", "avg_at_8")
    assert found.after == pytest.approx(0.8)
    assert found.after_interval is None
    assert "1: –" in _report(tmp_path, tmp_path / "s")


def test_losing_methods_and_settings_all_have_their_lines(tmp_path: Path) -> None:
    rows = [result_row(method, 0, 0.1) for method in ("entropy", "peer", "self_vote")]
    rows.append(result_row("peer", 0, 0.2, setting="twins", run="cells/peer-twins-seed0"))
    page = _report(tmp_path, write_study(tmp_path / "s", rows))
    table = page[page.index('<table class="headline"') :]
    table = table[: table.index("</table>")]
    assert re.findall(r"<b>([^<]+)</b><span class=\"setting\">([^<]+)<", table) == [
        ("Co-RL", "pair"),
        ("Co-RL", "twins"),
        ("TTRL", "pair"),
        ("RENT", "pair"),
    ]
    assert table.count("−40.0") == 3


def test_a_failed_run_is_shown_with_its_error_and_sinks_nothing(tmp_path: Path) -> None:
    failed = result_row("peer", 1, None, status="failed", error="loss is nan at step 3")
    study = write_study(tmp_path / "s", [result_row("peer", 0, 0.8), failed])
    page = _report(tmp_path, study)
    assert "1 run failed" in page
    assert "loss is nan at step 3" in page
    assert ">80.0<" in page


def test_a_method_of_which_all_runs_failed_keeps_its_line(tmp_path: Path) -> None:
    failed = result_row("entropy", 0, None, status="failed", error="boom")
    page = _report(tmp_path, write_study(tmp_path / "s", [result_row("peer", 0, 0.8), failed]))
    assert "RENT" in page and "no result" in page


def test_every_figure_leads_to_its_file(tmp_path: Path) -> None:
    study = write_study(tmp_path / "s", [result_row("base", 0, 0.5), result_row("peer", 0, 0.8)])
    page = _report(tmp_path, study)
    titles = re.findall(r'href="([^"]+)" title="([^"]+)">80\.0<', page)
    assert ("./s/results.json", "seed 0: s/results.json rows[1].agents[0].after.avg_at_8") in titles
    for anchor in re.findall(r'class="figure" href="#([^"]+)"', page):
        assert f'id="{anchor}"' in page
    for target in re.findall(r'href="(\./[^"]+)"', page):
        assert (tmp_path / target).exists()


def test_a_run_outside_of_its_study_is_not_read(tmp_path: Path) -> None:
    write_run(tmp_path / "elsewhere")
    rows = [
        result_row("peer", 0, 0.8, run="../elsewhere"),
        result_row("peer", 1, 0.8, run=str(tmp_path / "elsewhere")),
    ]
    study = load_study([write_study(tmp_path / "s", rows)])
    assert [run.root for run in study.runs] == [None, None]
    assert len(study.notes) == 2


def test_damaged_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", steps=2)
    with (run / "metrics.jsonl").open("a") as stream:
        stream.write('[1]\n{"step": null}\n{"step": 3, "agent": "le')
    study = load_study([run])
    assert study.runs[0].last_step == 2
    assert study.notes == ["run/metrics.jsonl: 3 lines could not be read"]


def test_a_step_written_again_after_a_rollback_counts_once(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", steps=0, agents=("left",))
    values = [(1, 0.1), (2, 0.9), (2, 0.3)]
    write_lines(
        run / "metrics.jsonl", [metric_line(step, "left", reward_mean=v) for step, v in values]
    )
    lines = load_study([run]).runs[0].metrics["left"]
    assert [line["reward_mean"] for line in lines] == [0.1, 0.3]


def test_a_run_given_twice_counts_once_and_its_namesake_stays_apart(tmp_path: Path) -> None:
    one, two = write_run(tmp_path / "one"), write_run(tmp_path / "two")
    conditions = group_runs(load_study([one, one, two]).runs)
    assert [condition.setting for condition in conditions] == ["demo", "demo (two)"]


def test_seeds_of_one_recipe_are_one_condition(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / f"s{seed}", seed=seed) for seed in (0, 1)]
    (condition,) = group_runs(load_study(runs).runs)
    assert [run.seed for run in condition.runs] == ["0", "1"]


@pytest.mark.parametrize("content", ["", "[]", '{"rows": 3}', '{"rows": [3, null]}', "{"])
def test_results_that_are_none_are_an_error_or_a_note(tmp_path: Path, content: str) -> None:
    (tmp_path / "results.json").write_text(content)
    if content == '{"rows": [3, null]}':
        assert len(load_study([tmp_path]).notes) == 2
    else:
        with pytest.raises(CheckpointError, match=r"results\.json is not the results of a study"):
            load_study([tmp_path])


def test_a_directory_of_neither_kind_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="neither a run .* nor a study"):
        write_report([tmp_path], tmp_path / "out")
    with pytest.raises(CheckpointError, match="at least one"):
        write_report([], tmp_path / "out")


def test_rows_without_a_run_key_find_their_directory(tmp_path: Path) -> None:
    write_run(tmp_path / "peer-pair-seed0", agents=("left",))
    row = result_row("peer", 0, 0.7)
    del row["run"], row["status"], row["error"], row["alarms"]
    (tmp_path / "results.json").write_text(json.dumps({"rows": [row]}))
    (run,) = load_study([tmp_path]).runs
    assert run.root == tmp_path / "peer-pair-seed0" and run.status == "done"


def test_shares_are_shown_as_percentages_with_a_true_minus() -> None:
    assert [percent(0.5), percent(-0.04, sign=True), percent(None)] == ["50.0", "−4.0", "–"]
    assert accuracy(0.5)["greedy"] == 0.25


def test_runs_without_held_out_accuracy_are_compared_by_their_training(tmp_path: Path) -> None:
    runs = []
    for seed, last in ((0, 0.8), (1, 0.9)):
        run = write_run(tmp_path / f"s{seed}", steps=0, seed=seed)
        values = [0.5, None, last]
        lines = [metric_line(s, "left", accuracy=v) for s, v in enumerate(values, start=1)]
        write_lines(run / "metrics.jsonl", lines)
        runs.append(run)
    page = write_report(runs, tmp_path / "out").read_text()
    # Ends 0.8 and 0.9: mean 0.85, t(1) = 12.706, half width 12.706 * 0.0707 / sqrt(2) = 0.635.
    assert "50.0 % → 85.0 %" in page and "21.5 % to 148.5 %" in page
    assert 'href="./../s1/metrics.jsonl" title="../s1/metrics.jsonl">seed 1<' in page


def test_start_and_end_are_tenths_of_the_steps() -> None:
    lines = [metric_line(step, "left", kl=float(step)) for step in range(1, 31)]
    assert start_and_end(lines, "kl") == (2.0, 29.0)
    assert start_and_end(lines, "absent") == (None, None)
    assert start_and_end(lines[:1], "kl") == (1.0, 1.0)


def test_a_variant_of_a_method_shares_its_colour_and_not_its_line(tmp_path: Path) -> None:
    rows = [result_row("entropy_authors", 0, 0.6), result_row("entropy", 0, 0.1)]
    study = write_study(tmp_path / "s", rows)
    write_run(study / "cells" / "entropy_authors-pair-seed0", method="entropy", agents=("left",))
    plain, variant = group_runs(load_study([study]).runs)
    assert (plain.name, variant.name) == ("RENT", "RENT, authors")
    assert plain.slot == variant.slot and plain.dash != variant.dash
    assert variant.has_own_scale


def test_pooled_votes_stand_under_the_majority_alone(tmp_path: Path) -> None:
    pooled = {"before": 0.55, "after": 0.65}
    row = result_row("peer", 0, 0.8, ensemble_maj_at_8=pooled)
    page = _report(tmp_path, write_study(tmp_path / "s", [row]))
    tables = page.split('<table class="headline"')[1:]
    assert [table.split("</table>")[0].count("votes pooled") for table in tables] == [0, 0, 1, 0]
    assert "rows[0].ensemble_maj_at_8.after" in page and ">65.0<" in page
