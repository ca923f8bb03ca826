"""Two GRPOTrainers teach each other: an ordinary TRL script with three lines more.

Start it twice, in two terminals (or on two machines):

    common="--prompts prompts.jsonl --address 127.0.0.1:29411"
    python examples/trl_two_trainers.py --agent left --host --model ./left --out runs/left $common
    python examples/trl_two_trainers.py --agent right --model ./right --out runs/right $common

Both read the same prompts in the same order and sample with seeds of their own. TRL orders prompts
by the seed that it samples with, so the data set is shuffled here instead. Only one vote per prompt
crosses between them. Several ranks of one trainer:
`torchrun --nproc-per-node 2 examples/trl_two_trainers.py ...`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer

from corl.integrations.trl import PeerVoteReward  # 1

RING = ("left", "right")


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    prompts = load_dataset("json", data_files=options.prompts, split="train")
    votes = PeerVoteReward(  # 2
        options.agent, ring=RING, address=options.address, host=options.host
    )
    trainer = GRPOTrainer(
        model=options.model,
        reward_funcs=votes,
        callbacks=[votes],  # 3
        train_dataset=prompts.shuffle(seed=0),
        args=GRPOConfig(
            output_dir=str(options.out),
            seed=RING.index(options.agent),
            shuffle_dataset=False,
            per_device_train_batch_size=options.rows,
            num_generations=options.generations,
            max_completion_length=options.tokens,
            max_steps=options.steps,
            learning_rate=options.learning_rate,
            beta=0.0,
            loss_type="bnpo",
            bf16=False,
            logging_steps=1,
            report_to=[],
            save_strategy="no",
            use_cpu=options.cpu,
            gradient_checkpointing=False,
        ),
    )
    trainer.train()
    trainer.save_model(str(options.out / "final"))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agent", choices=RING, required=True)
    parser.add_argument("--model", required=True, help="directory of a causal language model")
    parser.add_argument("--prompts", required=True, help="JSONL with `prompt`, and `id` if it has")
    parser.add_argument("--address", default="127.0.0.1:29411", help="HOST:PORT of the ballots")
    parser.add_argument("--host", action="store_true", help="this trainer opens the store")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rows", type=int, default=128, help="completions a step and rank")
    parser.add_argument("--generations", type=int, default=8, help="completions a prompt")
    parser.add_argument("--tokens", type=int, default=256, help="most tokens of a completion")
    parser.add_argument("--learning-rate", type=float, default=3e-6)
    parser.add_argument("--cpu", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
