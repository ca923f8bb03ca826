"""A Markdown page about a job for people: both wordings, the verdict, and why.

Prompts and replies are untrusted: they stand in fenced blocks that they cannot close.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from corl.diversity.rephrase.rows import Row

_LONGEST_SHOWN = 8_000


def audit(rows: Sequence[Row], *, rewriter: str) -> str:
    """The page: counts, then rows that kept their wording, then the others, in file order."""
    done = [row for row in rows if row.rewrite is not None]
    kept = [row for row in rows if row.rewrite is None]
    parts = [
        "# Rewritten prompts",
        f"{len(rows)} prompts, {len(done)} rewritten, {len(kept)} kept in their own words. "
        f"Rewriter: {_inline(rewriter)}.",
        *_counts(rows),
        *_section("Kept in their own words", kept),
        *_section("Rewritten", done),
    ]
    return "\n\n".join(parts) + "\n"


def _counts(rows: Sequence[Row]) -> Iterator[str]:
    tries = [one for row in rows for one in row.tries]
    refused = Counter(
        reason.partition(":")[0] for one in tries for reason in set(map(_check, one["faults"]))
    )
    lines = [f"Replies: {len(tries)}, refused: {sum(bool(one['faults']) for one in tries)}."]
    if refused:
        lines += ["", "| refused for | replies |", "|---|---:|"]
        lines += [f"| {_inline(check)} | {count} |" for check, count in refused.most_common()]
    yield "\n".join(lines)


def _check(reason: str) -> str:
    return reason.partition(":")[0]


def _section(title: str, rows: Iterable[Row]) -> Iterator[str]:
    parts = [part for row in rows for part in _row(row)]
    if parts:
        yield f"## {title}"
        yield from parts


def _row(row: Row) -> Iterator[str]:
    yield f"### Row {row.place + 1}, id {_inline(row.prompt.id)}"
    yield "Original:"
    yield _fenced(row.prompt.text)
    if not row.tries:
        yield "; ".join(_inline(reason) for reason in row.reasons()) or "Not asked yet."
    for number, one in enumerate(row.tries, start=1):
        is_kept = number == len(row.tries) and row.rewrite is not None
        verdict = "accepted" if is_kept else "refused"
        reasons = "; ".join(_inline(reason) for reason in one["faults"])
        yield f"Try {number}, **{verdict}**{': ' + reasons if reasons else ''}"
        if one["rewrite"]:
            yield _fenced(one["rewrite"])


def _fenced(text: str) -> str:
    shown = "".join(
        one if one.isprintable() or one in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for one in text.replace("\r\n", "\n")
    )
    if len(shown) > _LONGEST_SHOWN:
        shown = shown[:_LONGEST_SHOWN] + "\n... (cut here; the journal holds all of it)"
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{shown}\n{fence}"


def _inline(text: str) -> str:
    """One line that Markdown and HTML read as plain text."""
    plain = " ".join("".join(one if one.isprintable() else " " for one in text).split())[:300]
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~&$])", r"\\\1", plain)
