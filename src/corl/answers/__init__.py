"""From a completion to its answer, from an answer to its key, from keys to a vote.

Pure: no model, device, clock or process, and no symbolic algebra. Every input,
however hostile, is read within fixed budgets, so that a reward never depends on
the machine's load. docs/answers.md states each policy.
"""

from corl.answers.answer import POLICY_VERSION, Answer
from corl.answers.code import behaviour
from corl.answers.read import KINDS, canonical, read_answer
from corl.answers.vote import TIES, Vote, majority

__all__ = [
    "KINDS",
    "POLICY_VERSION",
    "TIES",
    "Answer",
    "Vote",
    "behaviour",
    "canonical",
    "majority",
    "read_answer",
]
