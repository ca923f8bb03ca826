"""The section of probes: how the models' errors overlap, drawn from what `corl kappa` wrote.

Read defensively like everything here: what is no figure is shown as none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from corl.report.html import Html, Node, el, href, join, percent, scrolled, shown_path
from corl.report.records import number

PROBE, PREDICTIONS = "kappa.json", "basins.json"

_SHARES = {
    "exactly_one_right": "exactly one right",
    "same_wrong_answer": "same wrong answer",
    "at_least_one_right": "at least one right",
}
_FEWEST_SAMPLES = 4
"""With fewer, a problem's chance of a right answer is too coarse to draw."""
_MOST_PORTRAITS, _MOST_POINTS = 6, 600
_LEFT, _TOP, _SIDE = 34, 8, 190

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Probe:
    """A directory that `corl kappa` wrote."""

    root: Path
    models: tuple[Object, ...]
    pairs: tuple[Object, ...]
    predictions: tuple[Object, ...]
    """Of `corl basin`, where it was run."""


def load_probe(root: Path) -> Probe:
    """What can be read of a probe; nothing where its file is damaged."""
    tree = _objects(root / PROBE)
    return Probe(
        root,
        tuple(_dicts(tree.get("models"))),
        tuple(_dicts(tree.get("pairs"))),
        tuple(_dicts(_objects(root / PREDICTIONS).get("predictions"))),
    )


def probes_section(probes: Sequence[Probe], base: Path) -> Html | None:
    """Tables, the heat map and the phase portraits of every probe; None where there is none."""
    parts = [part for probe in probes for part in _probe(probe, base)]
    return join(*parts) if parts else None


def _probe(probe: Probe, base: Path) -> Iterator[Node]:
    file = probe.root / PROBE
    source = el("a", shown_path(file, base), href=href(file, base))
    yield el(
        "p",
        "Low kappa: the two err on different problems, and each can teach the other. Dashed line: "
        "the separatrix, above which a pair that labels each other climbs. Figures: ",
        source,
        class_="note",
    )
    labelled = [pair for pair in probe.pairs if _value(pair.get("kappa")) is not None]
    if labelled:
        yield el("div", _heat_map(probe), class_="heat")
    yield _pair_table(probe)
    portraits = [drawn for a, b in combinations(probe.models, 2) if (drawn := _portrait(a, b))]
    if portraits:
        yield el("div", *portraits[:_MOST_PORTRAITS], class_="charts")
    if probe.predictions:
        yield _prediction_table(probe, base)


def _heat_map(probe: Probe) -> Html:
    names = [_name(model) for model in probe.models]
    kappas = {
        frozenset((str(pair.get("a")), str(pair.get("b")))): _value(pair.get("kappa"))
        for pair in probe.pairs
        if pair.get("a") != pair.get("b")
    }
    rows = [
        el("tr", el("th", one, scope="row"), *(_cell(kappas, one, other) for other in names))
        for one in names
    ]
    head = el("tr", el("th", "kappa"), *(el("th", name, scope="col") for name in names))
    return scrolled(el("thead", head), el("tbody", *rows), label="Cohen's kappa of right and wrong")


def _cell(kappas: Mapping[frozenset[str], float | None], one: str, other: str) -> Html:
    kappa = kappas.get(frozenset((one, other))) if one != other else None
    if kappa is None:
        return el("td", "–")
    weight = round(100 * min(1.0, max(0.0, kappa)))
    return el("td", f"{kappa:.2f}", style=f"--k: {weight}%", class_="k")


def _pair_table(probe: Probe) -> Html:
    titles = ("model", "and", "kappa", "at most", *_SHARES.values(), "same answer")
    rows = []
    for pair in probe.pairs:
        free = pair.get("label_free")
        agreement = free.get("agreement") if isinstance(free, dict) else None
        reason = pair.get("kappa_reason")
        rows.append(
            el(
                "tr",
                el("th", str(pair.get("a")), scope="row"),
                el("td", str(pair.get("b"))),
                el("td", _ratio(pair.get("kappa")), title=str(reason) if reason else None,
                   data_label="kappa"),
                el("td", _ratio(pair.get("kappa_max")), data_label="at most"),
                *(el("td", _share(pair.get(key)), data_label=title)
                  for key, title in _SHARES.items()),
                el("td", _share(agreement), data_label="same answer"),
            )
        )  # fmt: skip
    head = el("tr", *(el("th", title, scope="col") for title in titles))
    return scrolled(el("thead", head), el("tbody", *rows), label="Pairs", stacks=True)


