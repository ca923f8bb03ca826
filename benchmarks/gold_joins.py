"""Write docs/answers-golds.md: golds without a structured key, and golds that share one.

Every pair of differing golds with one key is judged by math-verify (both argument orders,
inside its own time limit) and by sympy (the difference of the two values, as math-verify's
parser reads them, simplifies to zero or vanishes to 30 digits). A group of n golds gives
n - 1 pairs with its first member: sameness is transitive, so they decide the rest.

    python benchmarks/gold_joins.py --data FOLDER --out docs/answers-golds.md
"""

from __future__ import annotations

import argparse
import json
import re
import signal
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corl.answers.maths import maths_key

FILES = {
    "math_level345_train": "MATH, levels 3 to 5",
    "math500": "MATH-500",
    "amc_83": "AMC 2022/23",
    "gsm8k_train": "GSM8K train",
    "gsm8k_test": "GSM8K test",
}
TIME_LIMIT_S = 20
UNITS = r"\\(?:text|mbox|textnormal|textbf|mathrm)\s*\{(?!\s*\()([^{}]*)\}(?:\^[0-9])?"

# What a judge cannot parse, and why the pair is the same; each is checked by hand.
BY_POLICY = [
    (r"\\?%", "a percent sign is a unit"),
    (r"\\circ", "degrees are a unit"),
    (r"\\\$", "a dollar sign is a unit"),
    (r"[a-zA-Z]\s*=|=\s*[a-zA-Z]", "a value set equal to a name drops the name"),
    (r"_\{?10\}?$", "base ten is the plain number"),
    (r"[.,]$", "a stop at the end says nothing"),
    (r"\\mathbf", "bold type says nothing"),
    (UNITS, "set words behind a value are its unit; around a letter or number they are its font"),
]


def golds(folder: Path) -> dict[str, list[str]]:
    found = {}
    for name in FILES:
        lines = (folder / f"{name}.jsonl").read_text("utf-8").splitlines()
        found[name] = [str(json.loads(line)["answer"]).split("####")[-1].strip() for line in lines]
    return found


def spelling(gold: str) -> str:
    """Without spaces and variants of one command: pairs equal so far need no judge."""
    plain = re.sub(r"\\[dt]frac", r"\\frac", gold)
    return re.sub(r"\s|\\left|\\right(?![a-z])|\\!|\\,", "", plain)


def limited(judge: Callable[..., bool], *arguments: Any) -> str:
    """The verdict as a word; a judge that raises or takes too long has none."""

    def expire(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, expire)
    signal.alarm(TIME_LIMIT_S)
    try:
        return "same" if judge(*arguments) else "different"
    except BaseException as error:  # math-verify's own time-out is no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"none ({type(error).__name__})"
    finally:
        signal.alarm(0)


def math_verify_says(left: str, right: str) -> str:
    from math_verify import parse, verify

    one, two = (parse(f"${text}$") for text in (left, right))
    words = [limited(verify, one, two), limited(verify, two, one)]
    return words[0] if words[0] == words[1] else "/".join(words)


def stripped(text: str) -> str:
    """For sympy: the value alone, under the policies that the table names."""
    text = re.sub(r"^\s*[a-zA-Z]{1,2}\s*=\s*", "", text)
    text = re.sub(r"\\text\{\(?([A-F](?:,\s*[A-F])*)\)?\},?", r"\1", text)
    text = re.sub(UNITS, lambda words: words[1] if re.fullmatch(r"\d+", words[1]) else "", text)
    text = re.sub(r"\^\{?\\circ\}?|\\%|\\\$|_\{10\}", "", text)
    text = text.split(r"\approx")[0] if r"\approx" in text else text.split("=")[-1]
    text = re.sub(r"\\mathbf\{([^{}]*)\}", r"\1", text)
    return text.replace(r"\!", "").replace(r"\,", "").strip().rstrip(" .")


def sympy_says(left: str, right: str) -> str:
    from math_verify import parse
    from sympy import N, simplify
    from sympy.core.basic import Basic

    def same(one: Any, two: Any) -> bool:
        if one == two:
            return True
        gap = one - two
        return bool(simplify(gap) == 0 or (gap.is_number and abs(N(gap, 50)) < 10**-30))

    sides = [next(iter(parse(f"${stripped(text)}$")), None) for text in (left, right)]
    if any(not isinstance(side, Basic) for side in sides):
        return "same" if spelling(stripped(left)) == spelling(stripped(right)) else "none"
    return limited(same, *sides)


