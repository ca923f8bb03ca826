"""The embedded demonstration: a small task, small families of models, and their planted errors.

Importing this package loads neither torch nor transformers; `task` and `corpus` stay pure.
"""
