"""A tiny study through the real command: cells, files, resume, and a cell that fails."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from corl import cli
from corl.config import load_recipe
from corl.errors import CheckpointError
from corl.evaluation.completions import Asking
from corl.run.directory import RunDirectory
from corl.run.journal import read_records
from corl.study import load_study
from corl.study.evaluate import Evaluation
from corl.study.measure import Measurer, Question
from corl.study.run import _refuse_ended_by_health
from e2e.cohorts import RECIPE, final_weights

HELDOUT = "corl:quickstart/prompts/heldout.jsonl"
GOOD, BROKEN = "peer-default-seed0", "broken-default-seed0"


def write_study(path, **changes):
    tree = {
        "recipe": str(RECIPE),
        "methods": ["peer", {"name": "broken", "supervision": "no_such"}],
        "seeds": [0],
        "overrides": {
            "steps": 2,
            "batch": {"prompts": 4, "completions": 4},
            "launch": "in_process",
        },
        "evaluate": {
            "prompts": {"file": HELDOUT, "limit": 12},
            "every": 1,
            "along": 8,
            "workers": 1,
        },
        **changes,
    }
    path.write_text(yaml.safe_dump(tree))
    return path


def corl(*arguments):
    """Run the command here. Returns its exit code, 0 where it just ends."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["corl", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    return ended.value.code or 0


def rows(root):
    return {row["method"]: row for row in json.loads((root / "results.json").read_text())["rows"]}


