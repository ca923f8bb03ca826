"""Sampling noise as a pure function of where it is used.

A uniform depends on (seed, agent, step, prompt, completion, position) and on nothing else: not on
which rows share a batch, in which order rows run, or how far a run had come when it was resumed.
So no generator state is ever saved. The generator is Philox, which is counter-based: the key
comes from (seed, agent, step), the counter from (prompt, completion), and positions follow.

Only raw 64-bit words are used, whose values numpy guarantees across versions.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_MANTISSA_STEP = 2.0**-53
"""53 random bits make a float64 in [0, 1) that is never 1."""


def stream_seed(seed: int, agent: str) -> int:
    """A 63-bit seed of the agent's own, for randomness that torch draws."""
    text = f"{seed}:{agent}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) >> 1


@dataclass(frozen=True, slots=True)
class Noise:
    """One agent's stream of uniforms.

    Two agents of one seed never share a draw, even when they share a model: with equal draws
    they would vote alike, and peer supervision would become self-voting.
    """

    seed: int
    agent: str

    def uniforms(self, step: int, prompt: int, completion: int, length: int) -> NDArray[np.float64]:
        """Return `length` uniforms of one completion, float64 in [0, 1).

        prompt, completion: indices within the step, zero or more. A longer call starts with the
        same numbers.
        """
        return self.batch(step, [prompt], [completion], length)[0]

    def batch(
        self, step: int, prompts: Sequence[int], completions: Sequence[int], length: int
    ) -> NDArray[np.float64]:
        """Return float64 [R, length] for R rows (prompts[r], completions[r])."""
        generator = np.random.Philox(key=self._key(step))
        state = generator.state
        words = np.empty((len(prompts), length), dtype=np.uint64)
        for row, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
            # Word 0 of the counter is Philox's own block number: positions advance it.
            state["state"]["counter"] = np.array([0, completion, prompt, 0], dtype=np.uint64)
            generator.state = state
            words[row] = generator.random_raw(length)
        return (words >> np.uint64(11)).astype(np.float64) * _MANTISSA_STEP

    def _key(self, step: int) -> NDArray[np.uint64]:
        # The name is length-prefixed so that no two (agent, step) pairs spell the same bytes.
        text = f"{self.seed}:{len(self.agent)}:{self.agent}:{step}".encode()
        return np.frombuffer(hashlib.blake2b(text, digest_size=16).digest(), dtype="<u8").astype(
            np.uint64
        )
