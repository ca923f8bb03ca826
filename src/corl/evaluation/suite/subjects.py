"""What is evaluated: checkpoints, the trained agents of a run, or saved completions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corl.config import AgentConfig, Recipe
from corl.errors import ModelError, PromptError
from corl.evaluation.benchmarks import Benchmark, Item
from corl.evaluation.completions import Asking
from corl.evaluation.suite.answering import require_sight
from corl.evaluation.suite.settings import Chat, EvalSettings
from corl.run.directory import RunDirectory

if TYPE_CHECKING:
    from corl.policy.vision.measure import PromptMeasure

_EDGE_BYTES = 1 << 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """One model and how it is asked."""

    name: str
    """Names its folder and its rows in tables."""
    source: str
    """Directory or hub id."""
    chat: Chat = "auto"
    system_prompt: str | None = None
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    stop: tuple[str, ...] = ()
    dtype: Any = "auto"
    device: str = "auto"
    trust_remote_code: bool = False

    def asked(self) -> dict[str, Any]:
        """How it is asked, as plain JSON; without its name and path."""
        return {
            "chat": self.chat,
            "system_prompt": self.system_prompt,
            "chat_template_kwargs": dict(self.chat_template_kwargs),
            "stop": list(self.stop),
            "dtype": self.dtype,
            "device": self.device,
        }

    def asks_by_chat(self, tokenizer: Any) -> bool:
        """Whether prompts go through the tokenizer's chat template."""
        return self.chat != "never" and bool(getattr(tokenizer, "chat_template", None))

    def asking(
        self, settings: EvalSettings, benchmark: Benchmark, *, temperature: float, chat: bool
    ) -> Asking:
        """How it is asked that benchmark's rows."""
        return Asking(
            max_tokens=settings.max_tokens,
            temperature=temperature,
            top_p=settings.top_p,
            stop=self.stop if chat else (*self.stop, *benchmark.plain_stop),
            system_prompt=self.system_prompt,
            chat=self.chat,
            chat_template_kwargs=self.chat_template_kwargs,
            max_rows=settings.batch_rows,
        )

    def measure(self) -> PromptMeasure:
        """Counts the tokens of prompts as this model is asked them, before a weight is loaded."""
        from corl.policy.vision.measure import PromptMeasure

        return PromptMeasure(
            self.source,
            trust_remote_code=self.trust_remote_code,
            system_prompt=self.system_prompt,
            chat=self.chat,
            chat_template_kwargs=self.chat_template_kwargs,
        )


def find_subjects(sources: Sequence[str], settings: EvalSettings) -> list[Subject]:
    """The models that the command names; a run gives each agent's trained model.

    Raises ModelError for a run without one.
    """
    found: list[Subject] = []
    for source in sources:
        run = RunDirectory(Path(source).expanduser())
        if run.facts_file.is_file():
            found += _agents(run)
        else:
            found.append(Subject(name=_name(source), source=source))
    names: set[str] = set()
    subjects = []
    for one in found:
        free = (f"{one.name}-{number}" for number in count(2))
        name = one.name if one.name not in names else next(n for n in free if n not in names)
        names.add(name)
        one = replace(one, name=name)
        if settings.chat is not None:
            one = replace(one, chat=settings.chat)
        if settings.system_prompt is not None:
            one = replace(one, system_prompt=settings.system_prompt)
        subjects.append(one)
    return subjects


def _agents(run: RunDirectory) -> list[Subject]:
    recipe, _ = run.load()
    subjects = []
    for agent in recipe.agents:
        final = run.final(agent.name)
        if not final.is_dir():
            raise ModelError(
                f"run {run.root}: agent {agent.name!r} has no trained model ({final}); finish it "
                f"with `corl resume {run.root}`, or name a checkpoint"
            )
        name = f"{run.root.resolve().name}-{agent.name}"
        subjects.append(agent_subject(recipe, agent, str(final), name=name))
    return subjects


def agent_subject(recipe: Recipe, agent: AgentConfig, source: str, *, name: str) -> Subject:
    """A checkpoint of an agent, asked as in its training."""
    return Subject(
        name=name,
        source=source,
        chat=agent.chat,
        system_prompt=agent.system_prompt,
        chat_template_kwargs=agent.chat_template_kwargs,
        stop=recipe.sampling_of(agent).stop,
        dtype=agent.dtype,
        device=agent.device,
        trust_remote_code=agent.trust_remote_code,
    )


def _name(source: str) -> str:
    """A folder's name for a checkpoint: its own, with its agent's before `final` or `step-9`."""
    path = Path(source).expanduser()
    parts = [path.resolve().name if path.exists() else path.name]
    if re.fullmatch(r"final|step-\d+", parts[0]):
        parts.insert(0, path.resolve().parent.name)
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(parts)).strip(".-") or "model"


def check_subject(subject: Subject, benchmarks: Sequence[tuple[Benchmark, Sequence[Item]]]) -> None:
    """Read config, tokenizer and every prompt, but no weight.

    Raises ModelError for a checkpoint that would not load, PromptError for a prompt that leaves no
    room for a completion.
    """
    from corl.policy.facts import check_model

    facts = check_model(subject.source, trust_remote_code=subject.trust_remote_code)
    measure = subject.measure()
    is_chat = subject.asks_by_chat(measure.tokenizer)
    for benchmark, items in benchmarks:
        require_sight(benchmark, items, sees_images=facts.sees_images)
        for item in items:
            length = measure.length(item.row(chat=is_chat))
            if length >= facts.context_length:
                raise PromptError(
                    f"benchmark {benchmark.name}, row {item.id!r}: {length} tokens, and "
                    f"{subject.name} reads {facts.context_length}: no room for a completion. "
                    "Leave the benchmark out for this model"
                )


def fingerprint(source: str) -> str:
    """A digest that changes with a checkpoint's weights, config or tokenizer.

    Of weights the size and both ends are read. A hub id that is no directory is its own.
    """
    directory = Path(source).expanduser()
    if not directory.is_dir():
        return source
    total = hashlib.sha256()
    for file in sorted(directory.iterdir()):
        if file.suffix not in (".json", ".jinja", ".safetensors", ".model"):
            continue
        size = file.stat().st_size
        total.update(f"{file.name}\0{size}\0".encode())
        with file.open("rb") as stream:
            if file.suffix == ".safetensors" and size > 2 * _EDGE_BYTES:
                total.update(stream.read(_EDGE_BYTES))
                stream.seek(-_EDGE_BYTES, 2)
            total.update(stream.read())
    return total.hexdigest()
