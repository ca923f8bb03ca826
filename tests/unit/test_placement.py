"""Where agents live: threads, devices and launcher follow from recipe and machine alone."""

import pytest

from corl.config import parse_recipe
from corl.errors import RecipeError
from corl.launch.placement import devices_per_agent, pick_launcher, threads_per_agent


def recipe(*agents, **keys):
    listed = [{"name": f"agent{i}", "model": "Owner/m", **agent} for i, agent in enumerate(agents)]
    return parse_recipe({"agents": listed, "prompts": "/p.jsonl", **keys})


def test_cores_are_shared_and_an_agents_own_count_wins():
    assert threads_per_agent(recipe({}, {}), cores=8) == {"agent0": 4, "agent1": 4}
    assert threads_per_agent(recipe({}, {"threads": 3}), cores=2) == {"agent0": 1, "agent1": 3}
    assert threads_per_agent(recipe({}, {}, {}), cores=2) == dict.fromkeys(
        ["agent0", "agent1", "agent2"], 1
    )


def test_threads_do_not_depend_on_the_launcher():
    assert threads_per_agent(recipe({}, {}, launch="in_process"), cores=8) == threads_per_agent(
        recipe({}, {}, launch="processes"), cores=8
    )


def test_devices_go_round_the_gpus():
    three = recipe({}, {}, {"device": "cpu"})
    assert list(devices_per_agent(three, num_gpus=0).values()) == ["cpu", "cpu", "cpu"]
    assert list(devices_per_agent(three, num_gpus=1).values()) == ["cuda:0", "cuda:0", "cpu"]
    assert list(devices_per_agent(three, num_gpus=4).values()) == ["cuda:0", "cuda:1", "cpu"]
    assert devices_per_agent(recipe({"gpus": 0}), num_gpus=2) == {"agent0": "cpu"}


def test_several_gpus_for_one_agent_are_refused():
    with pytest.raises(RecipeError, match="set gpus: 1"):
        devices_per_agent(recipe({"gpus": 2}), num_gpus=8)


@pytest.mark.parametrize(
    ("count", "cores", "num_gpus", "launcher"),
    [
        (1, 8, 0, "in_process"),
        (2, 1, 0, "in_process"),
        (2, 2, 0, "processes"),
        (2, 16, 1, "in_process"),
        (2, 16, 2, "processes"),
        (3, 16, 2, "in_process"),
    ],
)
def test_auto_gives_a_process_where_there_is_a_device_for_it(count, cores, num_gpus, launcher):
    made = recipe(*[{}] * count)
    devices = devices_per_agent(made, num_gpus=num_gpus)
    assert pick_launcher(made, cores=cores, devices=devices) == launcher


def test_the_recipes_launcher_wins():
    made = recipe({}, {}, launch="in_process")
    assert pick_launcher(made, cores=64, devices={"agent0": "cpu", "agent1": "cpu"}) == "in_process"
