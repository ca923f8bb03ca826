"""Probes written by hand: what `corl kappa` leaves, for tests of predictions and pairing."""

from typing import Any

LABEL = "number@1:7"


def problem(id_: str, right: int, wrong: dict[str, int], samples: int = 8) -> dict[str, Any]:
    """One problem's samples; those in no count stated no answer."""
    answers = {LABEL: right, **wrong} if right else dict(wrong)
    return {"id": id_, "right": right, "samples": samples, "answers": answers, "label": LABEL}


def model(name: str, problems: list[dict[str, Any]]) -> dict[str, Any]:
    """One model of a `kappa.json`."""
    return {"name": name, "model": f"./checkpoints/{name}", "problems": problems}


def worked_example(each: int = 6) -> list[dict[str, Any]]:
    """Half of the problems at (7/8, 2/8), half at (2/8, 7/8); their wrong answers differ."""
    left, right = [], []
    for index in range(2 * each):
        is_first = index < each
        left.append(problem(f"p{index}", 7 if is_first else 2, {"a": 1 if is_first else 6}))
        right.append(problem(f"p{index}", 2 if is_first else 7, {"b": 6 if is_first else 1}))
    return [model("left", left), model("right", right)]


def four_with_a_weak_one(each: int = 8) -> list[dict[str, Any]]:
    """Three able models, each wrong in its own way on its own problems, and one hardly ever right.

    `weak` makes mistakes of its own and, more often, those of `third`: it harms that one most.
    """
    names = ("first", "second", "third")
    built: dict[str, list[dict[str, Any]]] = {name: [] for name in (*names, "weak")}
    for index in range(3 * each):
        id_, fails = f"p{index}", names[index % 3]
        for name in names:
            wrong = {f"of {name}": 6} if name == fails else {f"of {name}": 2}
            built[name].append(problem(id_, 2 if name == fails else 6, wrong))
        built["weak"].append(problem(id_, 1, {"of third": 4, "of weak": 2}))
    return [model(name, problems) for name, problems in built.items()]