def _prediction_table(probe: Probe, base: Path) -> Html:
    file = probe.root / PREDICTIONS
    titles = ("method", "pupil", "teacher", "start", "predicted", "signal", "gained", "lost")
    rows = [
        el(
            "tr",
            el("th", str(one.get("method")).replace("_", " "), scope="row"),
            el("td", str(one.get("pupil"))),
            el("td", str(one.get("teacher"))),
            *(
                el("td", percent(number(one.get(key))), data_label=key)
                for key in ("start", "ceiling", "signal")
            ),
            *(el("td", _count(one.get(key)), data_label=key) for key in ("gained", "lost")),
        )
        for one in probe.predictions
    ]
    note = el(
        "p",
        "Predicted accuracy in % after very many steps, each problem moved by itself alone: ",
        el("a", shown_path(file, base), href=href(file, base)),
        class_="note",
    )
    head = el("tr", *(el("th", title, scope="col") for title in titles))
    table = scrolled(el("thead", head), el("tbody", *rows), label="Predictions", stacks=True)
    return join(note, table)


def _portrait(a: Object, b: Object) -> Html | None:
    """Each problem at its chances of a right answer; None where samples are too few."""
    points = list(zip(_chances(a), _chances(b), strict=False))
    if not points or any(None in point for point in points):
        return None

    def x(share: float) -> float:
        return round(_LEFT + _SIDE * share, 1)

    def y(share: float) -> float:
        return round(_TOP + _SIDE * (1 - share), 1)

    dots = [
        el("circle", cx=x(one), cy=y(other), r=2.4, class_="dot")
        for one, other in points[:_MOST_POINTS]
        if one is not None and other is not None
    ]
    frame = f"M{x(0)} {y(0)}H{x(1)}V{y(1)}H{x(0)}Z"
    ticks = [
        el("text", shown, x=place[0], y=place[1], text_anchor=anchor)
        for shown, place, anchor in (
            ("0", (_LEFT - 5, y(0) + 4), "end"),
            ("1", (_LEFT - 5, y(1) + 8), "end"),
            ("1", (x(1), y(0) + 14), "middle"),
        )
    ]
    svg = el(
        "svg",
        el("path", d=frame, class_="axis"),
        el("path", d=f"M{x(0)} {y(1)}L{x(1)} {y(0)}", class_="separatrix"),
        *dots,
        *ticks,
        viewBox=f"0 0 {_LEFT + _SIDE + 12} {_TOP + _SIDE + 22}",
        role="img",
        aria_label=f"{len(points)} problems by the two models' chances of a right answer",
        class_="portrait",
    )
    caption = el(
        "figcaption",
        el("b", f"{_name(a)} and {_name(b)}"),
        el("span", f"{_name(a)} to the right, {_name(b)} upwards"),
    )
    return el("figure", caption, svg)


def _chances(model: Object) -> list[float | None]:
    chances = []
    for problem in _dicts(model.get("problems")):
        right, samples = number(problem.get("right")), number(problem.get("samples"))
        fits = right is not None and samples is not None and samples >= _FEWEST_SAMPLES
        chances.append(
            min(1.0, right / samples) if fits and right is not None and samples else None
        )
    return chances


def _share(figure: object) -> str:
    value = _value(figure)
    bounds = _bounds(figure)
    shown = percent(value)
    return shown if bounds is None else f"{shown} [{percent(bounds[0])}, {percent(bounds[1])}]"


def _ratio(figure: object) -> str:
    value, bounds = _value(figure), _bounds(figure)
    if value is None:
        return "–"
    return f"{value:.2f}" + ("" if bounds is None else f" [{bounds[0]:.2f}, {bounds[1]:.2f}]")


def _value(figure: object) -> float | None:
    return number(figure.get("value") if isinstance(figure, dict) else figure)


def _bounds(figure: object) -> tuple[float, float] | None:
    if not isinstance(figure, dict):
        return None
    low, high = number(figure.get("low")), number(figure.get("high"))
    return None if low is None or high is None else (low, high)


def _count(value: object) -> str:
    return f"{len(value):,}" if isinstance(value, list) else "–"


def _name(model: Object) -> str:
    return str(model.get("name", "–"))


def _objects(file: Path) -> Object:
    try:
        tree = json.loads(file.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _dicts(value: object) -> list[Object]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
