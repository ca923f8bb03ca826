"""Log-probabilities of completions under a causal language model.

The transformer runs once over right-padded rows, or over a line of tokens where
rows share prompts (`corl.policy.shared_prompts`); only the positions that
predict a completion token reach the head, which is applied here in chunks.
Whether head and logit transforms are read rightly is not assumed: at
construction one short input goes through the model's own forward as well, and
a model that disagrees is scored through its own forward, row by row.

Rows carry explicit positions and no attention mask: padding stands behind every
real token, where a causal model cannot see it, and attention kernels are
fastest without one.

Shapes: B rows, S positions, T completion tokens, N completion tokens in line.
"""

import inspect
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.checkpoint import checkpoint

from corl.errors import PromptError
from corl.grpo import selected_logps
from corl.policy.computing import ComputeModel
from corl.policy.shared_prompts import line_up
from corl.policy.vision.features import shared_features
from corl.policy.vision.inputs import VisionInputs, VisionInterface, any_vision

_log = logging.getLogger(__name__)

# Names under which configurations keep a factor of the logits; the probe tells
# whether it multiplies or divides.
_SCALE_KEYS = ("logit_scale", "output_multiplier", "lm_head_multiplier", "logits_scaling")

NOTHING: Mapping[str, Any] = MappingProxyType({})


class TrainablePolicy(Protocol):
    """What scoring and learning need of a policy."""

    @property
    def model(self) -> Any: ...

    @property
    def device(self) -> torch.device: ...

    @property
    def computing(self) -> ComputeModel: ...


@dataclass(frozen=True, slots=True)
class Scores:
    """Per completion token; entries behind a row's last token are 0."""

    logps_bt: Tensor
    """float32 log-probability of each token at the sampling temperature, in nats."""
    entropy_bt: Tensor
    """float32 entropy of the distribution it was drawn from, in nats, detached."""
    mask_bt: Tensor
    """bool, true on completion tokens."""


@dataclass(frozen=True, slots=True)
class _Head:
    linear: nn.Linear
    scale: float
    softcap: float | None


