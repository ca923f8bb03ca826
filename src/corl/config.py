"""Recipes: what a run is made of, typed and checked.

Precedence: defaults, then the recipe file, then `key=value` overrides. Paths
in a file are relative to that file, paths in an override to the working
directory, and `corl:PATH` names a file shipped with the package; all are made
absolute on loading, so a saved recipe means the same from anywhere.

Only single-file rules live here. What needs a model, a prompt file or the
supervision method is checked by `corl.launch.preflight`. No torch: `corl --help` and
`corl check` stay quick.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self, get_args

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)

from corl.errors import RecipeError

PACKAGE_PREFIX = "corl:"
_PATH_KEYS = ("model", "file")
# `prompts: FILE` and `supervision: NAME` stand for the section with that one key.
_SHORTHAND = {"prompts": "file", "supervision": "method"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class PromptsConfig(_Section):
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
    """Name of the field that identifies a row across agents; without it rows go by position."""
    kind: str = "math"
    """Answer kind of rows that name none: math, choice, code, text, or a class by dotted path."""
    suffix: str = ""
    """Text put behind every prompt, such as an instruction to box the answer."""
    limit: PositiveInt | None = None
    """Use the first so many rows only."""


class SamplingConfig(_Section):
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


class SamplingOverride(_Section):
    """An agent's own sampling; fields left out follow the recipe's `sampling`."""

    temperature: float | None = Field(None, gt=0, le=10)
    """Softmax temperature."""
    max_tokens: PositiveInt | None = None
    """Most tokens of one completion."""
    stop: tuple[str, ...] | None = None
    """Texts at which a completion ends."""


class AgentConfig(_Section):
    """One agent of the cohort."""

    name: str
    """Unique in the cohort; letters, digits, dot, dash, underscore. Names folders and streams."""
    model: str
    """Directory or hub id of a causal language model."""
    prompts: PromptsConfig | None = None
    """The agent's own prompts, such as a rewrite of the others'; rows must align by id."""
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
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Compute type; auto: float32 on CPU, float32 weights with bfloat16 compute on GPU."""
    device: str = "auto"
    """Device such as cpu or cuda:1; auto: a GPU of its own where there is one."""
    gpus: int = Field(1, ge=0)
    """GPUs the agent may use where GPUs exist."""
    threads: PositiveInt | None = None
    """CPU threads; left out: cores // agents."""
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


class BatchConfig(_Section):
    """The size of a step."""

    prompts: PositiveInt = 16
    """Prompts per agent and step."""
    completions: int = Field(8, ge=2)
    """Completions per prompt (K)."""


class VoteConfig(_Section):
    """How completions become one vote."""

    ties: str = "abstain"
    """What a shared first place gives; abstain: no vote. docs/answers.md lists the others."""
    min_support: float = Field(0.0, ge=0, le=1)
    """Share of all completions that the winner must reach, else the agent abstains."""
    lenient: bool = False
    """Take the last number of a completion that marks no answer."""


class SupervisionConfig(_Section):
    """Who rewards whom."""

    method: str = "peer"
    """Name of a method (docs/methods.md), or a class by dotted path."""
    ring: tuple[str, ...] | None = None
    """Order of the agents on the directed ring; left out: their order in the recipe."""
    options: dict[str, Any] = {}
    """Settings of the method itself."""


class GrpoConfig(_Section):
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
    """Weight of the KL term to the starting policy; 0: no reference model is kept."""
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


class OptimizerConfig(_Section):
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


class RolloutConfig(_Section):
    """The sampler."""

    engine: Literal["transformers"] = "transformers"
    """transformers: our decode loop on the model itself."""
    max_rows: PositiveInt = 512
    """Completions decoded at once."""
    save_every: int = Field(10, ge=0)
    """Write a page of completions every so many steps; 0: never."""
    save_prompts: PositiveInt = 2
    """Prompts on such a page."""


class CheckpointConfig(_Section):
    """When the cohort is saved."""

    every: int = Field(50, ge=0)
    """Steps between checkpoints; 0: only when a run ends or is interrupted."""
    keep: PositiveInt = 2
    """Newest whole-cohort checkpoints kept."""


class ExchangeConfig(_Section):
    """How agents wait for one another."""

    timeout_s: float = Field(1800.0, gt=0)
    """Longest wait for one ballot before the run ends naming the late agent."""


class TrackingConfig(_Section):
    """Where metrics go beside `metrics.jsonl`."""

    tensorboard: bool = False
    """Write event files under RUN/tensorboard."""
    wandb: str | None = None
    """Weights & Biases project."""
    trackio: str | None = None
    """trackio project."""


