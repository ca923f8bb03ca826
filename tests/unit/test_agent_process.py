"""What an agent's own process takes from the run directory, without training in it."""

from corl.config import load_recipe
from corl.launch.agent_task import AgentTask, train_agent
from corl.run.directory import RunDirectory, RunFacts
from e2e.cohorts import RECIPE


def test_the_recipes_longest_wait_and_the_cohorts_size_reach_the_exchange(monkeypatch, tmp_path):
    seen = {}

    def exchange(store, *, num_agents, timeout_s):
        seen.update(num_agents=num_agents, timeout_s=timeout_s)

    monkeypatch.setattr("corl.exchange.store.StoreExchange", exchange)
    monkeypatch.setattr("corl.launch.assembly.build_agent", lambda name, **settings: None)
    monkeypatch.setattr("corl.launch.assembly.run_agents", lambda *args, **settings: 3)
    recipe = load_recipe(RECIPE, ["exchange.timeout_s=7"])
    RunDirectory.create(tmp_path / "run", recipe, RunFacts("id", {}, "processes", 3))
    task = AgentTask(tmp_path / "run", "qwen3", done_step=0, device="cpu")
    assert train_agent(task, store=None) == 3
    assert seen == {"num_agents": 2, "timeout_s": 7}
