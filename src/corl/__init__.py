"""Co-RL: label-free reinforcement learning of a cohort by its peers' votes."""

__version__ = "0.1.0"
