"""The probe before training: every model answers the same problems, and their errors are compared.

One sampling pass a model; then figures with labels (`corl.diversity.overlap`) where the data has
them, and without (`corl.diversity.label_free`) in any case. `OUT/kappa.json` is what
`corl basin` and `corl pair` read; docs/kappa.md states its fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from corl.config import PromptsConfig
from corl.config.loading import resolve_source
from corl.data.prompts import PromptRow, load_prompts
from corl.data.reading import check_kinds
from corl.diversity.answer_table import Answers, read_answers
from corl.diversity.comparison import Probe, compare
from corl.diversity.drawing import Pass, draw
from corl.diversity.probe_settings import ProbeSettings
from corl.diversity.record import write_probe
from corl.diversity.sources import Asked, Saved, Source, find_sources
from corl.errors import PromptError
from corl.evaluation.completions import Asking
from corl.evaluation.samples import Sample, aligned_samples
from corl.evaluation.suite.progress import EvalProgress

if TYPE_CHECKING:
    from corl.policy import Policy


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """A probe and where its figures lie."""

    probe: Probe
    file: Path


def run_probe(
    models: Sequence[str],
    prompts: PromptsConfig,
    settings: ProbeSettings,
    out: Path,
    *,
    console: Console,
) -> ProbeOutcome:
    """Ask models (or read saved completions), compare them and write OUT/kappa.json.

    models: checkpoints, runs, JSONL files or directories of them. Everything is checked before a
    weight is loaded. Raises PromptError, ModelError, RecipeError or CheckpointError.
    """
    prompts = prompts.model_copy(update={"file": resolve_source(prompts.file, Path.cwd())})
    rows = load_prompts(prompts).rows
    check_kinds(rows)
    sources = find_sources(models)
    is_limited = len(rows) == prompts.limit
    saved = {
        one.name: aligned_samples(
            one.path, [row.id for row in rows], samples=settings.samples, limited=is_limited
        )
        for one in sources
        if isinstance(one, Saved)
    }
    asked = [one for one in sources if isinstance(one, Asked)]
    for one in asked:
        _check_asked(one, rows)
    passes = [_pass(one, take, settings) for one in asked for take in range(settings.seeds)]
    drawn = _draw_all(passes, rows, out, console)
    takes = [_answers(one, rows, saved, drawn) for one in sources]
    probe = compare(takes, rows)
    notes = list(probe.notes)
    if settings.seeds > 1 and saved:
        notes.append(
            f"{', '.join(saved)}: saved completions have no further seed, so no row with themselves"
        )
    if len(sources) == 1 and settings.seeds == 1:
        notes.append("one model and one seed: nothing to compare; name another or --seeds 2")
    probe = replace(probe, notes=tuple(notes))
    return ProbeOutcome(probe, write_probe(probe, prompts, settings if asked else None, out))


def _check_asked(source: Asked, rows: Sequence[PromptRow]) -> None:
    """Read config, tokenizer and every prompt, but no weight."""
    from corl.policy.facts import check_model

    subject = source.subject
    facts = check_model(subject.source, trust_remote_code=subject.trust_remote_code)
    measure = subject.measure()
    for row in rows:
        length = measure.length(row)
        if length >= facts.context_length:
            raise PromptError(
                f"problem {row.id!r} has {length} tokens, and {source.name} reads "
                f"{facts.context_length}: no room for a completion"
            )


def _pass(source: Asked, take: int, settings: ProbeSettings) -> Pass:
    subject = source.subject
    return Pass(
        source=source,
        take=take,
        samples=settings.samples or 1,
        asking=Asking(
            max_tokens=settings.max_tokens,
            temperature=settings.temperature,
            stop=subject.stop,
            system_prompt=subject.system_prompt,
            chat=subject.chat,
            chat_template_kwargs=subject.chat_template_kwargs,
            max_rows=settings.batch_rows,
        ),
    )


def _draw_all(
    passes: Sequence[Pass], rows: Sequence[PromptRow], out: Path, console: Console
) -> dict[tuple[str, int], list[list[Sample]]]:
    """[P][S] samples by model and take; one model is in memory at a time."""
    if not passes:
        return {}
    total = sum(len(rows) * one.samples for one in passes)
    drawn: dict[tuple[str, int], list[list[Sample]]] = {}
    loaded: dict[str, Policy] = {}

    def load(source: Asked) -> Policy:
        if source.name not in loaded:
            loaded.clear()
            loaded[source.name] = _load(source)
        return loaded[source.name]

    with EvalProgress(total, console=console) as progress:

        def advance(source: Asked, completions: int, is_now: bool) -> None:
            if is_now:
                progress.advance(completions, source.name)
            else:
                progress.skip(completions)

        for one in passes:
            drawn[one.source.name, one.take] = draw(
                one,
                rows,
                out,
                load=partial(load, one.source),
                advance=partial(advance, one.source),
            )
    return drawn


def _load(source: Asked) -> Policy:
    from corl.policy import load_policy

    subject = source.subject
    return load_policy(
        subject.source,
        dtype=subject.dtype,
        device=subject.device,
        trust_remote_code=subject.trust_remote_code,
    )


def _answers(
    source: Source,
    rows: Sequence[PromptRow],
    saved: dict[str, list[list[Sample]]],
    drawn: dict[tuple[str, int], list[list[Sample]]],
) -> list[Answers]:
    """One table a pass."""
    if isinstance(source, Saved):
        groups = [saved[source.name]]
    else:
        groups = [made for (name, _), made in sorted(drawn.items()) if name == source.name]
    return [read_answers(source.name, source.model, rows, one) for one in groups]