class CompletionScorer:
    """Scores completions of one model, in the mode it is in, at one temperature.

    The caller sees to it that dropout is off (`corl.policy.load.set_learning_mode`).
    `path` is "chunked", or "model" where the model's head could not be matched.
    """

    def __init__(
        self, policy: TrainablePolicy, *, temperature: float, chunk_tokens: int | None = None
    ) -> None:
        self._model = policy.computing.module
        self._device = torch.device(policy.device)
        self._temperature = temperature
        self._chunk_tokens = chunk_tokens
        dtype = next(self._model.parameters()).dtype
        # Sums in another order, or a quarter of the last bits of a bfloat16 logit.
        self._tolerance = 1e-4 if dtype == torch.float32 else 2e-2
        self._base = _base_of(self._model)
        self._head = self._probe()
        self.shares_prompts = self._head is not None and self._attends_by_layout()
        """Whether rows of one prompt can be computed together."""
        if self._head is None:
            _log.warning(
                "the head of %s is scored through the model's own forward, row by row: "
                "its logits are not head(hidden states) times a factor under a soft cap",
                type(self._model).__name__,
            )

    @property
    def path(self) -> str:
        return "model" if self._head is None else "chunked"

    def __call__(
        self,
        prompt_ids: Sequence[Sequence[int]],
        token_ids: Sequence[Sequence[int]],
        sizes: Sequence[int] | None = None,
        vision: Sequence[VisionInputs | None] | None = None,
    ) -> Scores:
        """Score the completion `token_ids[b]` of the prompt `prompt_ids[b]`, for B rows.

        sizes: of the runs of consecutive rows that have one prompt, which is then computed once
        where the model allows it; left out: every row is computed whole. vision: [B] the images
        of each prompt; rows that have any are computed whole.

        Raises PromptError for an empty prompt: its first token has no condition.
        """
        for row, prompt in enumerate(prompt_ids):
            if len(prompt) == 0:
                raise PromptError(f"row {row} has an empty prompt; a prompt needs a token.")
        lengths_b = torch.tensor([len(tokens) for tokens in token_ids])
        width = int(lengths_b.max()) if len(token_ids) else 0
        mask_bt = (torch.arange(width) < lengths_b[:, None]).to(self._device)
        targets_n = torch.tensor([t for row in token_ids for t in row], device=self._device)
        targets_n = targets_n.long()
        if self._head is None:
            logps_n, entropy_n = self._through_model(prompt_ids, token_ids, vision)
        else:
            if sizes is None or not self.shares_prompts or any_vision(vision):
                hidden_nh = self._completion_hidden(prompt_ids, token_ids, vision)
            else:
                hidden_nh = self._hidden_in_line(prompt_ids, token_ids, sizes)
            logps_n, entropy_n = self._through_head(self._head, hidden_nh, targets_n)
        return Scores(_spread(logps_n, mask_bt), _spread(entropy_n, mask_bt), mask_bt)

    def _completion_hidden(
        self,
        prompt_ids: Sequence[Sequence[int]],
        token_ids: Sequence[Sequence[int]],
        vision: Sequence[VisionInputs | None] | None = None,
    ) -> Tensor:
        """Hidden states [N, H] of the positions that predict a completion token."""
        rows = [
            torch.tensor([*prompt, *tokens[:-1]])
            for prompt, tokens in zip(prompt_ids, token_ids, strict=True)
        ]
        # Any valid token serves as padding, since nothing attends to it.
        ids_bs = pad_sequence(rows, batch_first=True, padding_value=0).to(self._device)
        positions_bs = torch.arange(ids_bs.shape[1], device=self._device).expand_as(ids_bs)
        images = self._images(self._base, vision, prompt_ids, ids_bs.shape[1])
        hidden_bsh = self._hidden(ids_bs, positions_bs, images)
        width = ids_bs.shape[1]
        predictors = [
            row * width + len(prompt) - 1 + offset
            for row, (prompt, tokens) in enumerate(zip(prompt_ids, token_ids, strict=True))
            for offset in range(len(tokens))
        ]
        where_n = torch.tensor(predictors, dtype=torch.long, device=self._device)
        return hidden_bsh.flatten(0, 1).index_select(0, where_n)

    def _hidden_in_line(
        self,
        prompt_ids: Sequence[Sequence[int]],
        token_ids: Sequence[Sequence[int]],
        sizes: Sequence[int],
    ) -> Tensor:
        """The same numbers, every prompt computed once."""
        line = line_up(prompt_ids, token_ids, sizes)
        hidden_1nh = self._hidden(
            line.ids_1n.to(self._device),
            line.positions_1n.to(self._device),
            {
                # transformers leaves a mask of four axes alone; our attention reads the layout.
                "attention_mask": torch.ones(1, 1, 1, 1, dtype=torch.bool, device=self._device),
                "row_layout": line.layout.to(self._device),
            },
        )
        return hidden_1nh[0].index_select(0, line.predictors.to(self._device))

    def _images(
        self,
        module: Any,
        vision: Sequence[VisionInputs | None] | None,
        prompt_ids: Sequence[Sequence[int]],
        width: int,
    ) -> dict[str, Any]:
        """The images as arguments of `module`'s forward over right-padded rows."""
        if vision is None or not any_vision(vision):
            return {}
        interface = VisionInterface.of(module, self._device)
        lengths = [len(prompt) for prompt in prompt_ids]
        features = shared_features(self._base, interface, vision, prompt_ids)
        has_images = features is None
        batch = interface.batch(vision, lengths=lengths, width=width, with_images=has_images)
        arguments: dict[str, Any] = dict(batch.arguments)
        if features is not None:
            arguments["mm_encoder_outputs"] = {"image": features}
        if batch.positions_3bw is not None:
            arguments["position_ids"] = batch.positions_3bw
        return arguments

    def _hidden(
        self, ids_bs: Tensor, positions_bs: Tensor, more: Mapping[str, Any] = NOTHING
    ) -> Tensor:
        arguments = {"position_ids": positions_bs, "use_cache": False, **more}
        arguments = {k: v for k, v in arguments.items() if _takes(self._base, k)}
        hidden_bsh: Tensor = self._base(input_ids=ids_bs, **arguments).last_hidden_state
        return hidden_bsh

    def _through_head(
        self, head: _Head, hidden_nh: Tensor, targets_n: Tensor
    ) -> tuple[Tensor, Tensor]:
        return selected_logps(
            hidden_nh,
            head.linear.weight,
            head.linear.bias,
            targets_n,
            temperature=self._temperature,
            softcap=head.softcap,
            scale=head.scale,
            chunk_tokens=self._chunk_tokens,
        )

    def _through_model(
        self,
        prompt_ids: Sequence[Sequence[int]],
        token_ids: Sequence[Sequence[int]],
        vision: Sequence[VisionInputs | None] | None,
    ) -> tuple[Tensor, Tensor]:
        """The same numbers from the model's own logits, one row alive at a time."""
        images = [None] * len(prompt_ids) if vision is None else vision
        scored = [
            checkpoint(self._row, list(prompt), list(tokens), one, use_reentrant=False)
            for prompt, tokens, one in zip(prompt_ids, token_ids, images, strict=True)
            if len(tokens)
        ]
        if not scored:
            return torch.zeros(0, device=self._device), torch.zeros(0, device=self._device)
        return torch.cat([logps for logps, _ in scored]), torch.cat([ent for _, ent in scored])

    def _row(
        self, prompt: list[int], tokens: list[int], one: VisionInputs | None
    ) -> tuple[Tensor, Tensor]:
        ids_1s = torch.tensor([prompt + tokens], device=self._device)
        extra = self._images(self._model, [one], [prompt], ids_1s.shape[1])
        logits_1sv = self._model_logits(ids_1s, keep=len(tokens) + 1, extra=extra)
        logits_tv = logits_1sv[0, -len(tokens) - 1 : -1]
        all_tv = torch.log_softmax(logits_tv.float() / self._temperature, dim=-1)
        logps_t = all_tv.gather(1, ids_1s[0, len(prompt) :, None]).squeeze(1)
        with torch.no_grad():
            entropy_t = -(all_tv.exp() * all_tv).sum(dim=-1)
        return logps_t, entropy_t

    def _model_logits(
        self, ids_bs: Tensor, *, keep: int, extra: Mapping[str, Any] = NOTHING
    ) -> Tensor:
        positions_bs = torch.arange(ids_bs.shape[1], device=ids_bs.device).expand_as(ids_bs)
        arguments = {"position_ids": positions_bs, "use_cache": False, "logits_to_keep": keep}
        arguments |= extra
        arguments = {k: v for k, v in arguments.items() if _takes(self._model, k)}
        logits_bsv: Tensor = self._model(input_ids=ids_bs, **arguments).logits
        return logits_bsv

    @torch.no_grad()
    def _probe(self) -> _Head | None:
        """The head as this file will apply it, or None if the model's logits differ.

        The head's output is blown up to 50 inside the model for this one call:
        the small logits of an untrained model would hide a soft cap.
        """
        linear = self._model.get_output_embeddings()
        if self._base is None or type(linear) is not nn.Linear:
            return None
        ids_1s = torch.arange(8, device=self._device)[None] % linear.out_features
        hidden_1sh = self._hidden(ids_1s, torch.arange(8, device=self._device)[None])
        raw_1sv = nn.functional.linear(hidden_1sh, linear.weight, linear.bias).float()
        factor = 50.0 / raw_1sv.abs().max().clamp(min=1e-20).item()
        hook = linear.register_forward_hook(lambda _m, _args, output: output * factor)
        try:
            theirs_1sv = self._model_logits(ids_1s, keep=8).float()
        finally:
            hook.remove()
        raw_1sv, config = raw_1sv * factor, self._model.config
        return _matching_head(linear, config, raw_1sv, theirs_1sv, self._tolerance)

    @torch.no_grad()
    def _attends_by_layout(self) -> bool:
        """Whether rows in line give the hidden states of separate rows; tried, not assumed.

        Windows and chunks are longer than any trial, so a model that has them is not tried.
        """
        text = self._model.config.get_text_config()
        kinds = set(getattr(text, "layer_types", None) or ["full_attention"])
        windows = getattr(text, "sliding_window", None) and getattr(
            text, "use_sliding_window", True
        )
        if kinds != {"full_attention"} or windows or getattr(text, "attention_chunk_size", None):
            return False
        vocabulary = self._model.get_output_embeddings().out_features
        ids = [index % vocabulary for index in range(9)]
        rows = [ids[:3], ids[:3]], [ids[3:6], ids[5:9]]
        apart_nh = self._completion_hidden(*rows).float()
        try:
            together_nh = self._hidden_in_line(*rows, [2]).float()
        except (ValueError, TypeError, RuntimeError, IndexError, AttributeError):
            return False  # it does not hand its attention what we pass, or has none
        if together_nh.shape != apart_nh.shape:
            return False
        error = (together_nh - apart_nh).abs().max()
        # Written so that NaN does not pass.
        return bool(error <= 2 * self._tolerance * apart_nh.abs().max())


