"""Chains as pictures: one glyph to a cell of eight pixels, three cells to a line.

The glyphs are the project's own, so that a picture does not depend on the fonts of a machine. Each
stands at a random place of its cell in a random grey on white: a reader has to see shapes, not
compare pixels.
"""

from __future__ import annotations

import base64
import io
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

CELL = 8
LINE_CELLS = 3
SIDE = CELL * LINE_CELLS
WIDTH, HEIGHT = 5, 7
WHITE = 255
LIGHTEST_INK = 96

_ROWS = {
    "0": "01110 10001 10011 10101 11001 10001 01110",
    "1": "00100 01100 00100 00100 00100 00100 01110",
    "2": "01110 10001 00001 00110 01000 10000 11111",
    "3": "01110 10001 00001 00110 00001 10001 01110",
    "4": "00010 00110 01010 10010 11111 00010 00010",
    "5": "11111 10000 11110 00001 00001 10001 01110",
    "6": "00110 01000 10000 11110 10001 10001 01110",
    "7": "11111 00001 00010 00100 01000 01000 01000",
    "8": "01110 10001 10001 01110 10001 10001 01110",
    "9": "01110 10001 10001 01111 00001 00010 01100",
    "+": "00000 00100 00100 11111 00100 00100 00000",
    "-": "00000 00000 00000 11111 00000 00000 00000",
    "*": "00000 10101 01110 11111 01110 10101 00000",
    "m": "00000 00000 11010 10101 10101 10001 10001",
}
GLYPHS: dict[str, tuple[tuple[int, int], ...]] = {
    sign: tuple(
        (x, y) for y, row in enumerate(rows.split()) for x, dot in enumerate(row) if dot == "1"
    )
    for sign, rows in _ROWS.items()
}
"""Sign -> the dots (x, y) that are inked, in a box of `WIDTH` x `HEIGHT`."""


def draw(signs: str, rng: random.Random) -> Image:
    """A grey picture of `SIDE` x `SIDE` pixels; as many signs as it has cells, or fewer."""
    from PIL import Image

    if len(signs) > LINE_CELLS**2:
        raise ValueError(f"{signs!r} has {len(signs)} signs, but a picture has {LINE_CELLS**2}")
    picture = Image.new("L", (SIDE, SIDE), WHITE)
    for place, sign in enumerate(signs):
        line, column = divmod(place, LINE_CELLS)
        left = column * CELL + rng.randrange(CELL - WIDTH + 1)
        top = line * CELL + rng.randrange(CELL - HEIGHT + 1)
        ink = rng.randrange(LIGHTEST_INK)
        for x, y in GLYPHS[sign]:
            picture.putpixel((left + x, top + y), ink)
    return picture


def as_data_url(picture: Image) -> str:
    """The picture as PNG in a data URL, as a prompt file carries it."""
    stream = io.BytesIO()
    picture.save(stream, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()
