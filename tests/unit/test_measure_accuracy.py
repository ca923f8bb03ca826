"""Accuracy by hand: a sampler with a script stands in for the model."""

from types import SimpleNamespace

import pytest

from corl.data.prompts import PromptRow
from corl.evaluation.accuracy import measure_accuracy
from corl.rollout.transformers_engine import TransformersEngine
from tiny_models import tiny_tokenizer

RIGHT, WRONG = r"\boxed{4}", r"\boxed{5}"
NONE = "We give this one up, for it cannot be worked out."


@pytest.fixture
def scripted(monkeypatch):
    """Measure what a policy scores that says `greedy` at temperature 0, else `sampled`."""

    def measure(greedy, sampled, *, truncated=False, calls=None, label="4"):
        def sample(self, prompt_ids, *, completions, sampling, noise, step, places, vision):
            if calls is not None:
                calls.append((completions, sampling.temperature, sampling.max_tokens, noise, step))
            texts = [[said] for said in greedy] if sampling.temperature == 0 else sampled
            assert {len(group) for group in texts} == {completions}
            cuts = [[truncated for _ in group] for group in texts]
            return SimpleNamespace(texts=texts, truncated=cuts)

        monkeypatch.setattr(TransformersEngine, "__init__", lambda self, policy, **settings: None)
        monkeypatch.setattr(TransformersEngine, "sync", lambda self: None)
        monkeypatch.setattr(TransformersEngine, "sample", sample)
        rows = [
            PromptRow(id=str(index), text="2+2=", kind="math", label=label)
            for index in range(len(greedy))
        ]
        policy = SimpleNamespace(tokenizer=tiny_tokenizer(), processor=None)
        return measure_accuracy(policy, rows, max_tokens=9, temperature=0.7, seed=3)

    return measure


def test_every_share_is_of_the_problems(scripted):
    found = scripted(
        [RIGHT, WRONG, RIGHT, NONE],
        [[RIGHT] * 8, [WRONG] * 8, [RIGHT] + [WRONG] * 7, [RIGHT] * 5 + [WRONG] * 3],
    )
    assert found.greedy == 2 / 4
    assert found.avg_at_8 == (8 + 0 + 1 + 5) / 32
    assert found.maj_at_8 == 2 / 4
    assert found.pass_at_8 == 3 / 4


@pytest.mark.parametrize("other", ["3", "5"])
def test_a_tied_majority_is_wrong(scripted, other):
    tied = [RIGHT] * 4 + [rf"\boxed{{{other}}}"] * 4
    assert scripted([RIGHT], [tied]).maj_at_8 == 0


def test_abstentions_do_not_outvote_answers(scripted):
    assert scripted([RIGHT], [[NONE] * 6 + [RIGHT] * 2]).maj_at_8 == 1


def test_a_cut_off_completion_without_a_marker_scores_nothing(scripted):
    assert scripted(["4"], [["4"] * 8]).avg_at_8 == 1
    found = scripted(["4"], [["4"] * 8], truncated=True)
    assert (found.greedy, found.avg_at_8, found.pass_at_8) == (0, 0, 0)


def test_one_completion_is_greedy_and_eight_are_sampled(scripted):
    calls = []
    scripted([RIGHT], [[RIGHT] * 8], calls=calls)
    assert sorted(call[:3] for call in calls) == [(1, 0.0, 9), (8, 0.7, 9)]


def test_evaluation_draws_a_noise_of_its_own_from_its_seed(scripted):
    calls = []
    scripted([RIGHT], [[RIGHT] * 8], calls=calls)
    assert {noise.seed for *_, noise, _ in calls} == {3}
    assert {noise.agent for *_, noise, _ in calls} == {"evaluation"}


def test_a_data_set_asked_in_parts_gets_the_same_completions():
    from corl.evaluation.completions import Asking, complete
    from corl.policy import load_policy
    from corl.quickstart.demonstration import held_out_rows
    from corl.quickstart.settings import PACKAGE

    policy = load_policy(PACKAGE / "models" / "qwen3", dtype="float32", device="cpu")
    rows, asking = held_out_rows()[:6], Asking(max_tokens=20)
    whole = complete(policy, rows, asking, completions=3)
    assert complete(policy, rows[4:], asking, completions=3, places=[4, 5]) == whole[4:]
    assert complete(policy, rows[4:], asking, completions=3) != whole[4:]
