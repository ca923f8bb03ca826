"""Chains of five steps modulo ten: the problems, their values, and the files of prompts.

A prompt reads `7+5-8*3m6+4=`: a start from 1 to 9, then five operators of `+ - * m` (m takes the
larger) with operands from 1 to 9. Every running value is kept modulo ten, and the answer is the
last *two* running values: one digit could be guessed right once in ten, two once in a hundred.
Everything follows from a seed and the standard library's Mersenne Twister, so the shipped prompt
files can be written again byte for byte.
"""

import json
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

OPERATORS = "+-*m"
NUM_STEPS = 5
TRAIN_ROWS = 2048
HELDOUT_ROWS = 512
PROMPT_SEED = 20

_APPLY: dict[str, Callable[[int, int], int]] = {
    "+": lambda value, operand: (value + operand) % 10,
    "-": lambda value, operand: (value - operand) % 10,
    "*": lambda value, operand: (value * operand) % 10,
    "m": max,
}
# Steps that may trade places when they stand side by side: the value after both is the same.
_COMMUTING = ("+-", "*", "m")


@dataclass(frozen=True, slots=True)
class Problem:
    """One chain: a start and pairs of operator and operand, `NUM_STEPS` of them in a text."""

    start: int
    steps: tuple[tuple[str, int], ...]

    @property
    def chain(self) -> str:
        """Its signs alone, such as `7+5-8*3m6+4`."""
        return f"{self.start}{''.join(f'{op}{operand}' for op, operand in self.steps)}"

    @property
    def prompt(self) -> str:
        """The text a model sees, such as `7+5-8*3m6+4=`."""
        return f"{self.chain}="

    @property
    def values(self) -> tuple[int, ...]:
        """The running values modulo ten, one a step."""
        value, values = self.start, []
        for operator, operand in self.steps:
            value = apply_step(operator, value, operand)
            values.append(value)
        return tuple(values)

    @property
    def answer(self) -> str:
        """The last two running values as two digits, such as `60`."""
        return answer_of(self.values)


def apply_step(operator: str, value: int, operand: int) -> int:
    """The right value, 0 to 9, of one step."""
    return _APPLY[operator](value, operand)


def answer_of(values: Sequence[int]) -> str:
    """The answer that a list of running values states, right or wrong."""
    return f"{values[-2]}{values[-1]}"


def completion_of(values: Sequence[int], *, separator: str) -> str:
    """The text that states these running values and their answer.

    With a space between values: `2 4 2 6 0 \\boxed{60}`; the separator follows every value.
    """
    return "".join(f"{value}{separator}" for value in values) + f"\\boxed{{{answer_of(values)}}}"


def draw_problem(
    rng: random.Random,
    *,
    operator_weights: Sequence[float] = (1, 1, 1, 1),
    num_steps: int = NUM_STEPS,
) -> Problem:
    """One problem; `operator_weights` are relative, in the order of `OPERATORS`."""
    operators = rng.choices(OPERATORS, weights=operator_weights, k=num_steps)
    return Problem(rng.randint(1, 9), tuple((op, rng.randint(1, 9)) for op in operators))


def distinct_problems(seed: int, *, num_steps: int = NUM_STEPS) -> Iterator[Problem]:
    """An endless stream of problems, none twice."""
    rng, seen = random.Random(seed), set()
    while True:
        problem = draw_problem(rng, num_steps=num_steps)
        if problem.prompt not in seen:
            seen.add(problem.prompt)
            yield problem


def reordered(problem: Problem, rng: random.Random) -> Problem:
    """The same question in another wording: what may trade places does so by chance.

    The start trades places with the first operand under a commutative operator, and neighbours
    among the first four steps where the value after both stays the same. The last two values,
    hence the answer, never change; about a sixth of problems come back unchanged.
    """
    start, steps = problem.start, list(problem.steps)
    if steps[0][0] in "+*m":
        start, steps[0] = steps[0][1], (steps[0][0], start)
    for left in range(len(steps) - 2):
        pair = steps[left][0] + steps[left + 1][0]
        if any(set(pair) <= set(kind) for kind in _COMMUTING) and rng.random() < 0.5:
            steps[left], steps[left + 1] = steps[left + 1], steps[left]
    return Problem(start, tuple(steps))


def write_prompt_files(directory: Path) -> None:
    """Write `train.jsonl`, `train_reordered.jsonl` and `heldout.jsonl`; no problem is in two.

    Rows are `{"id", "prompt", "answer"}`. The reordered rows carry the ids of the originals;
    one that would equal a held-out problem keeps its original wording.
    """
    stream = distinct_problems(PROMPT_SEED)
    heldout = [next(stream) for _ in range(HELDOUT_ROWS)]
    train = [next(stream) for _ in range(TRAIN_ROWS)]
    rng, forbidden = random.Random(PROMPT_SEED + 1), {problem.prompt for problem in heldout}
    reworded = [
        again if (again := reordered(problem, rng)).prompt not in forbidden else problem
        for problem in train
    ]
    directory.mkdir(parents=True, exist_ok=True)
    for name, prefix, problems in (
        ("heldout", "heldout", heldout),
        ("train", "train", train),
        ("train_reordered", "train", reworded),
    ):
        _write_rows(directory / f"{name}.jsonl", prefix, problems)


def prompts_path(name: str) -> Path:
    """Where the shipped prompt file `name` (`train`, `train_reordered`, `heldout`) lies."""
    return Path(str(files("corl.quickstart") / "prompts" / f"{name}.jsonl"))


def shipped_prompts(names: Collection[str] = ("train", "train_reordered", "heldout")) -> set[str]:
    """Every prompt of the shipped files: what no pretraining corpus may contain."""
    return {
        json.loads(line)["prompt"]
        for name in names
        for line in prompts_path(name).read_text(encoding="utf-8").splitlines()
    }


def _write_rows(path: Path, prefix: str, problems: Iterable[Problem]) -> None:
    rows = [
        json.dumps({"id": f"{prefix}-{index:04d}", "prompt": p.prompt, "answer": p.answer})
        for index, p in enumerate(problems)
    ]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
