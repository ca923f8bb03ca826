"""The sections of a recipe: every key, its default, and a sentence on what it does.

Frozen pydantic models that refuse unknown keys. Rules that tie several sections
together stand with `Recipe`.
"""

from __future__ import annotations

import re
from typing import Any, Literal, Self

from pydantic import Field, PositiveInt, field_validator, model_validator

from corl.config.lora import LoraConfig
from corl.config.resources import Resources
from corl.config.section import Section

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class PromptsConfig(Section):
    """Where prompts come from and how a row is read."""

    file: str
    """JSONL, JSON (both also .gz) or Parquet file, or the id of a hub data set."""
    split: str = "train"
    """Split of a hub data set; files have none."""
    field: str = "prompt"
    """Name of the field that holds the prompt's text."""
    answer_field: str = "answer"
    """Name of the label's field. Only `ground_truth` and diagnostics read it; it may be absent."""
    answer_marker: str = ""
    """The label is the text behind this marker's last occurrence, such as GSM8K's `####`."""
    id_field: str = "id"
    """Name of the field that identifies a row across agents; without it rows go by position, and
    so they do where the name is empty."""
    kind: str = "math"
    """Answer kind of rows that name none: math, choice, code, text, or a class by dotted path."""
    suffix: str = ""
    """Text put behind every prompt, such as an instruction to box the answer."""
    images_field: str = ""
    """Name of the field that holds a row's image or list of images (docs/vision.md); empty: the
    prompts are text."""
    image_long_side: int = Field(1024, ge=16)
    """Pixels; an image whose longer side has more is scaled down to it."""
    limit: PositiveInt | None = None
    """Use the first so many rows only."""


class SamplingConfig(Section):
    """How completions are drawn. Nothing of the model's own generation defaults leaks in."""

    temperature: float = Field(1.0, gt=0, le=10)
    """Softmax temperature; the learner applies the same one."""
    max_tokens: PositiveInt = 1024
    """Most tokens of one completion, its stop token included."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Nucleus share. Training refuses any value but 1."""
    top_k: int = Field(0, ge=0)
    """Most likely tokens kept, 0 for all. Training refuses any value but 0."""
    stop: tuple[str, ...] = ()
    """Texts at which a completion ends, beside the model's own stop tokens."""


class SamplingOverride(Section):
    """An agent's own sampling; fields left out follow the recipe's `sampling`."""

    temperature: float | None = Field(None, gt=0, le=10)
    """Softmax temperature."""
    max_tokens: PositiveInt | None = None
    """Most tokens of one completion."""
    stop: tuple[str, ...] | None = None
    """Texts at which a completion ends."""


class AgentConfig(Section):
    """One agent of the cohort."""

    name: str
    """Unique in the cohort; letters, digits, dot, dash, underscore. Names folders and streams."""
    model: str
    """Directory or hub id of a causal language model, or of a vision-language one."""
    prompts: PromptsConfig | None = None
    """The agent's own prompts, such as a rewrite of the others'; rows must align by id."""
    rewritten: PromptsConfig | None = None
    """A second wording of the agent's own prompts, for `co_rewarding_1`; rows align likewise."""
    system_prompt: str | None = None
    """System message, for models with a chat template."""
    chat: Literal["auto", "always", "never"] = "auto"
    """Whether prompts go through the chat template; auto: when the tokenizer has one."""
    chat_template_kwargs: dict[str, Any] = {}
    """Further arguments of the chat template, such as `enable_thinking: false`."""
    learning_rate: float | None = Field(None, gt=0)
    """The agent's own peak learning rate."""
    sampling: SamplingOverride = SamplingOverride()
    """The agent's own sampling settings."""
    dtype: Literal["auto", "float32", "mixed", "bfloat16"] = "auto"
    """Compute type; mixed: float32 weights multiplied in bfloat16; auto: float32 on CPU, mixed on
    GPU."""
    device: str = "auto"
    """Device such as cpu or cuda:1; auto: a GPU of its own where there is one."""
    gpus: int = Field(1, ge=0)
    """GPUs the agent may use where GPUs exist."""
    threads: PositiveInt | None = None
    """CPU threads; left out: `resources.CPU`, else cores // agents."""
    lora: LoraConfig | None = None
    """Train low-rank adapters in place of the model's own weights (docs/lora.md)."""
    resources: Resources = {}
    """What the agent asks of a Ray cluster: CPU, GPU, memory in bytes, and the cluster's own
    resources; left out: a CPU for each thread, and `gpus` where the cluster has GPUs."""
    runtime_env: dict[str, Any] = {}
    """The agent's runtime environment under `launch: ray`, in Ray's words: env_vars, pip and so
    on."""
    train_vision: bool = False
    """Also train a vision-language model's image tower and projector; else they stay frozen."""
    trust_remote_code: bool = False
    """Run Python code that comes with the checkpoint. Off unless you have read that code."""

    @field_validator("name")
    @classmethod
    def _name_is_plain(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"agent name {name!r} must be 1 to 64 letters, digits, dots, dashes or underscores"
            )
        return name


class BatchConfig(Section):
    """The size of a step."""

    prompts: PositiveInt = 16
    """Prompts per agent and step."""
    completions: int = Field(8, ge=2)
    """Completions per prompt (K) that are trained on; a method may let more vote."""


