"""`corl basin` and `corl pair` through the command, on probes as `corl kappa` writes them."""

import json

import pytest

from corl import cli
from corl.config import load_recipe
from probe_cases import four_with_a_weak_one, worked_example


@pytest.fixture
def corl(capsys):
    def run(*arguments):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", ["corl", *map(str, arguments)])
            with pytest.raises(SystemExit) as ended:
                cli.main()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return run


@pytest.fixture
def probe(tmp_path):
    def write(models):
        folder = tmp_path / "kappa"
        folder.mkdir()
        (folder / "kappa.json").write_text(json.dumps({"models": models, "pairs": []}))
        return folder

    return write


def test_the_theory_alone(corl, tmp_path):
    pytest.importorskip("matplotlib")
    code, out, _ = corl("basin", "--out", tmp_path / "basin")
    assert code == 0 and "↗" in out and "\\" in out
    assert {path.name for path in (tmp_path / "basin").iterdir()} == {
        "portrait.png",
        "portrait.svg",
    }


def test_predictions_of_a_pair(corl, probe, tmp_path):
    pytest.importorskip("matplotlib")
    folder = probe(worked_example())
    code, out, _ = corl(
        "basin", folder / "kappa.json", "--pair", "left", "right", "--out", tmp_path / "out"
    )
    assert code == 0
    assert "p6 p7 p8 p9 and 2 more" in out  # what self-reward loses
    tree = json.loads((tmp_path / "out" / "basins.json").read_text())
    ceilings = {(one["method"], one["pupil"]): one["ceiling"] for one in tree["predictions"]}
    assert ceilings["self_vote", "left"] == pytest.approx(0.5, abs=0.01)
    assert ceilings["peer", "left"] == pytest.approx(1, abs=0.01)
    assert (tmp_path / "out" / "portrait-left-right.svg").exists()


def test_a_directory_and_nothing_written_without_out(corl, probe, tmp_path):
    folder = probe(four_with_a_weak_one(2))
    before = sorted(tmp_path.rglob("*"))
    code, out, _ = corl("basin", folder, "--completions", 4)
    assert code == 0 and "Co-RL, ring" in out and "weak" in out
    assert sorted(tmp_path.rglob("*")) == before


def test_pairing_names_the_weak_teacher_and_writes_a_recipe(corl, probe, tmp_path):
    folder = probe(four_with_a_weak_one())
    code, out, _ = corl(
        "pair",
        folder,
        "--prompts",
        tmp_path / "train.jsonl",
        "--out",
        tmp_path / "new" / "ring.yaml",
    )
    assert code == 0
    assert "warning: weak is a weak teacher" in out and "of all rings" in out
    recipe = load_recipe(tmp_path / "new" / "ring.yaml")
    assert "ring: " + " -> ".join((*recipe.ring, recipe.ring[0])) in out
    assert recipe.prompts.file == str(tmp_path / "train.jsonl")
    assert recipe.batch.completions == 8


def test_a_probe_without_labels_is_refused_in_one_line(corl, probe):
    models = worked_example()
    for one in models:
        for row in one["problems"]:
            row["right"] = row["label"] = None
    folder = probe(models)
    for verb in ("basin", "pair"):
        code, _, err = corl(verb, folder)
        assert code == 1 and err.startswith("error: ") and len(err.splitlines()) == 1
        assert "has no label" in err


def test_an_unknown_model_and_a_missing_file(corl, probe, tmp_path):
    folder = probe(worked_example())
    code, _, err = corl("basin", folder, "--pair", "left", "nobody")
    assert code == 1 and "no model 'nobody'; it has left, right" in err
    code, _, err = corl("pair", tmp_path / "no.json")
    assert code == 1 and "corl kappa" in err
