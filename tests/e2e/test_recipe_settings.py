"""Settings of a recipe change what they name: short runs, and the sampler's calls where needed."""

from dataclasses import dataclass
from typing import Any

import pytest

from corl.policy.learner import Learner
from corl.policy.optimizer import learning_rate_at
from corl.rollout.transformers_engine import TransformersEngine
from e2e.cohorts import metrics, train
from tiny_models import CHAT_TEMPLATE, build_checkpoint

TINY = ("steps=1", "batch.prompts=2", "batch.completions=2", "prompts.limit=32")


@dataclass
class Call:
    """One call of a sampler."""

    prompts: list[str]
    completions: int
    sampling: Any
    noise: Any
    step: int


@pytest.fixture
def calls(monkeypatch):
    """What the agents' samplers were asked for, in order."""
    noted = []
    sample = TransformersEngine.sample

    def spy(self, prompt_ids, *, completions, sampling, noise, step, vision=None):
        assert not any(vision or ())
        prompts = [self.policy.tokenizer.decode(ids) for ids in prompt_ids]
        noted.append(Call(prompts, completions, sampling, noise, step))
        return sample(
            self, prompt_ids, completions=completions, sampling=sampling, noise=noise, step=step
        )

    monkeypatch.setattr(TransformersEngine, "sample", spy)
    return noted


def run(out, *overrides):
    """The records of a run of one step."""
    train(out, *TINY, *overrides)
    return metrics(out)


def test_every_step_draws_noise_of_its_own_from_the_seed(tmp_path, calls):
    train(tmp_path / "run", *TINY, "steps=2", "seed=7")
    assert [call.step for call in calls] == [1, 1, 2, 2]
    assert {call.noise.seed for call in calls} == {7}


def test_the_seed_changes_the_draws_and_the_data_seed_keeps_the_prompts(tmp_path, calls):
    """The order of prompts follows the data seed, or else the seed."""
    (first, _), _, (third, _) = [
        run(tmp_path / name, *seeds)
        for name, seeds in (("a", ["seed=1"]), ("b", ["seed=2"]), ("c", ["seed=2", "data_seed=1"]))
    ]
    assert calls[0].prompts == calls[4].prompts != calls[2].prompts
    assert first["entropy"] != third["entropy"]


def test_as_many_completions_are_drawn_as_the_batch_names(tmp_path, calls):
    run(tmp_path / "run", "batch.completions=3")
    assert [call.completions for call in calls] == [3, 3]
    assert [len(call.prompts) for call in calls] == [2, 2]


def test_an_agent_has_its_own_learning_rate(tmp_path):
    left, right = run(tmp_path / "run", "agents.1.learning_rate=1e-5")
    assert left["learning_rate"] == pytest.approx(3e-4)
    assert right["learning_rate"] == pytest.approx(1e-5)


def test_an_agent_has_its_own_sampling(tmp_path):
    left, right = run(tmp_path / "run", "agents.1.sampling.max_tokens=3")
    assert left["length_max"] > 3
    assert right["length_max"] == 3


def test_the_schedule_spans_the_steps_of_the_run(tmp_path):
    train(tmp_path / "run", *TINY, "steps=2", "optimizer.floor_share=0.1")
    rates = [record["learning_rate"] for record in metrics(tmp_path / "run")[::2]]
    assert rates == [
        learning_rate_at(step, 2, peak=3e-4, warmup_share=0.0, floor_share=0.1) for step in (0, 1)
    ]
    assert rates[1] < rates[0]


def test_learner_and_reference_apply_the_sampling_temperature(tmp_path):
    """Before the first update sampler, learner and reference are one policy: all ratios are 1."""
    hot = ("supervision=entropy", "sampling.temperature=2", "grpo.kl=0.1")
    left, _ = run(tmp_path / "run", *hot)
    assert left["groups_forwarded"] == 2
    assert left["mismatch_min"] == pytest.approx(1, abs=1e-4)
    assert left["mismatch_max"] == pytest.approx(1, abs=1e-4)
    assert left["kl"] == pytest.approx(0, abs=1e-7)


def test_a_cut_off_completion_is_not_read(tmp_path):
    for record in run(tmp_path / "run", "sampling.max_tokens=1"):
        assert record["truncated_share"] == 1
        assert record["answered_share"] == 0


