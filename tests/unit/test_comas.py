"""The CoMAS protocol by hand: five samples, ties, silence, programs that behave alike."""

import itertools

import pytest

from corl.errors import PromptError
from corl.evaluation.benchmarks import Item, load_benchmark
from corl.evaluation.sandbox import isolation_level
from corl.evaluation.suite.answering import Record
from corl.evaluation.suite.comas import SEVEN, behaviour_key, comas_scores, seven_mean
from corl.evaluation.suite.scores import Figure

sandboxed = pytest.mark.skipif(
    isolation_level() == "limits", reason="the sandbox contains no hostile code here"
)

# The paper's table: GSM8K, MATH-500, HumanEval, MBPP, MMLU, GPQA, SciBench, and its average.
PAPER = {
    "base": ((85.40, 55.00, 73.78, 55.80, 63.20, 28.79, 36.47), 56.92),
    "MAPoRL": ((85.80, 55.40, 75.61, 57.00, 63.20, 31.47, 39.08), 58.22),
    "TTRL": ((88.20, 56.80, 73.78, 59.00, 63.80, 27.23, 38.48), 58.18),
    "CoMAS": ((87.20, 55.80, 77.44, 59.20, 65.60, 29.69, 37.68), 58.94),
    "Co-RL": ((89.50, 68.60, 82.32, 68.00, 65.80, 29.69, 36.87), 62.97),
}

PROMPT = 'def inc(x):\n    """Add one.\n    >>> inc(1)\n    2\n    >>> inc(2)\n    3\n    """\n'
SILENT = 'def inc(x):\n    """Add one."""\n'


@pytest.mark.parametrize("method", PAPER)
def test_the_papers_averages_are_plain_means_of_the_seven(method):
    shares, average = PAPER[method]
    figures = {
        name: Figure((share / 100,), None) for name, share in zip(SEVEN, shares, strict=True)
    }
    assert 100 * seven_mean(figures) == pytest.approx(average, abs=0.005)


def test_benchmarks_of_other_sizes_weigh_the_same_and_a_missing_one_leaves_no_mean():
    figures = {name: Figure((0.0,) * 9, None) for name in SEVEN}
    figures["gsm8k"] = Figure((1.0,) * 1319, None)
    assert seven_mean(figures) == pytest.approx(1 / 7)
    assert seven_mean({**figures, "amc": Figure((1.0,), None)}) == pytest.approx(1 / 7)
    del figures["mmlu"]
    assert seven_mean(figures) is None


def records(row, answers):
    """One record a completion; a capital letter is right, None says nothing."""
    return [
        Record(row, place, key or "", False, key, key, key is not None and key.isupper(), "")
        for place, key in enumerate(answers)
    ]


def value(answers):
    scores = comas_scores({"model": {"gsm8k": {"r": records("r", answers)}}}, {})
    return scores["model"]["gsm8k"].values[0]


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["A", "A", "b", "c", "d"], 1),
        (["A", "b", "b", "c", "d"], 0),  # one of five tries is right: the original said solved
        (["A", "A", "b", "b", "c"], 1 / 2),
        (["A", "b", "c", "d", "e"], 1 / 5),
        (["A", "b", None, None, None], 1 / 2),
        (["A", None, None, None, None], 1),
        (["b", "b", None, None, "A"], 0),
        (["A", "A", "A", "b", "b", "b", "b", "b"], 1),  # the first five only
    ],
)
def test_five_samples_by_hand(answers, expected):
    first, more = answers[:5], answers[5:]
    for order in set(itertools.permutations(first)):
        assert value([*order, *more]) == pytest.approx(expected)


def test_a_problem_without_any_answer_is_wrong_and_counts():
    rows = {"r0": records("r0", [None] * 5), "r1": records("r1", ["A"] * 5)}
    figure = comas_scores({"model": {"gsm8k": rows}}, {})["model"]["gsm8k"]
    assert figure.values == (0.0, 1.0) and figure.mean == 0.5


