"""The sampler draws from the distribution it reports, and never what has no probability."""

import math

import numpy as np
import pytest
import torch

from corl.errors import RecipeError
from corl.rollout import sampling
from corl.rollout.noise import Noise
from corl.rollout.sampling import SamplingParameters, draw, inverse_cdf, truncate

PLAIN = SamplingParameters()
ALMOST_ONE = 1.0 - 2.0**-53


def uniforms(count: int) -> torch.Tensor:
    return torch.from_numpy(Noise(0, "sampler").uniforms(0, 0, 0, count))


def chi_square(ids: torch.Tensor, probabilities: torch.Tensor) -> float:
    expected = probabilities.double() * len(ids)
    counts = torch.bincount(ids, minlength=len(probabilities)).double()
    return float(((counts - expected) ** 2 / expected)[expected > 0].sum())


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_draws_follow_the_tempered_distribution(temperature):
    logits = torch.tensor([0.0, 1.0, -1.0, 2.0, 0.5, -0.5])
    drawn = draw(
        logits.expand(20_000, 6),
        uniforms(20_000),
        SamplingParameters(temperature=temperature),
    )
    # Five degrees of freedom: 20.5 is the 99.9th percentile.
    assert chi_square(drawn.token_ids, torch.softmax(logits / temperature, 0)) < 20.5


def test_draws_follow_the_distribution_over_a_large_vocabulary():
    """Two-level search: tokens are pooled into ten classes by index modulo ten."""
    torch.manual_seed(0)
    logits = 2.0 * torch.randn(10_007)
    ids = draw(logits.expand(4000, -1), uniforms(4000), PLAIN).token_ids
    pooled = torch.zeros(10).index_add(0, torch.arange(10_007) % 10, torch.softmax(logits, 0))
    # Nine degrees of freedom: 27.9 is the 99.9th percentile.
    assert chi_square(ids % 10, pooled) < 27.9


def test_the_two_level_search_equals_the_plain_one(monkeypatch):
    torch.manual_seed(1)
    weights = torch.softmax(3.0 * torch.randn(64, 1000), dim=-1)
    weights[:, 300:700] = 0.0
    plain = inverse_cdf(weights, uniforms(64))
    monkeypatch.setattr(sampling, "_BLOCK", 16)
    assert torch.equal(inverse_cdf(weights, uniforms(64)), plain)


def test_the_inverse_cdf_by_hand():
    weights = torch.tensor([[0.25, 0.0, 0.5, 0.25]]).expand(6, 4)
    drawn = inverse_cdf(weights, torch.tensor([0.0, 0.2499, 0.25, 0.7499, 0.75, ALMOST_ONE]))
    assert drawn.tolist() == [0, 0, 2, 2, 3, 3]


@pytest.mark.parametrize("vocabulary", [7, 5000, 151_936])
def test_a_token_without_probability_is_never_drawn(vocabulary):
    logits = torch.full((3, vocabulary), -math.inf)
    middle = vocabulary // 2
    logits[:, middle : middle + 2] = 0.0
    drawn = draw(logits, torch.tensor([0.0, 0.5, ALMOST_ONE], dtype=torch.float64), PLAIN)
    assert drawn.token_ids.tolist() == [middle, middle + 1, middle + 1]
    assert drawn.logps.tolist() == pytest.approx([-math.log(2)] * 3)
    assert drawn.entropy.tolist() == pytest.approx([math.log(2)] * 3)
    assert drawn.self_certainty.tolist() == pytest.approx([0.0] * 3, abs=1e-6)


def test_the_largest_uniform_stays_inside_150_thousand_tokens():
    torch.manual_seed(0)
    logits = torch.randn(4, 151_936)
    logits[:, -300:] = -math.inf
    ids = draw(logits, torch.full((4,), ALMOST_ONE, dtype=torch.float64), PLAIN).token_ids
    assert ids.tolist() == [151_635] * 4


def test_figures_of_a_token_by_hand():
    probabilities = torch.tensor([[0.5, 0.25, 0.25]])
    drawn = draw(probabilities.log(), torch.tensor([0.6]), PLAIN)
    assert drawn.token_ids.item() == 1
    assert drawn.logps.item() == pytest.approx(math.log(0.25))
    assert drawn.entropy.item() == pytest.approx(1.5 * math.log(2))
    # -log 3 - (log 1/2 + 2 log 1/4) / 3 = -log 3 + (5/3) log 2
    assert drawn.self_certainty.item() == pytest.approx(-math.log(3) + 5 / 3 * math.log(2))


