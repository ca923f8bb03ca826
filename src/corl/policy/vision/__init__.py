"""Prompts with images: the family's processor, its tensors, and what they mean to a forward pass.

Everything here is about one family or another of vision-language models; sampler, scorer and
learner only hand `VisionInputs` through.
"""
