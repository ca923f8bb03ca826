"""A checkpoint's processor, with or without the libraries that only its videos need.

Some families' processors insist on a video part, which needs torchvision (and, for SmolVLM,
num2words). Images need neither. Where that part does not load, its settings are kept as they
stand in the checkpoint and written back on saving, so that nothing is lost.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import transformers
from transformers import AutoImageProcessor, AutoProcessor
from transformers.models.auto.processing_auto import PROCESSOR_MAPPING
from transformers.processing_utils import ProcessorMixin
from transformers.utils import cached_file

from corl.errors import ModelError, first_line

_CONFIGS = ("processor_config.json", "preprocessor_config.json", "tokenizer_config.json")
_PARTS = ("image_processor", "video_processor", "feature_extractor", "tokenizer")


class VideoSettings(dict[str, Any]):
    """The video part's settings, in the place of the part itself."""

    _auto_class = None


def load_processor(
    location: str, source: str | Path, config: Any, tokenizer: Any, *, trust_remote_code: bool
) -> Any:
    """Load the processor of a vision-language checkpoint around its tokenizer.

    Raises ModelError where it cannot be built.
    """
    try:
        processor = _whole(location, trust_remote_code)
        if processor is None:
            processor = _without_video(location, config, tokenizer)
    except (OSError, ValueError, KeyError, ImportError, AttributeError, TypeError) as error:
        raise ModelError(
            f"model {str(source)!r}: its processor does not load ({first_line(error)}). Put "
            "processor_config.json or preprocessor_config.json beside the weights; prompts with "
            "images need corl[vision]."
        ) from error
    if getattr(processor, "image_processor", None) is None:
        raise ModelError(
            f"model {str(source)!r}: its processor ({type(processor).__name__}) reads no images."
        )
    if not processor.tokenizer.chat_template and isinstance(processor.chat_template, str):
        processor.tokenizer.chat_template = processor.chat_template
    return processor


def _whole(location: str, trust_remote_code: bool) -> Any:
    """The processor as transformers loads it; None where a library for videos is missing."""
    try:
        return AutoProcessor.from_pretrained(location, trust_remote_code=trust_remote_code)
    except (ImportError, ValueError, TypeError) as error:
        words = str(error).lower()
        if any(word in words for word in ("torchvision", "num2words", "video")):
            return None
        raise


def _without_video(location: str, config: Any, tokenizer: Any) -> Any:
    settings = _settings(location)
    names = [one["processor_class"] for one in settings.values() if "processor_class" in one]
    kind = getattr(transformers, names[0]) if names else PROCESSOR_MAPPING[type(config)]
    own = settings.get("processor_config.json", {})
    skipped = (*_PARTS, "processor_class", "auto_map")
    with _num2words_spared(kind):
        return _still(kind)(
            image_processor=AutoImageProcessor.from_pretrained(location),
            tokenizer=tokenizer,
            video_processor=VideoSettings(_video_settings(location, own)),
            chat_template=tokenizer.chat_template,
            **{key: value for key, value in own.items() if key not in skipped},
        )


def _still(kind: type[ProcessorMixin]) -> Any:
    """The same class, but content with settings in the place of a video part."""

    def check(self: Any, name: str, part: Any) -> Any:
        if isinstance(part, VideoSettings):
            return VideoSettings
        return kind.check_argument_for_proper_class(self, name, part)

    # Under its own name, which is what saving writes down.
    return type(kind.__name__, (kind,), {"check_argument_for_proper_class": check})


@contextmanager
def _num2words_spared(kind: type[ProcessorMixin]) -> Iterator[None]:
    """SmolVLM's processor is not made without num2words, though only videos are described by it."""
    module: Any = sys.modules[kind.__module__]
    if getattr(module, "num2words", str) is not None:
        yield
        return
    module.num2words = str
    try:
        yield
    finally:
        module.num2words = None


def _settings(location: str) -> dict[str, dict[str, Any]]:
    return {name: found for name in _CONFIGS if (found := _read(location, name))}


def _video_settings(location: str, own: dict[str, Any]) -> dict[str, Any]:
    held = own.get("video_processor") or _read(location, "video_preprocessor_config.json")
    return dict(held or {})


def _read(location: str, name: str) -> dict[str, Any]:
    file = cached_file(location, name, _raise_exceptions_for_missing_entries=False)
    if file is None:
        return {}
    content: dict[str, Any] = json.loads(Path(file).read_text(encoding="utf-8"))
    return content
