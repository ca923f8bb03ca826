"""The record of one sampling pass: what every later stage reads.

Ragged data stays in plain lists on the CPU; the learner pads it as it likes. Nothing here refers
to a model or an engine, so a rollout can be saved, sent or built by hand in a test.

Shapes: P prompts, K completions a prompt, T tokens of one completion (ragged).
"""

from dataclasses import dataclass, field, replace
from typing import Self

from torch import Tensor

from corl.policy.vision.inputs import VisionInputs


@dataclass(frozen=True, slots=True)
class Rollout:
    """K completions for each of P prompts, with what the sampler saw while drawing them."""

    prompt_ids: list[list[int]]
    """P lists of prompt tokens, as the model read them."""
    token_ids: list[list[list[int]]]
    """P x K lists of T sampled tokens; the stop token is included when one was sampled."""
    logps: list[list[Tensor]]
    """P x K float32 [T] on the CPU: log-probability (nats) of each sampled token under the whole
    temperature-scaled vocabulary, whatever top-p, top-k or bans did to the draw."""
    truncated: list[list[bool]]
    """P x K: a length limit cut the completion before it ended by itself."""
    entropy: Tensor
    """[P, K] float32: mean token entropy, nats."""
    self_certainty: Tensor
    """[P, K] float32: mean over tokens of KL(uniform, p) = -log V - mean_j log p_j, nats."""
    texts: list[list[str]]
    """P x K decoded completions without special tokens."""
    num_nonfinite: int = 0
    """Sampled tokens whose log-probability was not finite; no mean above includes them."""
    vision: list[VisionInputs | None] | None = field(default=None, compare=False)
    """The images of the P prompts, as the model saw them; None where no prompt has any."""
    prefill_s: float = field(default=0.0, compare=False)
    """Seconds spent reading prompts."""
    decode_s: float = field(default=0.0, compare=False)
    """Seconds spent drawing tokens."""

    def first(self, completions: int) -> Self:
        """The first `completions` of every prompt; the record itself where it has no more."""
        if completions >= self.num_completions:
            return self
        logps = [group[:completions] for group in self.logps]
        return replace(
            self,
            token_ids=[group[:completions] for group in self.token_ids],
            logps=logps,
            truncated=[group[:completions] for group in self.truncated],
            entropy=self.entropy[:, :completions],
            self_certainty=self.self_certainty[:, :completions],
            texts=[group[:completions] for group in self.texts],
            num_nonfinite=sum(int((~row.isfinite()).sum()) for group in logps for row in group),
        )

    @property
    def num_prompts(self) -> int:
        return len(self.token_ids)

    @property
    def num_completions(self) -> int:
        """Completions of one prompt (K); every prompt has the same number."""
        return len(self.token_ids[0]) if self.token_ids else 0

    @property
    def num_tokens(self) -> int:
        """Sampled tokens in all, stop tokens included."""
        return sum(len(ids) for group in self.token_ids for ids in group)

    @property
    def lengths(self) -> list[list[int]]:
        """P x K token counts, stop tokens included."""
        return [[len(ids) for ids in group] for group in self.token_ids]

    @property
    def truncated_share(self) -> float:
        flags = [flag for group in self.truncated for flag in group]
        return sum(flags) / len(flags) if flags else 0.0
