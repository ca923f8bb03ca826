"""What a rewrite may change and what it may not, by hand and on real pairs."""

import importlib.util
import json
import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corl.diversity.rephrase.checks import CHECKS, faults
from corl.diversity.rephrase.instruction import rewrite_of, user_message

ORIGINAL = (
    "A farmer has 12 cows and buys twice as many at the market for \\$1,500 each. He then sells "
    "$\\frac{1}{3}$ of all his cows. How many cows does he have left?"
)
REWRITTEN = (
    "Twelve cows graze on a farm. Its owner pays \\$1500 apiece for double that number, and later "
    "parts with $\\frac13$ of the whole herd. What is the number of cows that remain?"
)


def checks(rewritten, original=ORIGINAL, **options):
    return {fault.check for fault in faults(original, rewritten, **options)}


def test_other_words_for_the_same_numbers_pass():
    assert faults(ORIGINAL, REWRITTEN) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Twelve", "Thirteen"),
        ("Twelve", "Some"),
        ("\\$1500", "\\$1600"),
        ("\\$1500", "\\$15.00"),
        ("\\frac13", "\\frac14"),
        ("double that", "three times that"),
        ("double that number", "as many more, and 7 sheep"),
    ],
)
def test_a_number_that_changes_goes_missing_or_comes_new_is_refused(old, new):
    assert old in REWRITTEN
    assert "numbers" in checks(REWRITTEN.replace(old, new))


@pytest.mark.parametrize(
    ("original", "rewritten"),
    [
        ("Half of a dozen eggs are broken; how many eggs are whole?",
         "Of twelve eggs, one half is cracked. What number of them stays intact?"),
        ("Find $x$ if $2^{10} = x - 0.5$ holds for it.",
         "For which $x$ does the equation $x - .5 = 2^{10}$ become true?"),
        ("What is 25% of 1,000,000 people in that city?",
         "How many inhabitants are twenty-five percent of one million, in that same town?"),
        ("The third of 100 runners stops. How many run on?",
         "Out of 100 athletes in a race, number 3 gives up. How many are still running?"),
    ],
)  # fmt: skip
def test_numbers_may_be_written_otherwise(original, rewritten):
    assert "numbers" not in checks(rewritten, original)


@pytest.mark.parametrize(
    "hint",
    [
        " The answer is 24.",
        " Hint: first find out how many cows he owns in total.",
        " Solution: he has 36 cows and keeps 24.",
        " So he is left with $\\boxed{24}$.",
    ],
)
def test_hints_and_solutions_are_refused(hint):
    assert "solution" in checks(REWRITTEN + hint)


@pytest.mark.parametrize("end", [-2, -12, len(REWRITTEN) // 2 - len(REWRITTEN)])
def test_what_is_cut_off_is_refused(end):
    assert checks(REWRITTEN[:end]) - {"numbers", "length"} >= {"cut off"}


def test_copies_other_languages_and_nothing_are_refused():
    assert "copy" in checks(ORIGINAL)
    assert "copy" in checks(ORIGINAL.replace("A farmer", "a  farmer").upper())
    assert checks("") == checks(" \n") == {"empty"}
    german = (
        "Ein Bauer hat 12 Kühe und kauft doppelt so viele auf dem Markt für je \\$1,500. Dann "
        "verkauft er $\\frac{1}{3}$ aller seiner Kühe. Wie viele Kühe hat er noch?"
    )
    assert "language" in checks(german)


def test_options_stay_with_their_letters():
    original = "Which of these is prime? (A) 4 (B) 7 (C) 9 (D) 15"
    kept = "Only one number below is prime. Name it: (A) 4 (B) 7 (C) 9 (D) 15"
    swapped = "Only one number below is prime. Name it: (A) 7 (B) 4 (C) 9 (D) 15"
    assert "options" not in checks(kept, original, kind="choice")
    assert "options" in checks(swapped, original, kind="choice")
    assert "options" in checks("Which one of 4, 7, 9 and 15 is a prime?", original, kind="choice")


@given(st.text(max_size=200), st.text(max_size=200))
@settings(max_examples=150, deadline=None)
def test_any_text_is_judged_and_every_fault_is_named(original, rewritten):
    assert {fault.check for fault in faults(original, rewritten)} <= set(CHECKS)


@pytest.mark.parametrize(
    "text",
    ["9" * 50_000, "\\frac{" * 20_000, "$" * 50_000, "one hundred and " * 5_000, "(A) " * 9_000],
)
def test_hostile_texts_end(text):
    faults(text, text + "x")
    faults(ORIGINAL, text)


def test_the_label_is_never_part_of_what_is_asked():
    message = user_message("What is 2+2?", ("numbers: 2 became 3",))
    assert "What is 2+2?" in message and "numbers: 2 became 3" in message


@pytest.mark.parametrize(
    ("reply", "text", "is_cut"),
    [
        ("<rewritten>Find x.</rewritten>", "Find x.", False),
        (
            "<think>Let me <rewritten>no</rewritten></think><rewritten>Yes.</rewritten>",
            "Yes.",
            False,
        ),
        ("Sure!\n<rewritten>\n```\nFind x.\n```\n</rewritten> Done.", "Find x.", False),
        ("<rewritten>Find", "Find", True),
        ("Find x.", "Find x.", False),
    ],
)
def test_the_wording_is_taken_out_of_a_reply(reply, text, is_cut):
    rewrite = rewrite_of(reply)
    assert (rewrite.text, rewrite.is_cut) == (text, is_cut)


@pytest.mark.skipif("CORL_DATA" not in os.environ, reason="CORL_DATA names no folder of data")
def test_real_rewrites_pass_and_altered_ones_do_not():
    """The required shares, on rows that the checks were designed on and on those they were not."""
    script = Path(__file__).parents[2] / "benchmarks" / "rephrase_checks.py"
    spec = importlib.util.spec_from_file_location("rephrase_checks", script)
    measured = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(measured)
    with (Path(os.environ["CORL_DATA"]) / "math_rephrased_pairs.jsonl").open() as stream:
        pairs = [(row["original"], row["rewritten"]) for row in map(json.loads, stream)]
    passed = [not faults(*pair) for pair in pairs]
    odd = passed[1::2]
    assert sum(passed) >= 0.85 * len(pairs) and sum(odd) >= 0.85 * len(odd)
    caught = []
    for place, (original, rewritten) in enumerate(pairs):
        one = next(measured.alterations(original, rewritten, random.Random(place)), None)
        if one is not None:
            caught.append(bool(faults(original, one.text)))
    assert len(caught) > 350 and sum(caught) >= 0.95 * len(caught)
