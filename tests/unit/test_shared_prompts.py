"""Rows of one prompt forwarded together are the rows apart."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_policies import VOCABULARY, tiny_policy

from corl.policy.scoring import CompletionScorer
from corl.policy.shared_prompts import PackRows, UnpackRows, line_up

SHARING = ["qwen3", "llama", "gpt_neox", "granite", "cohere", "gpt2"]
tokens = st.lists(st.integers(3, VOCABULARY - 1), min_size=1, max_size=5)
groups = st.lists(
    st.tuples(tokens, st.lists(tokens | st.just([]), min_size=1, max_size=4)),
    min_size=1,
    max_size=3,
)


def _flat(groups):
    prompts = [prompt for prompt, completions in groups for _ in completions]
    completions = [each for _, completions in groups for each in completions]
    return prompts, completions, [len(completions) for _, completions in groups]


def test_a_line_holds_each_token_once_and_completions_go_on_behind_their_prompt():
    line = line_up([[5, 6], [5, 6], [7]], [[10, 11, 12], [20], [30, 31]], [2, 1])
    #                             prompt  completion 1  (2: none read)  prompt  completion
    assert line.ids_1n.tolist() == [[5, 6, 10, 11, 7, 30]]
    assert line.positions_1n.tolist() == [[0, 1, 2, 3, 0, 1]]
    # 10 from 6, 11 from 10, 12 from 11; 20 from 6; 30 from 7, 31 from 30
    assert line.predictors.tolist() == [1, 2, 3, 1, 4, 5]
    rows = line.layout.token_of.view(line.layout.num_rows, line.layout.width)
    assert rows.tolist() == [[0, 1, 2, 3], [0, 1, 0, 0], [4, 5, 0, 0]]
    assert line.layout.place_of.tolist() == [0, 1, 2, 3, 8, 9]
    assert line.layout.shared.tolist() == [0, 1]
    assert line.layout.copies_mk.tolist() == [[4], [5]]


@settings(deadline=None, max_examples=60)
@given(groups)
def test_every_token_of_a_row_is_found_at_its_place(groups):
    prompts, completions, sizes = _flat(groups)
    line = line_up(prompts, completions, sizes)
    rows = line.ids_1n[0][line.layout.token_of].view(line.layout.num_rows, line.layout.width)
    for row, prompt, completion in zip(rows.tolist(), prompts, completions, strict=True):
        read = prompt + completion[:-1]
        assert row[: len(read)] == read
    distinct = sum(len(prompt) for prompt, _ in groups)
    assert line.ids_1n.shape[1] == distinct + sum(max(len(c) - 1, 0) for c in completions)
    assert torch.equal(
        line.layout.token_of[line.layout.place_of], torch.arange(line.ids_1n.shape[1])
    )
    assert len(line.predictors) == sum(map(len, completions))


@settings(deadline=None, max_examples=30)
@given(groups)
def test_unpacking_and_packing_have_the_gradients_of_indexing(groups):
    layout = line_up(*_flat(groups)).layout
    line = torch.randn(len(layout.place_of), 3, dtype=torch.float64, requires_grad=True)
    real = torch.zeros(layout.num_rows * layout.width, dtype=torch.bool)
    real[layout.place_of] = True
    real[layout.copies_mk[layout.copies_mk < len(real)]] = True
    weights = torch.randn(len(real), 3, dtype=torch.float64) * real[:, None]
    (ours,) = torch.autograd.grad((UnpackRows.apply(line, layout) * weights).sum(), line)
    (plain,) = torch.autograd.grad((line[layout.token_of] * weights).sum(), line)
    assert torch.allclose(ours, plain, atol=1e-6)  # shared tokens are summed in float32
    rows = torch.randn(len(real), 3, dtype=torch.float64, requires_grad=True)
    upstream = torch.randn(len(layout.place_of), 3, dtype=torch.float64)
    (ours,) = torch.autograd.grad((PackRows.apply(rows, layout) * upstream).sum(), rows)
    (plain,) = torch.autograd.grad((rows[layout.place_of] * upstream).sum(), rows)
    assert torch.equal(ours, plain)


@pytest.mark.parametrize("family", SHARING)
def test_scores_and_gradients_are_those_of_rows_apart(family):
    prompts, completions, sizes = _flat(
        [
            ([3, 4, 5, 6], [[7, 8, 9], [10], [], [11, 12, 13, 14, 15]]),
            ([9], [[3, 4]]),
            ([8, 7], [[6, 5, 4], [6, 5, 4]]),
        ]
    )
    results = []
    for together in (None, sizes):
        policy = tiny_policy(family)
        scorer = CompletionScorer(policy, temperature=0.8)
        assert scorer.shares_prompts
        scores = scorer(prompts, completions, together)
        (
            scores.logps_bt * torch.arange(scores.logps_bt.numel()).view_as(scores.logps_bt)
        ).sum().backward()
        grads = torch.cat([p.grad.flatten() for p in policy.model.parameters()])
        results.append((scores, grads))
    (apart, apart_grads), (shared, shared_grads) = results
    assert torch.equal(apart.mask_bt, shared.mask_bt)
    assert (apart.logps_bt - shared.logps_bt).abs().max() < 1e-5
    assert (apart_grads - shared_grads).norm() < 1e-5 * apart_grads.norm()


@pytest.mark.parametrize("family", ["gemma2", "gemma3_text"])
def test_a_model_with_windows_is_scored_row_by_row(family):
    scorer = CompletionScorer(tiny_policy(family), temperature=1.0)
    assert not scorer.shares_prompts
    rows = [[3, 4], [3, 4]], [[5, 6], [7]]
    assert torch.equal(scorer(*rows, [2]).logps_bt, scorer(*rows).logps_bt)


def test_a_model_that_attends_in_another_way_is_scored_row_by_row():
    policy = tiny_policy("qwen3")
    policy.model.set_attn_implementation("eager")
    assert not CompletionScorer(policy, temperature=1.0).shares_prompts


def test_gradient_checkpointing_changes_no_gradient_of_rows_together():
    grads = []
    for checkpointed in (False, True):
        policy = tiny_policy("llama")
        if checkpointed:
            policy.model.gradient_checkpointing_enable({"use_reentrant": False})
            policy.model.train()
        scorer = CompletionScorer(policy, temperature=1.0)
        scorer([[3, 4, 5]] * 2, [[6, 7, 8], [9, 10]], [2]).logps_bt.sum().backward()
        grads.append(torch.cat([p.grad.flatten() for p in policy.model.parameters()]))
    assert torch.allclose(*grads, atol=1e-6)
