"""Completions of one prompt forwarded together: the prompt is computed once and not K times.

All tokens of a micro-batch stand in one line, each distinct one once and none of them padding:

    prompt | completion 1 | completion 2 | ... | next prompt | ...

Every layer that works token by token, nearly all of a transformer's arithmetic, runs on that line.
Attention alone needs rows: there queries, keys and values are laid out as the padded rows they
would have been (`UnpackRows`), and what comes out goes back into line (`PackRows`). So hidden
states and gradients are those of separate rows. The last token of a completion is left out:
nothing is predicted from it.

Shapes: N tokens in line, R rows, S positions of a row, W numbers of a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Where the tokens of a line stand in rows, and back."""

    num_rows: int
    width: int
    """S, the longest row."""
    token_of: Tensor
    """int64 [R * S]: the token at each place; padding, which stands last, repeats token 0."""
    place_of: Tensor
    """int64 [N]: a place of each token; a prompt's in the first of its rows."""
    shared: Tensor
    """int64 [M]: tokens with several places."""
    copies_mk: Tensor
    """int64 [M, K - 1]: their other places, filled up with R * S."""

    def to(self, device: torch.device) -> RowLayout:
        tensors = (self.token_of, self.place_of, self.shared, self.copies_mk)
        return RowLayout(self.num_rows, self.width, *(each.to(device) for each in tensors))


@dataclass(frozen=True, slots=True)
class Line:
    """A micro-batch as the model reads it."""

    ids_1n: Tensor
    positions_1n: Tensor
    """A completion goes on where its prompt ends."""
    predictors: Tensor
    """int64: the token in line from which each completion token is predicted, rows in order."""
    layout: RowLayout


def line_up(
    prompt_ids: Sequence[Sequence[int]], token_ids: Sequence[Sequence[int]], sizes: Sequence[int]
) -> Line:
    """Put rows in line; sizes: of the runs of consecutive rows that have one prompt.

    prompt_ids, token_ids: of every row, as many as the sizes add up to; no prompt is empty.
    """
    ids: list[int] = []
    positions: list[int] = []
    predictors: list[int] = []
    rows: list[list[int]] = []
    first = 0
    for size in sizes:
        prompt = prompt_ids[first]
        start = len(ids)
        shared = list(range(start, start + len(prompt)))
        ids += prompt
        positions += range(len(prompt))
        for tokens in token_ids[first : first + size]:
            own = list(range(len(ids), len(ids) + len(tokens) - 1))
            rows.append(shared + own)
            predictors += rows[-1][len(prompt) - 1 :][: len(tokens)]
            ids += tokens[:-1]
            positions += range(len(prompt), len(prompt) + len(own))
        first += size
    return Line(
        ids_1n=torch.tensor([ids]),
        positions_1n=torch.tensor([positions]),
        predictors=torch.tensor(predictors, dtype=torch.long),
        layout=_layout(rows, len(ids)),
    )


def _layout(rows: Sequence[Sequence[int]], num_tokens: int) -> RowLayout:
    width = max(len(row) for row in rows)
    token_of = np.zeros((len(rows), width), dtype=np.int64)
    is_real = np.zeros((len(rows), width), dtype=bool)
    for number, row in enumerate(rows):
        token_of[number, : len(row)] = row
        is_real[number, : len(row)] = True
    # Places sorted by their token, a token's own in the order of rows.
    places = np.flatnonzero(is_real)
    places = places[np.argsort(token_of.flat[places], kind="stable")]
    counts = np.bincount(token_of.flat[places], minlength=num_tokens)
    starts = np.cumsum(counts) - counts
    shared = np.flatnonzero(counts > 1)
    more = np.arange(1, counts.max())
    at = starts[shared, None] + more
    copies = np.where(
        more < counts[shared, None], places[np.minimum(at, len(places) - 1)], token_of.size
    )
    return RowLayout(
        num_rows=len(rows),
        width=width,
        token_of=torch.from_numpy(token_of.ravel()),
        place_of=torch.from_numpy(places[starts]),
        shared=torch.from_numpy(shared),
        copies_mk=torch.from_numpy(copies),
    )


class UnpackRows(torch.autograd.Function):
    """Tokens in line [N, W] to rows [R * S, W]; a shared token's gradient sums over its rows."""

    @staticmethod
    def forward(ctx: Any, line_nw: Tensor, layout: RowLayout) -> Tensor:
        ctx.layout = layout
        return line_nw.index_select(0, layout.token_of)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_pw: Tensor) -> tuple[Tensor, None]:
        layout: RowLayout = ctx.layout
        grad_nw = grad_pw.index_select(0, layout.place_of)
        if len(layout.shared):
            padded_pw = torch.cat([grad_pw, grad_pw.new_zeros(1, grad_pw.shape[1])])
            # Place by place and in float32: bfloat16 would lose what many rows add up to.
            sums_mw = grad_nw.index_select(0, layout.shared).float()
            for copies_m in layout.copies_mk.unbind(dim=1):
                sums_mw += padded_pw.index_select(0, copies_m)
            grad_nw.index_copy_(0, layout.shared, sums_mw.to(grad_nw.dtype))
        return grad_nw, None


class PackRows(torch.autograd.Function):
    """Rows [R * S, W] back into line [N, W]; what stands at other places is dropped."""

    @staticmethod
    def forward(ctx: Any, rows_pw: Tensor, layout: RowLayout) -> Tensor:
        ctx.layout = layout
        return rows_pw.index_select(0, layout.place_of)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_nw: Tensor) -> tuple[Tensor, None]:
        layout: RowLayout = ctx.layout
        grad_pw = grad_nw.new_zeros(layout.num_rows * layout.width, grad_nw.shape[1])
        grad_pw.index_copy_(0, layout.place_of, grad_nw)
        return grad_pw, None
