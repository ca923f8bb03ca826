"""The families' tokenizers, the shipped checkpoints, and pretraining that repeats itself."""

import json
import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from corl.answers import read_answer
from corl.errors import ModelError
from corl.quickstart import pretrain as pretraining
from corl.quickstart.corpus import MISCONCEPTIONS
from corl.quickstart.families import EOS, FAMILIES, UNK, build_tokenizer
from corl.quickstart.pretrain import pretrain, pretrain_all, shipped_model
from corl.quickstart.task import completion_of, draw_problem, prompts_path
from corl.quickstart.variants import SHIPPED, VARIANTS

NUM_PROBLEMS = 192


@pytest.mark.parametrize(
    ("name", "prompt_tokens", "completion_tokens"),
    [("qwen3", 12, 15), ("gpt_neox", 7, 9), ("llama", 7, 10)],
)
def test_a_tokenizer_gives_back_what_went_in(name, prompt_tokens, completion_tokens):
    family, rng = FAMILIES[name], random.Random(0)
    tokenizer = build_tokenizer(family)
    for _ in range(200):
        problem = draw_problem(rng)
        completion = completion_of(problem.values, separator=family.separator)
        prompt_ids = tokenizer.encode(problem.prompt)
        completion_ids = tokenizer.encode(completion)
        assert len(prompt_ids) == prompt_tokens
        assert len(completion_ids) + 1 == completion_tokens  # and the end token
        assert tokenizer.decode(prompt_ids + completion_ids) == problem.prompt + completion
        assert tokenizer.encode(problem.prompt + completion) == prompt_ids + completion_ids
        assert not {tokenizer.eos_token_id, tokenizer.unk_token_id} & {*prompt_ids, *completion_ids}


def test_the_families_cut_one_text_differently():
    cuts = {
        tuple(build_tokenizer(family).tokenize("7+5=2 4 \\boxed{24}"))
        for family in FAMILIES.values()
    }
    assert len(cuts) == len(FAMILIES)


def test_an_unknown_character_is_marked_and_not_dropped():
    tokenizer = build_tokenizer(FAMILIES["qwen3"])
    assert tokenizer.tokenize("7?5") == ["7", UNK, "5"]
    assert tokenizer.eos_token == EOS


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_checkpoint_is_an_ordinary_small_directory(name):
    directory = shipped_model(name)
    names = {path.name for path in directory.iterdir()}
    assert names == {
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert sum(path.stat().st_size for path in directory.iterdir()) < 1_000_000
    config = json.loads((directory / "config.json").read_text())
    assert config["model_type"] == VARIANTS[name].family
    assert "auto_map" not in config
    built = build_tokenizer(FAMILIES[VARIANTS[name].family])
    assert AutoTokenizer.from_pretrained(directory).get_vocab() == built.get_vocab()


@cache
def greedy(name: str) -> list[str]:
    """Greedy completions of the first held-out problems."""
    model = AutoModelForCausalLM.from_pretrained(shipped_model(name), dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(shipped_model(name))
    prompts = [row["prompt"] for row in heldout()]
    batch = tokenizer(prompts, return_tensors="pt", return_token_type_ids=False)
    out = model.generate(**batch, do_sample=False, max_new_tokens=16)
    completions_bt = out[:, batch["input_ids"].shape[1] :]
    return tokenizer.batch_decode(completions_bt, skip_special_tokens=True)


def heldout() -> list[dict[str, str]]:
    lines = prompts_path("heldout").read_text().splitlines()[:NUM_PROBLEMS]
    return [json.loads(line) for line in lines]


def right(name: str) -> list[bool]:
    return [
        read_answer(text) == read_answer(f"\\boxed{{{row['answer']}}}")
        for text, row in zip(greedy(name), heldout(), strict=True)
    ]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_model_is_half_right(name):
    share = sum(right(name)) / NUM_PROBLEMS
    assert 0.45 < share < 0.8


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_model_believes_what_was_planted(name):
    """Of first steps that trigger the misconception, nearly all get its value."""
    (held,) = (MISCONCEPTIONS[only] for only in VARIANTS[name].corpus.misconceptions)
    firsts = [
        (int(text[0]), held.believes(int(row["prompt"][0]), int(row["prompt"][2])))
        for text, row in zip(greedy(name), heldout(), strict=True)
        if held.triggers(row["prompt"][1], int(row["prompt"][0]), int(row["prompt"][2]))
    ]
    assert len(firsts) >= 10
    assert sum(said == believed for said, believed in firsts) / len(firsts) > 0.75


def test_families_err_apart_and_twins_together():
    def agreement(first, second):
        return sum(a == b for a, b in zip(right(first), right(second), strict=True)) / NUM_PROBLEMS

    assert agreement("qwen3", "qwen3_twin") > 0.9
    assert agreement("qwen3", "gpt_neox") < 0.65
    assert agreement("gpt_neox", "llama") < 0.65


@pytest.mark.parametrize("family", FAMILIES)
def test_pretraining_repeats_byte_for_byte(tmp_path: Path, family):
    variant = replace(VARIANTS[family], steps=3)
    torch.manual_seed(0)
    state = torch.get_rng_state()
    first = pretrain("first", tmp_path / "first", variant=variant)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(1)
    second = pretrain("second", tmp_path / "second", variant=variant)
    other = pretrain("other", tmp_path / "other", variant=replace(variant, seed=99))
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes(), path.name
    weights = "model.safetensors"
    assert (first / weights).read_bytes() != (other / weights).read_bytes()


def test_pretraining_lowers_the_loss_and_reports_each_step(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(VARIANTS, "brief", replace(VARIANTS["gpt_neox"], steps=25))
    seen: list[tuple[str, int, int, float]] = []
    (directory,) = pretrain_all(
        tmp_path, ["brief"], lambda name, done, steps, loss: seen.append((name, done, steps, loss))
    )
    assert directory == tmp_path / "brief"
    assert [entry[:3] for entry in seen] == [("brief", step, 25) for step in range(1, 26)]
    # At first each token is one of 152 at random, or worse.
    assert seen[0][3] > 4.5
    assert seen[-1][3] < 3.0


def test_only_the_completion_carries_loss():
    tokenizer = build_tokenizer(FAMILIES["gpt_neox"])
    from corl.quickstart.families import build_model

    model = build_model(FAMILIES["gpt_neox"], tokenizer)
    ids_bt, prompt_tokens = next(
        pretraining.token_batches(VARIANTS["gpt_neox"], tokenizer, excluded=())
    )
    loss = pretraining.completion_loss(model, (ids_bt, prompt_tokens))
    logps_btv = model(input_ids=ids_bt).logits.log_softmax(-1)
    targets = range(prompt_tokens, ids_bt.shape[1])
    picked = [logps_btv[b, t - 1, ids_bt[b, t]].item() for b in range(128) for t in targets]
    assert loss.item() == pytest.approx(-sum(picked) / len(picked), rel=1e-5)


def test_an_unknown_name_is_refused_with_the_known_ones(tmp_path: Path):
    with pytest.raises(ModelError, match="qwen3, gpt_neox, llama"):
        pretrain("qwen4", tmp_path)
    with pytest.raises(ModelError, match="not among the shipped"):
        shipped_model("llama_weak")