def timeless(row):
    return {key: value for key, value in row.items() if key != "seconds"}


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A study of one cell that works and one that does not."""
    folder = tmp_path_factory.mktemp("study")
    code = corl("study", write_study(folder / "study.yaml"), "--out", folder / "out")
    assert code == 1  # one cell failed
    return folder / "out"


@pytest.fixture
def copy(first, tmp_path):
    shutil.copytree(first, tmp_path / "out")
    return tmp_path / "out"


def test_a_failing_cell_is_recorded_and_sinks_nothing(first):
    found = rows(first)
    assert list(found) == ["base", "peer", "broken"]
    assert found["broken"]["status"] == "failed"
    assert "'no_such' is not known" in found["broken"]["error"]
    assert found["peer"]["status"] == "done" and found["peer"]["error"] is None


def test_a_row_holds_accuracy_before_and_after(first):
    row = rows(first)["peer"]
    assert (row["setting"], row["seed"], row["run"]) == ("default", 0, f"cells/{GOOD}")
    assert [agent["name"] for agent in row["agents"]] == ["qwen3", "gpt_neox"]
    for agent, untrained in zip(row["agents"], rows(first)["base"]["agents"], strict=True):
        assert set(agent["before"]) == {"greedy", "avg_at_8", "maj_at_8", "pass_at_8"}
        assert agent["before"] == untrained["before"] == untrained["after"]
        assert agent["after"] != agent["before"]
    assert set(row["ensemble_maj_at_8"]) == {"before", "after"}


def test_a_cell_is_an_ordinary_run_with_a_curve_beside_it(first):
    run = first / "cells" / GOOD
    assert len(read_records(run / "metrics.jsonl")) == 4
    curve = read_records(run / "evaluations.jsonl")
    assert [(line["step"], line["agent"]) for line in curve] == [
        (step, name) for step in (0, 1, 2) for name in ("qwen3", "gpt_neox")
    ]
    assert load_study(first / "study.yaml").methods[1].supervision == "no_such"


def test_the_label_free_pick_is_measured(first):
    selection = json.loads((first / "selection.json").read_text())
    (row,) = selection["rows"]
    assert row["method"] == "peer"
    for agent in row["agents"]:
        assert [one["step"] for one in agent["checkpoints"]] == [0, 1, 2]
        assert agent["picks"]["last"]["step"] == 2
    assert selection["summary"][0]["method"] == "peer"


def test_what_is_done_is_not_run_again_and_a_mended_cell_is(copy, tmp_path, capsys):
    before = final_weights(copy / "cells" / GOOD)
    kept = timeless(rows(copy)["peer"])
    shutil.rmtree(copy / "cells" / GOOD / "agents" / "qwen3" / "step-1")  # nobody may need it
    mended = [{"name": "peer"}, {"name": "broken", "supervision": "self_vote"}]
    code = corl("study", write_study(tmp_path / "s.yaml", methods=mended), "--out", copy)
    assert code == 0
    printed = capsys.readouterr().out
    assert "1 of 2 cells are done" in printed
    assert "…" not in printed
    found = rows(copy)
    assert timeless(found["peer"]) == kept
    assert found["broken"]["status"] == "done"
    assert final_weights(copy / "cells" / GOOD) == before


def test_an_unfinished_run_is_continued_to_the_same_figures(copy, tmp_path):
    whole, kept = final_weights(copy / "cells" / GOOD), timeless(rows(copy)["peer"])
    for name in ("qwen3", "gpt_neox"):
        shutil.rmtree(copy / "cells" / GOOD / "agents" / name / "final")
    results = json.loads((copy / "results.json").read_text())
    results["rows"][1]["status"] = "running"
    (copy / "results.json").write_text(json.dumps(results))
    drops = {"prompts": {"file": HELDOUT, "limit": 12}, "every": 1, "along": 8, "workers": 1}
    study = write_study(
        tmp_path / "s.yaml", methods=["peer"], evaluate={**drops, "keep_checkpoints": False}
    )
    assert corl("study", study, "--out", copy) == 0
    assert final_weights(copy / "cells" / GOOD) == whole
    assert timeless(rows(copy)["peer"]) == kept
    assert not list(copy.glob("cells/*/agents/*/step-*"))


def test_a_stop_while_measuring_leaves_the_study_to_be_continued(tmp_path, capsys, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    study = write_study(tmp_path / "s.yaml", methods=["peer", "self_vote"])
    with monkeypatch.context() as patch:
        patch.setattr(Evaluation, "trained", interrupted)
        assert corl("study", study, "--out", tmp_path / "out") == 0
    assert "Continue: corl study" in capsys.readouterr().out
    assert {name: row["status"] for name, row in rows(tmp_path / "out").items()} == {
        "base": "done",
        "peer": "running",
    }
    assert rows(tmp_path / "out")["peer"]["agents"][0]["after"] is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"overrides": {"steps": 3}}, "made by another recipe"),
        ({"evaluate": {"prompts": HELDOUT}}, "`evaluate` differs"),
        ({"recipe": "/no/such.yaml"}, "does not exist"),
        ({"evaluate": {"prompts": {"file": HELDOUT, "answer_field": "x"}}}, "needs labels"),
    ],
)
def test_figures_of_two_studies_are_never_mixed(copy, tmp_path, capsys, changes, says):
    before = (copy / "results.json").read_bytes()
    code = corl("study", write_study(tmp_path / "s.yaml", **changes), "--out", copy)
    assert code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
    assert (copy / "results.json").read_bytes() == before


def test_what_health_ended_counts_as_failed_and_a_stop_does_not(tmp_path):
    run = RunDirectory(tmp_path)
    stops = load_recipe(RECIPE, ["health.policy=stop"])
    _refuse_ended_by_health(stops, run, 7)  # no alarm: somebody stopped it
    alarm = {"step": 7, "agent": "qwen3", "level": "alarm", "message": "reward std fell"}
    info = {**alarm, "level": "info", "message": "agreement is high"}
    (tmp_path / "health.jsonl").write_text(f"{json.dumps(alarm)}\n{json.dumps(info)}\n")
    _refuse_ended_by_health(load_recipe(RECIPE), run, 7)  # the default only warns
    with pytest.raises(CheckpointError, match="ended the run, now at step 7: reward std fell"):
        _refuse_ended_by_health(stops, run, 7)


def test_workers_answer_as_this_process_does(first):
    evaluation = Evaluation(load_study(first / "study.yaml").evaluate, Measurer(1))
    models = sorted((first / "cells" / GOOD / "agents").glob("*/final"))
    questions = [Question(model=str(model), asking=_asking(first)) for model in models]
    with Measurer(1) as here, Measurer(2) as apart:
        assert apart.sheets(questions, evaluation._rows) == here.sheets(questions, evaluation._rows)


def _asking(root):
    recipe = load_recipe(root / "cells" / GOOD / "recipe.yaml")
    return Asking.of(recipe, recipe.agents[0])


def test_a_check_in_a_pipe_cuts_no_column(capsys):
    assert corl("check", RECIPE) == 0
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert "GPTNeoXForCausalLM" in printed and "graded by" in printed


def test_a_study_becomes_a_page(first, tmp_path, capsys):
    assert corl("report", first, "--out", tmp_path / "report.html") == 0
    assert "report.html" in capsys.readouterr().out
    assert "gpt_neox" in (tmp_path / "report.html").read_text()


def test_the_quickstart_trains_measures_and_names_its_rows(tmp_path, capsys):
    out = tmp_path / "quickstart"
    assert corl("quickstart", "--seeds", 3, "--steps", 1, "--out", out) == 0
    printed = capsys.readouterr()
    assert "Loading weights" not in printed.err
    assert "avg@8" in printed.out and "…" not in printed.out
    untrained, trained = json.loads((out / "results.json").read_text())["rows"]
    assert (untrained["method"], untrained["run"]) == ("base", None)
    assert [trained[key] for key in ("method", "setting", "seed", "status")] == [
        "peer",
        "different_family",
        3,
        "done",
    ]
    assert (out / trained["run"] / "metrics.jsonl").exists()
    for agent in trained["agents"]:
        assert set(agent["after"]) == {"greedy", "avg_at_8", "maj_at_8", "pass_at_8"}


def test_every_new_verb_shows_an_example(capsys):
    for verb in ("study", "report", "quickstart"):
        assert corl(verb, "--help") == 0
        assert f"corl {verb}" in capsys.readouterr().out


@pytest.mark.slow
def test_a_stopped_study_ends_cleanly(tmp_path):
    """Ctrl-C to the whole process group, as a terminal sends it, in the midst of a run."""
    study = write_study(
        tmp_path / "s.yaml",
        methods=["peer", "self_vote"],
        overrides={"steps": 500, "batch": {"prompts": 4, "completions": 4}},
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "corl.cli", "study", study, "--out", tmp_path / "out"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    metrics = Path(tmp_path / "out" / "cells" / GOOD / "metrics.jsonl")
    deadline = time.monotonic() + 120
    while not (metrics.exists() and metrics.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    try:
        output, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, output
    assert "Continue: corl study" in output and "Traceback" not in output
    assert rows(tmp_path / "out")["peer"]["status"] == "running"
