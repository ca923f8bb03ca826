"""The errors a user of Co-RL can meet.

Every message names the thing, what was seen, and what to do. Each class also
inherits the standard type that a caller would expect to catch.
"""


class CorlError(Exception):
    """Root of every error that Co-RL raises on purpose."""


class RecipeError(CorlError, ValueError):
    """A recipe, or something it points to, cannot be used as written."""


class PromptError(RecipeError):
    """A prompt file is missing, malformed or does not fit its recipe."""


class ModelError(RecipeError):
    """A checkpoint is missing or cannot be loaded as a language model."""


class ExchangeError(CorlError, RuntimeError):
    """A ballot is not the one that was due: another run, step, row list or policy."""


class ExchangeTimeout(ExchangeError, TimeoutError):
    """A peer's ballot did not arrive in time."""


class ExchangeLost(ExchangeError):
    """What carries the ballots cannot be reached any more."""


class ExchangeStopped(ExchangeError):
    """A wait for ballots was ended by a stop that this process was asked for."""


class CheckpointError(CorlError, RuntimeError):
    """A run directory cannot be written, read or resumed."""


class NonFiniteLossError(CorlError, FloatingPointError):
    """A loss or gradient is NaN or infinite."""


class AgentFailed(CorlError, RuntimeError):
    """An agent's process ended with an error; the run is over."""


class AgentLost(AgentFailed):
    """An agent was lost to what it runs on: killed, cut off, silent. The same step may well
    succeed elsewhere or later."""

    def __init__(self, reason: str, advice: str = "") -> None:
        """reason: who was lost, and how; advice: where to look, how to go on."""
        super().__init__(f"{reason}{advice}")
        self.reason = reason


def first_line(error: BaseException) -> str:
    """The first line of an error's text, else its class: for messages of one line."""
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__
