"""TRL's side: a GRPOTrainer per agent, votes exchanged in its reward function.

That is the construction of Co-RL's official release. Settings are TRL's fastest for the machine:
no gradient checkpointing, no logging, one optimiser step a generation, no second scoring pass.
Votes are read and compared by Co-RL's own fast rules, which is kinder than the release's.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from versus.work import Work, read_prompts, replayed_rewards


def run(pipe: Connection, work: Work, folder: Path, name: str, port: int) -> None:
    """The body of one agent's process."""
    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    warnings.simplefilter("ignore")
    import torch
    import transformers
    from datasets import Dataset
    from torch.distributed import TCPStore
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    from corl.exchange import rows_digest
    from versus.gate import Gate, Stopwatch

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(work.threads)
    source = work.models[work.names.index(name)]
    tokenizer = AutoTokenizer.from_pretrained(source, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    store = TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False)
    texts = read_prompts(work.prompts_file)
    rows = work.trl_rows or work.rows
    suppressed = sorted({tokenizer.eos_token_id, *_as_list(model.generation_config.eos_token_id)})
    arguments = GRPOConfig(
        output_dir=str(folder / name),
        per_device_train_batch_size=rows,
        gradient_accumulation_steps=work.rows // rows,
        num_generations=work.completions,
        max_completion_length=work.tokens,
        generation_kwargs=None if work.is_ragged else {"suppress_tokens": suppressed},
        max_steps=10_000,
        learning_rate=1e-9,
        adam_beta2=0.95,
        max_grad_norm=1.0,
        loss_type="bnpo",
        beta=0.0,
        temperature=1.0,
        shuffle_dataset=False,
        use_cpu=work.device == "cpu",
        bf16=work.dtype == "mixed",
        gradient_checkpointing=work.gradient_checkpointing,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        seed=work.seed + work.names.index(name),
        data_seed=work.seed,
    )
    peer = work.names[work.names.index(name) - 1]
    steps = {"done": 0, "tokens": 0}

    def peer_vote(prompts: Any, completions: Any, completion_ids: Any, **_: Any) -> list[float]:
        votes = _votes(completions, work.completions)
        step = steps["done"] = steps["done"] + 1
        steps["tokens"] = sum(len(ids) for ids in completion_ids)
        key = f"{rows_digest(map(str, prompts))}/{step}"
        store.set(f"{key}/{name}", repr(votes))
        store.get(f"{key}/{peer}")
        rewards = replayed_rewards(work, step=step, agent=name)
        return [reward for group in rewards for reward in group]

    gate = Gate(pipe, device=work.device)
    watch = Stopwatch(work.device)

    class Steps(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if not gate.step_begins():
                raise _Stopped

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            gate.step_ends(sample_s=watch.take(), tokens=steps["tokens"])

    with contextlib.redirect_stdout(None):
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=peer_vote,
            args=arguments,
            train_dataset=Dataset.from_list([_row(text, chat=work.chat) for text in texts]),
            processing_class=tokenizer,
            callbacks=[Steps()],
        )
        trainer._generate = watch.wrap(trainer._generate)
        with contextlib.suppress(_Stopped):
            trainer.train()


class _Stopped(Exception):
    """No further step is wanted."""


def _row(text: str, *, chat: bool) -> dict[str, Any]:
    return {"prompt": [{"role": "user", "content": text}] if chat else text}


def _as_list(ids: int | Sequence[int] | None) -> list[int]:
    return [] if ids is None else [ids] if isinstance(ids, int) else list(ids)


def _votes(completions: Sequence[Any], per_prompt: int) -> list[str | None]:
    from corl.answers import majority, read_answer

    texts = [each if isinstance(each, str) else each[-1]["content"] for each in completions]
    answers = [read_answer(text) for text in texts]
    groups = [answers[i : i + per_prompt] for i in range(0, len(answers), per_prompt)]
    votes = [majority(group) for group in groups]
    return [None if vote is None else vote.answer.key for vote in votes]
