"""How many real rewrites the checks of `corl rephrase` accept, and how many altered ones not.

    python benchmarks/rephrase_checks.py PAIRS.jsonl [--solutions GSM8K.jsonl] [--show missed]

PAIRS.jsonl: one object a line with `original` and `rewritten`. Every rewrite is checked as it is;
then with one operative number altered, with a hint or solution added, and cut off. The numbers to
alter are found here, by patterns that share nothing with the checks: a number is operative when
the original holds it as well and it stands outside drawing code. Rows of even and odd place are
reported apart: the checks were designed on the even ones. --solutions: rows with `question` and a
worked `answer` (GSM8K): the question with the first step, the whole solution or the answer added.
"""

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from corl.diversity.rephrase.checks import faults

WORDS = [
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fifteen", "sixteen", "twenty", "thirty", "forty", "fifty", "sixty", "hundred",
    "thousand",
]  # fmt: skip
SWAPS = {
    "half": "third", "twice": "three times", "double": "triple", "doubled": "tripled",
    "triple": "double", "tripled": "doubled", "third": "fourth", "fourth": "fifth",
    "fifth": "sixth", "tenth": "hundredth", "hundredth": "tenth", "dozen": "score",
    "second": "third",
} | {word: WORDS[(place + 1) % len(WORDS)] for place, word in enumerate(WORDS)}  # fmt: skip
DRAWING = re.compile(r"\[asy\].*?(?:\[/asy\]|\Z)", re.S)
DIGITS = re.compile(r"\d+(?:(?:,|,\\!|\{,\})\d{3})*(?:\.\d+)?")
WORD = re.compile(r"[A-Za-z]+")


@dataclass(frozen=True)
class Alteration:
    place: str
    """What kind of number was altered."""
    how: str
    text: str
    """The rewrite with the alteration."""
    change: str


def alterations(original: str, rewritten: str, rng: random.Random) -> Iterator[Alteration]:
    """One alteration of every operative number, in an order drawn by `rng`."""
    hidden = [match.span() for match in DRAWING.finditer(rewritten)]
    outside = DRAWING.sub(" ", original)
    known_digits = {match[0] for match in DIGITS.finditer(outside)}
    known_words = {match[0].lower() for match in WORD.finditer(outside)}
    spots = [
        match
        for pattern in (DIGITS, WORD)
        for match in pattern.finditer(rewritten)
        if not any(start <= match.start() < end for start, end in hidden)
        and (
            match[0] in known_digits
            or (match[0].lower() in SWAPS and match[0].lower() in known_words)
        )
        and rewritten[match.start() - 1 : match.start()] != "\\"
    ]
    rng.shuffle(spots)
    for spot in spots:
        how, new = altered(spot[0], sorted(known_digits - {spot[0]}), rng)
        text = rewritten[: spot.start()] + new + rewritten[spot.end() :]
        yield Alteration(place_of(rewritten, spot), how, text, f"{spot[0]} -> {new}")


def altered(number: str, others: list[str], rng: random.Random) -> tuple[str, str]:
    """A way to alter a number, and the number it gives."""
    if not number[0].isdigit():
        new = SWAPS[number.lower()]
        return "another word", new.capitalize() if number[0].isupper() else new
    whole, point, decimals = number.partition(".")
    plain = int(re.sub(r"\D", "", whole))
    ways: dict[str, str] = {"plus one": f"{plain + 1}{point}{decimals}"}
    if plain > 0:
        ways["minus one"] = f"{plain - 1}{point}{decimals}"
        ways["times ten"] = f"{plain}0{point}{decimals}"
    if plain > 9 and (turned := str(plain)[::-1].lstrip("0")) != str(plain):
        ways["digits turned"] = turned + point + decimals
    if point:
        ways["point moved"] = f"{plain}{decimals[0]}.{decimals[1:] or '0'}"
    if others:
        ways["another number of the text"] = rng.choice(others)
    how = rng.choice(sorted(ways))
    return how, ways[how]


def place_of(text: str, spot: re.Match[str]) -> str:
    before = text[: spot.start()].rstrip(" -")
    if not spot[0][0].isdigit():
        return "word"
    if before.endswith("^") or before.endswith("^{"):
        return "exponent"
    if before.endswith("_") or before.endswith("_{"):
        return "subscript"
    if re.search(r"\\[dt]?frac\s*(?:\{[^{}]*\}\s*)?\{?[^{}]*$", before[-25:]):
        return "fraction"
    if re.search(r"\\sqrt(?:\[[^]]*\])?\{?$", before):
        return "root"
    if re.fullmatch(r"\d+", spot[0]) is None:
        return "decimal or grouped"
    return "formula" if text[: spot.start()].count("$") % 2 else "prose"


def with_hint(text: str, rng: random.Random) -> tuple[str, str]:
    added = rng.choice(
        (
            "\n\nHint: Use the law of cosines.",
            " Hint: try small cases first.",
            "\n\nSolution: we begin by rewriting the equation.",
            " The answer is $x$.",
            "\n\nAnswer: $\\boxed{k}$",
            " (Recall that the sum of the angles is constant.)",
            " To solve this, factor the left side.",
            " Note that this can be solved by substitution.",
            "\nTherefore, the result is $k$.",
            "\n\n**Step-by-step:** First, isolate the variable.",
        )
    )
    return added.strip(), text + added