class Recipe(_Section):
    """A whole run."""

    name: str = "corl"
    """Shown in progress and trackers."""
    seed: int = Field(0, ge=0, lt=2**63)
    """Seeds sampling noise; each agent draws its own stream from it."""
    data_seed: int | None = Field(None, ge=0, lt=2**63)
    """Seeds the order of prompts, the same for every agent; left out: `seed`."""
    steps: PositiveInt | None = None
    """Steps of training; left out: as many as `epochs` needs."""
    epochs: float = Field(1.0, gt=0)
    """Passes over the prompts when `steps` is left out."""
    agents: tuple[AgentConfig, ...] = Field(min_length=1)
    """The cohort, in ring order unless `supervision.ring` says otherwise."""
    prompts: PromptsConfig | None = None
    """Prompts of every agent that names none of its own."""
    supervision: SupervisionConfig = SupervisionConfig()
    """Who rewards whom."""
    votes: VoteConfig = VoteConfig()
    """How completions become votes."""
    batch: BatchConfig = BatchConfig()
    """The size of a step."""
    sampling: SamplingConfig = SamplingConfig()
    """How completions are drawn."""
    grpo: GrpoConfig = GrpoConfig()
    """The policy update."""
    optimizer: OptimizerConfig = OptimizerConfig()
    """The optimiser and its schedule."""
    rollout: RolloutConfig = RolloutConfig()
    """The sampler."""
    checkpoint: CheckpointConfig = CheckpointConfig()
    """When the cohort is saved."""
    exchange: ExchangeConfig = ExchangeConfig()
    """How agents wait for one another."""
    tracking: TrackingConfig = TrackingConfig()
    """Where metrics go."""
    launch: Literal["auto", "in_process", "processes"] = "auto"
    """in_process: agents take turns in one process; processes: one process an agent."""

    @model_validator(mode="after")
    def _agents_are_told_apart(self) -> Self:
        names = [agent.name for agent in self.agents]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two agents are named {twice[0]!r}; give each a name of its own")
        for agent in self.agents:
            if agent.prompts is None and self.prompts is None:
                raise ValueError(
                    f"agent {agent.name!r} has no prompts; set `prompts` for all or for the agent"
                )
        return self

    @model_validator(mode="after")
    def _ring_visits_everyone(self) -> Self:
        ring, names = self.supervision.ring, [agent.name for agent in self.agents]
        if ring is not None and sorted(ring) != sorted(names):
            raise ValueError(
                f"supervision.ring is {list(ring)}, which does not name each of {names} once"
            )
        return self

    @model_validator(mode="after")
    def _weights_fit_the_optimiser(self) -> Self:
        for agent in self.agents:
            if (self.optimizer.kind == "adamw_bf16") != (agent.dtype == "bfloat16"):
                raise ValueError(
                    f"agent {agent.name!r} has dtype {agent.dtype} under optimizer.kind "
                    f"{self.optimizer.kind}: adamw_bf16 and dtype bfloat16 go together"
                )
        return self

    @model_validator(mode="after")
    def _training_samples_the_policy(self) -> Self:
        if self.sampling.top_p != 1.0 or self.sampling.top_k != 0:
            raise ValueError(
                "sampling.top_p and sampling.top_k cut the distribution that the learner trains; "
                "training needs top_p 1 and top_k 0"
            )
        return self

    @property
    def ring(self) -> tuple[str, ...]:
        """Agent names in ring order; each is graded by the one before it."""
        return self.supervision.ring or tuple(agent.name for agent in self.agents)

    @property
    def order_seed(self) -> int:
        """Seed of the prompts' order."""
        return self.seed if self.data_seed is None else self.data_seed

    def agent(self, name: str) -> AgentConfig:
        """The agent of that name."""
        return next(agent for agent in self.agents if agent.name == name)

    def prompts_of(self, agent: AgentConfig) -> PromptsConfig:
        """The agent's prompts: its own, or everybody's."""
        prompts = agent.prompts or self.prompts
        if prompts is None:
            raise RecipeError(f"agent {agent.name!r} has no prompts")
        return prompts

    def sampling_of(self, agent: AgentConfig) -> SamplingConfig:
        """The agent's sampling: the recipe's with the agent's own fields on top."""
        return self.sampling.model_copy(update=agent.sampling.model_dump(exclude_none=True))

    def optimizer_of(self, agent: AgentConfig) -> OptimizerConfig:
        """The agent's optimiser: the recipe's with the agent's learning rate."""
        if agent.learning_rate is None:
            return self.optimizer
        return self.optimizer.model_copy(update={"learning_rate": agent.learning_rate})

    def to_yaml(self) -> str:
        """The resolved recipe as text that `load_recipe` reads back to an equal one."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def load_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe file, apply `a.b=value` overrides and check it.

    Raises RecipeError with one line per problem: unknown keys name the nearest
    right one, wrong values name the key and what it takes.
    """
    path = Path(path)
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecipeError(f"recipe {path} does not exist; give the path of a YAML file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"recipe {path} cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise RecipeError(f"recipe {path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(tree, dict):
        raise RecipeError(f"recipe {path} holds no keys; write at least `agents:` and `prompts:`")
    tree = _expand(tree, path.resolve().parent)
    for override in overrides:
        _apply_override(tree, override)
    return parse_recipe(tree, source=str(path))


def parse_recipe(tree: dict[str, Any], *, source: str = "recipe") -> Recipe:
    """Check an already loaded tree of recipe keys. Raises RecipeError."""
    try:
        return Recipe.model_validate(_expand(tree, Path.cwd()))
    except ValidationError as error:
        lines = [_explain(Recipe, problem) for problem in error.errors()]
        raise RecipeError("\n".join(f"{source}: {line}" for line in lines)) from None


def _explain(model: type[BaseModel], problem: Any) -> str:
    loc = [str(part) for part in problem["loc"]]
    key = ".".join(loc)
    if problem["type"] == "extra_forbidden":
        known = _fields_at(model, loc[:-1])
        near = difflib.get_close_matches(loc[-1], known, n=1, cutoff=0.5)
        hint = f"did you mean `{near[0]}`?" if near else f"known keys: {', '.join(known)}"
        return f"unknown key `{key}`; {hint}"
    if problem["type"] == "missing":
        return f"key `{key}` is missing"
    message = str(problem["msg"]).removeprefix("Value error, ")
    if problem["type"] == "value_error":
        return message
    return f"`{key}` is {problem['input']!r}: {message}"


def _fields_at(model: type[BaseModel], loc: Sequence[str]) -> list[str]:
    current: type[BaseModel] = model
    for part in loc:
        field = current.model_fields.get(part)
        if field is not None:
            current = _section_in(field.annotation) or current
    return list(current.model_fields)


def _section_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _section_in(arg))), None)


