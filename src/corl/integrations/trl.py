"""Peer votes for TRL's GRPOTrainer: a reward function that is a callback as well.

Through TRL's public interface alone: a reward function is handed prompts, completions, token ids
and the data set's columns; a callback is handed the arguments and the model. One trainer is one
agent. Ranks of a trainer put their completions together, one of them meets the peers, and each
gets its own completions' rewards.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import torch
from transformers import TrainerCallback

from corl.answers import POLICY_VERSION, Answer, majority
from corl.config import SupervisionConfig
from corl.data.prompts import PromptRow
from corl.data.reading import read_completion
from corl.errors import ExchangeError, RecipeError
from corl.exchange import Ballot, Exchange, rows_digest
from corl.exchange.store import StoreExchange
from corl.integrations.meeting import Introduction, introduce, take_leave
from corl.integrations.ranks import of_all_ranks, on_first_rank, this_ranks
from corl.supervision import Evidence, Supervision, load_supervision
from corl.voter import vote_keys


class PeerVoteReward(TrainerCallback):
    """1 for a completion whose answer is the peers' vote, else 0; None where there is no label.

        votes = PeerVoteReward("left", ring=["left", "right"], address="127.0.0.1:29411", host=True)
        GRPOTrainer(..., reward_funcs=votes, callbacks=[votes])

    TRL leaves completions with None out of group means and gives them no advantage, while their
    tokens still count in the loss's average: as Co-RL's own learner treats an unlabelled group.
    """

    def __init__(
        self,
        agent: str,
        *,
        ring: Sequence[str],
        address: str,
        host: bool = False,
        run: str = "corl",
        supervision: str = "peer",
        kind: str = "math",
        lenient: bool = False,
        ties: str = "abstain",
        min_support: float = 0.0,
        timeout_s: float = 1800.0,
    ) -> None:
        """agent: this trainer's name on the `ring`, which both sides list in one order.
        address: HOST:PORT of the store that ballots pass through; the trainer with `host` opens it.
        run: an id both sides share. supervision: `peer`, `all_peers`, or a class by dotted path
        that needs nothing but answers and votes. kind: the answer kind of rows whose data set has
        no `kind` column; columns `id`, `kind`, `choices` and `calls` are read where they exist.
        lenient, ties, min_support: as in a recipe's `votes`. timeout_s: longest wait for a peer.

        Raises RecipeError for a ring without the agent, an address that is none, or a method that
        needs more than votes.
        """
        self.__name__ = "peer_vote"
        """What TRL logs the reward under."""
        if agent not in ring or len(set(ring)) != len(ring):
            raise RecipeError(f"ring is {list(ring)}; it must name each agent once, {agent!r} too")
        self._agent = agent
        self._ring = tuple(ring)
        self._address = _address(address)
        self._is_host = host
        self._run = run
        self._method = supervision
        self._supervision = _votes_only(supervision)
        self._graders = self._supervision.graders(agent, self._ring)
        self._kind = kind
        self._lenient = lenient
        self._ties = ties
        self._min_support = min_support
        try:
            majority([], ties=ties, min_support=min_support)
        except ValueError as error:
            raise RecipeError(f"votes: {error}") from None
        self._timeout_s = timeout_s
        self._store: Any = None
        self._exchange: Exchange | None = None
        self._introduction: Introduction | None = None
        self._model: Any = None
        self._group = 0
        self._cap = 0
        self._stops: frozenset[int] = frozenset()
        self._calls = 0

    # What TRL calls.

    def on_train_begin(self, args: Any, state: Any, control: Any, **parts: Any) -> None:
        """Meet the peers. Raises RecipeError where prompts come in an order of one's own,
        ExchangeError where the sides make no cohort."""
        if args.shuffle_dataset:
            raise RecipeError(
                "TRL shuffles prompts by `seed`, which must differ between the trainers, while "
                "their prompts must not: set shuffle_dataset=False, and shuffle the data set "
                "itself with one seed on all sides (train_dataset.shuffle(seed=0))"
            )
        self._model = parts["model"]
        self._group = args.num_generations
        self._cap = args.max_completion_length
        self._stops = _stop_ids(parts.get("processing_class"), self._model)
        self._calls = 0
        on_first_rank(partial(self._meet, args, state.global_step + 1))

    def on_train_end(self, args: Any, state: Any, control: Any, **parts: Any) -> None:
        """Leave; the host waits until the others have left."""
        on_first_rank(self._leave)

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]],
        trainer_state: Any = None,
        **columns: Any,
    ) -> list[float | None]:
        """One reward per completion of this rank, in order; None for all while evaluating.

        Raises ExchangeError, or ExchangeTimeout naming the late peer.
        """
        if self._model is None:
            raise RecipeError(
                "PeerVoteReward is a callback too: GRPOTrainer(reward_funcs=votes, "
                "callbacks=[votes])"
            )
        if not self._model.training:  # evaluation never touches the exchange
            return [None] * len(completions)
        rows = [_row(prompt, place, columns, self._kind) for place, prompt in enumerate(prompts)]
        answers = [
            read_completion(
                _text(completion),
                row,
                truncated=self._was_cut(ids),
                lenient=self._lenient,
            )
            for completion, row, ids in zip(completions, rows, completion_ids, strict=True)
        ]
        self._calls += 1
        mine = list(zip((row.id for row in rows), answers, strict=True))
        everybody = of_all_ranks(mine)
        rewards = on_first_rank(partial(self._rewards, everybody))
        return rewards[this_ranks(len(mine))]

    # What they are made of.

    def _meet(self, args: Any, first_step: int) -> None:
        self._store = _open_store(
            self._agent, self._address, is_host=self._is_host, timeout_s=self._timeout_s
        )
        self._exchange = StoreExchange(
            self._store, num_agents=len(self._ring), timeout_s=self._timeout_s
        )
        self._introduction = Introduction(
            agent=self._agent,
            run=self._run,
            ring=self._ring,
            method=self._method,
            prompts=args.generation_batch_size // args.num_generations,
            seed=args.seed,
            first_step=first_step,
        )
        introduce(self._store, self._introduction, timeout_s=self._timeout_s)

    def _leave(self) -> None:
        if self._introduction is not None:
            take_leave(
                self._store,
                self._introduction,
                holds_store=self._is_host,
                timeout_s=self._timeout_s,
            )
        self._exchange = self._introduction = self._store = None

    def _rewards(self, completions: Sequence[tuple[str, Answer | None]]) -> list[float | None]:
        """Rewards of a step's completions; groups of `num_generations` have one prompt."""
        groups = [
            completions[start : start + self._group]
            for start in range(0, len(completions), self._group)
        ]
        ids = [group[0][0] for group in groups]
        for row_id, group in zip(ids, groups, strict=True):
            if len(group) != self._group or any(each != row_id for each, _ in group):
                raise ExchangeError(
                    f"agent {self._agent!r}: completions of one prompt do not stand together in "
                    f"groups of {self._group}; PeerVoteReward needs TRL's own order of samples"
                )
        answers = [[answer for _, answer in group] for group in groups]
        votes = [
            majority(group, ties=self._ties, min_support=self._min_support) for group in answers
        ]
        own = Ballot(
            run=self._run,
            step=self._step(),
            agent=self._agent,
            answer_policy=POLICY_VERSION,
            digest=rows_digest(ids),
            votes=tuple(vote_keys(votes)),
        )
        if self._exchange is None:
            raise ExchangeError(f"agent {self._agent!r} has no exchange outside of training")
        ballots = self._exchange.swap([own], graders={self._agent: self._graders})[self._agent]
        found = self._supervision.reward(
            Evidence(answers=answers, own_votes=list(own.votes)),
            [ballot.votes for ballot in ballots],
        )
        return [
            reward if labelled else None
            for group, labelled in zip(found.rewards, found.labelled, strict=True)
            for reward in group
        ]

    def _step(self) -> int:
        """Batches of completions are counted, behind the step that training began at."""
        assert self._introduction is not None
        return self._introduction.first_step - 1 + self._calls

    def _was_cut(self, ids: Sequence[int]) -> bool:
        return len(ids) >= self._cap and not (ids and ids[-1] in self._stops)