def reason(left: str, right: str) -> str:
    """The policy that makes a pair one answer, where a judge does not see it."""
    found = [
        why
        for mark, why in BY_POLICY
        if bool(re.search(mark, left)) != bool(re.search(mark, right))
    ]
    return "; ".join(found)


def pairs_of(groups: dict[str, list[str]]) -> list[tuple[str, str]]:
    pairs = []
    for members in groups.values():
        by_spelling = {spelling(gold): gold for gold in sorted(members, reverse=True)}
        first, *others = sorted(by_spelling.values(), key=lambda gold: (len(gold), gold))
        pairs.extend((first, other) for other in others)
    return sorted(pairs)


def cell(text: str) -> str:
    escaped = text.replace("|", "\\|").replace("\n", " ")
    return f"`{escaped}`"


def coverage(data: dict[str, list[str]]) -> list[str]:
    rows = ["| golds | usable | structured key | words | unread |", "|---|---|---|---|---|"]
    for name, title in FILES.items():
        keys = [maths_key(gold) for gold in data[name]]
        kinds = [key.split(":")[0] for key in keys if key is not None]
        words, unread = kinds.count("text"), kinds.count("string")
        read = len(kinds) - words - unread
        rows.append(
            f"| {title} | {len(kinds)} | {read} ({read / len(kinds):.2%}) | {words} | {unread} |"
        )
    return rows


def report(data: dict[str, list[str]]) -> str:
    groups: dict[str, set[str]] = defaultdict(set)
    for gold in (gold for values in data.values() for gold in values):
        key = maths_key(gold)
        if key is not None:
            groups[key].add(gold)
    spelled = {key: sorted(members) for key, members in groups.items()}
    unstructured = sorted(
        (key, gold)
        for key, members in spelled.items()
        if key.split(":")[0] in ("text", "string")
        for gold in members
    )
    several = {key: members for key, members in spelled.items() if len(members) > 1}
    judged = [
        (left, right, math_verify_says(left, right), sympy_says(left, right), reason(left, right))
        for left, right in pairs_of(several)
    ]
    verified = sum(row[2] == "same" for row in judged)
    confirmed = sum(row[3] == "same" for row in judged)
    open_pairs = [row for row in judged if row[2] != "same" and row[3] != "same"]
    lines = [
        "# Golds and their keys",
        "",
        "Written by `python benchmarks/gold_joins.py --data FOLDER`; the data is not shipped.",
        'Two golds of MATH are empty and two read "None": they are no answers.',
        "",
        *coverage(data),
        "",
        "## Golds without a structured key",
        "",
        "All are answers in words; none was left unread."
        if not any(key.startswith("string:") for key, _ in unstructured)
        else "Those keyed `string:` were not read.",
        "",
        "| gold | key |",
        "|---|---|",
        *(f"| {cell(gold)} | {cell(key)} |" for key, gold in unstructured),
        "",
        "## Differing golds that share a key",
        "",
        f"{len(several)} keys are shared by golds of different spelling. Golds that differ only in",
        "spaces, `\\left`/`\\right`, `\\!` or the kind of fraction need no judge; of the other",
        f"{len(judged)} pairs, math-verify 0.9 calls {verified} the same as they stand, and sympy",
        f"{confirmed} once units, names and fonts are off (the policy column); neither confirms",
        f"{len(open_pairs)}. a/b is math-verify's verdict in the two argument orders; sympy reads",
        "through math-verify's parser.",
        "",
        "| gold | gold | math-verify | sympy | policy |",
        "|---|---|---|---|---|",
    ]
    for left, right, verify, sympy, why in judged:
        lines.append(f"| {cell(left)} | {cell(right)} | {verify} | {sympy} | {why} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the gold files")
    parser.add_argument("--out", type=Path, default=Path("docs/answers-golds.md"))
    options = parser.parse_args()
    options.out.write_text(report(golds(options.data)), "utf-8")


if __name__ == "__main__":
    main()