class VoteConfig(Section):
    """How completions become one vote."""

    ties: str = "abstain"
    """What a shared first place gives; abstain: no vote. docs/answers.md lists the others."""
    min_support: float = Field(0.0, ge=0, le=1)
    """Share of all voting completions that the winner must reach, else the agent abstains."""
    lenient: bool = False
    """Take the last number of a completion that marks no answer."""
    isolation: Literal["limits", "landlock", "bubblewrap"] = "landlock"
    """The weakest sandbox that generated programs may run under (docs/sandbox.md)."""


class SupervisionConfig(Section):
    """Who rewards whom."""

    method: str = "peer"
    """Name of a method (docs/methods.md), or a class by dotted path."""
    ring: tuple[str, ...] | None = None
    """Order of the agents on the directed ring; left out: their order in the recipe."""
    options: dict[str, Any] = {}
    """Settings of the method itself."""


class GrpoConfig(Section):
    """The policy update."""

    loss: Literal["grpo", "bnpo", "dr_grpo", "dapo"] = "bnpo"
    """How token losses are averaged (docs/method.md)."""
    estimator: Literal["group", "reinforce_pp"] = "group"
    """Advantages centred in each group (GRPO), or over the batch (REINFORCE++)."""
    scale: Literal["group", "batch", "none"] = "group"
    """What divides centred rewards: the group's deviation, the batch's, or nothing."""
    clip_low: float = Field(0.2, ge=0, lt=1)
    """Lower clip of the probability ratio."""
    clip_high: float = Field(0.2, ge=0)
    """Upper clip of the probability ratio."""
    kl: float = Field(0.0, ge=0)
    """Weight of the KL term to the starting policy (to the teacher, where the method has one);
    0: no reference model is kept."""
    unbiased_kl: bool = True
    """Multiply the KL estimate by the probability ratio (TRL's default); false: plain k3."""
    mask_truncated: bool = False
    """Leave completions that were cut off out of the loss."""
    updates: PositiveInt = 1
    """Optimiser updates per batch of completions."""
    skip_flat_in_denominators: bool = False
    """Leave groups without a reward difference out of the averages as well."""
    ratio_cap: float = Field(3.0, gt=0)
    """Cap of the token weight that corrects engine/learner mismatch."""


class OptimizerConfig(Section):
    """The optimiser and its schedule."""

    kind: Literal["adamw", "adamw_bf16"] = "adamw"
    """adamw: float32 weights and moments, 16 bytes a parameter. adamw_bf16: bfloat16 weights
    and moments with stochastic rounding, 8 bytes a parameter."""
    learning_rate: float = Field(3e-6, gt=0)
    """Peak learning rate."""
    betas: tuple[float, float] = (0.9, 0.95)
    """Decay of the first and second moment."""
    epsilon: float = Field(1e-8, gt=0)
    """Added to the second moment's root."""
    weight_decay: float = Field(0.0, ge=0)
    """Decoupled weight decay."""
    warmup_share: float = Field(0.03, ge=0, le=1)
    """Share of the steps that warm the learning rate up."""
    floor_share: float = Field(0.1, ge=0, le=1)
    """Share of the peak at which the cosine ends."""
    grad_clip: float = Field(1.0, gt=0)
    """Largest gradient norm."""
    tokens_per_microbatch: PositiveInt = 8192
    """Padded tokens forwarded at once."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, more time."""


class RolloutConfig(Section):
    """The sampler."""

    engine: Literal["transformers"] = "transformers"
    """transformers: our decode loop on the model itself."""
    max_rows: PositiveInt = 512
    """Completions decoded at once."""
    save_every: int = Field(10, ge=0)
    """Write a page of completions every so many steps; 0: never."""
    save_prompts: PositiveInt = 2
    """Prompts on such a page."""


class CheckpointConfig(Section):
    """When the cohort is saved."""

    every: int = Field(50, ge=0)
    """Steps between checkpoints; 0: only when a run ends or is interrupted."""
    keep: PositiveInt = 2
    """Newest whole-cohort checkpoints kept."""


class BenchmarkConfig(Section):
    """One benchmark that is measured while training."""

    benchmark: str
    """Its name (`corl eval --help`), or the path of your own YAML file."""
    file: str | None = None
    """Its rows; left out: the hub's."""


class EvaluationConfig(Section):
    """Benchmarks measured while training. Their labels reach no reward, no vote and no peer."""

    every: int = Field(0, ge=0)
    """Steps between evaluations, the untrained and the trained model besides; 0: never."""
    benchmarks: tuple[BenchmarkConfig, ...] = ()
    """What is measured."""
    limit: PositiveInt | None = None
    """The first so many rows of each benchmark only."""
    samples: int | None = Field(None, ge=0)
    """Completions of a row; left out: the benchmark's own number."""
    greedy: bool = False
    """Also take the most probable completion."""
    temperature: float = Field(0.6, gt=0, le=10)
    """Softmax temperature of evaluation."""
    top_p: float = Field(0.95, gt=0, le=1)
    """Nucleus share of evaluation."""
    max_tokens: PositiveInt | None = None
    """Most tokens of one completion; left out: those of training."""

    @model_validator(mode="after")
    def _measures_something(self) -> Self:
        if self.every and not self.benchmarks:
            raise ValueError("evaluation.every is set, but `evaluation.benchmarks` names none")
        return self


class ExchangeConfig(Section):
    """How agents wait for one another."""

    timeout_s: float = Field(1800.0, gt=0)
    """Longest wait for one ballot before the run ends naming the late agent."""


class TrackingConfig(Section):
    """Where metrics go beside `metrics.jsonl`."""

    tensorboard: bool = False
    """Write event files under RUN/tensorboard."""
    wandb: str | None = None
    """Weights & Biases project."""
    trackio: str | None = None
    """trackio project."""