def _apply_override(tree: dict[str, Any], override: str) -> None:
    key, sign, text = override.partition("=")
    if not sign or not key:
        raise RecipeError(f"override {override!r} is not of the form key=value")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        value = text
    *parents, last = key.strip().split(".")
    node: Any = tree
    for part in parents:
        node = _child(node, part, key)
    if isinstance(node, list):
        raise RecipeError(f"override `{key}` names no field; write `{key}.FIELD=value`")
    expanded = _expand({last: value}, Path.cwd())
    if last in _SHORTHAND and isinstance(value, str) and isinstance(node.get(last), dict):
        node[last].update(expanded[last])
    else:
        node.update(expanded)


def _child(node: Any, part: str, key: str) -> Any:
    if isinstance(node, list):
        names = [item.get("name") if isinstance(item, dict) else None for item in node]
        index = int(part) if part.isdigit() else names.index(part) if part in names else -1
        if not 0 <= index < len(node):
            raise RecipeError(f"override `{key}`: there is no entry {part!r} of {len(node)}")
        return node[index]
    if node.get(part) is None:
        node[part] = {}
    if not isinstance(node[part], dict | list):
        raise RecipeError(f"override `{key}`: `{part}` is {node[part]!r}, which has no keys")
    return node[part]


def _expand(node: Any, base: Path) -> Any:
    """Write shorthands out and make paths absolute."""
    if isinstance(node, list):
        return [_expand(item, base) for item in node]
    if not isinstance(node, dict):
        return node
    written_out = {
        key: {_SHORTHAND[key]: value} if key in _SHORTHAND and isinstance(value, str) else value
        for key, value in node.items()
    }
    return {
        key: resolve_source(value, base)
        if key in _PATH_KEYS and isinstance(value, str)
        else _expand(value, base)
        for key, value in written_out.items()
    }


def resolve_source(source: str, base: Path) -> str:
    """Make a path absolute; leave hub ids alone.

    `corl:PATH` is a file of the package. Text that starts with `.`, `/` or `~`,
    ends like a file, or exists under `base` is a path.
    """
    if source.startswith(PACKAGE_PREFIX):
        return str(Path(__file__).parent / source.removeprefix(PACKAGE_PREFIX))
    path = Path(source).expanduser()
    is_path = (
        source.startswith((".", "/", "~"))
        or path.suffix in (".jsonl", ".json", ".gz", ".parquet")
        or (base / path).exists()
    )
    return str((base / path).resolve()) if is_path else source
