"""Real pictures and questions (easy-VQA) through the vision demonstration's models."""

import io
import json
import struct
import sys
import zlib
from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

from corl.cli import app
from corl.config import load_recipe
from corl.errors import PromptError
from corl.launch import start_run
from corl.launch.preflight import preflight
from corl.run.journal import read_records
from corl.show import live_progress

pytest.importorskip("easy_vqa", reason="easy-vqa is not installed")
ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipes" / "easy_vqa.yaml"
BENCHMARK = ROOT / "recipes" / "benchmarks" / "easy_vqa.yaml"
ROWS = 200


@pytest.fixture(scope="module")
def questions(tmp_path_factory):
    """200 questions of each split, as the script writes them."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        from easy_vqa_prompts import write_split
    finally:
        sys.path.pop(0)
    out = tmp_path_factory.mktemp("easy_vqa")
    return {split: write_split(out, split, rows=ROWS) for split in ("train", "test")}


def test_200_questions_load_train_two_steps_and_evaluate(questions, tmp_path):
    overrides = [f"prompts.file={questions['train']}", "launch=in_process"]
    recipe = load_recipe(RECIPE, overrides)
    checked = preflight(recipe)
    for name, rows in checked.prompts.items():
        assert len(rows.rows) == ROWS, name
        assert {len(row.images) for row in rows.rows} == {1}
        assert {row.kind for row in rows.rows} == {"text"}
    run = tmp_path / "run"
    outcome = start_run(recipe, run, progress=live_progress(Console(quiet=True)))
    assert outcome.is_finished and outcome.total_steps == 2
    records = read_records(outcome.run.metrics)
    assert [(one["agent"], one["step"]) for one in records] == [
        ("llava", 1), ("internvl", 1), ("llava", 2), ("internvl", 2),
    ]  # fmt: skip
    asked = CliRunner().invoke(
        app,
        ["eval", str(run), "--benchmarks", f"{BENCHMARK}={questions['test']}",
         "--max-tokens", "14", "--out", str(tmp_path / "eval")],
    )  # fmt: skip
    assert asked.exit_code == 0, asked.output
    models = json.loads((tmp_path / "eval" / "results.json").read_text())["models"]
    assert set(models) == {"run-llava", "run-internvl"}
    for model in models.values():
        score = model["benchmarks"]["easy_vqa"]
        assert score["rows"] == ROWS and sum(score["verdicts"].values()) == ROWS
        assert not score["verdicts"]["error"] and not score["verdicts"]["timeout"]


def png(width, height):
    """The header of a picture of that size, and next to nothing in it."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(b"")), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def saved(image):
    stream = io.BytesIO()
    image.save(stream, format="PNG")
    return stream.getvalue()


def recipe_with(picture, questions, folder):
    """The recipe on 32 questions, the fifth of which shows these bytes."""
    lines = questions["train"].read_text().splitlines()[:32]
    row = json.loads(lines[4])
    (folder / "odd.png").write_bytes(picture)
    lines[4] = json.dumps({**row, "image": str(folder / "odd.png")})
    (folder / "prompts.jsonl").write_text("\n".join(lines))
    return load_recipe(
        RECIPE,
        [f"prompts.file={folder / 'prompts.jsonl'}", "launch=in_process", "steps=1"],
    )


@pytest.mark.parametrize(
    ("picture", "said"),
    [
        pytest.param(saved(Image.new("RGB", (64, 64)))[:60], "is broken", id="corrupt"),
        pytest.param(b"not a picture", "is no PNG", id="no picture"),
        pytest.param(png(50_000, 50_000), "at most 64 million are decoded", id="huge"),
        pytest.param(saved(Image.new("RGB", (1, 1))), "which show nothing", id="one pixel"),
    ],
)
def test_a_picture_that_shows_nothing_is_refused_before_a_weight_is_loaded(
    picture, said, questions, tmp_path
):
    recipe = recipe_with(picture, questions, tmp_path)
    with pytest.raises(PromptError, match="row 5") as refused:
        preflight(recipe)
    assert said in str(refused.value) and "odd.png" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "picture",
    [
        pytest.param(saved(Image.new("L", (64, 64), 90)), id="grey"),
        pytest.param(saved(Image.new("RGBA", (64, 64), (200, 10, 10, 0))), id="RGBA"),
        pytest.param(saved(Image.new("P", (640, 30))), id="palette"),
        pytest.param(saved(Image.new("I;16", (30, 500))), id="16 bits"),
    ],
)
def test_a_picture_of_another_mode_trains(picture, questions, tmp_path):
    recipe = recipe_with(picture, questions, tmp_path)
    agents = [
        agent.model_copy(update={"prompts": recipe.prompts.model_copy(update={"limit": 16})})
        for agent in recipe.agents
    ]
    run = start_run(
        recipe.model_copy(update={"agents": tuple(agents)}),
        tmp_path / "run",
        progress=live_progress(Console(quiet=True)),
    )
    assert run.is_finished
