"""Building HTML so that forgetting to escape is not possible.

Text is escaped unless it is `Html`, and only this module makes `Html` out of
parts. What a model wrote, names and paths are never trusted.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from urllib.parse import quote

_VOID = frozenset({"meta"})
_EMPTY_SVG = frozenset({"path", "circle"})
# Control characters would vanish or break the document; newline and tab are text.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Node = str | int | float | None | Iterable["Node"]


def text(value: object) -> Html:
    """Escape for element content and quoted attributes alike."""
    return Html(escape(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(value)), quote=True))


def join(*children: Node) -> Html:
    """Concatenate nodes; strings are escaped, None is nothing."""
    parts: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            parts.append(child)
        elif isinstance(child, str | int | float):
            parts.append(text(child))
        else:
            parts.append(join(*child))
    return Html("".join(parts))


def el(name: str, /, *children: Node, **attributes: object) -> Html:
    """One element. `class_` and `for_` lose their underscore, inner ones become hyphens.

    An attribute that is None or False is left out, one that is True has no value.
    """
    parts = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        label = key.rstrip("_").replace("_", "-")
        parts.append(f" {label}" if value is True else f' {label}="{text(value)}"')
    opened = f"<{name}{''.join(parts)}"
    if name in _EMPTY_SVG and not children:
        return Html(f"{opened}/>")
    return Html(f"{opened}>" if name in _VOID else f"{opened}>{join(*children)}</{name}>")


def scrolled(*children: Node, label: str, stacks: bool = False) -> Html:
    """A table that scrolls sideways where it is too wide, by the keyboard too.

    stacks: in a narrow window a row becomes a block instead.
    """
    table = el("table", *children, class_="plain stack" if stacks else "plain")
    return el("div", table, class_="scroll", tabindex="0", role="region", aria_label=label)


def href(target: Path, base: Path) -> str:
    """A relative link from a page in `base`; it cannot be taken for a scheme or a fragment."""
    relative = Path(os.path.relpath(target.absolute(), base.absolute())).as_posix()
    return "./" + quote(relative.encode("utf-8", "surrogateescape"), safe="/")


def shown_path(target: Path, base: Path) -> str:
    """The same path for a person to read."""
    return Path(os.path.relpath(target.absolute(), base.absolute())).as_posix()


def percent(value: float | None, *, sign: bool = False) -> str:
    """A share as a percentage with one decimal."""
    if value is None:
        return "–"
    shown = f"{100 * value:+.1f}" if sign else f"{100 * value:.1f}"
    return shown.replace("-", "\N{MINUS SIGN}")


def brief(value: float | None) -> str:
    """A number of any size in few characters."""
    if value is None or not math.isfinite(value):
        return "–"
    shown = f"{value:.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"
    return shown.replace("-", "\N{MINUS SIGN}")
