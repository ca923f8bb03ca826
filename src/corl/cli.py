"""The `corl` command: one function a verb, no logic. Heavy modules load inside the verbs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from corl import __version__
from corl.config import load_recipe
from corl.errors import CorlError, RecipeError
from corl.many_values import ManyValues

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
    loaded = load_recipe(recipe, overrides or [])
    from corl.launch import start_run  # heavy: a recipe's own errors come first
    from corl.show import live_progress, show_outcome

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
    loaded = load_recipe(recipe, overrides or [])
    from corl.launch.preflight import preflight  # heavy: a recipe's own errors come first
    from corl.show import show_preflight

    show_preflight(console, loaded, preflight(loaded))


@app.command()
def study(
    study: Annotated[Path, typer.Argument(help="Study file (YAML).", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Study directory; default: runs/NAME of the study.")
    ] = None,
) -> None:
    """Compare methods on settings over seeds, each measured alike; run again, it continues.

    Example: **corl study recipes/quickstart_study.yaml --out runs/study**
    """
    from corl.show import show_study
    from corl.study import load_study
    from corl.study.run import run_study

    loaded = load_study(study)
    root = out or Path("runs") / loaded.name
    outcome = run_study(loaded, root, console=console)
    show_study(console, outcome, again=f"corl study {study} --out {root}")


@app.command()
def report(
    paths: Annotated[
        list[Path], typer.Argument(help="Run, study or probe directories.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
) -> None:
    """Write one self-contained HTML page about runs, studies and probes.

    Example: **corl report runs/study --out report.html**
    """
    from corl.report import write_report

    written = write_report(paths, out)
    console.print(f"report: {written}", highlight=False, markup=False, soft_wrap=True)


@app.command(cls=ManyValues)
def quickstart(
    seeds: Annotated[
        list[int],
        typer.Option(help="Seeds of the runs: --seeds 0 1 2.", default_factory=lambda: [0, 1, 2]),
    ],
    out: Annotated[Path, typer.Option(help="Where runs and results.json go.")] = Path("quickstart"),
    pretrain: Annotated[
        bool, typer.Option(help="First make the small models again, under OUT/models.")
    ] = False,
    study: Annotated[
        bool, typer.Option("--study", help="Compare the methods, not Co-RL alone: 13 minutes.")
    ] = False,
    all_cells: Annotated[
        bool,
        typer.Option("--all", help="The study with every setting and variant: an hour or more."),
    ] = False,
    vision: Annotated[
        bool,
        typer.Option(
            "--vision", help="The pair that reads pictures, by Co-RL and by its own votes."
        ),
    ] = False,
    steps: Annotated[
        int | None, typer.Option(help="Steps of every run, in place of the recipe's.", min=1)
    ] = None,
) -> None:
    """Run the embedded demonstration: two small models that teach each other.

    Examples: **corl quickstart --seeds 0 1 2 --out quickstart**;
    **corl quickstart --vision --out quickstart_vision**;
    **corl quickstart --study --out runs/quickstart_study**
    """
    from corl.quickstart.demonstration import TEXT, VISION, run_quickstart
    from corl.quickstart.study import run_quickstart_study
    from corl.show import show_study

    if vision and (study or all_cells):
        raise RecipeError("corl quickstart: --vision has no study; leave --study and --all out")
    if not (study or all_cells):
        run_quickstart(
            seeds,
            out,
            console=console,
            demonstration=VISION if vision else TEXT,
            pretrain=pretrain,
            steps=steps,
        )
        return
    outcome = run_quickstart_study(
        seeds, out, console=console, pretrain=pretrain, is_all=all_cells, steps=steps
    )
    show_study(console, outcome, again=f"corl quickstart with the same options --out {out}")


@app.command("eval", cls=ManyValues)
def evaluate(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            help="Checkpoints, or run directories (each agent's trained model).", show_default=False
        ),
    ] = None,
    benchmarks: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=FILE, NAME (from the hub), or OWN.yaml=FILE; several.", show_default=False
        ),
    ] = None,
    completions: Annotated[
        Path | None, typer.Option(help="Grade saved completions in place of asking models.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Settings by name: paper.")] = None,
    samples: Annotated[
        int | None, typer.Option(help="Completions of a row; default: the benchmark's own number.")
    ] = None,
    greedy: Annotated[
        bool, typer.Option("--greedy", help="Also take the most probable completion.")
    ] = False,
    temperature: Annotated[float | None, typer.Option(help="Default 0.6.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Default 0.95.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="New tokens of a completion; default 1024, paper 3072.")
    ] = None,
    chat: Annotated[str | None, typer.Option(help="Chat template: auto, always or never.")] = None,
    system_prompt: Annotated[str | None, typer.Option(help="System message.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the sampling noise.")] = None,
    limit: Annotated[int | None, typer.Option(help="The first so many rows only.")] = None,
    batch_rows: Annotated[
        int | None, typer.Option(help="Completions decoded at once; default 128.")
    ] = None,
    isolation: Annotated[
        Literal["limits", "landlock", "bubblewrap"],
        typer.Option(help="Weakest sandbox that programs may run under."),
    ] = "landlock",
    out: Annotated[Path, typer.Option(help="Where samples and results.json go.")] = Path(
        "runs/eval"
    ),
) -> None:
    """Measure models on benchmarks; run again, it continues.

    Example: **corl eval runs/first --benchmarks gsm8k=gsm8k_test.jsonl math500=math500.jsonl
    --preset paper --out runs/eval**
    """
    from corl.evaluation.suite import EvalSettings, run_suite
    from corl.show_evaluation import show_scores

    settings = EvalSettings.of(
        preset=preset, samples=samples, greedy=greedy, temperature=temperature, top_p=top_p,
        max_tokens=max_tokens, chat=chat, system_prompt=system_prompt, seed=seed, limit=limit,
        batch_rows=batch_rows,
    )  # fmt: skip
    outcome = run_suite(
        models or [], benchmarks or [], settings, out,
        completions=completions, minimum=isolation, console=console,
    )  # fmt: skip
    show_scores(console, outcome)


@app.command(cls=ManyValues)
def ensemble(
    evaluation: Annotated[Path, typer.Argument(help="Directory that `corl eval` wrote.")],
    members: Annotated[list[str], typer.Option(help="Models of it, by their folders' names.")],
    votes: Annotated[int, typer.Option(help="Completions that vote, in equal parts.", min=2)] = 8,
    weights: Annotated[
        list[float] | None, typer.Option(help="Weight of each member's votes.", show_default=False)
    ] = None,
) -> None:
    """Pool several models' completions into one majority, beside each of them alone.

    Example: **corl ensemble runs/eval --members first-left first-right --votes 8**
    """
    from corl.evaluation.suite.ensembles import ensemble_scores
    from corl.evaluation.suite.recorded import read_recorded
    from corl.show_evaluation import show_ensembles

    scores = ensemble_scores(read_recorded(evaluation), members, votes=votes, weights=weights)
    show_ensembles(console, scores, evaluation / "ensemble.json")


@app.command(cls=ManyValues)
def comas(
    evaluation: Annotated[Path, typer.Argument(help="Directory that `corl eval` wrote.")],
    benchmarks: Annotated[
        list[str] | None,
        typer.Option(help="NAME=FILE of the benchmarks of code, for their examples."),
    ] = None,
) -> None:
    """Score an evaluation by the CoMAS protocol: five samples, one answer by consistency.

    Example: **corl comas runs/eval --benchmarks humaneval=humaneval.jsonl.gz mbpp=mbpp.jsonl**
    """
    from corl.evaluation.suite.comas import comas_of
    from corl.show_evaluation import show_comas

    show_comas(console, comas_of(evaluation, benchmarks or []), evaluation / "comas.json")


@app.command(cls=ManyValues)
def contamination(
    prompts: Annotated[Path, typer.Argument(help="Prompt file of the training.")],
    benchmarks: Annotated[list[str], typer.Option(help="NAME=FILE or OWN.yaml=FILE; several.")],
    field: Annotated[str, typer.Option(help="Field of the prompt's text.")] = "prompt",
    answer_field: Annotated[str, typer.Option(help="Field of the label, if any.")] = "answer",
    answer_marker: Annotated[
        str, typer.Option(help="The label is the text behind this marker, such as ####.")
    ] = "",
    similarity: Annotated[float, typer.Option(help="Least similarity of a near-duplicate.")] = 0.7,
    out: Annotated[Path, typer.Option(help="Where every match goes.")] = Path("contamination.json"),
) -> None:
    """Find benchmark problems that a training file holds, word for word or nearly.

    Example: **corl contamination prompts.jsonl --benchmarks math500=math500.jsonl --field problem**
    """
    from corl.config import PromptsConfig
    from corl.evaluation.suite.contaminated import contamination_of
    from corl.show_evaluation import show_contamination

    config = PromptsConfig(
        file=str(prompts), field=field, answer_field=answer_field, answer_marker=answer_marker,
        id_field="",
    )  # fmt: skip
    show_contamination(console, contamination_of(config, benchmarks, similarity=similarity), out)


@app.command(cls=ManyValues)
def basin(
    probe: Annotated[
        Path | None,
        typer.Argument(
            help="kappa.json of `corl kappa --samples 8`, or its directory; none: theory alone.",
            show_default=False,
        ),
    ] = None,
    pair: Annotated[
        list[str] | None, typer.Option(help="Two models only: --pair A B.", show_default=False)
    ] = None,
    completions: Annotated[
        int, typer.Option(help="Completions of a prompt in the run to predict.", min=2, max=64)
    ] = 8,
    out: Annotated[
        Path | None, typer.Option(help="Where pictures and basins.json go.", show_default=False)
    ] = None,
) -> None:
    """Predict what self-reward and Co-RL can reach, and draw the basins.

    Example: **corl basin runs/kappa --pair left right --out runs/basin**
    """
    from corl.diversity.forecast import forecast, portraits, write_forecast
    from corl.show_basins import show_forecast, show_theory

    if probe is None:
        drawn = portraits(out / "portrait", completions=completions) if out else []
        show_theory(console, completions, drawn)
        return
    found = forecast(probe, pair=pair or (), completions=completions)
    show_forecast(console, found, write_forecast(found, out) if out else [])


@app.command("pair")
def pair_models(
    probe: Annotated[Path, typer.Argument(help="kappa.json of `corl kappa`, or its directory.")],
    prompts: Annotated[
        str, typer.Option(help="Unlabelled training prompts that the recipe names.")
    ] = "train.jsonl",
    completions: Annotated[
        int, typer.Option(help="Completions of a prompt in the run.", min=2, max=64)
    ] = 8,
    out: Annotated[
        Path | None, typer.Option(help="Recipe file to write.", show_default=False)
    ] = None,
) -> None:
    """Say who should teach whom: the ring that a probe favours, and weak teachers.

    Example: **corl pair runs/kappa --prompts train.jsonl --out ring.yaml**
    """
    from corl.diversity.counts import read_probe
    from corl.diversity.pairing import pair, write_recipe
    from corl.show_basins import show_pairing

    probed = read_probe(probe)
    found = pair(probed, completions=completions)
    if out:
        write_recipe(probed, found, out, prompts=prompts, completions=completions)
    show_pairing(console, found, out)


@app.command()
def doctor() -> None:
    """Say what this machine has, what is missing, and what to do about it.

    Example: **corl doctor**
    """
    from corl.doctor import examine
    from corl.show_evaluation import show_findings

    show_findings(console, examine())


@app.command()
def kappa(
    models: Annotated[
        list[str],
        typer.Argument(
            help="Checkpoints, run directories, or saved completions (JSONL, or a folder of them).",
            show_default=False,
        ),
    ],
    data: Annotated[str, typer.Option(help="Problems; labels may be missing.", show_default=False)],
    problems: Annotated[int, typer.Option(help="Use the first so many.", min=1)] = 500,
    samples: Annotated[
        int | None,
        typer.Option(help="Completions of a problem; default 1, of saved ones all.", min=1),
    ] = None,
    temperature: Annotated[float, typer.Option(help="0 takes the most probable token.")] = 0.8,
    seeds: Annotated[
        int, typer.Option(help="Passes of each model; from 2 on it meets itself, too.", min=1)
    ] = 1,
    max_tokens: Annotated[int, typer.Option(help="New tokens of a completion.", min=1)] = 1024,
    field: Annotated[str, typer.Option(help="Field of the prompt's text.")] = "prompt",
    answer_field: Annotated[str, typer.Option(help="Field of the label.")] = "answer",
    answer_marker: Annotated[str, typer.Option(help="The label stands behind it: '####'.")] = "",
    suffix: Annotated[str, typer.Option(help="Text put behind every prompt.")] = "",
    kind: Annotated[str, typer.Option(help="Answer kind: math, choice, code, text.")] = "math",
    batch_rows: Annotated[int, typer.Option(help="Completions decoded at once.", min=1)] = 128,
    out: Annotated[Path, typer.Option(help="Where completions and kappa.json go.")] = Path(
        "runs/kappa"
    ),
) -> None:
    """Measure before training how far models err on the same problems; again, it continues.

    Example: **corl kappa ./model-a ./model-b --data problems.jsonl --seeds 2 --out runs/kappa**
    """
    from corl.config import PromptsConfig
    from corl.diversity.probe import run_probe
    from corl.diversity.probe_settings import ProbeSettings
    from corl.show_kappa import show_kappa

    prompts = PromptsConfig(
        file=data, limit=problems, field=field, answer_field=answer_field,
        answer_marker=answer_marker, suffix=suffix, kind=kind,
    )  # fmt: skip
    settings = ProbeSettings(
        samples=samples, temperature=temperature, seeds=seeds, max_tokens=max_tokens,
        batch_rows=batch_rows,
    )  # fmt: skip
    show_kappa(console, run_probe(models, prompts, settings, out, console=console))


@app.command()
def rephrase(
    prompts: Annotated[
        Path, typer.Argument(help="Prompt file: .jsonl, .json, .parquet.", show_default=False)
    ],
    to: Annotated[Path, typer.Option(help="The .jsonl to write; its journal stands beside it.")],
    endpoint: Annotated[
        str | None, typer.Option(help="OpenAI-compatible URL, such as http://localhost:8000/v1.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model name there.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option(help="Environment variable that holds the key; default: none.")
    ] = None,
    local: Annotated[
        Path | None, typer.Option(help="A checkpoint here, in place of an endpoint.")
    ] = None,
    field: Annotated[str, typer.Option(help="Field of the prompt's text.")] = "prompt",
    id_field: Annotated[str, typer.Option(help="Field of the row's id.")] = "id",
    kind: Annotated[str, typer.Option(help="Answer kind: math, choice, code, text.")] = "math",
    limit: Annotated[int | None, typer.Option(help="The first so many rows only.", min=1)] = None,
    tries: Annotated[int, typer.Option(help="Rewrites of a row, until one passes.", min=1)] = 3,
    concurrency: Annotated[int, typer.Option(help="Requests at once.", min=1, max=512)] = 8,
    requests_per_minute: Annotated[
        float | None, typer.Option(help="Rate limit, attempts included.", min=0.01)
    ] = None,
    attempts: Annotated[
        int, typer.Option(help="Requests for one reply before it is given up.", min=1)
    ] = 6,
    timeout: Annotated[float, typer.Option(help="Seconds for one whole answer.", min=0.1)] = 120.0,
    temperature: Annotated[float, typer.Option(help="Of the rewriter.", min=0)] = 0.7,
    max_tokens: Annotated[int, typer.Option(help="New tokens of a reply.", min=1)] = 2048,
    extra_body: Annotated[
        str | None, typer.Option(help="Further fields of a request: '{\"top_p\": 0.9}'.")
    ] = None,
    solver: Annotated[
        Path | None, typer.Option(help="Checkpoint whose votes must agree on both wordings.")
    ] = None,
    votes: Annotated[int, typer.Option(help="The solver's completions of a wording.", min=1)] = 8,
    solver_tokens: Annotated[int, typer.Option(help="New tokens of one of them.", min=1)] = 1024,
    seed: Annotated[int, typer.Option(help="Of local sampling.")] = 0,
    require_all: Annotated[
        bool, typer.Option("--require-all", help="Fail while any row keeps its own words.")
    ] = False,
) -> None:
    """Rewrite every prompt in other words that keep its answer; run again, it continues.

    Example: **corl rephrase math.jsonl --to math_rewritten.jsonl
    --endpoint http://localhost:8000/v1 --model my-model --api-key-env MY_KEY**
    """
    from corl.config import PromptsConfig
    from corl.diversity.rephrase import asked_rewriter, asked_solver
    from corl.diversity.rephrase import rephrase as rewrite_all
    from corl.diversity.rephrase.show import show_rephrased

    rewriter = asked_rewriter(
        endpoint=endpoint, model=model, api_key_env=api_key_env, extra=extra_body, local=local,
        temperature=temperature, max_tokens=max_tokens, concurrency=concurrency,
        per_minute=requests_per_minute, attempts=attempts, timeout=timeout, seed=seed,
    )  # fmt: skip
    outcome = rewrite_all(
        PromptsConfig(file=str(prompts), field=field, id_field=id_field, kind=kind, limit=limit),
        to, rewriter, tries=tries, require_all=require_all, console=console,
        solver=asked_solver(solver, votes=votes, max_tokens=solver_tokens, seed=seed),
    )  # fmt: skip
    show_rephrased(console, outcome)


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
