"""Sample completions with a transformers model: our own batched decode loop.

A prompt is read once and its cache repeated for its K completions; rows that have ended leave the
batch (`decoding.py`). `generate` is not used: it takes three quarters of a training step, and it
would merge the checkpoint's own temperature, top-k and penalties into the draw.

Each row's uniforms belong to its prompt and completion index (`noise.py`), so batching, padding
and the order of rows never change what is drawn. Gradients are off by `no_grad` and not by
inference mode, whose tensors (a rotary buffer rebuilt on the way, say) the learner could not use.

Shapes: P prompts, K completions a prompt, N rows of a chunk, T tokens.
"""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby

import torch
from torch import Tensor, nn

from corl.errors import ModelError, PromptError
from corl.policy.load import Policy
from corl.policy.quantization import quantized_layers
from corl.policy.vision.inputs import VisionInputs, VisionInterface, any_vision
from corl.policy.vision.placeholders import placeholder_ids
from corl.rollout.cache import cache_argument
from corl.rollout.decoding import Chunk, Clock, Decoded, Decoder, ModelInterface
from corl.rollout.noise import Noise
from corl.rollout.rollout import Rollout
from corl.rollout.sampling import Sampling, check_sampling
from corl.rollout.stop_texts import StopTexts


@dataclass(frozen=True, slots=True)
class _Row:
    """One finished completion."""

    token_ids: list[int]
    logps: Tensor
    truncated: bool
    entropy: float
    self_certainty: float
    num_nonfinite: int


