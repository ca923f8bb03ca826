"""Recipes: what a run is made of, typed and checked.

`sections` holds every key with its default and meaning, `recipe` the rules that
tie them together, `loading` files, presets and overrides. Only rules of the
recipe itself live here. What needs a model, a prompt file or the supervision
method is checked by `corl.launch.preflight`. No torch: `corl --help` and
`corl check` stay quick.
"""

from corl.config.loading import load_recipe, parse_recipe, resolve_source
from corl.config.lora import LoraConfig
from corl.config.presets import load_preset, preset_names
from corl.config.recipe import Recipe
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
    SamplingOverride,
    SupervisionConfig,
    TrackingConfig,
    VoteConfig,
)

__all__ = [
    "AgentConfig",
    "BatchConfig",
    "CheckpointConfig",
    "EvaluationConfig",
    "ExchangeConfig",
    "GrpoConfig",
    "LoraConfig",
    "OptimizerConfig",
    "PromptsConfig",
    "Recipe",
    "RolloutConfig",
    "SamplingConfig",
    "SamplingOverride",
    "Section",
    "SupervisionConfig",
    "TrackingConfig",
    "VoteConfig",
    "load_preset",
    "load_recipe",
    "parse_recipe",
    "preset_names",
    "resolve_source",
]
