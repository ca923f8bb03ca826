"""`metrics.jsonl` is assembled whole steps at a time, and survives a crash."""

import json

import pytest

from corl.errors import CheckpointError
from corl.run.directory import RunDirectory, RunFacts
from corl.run.files import publish_directory, write_atomically
from corl.run.journal import Journal, MetricsAssembler, read_records


@pytest.fixture
def run(tmp_path):
    run = RunDirectory(tmp_path / "run")
    for name in ("a", "b"):
        run.agent(name).mkdir(parents=True)
    return run


def record(agent, step):
    return {"step": step, "agent": agent}


def test_a_step_is_written_once_every_agent_has_it_in_agent_order(run):
    assembler = MetricsAssembler(run, ["a", "b"])
    Journal(run.journal("b")).append(record("b", 1))
    assert assembler.collect() == []
    Journal(run.journal("a")).append(record("a", 1))
    Journal(run.journal("a")).append(record("a", 2))
    assert assembler.collect() == [record("a", 1), record("b", 1)]
    Journal(run.journal("b")).append(record("b", 2))
    assembler.collect()
    assert read_records(run.metrics) == [
        record(name, step) for step in (1, 2) for name in ("a", "b")
    ]


def test_a_line_cut_short_is_not_taken_up_until_it_is_whole(run):
    assembler = MetricsAssembler(run, ["a"])
    line = json.dumps(record("a", 1)) + "\n"
    run.journal("a").write_text(line[:7])
    assert assembler.collect() == []
    run.journal("a").write_text(line)
    assert assembler.collect() == [record("a", 1)]


def test_cutting_back_drops_later_steps_and_half_a_line(run):
    journal = Journal(run.journal("a"))
    for step in (1, 2, 3):
        journal.append(record("a", step))
    with run.journal("a").open("a") as stream:
        stream.write('{"step": 4, "ag')
    journal.cut_after(2)
    assert read_records(run.journal("a")) == [record("a", 1), record("a", 2)]
    Journal(run.journal("b")).cut_after(2)
    assert read_records(run.journal("b")) == []


def test_a_new_assembler_makes_the_file_again(run):
    run.metrics.write_text('{"step": 9, "agent": "a"}\n')
    Journal(run.journal("a")).append(record("a", 1))
    MetricsAssembler(run, ["a"]).collect()
    assert read_records(run.metrics) == [record("a", 1)]


def test_a_published_directory_replaces_the_old_one_whole(tmp_path):
    for number in ("1", "2"):
        partial = tmp_path / ".out.partial"
        partial.mkdir()
        (partial / f"file{number}").write_text(number)
        publish_directory(partial, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["file2"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_is_replaced_and_leaves_no_partial(tmp_path):
    write_atomically(tmp_path / "f", "old")
    write_atomically(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_second_owner_is_refused(tmp_path):
    with (
        RunDirectory(tmp_path).locked(),
        pytest.raises(CheckpointError, match="another process"),
        RunDirectory(tmp_path).locked(),
    ):
        pass
    with RunDirectory(tmp_path).locked():
        pass


def test_a_directory_that_holds_a_run_is_not_overwritten(tmp_path):
    write_atomically(tmp_path / "run.json", "{}")
    with pytest.raises(CheckpointError, match="corl resume"):
        RunDirectory(tmp_path).require_new()


def test_a_directory_without_a_run_cannot_be_loaded(tmp_path):
    with pytest.raises(CheckpointError, match="is not a run"):
        RunDirectory(tmp_path).load()
    write_atomically(tmp_path / "run.json", '{"nothing": 1}')
    with pytest.raises(CheckpointError, match="is not a run"):
        RunDirectory(tmp_path).load()


def test_facts_need_no_torch():
    assert RunFacts("id", {"a": 1}, "in_process", 3).steps == 3