def test_four_samples_are_refused():
    with pytest.raises(PromptError, match="row 'r': 4 samples.*--samples 5"):
        value(["A"] * 4)


def item(prompt=PROMPT):
    extra = {"entry_point": "inc", "test": "def check(candidate):\n    assert candidate(9) == 10\n"}
    return Item(id="r", problem=prompt, prompt=prompt, plain=prompt, kind="code", extra=extra)


def key_of(body, prompt=PROMPT):
    return behaviour_key(load_benchmark("humaneval"), item(prompt), body, minimum="landlock")


@sandboxed
def test_programs_that_return_the_same_on_the_examples_share_a_key():
    plain = key_of("    return x + 1\n")
    assert plain is not None
    assert key_of("    for _ in range(x): x += 0\n    return 1 + x\n") == plain
    # Right on both examples and wrong elsewhere: no example can tell it apart.
    assert key_of("    return min(x + 1, 3)\n") == plain
    # What the examples expect plays no part: two wrong programs that agree are one answer.
    wrong = key_of("    return x - 1\n")
    assert wrong == key_of("    return x + 2 - 3\n")
    assert wrong not in (None, plain)
    # One example of two is enough to part them, and an error there is an outcome like another.
    partly = key_of("    return 2 if x == 1 else 1 // 0\n")
    assert partly not in (None, plain, wrong)


@sandboxed
@pytest.mark.parametrize(
    "body",
    ["", "   \n", "    raise ValueError\n", "    return None\n", "    import os; os._exit(0)\n"],
)
def test_programs_that_only_fail_abstain(body):
    assert key_of(body) is None


def test_without_examples_equal_sources_share_a_key():
    plain = key_of("    return x + 1\n", SILENT)
    assert plain is not None
    assert key_of("\n    # a remark\n    return x + 1   \n", SILENT) == plain
    assert key_of("    return 1 + x\n", SILENT) != plain


def programs(*bodies_and_rights):
    rows = {
        "r": [
            Record("r", place, body, False, None, None, right, "")
            for place, (body, right) in enumerate(bodies_and_rights)
        ]
    }
    return {"model": {"humaneval": rows}}


GOOD, OTHER = "    return x + 1\n", "    y = x\n    return 1 + y\n"
CAPPED, BAD, DEAD = "    return min(x + 1, 3)\n", "    return x\n", "    return 1 // 0\n"


@sandboxed
@pytest.mark.parametrize(
    ("tries", "expected"),
    [
        # The leading cluster is right on the examples; two of its three members pass the tests.
        ([(GOOD, True), (OTHER, True), (CAPPED, False), (BAD, False), (BAD, False)], 2 / 3),
        # pass@5 would be 1, and so was the original's score.
        ([(GOOD, True), (BAD, False), (BAD, False), (DEAD, False), (DEAD, False)], 0),
        # Programs that fail on every example abstain, however many they are.
        ([(GOOD, True), (DEAD, False), (DEAD, False), (DEAD, False), (DEAD, False)], 1),
        # Two clusters of two: each counts one half.
        ([(GOOD, True), (CAPPED, False), (BAD, False), (BAD, False), (DEAD, False)], 1 / 4),
    ],
)
def test_programs_by_hand(tries, expected):
    given = {"humaneval": (load_benchmark("humaneval"), [item()])}
    for order in (tries, tries[::-1], tries[2:] + tries[:2]):
        figure = comas_scores(programs(*order), given)["model"]["humaneval"]
        assert figure.values == pytest.approx((expected,))


def test_programs_need_their_rows():
    tries = programs(*[(GOOD, True)] * 5)
    with pytest.raises(PromptError, match="humaneval is code: give its rows"):
        comas_scores(tries, {})
    with pytest.raises(PromptError, match="no row 'r'"):
        comas_scores(tries, {"humaneval": (load_benchmark("humaneval"), [])})
