"""Are the options of a multiple-choice item kept, each under its letter?"""

from __future__ import annotations

import re

from corl.diversity.rephrase.quantities import quantities

_LABEL = re.compile(r"(?:^|(?<=\s))(?:\\textbf\{)?[(\[]?([A-J])[.)\]](?:\s?\}?)(?=\s|\\|\$|\})")
_FARTHEST = 40
"""Letters looked at from an A on."""


def option_faults(original: str, rewritten: str) -> list[str]:
    """What happened to the options; empty where the original lists none."""
    before = options(original)
    if not before:
        return []
    after = options(rewritten)
    if list(after) != list(before):
        return [f"options {', '.join(before)} became {', '.join(after) or 'none'}"]
    faults = []
    for letter, text in before.items():
        values = [
            sorted(one.value for one in quantities(side) if one.form != "implied")
            for side in (text, after[letter])
        ]
        if values[0] != values[1]:
            faults.append(f"option {letter} altered")
    return faults


def options(text: str) -> dict[str, str]:
    """Option texts by letter, where a text lists A, B, ... in order; the last such list counts."""
    labels = list(_LABEL.finditer(text))
    for first in range(len(labels) - 1, -1, -1):
        if labels[first][1] != "A":
            continue
        listed: list[re.Match[str]] = []
        for label in labels[first : first + _FARTHEST]:
            if label[1] == chr(ord("A") + len(listed)):
                listed.append(label)
        if len(listed) > 1:
            ends = [label.start() for label in listed[1:]] + [len(text)]
            return {
                label[1]: text[label.end() : end].strip()
                for label, end in zip(listed, ends, strict=True)
            }
    return {}
