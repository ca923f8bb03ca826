"""One trainer of the TRL tests: the example script, with every call of the reward written down."""

import functools
import json
import os
import runpy
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "trl_two_trainers.py"


def main() -> None:
    record = Path(sys.argv[1])
    sys.argv = [str(EXAMPLE), *sys.argv[2:]]
    import torch

    from corl.integrations import trl

    torch.set_num_threads(1)
    call = trl.PeerVoteReward.__call__

    @functools.wraps(call)
    def recorded(self, prompts, completions, completion_ids, **columns):
        rewards = call(self, prompts, completions, completion_ids, **columns)
        line = {
            "ids": list(columns["id"]),
            "completions": list(completions),
            "lengths": [len(ids) for ids in completion_ids],
            "rewards": rewards,
            "model_trains": self._model.training,
        }
        rank = os.environ.get("RANK", "0")
        with (record.with_suffix(f".{rank}.jsonl")).open("a") as stream:
            stream.write(json.dumps(line) + "\n")
        return rewards

    trl.PeerVoteReward.__call__ = recorded
    runpy.run_path(str(EXAMPLE), run_name="__main__")


if __name__ == "__main__":
    main()
