"""One token for every row, from logits and one uniform a row.

The log-probability returned is that of the whole temperature-scaled vocabulary, even where
top-p, top-k or banned ids limit the draw: it is the number that the learner computes. Drawing
uses the inverse of the cumulative distribution, summed in float64: in float32 the running sum of
150,000 small numbers is off by more than a rare token's probability.

Shapes: R rows, V vocabulary.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from corl.errors import RecipeError

_MAX_ELEMENTS = 1 << 27
"""Rows are drawn in slices of at most this many logits: bounds each temporary to 0.5 GB."""

_BLOCK = 256
"""Columns of a block in the two-level search."""


class Sampling(Protocol):
    """What a sampler must be told; a recipe's sampling section has the same names."""

    @property
    def temperature(self) -> float: ...
    @property
    def max_tokens(self) -> int: ...
    @property
    def top_p(self) -> float: ...
    @property
    def top_k(self) -> int: ...
    @property
    def stop(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParameters:
    """Every sampling parameter, explicit: a checkpoint's own defaults are never consulted."""

    temperature: float = 1.0
    """Divides the logits; 0 takes the most probable token (log-probabilities then at 1)."""
    max_tokens: int = 1024
    """Longest completion, tokens."""
    top_p: float = 1.0
    """Draw from the smallest set of tokens with at least this probability; 1 draws from all."""
    top_k: int = 0
    """Draw from this many most probable tokens; 0 draws from all."""
    stop: tuple[str, ...] = ()
    """Texts that end a completion, beside the model's stop tokens."""

    def __post_init__(self) -> None:
        check_sampling(self)


class Draw(NamedTuple):
    """What one step of sampling yields, each [R]."""

    token_ids: Tensor
    """int64."""
    logps: Tensor
    """float32, nats."""
    entropy: Tensor
    """float32, nats."""
    self_certainty: Tensor
    """float32: -log V - mean_j log p_j, nats (Intuitor, KL of the uniform distribution to p)."""


def check_sampling(sampling: Sampling) -> None:
    """Raise RecipeError where a parameter has no meaning."""
    if not (sampling.temperature >= 0.0 and math.isfinite(sampling.temperature)):
        raise RecipeError(
            f"sampling.temperature is {sampling.temperature}. Give 0 (greedy) or a positive number."
        )
    if not 0.0 < sampling.top_p <= 1.0:
        raise RecipeError(
            f"sampling.top_p is {sampling.top_p}. Give a share above 0, at most 1 (1 is off)."
        )
    if sampling.top_k < 0:
        raise RecipeError(f"sampling.top_k is {sampling.top_k}. Give a count, or 0 for off.")
    if sampling.max_tokens < 1:
        raise RecipeError(f"sampling.max_tokens is {sampling.max_tokens}. Give at least 1.")


def draw(
    logits_rv: Tensor, uniforms_r: Tensor, sampling: Sampling, banned_v: Tensor | None = None
) -> Draw:
    """Draw one token a row.

    logits_rv: [R, V] of any float dtype. uniforms_r: [R] float64 in [0, 1).
    banned_v: [V] bool, tokens never drawn, or None.
    A row whose logits hold NaN yields an arbitrary token with a NaN log-probability.
    """
    rows_at_once = max(1, _MAX_ELEMENTS // logits_rv.shape[1])
    if logits_rv.shape[0] <= rows_at_once:
        return _draw_rows(logits_rv, uniforms_r, sampling, banned_v)
    parts = [
        _draw_rows(logits, uniforms, sampling, banned_v)
        for logits, uniforms in zip(
            logits_rv.split(rows_at_once), uniforms_r.split(rows_at_once), strict=True
        )
    ]
    return Draw(*(torch.cat(column) for column in zip(*parts, strict=True)))


def _draw_rows(
    logits_rv: Tensor, uniforms_r: Tensor, sampling: Sampling, banned_v: Tensor | None
) -> Draw:
    logits_rv = logits_rv.float()
    if sampling.temperature not in (0.0, 1.0):
        logits_rv = logits_rv / sampling.temperature
    logps_rv = torch.log_softmax(logits_rv, dim=-1)
    probs_rv = logps_rv.exp()
    weights_rv = probs_rv if banned_v is None else probs_rv.masked_fill(banned_v, 0.0)
    if sampling.temperature == 0.0:
        ids_r = weights_rv.argmax(dim=-1)
    else:
        weights_rv = truncate(weights_rv, top_p=sampling.top_p, top_k=sampling.top_k)
        ids_r = inverse_cdf(weights_rv, uniforms_r)
    return Draw(
        token_ids=ids_r,
        logps=logps_rv.gather(1, ids_r[:, None])[:, 0],
        entropy=_entropy(logps_rv, probs_rv),
        self_certainty=_self_certainty(logps_rv),
    )


def truncate(weights_rv: Tensor, *, top_p: float = 1.0, top_k: int = 0) -> Tensor:
    """Zero the weights outside the k most probable tokens, then outside the top-p set.

    weights_rv: [R, V], zero or more. Top-p keeps the token that crosses the threshold, so at
    least one token always stays. Equal weights are kept in order of token id.
    """
    vocabulary = weights_rv.shape[1]
    if top_p >= 1.0 and not 0 < top_k < vocabulary:
        return weights_rv
    sorted_rv, order_rv = weights_rv.sort(dim=-1, descending=True, stable=True)
    if 0 < top_k < vocabulary:
        sorted_rv[:, top_k:] = 0.0
    if top_p < 1.0:
        cumulative_rv = sorted_rv.double().cumsum(dim=-1)
        before_rv = cumulative_rv - sorted_rv
        sorted_rv = sorted_rv.masked_fill(before_rv >= top_p * cumulative_rv[:, -1:], 0.0)
    return torch.zeros_like(weights_rv).scatter_(1, order_rv, sorted_rv)


def inverse_cdf(weights_rv: Tensor, uniforms_r: Tensor) -> Tensor:
    """Return [R] indices i with cdf(i-1) <= u < cdf(i); an index of weight zero never comes out.

    weights_rv: [R, V], zero or more, not normalised. uniforms_r: [R] in [0, 1).
    A large vocabulary is searched in two levels (blocks, then one block), which spares a float64
    running sum over all of it.
    """
    uniforms_r = uniforms_r.double()
    if weights_rv.shape[1] <= 16 * _BLOCK:
        ids_r, _ = _search(weights_rv, uniforms_r)
    else:
        blocks_r, shares_r = _search(_block_sums(weights_rv), uniforms_r)
        columns_rb = blocks_r[:, None] * _BLOCK + torch.arange(_BLOCK, device=blocks_r.device)
        last = weights_rv.shape[1] - 1
        inner_rb = weights_rv.gather(1, columns_rb.clamp(max=last))
        inner_r, _ = _search(inner_rb.masked_fill(columns_rb > last, 0.0), shares_r)
        ids_r = (blocks_r * _BLOCK + inner_r).clamp(max=last)
    # u * total may round up to the total, and a parallel scan may round a flat stretch unevenly:
    # about once in 1e16 draws the index has no weight. The most probable token stands in.
    drawn_r = weights_rv.gather(1, ids_r[:, None])[:, 0]
    return torch.where(drawn_r > 0, ids_r, weights_rv.argmax(dim=-1))


def _search(weights_rv: Tensor, uniforms_r: Tensor) -> tuple[Tensor, Tensor]:
    """Return ([R] index, [R] how far into that index's own weight the uniform lies, 0 to 1)."""
    cdf_rv = weights_rv.cumsum(dim=-1, dtype=torch.float64)
    targets_r1 = uniforms_r[:, None] * cdf_rv[:, -1:]
    # right=True: the first index whose cdf exceeds the target, so a flat stretch is passed over.
    ids_r1 = torch.searchsorted(cdf_rv, targets_r1, right=True).clamp_(max=cdf_rv.shape[1] - 1)
    upper_r1 = cdf_rv.gather(1, ids_r1)
    lower_r1 = torch.where(ids_r1 > 0, cdf_rv.gather(1, (ids_r1 - 1).clamp(min=0)), 0.0)
    shares_r1 = ((targets_r1 - lower_r1) / (upper_r1 - lower_r1)).clamp(0.0, 1.0)
    return ids_r1[:, 0], shares_r1[:, 0]


def _block_sums(weights_rv: Tensor) -> Tensor:
    """Sums of blocks of columns, [R, B]; the last block may be shorter."""
    vocabulary = weights_rv.shape[1]
    whole = vocabulary - vocabulary % _BLOCK
    sums_rb = weights_rv[:, :whole].unflatten(1, (-1, _BLOCK)).sum(dim=-1)
    if whole == vocabulary:
        return sums_rb
    return torch.cat([sums_rb, weights_rv[:, whole:].sum(dim=-1, keepdim=True)], dim=1)


def _entropy(logps_rv: Tensor, probs_rv: Tensor) -> Tensor:
    """Entropy in nats; a token of probability zero adds zero, not 0 * -inf."""
    floor = torch.finfo(logps_rv.dtype).min
    return -(probs_rv * logps_rv.clamp(min=floor)).sum(dim=-1)


def _self_certainty(logps_rv: Tensor) -> Tensor:
    """-log V - mean_j log p_j over the V tokens that are possible at all."""
    sums_r = logps_rv.sum(dim=-1)
    # Looking at values is free on a CPU; a GPU would be waited for.
    if logps_rv.device.type == "cpu" and bool(sums_r.isfinite().all()):
        return -math.log(logps_rv.shape[1]) - sums_r / logps_rv.shape[1]
    possible_rv = logps_rv != -math.inf
    counts_r = possible_rv.sum(dim=-1)
    sums_r = logps_rv.masked_fill(~possible_rv, 0.0).sum(dim=-1)
    return -counts_r.log() - sums_r / counts_r