def cut(text: str, rng: random.Random) -> tuple[str, str]:
    """What a length limit leaves: the text up to some character of its later two thirds."""
    end = rng.randrange(len(text) // 3, max(len(text) - 3, len(text) // 3 + 1))
    return f"at {end} of {len(text)}", text[:end]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", choices=("rejected", "missed"))
    parser.add_argument("--solutions", type=Path)
    parser.add_argument("--rows", choices=("even", "odd"), help="show these only")
    options = parser.parse_args()
    with options.pairs.open(encoding="utf-8") as stream:
        pairs = [(row["original"], row["rewritten"]) for row in map(json.loads, stream)]
    shown = [
        place
        for place in range(len(pairs))
        if options.rows is None or place % 2 == (options.rows == "odd")
    ]
    reasons = [faults(original, rewritten) for original, rewritten in pairs]
    report("rewrites accepted", [(place, not why) for place, why in enumerate(reasons)])
    print("  by check:", dict(Counter(why[0].check for why in reasons if why).most_common()))
    if options.show == "rejected":
        for place in shown:
            if reasons[place]:
                print(f"{place}: {'; '.join(map(str, reasons[place]))}")
                print(f"  {pairs[place][0]}\n  -> {pairs[place][1]}\n")
    clean = {place for place, why in enumerate(reasons) if not why}
    report_altered(pairs, clean, options, set(shown))
    for name, spoil in (("hint or solution", with_hint), ("cut off", cut)):
        report_spoilt(name, spoil, pairs, clean, options, set(shown))
    if options.solutions:
        report_solved(options.solutions)


def report_solved(path: Path) -> None:
    added: dict[str, list[tuple[int, bool]]] = {}
    with path.open(encoding="utf-8") as stream:
        for place, row in enumerate(map(json.loads, stream)):
            worked, _, final = re.sub(r"<<.*?>>", "", row["answer"]).partition("####")
            for name, text in (
                ("first step", worked.strip().partition("\n")[0]),
                ("whole solution", worked.strip()),
                ("the answer", f"The answer is {final.strip()}."),
            ):
                why = faults(row["question"], f"{row['question']} {text}")
                is_caught = any(one.check not in ("copy", "length") for one in why)
                added.setdefault(name, []).append((place, is_caught))
    for name, caught in added.items():
        report(f"{path.name}, {name} added, rejected", caught)


def report_altered(
    pairs: list[tuple[str, str]], clean: set[int], options: argparse.Namespace, shown: set[int]
) -> None:
    """As many alterations as there are rows: one a row, then second ones."""
    chosen: list[tuple[int, Alteration]] = []
    queues = [
        (place, alterations(*pair, random.Random(f"{options.seed}-{place}")))
        for place, pair in enumerate(pairs)
    ]
    while queues and len(chosen) < len(pairs):
        alive = []
        for place, queue in queues:
            if len(chosen) < len(pairs) and (one := next(queue, None)):
                chosen.append((place, one))
                alive.append((place, queue))
        queues = alive
    caught = [(place, bool(faults(pairs[place][0], one.text))) for place, one in chosen]
    report("altered numbers rejected", caught)
    report("  where the rewrite itself passes", [one for one in caught if one[0] in clean])
    for title, key in (("place", lambda one: one.place), ("way", lambda one: one.how)):
        counts: dict[str, list[bool]] = {}
        for (place, one), (_, is_caught) in zip(chosen, caught, strict=True):
            if place in clean:
                counts.setdefault(key(one), []).append(is_caught)
        print(
            f"  by {title}:",
            ", ".join(f"{name} {sum(all_)}/{len(all_)}" for name, all_ in sorted(counts.items())),
        )
    if options.show == "missed":
        for (place, one), (_, is_caught) in zip(chosen, caught, strict=True):
            if not is_caught and place in shown:
                print(f"{place}: {one.place}, {one.how}: {one.change}")
                print(f"  {pairs[place][0]}\n  -> {one.text}\n")


def report_spoilt(
    name: str,
    spoil: Callable[[str, random.Random], tuple[str, str]],
    pairs: list[tuple[str, str]],
    clean: set[int],
    options: argparse.Namespace,
    shown: set[int],
) -> None:
    caught = []
    for place, (original, rewritten) in enumerate(pairs):
        if place not in clean:
            continue
        change, text = spoil(rewritten, random.Random(f"{options.seed}-{name}-{place}"))
        caught.append((place, bool(faults(original, text))))
        if options.show == "missed" and place in shown and not caught[-1][1]:
            print(f"{place}: {name}, {change}\n  {original}\n  -> {text}\n")
    report(f"{name} rejected, where the rewrite itself passes", caught)


def report(name: str, outcomes: list[tuple[int, bool]]) -> None:
    parts = [("all", outcomes)] + [
        (half, [one for one in outcomes if one[0] % 2 == parity])
        for parity, half in enumerate(("even", "odd"))
    ]
    print(
        f"{name}:",
        ", ".join(
            f"{half} {sum(good for _, good in part)}/{len(part)} "
            f"({sum(good for _, good in part) / max(len(part), 1):.1%})"
            for half, part in parts
        ),
    )


if __name__ == "__main__":
    main()
