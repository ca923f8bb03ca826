"""Letters of multiple-choice items, in the many ways that models write them."""

from __future__ import annotations

import pytest

from corl.answers import canonical, read_answer
from corl.answers.options import options_of
from corl.errors import RecipeError

CITIES = ["Oslo", "Lima", "B. B. King", "New Delhi", "Delhi"]
VALUES = ["4", "8", "\\frac{1}{2}", "none of these", "8.0"]


def letter(text: str, **how: object) -> str | None:
    """The letter that a completion gives."""
    answer = read_answer(text, "choice", **how)  # type: ignore[arg-type]
    return answer.text if answer else None


@pytest.mark.parametrize(
    "bare",
    [
        "C",
        "c",
        "(C)",
        "(c)",
        "[C]",
        "C)",
        "C.",
        "C:",
        "**C**",
        "*C*",
        "$C$",
        "`C`",
        "'C'",
        "{C}",
        "Option C",
        "choice (C)",
        "\\text{C}",
        "\\textbf{(C)}",
        "\\mathrm{C}",
        "\\boxed{C}",
        "\\boxed{\\text{C}}",
        "C. some text",
        "(C) some text",
        "C - some text",
        "C: some text",
        "\\textbf{(C)}\\ 12",
    ],
)
def test_every_spelling_of_a_letter_is_one_answer(bare: str) -> None:
    answer = canonical(bare, "choice")
    assert answer is not None and (answer.text, answer.key) == ("C", "choice@1:C")
    assert letter(bare) == "C"
    assert letter(f"Some reasoning first.\n\nThe answer is {bare}") == "C"


