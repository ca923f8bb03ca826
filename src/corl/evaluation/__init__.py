"""Measuring a policy: benchmarks, graders, and the sandbox for generated code.

Light on purpose: importing this package imports no torch and starts nothing.
"""
