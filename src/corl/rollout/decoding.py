"""The decode loop for one chunk of rows: prefill once, then one forward a token.

Nothing here runs Python per row and token. Each step's draws are kept as they are; lengths, stop
positions and means are worked out once, from whole tensors, when the loop is over.

Shapes: P prompts of the chunk, K completions of each, N = P * K rows (all completions of a prompt
side by side), R rows still in the batch, T steps, V vocabulary.
"""

import time
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from corl.policy.vision.inputs import VisionInputs, VisionInterface, any_vision, first_position
from corl.rollout.cache import new_cache
from corl.rollout.sampling import Draw, Sampling, draw
from corl.rollout.stop_texts import LOOK_EVERY, StopTexts

_LOOK_EVERY_ON_GPU = 8
"""Steps between two looks at how many rows have ended: on a GPU each look waits for the device."""


@dataclass(frozen=True, slots=True)
class ModelInterface:
    """A model's forward, with what it can be told."""

    model: Any
    device: torch.device
    cache_name: str
    """Name of the argument that takes the cache."""
    takes_positions: bool
    takes_keep: bool
    """Can be asked for the last position's logits alone."""
    stop_ids: Tensor
    """[S] int64."""
    banned_v: Tensor | None
    """[V] bool: ids that are never drawn, or None."""
    context_length: int
    finished_share: float
    """Ended rows leave the batch once they are this share of it."""
    vision: VisionInterface | None = None
    """How it takes images, where it does."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Prompts that are decoded together, each for the same completions."""

    prompts: list[int]
    """Index of each of the P prompts in the whole call."""
    ids: list[list[int]]
    """P lists of tokens."""
    completions: range
    """Completion indices of every prompt."""
    vision: list[VisionInputs | None] | None = None
    """The images of each of the P prompts."""

    @property
    def rows(self) -> list[tuple[int, int]]:
        """(prompt, completion) of each of the N rows."""
        return [(prompt, k) for prompt in self.prompts for k in self.completions]


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a chunk yielded; columns past a row's length are to be ignored. All on the CPU."""

    token_ids_nt: Tensor
    logps_nt: Tensor
    entropy_nt: Tensor
    self_certainty_nt: Tensor
    lengths_n: Tensor
    """Tokens up to and with the stop token, or up to the limit."""
    ended_n: Tensor
    """bool: a stop token was drawn."""


@dataclass(slots=True)
class Clock:
    """Seconds by phase; a GPU is waited for at each reading."""

    device: torch.device
    prefill_s: float = 0.0
    decode_s: float = 0.0

    def now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()


@dataclass(slots=True)
class _Batch:
    """The rows still being decoded."""

    rows_r: Tensor
    """Row of the chunk, int64."""
    uniforms_tr: Tensor
    limits_r: Tensor
    """Most tokens a row may draw."""
    done_r: Tensor
    mask_rw: Tensor | None
    """[R, prompt width + T] of what may be seen, or None where nothing is padded."""
    positions_r1: Tensor | None
    """Position of the next token, or None where nothing is padded."""
    recent_r: list[Tensor] = field(default_factory=list)
    """The last draws, for stop texts; empty where there are none."""

    def keep(self, kept: Tensor) -> None:
        self.rows_r = self.rows_r[kept]
        self.uniforms_tr = self.uniforms_tr[:, kept]
        self.limits_r = self.limits_r[kept]
        self.done_r = self.done_r[kept]
        if self.mask_rw is not None:
            self.mask_rw = self.mask_rw[kept]
        if self.positions_r1 is not None:
            self.positions_r1 = self.positions_r1[kept]
        self.recent_r = [ids_r[kept] for ids_r in self.recent_r]


@dataclass(slots=True)
class _Segment:
    """Consecutive steps over one set of rows."""

    rows_r: Tensor
    draws: list[Draw] = field(default_factory=list)


