"""The two-answer theory: exact votes, GRPO's own update, basins and the separatrix."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from corl.answers import Answer, majority
from corl.diversity import dynamics
from corl.diversity.dynamics import (
    fixed_grader,
    learning_factor,
    own_drift,
    peer_drift,
    ring,
    self_reward,
    separatrix,
    vote_chances,
    vote_direction,
)
from corl.errors import RecipeError
from corl.grpo.advantages import group_advantages

RIGHT, WRONG = "right", "wrong"


def outcomes(p, k):
    """All 2^K groups of an agent, and how probable each is."""
    for group in product((RIGHT, WRONG), repeat=k):
        yield group, p ** group.count(RIGHT) * (1 - p) ** group.count(WRONG)


def vote_of(group):
    won = majority([Answer(text=one, key=one) for one in group])
    return None if won is None else won.answer.key


def step(group, vote, p):
    """dp/dt of one group: the gradient of GRPO's objective on a softmax over two logits."""
    if vote is None:
        return 0.0
    logits = torch.tensor([np.log(p), np.log(1 - p)], dtype=torch.float64, requires_grad=True)
    rewards = torch.tensor([[float(one == vote) for one in group]], dtype=torch.float64)
    advantages = group_advantages(rewards)[0]
    chosen = torch.tensor([0 if one == RIGHT else 1 for one in group])
    (advantages * torch.log_softmax(logits, 0)[chosen]).mean().backward()
    moved = logits.grad
    return float(p * (1 - p) * (moved[0] - moved[1]))


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize(("p_a", "p_b"), [(0.5, 0.5), (0.2, 0.9), (0.85, 0.35)])
def test_the_peer_drift_is_the_expected_policy_gradient(k, p_a, p_b):
    expected = sum(
        chance_a * chance_b * step(group_a, vote_of(group_b), p_a)
        for group_a, chance_a in outcomes(p_a, k)
        for group_b, chance_b in outcomes(p_b, k)
    )
    assert float(peer_drift(p_a, p_b, k)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("k", [2, 3, 5, 6])
@pytest.mark.parametrize("p", [0.15, 0.5, 0.7])
def test_self_reward_is_graded_by_the_same_samples(k, p):
    expected = sum(chance * step(group, vote_of(group), p) for group, chance in outcomes(p, k))
    assert float(own_drift(p, k)) == pytest.approx(expected, abs=1e-9)


def test_votes_of_three_and_four_by_hand():
    three, four = vote_chances(0.6, 3), vote_chances(0.5, 4)
    assert float(three.right) == pytest.approx(0.6**3 + 3 * 0.6**2 * 0.4)
    assert float(three.tied) == 0
    assert (float(four.right), float(four.wrong), float(four.tied)) == pytest.approx(
        (5 / 16, 5 / 16, 6 / 16)
    )
    assert float(vote_direction(0.5, 7)) == pytest.approx(0)


@given(p=st.floats(0, 1), k=st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_symmetries(p, k):
    chances = vote_chances(p, k)
    assert float(chances.right + chances.wrong + chances.tied) == pytest.approx(1)
    assert float(vote_direction(1 - p, k)) == pytest.approx(-float(vote_direction(p, k)), abs=1e-9)
    assert float(learning_factor(p, k)) == pytest.approx(float(learning_factor(1 - p, k)), abs=1e-9)
    assert float(learning_factor(p, k)) >= 0


def test_one_completion_teaches_nothing():
    assert float(learning_factor(0.5, 1)) == 0


@pytest.mark.parametrize("k", [7, 8, 12])
def test_the_worked_example_ends_at_a_half_alone_and_at_one_together(k):
    start = np.array([[0.9, 0.2], [0.2, 0.9]])  # [agent, half of the prompts]
    alone, together = self_reward(start, k).end, ring(start, k).end
    assert alone.mean() == pytest.approx(0.5, abs=1e-3)
    assert together.mean() == pytest.approx(1.0, abs=1e-3)


def test_the_corners_that_agree_are_stable_and_the_others_are_not():
    near = 0.03
    corner = ring(np.array([[1 - near, near, 1 - near], [1 - near, near, near]]), 8)
    assert corner.end[:, 0] == pytest.approx(1, abs=1e-3)
    assert corner.end[:, 1] == pytest.approx(0, abs=1e-3)
    assert np.abs(corner.end[:, 2] - [1, 0]).max() > 0.3  # (1, 0) repels, along the line
    for p in (0.0, 1.0):
        assert (ring(np.full((2, 1), p), 8).end == p).all()


@pytest.mark.parametrize("k", [3, 8])
def test_the_separatrix_within_one_grid_step(k):
    grid = np.linspace(0.04, 0.96, 24)
    first, second = np.meshgrid(grid, grid, indexing="ij")
    end = ring(np.stack([first, second]), k).end
    spacing = grid[1] - grid[0]
    beyond = second - separatrix(first)
    above, below = beyond > 0.99 * spacing, beyond < -0.99 * spacing
    assert above.sum() == below.sum() > 200
    assert (end[:, above] > 0.99).all()
    assert (end[:, below] < 0.01).all()


def test_a_ring_passes_votes_on_in_one_direction():
    # Agent 1 is graded by agent 0, agent 2 by agent 1, agent 0 by agent 2.
    start = np.array([[0.9], [0.5], [0.1]])
    first = ring(start, 9, duration=0.05)
    moves = first.end - start
    assert moves[1] > 0 and moves[0] < 0
    assert abs(float(moves[2, 0])) < abs(float(moves[1, 0])) / 20  # its grader is undecided
    assert ring(np.array([[0.9], [0.8], [0.2]]), 9).end == pytest.approx(1, abs=1e-3)


def test_a_fixed_grader_takes_its_pupil_to_its_own_majority():
    end = fixed_grader(np.array([0.1, 0.9]), np.array([0.6, 0.4]), 8).end
    assert end == pytest.approx([1, 0], abs=1e-3)


def test_a_path_starts_at_its_start_and_is_a_solution():
    path = ring(np.array([[0.7], [0.4]]), 8, duration=20)
    assert path.shares[0, :, 0].tolist() == [0.7, 0.4]
    assert path.times[-1] == pytest.approx(20)
    middle = len(path.times) // 2
    slope = (path.shares[middle + 1] - path.shares[middle - 1]) / (
        path.times[middle + 1] - path.times[middle - 1]
    )
    p_a, p_b = path.shares[middle, :, 0]
    assert slope[:, 0] == pytest.approx(
        [float(peer_drift(p_a, p_b, 8)), float(peer_drift(p_b, p_a, 8))], rel=0.02
    )


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan")])
def test_what_is_no_probability_is_refused(bad):
    with pytest.raises(RecipeError, match="between 0 and 1"):
        ring([0.5, bad], 8)


def test_other_refusals():
    with pytest.raises(RecipeError, match="two agents"):
        ring([0.5], 8)
    with pytest.raises(RecipeError, match=f"1 to {dynamics.MAX_COMPLETIONS}"):
        vote_chances(0.5, 0)
