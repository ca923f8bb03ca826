"""How fast answers are read, keyed and voted on, and the longest hostile input.

Three measurements on one thread, in its processor time, so that a busy machine misleads
less (nothing here waits):
1. Answers per second on MATH golds in prose, ours against math-verify 0.9 (`parse`, which
   only reads: comparing costs it more), alternating, medians. Ours is given twice: `cold`
   forgets every key between rounds (each distinct gold is keyed anew), `warm` keeps them.
2. One step: 128 prompts x 12 completions of some 300 words read and voted on.
3. The slowest of many hostile texts of up to 64 KB, in processor time of this thread.

    python benchmarks/answers.py --data FOLDER/math_level345_train.jsonl \\
        --solutions FOLDER/gsm8k_train.jsonl

With `--solutions` the first measurement is repeated on completions that people wrote.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from corl.answers import majority, read_answer
from corl.answers.maths import key as maths

PROSE = [
    "We add the two equations and simplify. The answer is $\\boxed{{{}}}$.",
    "Let x be the unknown. Solving step by step we find that 3 + 4 = 7 does not help, so we "
    "square both sides.\n\nTherefore the final answer is $\\boxed{{{}}}$. I hope it is correct.",
    "**Step 1.** Write the sum as a product.\n**Step 2.** Cancel.\n\nThe answer is \\boxed{{{}}}",
]
FILLER = (
    "Next we substitute $x = 2k + 1$ into the equation and collect the terms of equal degree, "
    "which leaves $\\frac{{{a}}}{{{b}}}$ of the original amount, or about {a}.{b} units in all. "
)
LIMITS = {"rate": 20.0, "step_s": 0.3, "hostile_s": 0.05}


def golds_of(path: Path) -> list[str]:
    rows = (json.loads(line) for line in path.read_text("utf-8").splitlines())
    return [str(row["answer"]) for row in rows if str(row["answer"]) not in ("", "None")]


def in_prose(golds: Sequence[str], rng: random.Random) -> list[str]:
    return [rng.choice(PROSE).format(gold) for gold in golds]


def long_completions(golds: Sequence[str], rng: random.Random) -> list[list[str]]:
    """128 groups of 12: the right answer about two times in three."""
    groups = []
    for gold in rng.sample(list(golds), 128):
        texts = []
        for _ in range(12):
            lines = "".join(
                FILLER.format(a=rng.randint(1, 99), b=rng.randint(1, 99)) for _ in range(9)
            )
            said = gold if rng.random() < 0.67 else rng.choice(golds)
            texts.append(f"{lines}\n\nThe answer is $\\boxed{{{said}}}$.")
        groups.append(texts)
    return groups


def seconds(work: Callable[[], object]) -> float:
    """Processor time of this thread: on an idle machine the time on the clock."""
    start = time.thread_time()
    work()
    return time.thread_time() - start


def read_all(texts: Sequence[str]) -> int:
    return sum(read_answer(text) is not None for text in texts)


def caches() -> list[Any]:
    """Every memo table of corl.answers, wherever it lives: one left full would flatter us."""
    modules = [module for name, module in sys.modules.items() if name.startswith("corl.answers")]
    return [
        value
        for module in modules
        for value in vars(module).values()
        if hasattr(value, "cache_clear") and hasattr(value, "cache_info")
    ]


def forget() -> None:
    """Empty all memo tables, so that what follows is computed."""
    for cache in caches():
        cache.cache_clear()
    if any(cache.cache_info().currsize for cache in caches()):
        raise RuntimeError("a memo table of corl.answers is not empty after clearing it")


def rates(texts: Sequence[str], rounds: int) -> dict[str, float]:
    """Medians of answers per second; the three readers take turns within a round."""
    from math_verify import parse

    taken: dict[str, list[float]] = {"cold": [], "warm": [], "math-verify": []}
    found: dict[str, int] = {}

    def verify_all() -> None:
        found["math-verify"] = sum(bool(parse(text)) for text in texts)

    def ours() -> None:
        found["ours"] = read_all(texts)

    for _ in range(rounds):
        forget()
        taken["cold"].append(seconds(ours))
        taken["warm"].append(seconds(ours))
        taken["math-verify"].append(seconds(verify_all))
    print(
        f"answers found of {len(texts)}: ours {found['ours']}, math-verify {found['math-verify']}"
    )
    return {name: len(texts) / statistics.median(times) for name, times in taken.items()}


def vote_all(groups: Sequence[Sequence[str]]) -> int:
    return sum(majority([read_answer(text) for text in texts]) is not None for texts in groups)


def step_times(groups: Sequence[Sequence[str]], rounds: int) -> list[float]:
    times = []
    for _ in range(rounds):
        forget()
        times.append(seconds(lambda: vote_all(groups)))
    return times


PIECES = [
    "(", "{", "[", "\\{", "|", "-", "\\pm", "1,", "1 ", " ", "9", "0", ".", "a", "ab ", "\\",
    "\\\\", "\\frac", "\\frac{", "\\sqrt{", "\\text{", "\\text{a", "^{", "2^", "!", "$", "\\ ",
    "\\,", "√", "1\\,000", "{,}", "1,000", "½", "²", "\n", "\x00", "=", "x=", "x<", "1=1", "&",
    "\\boxed{", "\\boxed{1}", "\\boxed", "sin ", "\\log_", "x_{", "'", "**", "1/", "1:", "1 and ",
    "\\cup", "...", "1e9", "None", "f(", "P(x)=", "5 cm", "-a", "a.", "<answer>", "</answer>",
    "<think>", "####", "The answer is ", "Answer: ", "answer is:\n", "```", "Question:", "A. ",
    "<|im_end|>", "\\fbox{", "is ", "π", "٣", "\ud800", "(1+", "e^{-", "\\begin{pmatrix}", "x!",
    "\\left(", "\\right)", "1;",
]  # fmt: skip
EXTREME = [
    "9^{9^{9^{9}}}", "2**30**5", "1000000!", "4^{\\frac{111111111111111111}{2222222222222}}",
    "(x+1)^{1000000}", "e^{e^{e^{e}}}", "\\sin(10^{100})", "(1+\\sqrt2)^{100000}",
    "+".join(f"\\ln {k}" for k in range(2, 200)), "+".join(f"\\sin {k}" for k in range(2, 200)),
    "+".join(f"1/{k}" for k in range(2, 190)), "+".join(f"(x+{k})^{{300}}" for k in range(3, 60)),
    "\\cup".join(f"({k},\\sqrt{{{k * k + 1}}})" for k in range(1, 60)),
    ",".join(f"\\pm\\ln{k}" for k in range(2, 90)), "*".join(["9" * 390] * 4), "0." + "3" * 399,
]  # fmt: skip


def hostile_texts() -> list[str]:
    texts = list(EXTREME)
    for piece in PIECES:
        for size in (65536, 7990, 1999, 250, 24):
            body = (piece * (size // len(piece) + 1))[:size]
            texts += [
                body,
                f"1{body}1"[:size],
                f"\\boxed{{{body}"[:size],
                f"The answer is {body}"[:size],
            ]
    for depth in (10, 22, 60, 3000):
        for opener, closer in (("(", ")"), ("\\sqrt{2+", "}"), ("2^{1+", "}"), ("(1+i+", ")^3")):
            texts.append(opener * depth + "x" + closer * depth)
    return texts


def slowest_hostile() -> tuple[float, str]:
    worst = (0.0, "")
    for text in hostile_texts():
        forget()
        start = time.thread_time()
        read_answer(text)
        middle = time.thread_time()
        maths.maths_key(text)
        taken = max(middle - start, time.thread_time() - middle)
        worst = max(worst, (taken, text[:40]))
    return worst


def print_rates(speed: dict[str, float]) -> None:
    for name, rate in speed.items():
        ratio = rate / speed["math-verify"]
        print(f"{name:12} {rate:10.0f} answers/s   {ratio:6.1f} x math-verify")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="JSON lines with a field `answer`")
    parser.add_argument(
        "--solutions", type=Path, help="JSON lines whose `answer` is a whole worked solution"
    )
    parser.add_argument("--sample", type=int, default=1500, help="golds per round")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rng = random.Random(0)
    golds = golds_of(options.data)
    texts = in_prose(rng.sample(golds, min(options.sample, len(golds))), rng)
    print("golds in prose:")
    speed = rates(texts, options.rounds)
    print_rates(speed)
    if options.solutions:
        print("worked solutions, as people wrote them:")
        written = golds_of(options.solutions)
        print_rates(rates(rng.sample(written, min(options.sample, len(written))), options.rounds))
    groups = long_completions(golds, rng)
    times = step_times(groups, options.rounds)
    words = statistics.median(len(text.split()) for texts in groups for text in texts)
    print(
        f"128 x 12 completions of {words:.0f} words read and voted on: "
        f"median {statistics.median(times):.3f} s"
    )
    worst, text = slowest_hostile()
    print(f"slowest hostile text: {worst * 1e3:.1f} ms ({text!r})")
    met = {
        f"at least {LIMITS['rate']:.0f} x math-verify, cold": speed["cold"] / speed["math-verify"]
        >= LIMITS["rate"],
        f"a step under {LIMITS['step_s']} s": statistics.median(times) < LIMITS["step_s"],
        f"64 KB in at most {LIMITS['hostile_s'] * 1e3:.0f} ms": worst <= LIMITS["hostile_s"],
    }
    for claim, holds in met.items():
        print(f"{'met' if holds else 'MISSED':7} {claim}")


if __name__ == "__main__":
    main()
