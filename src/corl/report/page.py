"""`write_report`: one HTML page without a single address that it could load from.

A content policy in the page forbids all loading and every script but its own, so that a
completion that got past the escaping could still do nothing. There is no clock in
the page: the same directories give the same bytes.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from corl.errors import CheckpointError
from corl.report.conditions import Condition, group_runs
from corl.report.curves import curves_section
from corl.report.html import Html, Node, el, join
from corl.report.picks import load_picks, picks_section
from corl.report.probes import load_probe, probes_section
from corl.report.records import BASE, MEASURES, Study, load_study
from corl.report.rollouts import rollouts_section
from corl.report.runs import health_section, runs_section
from corl.report.table import headline, measures_present, sources
from corl.report.training import training_table
from corl.run.files import write_atomically

MAX_BYTES = 5_000_000
_ROLLOUTS = 2_600_000


def write_report(paths: Sequence[Path], out: Path) -> Path:
    """Write the report of runs and studies, and return its file.

    out: an .html file, or a directory that gets `report.html`. Links in the page are
    relative to it, so it moves together with the directories that it shows.
    Raises CheckpointError for a path that is no run or study, or an unwritable out.
    """
    study = load_study(paths)
    out = Path(out)
    file = out if out.suffix.lower() in (".html", ".htm") else out / "report.html"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, render(study, file.parent))
    except OSError as error:
        raise CheckpointError(f"the report {file} cannot be written: {error}") from None
    return file


def render(study: Study, base: Path) -> bytes:
    """The page, UTF-8, under MAX_BYTES: rollouts give way first, then the density of curves.

    base: the folder that links are relative to.
    """
    conditions = group_runs(study.runs)
    budget, max_points = _ROLLOUTS, 80
    while True:
        page = _document(study, conditions, base, budget, max_points)
        encoded = page.encode("utf-8", "replace")
        if len(encoded) < MAX_BYTES or budget < 10_000:
            return encoded
        budget, max_points = budget // 3, max(12, max_points // 2)


def _document(
    study: Study, conditions: Sequence[Condition], base: Path, budget: int, max_points: int
) -> str:
    sections = [
        ("results", "Results", _results(conditions, base)),
        ("overlap", "Error overlap", _overlap(study, base)),
        ("curves", "Curves", curves_section(conditions, max_points=max_points)),
        ("health", "Health", health_section(conditions)),
        ("checkpoints", "Checkpoints", _checkpoints(study, conditions, base)),
        ("rollouts", "Rollouts", rollouts_section(conditions, base, budget=budget)),
        ("runs", "Runs", runs_section(conditions, base)),
        ("sources", "Sources", _sources(conditions, base)),
    ]
    shown = [(key, title, body) for key, title, body in sections if body]
    style, script = _asset("report.css"), _asset("report.js")
    digest = b64encode(sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    policy += "; base-uri 'none'; form-action 'none'"
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"Co-RL: {study.title}"),
        el("style", Html(style)),
    )
    body = el(
        "body",
        el("a", "Skip to the results", href="#results", class_="skip"),
        _header(study, conditions),
        el(
            "nav",
            *(el("a", title, href=f"#{key}") for key, title, _ in shown),
            aria_label="Sections",
        ),
        el(
            "main",
            *(
                el("section", el("h2", title), content, id=key, tabindex="-1")
                for key, title, content in shown
            ),
        ),
        el("script", Html(script)),
    )
    return "<!doctype html>\n" + el("html", head, body, lang="en")


def _header(study: Study, conditions: Sequence[Condition]) -> Html:
    runs = [run for run in study.runs if run.method != BASE]
    failed = sum(run.status == "failed" for run in runs)
    done = sum(run.status == "done" for run in runs)
    alarmed = sum(any(alarm.is_alarm for alarm in run.alarms) for run in runs)
    steps = max((run.last_step for run in runs), default=0)
    methods = {condition.method for condition in conditions} - {BASE}
    facts = (
        (f"{done} of {len(runs)}", "runs done", ""),
        (failed, "failed", "bad" if failed else ""),
        (alarmed, "with an alarm", "warn" if alarmed else ""),
        (len(methods), "method" if len(methods) == 1 else "methods", ""),
        (steps, "steps", ""),
    )
    return el(
        "header",
        el("p", "Co-RL report", class_="kicker"),
        el("h1", study.title),
        el(
            "ul",
            *(el("li", el("b", value), words, class_=tone or None) for value, words, tone in facts),
            class_="facts",
        )
        if runs
        else None,
        el("ul", *(el("li", note) for note in study.notes), class_="notes")
        if study.notes
        else None,
    )


def _results(conditions: Sequence[Condition], base: Path) -> Html | None:
    """The headline table, one tab a measure."""
    rated = [c for c in conditions if any(run.results for run in c.runs) or _has_failed(c)]
    measures = measures_present(rated)
    if not measures:
        said = (
            "No held-out accuracy was measured in these runs. Below are training's own figures, "
            "from the first tenth of the steps to the last, with the 95 % t-interval of the "
            "last over seeds. A reward that rises is no evidence that answers are right."
        )
        return join(el("p", said, class_="note"), training_table(conditions, base))
    tabs = [
        el(
            "button",
            MEASURES[measure],
            role="tab",
            id=f"tab-{measure}",
            aria_controls=f"measure-{measure}",
            type="button",
        )
        for measure in measures
    ]
    panels = [
        el(
            "div",
            headline(rated, measure, base),
            role="tabpanel",
            id=f"measure-{measure}",
            aria_labelledby=f"tab-{measure}",
        )
        for measure in measures
    ]
    note = (
        "Mean over seeds with its 95 % t-interval over seeds below it; one seed has no interval. "
        "Ring: before training. Dot: after. Ticks: seeds. Bar: interval. Every method that "
        "was run is listed. A mean leads to its seeds, a seed's figure to its file."
    )
    return el(
        "div",
        el("div", *tabs, role="tablist", aria_label="Measure", class_="tabs"),
        *panels,
        el("p", note, class_="note"),
        class_="tabbed",
    )


def _overlap(study: Study, base: Path) -> Html | None:
    return probes_section([load_probe(root) for root in study.probes], base)


def _checkpoints(study: Study, conditions: Sequence[Condition], base: Path) -> Html | None:
    files = dict.fromkeys(
        run.results_file.with_name("selection.json")
        for run in study.runs
        if run.results_file is not None
    )
    return picks_section([line for file in files for line in load_picks(file)], conditions, base)


def _has_failed(condition: Condition) -> bool:
    return any(run.status == "failed" for run in condition.runs)


def _sources(conditions: Sequence[Condition], base: Path) -> Node:
    found = sources(conditions, base)
    if not found:
        return None
    note = "Before → after of each seed, by measure, in %."
    return join(el("p", note, class_="note"), found)


def _asset(name: str) -> str:
    """A file of this package, fit to stand inside its element."""
    return files("corl.report").joinpath(name).read_text(encoding="utf-8")
