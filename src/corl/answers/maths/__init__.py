"""The canonical key of a maths answer: equal keys, and only they, mean the same answer.

A key is a pure function of the text. It is computed with exact rationals where the
value is rational and with `decimal` elsewhere; no clock, process, float or computer
algebra system takes part, so a key never depends on the machine or its load. What
lies outside the grammar or its budgets is keyed by its normalised text.
"""

from corl.answers.maths.key import maths_key

__all__ = ["maths_key"]
