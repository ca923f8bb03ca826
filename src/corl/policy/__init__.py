"""Policies: checkpoints in, trainable models out, ordinary Hugging Face directories again."""

from corl.policy.facts import ModelFacts, check_model
from corl.policy.load import Policy, load_policy, save_merged, save_policy

__all__ = ["ModelFacts", "Policy", "check_model", "load_policy", "save_merged", "save_policy"]
