"""Golds of MATH, MATH-500, AMC and GSM8K: nearly all have a structured key, in any dress.

The data is not shipped. Set CORL_DATA to a folder that holds math_level345_train.jsonl,
math500.jsonl, amc_83.jsonl, gsm8k_train.jsonl and gsm8k_test.jsonl (fields as published:
`answer`; in GSM8K the gold follows ####); without it these tests are skipped.
"""

import json
import os
from pathlib import Path

import pytest

from corl.answers.maths import maths_key

FILES = ["math_level345_train", "math500", "amc_83", "gsm8k_train", "gsm8k_test"]
STRUCTURED = {
    "number", "real", "complex", "tuple", "set", "interval", "union", "matrix", "expression",
    "equation", "inequality", "assignment", "ratio", "based", "clock", "infinity",
}  # fmt: skip
folder = os.environ.get("CORL_DATA")

pytestmark = pytest.mark.skipif(not folder, reason="CORL_DATA names no folder with the golds")


def golds(name: str) -> list[str]:
    lines = (Path(str(folder)) / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [str(json.loads(line)["answer"]).split("####")[-1].strip() for line in lines]


@pytest.fixture(scope="module")
def distinct() -> list[str]:
    """Every distinct gold that is an answer."""
    every = {gold for name in FILES for gold in golds(name)}
    return sorted(gold for gold in every if maths_key(gold) is not None)


@pytest.mark.parametrize("name", FILES)
def test_at_least_99_percent_are_structured(name: str):
    keys = [maths_key(gold) for gold in golds(name)]
    usable = [key for key in keys if key is not None]
    structured = sum(key.split(":")[0] in STRUCTURED for key in usable)
    assert structured >= 0.99 * len(usable)


def test_no_gold_is_compared_as_raw_text(distinct: list[str]):
    assert [gold for gold in distinct if str(maths_key(gold)).startswith("string:")] == []


def test_the_empty_golds_and_none_are_no_answers():
    missing = [gold for gold in golds("math_level345_train") if maths_key(gold) is None]
    assert sorted(missing) == ["", "", "None", "None"]


DRESSES = {
    "dollars and a stop": lambda gold: f"${gold}$.",
    "display brackets": lambda gold: rf"\[ {gold} \]",
    "a box": lambda gold: rf"\boxed{{{gold}}}",
    "dfrac": lambda gold: gold.replace(r"\frac", r"\dfrac").replace(r"\tfrac", r"\dfrac"),
    "spaces": lambda gold: f"  {gold.replace(' ', '  ')} ",
    "left and right": lambda gold: _stretched(gold),
    "no left and right": lambda gold: gold.replace(r"\left", "").replace(r"\right", ""),
    "a minus sign": lambda gold: gold.replace("-", "−"),
}


def _stretched(gold: str) -> str:
    """With stretchy brackets, where the gold has none and its brackets are plain."""
    if "\\left" in gold or "\\text" in gold or "\\{" in gold:
        return gold
    for opener in "([":
        gold = gold.replace(opener, rf"\left{opener} ")
    for closer in ")]":
        gold = gold.replace(closer, rf" \right{closer}")
    return gold.replace(r"\sqrt\left[ ", r"\sqrt[").replace("\\sqrt[4 \\right]", "\\sqrt[4]")


@pytest.mark.parametrize("dress", DRESSES)
def test_a_dressed_gold_keeps_its_key(dress: str, distinct: list[str]):
    changed = [
        (gold, DRESSES[dress](gold))
        for gold in distinct
        if maths_key(DRESSES[dress](gold)) != maths_key(gold)
    ]
    assert changed == []


def test_a_numeric_gold_with_a_unit_keeps_its_key(distinct: list[str]):
    for gold in distinct:
        key = str(maths_key(gold))
        has_unit = any(mark in gold for mark in (r"\text", r"\mbox", "=", ":"))
        if key.startswith(("number:", "real:")) and not has_unit and not gold.endswith("."):
            assert maths_key(rf"{gold} \text{{ cm}}") == key, gold
            assert maths_key(rf"{gold}\mbox{{ square units}}.") == key, gold