def _votes_only(method: str) -> Supervision:
    supervision = load_supervision(SupervisionConfig(method=method))
    needs = [
        name
        for name in ("needs_labels", "needs_token_statistics", "needs_rewrites", "needs_teacher")
        if getattr(supervision, name)
    ]
    if needs:
        raise RecipeError(
            f"supervision {method!r} {needs[0].replace('_', ' ')}, which a reward function is not "
            "given; PeerVoteReward takes peer, all_peers, or a class that uses answers and votes"
        )
    return supervision


def _open_store(agent: str, address: tuple[str, int], *, is_host: bool, timeout_s: float) -> Any:
    host, port = address
    try:
        return torch.distributed.TCPStore(
            host,
            port,
            is_master=is_host,
            wait_for_workers=False,
            timeout=timedelta(seconds=timeout_s),
        )
    except RuntimeError as error:
        did = "could not open a store" if is_host else f"found no store in {timeout_s:.0f} s"
        raise ExchangeError(
            f"agent {agent!r} {did} at {host}:{port} ({str(error).splitlines()[0]}); exactly one "
            "trainer of the cohort is its host, and starts with the same address"
        ) from None


def _address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 2**16:
        raise RecipeError(f"address {address!r} is not HOST:PORT, such as 127.0.0.1:29411")
    return host, int(port)


def _row(prompt: Any, place: int, columns: Mapping[str, Any], kind: str) -> PromptRow:
    def of(name: str) -> Any:
        column = columns.get(name)
        return None if column is None else column[place]

    own_id = of("id")
    text = prompt if isinstance(prompt, str) else json.dumps(prompt, sort_keys=True, default=str)
    choices, calls = of("choices"), of("calls")
    return PromptRow(
        # Without ids, equal wordings are what makes two rows one.
        id=hashlib.sha256(text.encode()).hexdigest() if own_id is None else str(own_id),
        text=text,
        kind=of("kind") or kind,
        choices=None if choices is None else tuple(choices),
        calls=None if calls is None else tuple(calls),
    )


def _text(completion: Any) -> str:
    """A completion's words: itself, or what its messages say."""
    if isinstance(completion, str):
        return completion
    return "".join(_content(message.get("content")) for message in completion)


def _content(content: Any) -> str:
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(part.get("text", "") for part in content)


def _stop_ids(tokenizer: Any, model: Any) -> frozenset[int]:
    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)  # a processor holds one
    found = {getattr(tokenizer, "eos_token_id", None), getattr(tokenizer, "pad_token_id", None)}
    given = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    found |= set(given) if isinstance(given, list | tuple) else {given}
    return frozenset(one for one in found if one is not None)
