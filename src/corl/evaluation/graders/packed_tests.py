"""LiveCodeBench's tests as they are published: JSON, or JSON that was pickled, packed and coded.

The packed form is base64 of zlib of a pickle of one text. Unpickling runs what the file says, so it
is never done: the few bytes around a pickled text are read as data, and anything else is refused.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from dataclasses import dataclass
from typing import Any, Literal

from corl.errors import PromptError

_MAX_UNPACKED_BYTES = 1 << 30
_PROTOCOL, _FRAME, _STOP = 0x80, 0x95, b"."
# Opcodes that push a text, and the bytes of its length; those that only remember it.
_TEXT = {ord("X"): 4, 0x8C: 1, 0x8D: 8}
_MEMO = {0x94: 0, ord("q"): 1, ord("r"): 4}


@dataclass(frozen=True, slots=True)
class CodeTest:
    """One test."""

    kind: Literal["stdin", "call"]
    input: str
    """Standard input; or arguments as JSON, one a line."""
    output: str
    """Expected standard output; or the value as JSON."""


def read_tests(field: Any) -> list[CodeTest]:
    """The tests of one field. Raises PromptError for what is neither form."""
    if field is None or field == "":
        return []
    content = field
    if isinstance(field, str):
        try:
            content = json.loads(field)
        except (ValueError, RecursionError):
            content = _unpacked(field)
    if not isinstance(content, list):
        raise PromptError(f"tests must be a list, and are {type(content).__name__}")
    return [_test(entry) for entry in content]


def _test(entry: Any) -> CodeTest:
    try:
        kind = {"stdin": "stdin", "functional": "call"}[entry.get("testtype", "stdin")]
        return CodeTest(
            "stdin" if kind == "stdin" else "call", str(entry["input"]), str(entry["output"])
        )
    except (AttributeError, KeyError, TypeError):
        seen = ", ".join(entry) if isinstance(entry, dict) else type(entry).__name__
        raise PromptError(
            f"a test needs input, output and testtype stdin or functional; seen: {seen}"
        ) from None


def _unpacked(text: str) -> Any:
    try:
        packed = base64.b64decode(text.encode("ascii"), validate=True)
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed, _MAX_UNPACKED_BYTES)
        if not unpacker.eof:
            raise PromptError(f"packed tests hold more than {_MAX_UNPACKED_BYTES} bytes")
        return json.loads(pickled_text(data))
    except (ValueError, UnicodeError, binascii.Error, zlib.error, RecursionError) as error:
        raise PromptError(
            f"tests are neither JSON nor the packed form of the release ({error}); pickles other "
            "than of one text are never loaded"
        ) from None


def pickled_text(data: bytes) -> str:
    """The text of a pickle that holds one text and nothing else, read without running it.

    Raises ValueError for any other pickle.
    """
    at, text = 0, None
    while at < len(data):
        code = data[at]
        if code == _PROTOCOL and at == 0:
            at += 2
        elif code == _FRAME:
            at += 9
        elif code in _TEXT and text is None:
            width = _TEXT[code]
            start = at + 1 + width
            end = start + int.from_bytes(data[at + 1 : start], "little")
            if end > len(data):
                raise ValueError("the pickle is cut short")
            text, at = data[start:end].decode("utf-8", "surrogatepass"), end
        elif code in _MEMO and text is not None:
            at += 1 + _MEMO[code]
        elif data[at:] == _STOP and text is not None:
            return text
        else:
            raise ValueError(f"byte {at} of the pickle is no part of a plain text")
    raise ValueError("the pickle does not end")
