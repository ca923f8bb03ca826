"""A whole recipe, and the rules that tie its sections together.

What needs a model, a prompt file or the supervision method is checked by
`corl.launch.preflight`.
"""

from __future__ import annotations

from typing import Literal, Self

import yaml
from pydantic import Field, PositiveInt, model_validator

from corl.config.cluster import RayConfig
from corl.config.restarts import RestartsConfig
from corl.config.section import Section
from corl.config.sections import (
    AgentConfig,
    BatchConfig,
    CheckpointConfig,
    EvaluationConfig,
    ExchangeConfig,
    GrpoConfig,
    OptimizerConfig,
    PromptsConfig,
    RolloutConfig,
    SamplingConfig,
    SupervisionConfig,
    TrackingConfig,
    VoteConfig,
)
from corl.config.sites import SitesConfig
from corl.errors import RecipeError
from corl.run.health.config import HealthConfig


class Recipe(Section):
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
    rewritten: PromptsConfig | None = None
    """Second wording of the prompts, for every agent that names none of its own."""
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
    evaluation: EvaluationConfig = EvaluationConfig()
    """Benchmarks measured while training."""
    exchange: ExchangeConfig = ExchangeConfig()
    """How agents wait for one another."""
    restarts: RestartsConfig = RestartsConfig()
    """What follows when an agent or its node dies."""
    tracking: TrackingConfig = TrackingConfig()
    """Where metrics go."""
    health: HealthConfig = HealthConfig()
    """When a run is taken to be ill, and what follows."""
    launch: Literal["auto", "in_process", "processes", "ray", "site"] = "auto"
    """in_process: agents take turns in one process; processes: one process an agent; ray: one
    process an agent, anywhere in a Ray cluster (docs/ray.md); site: in_process, with peers
    elsewhere."""
    ray: RayConfig = RayConfig()
    """How `launch: ray` joins a cluster."""
    sites: SitesConfig | None = None
    """Peers that live elsewhere, and the broker of votes (docs/sites.md)."""

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
        if self.sites is not None:
            here = sorted(set(names) & set(self.sites.peers))
            if here:
                raise ValueError(f"agent {here[0]!r} lives here, and among sites.peers; drop one")
            if ring is None:
                raise ValueError("set supervision.ring: every site has to name the same one")
            names += self.sites.peers
        if ring is not None and sorted(ring) != sorted(names):
            raise ValueError(
                f"supervision.ring is {list(ring)}, which does not name each of {names} once"
            )
        return self

    @model_validator(mode="after")
    def _sites_are_launched_as_such(self) -> Self:
        if (self.launch == "site") > (self.sites is not None):
            raise ValueError("launch: site needs a section `sites`, which names broker and peers")
        if self.sites is not None and self.launch not in ("auto", "site"):
            raise ValueError(
                f"with `sites`, this site's agents take turns in one process; drop launch: "
                f"{self.launch}"
            )
        return self

    @model_validator(mode="after")
    def _weights_fit_the_optimiser(self) -> Self:
        for agent in self.agents:
            if agent.lora is not None:
                continue  # `launch.adapter_check` knows every agent with adapters
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

    def rewritten_of(self, agent: AgentConfig) -> PromptsConfig | None:
        """The second wording of the agent's prompts: its own, or everybody's, if there is one."""
        return agent.rewritten or self.rewritten

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
