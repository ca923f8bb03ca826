"""The probe's parts: what is named, what is saved, what is read, what is written."""

import json

import pytest
from rich.console import Console

from corl.config import PromptsConfig
from corl.data.prompts import load_prompts
from corl.diversity.answer_table import read_answers, together
from corl.diversity.comparison import compare
from corl.diversity.counts import read_probe
from corl.diversity.drawing import Pass, draw
from corl.diversity.probe import run_probe
from corl.diversity.probe_settings import ProbeSettings
from corl.diversity.sources import Asked, Saved, find_sources
from corl.errors import CheckpointError, ModelError, PromptError, RecipeError
from corl.evaluation.completions import Asking
from corl.evaluation.samples import Sample, aligned_samples, read_samples
from tiny_models import build_checkpoint

QUIET = Console(quiet=True)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "problems.jsonl"
    rows = [
        {"id": f"p{number}", "prompt": f"{number}+1=", "answer": str(number + 1)}
        for number in range(6)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def prompts(path, **more):
    return PromptsConfig(file=str(path), **more)


def save(path, texts, *, ids="p"):
    """texts: {row number: [completions]}."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(
            json.dumps(Sample(f"{ids}{row}", number, text).to_json()) + "\n"
            for row, group in texts.items()
            for number, text in enumerate(group)
        )
    )
    return path.parent


def box(*answers):
    return [f"\\boxed{{{answer}}}" for answer in answers]


# What is named


def test_names_are_folders_and_unique(tmp_path):
    for parent in ("one", "two"):
        build_checkpoint(tmp_path / parent / "model")
    save(tmp_path / "three" / "model" / "c.jsonl", {0: ["x"]})
    save(tmp_path / "loose.jsonl", {0: ["x"]})
    given = [
        str(tmp_path / name) for name in ("one/model", "two/model", "three/model", "loose.jsonl")
    ]
    sources = find_sources([*given, "corl:quickstart/models/qwen3"])
    assert [one.name for one in sources] == ["model", "model-2", "model-3", "loose", "qwen3"]
    assert [type(one) for one in sources] == [Asked, Asked, Saved, Saved, Asked]
    assert sources[0].model == given[0]
    assert sources[4].model == "corl:quickstart/models/qwen3"


def test_what_is_neither_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="neither a checkpoint"):
        find_sources([str(tmp_path / "empty")])
    with pytest.raises(ModelError, match="name models"):
        find_sources([])


def test_saved_completions_name_the_model_that_made_them(tmp_path):
    folder = save(tmp_path / "q" / "c.jsonl", {0: ["x"]})
    (folder / "settings.json").write_text('{"model": "some/model"}')
    assert find_sources([str(folder)])[0].model == "some/model"
    (folder / "settings.json").write_text("[]")
    assert find_sources([str(folder)])[0].model == str(folder)


# Saved completions


def test_saved_rows_come_in_the_problems_order(tmp_path, data):
    rows = load_prompts(prompts(data)).rows
    folder = save(tmp_path / "s" / "c.jsonl", {row: box(row, 9) for row in (5, 3, 4, 0, 1, 2)})
    groups = aligned_samples(folder, [row.id for row in rows], samples=None, limited=False)
    assert [[one.completion for one in group] for group in groups] == [box(n, 9) for n in range(6)]
    first = aligned_samples(folder, [row.id for row in rows], samples=1, limited=False)
    assert [len(group) for group in first] == [1] * 6


@pytest.mark.parametrize(
    ("texts", "ids", "samples", "said"),
    [
        ({row: box(1) for row in range(5)}, "p", None, "1 of 6 problems have no completion.*'p5'"),
        ({row: box(1) for row in range(7)}, "p", None, "1 rows are none of the 6.*'p6'"),
        ({row: box(1) for row in range(6)}, "p-", None, "nearest: 'p0'"),
        ({row: box(*range(1 + (row == 2))) for row in range(6)}, "p", None, "'p2' has samples"),
        ({row: box(1) for row in range(6)}, "p", 2, "0 to 1 are needed"),
    ],
)
def test_saved_rows_that_do_not_fit_are_named(tmp_path, data, texts, ids, samples, said):
    rows = load_prompts(prompts(data)).rows
    folder = save(tmp_path / "s" / "c.jsonl", texts, ids=ids)
    with pytest.raises(PromptError, match=said):
        aligned_samples(folder, [row.id for row in rows], samples=samples, limited=False)


def test_rows_beyond_the_asked_problems_are_left_out(tmp_path, data):
    rows = load_prompts(prompts(data, limit=3)).rows
    folder = save(tmp_path / "s" / "c.jsonl", {row: box(1) for row in range(6)})
    assert len(aligned_samples(folder, [row.id for row in rows], samples=None, limited=True)) == 3
    with pytest.raises(PromptError, match="do not exist"):
        aligned_samples(tmp_path / "no.jsonl", ["p0"], samples=None, limited=True)


# Drawing


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return build_checkpoint(tmp_path_factory.mktemp("models") / "tiny")


def a_pass(checkpoint, *, take=0, samples=2, max_tokens=4, name="tiny"):
    (source,) = find_sources([str(checkpoint)])
    source = Asked(name, source.model, source.subject)
    asking = Asking(max_tokens=max_tokens, temperature=1.0, max_rows=4)
    return Pass(source=source, take=take, samples=samples, asking=asking)


def drawn(one, rows, out, loads):
    def load():
        from corl.policy import load_policy

        loads.append(one.source.name)
        return load_policy(one.source.subject.source)

    counted = []
    groups = draw(one, rows, out, load=load, advance=lambda *told: counted.append(told))
    return groups, counted


def test_a_finished_pass_is_read_again_and_loads_nothing(tmp_path, data, checkpoint):
    rows, loads = load_prompts(prompts(data)).rows, []
    one = a_pass(checkpoint)
    groups, counted = drawn(one, rows, tmp_path, loads)
    assert [len(group) for group in groups] == [2] * 6
    assert sum(count for count, _ in counted) == 12
    again, counted = drawn(one, rows, tmp_path, loads)
    assert again == groups
    assert counted == [(12, False)]
    assert loads == ["tiny"]
    assert read_samples(tmp_path / "completions" / "tiny") == [one for g in groups for one in g]


def test_a_killed_pass_keeps_what_it_wrote(tmp_path, data, checkpoint):
    rows, loads = load_prompts(prompts(data)).rows, []
    one = a_pass(checkpoint)
    groups, _ = drawn(one, rows, tmp_path, loads)
    file = tmp_path / "completions" / "tiny" / "completions.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:5]) + lines[5][:9])
    again, counted = drawn(one, rows, tmp_path, loads)
    assert again == groups
    assert counted[0] == (4, False)  # two whole rows; half a row is drawn again
    assert file.read_bytes() == b"".join(lines)


def test_other_settings_are_refused(tmp_path, data, checkpoint):
    rows = load_prompts(prompts(data)).rows
    drawn(a_pass(checkpoint), rows, tmp_path, [])
    with pytest.raises(CheckpointError, match="max_tokens 4 -> 5.*--out"):
        drawn(a_pass(checkpoint, max_tokens=5), rows, tmp_path, [])
    with pytest.raises(CheckpointError, match="prompts"):
        drawn(a_pass(checkpoint), load_prompts(prompts(data, suffix="!")).rows, tmp_path, [])
    (tmp_path / "completions" / "tiny" / "settings.json").unlink()
    with pytest.raises(CheckpointError, match="without a whole settings.json"):
        drawn(a_pass(checkpoint), rows, tmp_path, [])


def test_no_two_passes_share_their_noise(tmp_path, checkpoint):
    seeds = [
        a_pass(checkpoint).seed(),
        a_pass(checkpoint, take=1).seed(),
        a_pass(checkpoint, name="tiny-2").seed(),
    ]
    assert len(set(seeds)) == 3
    assert a_pass(checkpoint).seed() == seeds[0]


def test_the_same_checkpoint_under_two_names_answers_apart(tmp_path, data, checkpoint):
    rows = load_prompts(prompts(data)).rows
    one, _ = drawn(a_pass(checkpoint), rows, tmp_path, [])
    two, _ = drawn(a_pass(checkpoint, name="tiny-2"), rows, tmp_path, [])
    assert one != two


# Reading and comparing


def answers(rows, name, *texts):
    groups = [
        [Sample(row.id, n, text) for n, text in enumerate(group)]
        for row, group in zip(rows, texts, strict=True)
    ]
    return read_answers(name, name, rows, groups)


def test_right_is_an_equal_key(data):
    rows = load_prompts(prompts(data, limit=2)).rows
    read = answers(rows, "m", box("1.0", "2"), ["no answer here", "\\boxed{4/2}"])
    labels = ("number@1:1", "number@1:2")
    assert read.right(labels) == [[True, False], [False, True]]
    assert read.keys[1][0] is None
    assert read.right((None, None)) == [[False, False], [False, False]]
    assert [dict(one.counts) for one in read.tallies()] == [
        {"number@1:1": 1, "number@1:2": 1}, {"number@1:2": 1},
    ]  # fmt: skip
    assert read.no_answer == 0.25
    assert together([read, read]).samples == 4


def test_passes_of_a_model_meet_only_each_other(data):
    rows = load_prompts(prompts(data, limit=2)).rows
    a0, a1 = answers(rows, "a", box(1), box(2)), answers(rows, "a", box(1), box(3))
    b0, b1 = answers(rows, "b", box(5), box(2)), answers(rows, "b", box(5), box(5))
    pairs = compare([[a0, a1], [b0, b1]], rows).pairs
    assert [(one.a.name, one.b.name, one.seeds) for one in pairs] == [
        ("a", "b", (0, 0)), ("a", "a", (0, 1)), ("b", "b", (0, 1)),
    ]  # fmt: skip
    assert pairs[0].overlap.exactly_one_right == 0.5
    assert pairs[1].overlap.accuracy_b == 0.5


def test_problems_without_a_label_are_left_out_of_labelled_figures(tmp_path):
    path = tmp_path / "some.jsonl"
    path.write_text(
        '{"id": "p0", "prompt": "a", "answer": "1"}\n{"id": "p1", "prompt": "b"}\n'
        '{"id": "p2", "prompt": "c", "answer": "3"}\n'
    )
    rows = load_prompts(prompts(path)).rows
    a, b = (
        answers(rows, name, box(1), box(2), box(3 + shift)) for name, shift in (("a", 0), ("b", 1))
    )
    probe = compare([[a], [b]], rows)
    assert probe.pairs[0].overlap.n == 2
    assert probe.pairs[0].overlap.exactly_one_right == 0.5
    assert probe.pairs[0].label_free.agreement == pytest.approx(2 / 3)
    assert "1 of 3 problems have no label, the first is 'p1'" in probe.notes[0]


# The whole, from saved completions: no weight is needed


def test_the_file_is_what_basins_read(tmp_path, data):
    folders = [
        save(tmp_path / name / "c.jsonl", {row: box(row + 1, row + shift) for row in range(6)})
        for name, shift in (("a", 1), ("b", 0))
    ]
    outcome = run_probe(
        [*map(str, folders)], prompts(data, limit=500), ProbeSettings(), tmp_path / "o",
        console=QUIET,
    )  # fmt: skip
    tree = json.loads(outcome.file.read_text())
    assert tree["settings"]["asked"] is None
    assert tree["settings"]["labelled"] == 6
    assert [one["name"] for one in tree["models"]] == ["a", "b"]
    assert tree["models"][1]["problems"][0] == {
        "id": "p0", "right": 1, "samples": 2,
        "answers": {"number@1:1": 1, "number@1:0": 1}, "label": "number@1:1",
    }  # fmt: skip
    assert tree["models"][0]["accuracy"]["value"] == 1
    assert tree["pairs"][0]["exactly_one_right"]["value"] == 0.5
    probed = read_probe(tmp_path / "o")
    assert probed.accuracy("a") == 1
    assert probed.accuracy("b") == 0.5


def test_faults_are_found_before_a_weight_is_loaded(tmp_path, data, checkpoint):
    with pytest.raises(ModelError):
        run_probe(
            [str(checkpoint), str(tmp_path / "absent")], prompts(data), ProbeSettings(),
            tmp_path / "o", console=QUIET,
        )  # fmt: skip
    missing = save(tmp_path / "s" / "c.jsonl", {0: box(1)})
    with pytest.raises(PromptError, match="5 of 6 problems"):
        run_probe(
            [str(checkpoint), str(missing)], prompts(data), ProbeSettings(), tmp_path / "o",
            console=QUIET,
        )  # fmt: skip
    with pytest.raises(PromptError, match="no room for a completion"):
        run_probe(
            [str(checkpoint)], prompts(data, suffix="1" * 5000), ProbeSettings(), tmp_path / "o",
            console=QUIET,
        )  # fmt: skip
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"samples": 0}, "--samples is 0"),
        ({"temperature": -1.0}, "--temperature"),
        ({"seeds": 17}, "--seeds"),
        ({"max_tokens": 0}, "--max-tokens"),
        ({"temperature": 0.0, "seeds": 2}, "one completion"),
    ],
)
def test_settings_out_of_range_are_named(given, said):
    with pytest.raises(RecipeError, match=said):
        ProbeSettings(**given)
