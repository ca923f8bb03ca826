"""The `corl` command: one function a verb, no logic. Heavy modules load inside the verbs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from corl import __version__
from corl.config import load_recipe
from corl.errors import CorlError

app = typer.Typer(
    help="Co-RL: train language models by their peers' votes, without a single label.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
console = Console()

RecipeArgument = Annotated[Path, typer.Argument(help="Recipe file (YAML).", show_default=False)]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        help="Recipe keys to change, as KEY=VALUE: steps=20 agents.0.model=DIR.",
        show_default=False,
    ),
]


@app.command()
def train(
    recipe: RecipeArgument,
    overrides: Overrides = None,
    out: Annotated[
        Path | None, typer.Option(help="Run directory; default: runs/NAME of the recipe.")
    ] = None,
) -> None:
    """Train a cohort from a recipe.

    Example: **corl train recipes/quickstart.yaml --out runs/first steps=20 seed=1**
    """
    from corl.launch import start_run
    from corl.show import live_progress, show_outcome

    loaded = load_recipe(recipe, overrides or [])
    outcome = start_run(loaded, out or Path("runs") / loaded.name, progress=live_progress(console))
    show_outcome(console, outcome)


@app.command()
def resume(
    run: Annotated[Path, typer.Argument(help="Directory of an unfinished run.")],
) -> None:
    """Continue a run that was stopped or killed, from its newest whole checkpoint.

    Example: **corl resume runs/first**
    """
    from corl.launch import resume_run
    from corl.show import live_progress, show_outcome

    show_outcome(console, resume_run(run, progress=live_progress(console)))


@app.command()
def check(recipe: RecipeArgument, overrides: Overrides = None) -> None:
    """Validate a recipe whole, without loading a weight: models, prompts, ring, memory.

    Example: **corl check recipes/quickstart.yaml agents.0.model=./my-model**
    """
    from corl.launch.preflight import preflight
    from corl.show import show_preflight

    loaded = load_recipe(recipe, overrides or [])
    show_preflight(console, loaded, preflight(loaded))


@app.command()
def quickstart(
    seeds: Annotated[int | None, typer.Option(help="Seeds of the runs: --seeds 0 1 2.")] = None,
    more_seeds: Annotated[list[int] | None, typer.Argument(hidden=True)] = None,
    out: Annotated[Path, typer.Option(help="Where runs and results.json go.")] = Path("quickstart"),
    pretrain: Annotated[
        bool, typer.Option(help="First make the small models again, under OUT/models.")
    ] = False,
) -> None:
    """Run the embedded demonstration: two small models that teach each other.

    Example: **corl quickstart --seeds 0 1 2 --out quickstart**
    """
    from corl.quickstart.study import run_quickstart

    chosen = [0, 1, 2] if seeds is None else [seeds, *(more_seeds or [])]
    run_quickstart(chosen, out, console=console, pretrain=pretrain)


def _show_version(wanted: bool) -> None:
    if wanted:
        console.print(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None: ...


def main() -> None:
    """Run the command; an error of Co-RL's own is one line on stderr per problem and exit 1."""
    try:
        app()
    except CorlError as error:
        for line in str(error).splitlines():
            print(f"error: {line}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
