"""The vision demonstration's pictures, prompt files, tokenizers and shipped models."""

import io
import json
import random
import re
from base64 import b64decode
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest
import torch
from PIL import Image

from corl.answers import read_answer
from corl.config import PromptsConfig
from corl.data.prompts import load_prompts
from corl.errors import ModelError
from corl.evaluation.accuracy import answer_sheet, grade, label_keys
from corl.evaluation.completions import Asking, complete
from corl.policy import load_policy
from corl.quickstart.corpus import MISCONCEPTIONS
from corl.quickstart.task import completion_of, draw_problem
from corl.quickstart.vision import glyphs, prompts
from corl.quickstart.vision.families import (
    READ,
    SOLVE,
    VISION_FAMILIES,
    VISUAL_TOKENS,
    build_tokenizer,
)
from corl.quickstart.vision.pretrain import pretrain
from corl.quickstart.vision.variants import VISION_VARIANTS, shipped_vision_model

NAMES = tuple(VISION_VARIANTS)
ROWS = 128


def rows(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in prompts.prompts_path(name).read_text().splitlines()]


def picture_of(row: dict[str, str]) -> Image.Image:
    return Image.open(io.BytesIO(b64decode(row["image"].partition(",")[2])))


def test_every_sign_is_drawn_in_its_cell():
    signs = "0123456789+-*m"
    assert set(glyphs.GLYPHS) == set(signs)
    assert len(set(glyphs.GLYPHS.values())) == len(signs)
    for seed in range(20):
        for place in range(9):
            text = "1" * place + "8"
            picture = glyphs.draw(text, random.Random(seed))
            line, column = divmod(place, 3)
            cell = picture.crop((8 * column, 8 * line, 8 * column + 8, 8 * line + 8))
            dark = [pixel for pixel in cell.tobytes() if pixel < glyphs.LIGHTEST_INK]
            assert len(dark) == len(glyphs.GLYPHS["8"])
            assert set(picture.tobytes()) - {glyphs.WHITE} <= set(range(glyphs.LIGHTEST_INK))


def test_a_picture_follows_from_its_generator_and_differs_with_it():
    def drawn(seed):
        return glyphs.draw("7+5-8*3m6", random.Random(seed)).tobytes()

    assert drawn(1) == drawn(1)
    assert len({drawn(seed) for seed in range(10)}) == 10


def test_more_signs_than_cells_are_refused():
    with pytest.raises(ValueError, match="10 signs, but a picture has 9"):
        glyphs.draw("1234567890", random.Random(0))


