"""What a benchmark file says: where its rows are, how they are asked, read and graded.

One YAML file a benchmark. Frozen pydantic models that refuse unknown keys; docs/evaluation.md
explains the keys to people who write their own.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, PositiveInt, model_validator

from corl.config.section import Section

Names = str | tuple[str, ...]
"""A field's name, or several of which the first that a row has counts."""

GraderName = Literal[
    "math", "choice", "choice_or_math", "text", "number", "humaneval", "mbpp", "livecodebench"
]

CODE_GRADERS: tuple[GraderName, ...] = ("humaneval", "mbpp", "livecodebench")


class HubSource(Section):
    """A data set of the hub."""

    id: str
    """OWNER/NAME."""
    config: str | None = None
    """Its configuration, where it has several."""
    split: str = "test"
    """Its split."""
    revision: str = "main"
    """Branch, tag or commit."""
    files: tuple[str, ...] = ()
    """JSON-lines files of the repository, for sets that are a script and no table."""


class Fields(Section):
    """Names of the data set's fields; only `prompt` is needed by all."""

    prompt: Names
    """The problem."""
    id: Names | None = None
    """What tells rows apart; left out, or absent: the row's position, from 0."""
    answer: Names | None = None
    """The gold."""
    choices: Names | None = None
    """Options, as a list or as one text ("A. 3; B. 4"); a row without any is not a choice."""
    wrong_options: tuple[str, ...] = ()
    """Fields of the wrong options beside `answer`, the text of the right one: shuffled by id."""
    test: Names | None = None
    """HumanEval: source that defines `check`."""
    entry_point: Names | None = None
    """HumanEval: the function's name."""
    tests: Names | None = None
    """MBPP: list of assertions."""
    setup: Names | None = None
    """MBPP: source, or list of imports, that the assertions need."""
    starter: Names | None = None
    """LiveCodeBench: code that a call-based solution starts from."""
    public_tests: Names | None = None
    """LiveCodeBench: JSON list of `input`, `output`, `testtype`."""
    private_tests: Names | None = None
    """LiveCodeBench: the same, or its packed form."""
    metadata: Names | None = None
    """LiveCodeBench: JSON object with `func_name`."""
    precision: Names | None = None
    """Decimals to which a numeric answer is rounded before it is compared."""
    image: Names | None = None
    """The picture or pictures; such a benchmark is asked of vision-language models alone."""


class AnswerRule(Section):
    """How the gold is written."""

    kind: Literal["math", "choice", "text", "code"] = "math"
    """How completions are read (docs/answers.md)."""
    marker: str = ""
    """The gold is the text behind this marker's last occurrence, such as GSM8K's `####`."""
    written_as: Literal["auto", "letter", "index", "text"] = "auto"
    """A choice's gold: its letter, its place from 0, or the option's text. auto: a whole number is
    a place, else a letter, else a text."""
    choices_marker: str = ""
    """Options given as a text stand behind this marker; a row without it is not a choice."""
    tolerance: float = Field(0.0, ge=0, lt=1)
    """Grader `number`: relative difference that still counts as equal."""


class Benchmark(Section):
    """One benchmark."""

    name: str = Field(pattern=r"[a-z0-9][a-z0-9_.-]{0,63}")
    """What the command, tables and folders call it."""
    title: str
    """What its authors call it."""
    source: HubSource | None = None
    """Where it is read from when no file is named."""
    rows: PositiveInt | None = None
    """How many rows it has, for a warning where a file holds another number."""
    unverified: bool | tuple[str, ...] = False
    """Field names (or true for all) that nobody has held against the data set itself."""
    fields: Fields
    """Names of its fields."""
    prompt: str = "{prompt}"
    """The user's turn: `{prompt}`, `{choices}`, `{tests}` and `{starter}` are filled in."""
    plain_prompt: str | None = None
    """The text for a model without chat template; left out: `prompt`."""
    plain_stop: tuple[str, ...] = ()
    """Texts at which such a model's completion ends."""
    answer: AnswerRule = AnswerRule()
    """How golds and completions are read."""
    grader: GraderName
    """Who decides whether a completion is right."""
    metric: Literal["avg", "greedy"] = "avg"
    """The reported figure: mean over K samples, or the most probable completion."""
    samples: PositiveInt = 1
    """Completions of a row where the command names no number."""
    image_long_side: PositiveInt = 1024
    """Pixels; a picture whose longer side has more is scaled down to it."""

    @model_validator(mode="after")
    def _grader_has_its_fields(self) -> Self:
        needed = {
            "humaneval": ("test", "entry_point"),
            "mbpp": ("tests",),
            "livecodebench": ("public_tests",),
        }.get(self.grader, ("answer",))
        missing = [name for name in needed if getattr(self.fields, name) is None]
        if missing:
            raise ValueError(
                f"benchmark {self.name!r}: grader {self.grader} needs `fields.{missing[0]}`"
            )
        if (self.grader in CODE_GRADERS) != (self.answer.kind == "code"):
            raise ValueError(
                f"benchmark {self.name!r}: grader {self.grader} and answer.kind "
                f"{self.answer.kind} do not go together; graders of code are "
                f"{', '.join(CODE_GRADERS)}"
            )
        if self.grader == "choice" and not (self.fields.choices or self.fields.wrong_options):
            raise ValueError(
                f"benchmark {self.name!r}: grader choice needs `fields.choices` or "
                "`fields.wrong_options`"
            )
        return self

    @property
    def has_images(self) -> bool:
        """Whether its rows show pictures."""
        return self.fields.image is not None

    def is_unverified(self, field: str) -> bool:
        """Whether nobody has checked this field's name against the data set."""
        return self.unverified is True or (
            isinstance(self.unverified, tuple) and field in self.unverified
        )
