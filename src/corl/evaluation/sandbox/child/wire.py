"""Plain values as bytes, and back: what candidate, tester and parent exchange.

Only built-in plain values exist on this wire, so an object with its own `==`
cannot cross it: it arrives as an `Opaque`, equal to nothing; other iterables
arrive as iterators over plain values. The reader trusts no byte.
"""

import os
import struct
from typing import Any

MAX_BYTES = 8 << 20
MAX_DEPTH = 100
MAX_ITEMS = 100_000


class WireError(Exception):
    """Bytes that are no value, or a value that has no bytes here."""


class Opaque:
    """Stands for a value that is not plain; equal only to itself."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name} object>"


def encode(value: Any) -> bytes:
    """Return the bytes of a plain value; a subclass is sent as its built-in base."""
    parts: list[bytes] = []
    _write(value, parts, 0)
    return b"".join(parts)


def _write(value: Any, parts: list[bytes], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise WireError("the value is nested too deeply")
    kind = type(value)
    if value is None or kind is bool:
        parts.append({None: b"N", True: b"T", False: b"F"}[value])
    elif issubclass(kind, int):
        value = int.__index__(value)
        raw = int.to_bytes(value, int.bit_length(value) // 8 + 1, "little", signed=True)
        parts += [b"i", struct.pack("<I", len(raw)), raw]
    elif issubclass(kind, float):
        parts += [b"d", struct.pack("<d", value)]
    elif issubclass(kind, complex):
        parts += [b"c", struct.pack("<dd", value.real, value.imag)]
    elif issubclass(kind, str):
        raw = str.encode(value, "utf-8", "surrogatepass")
        parts += [b"s", struct.pack("<I", len(raw)), raw]
    elif issubclass(kind, (bytes, bytearray)):
        parts += [b"b", struct.pack("<I", len(value)), bytes(value)]
    elif issubclass(kind, dict):
        items = [half for pair in dict.items(value) for half in pair]
        _write_items(b"m", items, parts, depth)
    else:
        _write_sequence(value, kind, parts, depth)


def _write_sequence(value: Any, kind: type, parts: list[bytes], depth: int) -> None:
    for tag, base in ((b"l", list), (b"t", tuple), (b"S", set), (b"Z", frozenset)):
        if issubclass(kind, base):
            _write_items(tag, list(base.__iter__(value)), parts, depth)
            return
    if hasattr(kind, "__iter__"):
        items = [item for item, _ in zip(value, range(MAX_ITEMS), strict=False)]
        _write_items(b"I", items, parts, depth)
        return
    raw = kind.__name__.encode()[:100]
    parts += [b"o", struct.pack("<I", len(raw)), raw]


def _write_items(tag: bytes, items: list[Any], parts: list[bytes], depth: int) -> None:
    parts += [tag, struct.pack("<I", len(items))]
    for item in items:
        _write(item, parts, depth + 1)


def decode(data: bytes) -> Any:
    """Read one value back. Raises `WireError` for anything else."""
    try:
        value, end = _read(data, 0, 0)
    except (struct.error, IndexError, TypeError, UnicodeDecodeError, OverflowError) as error:
        raise WireError(f"malformed value: {error}") from None
    if end != len(data):
        raise WireError(f"{len(data) - end} bytes follow the value")
    return value


def _read(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    tag, at = data[at : at + 1], at + 1
    if tag in (b"N", b"T", b"F"):
        return {b"N": None, b"T": True, b"F": False}[tag], at
    if tag == b"d":
        return struct.unpack_from("<d", data, at)[0], at + 8
    if tag == b"c":
        return complex(*struct.unpack_from("<dd", data, at)), at + 16
    (length,) = struct.unpack_from("<I", data, at)
    at += 4
    if length > len(data) - at:
        raise WireError("a length reaches past the end")
    if tag in (b"i", b"s", b"b", b"o"):
        return _scalar(tag, data[at : at + length]), at + length
    return _items(tag, length, data, at, depth)


def _scalar(tag: bytes, raw: bytes) -> Any:
    if tag == b"i":
        return int.from_bytes(raw, "little", signed=True)
    if tag == b"b":
        return raw
    text = raw.decode("utf-8", "surrogatepass")
    return text if tag == b"s" else Opaque(text)


def _items(tag: bytes, length: int, data: bytes, at: int, depth: int) -> tuple[Any, int]:
    if tag not in (b"l", b"t", b"S", b"Z", b"m", b"I"):
        raise WireError(f"unknown tag {tag!r}")
    if depth > MAX_DEPTH:
        raise WireError("the value is nested too deeply")
    items = []
    for _ in range(length):
        item, at = _read(data, at, depth + 1)
        items.append(item)
    if tag == b"m":
        return dict(zip(items[::2], items[1::2], strict=True)), at
    make: Any = {b"l": list, b"t": tuple, b"S": set, b"Z": frozenset, b"I": iter}[tag]
    return make(items), at


def send(descriptor: int, value: Any) -> None:
    """Write one framed value to a pipe. Raises `WireError` when it is too large."""
    body = encode(value)
    if len(body) > MAX_BYTES:
        raise WireError(f"the value takes {len(body)} bytes; {MAX_BYTES} are allowed")
    data = struct.pack("<I", len(body)) + body
    while data:
        data = data[os.write(descriptor, data) :]


def receive(descriptor: int) -> Any:
    """Read one framed value from a pipe. Raises `EOFError` when the writer is gone."""
    (length,) = struct.unpack("<I", _exactly(descriptor, 4))
    if length > MAX_BYTES:
        raise WireError(f"a frame announces {length} bytes; {MAX_BYTES} are allowed")
    return decode(_exactly(descriptor, length))


def _exactly(descriptor: int, count: int) -> bytes:
    parts = []
    while count:
        part = os.read(descriptor, min(count, 1 << 16))
        if not part:
            raise EOFError("the other end closed its pipe")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
