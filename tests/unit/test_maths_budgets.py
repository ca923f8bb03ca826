"""The limits of the maths reader: counted, never timed, and no text raises."""

import contextlib
import decimal
import os
import random
import subprocess
import sys
import threading

import pytest

from corl.answers.maths import budgets, maths_key
from corl.answers.maths.arithmetic import Work
from corl.answers.maths.brackets import AnswerParser
from corl.answers.maths.budgets import Unreadable
from corl.answers.maths.clauses import listing_key
from corl.answers.maths.key import _read
from corl.answers.maths.lexer import lexed
from corl.answers.maths.scalar import Reading

MEMBERS = [
    "(", "{", "[", r"\{", "|", "-", r"\pm", "1,", "1 ", " ", "9", ".", "a", "ab ", "\\", r"\\",
    r"\frac", r"\frac{", r"\sqrt", r"\text{", r"\text{a", "^", "^{", "2^", "!", "$", r"\ ", r"\,",
    r"1\,000", "{,}", "1,000", "√", "²", "½", "\ud800", "\n", "\x00", "=", "x=", "x<", "1=1", "&",
    r"\begin{pmatrix}", r"\boxed{", "sin ", r"\sin", r"\log_", "x_{", "101_", "'", "**", "1/",
    "1:", "1 and ", r"\cup", r"0.\overline{3}", "...", "1e9", "٣", "１", "None", r"\angle ", "f(",
    "P(x)=", r"\{x|", "5 cm", "-a", "a.", "(1+", "e^{-", r"\binom", r"\lfloor", ";", "AB", "x!",
]  # fmt: skip

EXTREME = [
    "9^{9^{9^{9}}}", "2**30**5", "3^{3^{3^{3^{3}}}}", "10^{10^{10}}", "1000000!",
    r"4^{\frac{111111111111111111}{2222222222222}}", r"\binom{100000}{50000}", "(x+1)^{1000000}",
    "x^{x^{x^{x}}}", "e^{e^{e^{e}}}", r"\sin(10^{100})", "i^{10000000}", "1e99999", "10^{-2000000}",
    "(n!)!", r"\lfloor e^{100000}\rfloor", r"\max(e^{1000000},1)", r"\sqrt[0]{2}", r"\log_1 5",
    "+".join(rf"\ln {k}" for k in range(2, 200)), "+".join(f"1/{k}" for k in range(2, 190)),
    ",".join([r"\pm\sqrt2"] * 100), r"\pm1\pm2\pm3\pm4\pm5", "9" * 5000, "0." + "3" * 399,
    "*".join(["9" * 390] * 4), "x/(x-x)", "|x|=3", "x=y=z", "1<2", "x<x", "0x=1",
]  # fmt: skip


def parsed(text: str) -> AnswerParser:
    parser = AnswerParser(lexed(text))
    parser.answer()
    return parser


@pytest.mark.parametrize("size", [3, 30, 300, 1999, 5000, 65536])
@pytest.mark.parametrize("member", MEMBERS)
def test_repeated_pieces_never_raise(member: str, size: int):
    text = (member * (size // len(member) + 1))[:size]
    for hostile in (text, f"1{text}1", f"x{text}"):
        key = maths_key(hostile)
        assert key is None or ":" in key or key == "infinity"


@pytest.mark.parametrize("text", EXTREME)
def test_extreme_values_have_a_key(text: str):
    assert maths_key(text) is not None


def test_random_token_soup_never_raises():
    rng = random.Random(20)
    for _ in range(1500):
        maths_key("".join(rng.choice(MEMBERS) for _ in range(rng.choice([2, 4, 8, 20, 80]))))


NESTS = [("(", ")"), (r"\sqrt{", "}"), ("2^{1+", "}"), ("|", "|")]


@pytest.mark.parametrize(("opener", "closer"), NESTS)
def test_nesting_beyond_the_depth_budget_is_text(opener: str, closer: str):
    deep = budgets.MAX_DEPTH + 1
    key = maths_key(opener * deep + "x+1" + closer * deep)
    assert key is not None and key.startswith("string:")


def test_nodes_beyond_the_budget_are_refused():
    with pytest.raises(Unreadable, match="nodes"):
        parsed("+".join(["x"] * 3 + ["2x"] * budgets.MAX_NODES))
    assert parsed("+".join(["2x"] * 100))._nodes <= budgets.MAX_NODES


def test_text_beyond_the_length_budget_is_not_parsed():
    short = "1+" * (budgets.MAX_CHARS // 2 - 200) + "1"
    assert maths_key("1" + "+1" * 150) == "number:151"
    assert maths_key(short + "+1" * 400).startswith("string:#")
    assert maths_key("7" + " " * 60000) == "number:7"


def test_literals_beyond_the_digit_budget_are_text():
    at_most = "7" * budgets.MAX_LITERAL_DIGITS
    assert maths_key(at_most).startswith("number:")
    assert maths_key(at_most + "7").startswith("string:")
    assert maths_key("1" * 100) != maths_key("1" * 101)


def test_exact_values_stop_at_the_bit_budget():
    assert maths_key(f"2^{{{budgets.MAX_EXACT_BITS // 2 - 1}}}").startswith("number:")
    assert maths_key(f"2^{{{budgets.MAX_EXACT_BITS * 2}}}").startswith("real:")


def test_exponents_beyond_the_budget_are_text():
    assert maths_key(f"2^{{{budgets.MAX_EXPONENT_DIGITS}}}").startswith("real:")
    assert maths_key(f"2^{{{budgets.MAX_EXPONENT_DIGITS + 1}}}").startswith("string:")
    assert maths_key(f"{budgets.MAX_FACTORIAL}!").startswith("number:")
    assert maths_key(f"{budgets.MAX_FACTORIAL + 1}!").startswith("string:")


@pytest.mark.parametrize("text", EXTREME)
def test_work_never_exceeds_its_budget_by_more_than_one_operation(text: str):
    work = Work()
    with contextlib.suppress(Unreadable, ArithmeticError):
        listing_key(AnswerParser(lexed(text)).answer(), Reading(has_signs=True, work=work))
    # The dearest single operation is a logarithm to 600 digits: (600/110)^2 units.
    assert work.spent <= budgets.MAX_WORK + 2 * (600 / 110) ** 2


def test_a_strange_decimal_context_changes_nothing():
    texts = [r"\sqrt2", r"\sin 1", r"e^{-3}+\pi", "x^2+1/3", r"\frac{1}{3}"]
    expected = [_read(text) for text in texts]
    with decimal.localcontext() as context:
        context.prec = 2
        context.rounding = decimal.ROUND_UP
        context.traps[decimal.Inexact] = True
        assert [_read(text) for text in texts] == expected


TEXTS = [
    r"\sqrt2",
    "x+y",
    r"\{3,1,2\}",
    "x=1,y=2",
    "f(2)<f(1)",
    r"\text{Monday}",
    "3x+4y=2",
    "9" * 999,
]


def test_a_thread_gives_the_same_keys():
    found: list[str | None] = []
    thread = threading.Thread(target=lambda: found.extend(_read(text) for text in TEXTS))
    thread.start()
    thread.join()
    assert found == [maths_key(text) for text in TEXTS]


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_another_process_and_hash_seed_give_the_same_keys(seed: str):
    code = f"from corl.answers.maths import maths_key\nprint([maths_key(t) for t in {TEXTS!r}])"
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.strip() == repr([maths_key(text) for text in TEXTS])


def test_the_package_imports_nothing_heavy():
    code = (
        "import sys, corl.answers.maths; "
        "print([m for m in ('sympy', 'mpmath', 'numpy', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
