"""One agent: a policy with its sampler, its learner and its supervision.

It knows no other agent, only the votes it is handed. The four methods that the
loop calls are the paper's steps; each leaves what it measured in the record
that `update` writes to the agent's journal.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from corl.answers import POLICY_VERSION, Answer, Vote, majority
from corl.config import AgentConfig, Recipe
from corl.data.prompts import PromptRow, PromptSet
from corl.data.reading import read_completion, read_label
from corl.data.template import render
from corl.errors import NonFiniteLossError
from corl.exchange import Ballot, rows_digest
from corl.policy import Policy
from corl.policy.learner import LearnBatch, Learner
from corl.policy.scoring import CompletionScorer
from corl.rollout.noise import Noise, stream_seed
from corl.rollout.rollout import Rollout
from corl.rollout.transformers_engine import TransformersEngine
from corl.run.journal import Journal
from corl.run.metrics import StepTimes, step_record
from corl.run.pages import write_page
from corl.supervision import Evidence, Rewards, Supervision, load_supervision


@dataclass(slots=True)
class Sampled:
    """What an agent sampled in one step and reads out of it."""

    step: int
    rows: list[PromptRow]
    rollout: Rollout
    answers: list[list[Answer | None]]
    """[P][K]"""
    votes: list[Vote | None]
    """[P]"""
    times: StepTimes = field(default_factory=StepTimes)

    @property
    def vote_keys(self) -> list[str | None]:
        """[P] keys of the votes."""
        return [None if vote is None else vote.answer.key for vote in self.votes]


class Agent:
    """An independent learner of the cohort."""

    def __init__(
        self,
        config: AgentConfig,
        recipe: Recipe,
        *,
        run_id: str,
        policy: Policy,
        reference: Policy | None,
        prompts: PromptSet,
        total_steps: int,
        threads: int,
        journal: Journal,
    ) -> None:
        """reference: the frozen starting policy, where the recipe has a KL term."""
        self.name = config.name
        self.policy = policy
        self._config = config
        self._recipe = recipe
        self._run_id = run_id
        self._rows = prompts.rows
        self._threads = threads
        self._journal = journal
        self._sampling = recipe.sampling_of(config)
        self._noise = Noise(recipe.seed, config.name)
        self._supervision: Supervision = load_supervision(recipe.supervision)
        self.graders = self._supervision.graders(config.name, recipe.ring)
        self._engine = TransformersEngine(policy, max_rows=recipe.rollout.max_rows)
        self.learner = Learner(
            policy,
            recipe.optimizer_of(config),
            recipe.grpo,
            name=config.name,
            total_steps=total_steps,
            temperature=self._sampling.temperature,
            max_tokens=self._sampling.max_tokens,
            reference=None
            if reference is None
            else CompletionScorer(reference, temperature=self._sampling.temperature),
            seed=stream_seed(recipe.seed, config.name),
        )

    def sample(self, step: int, row_indices: Sequence[int]) -> Sampled:
        """Draw K completions per prompt and read their answers."""
        torch.set_num_threads(self._threads)
        started = time.perf_counter()
        rows = [self._rows[index] for index in row_indices]
        self._engine.sync()
        rollout = self._engine.sample(
            [self._render(row) for row in rows],
            completions=self._recipe.batch.completions,
            sampling=self._sampling,
            noise=self._noise,
            step=step,
        )
        self._require_finite(rollout, step)
        sampled = time.perf_counter()
        answers = self._read(rows, rollout)
        rules = self._recipe.votes
        votes = [
            majority(group, ties=rules.ties, min_support=rules.min_support) for group in answers
        ]
        read = time.perf_counter()
        times = StepTimes(sample=sampled - started, read=read - sampled, voted_at=read)
        return Sampled(step, rows, rollout, answers, votes, times)

    def vote(self, sampled: Sampled) -> Ballot:
        """The one vote per prompt that crosses to other agents."""
        return Ballot(
            run=self._run_id,
            step=sampled.step,
            agent=self.name,
            answer_policy=POLICY_VERSION,
            digest=rows_digest(row.id for row in sampled.rows),
            votes=tuple(sampled.vote_keys),
        )

    def cross_check(self, sampled: Sampled, ballots: Sequence[Ballot]) -> Rewards:
        """Rewards by the method's rule; the agent's own vote reaches only self-voting methods."""
        sampled.times.wait = time.perf_counter() - sampled.times.voted_at
        method = self._supervision
        statistics = method.needs_token_statistics
        return method.reward(
            Evidence(
                answers=sampled.answers,
                own_votes=sampled.vote_keys,
                entropy=sampled.rollout.entropy.tolist() if statistics else (),
                self_certainty=sampled.rollout.self_certainty.tolist() if statistics else (),
                labels=self._labels(sampled.rows) if method.needs_labels else None,
            ),
            [ballot.votes for ballot in ballots],
        )

    def update(self, sampled: Sampled, rewards: Rewards) -> None:
        """One policy update on the step's completions, and its line in the journal."""
        torch.set_num_threads(self._threads)
        started = time.perf_counter()
        learned = self.learner.update(
            LearnBatch(
                prompt_ids=sampled.rollout.prompt_ids,
                token_ids=sampled.rollout.token_ids,
                engine_logps=sampled.rollout.logps,
                rewards_pk=torch.tensor(rewards.rewards),
                labelled_p=torch.tensor(rewards.labelled),
                truncated=sampled.rollout.truncated,
            )
        )
        sampled.times.learn = time.perf_counter() - started
        self._write_page(sampled, rewards)
        self._journal.append(
            step_record(
                agent=self.name,
                step=sampled.step,
                rollout=sampled.rollout,
                answers=sampled.answers,
                votes=sampled.votes,
                true_keys=self._labels(sampled.rows),
                rewards=rewards,
                learned=learned,
                times=sampled.times,
            )
        )

    def _require_finite(self, rollout: Rollout, step: int) -> None:
        if 0 < rollout.num_tokens == rollout.num_nonfinite:
            raise NonFiniteLossError(
                f"agent {self.name!r}, step {step}: no sampled token has a finite log-probability, "
                "so its weights hold NaN or infinity; lower its learning rate and resume from an "
                "earlier checkpoint"
            )

    def _render(self, row: PromptRow) -> list[int]:
        return render(
            self.policy.tokenizer,
            row.text,
            system_prompt=self._config.system_prompt,
            chat=self._config.chat,
            chat_template_kwargs=self._config.chat_template_kwargs,
        )

    def _read(self, rows: Sequence[PromptRow], rollout: Rollout) -> list[list[Answer | None]]:
        lenient = self._recipe.votes.lenient
        return [
            [
                read_completion(text, row, truncated=cut_off, lenient=lenient)
                for text, cut_off in zip(texts, truncated, strict=True)
            ]
            for row, texts, truncated in zip(rows, rollout.texts, rollout.truncated, strict=True)
        ]

    def _labels(self, rows: Sequence[PromptRow]) -> list[str | None]:
        answers = [read_label(row) for row in rows]
        return [None if answer is None else answer.key for answer in answers]

    def _write_page(self, sampled: Sampled, rewards: Rewards) -> None:
        every = self._recipe.rollout.save_every
        if every and (sampled.step == 1 or sampled.step % every == 0):
            write_page(
                self._journal.folder / "pages" / f"step-{sampled.step:06d}.md",
                step=sampled.step,
                agent=self.name,
                graders=self.graders,
                rows=sampled.rows[: self._recipe.rollout.save_prompts],
                texts=sampled.rollout.texts,
                answers=sampled.answers,
                votes=sampled.votes,
                rewards=rewards,
            )
