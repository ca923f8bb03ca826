"""`kappa.json`: a probe's figures and every model's counts of answers, as plain JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from corl.answers import POLICY_VERSION
from corl.config import PromptsConfig
from corl.diversity.answer_table import Answers, Key
from corl.diversity.comparison import Pair, Probe
from corl.diversity.counts import FILE_NAME
from corl.diversity.drawing import FORMAT
from corl.diversity.intervals import Interval, share_interval
from corl.diversity.probe_settings import ProbeSettings
from corl.errors import CheckpointError
from corl.run.files import write_atomically

_DIGITS = 6


def write_probe(
    probe: Probe, prompts: PromptsConfig, settings: ProbeSettings | None, out: Path
) -> Path:
    """Write OUT/kappa.json and return its path.

    settings: how models were asked; None where all completions stood on disk. Raises
    CheckpointError where the file cannot be written.
    """
    content = {
        "format": FORMAT,
        "settings": {
            "prompts": prompts.model_dump(mode="json"),
            "problems": len(probe.ids),
            "labelled": sum(label is not None for label in probe.labels),
            "asked": None if settings is None else asdict(settings),
            "answer_rules": POLICY_VERSION,
        },
        "models": [_model(one, probe) for one in probe.models],
        "pairs": [_pair(one) for one in probe.pairs],
        "notes": list(probe.notes),
    }
    path = out / FILE_NAME
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise CheckpointError(f"{path} cannot be written: {error.strerror}") from None
    return path


def accuracy(one: Answers, labels: Sequence[Key]) -> tuple[float, Interval | None] | None:
    """Mean share of right samples over labelled problems; None where none is labelled."""
    shares = [
        sum(group) / len(group)
        for group, label in zip(one.right(labels), labels, strict=True)
        if label is not None
    ]
    if not shares:
        return None
    return sum(shares) / len(shares), share_interval(shares)


def _model(one: Answers, probe: Probe) -> dict[str, Any]:
    measured = accuracy(one, probe.labels)
    rights = one.right(probe.labels)
    return {
        "name": one.name,
        "model": one.model,
        "samples": one.samples,
        "accuracy": None if measured is None else _figure(*measured),
        "no_answer": round(one.no_answer, _DIGITS),
        "problems": [
            {
                "id": id_,
                "right": None if label is None else sum(right),
                "samples": tally.samples,
                "answers": dict(tally.counts),
                "label": label,
            }
            for id_, label, right, tally in zip(
                probe.ids, probe.labels, rights, one.tallies(), strict=True
            )
        ],
    }


def _pair(pair: Pair) -> dict[str, Any]:
    free = pair.label_free
    tree: dict[str, Any] = {"a": pair.a.name, "b": pair.b.name, "seeds": list(pair.seeds)}
    if pair.overlap is not None:
        one = pair.overlap
        tree |= {
            "n": one.n,
            "kappa": _figure(one.kappa, one.kappa_interval),
            "kappa_reason": one.kappa_reason,
            "kappa_max": None if one.kappa_max is None else round(one.kappa_max, _DIGITS),
            "exactly_one_right": _figure(one.exactly_one_right, one.exactly_one_right_interval),
            "same_wrong_answer": _figure(one.same_wrong_answer, one.same_wrong_answer_interval),
            "at_least_one_right": _figure(one.at_least_one_right, one.at_least_one_right_interval),
            "accuracy_a": _figure(one.accuracy_a, one.accuracy_a_interval),
            "accuracy_b": _figure(one.accuracy_b, one.accuracy_b_interval),
        }
    tree["label_free"] = {
        "agreement": _figure(free.agreement, free.agreement_interval),
        "beyond_chance": _rounded(free.beyond_chance),
        "minority_agreement": _figure(free.minority_agreement, free.minority_agreement_interval),
        "kappa_estimate": _rounded(free.kappa_estimate),
        "reason": free.reason,
    }
    return tree


def _figure(value: float | None, interval: Interval | None) -> dict[str, float | None] | None:
    if value is None:
        return None
    low, high = (None, None) if interval is None else interval
    return {"value": _rounded(value), "low": _rounded(low), "high": _rounded(high)}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
