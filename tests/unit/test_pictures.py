"""Pictures open, have their size, do not depend on the clock, and show what they should."""

import json
import sys

import numpy as np
import pytest
from rich.console import Console

from corl.diversity.pair_figures import kappa_table, read_pairs, write_pair_pictures
from corl.diversity.pictures import Places, heat_map, phase_portrait, table
from corl.diversity.sketches import CELLS, heat_table, portrait
from corl.errors import RecipeError

NAMES = ["qwen3", "gpt_neox", "llama"]
VALUES = [[None, 0.95, -0.3], [0.95, None, 0.0], [-0.3, 0.0, None]]
PLACES = Places([0.9, 0.1, 0.5], [0.9, 0.1, 0.55], [1.0, 0.0, 0.5])


def draw(path, kind):
    if kind == "heat":
        return heat_map(path, NAMES, VALUES)
    if kind == "portrait":
        return phase_portrait(path, completions=8, names=("left", "right"), places=PLACES)
    rows = [["a, b", "0.10", "-0.01 to 0.20"], ["a, c", "-0.05", "-0.10 to 0.00"]]
    return table(path, ["pair", "kappa", "interval"], rows, title="Error overlap")


@pytest.mark.parametrize("kind", ["heat", "portrait", "table"])
def test_pngs_open_and_hold_more_than_one_colour(tmp_path, kind):
    pytest.importorskip("matplotlib")
    from PIL import Image

    with Image.open(draw(tmp_path / "deep" / f"{kind}.png", kind)) as image:
        pixels = np.asarray(image.convert("RGB"))
    expected = {"heat": (600, 562), "portrait": (900, 930), "table": (0, 0)}[kind]
    if kind == "table":
        assert pixels.shape[1] > 400 and pixels.shape[0] > 150
    else:
        assert abs(pixels.shape[1] - expected[0]) <= 2 and abs(pixels.shape[0] - expected[1]) < 90
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20


@pytest.mark.parametrize("kind", ["heat", "portrait", "table"])
@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_equal_input_gives_equal_bytes(tmp_path, kind, suffix):
    pytest.importorskip("matplotlib")
    first, second = (draw(tmp_path / f"{n}{suffix}", kind).read_bytes() for n in (1, 2))
    assert first == second


def test_svgs_carry_their_words_as_text(tmp_path):
    pytest.importorskip("matplotlib")
    said = draw(tmp_path / "p.svg", "portrait").read_text()
    for text in ("separatrix", "left: chance of a right answer", "ends right: 1", "ends wrong: 1"):
        assert text in said
    heat = draw(tmp_path / "h.svg", "heat").read_text()
    assert "gpt_neox" in heat and "0.95" in heat


def test_other_formats_and_shapes_are_refused(tmp_path):
    with pytest.raises(RecipeError, match=r"\.png or \.svg"):
        heat_map(tmp_path / "k.bmp", NAMES, VALUES)
    with pytest.raises(RecipeError, match="square"):
        heat_map(tmp_path / "k.png", NAMES[:2], VALUES)


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(RecipeError, match=r"corl\[plots\]"):
        phase_portrait(tmp_path / "p.png", completions=8)


def printed(renderable):
    console = Console(width=120, color_system=None, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(renderable)
    return console.export_text()


def test_the_sketch_of_the_flow_points_to_its_corners():
    lines = printed(portrait(completions=8)).splitlines()
    assert len(lines) == CELLS + 1
    cells = [line[4:].split() for line in lines[:CELLS]]
    assert all(len(row) == CELLS for row in cells)
    # Row 0 is the top: the second agent's 1.
    assert cells[0][CELLS - 1] == "o" and cells[CELLS - 1][0] == "o"
    for n in range(1, CELLS - 1):
        assert cells[n][n] == "\\"  # from (0, 1) down to (1, 0)
    assert cells[3][CELLS - 4] == "↗" and cells[CELLS - 4][3] == "↙"
    assert cells[2][10] == "→" and cells[10][2] == "↓"


def test_the_sketch_counts_problems_where_they_stand():
    many = Places([0.9] * 12 + [0.1], [0.8] * 12 + [0.3], [1.0] * 12 + [0.0])
    text = portrait(completions=8, places=many)
    cells = [line[4:].split() for line in printed(text).splitlines()[:CELLS]]
    assert cells[CELLS - 1 - 16][18] == "+" and cells[CELLS - 1 - 6][2] == "1"
    assert sum(cell.isdigit() or cell == "+" for row in cells for cell in row) == 2
    styles = {str(span.style) for span in text.spans}
    assert {"green", "red"} <= styles


def kappa_file(folder, pairs):
    (folder / "kappa.json").write_text(json.dumps({"models": [], "pairs": pairs}))
    return folder


def test_pairs_of_a_probe_become_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    figure = {"value": 0.25, "low": 0.1, "high": 0.4}
    pairs = read_pairs(
        kappa_file(
            tmp_path,
            [
                {"a": "x", "b": "y", "kappa": figure, "exactly_one_right": {"value": 0.3}},
                {"a": "y", "b": "z", "kappa": None, "at_least_one_right": 0.9},
                {"a": "x"},
                {"a": "x", "b": "z", "kappa": {"value": "high"}, "same_wrong_answer": float("inf")},
            ],
        )
    )
    assert [one.cells() for one in pairs] == [
        ["x, y", "0.25", "0.10 to 0.40", "30.0", "-", "-"],
        ["y, z", "-", "-", "-", "-", "90.0"],
        ["x, z", "-", "-", "-", "-", "-"],
    ]
    assert kappa_table(["y", "x"], pairs) == [[None, 0.25], [0.25, None]]
    written = write_pair_pictures(["x", "y", "z"], pairs, tmp_path / "out")
    assert sorted(path.name for path in written) == [
        "kappa.png", "kappa.svg", "pairs.png", "pairs.svg"
    ]  # fmt: skip
    assert "0.10 to 0.40" in (tmp_path / "out" / "pairs.svg").read_text()
    assert write_pair_pictures(["y", "z"], pairs[1:], tmp_path / "none") == []
    assert read_pairs(kappa_file(tmp_path, None)) == []


def test_the_heat_table_reads_without_colour():
    said = printed(heat_table(NAMES, VALUES, title="kappa"))
    assert "0.95" in said and "-0.30" in said and said.count("-") >= 3
