"""From graded samples to figures, by hand; and the sample file that a crash cannot spoil."""

import json
from math import sqrt

import pytest

from corl.errors import CheckpointError
from corl.evaluation.benchmarks import items_of, load_benchmark
from corl.evaluation.suite import Record, score
from corl.evaluation.suite.chunks import SampleFile, rows_per_chunk
from corl.evaluation.suite.scores import Figure, Score, plain_average, right_keys
from corl.evaluation.suite.settings import EvalSettings
from corl.evaluation.suite.subjects import find_subjects


def make(rows, *, name="amc"):
    """Items, and records of answers such as "7+" (right), "8" (wrong) and "" (none)."""
    items = items_of(
        load_benchmark(name),
        [{"problem": "x", "answer": 1, "id": n} for n in range(len(rows))],
        where="here",
    )
    records = [
        Record(
            id=str(n),
            sample=k,
            completion=text,
            truncated=text == "",
            answer=text.strip("+") or None,
            key=f"number@1:{text.strip('+')}" if text else None,
            right=text.endswith("+"),
            verdict="right" if text.endswith("+") else "wrong" if text else "no_answer",
        )
        for n, row in enumerate(rows)
        for k, text in enumerate(row)
    ]
    return items, records


ROWS = [
    ["7+", "7+", "8", ""],  # majority right
    ["7+", "8", "8", "9"],  # majority wrong
    ["7+", "8", "", ""],  # a tie has no answer
    ["", "", "", ""],  # silence neither
    ["7+", "", "", ""],  # one voice among silence wins
]


def test_figures_of_a_table_by_hand():
    items, records = make(ROWS)
    found = score(load_benchmark("amc"), items, records)
    assert (found.samples, found.headline, found.ids) == (4, "avg@4", tuple("01234"))
    means = {name: figure.mean for name, figure in found.figures.items()}
    assert means["avg@4"] == pytest.approx((2 + 1 + 1 + 0 + 1) / 20)
    assert means["maj@4"] == pytest.approx(2 / 5)
    assert means["pass@4"] == pytest.approx(4 / 5)
    # Of six pairs: one of two right 5/6; one of one right 3/6.
    assert means["pass@2"] == pytest.approx((5 / 6 + 3 * 3 / 6) / 5)
    # Pairs with a right majority: {7,7}, {7,""} twice; {7,""} none; twice; none; three times.
    assert means["maj@2"] == pytest.approx((3 / 6 + 0 + 2 / 6 + 0 + 3 / 6) / 5)
    assert found.verdicts == {
        "right": 5, "wrong": 5, "no_answer": 10, "timeout": 0, "error": 0,
    }  # fmt: skip
    assert found.truncated == 0.5


def test_the_most_probable_completion_is_its_own_figure():
    items, records = make(ROWS)
    _, greedy = make([["7+"], ["8"], ["7+"], [""], ["7+"]])
    amc = load_benchmark("amc")
    both = score(amc, items, records, greedy)
    assert both.headline == "avg@4" and both.figures["greedy"].mean == 0.6
    alone = score(amc, items, [], greedy)
    assert (alone.headline, alone.samples, set(alone.figures)) == ("greedy", 0, {"greedy"})
    vision = amc.model_copy(update={"metric": "greedy"})
    assert score(vision, items, records, greedy).headline == "greedy"


def test_code_has_no_majority():
    items, records = make([["7+", "7+"]] * 2)
    human = load_benchmark("humaneval")
    assert set(score(human, items, records).figures) == {"avg@2", "pass@2"}


def test_a_key_is_right_when_most_of_its_members_are():
    _, records = make([["7+", "7", "7+", "8+", "8", "", "9"]])
    assert right_keys(records) == {"number@1:7"}


def test_records_of_other_rows_are_refused():
    items, records = make(ROWS)
    for broken in (records[1:] + records[:1], records[:-1]):
        with pytest.raises(CheckpointError, match="do not stand in the order"):
            score(load_benchmark("amc"), items, broken)