def _base_of(model: Any) -> Any:
    """The transformer without its head, or None if the model has no such part."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    base = getattr(inner, "base_model", inner)
    return None if base is inner else base


def _takes(module: nn.Module, argument: str) -> bool:
    parameters = inspect.signature(module.forward).parameters
    return argument in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _spread(values_n: Tensor, mask_bt: Tensor) -> Tensor:
    return values_n.new_zeros(mask_bt.shape).masked_scatter(mask_bt, values_n)


def _matching_head(
    linear: nn.Linear, config: Any, raw_1sv: Tensor, theirs_1sv: Tensor, tolerance: float
) -> _Head | None:
    """The factor and soft cap of `config` that come closest to the model's logits."""
    if theirs_1sv.shape != raw_1sv.shape:
        return None
    text_config = config.get_text_config()
    named = [getattr(text_config, key, None) for key in _SCALE_KEYS]
    factors = [float(f) for f in named if isinstance(f, int | float) and f]
    caps = [getattr(text_config, "final_logit_softcapping", None), None]
    heads = [
        _Head(linear, scale, cap)
        for scale in [1.0, *factors, *(1.0 / f for f in factors)]
        for cap in caps
    ]
    best = min(heads, key=lambda head: _error(head, raw_1sv, theirs_1sv))
    # Written so that NaN logits do not match.
    fits = _error(best, raw_1sv, theirs_1sv) <= tolerance
    return best if fits else None


def _error(head: _Head, raw_1sv: Tensor, theirs_1sv: Tensor) -> float:
    """Largest difference relative to the model's largest logit."""
    ours_1sv = raw_1sv * head.scale
    if head.softcap is not None:
        ours_1sv = torch.tanh(ours_1sv / head.softcap) * head.softcap
    return ((ours_1sv - theirs_1sv).abs().max() / theirs_1sv.abs().max().clamp(min=1.0)).item()
