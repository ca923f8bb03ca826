"""Metrics to TensorBoard, Weights & Biases or trackio, by a key in the recipe.

Each optional library is imported only where its key is set. The launcher is the
only process that logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from corl.config import Recipe
from corl.errors import RecipeError
from corl.run.directory import RunDirectory

Log = Callable[[dict[str, float], int], None]


class Trackers:
    """All trackers of a run."""

    def __init__(self, logs: list[Log]) -> None:
        self._logs = logs

    def log(self, record: dict[str, Any]) -> None:
        """Send one agent's step as `AGENT/METRIC` values."""
        if not self._logs:
            return
        agent, step = record["agent"], record["step"]
        flat = {**record, **{f"time_{key}": value for key, value in record["time"].items()}}
        values = {
            f"{agent}/{key}": float(value)
            for key, value in flat.items()
            if isinstance(value, int | float) and key != "step"
        }
        for log in self._logs:
            log(values, step)


@contextmanager
def open_trackers(recipe: Recipe, run: RunDirectory, *, first_step: int) -> Iterator[Trackers]:
    """Open the trackers that the recipe names, close them at the end.

    Raises RecipeError where the library behind a key is not installed.
    """
    tracking = recipe.tracking
    with ExitStack() as stack:
        logs: list[Log] = []
        if tracking.tensorboard:
            logs.append(_tensorboard(run, first_step, stack))
        if tracking.wandb:
            logs.append(_like_wandb("wandb", tracking.wandb, recipe, run, stack))
        if tracking.trackio:
            logs.append(_like_wandb("trackio", tracking.trackio, recipe, run, stack))
        yield Trackers(logs)


def missing_trackers(recipe: Recipe) -> list[str]:
    """Libraries that the recipe's tracking keys need and that are not installed."""
    from importlib.util import find_spec

    wanted = {
        "tensorboard": recipe.tracking.tensorboard,
        "wandb": recipe.tracking.wandb,
        "trackio": recipe.tracking.trackio,
    }
    return [name for name, is_on in wanted.items() if is_on and find_spec(name) is None]


def _tensorboard(run: RunDirectory, first_step: int, stack: ExitStack) -> Log:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise RecipeError("tracking.tensorboard needs corl[tensorboard]") from None
    writer = SummaryWriter(str(run.root / "tensorboard"), purge_step=first_step)
    stack.callback(writer.close)

    def log(values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    return log


def _like_wandb(
    library: str, project: str, recipe: Recipe, run: RunDirectory, stack: ExitStack
) -> Log:
    """Weights & Biases, or trackio, which keeps to the same calls."""
    import importlib

    try:
        module = importlib.import_module(library)
    except ImportError:
        raise RecipeError(f"tracking.{library} needs corl[{library}]") from None
    module.init(project=project, name=run.root.name, config=recipe.model_dump(mode="json"))
    stack.callback(module.finish)
    return lambda values, step: module.log(values, step=step)
