"""Every recipe and every cell of every study of the paper passes the check, on shapes alone.

Models come from the shipped config snapshots with zeros for weights; tokenizers and processors are
tiny ones, prompts a few real-shaped rows. Memory is not judged here: this machine is not theirs.
"""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from corl.config import load_recipe
from corl.launch.preflight import preflight
from corl.study import load_study
from corl.study.cells import cells_of, recipe_of
from tiny_models import tiny_tokenizer
from tiny_vision import build_vision_checkpoint, picture, vision_tokenizer

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "recipes" / "paper"
FAMILIES = {"Qwen2.5-VL": "qwen2_5_vl", "InternVL": "internvl", "gemma": "gemma3"}
PUBLISHED = {
    "Qwen2.5-3B": 3_085_938_688,
    "Qwen2.5-7B": 7_615_616_512,
    "Llama-3.2-3B-Instruct": 3_212_749_824,
    "Llama-3.1-8B-Instruct": 8_030_261_248,
    "Qwen2.5-VL-3B-Instruct": 3_754_622_976,
    "Qwen2.5-VL-7B-Instruct": 8_292_166_656,
    "gemma-3-12b-it": 12_187_325_040,
}
IDS = {
    "qwen2_5_vl": {
        "image_token_id": "<|image_pad|>",
        "video_token_id": "<|video_pad|>",
        "vision_start_token_id": "<|vision_start|>",
        "vision_end_token_id": "<|vision_end|>",
    },
    "internvl": {"image_token_id": "<IMG_CONTEXT>"},
    "gemma3": {
        "image_token_index": "<image_soft_token>",
        "image_token_id": "<image_soft_token>",
        "boi_token_index": "<start_of_image>",
        "eoi_token_index": "<end_of_image>",
    },
}


def _writer():
    found = importlib.util.spec_from_file_location("shapes", ROOT / "scripts/shape_checkpoint.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module.write_shapes


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Directory of each snapshot's checkpoint, and its parameters."""
    root, write = tmp_path_factory.mktemp("models"), _writer()
    tiny_tokenizer(chat_template=None).save_pretrained(root / "text")
    made, counts = {}, {}
    for snapshot in sorted((PAPER / "models").iterdir()):
        name = snapshot.name
        family = next((kind for start, kind in FAMILIES.items() if name.startswith(start)), None)
        readers, config = root / "text", snapshot
        if family is not None:
            readers = build_vision_checkpoint(root / f"{name}-readers", family)
            tokenizer = vision_tokenizer(family)
            content = json.loads((snapshot / "config.json").read_text())
            content |= {k: tokenizer.convert_tokens_to_ids(v) for k, v in IDS[family].items()}
            config = root / f"{name}-config"
            config.mkdir()
            (config / "config.json").write_text(json.dumps(content))
        counts[name] = write(config, readers, root / name)
        made[name] = root / name
    return made, counts


@pytest.fixture(scope="module")
def prompts(tmp_path_factory):
    """A folder of a few rows that stand for the data sets."""
    folder = tmp_path_factory.mktemp("data")
    texts = [
        {"id": str(n), "problem": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(130)
    ]
    blend = [{"id": str(n), "prompt": f"What is {n} + 1?", "kind": "math"} for n in range(130)]
    picture(40, 30).save(folder / "one.png")
    seen = [{**row, "image": str(folder / "one.png")} for row in texts[:16]]
    for name, rows in (("text", texts), ("blend", blend), ("vision", seen)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines)
    return folder


def recipes():
    """Every recipe of the folder by a name to show: plain ones and cells of studies."""
    for file in sorted(PAPER.glob("*.yaml")):
        if file.stem.endswith("_study"):
            study = load_study(file)
            for cell in cells_of(study):
                yield f"{file.stem}: {cell.name}", recipe_of(study, cell)
        else:
            yield file.stem, load_recipe(file, [])


CASES = dict(recipes())


def stand_in(config, prompts):
    if config is None:
        return None
    kind = "vision" if config.images_field else "blend" if config.field == "prompt" else "text"
    return config.model_copy(update={"file": str(prompts / f"{kind}.jsonl")})


@pytest.mark.parametrize("name", CASES)
def test_it_passes_the_check(name, models, prompts, monkeypatch):
    recipe, (directories, _) = CASES[name], models
    agents = tuple(
        agent.model_copy(
            update={
                "model": str(directories[agent.model.partition("/")[2]]),
                "prompts": stand_in(agent.prompts, prompts),
            }
        )
        for agent in recipe.agents
    )
    monkeypatch.setattr("corl.launch.memory_check.available_bytes", lambda device: None)
    checked = preflight(
        recipe.model_copy(update={"agents": agents, "prompts": stand_in(recipe.prompts, prompts)})
    )
    assert [check.name for check in checked.agents] == [agent.name for agent in recipe.agents]
    assert all(check.memory.total > 2**30 for check in checked.agents)


@pytest.mark.parametrize("name", PUBLISHED)
def test_snapshots_have_as_many_parameters_as_their_models(name, models):
    assert models[1][name] == PUBLISHED[name]


def test_every_setting_is_the_papers():
    for name, recipe in CASES.items():
        is_vision = recipe.prompts.images_field != ""
        assert recipe.batch.prompts == (8 if is_vision else 128), name
        assert recipe.batch.completions == (8 if is_vision else 12), name
        assert recipe.optimizer.learning_rate == (1e-6 if is_vision else 3e-6), name
        assert recipe.grpo.kl == 0.0 and recipe.grpo.loss == "bnpo", name
        assert recipe.sampling.max_tokens == (1024 if is_vision else 3072), name


def test_docs_name_every_recipe_and_every_row_of_the_tables():
    text = (ROOT / "docs" / "reproduction.md").read_text()
    for file in PAPER.glob("*.yaml"):
        assert f"`{file.name}`" in text, file.name
    cells = set(re.findall(r"`([a-z_0-9]+/[a-z_0-9]+)`", text))
    known = {"/".join((c.method.name, c.setting.name)) for f in PAPER.glob("*_study.yaml")
             for c in cells_of(load_study(f))}  # fmt: skip
    assert cells == known
