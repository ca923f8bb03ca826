"""What a study measures: agents before, along the way and after, on labelled held-out prompts.

Everything is asked of checkpoints on disk, after a run and apart from it, so measuring touches no
exchange and no seed. Labels meet answers here alone; answer sheets hold none.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corl.config import AgentConfig, Recipe
from corl.data.prompts import PromptRow, load_prompts
from corl.errors import PromptError
from corl.evaluation.accuracy import AnswerSheet, ensemble_maj_at_8, grade, label_keys
from corl.evaluation.completions import Asking
from corl.run.checkpoint import cohort_steps
from corl.run.directory import RunDirectory
from corl.study.config import EvaluateConfig
from corl.study.files import Row
from corl.study.measure import Measurer, Question
from corl.study.picks import Sheets, measure_picks

CohortSheets = Mapping[str, AnswerSheet]
"""Agent -> its answers to all held-out prompts."""


class Evaluation:
    """Held-out prompts, their labels, and the sheets of untrained models."""

    def __init__(self, config: EvaluateConfig, measurer: Measurer) -> None:
        """Read the prompts. Raises PromptError unless every row has a label."""
        self.every = config.every
        self._along = slice(0, config.along)
        self._measurer = measurer
        self._rows = _labelled_rows(config)
        self._true_keys = label_keys(self._rows)
        self._untrained: dict[str, AnswerSheet] = {}

    def untrained(self, recipe: Recipe) -> dict[str, AnswerSheet]:
        """Sheets of the agents before training; a model is asked once a start of the study."""
        questions = {agent.name: _question(recipe, agent, agent.model) for agent in recipe.agents}
        new = {
            repr(question): question
            for question in questions.values()
            if repr(question) not in self._untrained
        }
        sheets = self._measurer.sheets(list(new.values()), self._rows)
        self._untrained.update(zip(new, sheets, strict=True))
        return {name: self._untrained[repr(question)] for name, question in questions.items()}

    def trained(self, recipe: Recipe, run: RunDirectory) -> dict[str, AnswerSheet]:
        """Sheets of a finished run's final models."""
        questions = [_question(recipe, agent, run.final(agent.name)) for agent in recipe.agents]
        sheets = self._measurer.sheets(questions, self._rows)
        return {agent.name: sheet for agent, sheet in zip(recipe.agents, sheets, strict=True)}

    def along(
        self, recipe: Recipe, run: RunDirectory, before: CohortSheets, after: CohortSheets
    ) -> Sheets:
        """Step -> agent -> sheet over the prompts used along the way, both ends included."""
        names = [agent.name for agent in recipe.agents]
        _, facts = run.load()
        steps = [s for s in cohort_steps(run, names) if s % self.every == 0 and s < facts.steps]
        questions = [
            _question(recipe, agent, run.checkpoint(agent.name, step))
            for step in steps
            for agent in recipe.agents
        ]
        answered = iter(self._measurer.sheets(questions, self._rows[self._along]))
        between = {step: {name: next(answered) for name in names} for step in steps}
        return {
            0: {name: sheet.rows(self._along) for name, sheet in before.items()},
            **between,
            facts.steps: {name: sheet.rows(self._along) for name, sheet in after.items()},
        }

    def curve(self, sheets: Sheets) -> list[Row]:
        """Lines of `evaluations.jsonl`."""
        true_keys = self._true_keys[self._along]
        return [
            {"step": step, "agent": name, **grade(sheet, true_keys).to_json()}
            for step, by_name in sheets.items()
            for name, sheet in by_name.items()
        ]

    def picks(self, sheets: Sheets, alarms: list[Row]) -> list[Row]:
        """What each way to pick a checkpoint picks, one entry an agent."""
        first_alarms: dict[str, int] = {}
        for alarm in alarms:
            first_alarms.setdefault(str(alarm["agent"]), int(alarm["step"]))
        true_keys = self._true_keys[self._along]
        return measure_picks(sheets, true_keys, first_alarms=first_alarms)

    def accuracies(
        self, recipe: Recipe, before: CohortSheets, after: CohortSheets | None
    ) -> dict[str, Any]:
        """The fields of a row that hold accuracy; None where there is no `after` yet."""

        def graded(sheets: CohortSheets | None, name: str) -> Any:
            return None if sheets is None else grade(sheets[name], self._true_keys).to_json()

        def pooled(sheets: CohortSheets | None) -> Any:
            if sheets is None:
                return None
            return ensemble_maj_at_8(list(sheets.values()), self._true_keys)

        return {
            "agents": [
                {
                    "name": agent.name,
                    "before": graded(before, agent.name),
                    "after": graded(after, agent.name),
                }
                for agent in recipe.agents
            ],
            "ensemble_maj_at_8": {"before": pooled(before), "after": pooled(after)},
        }


def _labelled_rows(config: EvaluateConfig) -> tuple[PromptRow, ...]:
    prompts = load_prompts(config.prompts)
    unlabelled = [row.id for row in prompts.rows if row.label is None]
    if unlabelled:
        raise PromptError(
            f"evaluate.prompts {prompts.source}: row {unlabelled[0]!r} and {len(unlabelled) - 1} "
            f"more have no field {config.prompts.answer_field!r}; accuracy needs labels"
        )
    if config.every and len(prompts.rows[: config.along]) < 2:
        raise PromptError(
            f"evaluate.prompts {prompts.source}: one prompt is too few along the way; choosing a "
            "checkpoint and measuring the choice need different ones"
        )
    return prompts.rows


def _question(recipe: Recipe, agent: AgentConfig, model: str | Path) -> Question:
    return Question(
        model=str(model),
        asking=Asking.of(recipe, agent),
        dtype=agent.dtype,
        device=agent.device,
        trust_remote_code=agent.trust_remote_code,
    )
