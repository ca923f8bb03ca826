"""One agent's update: completions and rewards in, changed weights out.

A batch becomes rows (`corl.policy.learn_batch`), rows become micro-batches by a
token budget, those of one prompt together (`corl.policy.shared_prompts`), and their
losses add up to the loss of the whole batch. The first update of a batch is
on-policy, so its own log-probabilities, detached, are the old ones of every later
update: no extra pass is needed.

The model runs with dropout off, since a ratio of two passes has to be 1 before
the first update. Where no row teaches, nothing is touched: no optimiser step
and no weight decay, while the learning rate's schedule moves on.

Shapes: B rows, T completion tokens.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from corl.config import GrpoConfig, OptimizerConfig
from corl.errors import CheckpointError, NonFiniteLossError, RecipeError
from corl.grpo import PolicyLoss, engine_mismatch, policy_loss
from corl.policy.learn_batch import LearnBatch, Plan, Row, plan_update
from corl.policy.load import set_learning_mode
from corl.policy.microbatch import microbatches, within_budget
from corl.policy.optimizer import build_optimizer, clip_gradients, learning_rate_at
from corl.policy.scoring import CompletionScorer, Scores, TrainablePolicy

__all__ = ["LearnBatch", "Learner"]

Reference = Callable[..., Scores]
"""Called like a `CompletionScorer`."""


@dataclass(slots=True)
class _MicroBatch:
    """Rows that are forwarded together, and what the first update learned about them."""

    rows: list[Row]
    sizes: list[int]
    """Of the runs of rows that have one prompt, in order."""
    old_logps_bt: Tensor | None = None
    ref_logps_bt: Tensor | None = None
    mismatch_weight_bt: Tensor | None = None


@dataclass(slots=True)
class _Tally:
    """Measurements of one `update` call, kept on the device until they are read."""

    losses: list[Tensor] = field(default_factory=list)
    parts: list[PolicyLoss] = field(default_factory=list)
    grad_norms: list[float] = field(default_factory=list)
    entropy_sum: list[Tensor] = field(default_factory=list)
    num_entropy: list[Tensor] = field(default_factory=list)
    mismatch_n: list[Tensor] = field(default_factory=list)
    num_nan: list[Tensor] = field(default_factory=list)


class Learner:
    """GRPO on one policy, with its optimiser and the schedule's step."""

    def __init__(
        self,
        policy: TrainablePolicy,
        optimizer_config: OptimizerConfig,
        grpo_config: GrpoConfig,
        *,
        total_steps: int,
        temperature: float,
        max_tokens: int | None = None,
        reference: Reference | None = None,
        name: str = "agent",
        seed: int = 0,
    ) -> None:
        """temperature: that of sampling, which also divides the learner's logits.
        max_tokens: the completion cap, needed by dr_grpo. reference: a
        `CompletionScorer` of the starting policy, for the KL term. name: the
        agent's, for errors. seed: of stochastic rounding.

        Raises RecipeError where a setting lacks what it needs.
        """
        if grpo_config.kl and reference is None:
            raise RecipeError(
                f"grpo.kl is {grpo_config.kl}, which needs a reference policy; "
                "pass the `CompletionScorer` of a frozen copy as reference."
            )
        if grpo_config.loss == "dr_grpo" and max_tokens is None:
            raise RecipeError("grpo.loss dr_grpo divides by the completion cap; pass max_tokens.")
        self.name = name
        self.step = 0
        self._model = policy.model
        self._device = torch.device(policy.device)
        self._optimizer_config = optimizer_config
        self._grpo = grpo_config
        self._total_steps = total_steps
        self._max_tokens = max_tokens
        self._reference = reference if grpo_config.kl else None
        self._computing = policy.computing
        if optimizer_config.gradient_checkpointing:
            _enable_checkpointing(self._computing.module)
        set_learning_mode(self._computing.module)
        self._score = CompletionScorer(policy, temperature=temperature)
        self._optimizer = build_optimizer(self._model, optimizer_config, seed=seed)

    @property
    def learning_rate(self) -> float:
        """The rate of the next update."""
        config = self._optimizer_config
        return learning_rate_at(
            self.step,
            self._total_steps,
            peak=config.learning_rate,
            warmup_share=config.warmup_share,
            floor_share=config.floor_share,
        )

    def update(self, batch: LearnBatch) -> dict[str, float]:
        """Learn from one batch and report it; metrics without a measurement are left out.

        Raises NonFiniteLossError, before the weights change, when a reward, the
        loss or the gradient norm is no number.
        """
        try:
            plan = plan_update(batch, self._grpo, max_tokens=self._max_tokens)
        except NonFiniteLossError as error:
            raise NonFiniteLossError(f"agent {self.name!r}, step {self.step}: {error}") from error
        rate = self.learning_rate
        tally = _Tally()
        if plan.rows:
            micro = self._microbatches(plan.rows)
            for _ in range(self._grpo.updates):
                self._update_once(micro, rate, tally)
        self.step += 1
        return _metrics(plan, rate, tally)

    def state_dict(self) -> dict[str, Any]:
        """Optimiser state and step: tensors and plain values, for `weights_only` loading."""
        return {"optimizer": self._optimizer.state_dict(), "step": self.step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where `state_dict` was taken, on the weights saved with it.

        Raises CheckpointError when the state belongs to another model or optimiser.
        """
        try:
            self._optimizer.load_state_dict(state["optimizer"])
            self.step = int(state["step"])
        except (KeyError, ValueError) as error:
            raise CheckpointError(
                f"the optimiser state of agent {self.name!r} does not fit its model: {error}. "
                "Resume with the model and optimizer.kind of the run's recipe."
            ) from error

    def _microbatches(self, rows: Sequence[Row]) -> list[_MicroBatch]:
        """Rows of one prompt stay together where their model computes the prompt once."""
        budget = self._optimizer_config.tokens_per_microbatch
        # Rows with images are laid out by their family's own forward.
        has_images = any(row.vision is not None for row in rows)
        shares = self._score.shares_prompts and not has_images
        runs: list[list[Row]] = []
        for _, group in groupby(rows, key=lambda row: row.group):
            together = list(group)
            sizes = [1] * len(together)
            if shares:
                prompt, read = together[0].num_prompt_tokens, [row.num_read for row in together]
                sizes = within_budget(prompt, read, budget)
            rest = iter(together)
            runs += [list(islice(rest, size)) for size in sizes]
        tokens = [run[0].num_prompt_tokens + sum(row.num_read for row in run) for run in runs]
        return [
            _MicroBatch([row for r in part for row in runs[r]], [len(runs[r]) for r in part])
            for part in microbatches(tokens, budget, is_padded=not shares)
        ]

    def _update_once(self, micro: list[_MicroBatch], rate: float, tally: _Tally) -> None:
        self._optimizer.zero_grad(set_to_none=True)
        losses = []
        for part in micro:
            outcome = self._loss(part, tally)
            outcome.loss.backward()
            self._computing.hand_gradients_over()
            losses.append(outcome.loss.detach())
            tally.parts.append(replace(outcome, loss=losses[-1]))
        loss = torch.stack(losses).sum()
        parameters = [p for group in self._optimizer.param_groups for p in group["params"]]
        norm = clip_gradients(parameters, self._optimizer_config.grad_clip)
        if not (math.isfinite(norm) and math.isfinite(loss.item())):
            self._optimizer.zero_grad(set_to_none=True)
            raise NonFiniteLossError(
                f"agent {self.name!r}, step {self.step}: loss {loss.item()}, gradient norm {norm}. "
                "The weights are those of the last finite step; lower optimizer.learning_rate, "
                "or resume from an earlier checkpoint."
            )
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self._computing.refresh()
        self._optimizer.zero_grad(set_to_none=True)
        tally.losses.append(loss)
        tally.grad_norms.append(norm)

    def _loss(self, part: _MicroBatch, tally: _Tally) -> PolicyLoss:
        prompts = [row.prompt_ids for row in part.rows]
        completions = [row.token_ids for row in part.rows]
        vision = [row.vision for row in part.rows]
        scores = self._score(prompts, completions, part.sizes, vision)
        if part.old_logps_bt is None:
            part.old_logps_bt = scores.logps_bt.detach()
            self._look_at_engine(part, scores, tally)
            tally.entropy_sum.append(scores.entropy_bt.sum())
            tally.num_entropy.append(scores.mask_bt.sum())
            if self._reference is not None:
                with torch.no_grad():
                    reference = self._reference(prompts, completions, part.sizes, vision)
                    part.ref_logps_bt = reference.logps_bt
        return policy_loss(
            scores.logps_bt,
            part.old_logps_bt,
            self._tensor([row.advantage for row in part.rows]),
            scores.mask_bt,
            clip_low=self._grpo.clip_low,
            clip_high=self._grpo.clip_high,
            ref_logps_bt=part.ref_logps_bt,
            kl=self._grpo.kl,
            unbiased_kl=self._grpo.unbiased_kl,
            mismatch_weight_bt=part.mismatch_weight_bt,
            weights_b=self._tensor([row.weight for row in part.rows]),
        )

    def _look_at_engine(self, part: _MicroBatch, scores: Scores, tally: _Tally) -> None:
        engine = [row.engine_logps for row in part.rows if row.engine_logps is not None]
        if not engine:
            return
        engine_logps_bt = pad_sequence([logps.float() for logps in engine], batch_first=True)
        found = engine_mismatch(
            scores.logps_bt,
            engine_logps_bt.to(self._device),
            scores.mask_bt,
            cap=self._grpo.ratio_cap,
        )
        part.mismatch_weight_bt = found.weights_bt
        tally.mismatch_n.append(found.ratios_n)
        tally.num_nan.append(found.num_nan)

    def _tensor(self, values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float32, device=self._device)


def _metrics(plan: Plan, rate: float, tally: _Tally) -> dict[str, float]:
    """One flat record of an update; shares and means are over tokens of forwarded rows."""
    metrics: dict[str, float] = {
        "learning_rate": rate,
        "loss": 0.0,
        "grad_norm": 0.0,
        "groups_flat": plan.groups_flat,
        "groups_unlabelled": plan.groups_unlabelled,
        "groups_forwarded": plan.groups_forwarded,
        "tokens_forwarded": sum(row.num_tokens for row in plan.rows),
    }
    if not tally.losses:
        return metrics
    metrics["loss"] = torch.stack(tally.losses).mean().item()
    metrics["grad_norm"] = sum(tally.grad_norms) / len(tally.grad_norms)
    tokens = torch.stack([part.num_tokens for part in tally.parts]).float()
    for key in ("clip_share", "ratio_mean", "kl_mean"):
        values = [getattr(part, key) for part in tally.parts]
        if values[0] is not None:
            name = key.removesuffix("_mean") if key == "kl_mean" else key
            metrics[name] = ((torch.stack(values) * tokens).sum() / tokens.sum()).item()
    metrics["ratio_min"] = min(part.ratio_min.item() for part in tally.parts)
    metrics["ratio_max"] = max(part.ratio_max.item() for part in tally.parts)
    entropy_sum, num_entropy = torch.stack(tally.entropy_sum), torch.stack(tally.num_entropy)
    metrics["token_entropy"] = (entropy_sum.sum() / num_entropy.sum()).item()
    if tally.mismatch_n:
        metrics["mismatch_nan_tokens"] = torch.stack(tally.num_nan).sum().item()
        ratios_n = torch.cat(tally.mismatch_n)
        if ratios_n.numel():
            metrics["mismatch_mean"] = ratios_n.mean().item()
            metrics["mismatch_min"] = ratios_n.min().item()
            metrics["mismatch_max"] = ratios_n.max().item()
    return metrics


def _enable_checkpointing(model: Any) -> None:
    """Recompute each layer in the backward pass, unless the model already does."""
    if any(getattr(module, "gradient_checkpointing", False) for module in model.modules()):
        return
    # transformers renamed it; the old name warns where the new one exists.
    renamed = getattr(model, "activation_checkpointing_enable", None)
    (renamed or model.gradient_checkpointing_enable)({"use_reentrant": False})
