"""What crosses between agents of a whole run, seen by a supervision class that takes notes."""

import pytest

from corl.exchange import LocalExchange, rows_digest
from corl.supervision import Peer
from e2e.cohorts import RECIPE, THIRD, metrics, train

NAMES = ("qwen3", "gpt_neox", "llama")
TINY = ("steps=1", "batch.prompts=4", "batch.completions=2", "prompts.limit=32")


class Witness(Peer):
    """Peer supervision that remembers what it was handed, in the order of the agents."""

    seen = []

    def reward(self, evidence, ballots):
        rewards = super().reward(evidence, ballots)
        self.seen.append((evidence, [list(votes) for votes in ballots], rewards))
        return rewards


@pytest.fixture
def witness():
    Witness.seen = []
    return f"supervision={{method: {__name__}.Witness}}"


def own_votes():
    return [evidence.own_votes for evidence, _, _ in Witness.seen]


def test_each_agent_is_handed_the_vote_of_the_agent_before_and_no_other(tmp_path, witness):
    train(tmp_path / "run", *TINY, THIRD, witness)
    votes = own_votes()
    assert len({tuple(vote) for vote in votes}) == 3
    assert [ballots for _, ballots, _ in Witness.seen] == [[votes[2]], [votes[0]], [votes[1]]]


def test_the_ring_of_the_recipe_wins_over_the_order_of_its_agents(tmp_path, witness):
    train(tmp_path / "run", *TINY, THIRD, witness, "supervision.ring=[llama,gpt_neox,qwen3]")
    votes = own_votes()
    assert [ballots for _, ballots, _ in Witness.seen] == [[votes[1]], [votes[2]], [votes[0]]]


def test_a_label_free_method_is_handed_neither_labels_nor_statistics(tmp_path, witness):
    train(tmp_path / "run", *TINY, witness)
    for evidence, _, _ in Witness.seen:
        assert evidence.labels is None
        assert len(evidence.entropy) == len(evidence.self_certainty) == 0


def test_a_prompt_without_a_label_reaches_the_learner_as_such(tmp_path, witness):
    train(tmp_path / "run", *TINY, witness)
    for record, (_, _, rewards) in zip(metrics(tmp_path / "run"), Witness.seen, strict=True):
        assert record["groups_unlabelled"] == rewards.labelled.count(False)
    assert any(False in rewards.labelled for _, _, rewards in Witness.seen)


@pytest.fixture
def ballots(monkeypatch):
    """Every ballot that crosses."""
    crossed = []
    swap = LocalExchange.swap

    def noted(self, ballots, *, graders):
        crossed.extend(ballots)
        return swap(self, ballots, graders=graders)

    monkeypatch.setattr(LocalExchange, "swap", noted)
    return crossed


def test_a_ballot_says_for_which_step_and_rows_it_is(tmp_path, ballots, monkeypatch):
    monkeypatch.setattr("corl.agent.POLICY_VERSION", "next")
    train(tmp_path / "run", *TINY, "steps=2")
    assert [(ballot.step, ballot.agent) for ballot in ballots] == [
        (step, name) for step in (1, 2) for name in NAMES[:2]
    ]
    assert {ballot.answer_policy for ballot in ballots} == {"next"}
    # The same rows for both agents of a step, others in the next.
    assert ballots[0].digest == ballots[1].digest != ballots[2].digest == ballots[3].digest


def test_agents_that_read_rewrites_agree_on_the_rows(tmp_path, ballots):
    """Wordings differ, ids do not: the run goes on, and each agent reads its own file."""
    rewrites = RECIPE.parents[1] / "src/corl/quickstart/prompts/train_reordered.jsonl"
    train(
        tmp_path / "run",
        *TINY,
        "rollout.save_every=1",
        f"agents.1.prompts={{file: {rewrites}, limit: 32}}",
    )
    pages = [
        (tmp_path / "run" / "agents" / name / "pages" / "step-000001.md").read_text()
        for name in NAMES[:2]
    ]
    ids, wordings = (
        [[line for line in page.splitlines() if wanted(line)] for page in pages]
        for wanted in (lambda line: line.startswith("## "), lambda line: line.endswith("="))
    )
    assert ids[0] == ids[1]
    assert wordings[0] != wordings[1]
    assert ballots[0].digest == ballots[1].digest != rows_digest([])
