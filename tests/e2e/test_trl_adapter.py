"""Two GRPOTrainers teach each other through the adapter, in processes of their own."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from corl.answers import majority, read_answer
from corl.config import SupervisionConfig
from corl.quickstart.pretrain import shipped_model
from corl.quickstart.task import prompts_path
from corl.supervision import Evidence, load_supervision
from corl.voter import vote_keys

AGENT = Path(__file__).with_name("trl_agent.py")
MODELS = {"left": "qwen3", "right": "gpt_neox"}
K, STEPS = 4, 3


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(agent, folder, port, *options, ranks=1, rows=16, prompts=None):
    command = [sys.executable]
    if ranks > 1:
        command += [
            "-m", "torch.distributed.run", f"--nproc-per-node={ranks}",
            "--master-addr=127.0.0.1", f"--master-port={free_port()}",
        ]  # fmt: skip
    command += [
        str(AGENT), str(folder / agent), "--agent", agent, "--cpu",
        "--model", str(shipped_model(MODELS[agent])),
        "--prompts", str(prompts or prompts_path("train")), "--address", f"127.0.0.1:{port}",
        "--out", str(folder / f"out-{agent}"), "--steps", str(STEPS), "--rows", str(rows // ranks),
        "--generations", str(K), "--tokens", "16", "--learning-rate", "1e-3", *options,
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}
    log = (folder / f"{agent}.log").open("w")
    return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)


def finish(processes, folder, seconds=240):
    deadline = time.monotonic() + seconds
    try:
        codes = [one.wait(max(1, deadline - time.monotonic())) for one in processes]
    finally:
        for one in processes:
            one.kill()
    logs = {path.stem: path.read_text() for path in folder.glob("*.log")}
    return codes, logs


def calls(folder, agent, ranks=1):
    """The agent's calls, those of several ranks put together."""
    per_rank = [
        [json.loads(line) for line in (folder / f"{agent}.{rank}.jsonl").read_text().splitlines()]
        for rank in range(ranks)
    ]
    return [
        {key: [each for part in parts for each in part[key]] for key in ("ids", "completions",
         "rewards", "lengths")}
        for parts in zip(*per_rank, strict=True)
    ]  # fmt: skip


def groups(values):
    return [values[start : start + K] for start in range(0, len(values), K)]


def answers(call):
    # As long as the cap and without its end: cut off.
    texts = zip(call["completions"], call["lengths"], strict=True)
    return groups([read_answer(text, truncated=length >= 16) for text, length in texts])


def check_rewards(folder, *, ranks):
    """Rewards are those of our own ring on the very same completions."""
    recorded = {agent: calls(folder, agent, ranks[agent]) for agent in MODELS}
    ring = load_supervision(SupervisionConfig(method="peer"))
    seen = set()
    for left, right in zip(recorded["left"], recorded["right"], strict=True):
        assert left["ids"] == right["ids"]
        assert all(len(set(group)) == 1 for group in groups(left["ids"]))
        votes = {
            agent: vote_keys([majority(group) for group in answers(call)])
            for agent, call in (("left", left), ("right", right))
        }
        for own, call, peer in (("left", left, "right"), ("right", right, "left")):
            due = ring.reward(Evidence(answers(call), votes[own]), [votes[peer]])
            expected = [
                reward if labelled else None
                for rewards, labelled in zip(due.rewards, due.labelled, strict=True)
                for reward in rewards
            ]
            assert call["rewards"] == expected
            seen |= set(call["rewards"])
    assert {0.0, 1.0} <= seen
    assert len(recorded["left"]) == STEPS


def moved(folder, agent):
    before = load_file(shipped_model(MODELS[agent]) / "model.safetensors")
    after = load_file(folder / f"out-{agent}" / "final" / "model.safetensors")
    return max((before[name] - after[name]).abs().max().item() for name in before)


@pytest.mark.parametrize("ranks", [{"left": 1, "right": 1}, {"left": 2, "right": 1}])
def test_two_trainers_are_rewarded_by_each_others_votes(ranks, tmp_path):
    port = free_port()
    processes = [
        start("left", tmp_path, port, "--host", ranks=ranks["left"]),
        start("right", tmp_path, port, ranks=ranks["right"]),
    ]
    codes, logs = finish(processes, tmp_path)
    assert codes == [0, 0], logs
    check_rewards(tmp_path, ranks=ranks)
    for agent in MODELS:
        assert moved(tmp_path, agent) > 1e-5
        assert "rewards/peer_vote/mean" in logs[agent]


def test_another_order_of_prompts_is_an_error_that_names_both_sides(tmp_path):
    rows = prompts_path("train").read_text().splitlines()[:64]
    turned = tmp_path / "turned.jsonl"
    turned.write_text("\n".join(reversed(rows)) + "\n")
    straight = tmp_path / "straight.jsonl"
    straight.write_text("\n".join(rows) + "\n")
    port = free_port()
    processes = [
        start("left", tmp_path, port, "--host", prompts=straight),
        start("right", tmp_path, port, prompts=turned),
    ]
    codes, logs = finish(processes, tmp_path)
    assert all(code != 0 for code in codes)
    said = "\n".join(logs.values())
    assert re.search(r"ballot of agent '(left|right)' has digest .* but agent '(left|right)'", said)
    assert "the agents see other prompts or another order" in said


def test_trainers_that_make_steps_of_other_sizes_are_told_so(tmp_path):
    port = free_port()
    processes = [
        start("left", tmp_path, port, "--host"),
        start("right", tmp_path, port, rows=32),
    ]
    codes, logs = finish(processes, tmp_path)
    assert all(code != 0 for code in codes)
    assert "agent 'left' has prompts 4, but agent 'right' has 8" in logs["left"]
