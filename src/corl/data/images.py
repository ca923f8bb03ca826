"""Images of a prompt: where each one is, and how it becomes an RGB picture of bounded size.

A row keeps references, never decoded pictures: an image is opened when its prompt is read, and
let go of after the processor has seen it. Sizes come from the header, so a file that would unpack
to gigabytes is refused before it is decoded. Only formats that Pillow decodes itself are opened
(EPS would start a program).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corl.errors import PromptError

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_PIXELS = 64_000_000
"""Pixels of the largest image that is decoded: 192 MB in RGB."""
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
_BASE64_STARTS = ("iVBORw0KGgo", "/9j/", "UklGR", "R0lGOD", "Qk0", "SUkq", "TU0AK")
"""How PNG, JPEG, WebP, GIF, BMP and TIFF begin in base64."""
_SHORTEST_BASE64 = 48


@dataclass(frozen=True, slots=True)
class ImageRef:
    """One image of a row, not yet opened."""

    where: str
    """File, row and image, for errors."""
    long_side: int
    """Pixels; larger images are scaled down to it."""
    path: Path | None = None
    data: bytes | None = None
    """The encoded file, where the row holds it."""

    @property
    def identity(self) -> str:
        """What tells this image from another: its path, or a digest of its bytes."""
        if self.path is not None:
            return str(self.path)
        return hashlib.sha256(self.data or b"").hexdigest()


def image_refs(value: Any, *, base: Path, long_side: int, where: str) -> tuple[ImageRef, ...]:
    """References to the images that a row's field holds; () where it holds none.

    value: one image or a list: a path (relative to `base`), base64 (bare or a data URL), bytes, or
    an image column's {"bytes", "path"}.
    Raises PromptError for anything else, naming row and image.
    """
    if value is None or value == "":
        return ()
    many = isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)
    given = list(value) if many else [value]
    return tuple(
        _ref(one, base=base, long_side=long_side, where=f"{where}, image {number}")
        for number, one in enumerate(given, start=1)
    )


def open_image(ref: ImageRef) -> Image:
    """Decode one image: upright, RGB, its long side at most `ref.long_side`.

    Raises PromptError for a file that is missing, broken, too large or a single pixel.
    """
    image_module = _pillow()
    from PIL import ImageOps, UnidentifiedImageError

    source = io.BytesIO(ref.data) if ref.data is not None else ref.path
    assert source is not None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of sizes that are judged below
            with image_module.open(source, formats=_FORMATS) as opened:
                _check_size(opened.width, opened.height, ref)
                upright = ImageOps.exif_transpose(opened)
                upright.load()
                return _bounded(_rgb(upright), ref.long_side)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise PromptError(f"{ref.where}: there is no file {ref.path}") from None
    except PermissionError:
        raise PromptError(f"{ref.where}: {ref.path} may not be read") from None
    except UnidentifiedImageError:
        raise PromptError(f"{ref.where}: {_name(ref)} is no {', '.join(_FORMATS)} file") from None
    except image_module.DecompressionBombError:
        raise PromptError(f"{ref.where}: {_too_large(ref)}") from None
    except (OSError, ValueError, SyntaxError, EOFError, MemoryError) as error:
        raise PromptError(
            f"{ref.where}: {_name(ref)} is broken ({error}); replace it or drop the row"
        ) from None


def _ref(value: Any, *, base: Path, long_side: int, where: str) -> ImageRef:
    if isinstance(value, Mapping):
        held, name = value.get("bytes"), value.get("path")
        value = held if held is not None else name
    if isinstance(value, bytes | bytearray):
        return ImageRef(where, long_side, data=bytes(value))
    if not isinstance(value, str) or not value:
        raise PromptError(
            f"{where}: is {type(value).__name__}; an image is a path, base64, bytes, or an object "
            "with `bytes` or `path`"
        )
    if value.startswith(("http://", "https://")):
        raise PromptError(f"{where}: is an address; images are not downloaded, put the file here")
    if value.startswith("data:") or (
        value.startswith(_BASE64_STARTS) and len(value) >= _SHORTEST_BASE64 and "." not in value
    ):
        return ImageRef(where, long_side, data=_from_base64(value, where))
    return ImageRef(where, long_side, path=base / Path(value).expanduser())


def _from_base64(value: str, where: str) -> bytes:
    content = value.partition(",")[2] if value.startswith("data:") else value
    try:
        return base64.b64decode("".join(content.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise PromptError(f"{where}: is no base64 ({error})") from None


def _check_size(width: int, height: int, ref: ImageRef) -> None:
    if width * height > MOST_PIXELS:
        raise PromptError(f"{ref.where}: {_too_large(ref, f'{width} x {height}')}")
    if min(width, height) < 2:
        raise PromptError(
            f"{ref.where}: {_name(ref)} has {width} x {height} pixels, which show nothing; replace "
            "it or drop the row"
        )


def _too_large(ref: ImageRef, size: str = "too many") -> str:
    return (
        f"{_name(ref)} has {size} pixels, and at most {MOST_PIXELS // 10**6} million are decoded; "
        "scale it down"
    )


def _rgb(image: Image) -> Image:
    """Any mode as RGB; what is transparent shows white."""
    image_module = _pillow()
    if image.mode == "RGB" and "transparency" not in image.info:
        return image
    if image.mode.startswith("I"):  # 16 bits a pixel, which `convert` would clip at 255
        import numpy as np

        values = np.asarray(image).astype(np.int64).clip(0, 65535)
        if image.mode.startswith("I;16") or values.max(initial=0) > 255:
            values = values >> 8
        return image_module.fromarray(values.astype(np.uint8)).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        clear = image.convert("RGBA")
        white = image_module.new("RGBA", clear.size, (255, 255, 255, 255))
        return image_module.alpha_composite(white, clear).convert("RGB")
    return image.convert("RGB")


def _bounded(image: Image, long_side: int) -> Image:
    """Scaled down, never up, to a long side of at most `long_side`."""
    longest = max(image.size)
    if longest <= long_side:
        return image.copy()
    scale = long_side / longest
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.resize(size, _pillow().Resampling.BICUBIC)


def _name(ref: ImageRef) -> str:
    return "it" if ref.path is None else str(ref.path)


def _pillow() -> Any:
    try:
        from PIL import Image as image_module
    except ImportError:
        raise PromptError("prompts with images need Pillow; install corl[vision]") from None
    return image_module


class ImageSizes:
    """Sizes of images as models will see them; each image is decoded once and let go of."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[int, int]] = {}

    def of(self, ref: ImageRef) -> tuple[int, int]:
        """Width and height in pixels. Raises as `open_image`."""
        key = (ref.identity, ref.long_side)
        if key not in self._known:
            self._known[key] = open_image(ref).size
        return self._known[key]


def blank_image(width: int, height: int) -> Image:
    """A grey picture of that size."""
    blank: Image = _pillow().new("RGB", (width, height), (90, 120, 150))
    return blank