def test_cut_off_completions_leave_the_loss_where_asked(tmp_path):
    cut = ("supervision=entropy", "sampling.max_tokens=3", "sampling.temperature=2")
    assert all(record["grad_norm"] > 0 for record in run(tmp_path / "with", *cut))
    masked = run(tmp_path / "without", *cut, "grpo.mask_truncated=true")
    assert all(record["grad_norm"] == 0 for record in masked)


def test_every_sample_is_drawn_from_the_latest_weights(tmp_path, calls, monkeypatch):
    """Where compute is low-precision the sampler has a copy, which `sync` refreshes."""
    synced_before = []
    monkeypatch.setattr(TransformersEngine, "sync", lambda self: synced_before.append(len(calls)))
    train(tmp_path / "run", *TINY, "steps=2")
    assert synced_before == [0, 1, 2, 3]


def test_the_learner_is_handed_the_samplers_log_probabilities(tmp_path, monkeypatch):
    batches = []
    monkeypatch.setattr(Learner, "update", lambda self, batch: batches.append(batch) or {})
    run(tmp_path / "run")
    for batch in batches:
        for ids, logps in zip(batch.token_ids, batch.engine_logps, strict=True):
            assert [len(row) for row in ids] == [len(row) for row in logps]


def test_a_vote_needs_the_support_that_the_recipe_names(tmp_path):
    four = ("batch.prompts=4", "batch.completions=4")
    loose = run(tmp_path / "loose", *four)
    strict = run(tmp_path / "strict", *four, "votes.min_support=1")
    assert any(record["vote_support"] < 1 for record in loose)
    assert all(record["vote_support"] in (None, 1) for record in strict)


def test_ties_fall_as_the_recipe_says(tmp_path):
    four = ("batch.prompts=4", "batch.completions=2")
    assert any(record["voted_share"] < 1 for record in run(tmp_path / "none", *four))
    broken = run(tmp_path / "key", *four, "votes.ties=smallest_key")
    assert all(record["voted_share"] == 1 for record in broken)


def test_lenient_votes_read_an_unmarked_number(tmp_path):
    """Completions stop before their box is filled, so that only their last number is left."""
    unmarked = r"sampling.stop=['\box']"
    strict = run(tmp_path / "strict", unmarked)
    lenient = run(tmp_path / "lenient", unmarked, "votes.lenient=true")
    assert [record["answered_share"] for record in strict] == [0, 0]
    assert [record["answered_share"] for record in lenient] == [1, 1]


def test_a_page_holds_as_many_prompts_as_asked_for(tmp_path):
    train(tmp_path / "run", *TINY, "rollout.save_every=5", "rollout.save_prompts=1")
    (page,) = (tmp_path / "run" / "agents" / "qwen3" / "pages").iterdir()
    assert page.name == "step-000001.md"
    assert page.read_text().count("## Prompt") == 1


@pytest.mark.parametrize(("every", "kept"), [(0, []), (1, ["step-1"])])
def test_checkpoints_come_as_often_as_asked_for_or_never(tmp_path, every, kept):
    train(tmp_path / "run", *TINY, "steps=2", f"checkpoint.every={every}")
    folder = tmp_path / "run" / "agents" / "qwen3"
    assert sorted(path.name for path in folder.glob("step-*")) == kept


def test_an_agent_reads_its_prompts_in_its_own_dress(tmp_path, calls):
    """System prompt, template and template arguments are each agent's own."""
    template = CHAT_TEMPLATE + "{% if thinking is false %}no thoughts{% endif %}"
    model = build_checkpoint(tmp_path / "chat", chat_template=template)
    short = "sampling: {max_tokens: 2}"
    run(
        tmp_path / "run",
        f"agents=[{{name: a, model: '{model}', system_prompt: be brief, {short}}}, "
        f"{{name: b, model: '{model}', chat_template_kwargs: {{thinking: false}}, {short}}}, "
        f"{{name: c, model: '{model}', chat: never, {short}}}]",
    )
    briefed, thoughtless, bare = (call.prompts[0] for call in calls)
    assert briefed.startswith("<|im_start|>system\nbe brief<|im_end|>")
    assert "be brief" not in thoughtless and thoughtless.endswith("assistant\nno thoughts")
    assert "<|im_start|>" not in bare and bare in briefed