class TransformersEngine:
    """Draws completions from a policy's current weights."""

    def __init__(
        self, policy: Policy, *, max_rows: int = 512, finished_share: float = 0.25
    ) -> None:
        """max_rows: completions in one batch. finished_share: share of ended rows at which they
        leave the batch, each time at the cost of one copy of the cache; above 1 they never do.
        """
        self.policy = policy
        self._max_rows = max_rows
        self._model = policy.computing.module
        cache_name = cache_argument(self._model)
        if cache_name is None:
            raise ModelError(
                f"{type(self._model).__name__} takes no key-value cache, so the transformers "
                "engine cannot sample from it. Choose a decoder such as Qwen3, Llama or Gemma."
            )
        arguments = inspect.signature(self._model.forward).parameters
        self._interface = ModelInterface(
            model=self._model,
            device=policy.device,
            cache_name=cache_name,
            takes_positions="position_ids" in arguments,
            takes_keep="logits_to_keep" in arguments,
            stop_ids=torch.tensor(sorted(policy.stop_ids), dtype=torch.long, device=policy.device),
            banned_v=_banned(policy),
            context_length=policy.context_length,
            finished_share=finished_share,
            vision=None
            if policy.processor is None
            else VisionInterface.of(self._model, policy.device),
        )

    def sync(self) -> None:
        """Take the policy's current weights over."""
        self.policy.computing.refresh()

    @torch.no_grad()
    def sample(
        self,
        prompt_ids: Sequence[Sequence[int]],
        *,
        completions: int,
        sampling: Sampling,
        noise: Noise,
        step: int,
        places: Sequence[int] | None = None,
        vision: Sequence[VisionInputs | None] | None = None,
    ) -> Rollout:
        """Draw `completions` completions of every prompt.

        prompt_ids: P lists of tokens. step: part of the noise. places: [P] what the noise takes
        for each prompt's index; left out: its index in this call. vision: [P] their images.
        Raises PromptError for a prompt that is empty or leaves no room in the context.
        """
        check_sampling(sampling)
        prompts = [list(ids) for ids in prompt_ids]
        for index, ids in enumerate(prompts):
            self._check_prompt(index, ids)
        clock = Clock(self.policy.device)
        stop_texts = StopTexts(self.policy.tokenizer, sampling.stop) if sampling.stop else None
        rows: dict[tuple[int, int], _Row] = {}
        with _evaluation_mode(self._model):
            for chunk in self._chunks(prompts, completions, vision):
                decoder = Decoder(self._interface, chunk, sampling)
                prompt_of, completion_of = zip(*chunk.rows, strict=True)
                if places is not None:
                    prompt_of = tuple(places[index] for index in prompt_of)
                uniforms_nt = noise.batch(step, prompt_of, completion_of, decoder.max_steps)
                decoded = decoder.run(torch.from_numpy(uniforms_nt), clock, stop_texts)
                finished = _finish(decoded, stop_texts)
                rows.update(zip(chunk.rows, finished, strict=True))
        groups = [[rows[p, k] for k in range(completions)] for p in range(len(prompts))]
        record = self._record(prompts, groups, clock)
        if vision is not None and any_vision(vision):
            return replace(record, vision=list(vision))
        return record

    def _check_prompt(self, index: int, ids: list[int]) -> None:
        limit = self.policy.context_length
        if not ids:
            raise PromptError(f"prompt {index} has no tokens. Give it some text.")
        if len(ids) >= limit:
            raise PromptError(
                f"prompt {index} has {len(ids)} tokens, and the model's context is {limit}: "
                "no room for a completion. Shorten the prompt or choose another model."
            )

    def _chunks(
        self,
        prompts: list[list[int]],
        completions: int,
        vision: Sequence[VisionInputs | None] | None,
    ) -> Iterator[Chunk]:
        """Split into batches of at most max_rows rows, prompts of like length together."""
        order = sorted(range(len(prompts)), key=lambda index: len(prompts[index]), reverse=True)
        batches = [order]
        if not self._interface.takes_positions:
            # Such a model may count positions from the left edge: nothing is padded then.
            batches = [list(same) for _, same in groupby(order, lambda index: len(prompts[index]))]
        width = max(1, min(completions, self._max_rows))
        at_once = max(1, self._max_rows // width)
        for batch in batches:
            for start in range(0, len(batch), at_once):
                chosen = batch[start : start + at_once]
                for first in range(0, completions, width):
                    span = range(first, min(first + width, completions))
                    ids = [prompts[index] for index in chosen]
                    images = None if vision is None else [vision[index] for index in chosen]
                    yield Chunk(chosen, ids, span, images)

    def _record(self, prompts: list[list[int]], groups: list[list[_Row]], clock: Clock) -> Rollout:
        flat = [row for group in groups for row in group]
        shape = (len(groups), len(groups[0]) if groups else 0)
        texts = iter(
            self.policy.tokenizer.batch_decode(
                [row.token_ids for row in flat],
                skip_special_tokens=True,
                clean_up_tokenization_spaces=False,
            )
        )
        return Rollout(
            prompt_ids=prompts,
            token_ids=[[row.token_ids for row in group] for group in groups],
            logps=[[row.logps for row in group] for group in groups],
            truncated=[[row.truncated for row in group] for group in groups],
            entropy=torch.tensor([row.entropy for row in flat]).view(shape),
            self_certainty=torch.tensor(
                [[row.self_certainty for row in group] for group in groups]
            ),
            texts=[[next(texts) for _ in group] for group in groups],
            num_nonfinite=sum(row.num_nonfinite for row in flat),
            prefill_s=clock.prefill_s,
            decode_s=clock.decode_s,
        )


def _finish(decoded: Decoded, stop_texts: StopTexts | None) -> list[_Row]:
    """Cut every row to its own length."""
    ids_nt, lengths = decoded.token_ids_nt.tolist(), decoded.lengths_n.tolist()
    ended = decoded.ended_n.tolist()
    if stop_texts is not None:
        for row, ids in enumerate(ids_nt):
            kept = stop_texts.cut(ids[: lengths[row]])
            if kept is not None:
                lengths[row], ended[row] = kept, True
    is_finite_nt = decoded.logps_nt.isfinite()
    within_nt = torch.arange(decoded.token_ids_nt.shape[1]) < torch.tensor(lengths)[:, None]
    counted_nt = is_finite_nt & within_nt
    entropy = _row_means(decoded.entropy_nt, counted_nt)
    certainty = _row_means(decoded.self_certainty_nt, counted_nt)
    nonfinite = (within_nt & ~is_finite_nt).sum(dim=1).tolist()
    return [
        _Row(
            token_ids=ids_nt[row][:length],
            logps=decoded.logps_nt[row, :length],
            truncated=not ended[row],
            entropy=entropy[row],
            self_certainty=certainty[row],
            num_nonfinite=nonfinite[row],
        )
        for row, length in enumerate(lengths)
    ]


def _row_means(values_nt: Tensor, counted_nt: Tensor) -> list[float]:
    """Mean of each row's counted values; NaN where none counts."""
    sums_n = values_nt.masked_fill(~counted_nt, 0.0).sum(dim=1, dtype=torch.float64)
    means: list[float] = (sums_n / counted_nt.sum(dim=1)).tolist()
    return means


@contextmanager
def _evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Switch layers that recompute in the backward pass to evaluation, and back."""
    quantized = set(quantized_layers(model))  # these compute otherwise there than the learner
    training = [module for module in model.modules() if module.training and module not in quantized]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def _banned(policy: Policy) -> Tensor | None:
    """[V] bool of ids that must never be drawn: rows past the tokenizer's, and placeholders."""
    config = policy.model.config
    output = policy.model.get_output_embeddings()
    rows = config.get_text_config().vocab_size if output is None else output.weight.shape[0]
    banned_v = torch.zeros(rows, dtype=torch.bool, device=policy.device)
    banned_v[max(policy.tokenizer.get_vocab().values()) + 1 :] = True
    never = placeholder_ids(config, policy.tokenizer, policy.processor)
    banned_v[[index for index in never if index < rows]] = True
    banned_v[[index for index in policy.stop_ids if index < rows]] = False
    return banned_v if bool(banned_v.any()) else None
