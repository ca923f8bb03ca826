"""Prompt files: what is read, how agents line up, and refusals that name file and row."""

import gzip
import json

import pytest

from corl.config import PromptsConfig
from corl.data.order import num_steps, step_rows
from corl.data.prompts import align, load_prompts
from corl.errors import PromptError


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def load(path, **config):
    return load_prompts(PromptsConfig(file=str(path), **config))


def test_a_row_carries_text_suffix_label_and_kind(tmp_path):
    path = write(tmp_path / "p.jsonl", [{"question": "1+1?", "gold": 2.0, "id": 7}])
    (row,) = load(path, field="question", answer_field="gold", suffix=" Box it.").rows
    assert (row.id, row.text, row.label, row.kind) == ("7", "1+1? Box it.", "2.0", "math")


def test_rows_may_mix_answer_kinds(tmp_path):
    rows = [
        {"prompt": "a"},
        {"prompt": "b", "kind": "choice", "choices": ["x", "y"]},
        {"prompt": "c", "kind": "code", "calls": ["f(1)"]},
    ]
    loaded = load(write(tmp_path / "p.jsonl", rows)).rows
    assert [row.kind for row in loaded] == ["math", "choice", "code"]
    assert loaded[1].choices == ("x", "y")
    assert loaded[2].calls == ("f(1)",)


def test_a_label_behind_a_marker_is_cut_once(tmp_path):
    path = write(tmp_path / "p.jsonl", [{"prompt": "a", "answer": "3 #### then\n#### 70"}])
    assert load(path, answer_marker="####").rows[0].label == "70"


@pytest.mark.parametrize("answer", [None, "", "  "])
def test_an_empty_label_is_none(tmp_path, answer):
    path = write(tmp_path / "p.jsonl", [{"prompt": "a", "answer": answer}])
    assert load(path).rows[0].label is None


def test_json_and_gzip_read_like_jsonl(tmp_path):
    rows = [{"prompt": "a", "id": "x"}, {"prompt": "b", "id": "y"}]
    plain = load(write(tmp_path / "p.jsonl", rows)).rows
    (tmp_path / "p.json").write_text(json.dumps(rows))
    with gzip.open(tmp_path / "p.jsonl.gz", "wt") as stream:
        stream.write("".join(json.dumps(row) + "\n" for row in rows))
    assert load(tmp_path / "p.json").rows == plain
    assert load(tmp_path / "p.jsonl.gz").rows == plain


def test_parquet_reads_like_jsonl(tmp_path):
    pytest.importorskip("datasets")
    from datasets import Dataset

    rows = [{"prompt": "a", "id": "x"}, {"prompt": "b", "id": "y"}]
    Dataset.from_list(rows).to_parquet(tmp_path / "p.parquet")
    assert load(tmp_path / "p.parquet").rows == load(write(tmp_path / "p.jsonl", rows)).rows


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "has no rows"),
        ("\n\n", "has no rows"),
        ('{"other": 1}\n', "row 1: no field 'prompt'; its fields are other"),
        ('{"prompt": ""}\n', "row 1: field 'prompt' holds no text"),
        ('{"prompt": 5}\n', "row 1: field 'prompt' holds no text"),
        ('{"prompt": "a"}\nnot json\n', "line 2: not JSON"),
        ("[" * 100_000 + "\n", "line 1: not JSON"),
        ('"text"\n', "row 1: is str"),
        ('{"prompt": "a", "id": 1}\n{"prompt": "b", "id": 1}\n', "id '1' stands on two rows"),
        ('{"prompt": "a", "id": 1}\n{"prompt": "b"}\n', "1 of 2 rows have 'id'"),
        ('{"prompt": "a", "choices": "xy"}\n', "field 'choices' must be a list"),
    ],
)
def test_a_broken_file_is_refused_by_row(tmp_path, content, says):
    path = tmp_path / "p.jsonl"
    path.write_text(content)
    with pytest.raises(PromptError) as caught:
        load(path)
    assert says in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(PromptError, match="does not exist"):
        load(tmp_path / "none.jsonl")


def test_a_cut_off_gzip_file_is_refused(tmp_path):
    path = tmp_path / "p.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"prompt": "a"}\n' * 500)[:40])
    with pytest.raises(PromptError, match="cannot be read"):
        load(path)


def test_rewrites_align_by_id_whatever_their_order(tmp_path):
    own = load(write(tmp_path / "a.jsonl", [{"prompt": "p", "id": 1}, {"prompt": "q", "id": 2}]))
    rewrite = load(
        write(tmp_path / "b.jsonl", [{"prompt": "Q", "id": 2}, {"prompt": "P", "id": 1}])
    )
    aligned = align({"left": own, "right": rewrite})
    assert [row.text for row in aligned["right"].rows] == ["P", "Q"]
    assert [row.id for row in aligned["right"].rows] == ["1", "2"]


def test_rows_without_ids_align_by_position(tmp_path):
    own = load(
        write(tmp_path / "a.jsonl", [{"prompt": "p", "id": "x"}, {"prompt": "q", "id": "y"}])
    )
    rewrite = load(write(tmp_path / "b.jsonl", [{"prompt": "P"}, {"prompt": "Q"}]))
    assert [row.id for row in align({"l": own, "r": rewrite})["r"].rows] == ["x", "y"]


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ([{"prompt": "P", "id": 1}], "1 rows in"),
        ([{"prompt": "P", "id": 1}, {"prompt": "Q", "id": 3}], "id '2' and 0 more are missing"),
        (
            [{"prompt": "P", "id": 1}, {"prompt": "Q", "id": 2, "kind": "text"}],
            "answer kind 'text'",
        ),
    ],
)
def test_files_that_do_not_align_are_refused(tmp_path, other, says):
    own = load(write(tmp_path / "a.jsonl", [{"prompt": "p", "id": 1}, {"prompt": "q", "id": 2}]))
    with pytest.raises(PromptError) as caught:
        align({"left": own, "right": load(write(tmp_path / "b.jsonl", other))})
    assert says in str(caught.value)
    assert "left" in str(caught.value) and "right" in str(caught.value)


def test_an_epoch_visits_every_row_once():
    seen = [
        row for step in range(1, 6) for row in step_rows(step, num_rows=20, per_step=4, data_seed=3)
    ]
    assert sorted(seen) == list(range(20))


def test_the_order_depends_on_the_data_seed_and_the_epoch():
    first = step_rows(1, num_rows=50, per_step=50, data_seed=1)
    assert first != step_rows(1, num_rows=50, per_step=50, data_seed=2)
    assert first != step_rows(2, num_rows=50, per_step=50, data_seed=1)
    assert first == step_rows(1, num_rows=50, per_step=50, data_seed=1)


def test_a_step_may_reach_into_the_next_epoch():
    rows = step_rows(2, num_rows=6, per_step=4, data_seed=0)
    last_of_first = step_rows(1, num_rows=6, per_step=6, data_seed=0)[4:]
    first_of_second = step_rows(2, num_rows=6, per_step=6, data_seed=0)[:2]
    assert rows == last_of_first + first_of_second


def test_the_number_of_steps_covers_the_epochs():
    assert num_steps(num_rows=8890, per_step=128, epochs=2) == 139
    assert num_steps(num_rows=4, per_step=8, epochs=0.1) == 1
