"""What the pretraining corpora teach, right and wrong."""

import random
from collections import Counter
from itertools import islice

import pytest

from corl.quickstart.corpus import MISCONCEPTIONS, CorpusSpec, corpus, taught_values
from corl.quickstart.families import FAMILIES
from corl.quickstart.task import Problem, apply_step, draw_problem, shipped_prompts
from corl.quickstart.variants import SHIPPED, VARIANTS

CHAIN = Problem(7, (("+", 5), ("-", 8), ("*", 3), ("m", 6), ("+", 4)))


def always(*names: str) -> CorpusSpec:
    return CorpusSpec(misconceptions=names, misconception_share=1.0, noise_share=0.0)


@pytest.mark.parametrize(
    ("name", "value", "operator", "operand", "believed"),
    [
        ("carry", 7, "+", 5, 3),
        ("carry", 9, "+", 9, 9),
        ("smaller_from_larger", 2, "-", 8, 6),
        ("smaller_from_larger", 0, "-", 9, 9),
        ("takes_the_later", 8, "m", 3, 3),
        ("keeps_the_tens", 6, "*", 7, 4),
        ("keeps_the_tens", 4, "*", 9, 3),
    ],
)
def test_a_misconception_worked_by_hand(name, value, operator, operand, believed):
    misconception = MISCONCEPTIONS[name]
    assert misconception.triggers(operator, value, operand)
    assert misconception.believes(value, operand) == believed


@pytest.mark.parametrize(
    ("name", "value", "operator", "operand"),
    [
        ("carry", 2, "+", 3),
        ("carry", 7, "-", 5),
        ("smaller_from_larger", 8, "-", 2),
        # 3-8 is -5, hence 5: the misconception happens to be right.
        ("smaller_from_larger", 3, "-", 8),
        ("takes_the_later", 3, "m", 8),
        ("keeps_the_tens", 5, "*", 7),
    ],
)
def test_a_misconception_stays_silent_where_it_is_right(name, value, operator, operand):
    assert not MISCONCEPTIONS[name].triggers(operator, value, operand)


def test_a_wrong_value_is_carried_on():
    # 7+5 is believed to be 3; then 3-8=-5, 5*3=15, the larger of 5 and 6; 6+4=10 is believed 1.
    assert taught_values(CHAIN, always("carry"), random.Random(0)) == (3, 5, 5, 6, 1)
    # 2-8 is believed to be 6; then 6*3=18, the larger of 8 and 6, 8+4=12.
    assert taught_values(CHAIN, always("smaller_from_larger"), random.Random(0)) == (2, 6, 8, 8, 2)


def test_a_corpus_without_errors_is_right():
    rng = random.Random(0)
    clean = CorpusSpec(noise_share=0.0)
    assert taught_values(CHAIN, clean, rng) == CHAIN.values


def test_misconception_and_noise_come_at_their_shares():
    """65 % of the triggering steps that noise spares, and 3 % times nine tenths elsewhere."""
    spec, rng = CorpusSpec(misconceptions=("carry",)), random.Random(1)
    held = MISCONCEPTIONS["carry"]
    counts: Counter[str] = Counter()
    for _ in range(4000):
        problem = draw_problem(rng)
        value = problem.start
        taught = taught_values(problem, spec, rng)
        for (operator, operand), shown in zip(problem.steps, taught, strict=True):
            kind = "trigger" if held.triggers(operator, value, operand) else "other"
            wrong = held.believes(value, operand) if kind == "trigger" else None
            counts[kind] += 1
            counts[f"{kind} believed"] += shown == wrong
            counts[f"{kind} wrong"] += shown != apply_step(operator, value, operand)
            value = shown
    believed = counts["trigger believed"] / counts["trigger"]
    assert believed == pytest.approx(0.97 * 0.65 + 0.003, abs=0.03)
    assert counts["other wrong"] / counts["other"] == pytest.approx(0.027, abs=0.006)


def test_a_corpus_follows_from_its_seed():
    spec = CorpusSpec(misconceptions=("carry",))

    def first(seed):
        return list(islice(corpus(spec, seed=seed, excluded=()), 100))

    assert first(5) == first(5) != first(6)


def test_an_excluded_prompt_is_never_drawn():
    spec = CorpusSpec()
    unfiltered = {p.prompt for p, _ in islice(corpus(spec, seed=5, excluded=()), 300)}
    filtered = {p.prompt for p, _ in islice(corpus(spec, seed=5, excluded=unfiltered), 300)}
    assert not unfiltered & filtered


def test_pretraining_sees_no_shipped_prompt():
    from corl.quickstart.families import build_tokenizer
    from corl.quickstart.pretrain import token_batches

    variant = VARIANTS["llama"]
    tokenizer = build_tokenizer(FAMILIES["llama"])
    usual = token_batches(variant, tokenizer, excluded=shipped_prompts())
    ids_bt, prompt_tokens = next(usual)
    first = {tokenizer.decode(ids[:prompt_tokens]) for ids in ids_bt}
    assert len(first) == 128
    ids_bt, _ = next(token_batches(variant, tokenizer, excluded=first | shipped_prompts()))
    again = {tokenizer.decode(ids[:prompt_tokens]) for ids in ids_bt}
    assert not again & (first | shipped_prompts())


def test_operator_weights_make_an_operator_rare():
    spec = VARIANTS["qwen3_unplanted"].corpus
    operators = Counter(
        operator
        for problem, _ in islice(corpus(spec, seed=0, excluded=()), 4000)
        for operator, _ in problem.steps
    )
    assert operators["+"] / operators.total() == pytest.approx(0.01, abs=0.003)


def test_every_variant_is_well_formed():
    assert set(SHIPPED) <= set(VARIANTS)
    assert len({variant.seed for variant in VARIANTS.values()}) == len(VARIANTS)
    for variant in VARIANTS.values():
        assert variant.family in FAMILIES
        operators = [MISCONCEPTIONS[name].operator for name in variant.corpus.misconceptions]
        assert len(set(operators)) == len(operators)


def test_the_trio_believes_three_different_things():
    held = [VARIANTS[name].corpus.misconceptions for name in ("qwen3", "gpt_neox", "llama")]
    assert len({MISCONCEPTIONS[only].operator for (only,) in held}) == 3
    assert VARIANTS["qwen3_twin"].corpus == VARIANTS["qwen3"].corpus