@pytest.mark.parametrize("raw", ["", "K", "12", "None", "the third", "CD", "C or D", "maybe"])
def test_what_is_no_letter_is_no_bare_choice(raw: str) -> None:
    assert canonical(raw, "choice") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The correct option is (D).", "D"),
        ("I would choose B, since the rest fail.", "B"),
        ("The answer is B because A is too small.", "B"),
        ("The answer is clearly option E because it holds.", "E"),
        ("ANSWER: B", "B"),
        ("Réponse : D", "D"),
        ("答案：C", "C"),
        ("The final choice: E", "E"),
        ("The right answer: [C]", "C"),
        ("answer is (a)", "A"),
        ("Answer: a", "A"),
        ("The best answer is therefore C, not D.", "C"),
        ("The answer is C = 12.", "C"),
        ("The answer is **C) 12**.", "C"),
        ("The answer is B and C is wrong.", "B"),
        ("The answer is C and I am sure.", "C"),
        ("The answer would be the one in option D.", "D"),
        ("<answer>D</answer>", "D"),
        ("<answer>(D) the sun</answer>", "D"),
        ("#### C", "C"),
        ("I'd go with J!", "J"),
        ("It's D.", "D"),
        ("Of these, only H is correct.", "H"),
        ("Option A is wrong; option B is incorrect; option C is right.", "C"),
        ("We can rule out option A. Hence option C.", "C"),
        ("Reasoning first.\n\nC", "C"),
        ("Reasoning first.\n**C. the last one**", "C"),
        ("C\n\nBecause the sum is 5, options A and B fail.", "C"),
        ("B because nothing else fits.", "B"),
        ("<think>(A)?</think> (B)", "B"),
        ("The answer is not A. It is B", "B"),
        ("The answer is not A but B.", "B"),
        ("The answer is \\(B\\).", "B"),
        ("The answer's B", "B"),
        ("The answer is, of course, B.", "B"),
        ("Answer - B", "B"),
        ("The answer is <B>.", "B"),
        ("B!", "B"),
        ("Many say C. I'd say B.", "B"),
        ("Having checked, only B works", "B"),
        ("Nothing else is left. Therefore B.", "B"),
        ("\\boxed{17}. The answer is (C).", "C"),
        ("#### Option A\nToo small.\n#### Option B\nFits. The answer is B.", "B"),
    ],
)
def test_phrasings_that_settle_on_a_letter(text: str, expected: str) -> None:
    assert letter(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "The answer is A common mistake away.",
        "The answer is I think unknowable",
        "The answer is a mystery.",
        "The answer is either B or C.",
        "The answer is B, C, and D.",
        "The answer is B/D.",
        "A: no. B: yes.",
        "The answer is B + 2.",
        "The answer is $a + b$.",
        "A. 3\nB. 4\nC. 5\nThe value is 5.",
        "The value is 3.\nA. 3\nB. 4",
        "Option A and option B both look fine.",
        "It is not B.",
        "Option B is wrong.",
        "I did not choose C.",
        "Let $A = 3$ and $B = 4$, then $A+B$ is 7",
        "#### A. First step of the solution\nWe begin.",
        "<think>The answer is C.",
    ],
)
def test_texts_that_settle_on_no_letter(text: str) -> None:
    assert letter(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The answer is A.", "A"),
        ("The answer is A", "A"),
        ("The answer is A because 2 < 3", "A"),
        ("I pick A, no doubt.", "A"),
        ("I would choose A good option", None),
        ("Answer: (I)", "I"),
        ("The answer is I.", "I"),
        ("The answer is I believe too hard", None),
        ("option I", "I"),
        ("A is correct.", "A"),
    ],
)
def test_a_and_i_count_only_where_they_are_marked(text: str, expected: str | None) -> None:
    assert letter(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Lima", "B"),
        ("lima.", "B"),
        ("The answer is Lima, of course.", "B"),
        ("The answer is B. B. King.", "C"),
        ("Answer: B", "B"),
        ("Answer: the city of New Delhi", "D"),
        ("E. Delhi", "E"),
        ("\\boxed{\\text{Oslo}}", "A"),
        ("<answer>Delhi</answer>", "E"),
        ("Reasons.\nB. Lima", "B"),
        ("Reasons.\nB. Oslo", None),
        ("The answer is not Lima but Oslo.", "A"),
        ("The answer is not Lima.", None),
        ("The answer is Lima or Oslo.", None),
        ("The answer is F.", None),
        ("F", None),
    ],
)
def test_letters_and_option_texts_map_both_ways(text: str, expected: str | None) -> None:
    assert letter(text, choices=CITIES) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The answer is 0.5.", "C"),
        ("\\boxed{\\frac{2}{4}}", "C"),
        ("None of these", "D"),
        ("4.0", "A"),
        ("The answer is $4$.", "A"),
        ("8", "B"),
        ("16/2", None),
        ("B) 8", "B"),
        ("The answer is 3.", None),
    ],
)
def test_option_values_are_compared_as_mathematics(text: str, expected: str | None) -> None:
    assert letter(text, choices=VALUES) == expected


def test_an_option_that_says_none_can_be_chosen() -> None:
    assert canonical("None", "choice", choices=["1", "None"]) == canonical("B", "choice")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B", None),
        ("The answer is B", None),
        ("The answer is B. So", "B"),
        ("\\boxed{B} but", "B"),
        ("\\boxed{B} or \\boxed{C", None),
        ("\\boxed{", None),
        ("B\n\nbecause the oth", "B"),
        ("We compare.\nB", None),
    ],
)
def test_a_truncated_text_gives_only_a_closed_letter(text: str, expected: str | None) -> None:
    assert letter(text, truncated=True) == expected


def test_the_last_letter_counts_only_when_lenient() -> None:
    text = "Comparing (B) with (C) in turn, we end near D, and I stop."
    assert letter(text) is None
    assert letter(text, lenient=True) == "D"
    assert letter("nothing here", lenient=True) is None


def test_more_options_than_letters_are_refused() -> None:
    with pytest.raises(RecipeError, match="27 options"):
        options_of(tuple(str(at) for at in range(27)))


def test_only_the_items_own_letters_count() -> None:
    assert letter("The answer is C.", choices=["x", "y"]) is None
    assert letter("The answer is L.", choices=[str(at) for at in range(12)]) == "L"
    assert letter("The answer is B.", choices=[]) is None
