"""Training health: detectors over the metrics stream, and what a run does when one speaks.

Nothing is imported here: `corl.config` takes its section from `health.config`, and the rest of
the package stands above it.
"""
