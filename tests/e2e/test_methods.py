"""Each method in a real run: who labels whom, what votes, what a checkpoint must hold."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from corl.answers import majority
from corl.config import load_recipe
from corl.data.reading import read_completion
from corl.errors import CheckpointError, PromptError, RecipeError
from corl.launch.assembly import build_agent
from corl.launch.preflight import preflight
from corl.rollout.noise import Noise
from corl.rollout.transformers_engine import TransformersEngine
from corl.run.directory import RunDirectory, RunFacts
from e2e.cohorts import RECIPE, SMALL, final_weights, metrics, resume, train, unfinished

ALONE = "agents=[{name: qwen3, model: 'corl:quickstart/models/qwen3', threads: 1}]"
REWRITES = "rewritten=corl:quickstart/prompts/train_reordered.jsonl"
FAST_TEACHER = "supervision.options={alpha_start: 0.5, alpha_end: 0.1}"
ROWS = [3, 1, 4, 15, 9, 2, 6, 5]
K = 4


def recipe_of(*overrides):
    return load_recipe(RECIPE, [*SMALL, ALONE, *overrides])


def lone_agent(folder, *overrides, steps=4):
    """An agent of its own, with nobody around it."""
    recipe = recipe_of(*overrides)
    facts = RunFacts("run", {"qwen3": 1}, "in_process", steps)
    return build_agent(
        "qwen3",
        recipe=recipe,
        run=RunDirectory.create(folder, recipe, facts),
        facts=facts,
        prompts=preflight(recipe).prompts["qwen3"],
        done_step=0,
        device="cpu",
    )


def polled(policy, prompt_ids, rows, *, stream, completions, step=1):
    """A rollout drawn beside the agent, and the votes on its answers."""
    rollout = TransformersEngine(policy).sample(
        prompt_ids,
        completions=completions,
        sampling=recipe_of().sampling,
        noise=Noise(0, stream),
        step=step,
    )
    answers = [
        [read_completion(text, row, truncated=cut) for text, cut in zip(texts, cuts, strict=True)]
        for row, texts, cuts in zip(rows, rollout.texts, rollout.truncated, strict=True)
    ]
    return rollout, answers, [majority(group) for group in answers]


def keys_of(votes):
    return [None if vote is None else vote.answer.key for vote in votes]


@pytest.mark.parametrize("votes", [None, 11])
def test_ttrl_is_the_majority_of_its_own_answers(tmp_path, votes):
    options = "supervision.options={}" if votes is None else "supervision.options.votes=11"
    agent = lone_agent(tmp_path / "run", "supervision.method=self_vote", options)
    sampled = agent.sample(1, ROWS)
    rollout, answers, expected = polled(
        agent.policy,
        sampled.rollout.prompt_ids,
        sampled.rows,
        stream="qwen3",
        completions=votes or K,
    )
    assert sampled.votes == expected
    assert sampled.rollout.token_ids == [group[:K] for group in rollout.token_ids]
    assert sampled.answers == [group[:K] for group in answers]
    rewards = agent.cross_check(sampled, [])
    assert rewards.labels == keys_of(expected)
    assert rewards.rewards == [
        [float(vote is not None and answer == vote.answer) for answer in group[:K]]
        for group, vote in zip(answers, expected, strict=True)
    ]
    few = [majority(group[:K]) for group in answers]
    assert (keys_of(few) != keys_of(expected)) == (votes is not None)
    agent.update(sampled, rewards)


def test_a_ballot_may_rest_on_more_completions_than_are_trained_on(tmp_path):
    agents = "agents=[{name: qwen3, model: 'corl:quickstart/models/qwen3'}, \
        {name: gpt_neox, model: 'corl:quickstart/models/gpt_neox'}]"
    agent = lone_agent(tmp_path / "run", agents, "supervision.options.votes=11")
    sampled = agent.sample(1, ROWS)
    _, _, expected = polled(
        agent.policy, sampled.rollout.prompt_ids, sampled.rows, stream="qwen3", completions=11
    )
    ballot = agent.vote(sampled)
    assert list(ballot.votes) == keys_of(expected)
    rewards = agent.cross_check(sampled, [ballot])
    assert rewards.labels == keys_of(expected)
    assert [len(group) for group in rewards.rewards] == [K] * len(ROWS)


class SpyExchange:
    """Hands nobody anything, and remembers who asked for whom."""

    asked: list[dict] = []

    def swap(self, ballots, *, graders):
        self.asked.append({name: tuple(names) for name, names in graders.items()})
        return {ballot.agent: [] for ballot in ballots}


@pytest.mark.parametrize("method", ["self_vote", "co_rewarding_2"])
def test_an_agent_alone_uses_no_exchange(tmp_path, monkeypatch, method):
    """The run ends with the same bytes when the exchange hands out nothing at all."""
    train(tmp_path / "run", "steps=2", ALONE, f"supervision={method}")
    monkeypatch.setattr(SpyExchange, "asked", [])
    monkeypatch.setattr("corl.launch.in_process.LocalExchange", SpyExchange)
    assert train(tmp_path / "spied", "steps=2", ALONE, f"supervision={method}").is_finished
    assert SpyExchange.asked == [{"qwen3": ()}] * 2
    assert final_weights(tmp_path / "spied") == final_weights(tmp_path / "run")


def test_the_two_wordings_of_a_prompt_label_each_other(tmp_path):
    agent = lone_agent(tmp_path / "run", "supervision=co_rewarding_1", REWRITES)
    sampled = agent.sample(1, ROWS)
    half = len(ROWS)
    first, second = sampled.rows[:half], sampled.rows[half:]
    assert [row.id for row in first] == [row.id for row in second]
    assert [row.text for row in first] != [row.text for row in second]
    rewards = agent.cross_check(sampled, [])
    votes = keys_of(sampled.votes)
    assert rewards.labels == votes[half:] + votes[:half]
    assert votes[:half] != votes[half:], "the halves disagree somewhere, so crossing shows"
    for label, answers, row in zip(rewards.labels, sampled.answers, rewards.rewards, strict=True):
        expected = [float(label is not None and a is not None and a.key == label) for a in answers]
        assert row == expected


def test_both_wordings_are_trained_on(tmp_path):
    train(tmp_path / "run", "steps=2", ALONE, "supervision=co_rewarding_1", REWRITES)
    for record in metrics(tmp_path / "run"):
        groups = ("groups_forwarded", "groups_flat", "groups_unlabelled")
        assert sum(record[key] for key in groups) == 8
    page = (tmp_path / "run" / "agents" / "qwen3" / "pages" / "step-000001.md").read_text()
    assert "Graded by itself on the other wording." in page


def test_a_teacher_votes_with_a_stream_of_its_own_and_follows_the_policy(tmp_path):
    agent = lone_agent(
        tmp_path / "run", "supervision=co_rewarding_2", FAST_TEACHER, "grpo.kl=0.05", steps=3
    )
    expected = {name: w.double() for name, w in agent.teacher.model.state_dict().items()}
    for step in (1, 2, 3):
        sampled = agent.sample(step, ROWS)
        if step == 1:  # the teacher still is the policy, and its completions are not
            own, _, _ = polled(
                agent.teacher, sampled.rollout.prompt_ids, sampled.rows, stream="qwen3",
                completions=K,
            )  # fmt: skip
            assert own.token_ids == sampled.rollout.token_ids
        rollout, _, votes = polled(
            agent.teacher, sampled.rollout.prompt_ids, sampled.rows, stream="qwen3/teacher",
            completions=K, step=step,
        )  # fmt: skip
        assert sampled.teacher_votes == votes
        assert rollout.token_ids != sampled.rollout.token_ids
        rewards = agent.cross_check(sampled, [])
        assert rewards.labels == keys_of(votes)
        agent.update(sampled, rewards)
        share = 0.1 + 0.5 * 0.4 * (1 + torch.cos(torch.tensor(torch.pi * step / 3)).item())
        for name, weight in agent.policy.model.state_dict().items():
            expected[name] = share * weight.double() + (1 - share) * expected[name]
    for name, weight in agent.teacher.model.state_dict().items():
        torch.testing.assert_close(weight.double(), expected[name], atol=1e-6, rtol=1e-6)


def test_the_kl_term_holds_the_policy_to_the_teacher(tmp_path):
    """A teacher that takes up the whole policy leaves nothing to diverge from."""
    whole = "supervision.options={alpha_start: 1.0, alpha_end: 1.0}"
    for name, options in (("whole", whole), ("none", "supervision.options={alpha_start: 0}")):
        train(
            tmp_path / name, "steps=3", ALONE, "supervision.method=co_rewarding_2", options,
            "grpo.kl=0.05",
        )  # fmt: skip
    assert [record["kl"] for record in metrics(tmp_path / "whole")] == [0, 0, 0]
    assert metrics(tmp_path / "none")[-1]["kl"] > 0


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    """An uninterrupted run of four steps with a teacher, on two agents."""
    out = tmp_path_factory.mktemp("taught") / "run"
    train(out, "steps=4", "supervision=co_rewarding_2", FAST_TEACHER, "grpo.kl=0.05")
    return out


def test_a_resumed_run_with_a_teacher_ends_with_the_same_bytes(taught, tmp_path):
    saved = taught / "agents" / "qwen3" / "step-2"
    policy, teacher = (load_file(path / "model.safetensors") for path in (saved, saved / "teacher"))
    start = load_file(Path(load_recipe(RECIPE).agents[0].model) / "model.safetensors")
    assert all(not torch.equal(teacher[name], policy[name]) for name in policy)
    assert all(not torch.equal(teacher[name], start[name]) for name in start)
    run = unfinished(taught, tmp_path / "run")
    assert resume(run).is_finished
    assert final_weights(run) == final_weights(taught)
    assert metrics(run) == metrics(taught)


def test_a_checkpoint_without_its_teacher_is_not_resumed(taught, tmp_path):
    run = unfinished(taught, tmp_path / "run")
    shutil.rmtree(run / "agents" / "gpt_neox" / "step-2" / "teacher")
    with pytest.raises(CheckpointError, match="has no teacher"):
        resume(run)


@pytest.mark.slow
def test_processes_give_the_same_bytes_with_a_teacher(taught, tmp_path):
    train(
        tmp_path / "run", "steps=4", "supervision=co_rewarding_2", FAST_TEACHER, "grpo.kl=0.05",
        launch="processes",
    )  # fmt: skip
    assert metrics(tmp_path / "run") == metrics(taught)
    assert final_weights(tmp_path / "run") == final_weights(taught)


def rows_of(override):
    return [json.loads(line) for line in Path(override).read_text().splitlines()[:32]]


@pytest.mark.parametrize(
    "method",
    [
        ("supervision={method: self_vote, options: {votes: 6}}",),
        ("supervision=co_rewarding_1",),
        ("supervision=co_rewarding_2", FAST_TEACHER),
        ("supervision=self_certainty",),
    ],
)
def test_labels_never_reach_the_label_free_methods(tmp_path, method):
    """Weights are the same bytes with labels, without them, and with wrong ones."""
    original = load_recipe(RECIPE).prompts.file
    weights = []
    for name in ("true", "wrong", "bare"):
        files = {}
        for role, source in (
            ("prompts", original),
            ("rewritten", original.replace("train.", "train_reordered.")),
        ):
            rows = rows_of(source)
            if name == "wrong":
                labels = [row["answer"] for row in rows[::-1]]
                rows = [{**row, "answer": a} for row, a in zip(rows, labels, strict=True)]
            if name == "bare":
                rows = [{k: v for k, v in row.items() if k != "answer"} for row in rows]
            files[role] = tmp_path / f"{name}-{role}.jsonl"
            files[role].write_text("".join(json.dumps(row) + "\n" for row in rows))
        sources = [f"{role}={path}" for role, path in files.items()]
        train(tmp_path / name, "steps=2", ALONE, *sources, *method)
        weights.append(final_weights(tmp_path / name))
    assert weights[0] == weights[1] == weights[2]


def test_rewrites_are_checked_like_prompts(tmp_path):
    with pytest.raises(RecipeError, match="needs a second wording of agent 'qwen3'"):
        preflight(recipe_of("supervision=co_rewarding_1"))
    rows = rows_of(load_recipe(RECIPE).prompts.file)
    prompts, rewritten = tmp_path / "p.jsonl", tmp_path / "r.jsonl"
    prompts.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def check(changed):
        rewritten.write_text("".join(json.dumps(row) + "\n" for row in changed))
        return preflight(
            recipe_of("supervision=co_rewarding_1", f"prompts={prompts}", f"rewritten={rewritten}")
        )

    with pytest.raises(PromptError, match=r"id 'train-0000' and 0 more .*qwen3, rewritten"):
        check([{**rows[0], "id": "other"}, *rows[1:]])
    with pytest.raises(PromptError, match=r"row 2 .*r\.jsonl is \d+ tokens long"):
        check([rows[0], {**rows[1], "prompt": "1+" * 500}, *rows[2:]])
    aligned = check(rows[::-1]).prompts["qwen3"]
    assert [row.id for row in aligned.rewritten.rows] == [row.id for row in aligned.rows]


def test_rewrites_that_nobody_reads_are_pointed_out():
    warnings = preflight(recipe_of("supervision=self_vote", REWRITES)).warnings
    assert any("does not read its `rewritten` prompts" in warning for warning in warnings)


def test_the_memory_estimate_counts_teacher_votes_and_both_wordings():
    def need(*overrides):
        return preflight(recipe_of(*overrides)).agents[0].memory

    plain = need("supervision=self_vote")
    assert need("supervision=co_rewarding_2").teacher == 4 * plain.num_parameters
    assert need("supervision=co_rewarding_1", REWRITES).cache == 2 * plain.cache
    voting = "supervision={method: self_vote, options: {votes: 16}}"
    assert need(voting).cache == 4 * plain.cache
