"""A collapse on purpose: a hundred times the learning rate, under which answers fall apart.

Peers wait for one another's ballots, so that a stop reaches both within a step or two.
"""

import json

import pytest
import yaml

from e2e.cohorts import final_weights, metrics, resume, train

NAMES = ("qwen3", "gpt_neox")
STEPS = 20
COLLAPSE = (
    "optimizer.learning_rate=0.03",
    f"steps={STEPS}",
    "checkpoint.keep=30",
    "health.warmup=2",
    "health.window=2",
)


def collapse(out, policy, *overrides, launch="in_process"):
    return train(out, *COLLAPSE, f"health.policy={policy}", *overrides, launch=launch)


def notices(run):
    return [json.loads(line) for line in (run / "health.jsonl").read_text().splitlines()]


def alarms(run):
    return [notice for notice in notices(run) if notice["level"] == "alarm"]


def checkpoints(run):
    return {
        name: sorted(int(path.name[5:]) for path in (run / "agents" / name).glob("step-*"))
        for name in NAMES
    }


def change(run, edit):
    """Edit the recipe that `corl resume` reads."""
    path = run / "recipe.yaml"
    recipe = yaml.safe_load(path.read_text())
    edit(recipe)
    path.write_text(yaml.safe_dump(recipe))


def gentler(recipe):
    """What the message of a rollback asks for, and no second rollback."""
    recipe["optimizer"]["learning_rate"] = 1e-5
    recipe["health"]["policy"] = "warn"


@pytest.fixture(scope="module")
def warned(tmp_path_factory):
    """The collapse in full: alarms are raised and nothing is done about them."""
    run = tmp_path_factory.mktemp("warned") / "run"
    assert collapse(run, "warn").is_finished
    return run


def test_a_collapse_is_written_down_and_shown(warned, tmp_path, capsys):
    first = alarms(warned)[0]
    assert set(first) == {"step", "agent", "detector", "level", "message", "value", "threshold"}
    assert 4 <= first["step"] < STEPS
    assert first["message"].startswith(f"agent {first['agent']}: ")
    collapse(tmp_path / "run", "warn", f"steps={first['step']}")
    assert f"health alarm: {first['message']}" in capsys.readouterr().err


def test_a_healthy_run_has_no_alarm_and_detectors_can_be_off(tmp_path):
    train(tmp_path / "healthy", "steps=6", "health.warmup=2", "health.window=2")
    assert not (tmp_path / "healthy" / "health.jsonl").exists()
    collapse(tmp_path / "off", "off", "steps=8")
    assert not (tmp_path / "off" / "health.jsonl").exists()


@pytest.mark.parametrize(
    "launch", ["in_process", pytest.param("processes", marks=pytest.mark.slow)]
)
def test_a_stop_saves_one_step_for_all_and_the_run_goes_on_to_the_same_bytes(
    warned, tmp_path, launch, capsys
):
    run = tmp_path / "run"
    outcome = collapse(run, "stop", launch=launch)
    alarm = alarms(run)[0]
    assert alarm == alarms(warned)[0]
    assert alarm["step"] <= outcome.last_step < STEPS
    assert all(steps[-1] == outcome.last_step for steps in checkpoints(run).values())
    assert str(run / "recipe.yaml") in capsys.readouterr().err
    # Whoever resumes has seen the alarm: it is on record again, and stops nothing.
    change(run, lambda recipe: recipe["health"].update(policy="warn"))
    assert resume(run).is_finished
    assert notices(run) == notices(warned)
    assert metrics(run) == metrics(warned)
    assert final_weights(run) == final_weights(warned)


@pytest.mark.parametrize(
    "launch", ["in_process", pytest.param("processes", marks=pytest.mark.slow)]
)
def test_a_rollback_goes_back_behind_the_alarm_and_can_be_resumed(warned, tmp_path, launch, capsys):
    run = tmp_path / "run"
    outcome = collapse(run, "rollback", "checkpoint.every=1", launch=launch)
    healthy = alarms(warned)[0]["step"] - 2
    assert outcome.last_step == healthy > 0
    assert not outcome.is_finished
    assert checkpoints(run) == {name: list(range(1, healthy + 1)) for name in NAMES}
    assert f"rolled back to step {healthy}" in capsys.readouterr().err
    change(run, gentler)
    assert resume(run).is_finished
    assert metrics(run)[: 2 * healthy] == metrics(warned)[: 2 * healthy]
    assert metrics(run)[2 * healthy]["learning_rate"] == pytest.approx(1e-5)
    assert all(alarm["step"] > healthy for alarm in alarms(run))
