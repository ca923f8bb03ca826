"""Each check of a rewrite, on what it must refuse and on what it must let pass."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corl.diversity.rephrase.checks import CHECKS, faults
from corl.diversity.rephrase.languages import language
from corl.diversity.rephrase.listed_options import options

ORIGINAL = (
    "Let $f(x) = 3x^2 - 7$. Tom draws the graph of $f$ and marks 12 points on it. "
    "What is the value of $f(5)$?"
)
GOOD = (
    "Mia sketches the curve $f(x) = 3x^2 - 7$ and puts 12 dots on that curve. Find the number "
    "that $f$ gives for the input $5$."
)


def checks(original, rewritten, **options):
    return {one.check for one in faults(original, rewritten, **options)}


def test_a_true_rewrite_passes():
    assert faults(ORIGINAL, GOOD) == []


@pytest.mark.parametrize(
    "added",
    [
        "Hint: use the vertex form.",
        "\n\n**Hint.** Plug it in.",
        "(Recall that $f$ is even.)",
        "\n\nSolution: we plug it in.",
        r"\n\nThe answer is $x$.",
        r" $\boxed{k}$",
        "Answer: k.",
        "To solve this, put the input into the formula.",
        "You can use the formula above.",
        "Therefore, the result is $k$.",
        "So f(5) = k.",
        "Step 1: square it.",
        "Let's solve it by hand.",
    ],
)
def test_help_is_refused(added):
    assert "solution" in checks(ORIGINAL, f"{GOOD} {added}")


def test_help_that_the_original_gives_may_stay():
    assert faults(f"{ORIGINAL} Hint: $f$ is even.", f"{GOOD} Hint: $f$ is an even map.") == []
    assert faults(rf"{ORIGINAL} Put it in \boxed{{}}.", rf"{GOOD} Write it in \boxed{{}}.") == []


@pytest.mark.parametrize("end", ["", "?", " as a common fraction.", " in the form $a+b$."])
def test_the_form_of_the_answer_is_no_answer(end):
    rewritten = f"{GOOD} Express your answer{end or ' exactly.'}"
    assert "solution" not in checks(ORIGINAL, rewritten)


@pytest.mark.parametrize(
    "reply",
    [
        f"Sure! {GOOD}",
        f"Here is the rewritten problem: {GOOD}",
        f"Rewritten: {GOOD}",
        "I'm sorry, but I can't help with $f(x) = 3x^2 - 7$ and 12 points, $f(5)$.",
    ],
)
def test_talk_about_the_task_is_refused(reply):
    assert "solution" in checks(ORIGINAL, reply)


@pytest.mark.parametrize("end", range(20, len(GOOD) - 2, 7))
def test_a_cut_text_is_refused(end):
    assert faults(ORIGINAL, GOOD[:end])


@pytest.mark.parametrize(
    ("rewritten", "seen"),
    [
        (GOOD.replace("$5$.", "$5."), "$ not closed"),
        (GOOD.replace("3x^2", "{3x^2"), "{ not closed"),
        (GOOD + r" Use $\left( 3$.", r"\left not closed"),
        (GOOD.replace("$5$.", r"\begin{pmatrix} 5."), r"\begin{pmatrix} not closed"),
        (GOOD.rstrip(".") + " and", "ends in the middle"),
        (GOOD.partition(" Find")[0], "asks nothing"),
    ],
)
def test_what_is_not_whole_is_named(rewritten, seen):
    assert any(seen in str(one) for one in faults(ORIGINAL, rewritten))


def test_half_open_intervals_are_closed():
    before = "For which $x$ with $0 \\le x < 5$ is $f(x) = 3$?"
    assert faults(before, "Find all $x$ in $[0, 5)$ such that $f(x) = 3$.") == []


def test_money_is_no_open_formula():
    before = "A pen costs 5 dollars and a book costs 12 dollars. How much do 3 pens cost?"
    after = "Each pen is sold for $5, a book for 12 dollars. Find the price of 3 of those pens."
    assert faults(before, after) == []


def test_an_ending_may_be_as_open_as_the_original():
    before = "Evaluate the sum $3 + 4x$ for $x = 9$"
    assert faults(before, "For $x = 9$, work out the value of $3 + 4x$") == []


@pytest.mark.parametrize(
    "copy", [ORIGINAL, ORIGINAL.upper().replace("F(X)", "f(x)"), ORIGINAL.replace(". ", ".\n\n")]
)
def test_a_copy_is_refused(copy):
    assert "copy" in checks(ORIGINAL, copy)


def test_a_drawing_does_not_make_a_copy():
    drawing = "[asy]" + "draw((0,0)--(1,1));" * 40 + "[/asy]"
    assert faults(f"How many lines are here? {drawing}", f"Count all the lines. {drawing}") == []


def test_a_drawing_is_kept_with_its_numbers():
    before = 'How long is $AB$? [asy]draw((0,0)--(3,4)); label("$A$", (0,0));[/asy]'
    good = 'Find $PQ$. [asy]draw((0,0)--(3,4)); label("$P$", (0,0));[/asy]'
    assert faults(before, good) == []
    assert checks(before, good.replace("(3,4)", "(3,5)")) == {"drawing"}
    assert checks(before, "Find the distance $PQ$.") == {"drawing"}
    assert "cut off" in checks(before, good.replace("[/asy]", ""))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ORIGINAL, "English"),
        ("Wie viele Äpfel hat der Junge, wenn er 3 mit in die Schule nimmt?", "German"),
        ("Combien de pommes est-ce que le garçon a dans la main ?", "French"),
        ("¿Cuántas manzanas tiene el niño en la mano si se come una de las tres?", "Spanish"),
        ("Сколько яблок осталось у мальчика?", "Cyrillic"),
        ("小明有三个苹果，他又买了五个，现在有多少个？", "Han"),
        ("りんごはいくつありますか。", "Japanese"),
        ("$x + y = 3$", None),
        (
            "Compute the pair with \\begin{align*} x^y &= y^x, \\\\ 2x^y &= y^7 \\end{align*}",
            "Latin",
        ),
        ("Evaluate $x$ quickly please", "Latin"),
    ],
)
def test_names_the_language(text, expected):
    assert language(text) == expected


def test_another_language_is_refused():
    german = "Die Funktion ist $f(x) = 3x^2 - 7$, und 12 Punkte sind auf der Kurve. Was ist $f(5)$?"
    assert checks(ORIGINAL, german) == {"language"}
    chinese = "设函数 $f(x) = 3x^2 - 7$，图上有 12 个点。求 $f(5)$ 的值是多少？"
    assert "language" in checks(ORIGINAL, chinese)
    assert faults(german, "Gegeben ist $f(x) = 3x^2 - 7$ mit 12 Punkten. Wie groß ist der Wert der "
                  "Funktion an der Stelle $5$?") == []  # fmt: skip


QUIZ = "Which is prime?\n(A) 9\n(B) 11\n(C) 15"


def test_options_are_kept_in_place():
    assert options(QUIZ) == {"A": "9", "B": "11", "C": "15"}
    good = "Pick the prime number.\n(A) 9\n(B) 11\n(C) 15"
    assert faults(QUIZ, good, kind="choice") == []
    assert "options" in checks(QUIZ, good.replace("(B) 11\n(C) 15", "(B) 15\n(C) 11"))
    assert "options" in checks(QUIZ, "Pick the prime number of 9, 11 and 15.")


def test_length_out_of_proportion_is_refused():
    padding = " It is a fine day and the sun shines on the quiet old town by the sea." * 8
    assert "length" in checks(ORIGINAL, GOOD.replace(" Find", padding + " Find"))


def test_emptiness_and_size():
    assert checks(ORIGINAL, " \n") == {"empty"}
    assert checks(ORIGINAL, "What? " * 20_000) == {"length"}


HOSTILE = [
    "1" * 20_000, "1,234" * 4_000, "?" + "1+1 " * 4_900, "{" * 20_000, r"\frac" * 4_000,
    "\nso " * 5_000, "1, " * 6_000 + "...", "one million " * 1_600, "A) " * 6_600, "$1" * 10_000,
    r"\begin{a}" * 2_200, "[asy]" + '"1' * 9_000 + "[/asy]", "answer " * 2_800, "`" * 20_000,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_are_judged(text):
    assert faults(ORIGINAL, text)
    faults(text, GOOD)


@settings(deadline=None)
@given(st.text(max_size=200), st.text(max_size=200))
def test_any_pair_gets_a_verdict(original, rewritten):
    for one in faults(original, rewritten):
        assert one.check in CHECKS
        assert one.seen
