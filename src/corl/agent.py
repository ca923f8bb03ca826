"""One agent: a policy with its sampler, its learner and its supervision.

It knows no other agent, only the votes it is handed. The four methods that the
loop calls are the paper's steps; each leaves what it measured in the record
that `update` writes to the agent's journal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from corl.answers import POLICY_VERSION, Answer, Vote
from corl.config import AgentConfig, Recipe
from corl.data.prompts import PromptRow, PromptSet
from corl.data.reading import read_label
from corl.exchange import Ballot, rows_digest
from corl.policy import Policy
from corl.policy.adapters import on_base
from corl.policy.learner import LearnBatch, Learner
from corl.policy.scoring import CompletionScorer, Scores
from corl.policy.teacher import follow
from corl.rollout.noise import stream_seed
from corl.rollout.rollout import Rollout
from corl.run.journal import Journal
from corl.run.metrics import StepTimes, step_record
from corl.run.pages import write_page
from corl.supervision import Evidence, Rewards, Supervision, load_supervision
from corl.voter import Voter, vote_keys


@dataclass(slots=True)
class Sampled:
    """What an agent sampled in one step and reads out of it.

    Shapes: P rows, K completions of each that are trained on; more may have voted.
    """

    step: int
    rows: list[PromptRow]
    rollout: Rollout
    answers: list[list[Answer | None]]
    """[P][K]"""
    votes: list[Vote | None]
    """[P]"""
    teacher_votes: list[Vote | None]
    """[P], empty without a teacher"""
    after_updates: int = 0
    """Updates that this process had made of the policy that it was sampled from."""
    times: StepTimes = field(default_factory=StepTimes)


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
        teacher: Policy | None = None,
        prompts: PromptSet,
        total_steps: int,
        threads: int,
        journal: Journal,
    ) -> None:
        """reference: what the KL term holds the policy to, where the recipe has one; a policy with
        adapters is held to its own base without them. teacher:
        the average of the policy that votes as well, where the method has one."""
        self.name = config.name
        self.policy = policy
        self.teacher = teacher
        self._recipe = recipe
        self._run_id = run_id
        self._prompts = prompts
        self._total_steps = total_steps
        self._threads = threads
        self._journal = journal
        self._num_updates = 0
        self._supervision: Supervision = load_supervision(recipe.supervision)
        self.graders = self._supervision.graders(config.name, recipe.ring)
        self._trained = recipe.batch.completions
        voting = max(self._supervision.num_votes or 0, self._trained)
        self._voter = Voter(policy, config, recipe, stream=config.name, completions=voting)
        self._teacher_voter = None
        if teacher is not None:  # no agent's name holds a slash
            stream = f"{config.name}/teacher"
            self._teacher_voter = Voter(
                teacher, config, recipe, stream=stream, completions=self._trained
            )
        sampling = recipe.sampling_of(config)
        self.learner = Learner(
            policy,
            recipe.optimizer_of(config),
            recipe.grpo,
            name=config.name,
            total_steps=total_steps,
            temperature=sampling.temperature,
            max_tokens=sampling.max_tokens,
            reference=_reference_scorer(policy, reference, temperature=sampling.temperature),
            seed=stream_seed(recipe.seed, config.name),
        )

    def sample(self, step: int, row_indices: Sequence[int]) -> Sampled:
        """Draw completions per prompt, read their answers and vote; the first K are trained on."""
        torch.set_num_threads(self._threads)
        rows = self._prompts.at(row_indices)
        poll = self._voter.poll(rows, step)
        taught = self._teacher_voter.poll(rows, step) if self._teacher_voter else None
        polls = [poll] if taught is None else [poll, taught]
        return Sampled(
            step,
            rows,
            rollout=poll.rollout.first(self._trained),
            answers=[group[: self._trained] for group in poll.answers],
            votes=poll.votes,
            teacher_votes=[] if taught is None else taught.votes,
            after_updates=self._num_updates,
            times=StepTimes(
                sample=sum(each.sample_s for each in polls),
                read=sum(each.read_s for each in polls),
                sampled_tokens=sum(each.rollout.num_tokens for each in polls),
                voted_at=time.perf_counter(),
            ),
        )

    def vote(self, sampled: Sampled) -> Ballot:
        """The one vote per prompt that crosses to other agents."""
        return Ballot(
            run=self._run_id,
            step=sampled.step,
            agent=self.name,
            answer_policy=POLICY_VERSION,
            digest=rows_digest(row.id for row in sampled.rows),
            votes=tuple(vote_keys(sampled.votes)),
        )

    def cross_check(self, sampled: Sampled, ballots: Sequence[Ballot]) -> Rewards:
        """Rewards by the method's rule; the agent's own vote reaches only self-voting methods."""
        sampled.times.wait = time.perf_counter() - sampled.times.voted_at
        method = self._supervision
        statistics = method.needs_token_statistics
        return method.reward(
            Evidence(
                answers=sampled.answers,
                own_votes=vote_keys(sampled.votes),
                entropy=sampled.rollout.entropy.tolist() if statistics else (),
                self_certainty=sampled.rollout.self_certainty.tolist() if statistics else (),
                labels=self._labels(sampled.rows) if method.needs_labels else None,
                teacher_votes=vote_keys(sampled.teacher_votes),
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
                vision=sampled.rollout.vision,
            )
        )
        if self.teacher is not None:
            share = self._supervision.teacher_share(sampled.step, steps=self._total_steps)
            follow(self.teacher, self.policy, share=share)
        sampled.times.updates_behind = self._num_updates - sampled.after_updates
        self._num_updates += 1
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

    def _labels(self, rows: Sequence[PromptRow]) -> list[str | None]:
        answers = [read_label(row, isolation=self._recipe.votes.isolation) for row in rows]
        return [None if answer is None else answer.key for answer in answers]

    def _write_page(self, sampled: Sampled, rewards: Rewards) -> None:
        every = self._recipe.rollout.save_every
        if every and (sampled.step == 1 or sampled.step % every == 0):
            write_page(
                self._journal.folder / "pages" / f"step-{sampled.step:06d}.md",
                step=sampled.step,
                agent=self.name,
                graded_by=" and ".join(self.graders) or self._supervision.graded_by,
                rows=sampled.rows[: self._recipe.rollout.save_prompts],
                texts=sampled.rollout.texts,
                answers=sampled.answers,
                votes=sampled.votes,
                rewards=rewards,
            )


def _reference_scorer(
    policy: Policy, reference: Policy | None, *, temperature: float
) -> Callable[..., Scores] | None:
    if reference is not None:
        return CompletionScorer(reference, temperature=temperature)
    if policy.base is not None:
        return on_base(policy.model, CompletionScorer(policy, temperature=temperature))
    return None