def test_the_average_is_plain_and_its_interval_shrinks():
    def of(name, rows):
        return Score(name, tuple("ab"), 1, {"avg@1": rows}, "avg@1", {}, 0.0)

    one, two = Figure((0.2, 0.4), (0.1, 0.6)), Figure((0.5, 0.7), (0.5, 0.9))
    found = plain_average([of("one", one), of("two", two)])
    assert found["value"] == pytest.approx(0.45)
    below, above = sqrt(0.2**2 + 0.1**2) / 2, sqrt(0.3**2 + 0.3**2) / 2
    assert found["interval"] == pytest.approx([0.45 - below, 0.45 + above], abs=1e-6)
    assert plain_average([of("one", Figure((1.0,), None))])["interval"] is None


def test_a_sample_file_gives_back_what_was_written(tmp_path):
    items, records = make([["7+", "é\u2028\ud800\n"], ["8", ""], ["7+", "7+"]])
    file = SampleFile(tmp_path, items, samples=2, rows_per_chunk=2)
    file.open({"a": 1})
    assert [len(chunk) for chunk in file.chunks()] == [2, 1]
    file.append(records[:4])
    again = SampleFile(tmp_path, items, samples=2, rows_per_chunk=2)
    again.open({"a": 1})
    assert again.done_rows == 2 and [[i.id for i in c] for c in again.chunks()] == [["2"]]
    again.append(records[4:])
    assert again.read() == records and list(again.chunks()) == []


def test_every_cut_is_cut_back_to_a_whole_chunk(tmp_path):
    items, records = make([["7+", "8"]] * 5)
    file = SampleFile(tmp_path, items, samples=2, rows_per_chunk=2)
    file.open({})
    ends = [0]
    for start in (0, 4, 8):
        file.append(records[start : start + 4])
        ends.append(file.path.stat().st_size)
    content = file.path.read_bytes()
    near_ends = {end + step for end in ends for step in (-1, 0, 1)} & {*range(len(content) + 1)}
    for cut in sorted(near_ends | {*range(0, len(content), 41)}):
        file.path.write_bytes(content[:cut])
        again = SampleFile(tmp_path, items, samples=2, rows_per_chunk=2)
        again.open({})
        kept = max(end for end in ends if end <= cut)
        assert file.path.read_bytes() == content[:kept]
        assert again.done_rows == min(2 * ends.index(kept), 5)


@pytest.mark.parametrize("line", [b"{}\n", b"no json\n", b'{"id": "0"}\n', b"[1]\n", b"\xff\xfe\n"])
def test_a_file_that_no_evaluation_wrote_is_refused(tmp_path, line):
    items, _ = make([["7+"]])
    SampleFile(tmp_path, items, samples=1, rows_per_chunk=1).open({})
    (tmp_path / "samples.jsonl").write_bytes(line)
    with pytest.raises(CheckpointError, match="line 1"):
        SampleFile(tmp_path, items, samples=1, rows_per_chunk=1).open({})
    assert (tmp_path / "samples.jsonl").read_bytes() == line


def test_lines_of_other_rows_and_lost_settings_are_refused(tmp_path):
    items, records = make([["7+"], ["8"]])
    file = SampleFile(tmp_path, items, samples=1, rows_per_chunk=2)
    file.open({})
    file.append(records[::-1])
    with pytest.raises(CheckpointError, match="where 0 of '0' belongs"):
        SampleFile(tmp_path, items, samples=1, rows_per_chunk=2).open({})
    (tmp_path / "settings.json").unlink()
    with pytest.raises(CheckpointError, match="without its settings"):
        SampleFile(tmp_path, items, samples=1, rows_per_chunk=2).open({})


@pytest.mark.parametrize(
    ("samples", "batch", "rows"), [(1, 128, 256), (8, 128, 32), (4, 3, 1), (64, 8, 1), (3, 10, 6)]
)
def test_a_chunk_is_about_two_batches(samples, batch, rows):
    assert rows_per_chunk(samples, batch) == rows


def test_models_of_one_name_get_folders_of_their_own(tmp_path):
    sources = [f"{tmp_path}/{end}" for end in
               ("a/m", "b/m", "m-2", "run/agents/left/final", "x/step-9", "ö ö")]  # fmt: skip
    names = [one.name for one in find_subjects([*sources, "OWNER/m"], EvalSettings())]
    assert names == ["m", "m-2", "m-2-2", "left-final", "x-step-9", "model", "m-3"]


def test_a_record_is_one_json_line():
    _, (record,) = make([["7+"]])
    line = json.loads(json.dumps(record.to_json()))
    assert Record.from_json(line) == record and line["right"] is True