class Decoder:
    """Decodes one chunk."""

    def __init__(self, interface: ModelInterface, chunk: Chunk, sampling: Sampling) -> None:
        self._interface = interface
        self._chunk = chunk
        self._sampling = sampling
        self._width = max(len(ids) for ids in chunk.ids)
        self._is_padded = any(len(ids) != self._width for ids in chunk.ids)
        room = [interface.context_length - len(ids) for ids in chunk.ids]
        self._limits = [min(sampling.max_tokens, tokens) for tokens in room]
        self._cache = new_cache(interface.model.config, self._width + max(self._limits))
        self._limits_differ = len(set(self._limits)) > 1
        self._has_images = interface.vision is not None and any_vision(chunk.vision)

    @property
    def max_steps(self) -> int:
        """Most tokens that any row may draw."""
        return max(self._limits)

    def run(self, uniforms_nt: Tensor, clock: Clock, stop_texts: StopTexts | None) -> Decoded:
        """Draw until every row has ended.

        uniforms_nt: [N, T] float64 on the CPU. stop_texts: ends rows early where one shows; the
        caller cuts such completions.
        """
        start = clock.now()
        logits_rv, mask_pw = self._prefill()
        batch = self._expand(mask_pw, uniforms_nt)
        prefilled = clock.now()
        clock.prefill_s += prefilled - start
        segments = self._loop(logits_rv, batch, stop_texts)
        decoded = self._gather(segments, uniforms_nt.shape[0])
        clock.decode_s += clock.now() - prefilled
        return decoded

    def _prefill(self) -> tuple[Tensor, Tensor | None]:
        """Read every prompt once. Returns logits repeated to [N, V], and the prompts' mask."""
        device = self._interface.device
        padded = [[0] * (self._width - len(ids)) + ids for ids in self._chunk.ids]
        ids_pw = torch.tensor(padded, device=device)
        mask_pw = positions_pw = None
        if self._is_padded:
            lengths_p1 = torch.tensor([[len(ids)] for ids in self._chunk.ids], device=device)
            columns_w = torch.arange(self._width, device=device)
            positions_pw = columns_w - (self._width - lengths_p1)
            mask_pw = positions_pw >= 0
            positions_pw = positions_pw.clamp(min=0)
        extra: dict[str, Tensor] = {}
        if self._has_images:
            extra, positions_pw = self._images(positions_pw)
        logits_pv = self._forward(ids_pw, mask_pw, positions_pw, extra)
        repeats = len(self._chunk.completions)
        if repeats > 1:
            self._cache.batch_repeat_interleave(repeats)
            logits_pv = logits_pv.repeat_interleave(repeats, dim=0)
        return logits_pv, mask_pw

    def _images(self, positions_pw: Tensor | None) -> tuple[dict[str, Tensor], Tensor | None]:
        """The images as arguments of the first forward, and the positions they ask for."""
        assert self._interface.vision is not None and self._chunk.vision is not None
        batch = self._interface.vision.batch(
            self._chunk.vision,
            lengths=[len(ids) for ids in self._chunk.ids],
            width=self._width,
            pad_left=True,
        )
        has_own = batch.positions_3bw is not None
        return batch.arguments, batch.positions_3bw if has_own else positions_pw

    def _expand(self, mask_pw: Tensor | None, uniforms_nt: Tensor) -> _Batch:
        device, repeats = self._interface.device, len(self._chunk.completions)
        limits_n = torch.tensor(self._limits, device=device).repeat_interleave(repeats)
        mask_nw = positions_n1 = None
        if mask_pw is not None:
            drawn_nt = mask_pw.new_ones(limits_n.shape[0], self.max_steps)
            mask_nw = torch.cat([mask_pw.repeat_interleave(repeats, dim=0), drawn_nt], dim=1)
            lengths_p = mask_pw.sum(dim=1)
            positions_n1 = lengths_p.repeat_interleave(repeats)[:, None]
        if self._has_images:
            assert self._chunk.vision is not None
            pairs = zip(self._chunk.vision, self._chunk.ids, strict=True)
            first_p = torch.tensor([first_position(one, len(ids)) for one, ids in pairs])
            positions_n1 = first_p.to(device).repeat_interleave(repeats)[:, None]
        return _Batch(
            rows_r=torch.arange(limits_n.shape[0], device=device),
            uniforms_tr=uniforms_nt.T.contiguous().to(device),
            limits_r=limits_n,
            done_r=torch.zeros_like(limits_n, dtype=torch.bool),
            mask_rw=mask_nw,
            positions_r1=positions_n1,
        )

    def _loop(
        self, logits_rv: Tensor, batch: _Batch, stop_texts: StopTexts | None
    ) -> list[_Segment]:
        interface = self._interface
        look_every = 1 if interface.device.type == "cpu" else _LOOK_EVERY_ON_GPU
        segments = [_Segment(batch.rows_r)]
        for step in range(self.max_steps):
            drawn = draw(logits_rv, batch.uniforms_tr[step], self._sampling, interface.banned_v)
            segments[-1].draws.append(drawn)
            if step + 1 == self.max_steps:
                break
            ids_r = drawn.token_ids
            self._mark_done(batch, ids_r, step, stop_texts)
            if step % look_every == 0:
                num_done, num_rows = int(batch.done_r.sum()), ids_r.shape[0]
                if num_done == num_rows:
                    break
                if num_done and num_done >= interface.finished_share * num_rows:
                    kept = (~batch.done_r).nonzero()[:, 0]
                    batch.keep(kept)
                    self._cache.batch_select_indices(kept)
                    ids_r = ids_r[kept]
                    segments.append(_Segment(batch.rows_r))
            logits_rv = self._next_logits(ids_r, batch, self._width + step + 1)
        return segments

    def _mark_done(
        self, batch: _Batch, ids_r: Tensor, step: int, stop_texts: StopTexts | None
    ) -> None:
        """Note which rows end with the tokens just drawn."""
        batch.done_r |= torch.isin(ids_r, self._interface.stop_ids)
        if self._limits_differ:
            batch.done_r |= batch.limits_r <= step + 1
        if stop_texts is not None:
            batch.recent_r = [*batch.recent_r, ids_r][-stop_texts.window :]
            if (step + 1) % LOOK_EVERY == 0:
                batch.done_r |= stop_texts.found(torch.stack(batch.recent_r, dim=1))

    def _next_logits(self, ids_r: Tensor, batch: _Batch, seen: int) -> Tensor:
        """Read the tokens just drawn; `seen` is the width of the cache with them."""
        mask_rw = None if batch.mask_rw is None else batch.mask_rw[:, :seen]
        positions_r1 = batch.positions_r1
        if positions_r1 is not None:
            # An ended row may run past the context while others go on; its draws are dropped.
            positions_r1 = positions_r1.clamp(max=self._interface.context_length - 1)
            batch.positions_r1 = positions_r1 + 1
        return self._forward(ids_r[:, None], mask_rw, positions_r1)

    def _forward(
        self,
        ids_rt: Tensor,
        mask_rw: Tensor | None,
        positions_rt: Tensor | None,
        extra: dict[str, Tensor] | None = None,
    ) -> Tensor:
        """Logits [R, V] after the last token; the cache grows by the tokens read."""
        interface = self._interface
        arguments: dict[str, Any] = {interface.cache_name: self._cache, "use_cache": True}
        arguments |= extra or {}
        if mask_rw is not None:
            arguments["attention_mask"] = mask_rw
        if positions_rt is not None and interface.takes_positions:
            arguments["position_ids"] = positions_rt
        if interface.takes_keep:
            arguments["logits_to_keep"] = 1
        logits: Tensor = interface.model(input_ids=ids_rt, **arguments).logits
        return logits[:, -1]

    def _gather(self, segments: list[_Segment], num_rows: int) -> Decoded:
        """Lay the segments' draws out by row, and find where each row ended."""
        columns = [_lay_out(segments, num_rows, index) for index in range(len(Draw._fields))]
        ids_nt, logps_nt, entropy_nt, certainty_nt = columns
        repeats = len(self._chunk.completions)
        limits_n = torch.tensor(self._limits).repeat_interleave(repeats)
        # Past its end a row holds filler, or draws that belong to nothing.
        limits_n = limits_n.minimum((ids_nt >= 0).sum(dim=1))
        is_stop_nt = torch.isin(ids_nt, self._interface.stop_ids.cpu())
        steps_t = torch.arange(ids_nt.shape[1])
        first_n = torch.where(is_stop_nt, steps_t, ids_nt.shape[1]).amin(dim=1)
        ended_n = first_n < limits_n
        lengths_n = torch.where(ended_n, first_n + 1, limits_n)
        return Decoded(ids_nt, logps_nt, entropy_nt, certainty_nt, lengths_n, ended_n)


def _lay_out(segments: list[_Segment], num_rows: int, index: int) -> Tensor:
    """One column of every draw as [N, T] on the CPU; rows that had left hold -1 or 0."""
    first = segments[0].draws[0][index]
    num_steps = sum(len(segment.draws) for segment in segments)
    filler = 0 if first.is_floating_point() else -1
    out_tn = torch.full((num_steps, num_rows), filler, dtype=first.dtype)
    start = 0
    for segment in segments:
        stop = start + len(segment.draws)
        if segment.draws:
            stacked_tr = torch.stack([drawn[index] for drawn in segment.draws]).cpu()
            out_tn[start:stop, segment.rows_r.cpu()] = stacked_tr
        start = stop
    return out_tn.T.contiguous()
