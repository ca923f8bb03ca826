"""Sampling: prompts in, completions with their log-probabilities out."""
