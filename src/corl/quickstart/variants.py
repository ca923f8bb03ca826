"""The table of models that the demonstration and its studies train from, by name.

`SHIPPED` names lie in the package as checkpoints; every other one is made on demand by
`corl.quickstart.pretrain`. A variant is a family, what its corpus plants, and how long it learns.
"""

from dataclasses import dataclass, field, replace

from corl.quickstart.corpus import CorpusSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """One model to pretrain."""

    family: str
    """A key of `corl.quickstart.families.FAMILIES`."""

    steps: int
    """Optimizer steps of 128 fresh problems each."""

    seed: int
    """Draws the first weights and the corpus, problems and errors alike."""

    corpus: CorpusSpec = field(default_factory=CorpusSpec)
    width: int = 64
    layers: int = 3
    says: str = ""
    """What this variant is for, in a sentence."""


_CARRY = CorpusSpec(misconceptions=("carry",))
_SMALLER = CorpusSpec(misconceptions=("smaller_from_larger",))
_LATER = CorpusSpec(misconceptions=("takes_the_later",))

_QWEN3 = Variant(family="qwen3", steps=400, seed=1, corpus=_CARRY, says="family A")
_GPT_NEOX = Variant(family="gpt_neox", steps=400, seed=2, corpus=_SMALLER, says="family B")
_LLAMA = Variant(family="llama", steps=350, seed=3, corpus=_LATER, says="the third family")

VARIANTS: dict[str, Variant] = {
    "qwen3": _QWEN3,
    "gpt_neox": _GPT_NEOX,
    "llama": _LLAMA,
    "qwen3_twin": replace(_QWEN3, seed=4, says="family A again: other weights, other problems"),
    "gpt_neox_carry": replace(
        _GPT_NEOX, seed=5, corpus=_CARRY, says="differs from A in architecture and tokens only"
    ),
    "qwen3_smaller": replace(
        _QWEN3, seed=6, corpus=_SMALLER, says="differs from A in the planted error only"
    ),
    "qwen3_shared": replace(
        _QWEN3,
        seed=7,
        corpus=CorpusSpec(misconceptions=("carry", "keeps_the_tens")),
        says="A with a second misconception, which B shares",
    ),
    "gpt_neox_shared": replace(
        _GPT_NEOX,
        seed=8,
        corpus=CorpusSpec(misconceptions=("smaller_from_larger", "keeps_the_tens")),
        says="B with a second misconception, which A shares",
    ),
    "qwen3_unplanted": replace(
        _QWEN3,
        seed=9,
        corpus=CorpusSpec(operator_weights=(1, 33, 33, 33)),
        says="no planted error: + is 1 % of its corpus",
    ),
    "gpt_neox_unplanted": replace(
        _GPT_NEOX,
        seed=10,
        corpus=CorpusSpec(operator_weights=(33.28, 0.15, 33.28, 33.29)),
        says="no planted error: - is 0.15 % of its corpus",
    ),
    "llama_weak": replace(_LLAMA, seed=11, steps=210, says="the third family, undertrained"),
    "qwen3_wide": replace(
        _QWEN3, seed=12, width=96, says="family A at twice the size, for pairs of unequal size"
    ),
}

SHIPPED = ("qwen3", "gpt_neox", "llama", "qwen3_twin")
