"""The part of a sampled text that can hold its answer.

Removed before any marker is looked for: thinking blocks, everything after the
assistant's own turn (chat tokens), and a run-on few-shot continuation, in which
a base model asks itself the next question. A thinking block without an end
means that the answer was never reached.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_CHAT_TOKEN = (
    r"(?:<\|(?:im_start|im_end|im_sep|endoftext|eot_id|eom_id|end_of_text|begin_of_text|"
    r"start_header_id|end_header_id|end|user|assistant|system|return|EOT)\|>"
    r"|</s>|<(?:start|end)_of_turn>|<(?:eos|bos)>|\[/?INST\]"
    r"|<｜(?:end▁of▁sentence|begin▁of▁sentence|User|Assistant)｜>)"
)
_CHAT = re.compile(_CHAT_TOKEN)
_OWN_TURN = re.compile(rf"(?:\s*{_CHAT_TOKEN}(?:\s*(?:assistant|model)\b)?)*")
_CHAT_HINTS = ("<|", "</s>", "<eos>", "<bos>", "_of_turn>", "INST]", "<｜")

_THINK = re.compile(
    r"<(/?)(?:think|thinking|thought)[ \t]{0,4}>|<\|(?:begin|(end))_of_thought\|>", re.IGNORECASE
)

_QUESTION = (
    r"(?:(?:Next|New|Another)[ \t])?(?:Question|QUESTION|Problem|PROBLEM|Exercise|Instruction|"
    r"Human|HUMAN|User|USER|Frage|Aufgabe|Pregunta|Problème|Problema|Domanda|Pergunta|问题|题目)"
    r"(?:[ \t]#?\d{1,4})?"
)
_RUN_ON = re.compile(
    rf"\n(?:[ \t>#*_]{{0,8}}{_QUESTION}|[ \t]{{0,4}}\n[ \t>#*_]{{0,8}}Q\d{{0,3}})"
    r"[ \t*_]{0,4}[:：]"
)
# "Sure, let me restate it:" before "Problem: ..." introduces the model's own solution.
_LEAD_IN = re.compile(
    r"(?:sure|okay|ok|certainly|of course|let's|let us|let me|to solve|to answer|first|here|we|i'll"
    r"|i will|restat\w*)\b[^\n\\#<]{0,160}",
    re.IGNORECASE,
)


class Body(NamedTuple):
    """What is left of a completion."""

    text: str
    """The visible answer, stripped."""

    is_cut: bool
    """Whether text after the answer was dropped, so that what is left ends on purpose."""


def completion_body(text: str, *, is_code: bool = False) -> Body | None:
    """The visible part of a completion; None when its thinking never ended.

    is_code: lines such as "Problem:" belong to the program's docstrings, not to a run-on.
    """
    turn, turn_ended = _first_turn(text)
    visible, still_thinking = _without_thinking(turn)
    visible = visible.strip()
    run_on = None if is_code else _run_on_start(visible)
    if run_on is not None:
        return Body(visible[:run_on].rstrip(), True)
    if still_thinking:
        return None
    return Body(visible, turn_ended)


def _first_turn(text: str) -> tuple[str, bool]:
    """The text up to the first chat token that ends or follows the turn, and if there is one."""
    if not any(hint in text for hint in _CHAT_HINTS):
        return text, False
    opened = _OWN_TURN.match(text)
    start = opened.end() if opened else 0
    end = _CHAT.search(text, start)
    return (text[start:], False) if end is None else (text[start : end.start()], True)


def _without_thinking(text: str) -> tuple[str, bool]:
    """The text outside thinking blocks, and whether the last block is open at the end.

    A closing tag that nothing opened ends a block that the prompt opened: all
    before it was thinking.
    """
    if not any(hint in text for hint in ("hink", "HINK", "hought", "HOUGHT")):
        return text, False
    parts: list[str] = []
    shown_from, is_open, closed_before = 0, False, False
    for tag in _THINK.finditer(text):
        closes = bool(tag[1] or tag[2])
        if closes:
            if not is_open:
                if closed_before:
                    parts.append(text[shown_from : tag.start()])
                else:
                    parts.clear()
            shown_from, is_open, closed_before = tag.end(), False, True
        elif not is_open:
            parts.append(text[shown_from : tag.start()])
            is_open = True
    if not is_open:
        parts.append(text[shown_from:])
    # A line break between the parts keeps them from joining into a new tag or number.
    return "\n".join(parts), is_open


def _run_on_start(body: str) -> int | None:
    """Where the next question of a run-on continuation begins; None without one."""
    for question in _RUN_ON.finditer(body):
        head = body[: question.start()]
        if not _LEAD_IN.fullmatch(head.rstrip()):
            return question.start()
    return None
