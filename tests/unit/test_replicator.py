"""The many-answer flow: exact pluralities, GRPO's update, and its two-answer limit."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from corl.answers import Answer, majority
from corl.diversity.dynamics import peer_drift, ring
from corl.diversity.replicator import drift_of, follow, logit_drift, plurality_chances
from corl.grpo.advantages import group_advantages


def vote_of(group, rest):
    won = majority([None if one == rest else Answer(text=str(one), key=str(one)) for one in group])
    return None if won is None else int(won.answer.key)


def plurality_by_enumeration(shares, k):
    rest = len(shares) - 1
    chances = np.zeros(rest)
    for group in product(range(rest + 1), repeat=k):
        vote = vote_of(group, rest)
        if vote is not None:
            chances[vote] += np.prod(shares[list(group)])
    return chances


@given(
    raw=st.lists(st.floats(0, 1), min_size=3, max_size=4).filter(lambda raw: sum(raw) > 0.1),
    k=st.integers(1, 5),
)
@settings(max_examples=25, deadline=None)
def test_pluralities_equal_enumeration(raw, k):
    shares = np.array(raw) / sum(raw)
    found = plurality_chances(shares[None], k)[0]
    assert found == pytest.approx(plurality_by_enumeration(shares, k), abs=1e-12)


def test_the_drift_is_the_expected_policy_gradient():
    pupil, teacher, k = np.array([0.5, 0.2, 0.2, 0.1]), np.array([0.2, 0.5, 0.2, 0.1]), 4
    rest = 3
    votes = plurality_by_enumeration(teacher, k)
    expected = np.zeros(4)
    for group in product(range(4), repeat=k):
        for vote in range(rest):
            logits = torch.tensor(np.log(pupil), requires_grad=True)
            rewards = torch.tensor([[float(one == vote) for one in group]], dtype=torch.float64)
            advantages = group_advantages(rewards)[0]
            (advantages * torch.log_softmax(logits, 0)[list(group)]).mean().backward()
            expected += np.prod(pupil[list(group)]) * votes[vote] * logits.grad.numpy()
    found = logit_drift(pupil[None], plurality_chances(teacher[None], k), k)[0]
    assert found == pytest.approx(expected, abs=1e-9)


def two(p):
    return np.array([[p, 1 - p, 0.0]])


@pytest.mark.parametrize("k", [5, 8])
def test_two_answers_are_the_two_answer_theory(k):
    a, b = 0.3, 0.8
    drift = drift_of(np.stack([two(a), two(b)]), [1, 0], k)[0, 0]
    x = two(a)[0]
    moved = x * (drift - x @ drift)
    assert moved[0] == pytest.approx(float(peer_drift(a, b, k)), abs=1e-12)
    for pair in ((0.3, 0.8), (0.3, 0.6), (0.9, 0.2)):
        ends = follow(np.stack([two(p) for p in pair]), [1, 0], k)[:, 0, 0]
        assert ends == pytest.approx(ring(np.array(pair), k).end, abs=5e-3)


def test_a_right_answer_below_a_half_climbs_where_it_leads():
    start = np.array([[[0.4, 0.2, 0.2, 0.2, 0.0]], [[0.25, 0.45, 0.15, 0.15, 0.0]]])
    ends = follow(start, [0, 1], 8)
    assert ends[0, 0, 0] > 0.99  # 40 % against three of 20 %
    assert ends[1, 0, 1] > 0.99  # here a wrong answer leads


def test_peers_with_other_errors_mend_each_other_and_with_one_error_do_not():
    differ = np.array([[[0.4, 0.6, 0.0, 0.0]], [[0.4, 0.0, 0.6, 0.0]]]) * 0.97 + 0.03 / 4
    shared = np.array([[[0.4, 0.6, 0.0, 0.0]], [[0.4, 0.6, 0.0, 0.0]]]) * 0.97 + 0.03 / 4
    assert (follow(differ, [1, 0], 8)[:, 0, 0] > 0.99).all()
    assert (follow(shared, [1, 0], 8)[:, 0, 0] < 0.01).all()


def test_rest_is_never_a_target():
    start = np.array([[[0.1, 0.05, 0.85]]])
    end = follow(start, [0], 8)[0, 0]
    assert end[0] > 0.99
    assert plurality_chances(np.array([[0.0, 0.0, 1.0]]), 8).sum() == 0
    silent = np.array([[[0.0, 0.0, 1.0]]])
    assert (follow(silent, [0], 8) == silent).all()


def test_problems_do_not_touch_each_other():
    rng = np.random.default_rng(0)
    start = rng.dirichlet(np.ones(5), size=(2, 6))
    together = follow(start, [1, 0], 8)
    apart = np.concatenate([follow(start[:, [p]], [1, 0], 8) for p in range(6)], axis=1)
    assert together == pytest.approx(apart, abs=1e-12)
    assert together.sum(-1) == pytest.approx(1)


def test_follow_leaves_its_input_alone():
    start = np.array([[[0.6, 0.3, 0.1]], [[0.5, 0.3, 0.2]]])
    kept = start.copy()
    follow(start, [1, 0], 8)
    assert (start == kept).all()
