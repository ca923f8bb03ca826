"""What an agent learns from in one step, and which rows of it are worth a forward pass.

Whole groups or nothing: a group that teaches nothing is dropped here, before
any padding, and its sequences and tokens still count in the averages. With a
KL term every group is forwarded, the silent ones with advantage 0.

Shapes: P prompts, K completions of a prompt.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from corl.config import GrpoConfig
from corl.errors import RecipeError
from corl.grpo import flat_groups, group_advantages, reinforce_pp_advantages, token_weights
from corl.policy.vision.inputs import VisionInputs


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnBatch:
    """One step's completions and rewards of one agent."""

    prompt_ids: Sequence[Sequence[int]]
    """Token ids of P prompts, none empty."""
    token_ids: Sequence[Sequence[Sequence[int]]]
    """Token ids of P x K completions, stop tokens included."""
    rewards_pk: Tensor
    """float [P, K]; rows without a label are not read."""
    labelled_p: Tensor | None = None
    """bool [P]: which prompts have a label. Default: all."""
    truncated: Sequence[Sequence[bool]] | None = None
    """P x K: which completions were cut off. Default: none."""
    engine_logps: Sequence[Sequence[Tensor]] | None = None
    """P x K float tensors [T], the sampler's log-probabilities, NaN where unknown. Without
    them no token is reweighted."""
    vision: Sequence[VisionInputs | None] | None = None
    """The images of each of the P prompts. Default: none."""

    def __post_init__(self) -> None:
        shape = (len(self.prompt_ids), len(self.token_ids[0]) if self.token_ids else 0)
        seen = {
            "token_ids": _shape(self.token_ids),
            "rewards_pk": tuple(self.rewards_pk.shape),
            "truncated": shape if self.truncated is None else _shape(self.truncated),
            "engine_logps": shape if self.engine_logps is None else _shape(self.engine_logps),
        }
        for name, found in seen.items():
            if found != shape:
                raise RecipeError(
                    f"{name} has shape {found} for {shape[0]} prompts of {shape[1]} completions. "
                    "Every prompt needs one reward, length and log-probability per completion."
                )
        if self.engine_logps is not None:
            lengths = [[len(tokens) for tokens in group] for group in self.token_ids]
            scored = [[len(logps) for logps in group] for group in self.engine_logps]
            if lengths != scored:
                raise RecipeError(
                    "engine_logps must hold one number per completion token; "
                    f"their lengths are {scored} for completions of {lengths} tokens."
                )
        if self.labelled_p is not None and self.labelled_p.shape != shape[:1]:
            raise RecipeError(
                f"labelled_p has shape {tuple(self.labelled_p.shape)} for {shape[0]} prompts."
            )


@dataclass(frozen=True, slots=True)
class Row:
    """One completion that is forwarded."""

    prompt_ids: Sequence[int]
    token_ids: Sequence[int]
    advantage: float
    weight: float
    """Of one token in the update's loss."""
    engine_logps: Tensor | None
    vision: VisionInputs | None = None
    group: int = 0
    """Index of its prompt; rows of one prompt stand side by side."""

    @property
    def num_prompt_tokens(self) -> int:
        return len(self.prompt_ids)

    @property
    def num_read(self) -> int:
        """Completion tokens that the model reads: nothing is predicted from the last one."""
        return max(len(self.token_ids) - 1, 0)

    @property
    def num_tokens(self) -> int:
        return len(self.prompt_ids) + len(self.token_ids)


@dataclass(frozen=True, slots=True)
class Plan:
    """The rows of an update and how many groups stayed out of it."""

    rows: list[Row]
    groups_flat: int
    groups_unlabelled: int
    groups_forwarded: int


def plan_update(batch: LearnBatch, grpo: GrpoConfig, *, max_tokens: int | None = None) -> Plan:
    """Advantages, token weights and the rows that go through the model.

    A completion that is empty, or cut off under `mask_truncated`, has no token
    in the loss and is not forwarded. Under `skip_flat_in_denominators` the
    averages cover forwarded groups alone; with KL on that is every group.

    Raises NonFiniteLossError for a reward that is no number, RecipeError for
    dr_grpo without `max_tokens`.
    """
    rewards_pk = batch.rewards_pk.detach().cpu()
    labelled_p = torch.ones(len(rewards_pk), dtype=torch.bool)
    if batch.labelled_p is not None:
        labelled_p = batch.labelled_p.cpu()
    if grpo.estimator == "reinforce_pp":
        advantages_pk = reinforce_pp_advantages(rewards_pk, labelled_p=labelled_p)
        # Without a baseline per prompt a unanimous group does teach.
        silent_p = (advantages_pk == 0).all(dim=1)
    else:
        advantages_pk = group_advantages(rewards_pk, scale=grpo.scale, labelled_p=labelled_p)
        silent_p = flat_groups(rewards_pk) | ~labelled_p
    forwarded_p = torch.ones_like(silent_p) if grpo.kl else ~silent_p
    lengths_pk = _loss_lengths(batch, grpo.mask_truncated)
    counted_p = forwarded_p if grpo.skip_flat_in_denominators else torch.ones_like(forwarded_p)
    weights_pk = token_weights(
        lengths_pk.flatten(),
        loss=grpo.loss,
        num_sequences=lengths_pk[counted_p].numel(),
        num_tokens=int(lengths_pk[counted_p].sum()),
        max_tokens=max_tokens,
    ).view_as(lengths_pk)
    advantages, weights = advantages_pk.tolist(), weights_pk.tolist()
    return Plan(
        rows=[
            Row(
                batch.prompt_ids[p],
                batch.token_ids[p][k],
                advantages[p][k],
                weights[p][k],
                None if batch.engine_logps is None else batch.engine_logps[p][k],
                None if batch.vision is None else batch.vision[p],
                group=p,
            )
            for p, k in (lengths_pk * forwarded_p[:, None]).nonzero().tolist()
        ],
        groups_flat=int((flat_groups(rewards_pk) & labelled_p).sum()),
        groups_unlabelled=int((~labelled_p).sum()),
        groups_forwarded=int(forwarded_p.sum()),
    )


def _loss_lengths(batch: LearnBatch, mask_truncated: bool) -> Tensor:
    """Tokens of each completion that are in the loss, int [P, K]."""
    lengths_pk = torch.tensor([[len(tokens) for tokens in group] for group in batch.token_ids])
    if mask_truncated and batch.truncated is not None:
        lengths_pk = lengths_pk.masked_fill(torch.tensor(batch.truncated), 0)
    return lengths_pk


def _shape(nested: Sequence[Sequence[object]]) -> tuple[int, ...]:
    widths = {len(group) for group in nested}
    return (len(nested), widths.pop() if len(widths) == 1 else 0 if not widths else -1)