def test_figures_are_float32_whatever_the_model_computes_in():
    logits = torch.randn(2, 9).bfloat16()
    drawn = draw(logits, torch.tensor([0.1, 0.9]), PLAIN)
    assert {drawn.logps.dtype, drawn.entropy.dtype, drawn.self_certainty.dtype} == {torch.float32}
    expected = torch.log_softmax(logits.float(), -1).gather(1, drawn.token_ids[:, None])[:, 0]
    assert torch.equal(drawn.logps, expected)


def test_greedy_takes_the_most_probable_token_at_temperature_one():
    logits = torch.tensor([[0.0, 3.0, 1.0]])
    drawn = draw(logits, torch.tensor([0.999]), SamplingParameters(temperature=0.0))
    assert drawn.token_ids.item() == 1
    assert drawn.logps.item() == pytest.approx(torch.log_softmax(logits, -1)[0, 1].item())


def test_truncation_by_hand():
    weights = torch.tensor([[0.1, 0.4, 0.2, 0.3]])
    assert truncate(weights, top_k=2).tolist() == [pytest.approx([0.0, 0.4, 0.0, 0.3])]
    # 0.4 is short of 0.5; the token that crosses the threshold (0.3) stays.
    assert truncate(weights, top_p=0.5).tolist() == [pytest.approx([0.0, 0.4, 0.0, 0.3])]
    assert truncate(weights, top_p=0.01).tolist() == [pytest.approx([0.0, 0.4, 0.0, 0.0])]
    assert truncate(weights, top_p=0.9, top_k=3).tolist() == [pytest.approx([0, 0.4, 0.2, 0.3])]
    assert truncate(weights, top_k=9) is weights


def test_truncation_limits_the_draw_and_not_the_log_probability():
    probabilities = torch.tensor([0.1, 0.4, 0.2, 0.3])
    drawn = draw(probabilities.log().expand(5000, 4), uniforms(5000), SamplingParameters(top_k=2))
    assert set(drawn.token_ids.tolist()) == {1, 3}
    assert (drawn.token_ids == 1).double().mean().item() == pytest.approx(4 / 7, abs=0.03)
    assert drawn.logps.exp().tolist() == pytest.approx(probabilities[drawn.token_ids].tolist())


def test_banned_tokens_are_never_drawn_but_keep_their_probability():
    logits = torch.tensor([[5.0, 0.0, 0.0]]).expand(200, 3)
    banned = torch.tensor([True, False, False])
    for temperature in (0.0, 1.0):
        parameters = SamplingParameters(temperature=temperature)
        drawn = draw(logits, uniforms(200), parameters, banned)
        assert 0 not in drawn.token_ids.tolist()
        full = torch.log_softmax(logits[0], -1)[1].item()
        assert drawn.logps.tolist() == pytest.approx([full] * 200)


def test_a_row_of_nan_spoils_no_other_row():
    logits = torch.zeros(2, 4)
    logits[0, 1] = math.nan
    drawn = draw(logits, torch.tensor([0.9, 0.9]), PLAIN)
    assert math.isnan(drawn.logps[0]) and 0 <= drawn.token_ids[0] < 4
    assert drawn.token_ids[1] == 3 and drawn.logps[1].item() == pytest.approx(-math.log(4))


def test_slices_of_rows_draw_what_the_whole_draws(monkeypatch):
    torch.manual_seed(0)
    logits, noise = torch.randn(10, 50), uniforms(10)
    whole = draw(logits, noise, PLAIN)
    monkeypatch.setattr(sampling, "_MAX_ELEMENTS", 150)
    for one, other in zip(whole, draw(logits, noise, PLAIN), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("name", "value"),
    [("temperature", -1.0), ("temperature", math.nan), ("top_p", 0.0), ("top_p", 1.5),
     ("top_k", -1), ("max_tokens", 0)],
)  # fmt: skip
def test_a_parameter_without_meaning_is_refused_by_name(name, value):
    with pytest.raises(RecipeError, match=f"sampling.{name}"):
        SamplingParameters(**{name: value})


def test_a_rare_token_keeps_its_share_in_a_large_vocabulary():
    """The last token has probability 2e-6: in float32 the sum before it is off by as much."""
    vocabulary = 150_000
    logits = torch.zeros(1, vocabulary)
    logits[0, -1] = math.log(0.3)
    probability = 0.3 / (vocabulary - 1 + 0.3)
    inside = torch.tensor([1.0 - 0.9 * probability, 1.0 - 0.1 * probability], dtype=torch.float64)
    outside = torch.tensor([1.0 - 1.1 * probability], dtype=torch.float64)
    ids = [inverse_cdf(torch.softmax(logits, -1), u[None]).item() for u in (*inside, *outside)]
    assert ids == [vocabulary - 1, vocabulary - 1, vocabulary - 2]
    assert np.isclose(probability, 2e-6)
