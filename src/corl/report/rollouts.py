"""The section of rollouts: pages of completions with answers, votes and rewards.

Every agent of every run gets the same share of the page's size. It goes to the last
page first, then the first, then those between, so that a large study keeps the ends of each
run. Equal completions of a group are shown once with their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from corl.report.conditions import Condition, swatch
from corl.report.html import Html, Node, el, href, join, shown_path
from corl.report.pages import (
    Completion,
    Page,
    Prompt,
    list_pages,
    plain_answer,
    read_page,
    vote_key,
)
from corl.report.records import Run

_TEXT_LIMITS = (1500, 500, 160)
"""Characters of a completion; the next one where a page would not fit."""
_NONE = ("no answer", "no vote", "None", "")


def rollouts_section(conditions: Sequence[Condition], base: Path, *, budget: int) -> Html | None:
    """Pages of all runs within `budget` characters; None where there are none."""
    owners = [
        (condition, run, agent, pages)
        for condition in conditions
        for run in condition.runs
        if run.root is not None
        for agent in run.models
        if _is_folder_name(agent) and (pages := list_pages(run.root / "agents" / agent))
    ]
    if not owners:
        return None
    share = budget // len(owners)
    blocks = []
    for condition, run, agent, pages in owners:
        shown = sorted(_fitting(pages, base, share), key=lambda entry: entry[0])
        blocks.append(_block(condition, run, agent, shown, len(pages), base))
    return el("div", *blocks, class_="rollouts")


def _is_folder_name(name: str) -> bool:
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name


def _block(
    condition: Condition,
    run: Run,
    agent: str,
    shown: Sequence[tuple[int, Html]],
    num_pages: int,
    base: Path,
) -> Html:
    assert run.root is not None
    folder = run.root / "agents" / agent / "pages"
    num_left = num_pages - len(shown)
    more = f"{num_left} more {'page' if num_left == 1 else 'pages'} in "
    link = el("a", shown_path(folder, base), href=href(folder, base))
    return el(
        "details",
        el(
            "summary",
            swatch(condition),
            el("b", condition.title),
            f" seed {run.seed} ",
            el("span", agent, class_="agent"),
        ),
        *(page for _, page in shown),
        el("p", more, link, class_="note") if num_left else None,
        class_="run-pages",
        data_run=f"{condition.title} · seed {run.seed}",
        data_agent=agent,
    )


def _fitting(
    pages: Sequence[tuple[int, Path]], base: Path, share: int
) -> Iterator[tuple[int, Html]]:
    left = share
    for index in _spread(len(pages)):
        step, file = pages[index]
        try:
            page = read_page(file, step)
        except OSError:
            continue
        for limit in _TEXT_LIMITS:
            drawn = _page(page, base, limit)
            if len(drawn.encode("utf-8", "replace")) <= left:
                left -= len(drawn.encode("utf-8", "replace"))
                yield step, drawn
                break


def _spread(count: int) -> list[int]:
    """Indexes from the ends inwards, halving the gaps."""
    order = [count - 1, 0] if count > 1 else [0] if count else []
    gaps = [(0, count - 1)]
    while gaps:
        low, high = gaps.pop(0)
        middle = (low + high) // 2
        if low < middle < high:
            order.append(middle)
            gaps += [(low, middle), (middle, high)]
    return order


def _page(page: Page, base: Path, limit: int) -> Html:
    graded = f"graded by {page.graded_by}" if page.graded_by else ""
    return el(
        "details",
        el("summary", f"Step {page.step}", el("small", graded)),
        *(_prompt(prompt, limit) for prompt in page.prompts),
        el("p", el("a", shown_path(page.file, base), href=href(page.file, base)), class_="note"),
        class_="page",
        data_step=page.step,
    )


def _prompt(prompt: Prompt, limit: int) -> Html:
    vote = vote_key(prompt.vote)
    facts: list[Node] = [
        el("dt", "own vote"),
        el("dd", _answer(vote), el("small", prompt.vote[len(vote) :])),
        el("dt", "label"),
        el("dd", _answer(prompt.label)),
    ]
    if vote not in _NONE and prompt.label not in _NONE:
        agrees = vote == prompt.label
        word = "agree" if agrees else "differ"
        facts.append(el("dd", word, class_=f"badge {'agree' if agrees else 'differ'}"))
    groups = Counter(prompt.completions)
    return el(
        "article",
        el("h5", prompt.id),
        _text("prompt", prompt.text, 4 * limit),
        el("dl", *facts),
        _tally(prompt, vote),
        el("ol", *(_completion(group, count, limit) for group, count in groups.items())),
    )


def _tally(prompt: Prompt, vote: str) -> Html:
    """The group's answers by number, the most frequent first."""
    counts = Counter(completion.answer for completion in prompt.completions)
    chips = []
    for answer, count in counts.most_common(12):
        roles = [role for role, key in (("vote", vote), ("label", prompt.label)) if answer == key]
        kind = " ".join(["chip", *roles]) if answer not in _NONE else "chip none"
        said = f"{answer}: {count} of {len(prompt.completions)}" + "".join(f", {r}" for r in roles)
        chips.append(
            el("span", plain_answer(answer)[:40], el("b", f"×{count}"), class_=kind, title=said)
        )
    return el("p", *chips, class_="tally")


def _completion(completion: Completion, count: int, limit: int) -> Html:
    is_full = completion.reward in ("1", "1.0")
    is_zero = completion.reward in ("0", "0.0", "-0")
    kind = "full" if is_full else "zero" if is_zero else "some"
    return el(
        "li",
        el(
            "div",
            el("span", completion.reward, class_=f"reward {kind}", title="reward"),
            _answer(completion.answer),
            el("small", f"×{count}") if count > 1 else None,
            class_="verdict",
        ),
        _text("completion", completion.text, limit),
    )


def _answer(key: str) -> Html:
    if key in _NONE:
        return el("span", "none", class_="none")
    return el("code", plain_answer(key)[:120], title=key)


def _text(kind: str, text: str, limit: int) -> Html:
    cut = text if len(text) <= limit else text[:limit]
    rest = len(text) - len(cut)
    return el(
        "pre", join(cut, el("i", f" … {rest} more characters") if rest else None), class_=kind
    )
