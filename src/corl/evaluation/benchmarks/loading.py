"""From a benchmark's file and its data to items, every one checked before a model is loaded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from corl.answers import canonical
from corl.data.images import image_refs
from corl.errors import PromptError
from corl.evaluation.benchmarks.items import Item
from corl.evaluation.benchmarks.options import (
    lettered,
    option_texts,
    order_by_id,
    right_letter,
)
from corl.evaluation.benchmarks.records import hub_records, read_records
from corl.evaluation.benchmarks.schema import Benchmark, Names

_SLOT = re.compile(r"\{(prompt|choices|tests|starter)\}")
_EXTRAS = (
    "test", "entry_point", "tests", "setup", "starter", "public_tests", "private_tests",
    "metadata", "precision",
)  # fmt: skip


def load_items(
    benchmark: Benchmark, data: str | Path | None = None, *, limit: int | None = None
) -> list[Item]:
    """Read a benchmark's rows.

    data: a file or folder of JSONL, JSON (both also .gz) or Parquet; left out: the hub.
    limit: the first so many rows.
    Raises PromptError naming the row and what is wrong with it; a field that is not there is
    reported with the names that were found.
    """
    if data is None and benchmark.source is None:
        raise PromptError(
            f"benchmark {benchmark.name} has no `source`; give its file: {benchmark.name}=FILE"
        )
    if data is not None:
        records = read_records(Path(data).expanduser())
    else:
        assert benchmark.source is not None
        records = hub_records(benchmark.source)
    where = f"benchmark {benchmark.name} ({data or (benchmark.source and benchmark.source.id)})"
    return items_of(benchmark, records, where=where, limit=limit, base=_folder(data))


def _folder(data: str | Path | None) -> Path:
    """What paths of pictures are relative to: the data's own folder."""
    if data is None:
        return Path()
    path = Path(data).expanduser()
    return path if path.is_dir() else path.parent


def items_of(
    benchmark: Benchmark,
    records: Iterable[Mapping[str, Any]],
    *,
    where: str,
    limit: int | None = None,
    base: Path = Path(),  # noqa: B008
) -> list[Item]:
    """Items of rows already read; see `load_items`. base: what paths of pictures begin from."""
    items: list[Item] = []
    seen: set[str] = set()
    for place, record in enumerate(islice(records, limit)):
        item = _Row(benchmark, record, place, f"{where}, row {place + 1}", base).item()
        if item.id in seen:
            raise PromptError(f"{where}: id {item.id!r} stands on two rows")
        seen.add(item.id)
        items.append(item)
    if not items:
        raise PromptError(f"{where} has no rows")
    return items


class _Row:
    """One row of data on its way to an item."""

    def __init__(
        self,
        benchmark: Benchmark,
        record: Mapping[str, Any],
        place: int,
        where: str,
        base: Path,
    ) -> None:
        self._benchmark, self._record, self._base = benchmark, record, base
        self._place, self._where = place, where
        identity = self._optional("id")
        self._id = str(place if identity is None else identity)

    def item(self) -> Item:
        benchmark = self._benchmark
        text = self._needed("prompt")
        if not isinstance(text, str) or not text.strip():
            raise PromptError(f"{self._where}: field {self._name('prompt')!r} holds no text")
        extra = {name: self._optional(name) for name in _EXTRAS if self._names(name)}
        for name in ("test", "entry_point", "tests", "public_tests"):
            if name in extra:
                self._needed(name)
        choices, answer = self._choices_and_answer()
        kind = benchmark.answer.kind
        if kind in ("math", "choice") and benchmark.fields.choices is not None:
            kind = "choice" if choices else "math"
        slots = {
            "prompt": text,
            "choices": lettered(choices or ()),
            "tests": "\n".join(map(str, extra.get("tests") or ())),
            "starter": str(extra.get("starter") or ""),
        }
        plain = benchmark.prompt if benchmark.plain_prompt is None else benchmark.plain_prompt
        return Item(
            id=self._id,
            problem=text,
            prompt=_filled(benchmark.prompt, slots),
            plain=_filled(plain, slots),
            kind=kind,
            answer=answer,
            choices=choices,
            place=self._place,
            extra=extra,
            images=image_refs(
                self._optional("image"),
                base=self._base,
                long_side=benchmark.image_long_side,
                where=self._where,
            ),
        )

    def _choices_and_answer(self) -> tuple[tuple[str, ...] | None, str | None]:
        fields, rule = self._benchmark.fields, self._benchmark.answer
        if fields.answer is None:
            return None, None
        gold = self._needed("answer")
        if fields.wrong_options:
            options = [str(gold), *(str(self._value(name)) for name in fields.wrong_options)]
            order = order_by_id(self._id, len(options))
            letter = right_letter(order.index(0), options, "index")
            return tuple(options[place].strip() for place in order), letter
        choices = option_texts(self._optional("choices"), marker=rule.choices_marker)
        if choices:
            letter = right_letter(gold, choices, rule.written_as)
            if letter is None:
                raise PromptError(
                    f"{self._where}: the gold {gold!r} names none of its {len(choices)} options "
                    f"({', '.join(choices)[:200]}); set `answer.written_as`"
                )
            return choices, letter
        if self._benchmark.grader == "choice":
            raise PromptError(f"{self._where}: field {self._name('choices')!r} holds no options")
        return None, self._bare_gold(gold)

    def _bare_gold(self, gold: Any) -> str:
        """The gold as a text; 142.0 is 142."""
        if isinstance(gold, float) and gold.is_integer():
            gold = int(gold)
        text = str(gold)
        marker = self._benchmark.answer.marker
        if marker:
            if marker not in text:
                raise PromptError(f"{self._where}: its gold has no {marker!r} ({text[-80:]!r})")
            text = text.rpartition(marker)[2]
        text = text.strip()
        kind = self._benchmark.answer.kind
        if canonical(text, "text" if kind == "text" else "math") is None:
            raise PromptError(f"{self._where}: its gold {gold!r} is no answer")
        return text

    def _needed(self, field: str) -> Any:
        value = self._optional(field)
        if value is None:
            raise PromptError(self._missing(self._name(field), field))
        return value

    def _value(self, name: str) -> Any:
        if self._record.get(name) is None:
            raise PromptError(self._missing(name, "wrong_options"))
        return self._record[name]

    def _optional(self, field: str) -> Any:
        found = (self._record.get(name) for name in self._names(field))
        return next((value for value in found if value is not None), None)

    def _names(self, field: str) -> tuple[str, ...]:
        names: Names | None = getattr(self._benchmark.fields, field)
        return () if names is None else (names,) if isinstance(names, str) else names

    def _name(self, field: str) -> str:
        return " or ".join(self._names(field))

    def _missing(self, name: str, field: str) -> str:
        found = ", ".join(map(str, self._record)) or "none"
        doubt = ""
        if self._benchmark.is_unverified(field):
            doubt = " (the name was never checked against the data set)"
        return (
            f"{self._where}: no field {name!r}{doubt}; its fields are {found}. Copy the "
            f"benchmark's file, set `fields.{field}`, and name that file"
        )


def _filled(template: str, slots: Mapping[str, str]) -> str:
    """Fill every slot in one pass, so that a problem's own braces stay as they are."""
    return _SLOT.sub(lambda match: slots[match[1]], template)
