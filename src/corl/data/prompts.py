"""Read prompt files and line agents up on the same rows.

A row is one prompt. Its label, where it has one, stays beside the prompt and
reaches training only through the `ground_truth` method. Rows of different
agents stand for the same problem when their ids agree (or, without ids, their
positions); the wording may differ, since a peer may read a rewrite.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from corl.config import PromptsConfig
from corl.data.images import ImageRef, image_refs
from corl.data.records import encoded_images, read_records
from corl.errors import PromptError

_LONGEST_LINE = 4 * 2**20
_LONGEST_LINE_WITH_IMAGES = 256 * 2**20
_IMAGE_MARK = "<image>"


@dataclass(frozen=True, slots=True)
class PromptRow:
    """One prompt and how its answer is read."""

    id: str
    """Identity across agents: the row's own id, or its position."""
    text: str
    """The prompt, suffix included."""
    kind: str
    """Answer kind: math, choice, code, text, or a dotted path."""
    label: str | None = None
    """The raw label, never extracted again; None where there is none."""
    choices: tuple[str, ...] | None = None
    """Option texts in letter order, for choices."""
    calls: tuple[str, ...] | None = None
    """Example calls whose outputs are the answer, for code."""
    images: tuple[ImageRef, ...] = ()
    """What the prompt shows, in front of its text; not opened yet."""


@dataclass(frozen=True, slots=True)
class PromptSet:
    """The rows of one file, in file order."""

    source: str
    rows: tuple[PromptRow, ...]
    has_ids: bool
    """Whether every row named its own id."""
    rewritten: PromptSet | None = None
    """The same rows in a second wording, for methods that train on both."""

    def at(self, indices: Sequence[int]) -> list[PromptRow]:
        """The rows of a step: those at `indices`, then their second wordings where there are."""
        wordings = [self] if self.rewritten is None else [self, self.rewritten]
        return [wording.rows[index] for wording in wordings for index in indices]


def load_prompts(config: PromptsConfig) -> PromptSet:
    """Read and check a prompt file (or hub data set) whole.

    Raises PromptError naming the file, the row and what is wrong with it.
    """
    rows: list[PromptRow] = []
    ids_given = 0
    for number, record in enumerate(_records(config), start=1):
        rows.append(_row(record, number, config))
        ids_given += record.get(config.id_field) is not None
        if len(rows) == config.limit:
            break
    if not rows:
        raise PromptError(f"prompt file {config.file} has no rows")
    has_ids = ids_given == len(rows)
    if not has_ids and ids_given:
        raise PromptError(
            f"prompt file {config.file}: {ids_given} of {len(rows)} rows have "
            f"{config.id_field!r}; give every row one, or none"
        )
    _refuse_repeated_ids(rows, config)
    return PromptSet(config.file, tuple(rows), has_ids)


def align(sets: Mapping[str, PromptSet]) -> dict[str, PromptSet]:
    """Put every agent's rows in the order of the first agent's.

    By id where both files have ids, by position otherwise. Raises PromptError
    where the files do not hold the same problems or answer kinds.
    """
    (first_name, first), *others = sets.items()
    aligned = {first_name: first}
    for name, other in others:
        aligned[name] = _aligned_to(first, first_name, other, name)
    return aligned


def _aligned_to(first: PromptSet, first_name: str, other: PromptSet, name: str) -> PromptSet:
    where = f"{other.source} (agent {name}) against {first.source} (agent {first_name})"
    if len(other.rows) != len(first.rows):
        raise PromptError(
            f"prompt files do not align: {len(other.rows)} rows in {where} with {len(first.rows)}"
        )
    rows = other.rows
    if first.has_ids and other.has_ids:
        by_id = {row.id: row for row in rows}
        missing = [row.id for row in first.rows if row.id not in by_id]
        if missing:
            raise PromptError(
                f"prompt files do not align: id {missing[0]!r} and {len(missing) - 1} more "
                f"are missing in {where}"
            )
        rows = tuple(by_id[row.id] for row in first.rows)
    else:
        rows = tuple(replace(row, id=own.id) for own, row in zip(first.rows, rows, strict=True))
    for own, row in zip(first.rows, rows, strict=True):
        if own.kind != row.kind:
            raise PromptError(
                f"row {own.id!r} has answer kind {row.kind!r} in {where} with {own.kind!r}"
            )
    return PromptSet(other.source, rows, other.has_ids)


def _row(record: Any, number: int, config: PromptsConfig) -> PromptRow:
    where = f"prompt file {config.file}, row {number}"
    if not isinstance(record, Mapping):
        raise PromptError(f"{where}: is {type(record).__name__}, not an object of fields")
    text = record.get(config.field)
    if text is None:
        fields = ", ".join(map(str, record)) or "none"
        raise PromptError(
            f"{where}: no field {config.field!r}; its fields are {fields}. Set `prompts.field`, or "
            "--field on the command line"
        )
    if not isinstance(text, str) or not text.strip():
        raise PromptError(f"{where}: field {config.field!r} holds no text")
    given_id = record.get(config.id_field)
    images = _images(record, config, where)
    if images and text.count(_IMAGE_MARK) == len(images):
        # Data sets mark where images belong; here they stand in front of the text.
        text = text.replace(_IMAGE_MARK, "").lstrip()
    return PromptRow(
        id=str(number - 1 if given_id is None else given_id),
        text=text + config.suffix,
        kind=str(record.get("kind") or config.kind),
        label=_label(record.get(config.answer_field), config),
        choices=_texts(record, "choices", where),
        calls=_texts(record, "calls", where),
        images=images,
    )


def _images(record: Mapping[str, Any], config: PromptsConfig, where: str) -> tuple[ImageRef, ...]:
    if not config.images_field:
        return ()
    if config.images_field not in record:
        raise PromptError(
            f"{where}: no field {config.images_field!r}; set `prompts.images_field`, and give rows "
            "without images an empty list"
        )
    return image_refs(
        record[config.images_field],
        base=Path(config.file).parent,
        long_side=config.image_long_side,
        where=where,
    )


def _label(value: Any, config: PromptsConfig) -> str | None:
    if value is None:
        return None
    text = str(value)
    if config.answer_marker:
        text = text.rpartition(config.answer_marker)[2]
    return text.strip() or None


def _texts(record: Mapping[str, Any], field: str, where: str) -> tuple[str, ...] | None:
    value = record.get(field)
    if value is None:
        return None
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise PromptError(f"{where}: field {field!r} must be a list of texts")
    return tuple(str(item) for item in value)


def _refuse_repeated_ids(rows: Iterable[PromptRow], config: PromptsConfig) -> None:
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            raise PromptError(f"prompt file {config.file}: id {row.id!r} stands on two rows")
        seen.add(row.id)


def _records(config: PromptsConfig) -> Iterator[Any]:
    path = Path(config.file)
    if path.suffix == ".parquet" or path.is_absolute() or path.exists():
        longest = _LONGEST_LINE_WITH_IMAGES if config.images_field else _LONGEST_LINE
        yield from read_records(path, kind="prompt file", longest_line=longest)
    else:
        yield from _hub_records(config)


def _hub_records(config: PromptsConfig) -> Iterator[Any]:
    try:
        import datasets
    except ImportError:
        raise PromptError(
            f"reading {config.file} needs the datasets library; install corl[datasets]"
        ) from None
    try:
        rows = datasets.load_dataset(config.file, split=config.split, streaming=True)
        yield from encoded_images(rows)
    except PromptError:
        raise
    except Exception as error:
        raise PromptError(
            f"prompts {config.file!r}: neither a file here nor a data set that could be read "
            f"({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''})"
        ) from None