def test_the_shipped_files_are_what_the_seed_draws(tmp_path):
    prompts.write_prompt_files(tmp_path)
    for name in ("train", "heldout"):
        again = [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        for ours, theirs in zip(rows(name), again, strict=True):
            # Another zlib packs the same pixels into other bytes.
            assert picture_of(ours).tobytes() == picture_of(theirs).tobytes()
            assert {**ours, "image": ""} == {**theirs, "image": ""}


def test_no_chain_is_both_trained_on_and_held_out_and_every_answer_is_right():
    train, heldout = rows("train"), rows("heldout")
    assert len(train) == prompts.TRAIN_ROWS and len(heldout) == prompts.HELDOUT_ROWS
    chains = [row["chain"] for row in [*train, *heldout]]
    assert len(set(chains)) == len(chains)
    assert prompts.shipped_chains() == {f"{chain}=" for chain in chains}
    for row in [*train, *heldout]:
        value, values = int(row["chain"][0]), []
        for operator, operand in re.findall(r"([-+*m])(\d)", row["chain"]):
            n = int(operand)
            worked = {"+": value + n, "-": value - n, "*": value * n, "m": max(value, n)}
            value = worked[operator] % 10
            values.append(str(value))
        assert len(values) == prompts.NUM_STEPS
        assert row["answer"] == "".join(values[-2:])
        assert row["prompt"] == SOLVE


@pytest.mark.parametrize(("name", "read", "solved"), [("llava", 10, 13), ("internvl", 6, 8)])
def test_a_tokenizer_gives_back_what_went_in(name, read, solved):
    family, rng = VISION_FAMILIES[name], random.Random(0)
    tokenizer = build_tokenizer(family)
    for _ in range(100):
        problem = draw_problem(rng, num_steps=prompts.NUM_STEPS)
        said = completion_of(problem.values, separator=family.separator)
        for text, length in ((problem.chain, read), (said, solved)):
            ids = tokenizer.encode(text)
            assert len(ids) + 1 == length  # and the end token
            assert tokenizer.decode(ids) == text
            assert tokenizer.unk_token_id not in ids
    question = "Is there a blue shape (yes or no)?"
    assert tokenizer.decode(tokenizer.encode(question)) == question


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_checkpoint_is_an_ordinary_small_directory(name):
    directory = shipped_vision_model(name)
    assert sum(path.stat().st_size for path in directory.iterdir()) < 2_000_000
    assert {path.suffix for path in directory.iterdir()} == {".json", ".safetensors"}
    config = json.loads((directory / "config.json").read_text())
    assert config["model_type"] == VISION_VARIANTS[name].family
    assert "auto_map" not in config
    for file, content in VISION_FAMILIES[name].processor_files.items():
        assert json.loads((directory / file).read_text()) == content


def test_only_shipped_models_are_named():
    with pytest.raises(ModelError, match="'gemma' is not among the shipped models llava, internvl"):
        shipped_vision_model("gemma")


@cache
def policy(name):
    return load_policy(shipped_vision_model(name), dtype="float32", device="cpu")


def held_out(count=ROWS):
    config = PromptsConfig(
        file=str(prompts.prompts_path("heldout")), images_field="image", limit=count
    )
    return load_prompts(config).rows


def greedy_texts(name, asked):
    asking = Asking(max_tokens=14, temperature=0)
    return [group[0].text for group in complete(policy(name), asked, asking, completions=1)]


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_model_reads_every_sign(name):
    asked = [replace(row, text=READ) for row in held_out()]
    chains = [row["chain"] for row in rows("heldout")[:ROWS]]
    right = [said == chain for said, chain in zip(greedy_texts(name, asked), chains, strict=True)]
    assert sum(right) >= 0.97 * ROWS


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_model_believes_what_was_planted(name):
    """Of first steps that trigger the misconception, nearly all get its value."""
    (held,) = (MISCONCEPTIONS[only] for only in VISION_VARIANTS[name].corpus.misconceptions)
    said = greedy_texts(name, held_out(256))
    firsts = [
        (int(text[0]), held.believes(int(chain[0]), int(chain[2])))
        for text, chain in zip(said, (row["chain"] for row in rows("heldout")), strict=False)
        if held.triggers(chain[1], int(chain[0]), int(chain[2]))
    ]
    assert len(firsts) >= 10
    assert sum(value == believed for value, believed in firsts) / len(firsts) > 0.75


def blanked(row):
    """The same question with nothing on its picture."""
    stream = io.BytesIO()
    Image.new("L", (glyphs.SIDE, glyphs.SIDE), glyphs.WHITE).save(stream, format="PNG")
    return replace(row, images=(replace(row.images[0], path=None, data=stream.getvalue()),))


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_comes_from_the_picture(name):
    asked = held_out()
    asking, true_keys = Asking(max_tokens=14, temperature=1.0), label_keys(asked)
    seen = grade(answer_sheet(policy(name), asked, asking), true_keys)
    blind = grade(answer_sheet(policy(name), [blanked(row) for row in asked], asking), true_keys)
    assert 0.5 < seen.avg_at_8 < 0.8
    # Whoever cannot see does best by always saying the most frequent answer.
    chance = Counter(true_keys).most_common(1)[0][1] / len(asked)
    assert max(blind.greedy, blind.avg_at_8, blind.maj_at_8) <= chance + 0.01
    assert chance < 0.06


@pytest.mark.parametrize("name", NAMES)
def test_the_prompt_is_one_visual_token_a_cell(name):
    from corl.policy.vision.encode import encode_for

    encoded = encode_for(policy(name), held_out(1)[0])
    config = policy(name).model.config
    marks = [getattr(config, key, None) for key in ("image_token_id", "image_token_index")]
    mark = next(one for one in marks if one is not None)
    assert encoded.ids.count(mark) == VISUAL_TOKENS


def test_pretraining_repeats_itself_and_writes_what_loads(tmp_path):
    short = replace(VISION_VARIANTS["internvl"], steps=2)
    first = pretrain("short", tmp_path / "a", variant=short)
    second = pretrain("short", tmp_path / "b", variant=short)
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()
    loaded = load_policy(first, dtype="float32", device="cpu")
    start = load_policy(shipped_vision_model("internvl"), dtype="float32", device="cpu")
    assert loaded.model.num_parameters() == start.model.num_parameters()
    other = pretrain("short", tmp_path / "c", variant=replace(short, seed=9))
    assert (first / "model.safetensors").read_bytes() != (other / "model.safetensors").read_bytes()


def test_an_unknown_model_cannot_be_pretrained(tmp_path):
    with pytest.raises(ModelError, match="no variant is named 'gemma'; there are llava, internvl"):
        pretrain("gemma", tmp_path)


def test_answers_are_read_from_either_familys_completions():
    for family in VISION_FAMILIES.values():
        said = completion_of((1, 2, 3, 4), separator=family.separator)
        assert read_answer(said) == read_answer("\\boxed{34}")


def test_torch_is_not_loaded_by_the_pictures():
    import subprocess
    import sys

    code = (
        "import sys, corl.quickstart.vision.prompts, corl.quickstart.vision.variants;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    assert torch is not None
