"""Benchmark files: what they say is what is read, and what does not fit is named."""

import gzip
import hashlib
import json
import os
from collections import Counter
from pathlib import Path

import pytest
import yaml

from corl.errors import PromptError, RecipeError
from corl.evaluation.benchmarks import (
    TEXT_SEVEN,
    Benchmark,
    choose,
    items_of,
    known_benchmarks,
    load_benchmark,
    load_items,
)
from corl.evaluation.benchmarks.options import option_texts, order_by_id, right_letter
from corl.evaluation.suite import EvalSettings

folder = os.environ.get("CORL_DATA")
needs_data = pytest.mark.skipif(not folder, reason="CORL_DATA names no folder with the data")


def items(name, *records):
    return items_of(load_benchmark(name), records, where="here")


def test_every_file_is_a_benchmark_of_its_own_name():
    names = known_benchmarks()
    assert [load_benchmark(name).name for name in names] == names
    assert {*TEXT_SEVEN, "mmlu", "scibench", "mathvision", "mathvista", "mathverse", "wemath"} == {
        *names
    }


def test_only_files_held_against_their_data_are_verified():
    checked = {name for name in known_benchmarks() if not load_benchmark(name).unverified}
    assert checked == {"gsm8k", "math500", "amc", "humaneval"}


def test_the_gold_of_gsm8k_stands_behind_the_last_marker():
    (item,) = items("gsm8k", {"question": "How many?", "answer": "#### 3 no\n#### 1,018"})
    assert (item.answer, item.id, item.kind) == ("1,018", "0", "math")
    assert item.prompt == (
        "How many? Please reason step by step, and put your final answer within \\boxed{}."
    )
    with pytest.raises(PromptError, match="row 1: its gold has no '####'"):
        items("gsm8k", {"question": "How many?", "answer": "18"})


@pytest.mark.parametrize(("gold", "read"), [(142.0, "142"), (0.5, "0.5"), (7, "7"), (-3.0, "-3")])
def test_a_float_of_amc_is_a_whole_number(gold, read):
    (item,) = items("amc", {"problem": "x", "answer": gold, "id": 5})
    assert (item.answer, item.id) == (read, "5")


@pytest.mark.parametrize("gold", ["", "None", " "])
def test_a_gold_that_is_no_answer_is_refused(gold):
    with pytest.raises(PromptError, match="row 1: its gold"):
        items("math500", {"problem": "x", "answer": gold})


def test_a_missing_field_is_reported_with_the_names_found():
    record = {"question": "x", "text": "y"}
    with pytest.raises(PromptError) as error:
        items("gpqa_diamond", record)
    for part in ("no field 'Question'", "never checked", "its fields are question, text", "row 1"):
        assert part in str(error.value)
    with pytest.raises(PromptError) as error:
        items("math500", {"question": "x"})
    assert "never checked" not in str(error.value)


GPQA = {
    "Question": "Which?",
    "Correct Answer": "right\n",
    "Incorrect Answer 1": "b",
    "Incorrect Answer 2": "c",
    "Incorrect Answer 3": "d",
}


def test_options_of_gpqa_are_shuffled_by_the_id_alone():
    many = items("gpqa_diamond", *({**GPQA, "Record ID": f"rec{n}"} for n in range(400)))
    letters = Counter(item.answer for item in many)
    assert set(letters) == set("ABCD") and min(letters.values()) > 60
    for item in many:
        assert item.choices["ABCD".index(item.answer)] == "right"
        assert sorted(item.choices) == ["b", "c", "d", "right"]
        assert f"{item.answer}. right" in item.prompt
    alone = items("gpqa_diamond", {**GPQA, "Record ID": "rec7"})[0]
    assert (alone.choices, alone.answer) == (many[7].choices, many[7].answer)


def test_the_order_by_id_is_the_documented_one():
    digests = [hashlib.sha256(f"rec1\0{place}".encode()).digest() for place in range(4)]
    assert order_by_id("rec1", 4) == sorted(range(4), key=digests.__getitem__)


def test_two_equal_option_texts_keep_the_right_place():
    record = {**GPQA, "Record ID": "r", "Incorrect Answer 2": "right"}
    (item,) = items("gpqa_diamond", record)
    assert item.answer == "ABCD"[order_by_id("r", 4).index(0)]


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (["3", "4"], ("3", "4")),
        (["A. 3", "B. 4"], ("3", "4")),
        ("A. 3 cm; B. 4 cm; C. none", ("3 cm", "4 cm", "none")),
        ("A:135°\nB:140°", ("135°", "140°")),
        ("(A) x (B) y", ("x", "y")),
        ("['x', 'y, z']", ("x", "y, z")),
        ({"b": 2, "a": 1}, ("1", "2")),
        ("B. 3; A. 4", ()),
        ("no options", ()),
        ([], ()),
        ("", ()),
        (None, ()),
    ],
)
def test_options_are_read_from_lists_and_texts(value, texts):
    assert option_texts(value) == texts


def test_options_behind_a_marker_are_not_taken_from_the_question():
    text = "Point A. and point B. lie on a line.\nChoices:\nA:1\nB:2"
    assert option_texts(text, marker="Choices:") == ("1", "2")
    assert option_texts("Point A. and point B. lie on a line.", marker="Choices:") == ()


@pytest.mark.parametrize(
    ("gold", "written_as", "letter"),
    [
        (1, "index", "B"), (1, "auto", "B"), ("2", "index", "C"), ("B", "auto", "B"),
        ("(c)", "letter", "C"), ("x y", "auto", "C"), ("1/2", "text", "A"), ("0.50", "text", "A"),
        ("A", "text", "B"), (7, "index", None), ("E", "letter", None), ("zzz", "text", None),
        (True, "index", None),
    ],
)  # fmt: skip
def test_a_gold_becomes_a_letter(gold, written_as, letter):
    assert right_letter(gold, ("0.5", "A", "x y"), written_as) == letter


def test_a_gold_that_is_no_option_is_refused():
    with pytest.raises(PromptError, match="names none of its 2 options"):
        items("mmlu", {"question": "x", "choices": ["a", "b"], "answer": 2})


def test_rows_without_options_ask_for_a_value():
    plain, choice = items(
        "mathvision",
        {"question": "x", "id": 1, "options": [], "answer": "12"},
        {"question": "y", "id": 2, "options": ["3", "4"], "answer": "B"},
    )
    assert (plain.kind, plain.answer, plain.choices) == ("math", "12", None)
    assert (choice.kind, choice.answer, choice.choices) == ("choice", "B", ("3", "4"))


def test_options_of_each_vision_benchmark_are_read():
    (verse,) = items(
        "mathverse",
        {
            "sample_index": "1", "query_cot": "Look.", "answer": "B",
            "question_for_eval": "Angle A. is?\nChoices:\nA:40°\nB:60°",
        },
    )  # fmt: skip
    (we,) = items("wemath", {"question": "x", "option": "A. 3; B. 4; C. 5", "answer": "C"})
    (vista,) = items(
        "mathvista",
        {"query": "x", "pid": "9", "choices": ["cat", "dog"], "answer": "dog", "precision": None},
    )
    assert [one.answer for one in (verse, we, vista)] == ["B", "C", "B"]
    assert we.choices == ("3", "4", "5")


def test_a_problem_with_braces_is_not_filled_in_again():
    record = {"question": "Is {choices} or {prompt}?", "choices": ["yes", "no"], "answer": 0}
    (item,) = items("mmlu", record)
    assert item.prompt.startswith("Is {choices} or {prompt}?\n\nA. yes\nB. no\n\n")


def test_code_items_carry_what_their_grader_needs():
    (item,) = items(
        "mbpp",
        {"text": "Add.", "task_id": 11, "test_list": ["assert f(1) == 2"], "test_setup_code": ""},
    )
    assert item.extra["tests"] == ["assert f(1) == 2"] and "assert f(1) == 2" in item.prompt
    (human,) = items(
        "humaneval",
        {"prompt": "def f():\n", "task_id": "H/0", "test": "t", "entry_point": "f"},
    )
    assert human.plain == human.problem == "def f():\n"
    assert "```python\ndef f():\n" in human.prompt
    with pytest.raises(PromptError, match="no field 'entry_point'"):
        items("humaneval", {"prompt": "x", "task_id": "H/0", "test": "t"})


def test_data_is_read_from_every_kind_of_file(tmp_path):
    rows = [{"problem": f"{n}+1", "answer": n + 1, "id": n} for n in range(3)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "a.jsonl").write_text(lines)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "a.json").write_text(json.dumps(rows))
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_list(rows).to_parquet(str(tmp_path / "a.parquet"))
    amc = load_benchmark("amc")
    read = [load_items(amc, tmp_path / f"a.{end}") for end in
            ("jsonl", "jsonl.gz", "json", "parquet")]  # fmt: skip
    assert all(one == read[0] for one in read)
    assert [item.answer for item in read[0]] == ["1", "2", "3"]
    assert [item.id for item in load_items(amc, tmp_path / "a.json", limit=2)] == ["0", "1"]


def test_a_folder_is_read_in_order_of_name(tmp_path):
    for name, number in (("test2.jsonl", 2), ("test.jsonl", 1)):
        row = {"problem": "x", "answer": number, "id": number}
        (tmp_path / name).write_text(json.dumps(row) + "\n")
    (tmp_path / "notes.txt").write_text("no data")
    found = load_items(load_benchmark("amc"), tmp_path)
    assert [(item.id, item.place) for item in found] == [("1", 0), ("2", 1)]


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        ("[1]\n", "row 1: is list"),
        ("{]\n", "line 1: not JSON"),
        ("", "has no rows"),
        ('{"problem": "x", "answer": 1, "id": 1}\n' * 2, "id '1' stands on two rows"),
        ('{"problem": " ", "answer": 1, "id": 1}\n', "holds no text"),
    ],
)
def test_what_is_no_benchmark_data_is_named(tmp_path, content, seen):
    (tmp_path / "a.jsonl").write_text(content)
    with pytest.raises(PromptError, match=seen):
        load_items(load_benchmark("amc"), tmp_path / "a.jsonl")


def test_an_own_benchmark_is_a_file(tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text(
        "name: sums\ntitle: Sums\nfields: {prompt: q, answer: a}\ngrader: text\n"
        "answer: {kind: text}\n"
    )
    (tmp_path / "d.jsonl").write_text('{"q": "What colour?", "a": "Red"}\n')
    (chosen,) = choose([f"{own}={tmp_path / 'd.jsonl'}"])
    (item,) = load_items(chosen.benchmark, chosen.data)
    assert (item.prompt, item.answer, item.kind) == ("What colour?", "Red", "text")
    with pytest.raises(PromptError, match="sums has no `source`"):
        load_items(chosen.benchmark)


@pytest.mark.parametrize(
    ("typed", "seen"),
    [
        (["gsm8"], "did you mean gsm8k?"),
        (["MATH-500"], "did you mean math500?"),
        (["zzzz"], "known: amc"),
        (["gsm8k=none.jsonl"], "none.jsonl does not exist"),
        (["gsm8k="], "its file does not exist"),
        (["gsm8k", "gsm8k"], "stands twice"),
        (["none.yaml"], "benchmark none.yaml does not exist"),
    ],
)
def test_what_is_no_benchmark_is_named_with_the_nearest(typed, seen):
    with pytest.raises(RecipeError, match=seen.replace("?", r"\?")):
        choose(typed)


@pytest.mark.parametrize(
    ("changes", "seen"),
    [
        ({"grader": "maths"}, "`grader` is 'maths'"),
        ({"promt": "x"}, "unknown key `promt`; did you mean `prompt`"),
        ({"fields": {"prompt": "q"}}, "grader math needs `fields.answer`"),
        ({"grader": "mbpp"}, "needs `fields.tests`"),
        ({"answer": {"kind": "code"}}, "do not go together"),
        ({"grader": "choice", "answer": {"kind": "choice"}}, "grader choice needs"),
        ({"name": "A B"}, "`name` is 'A B'"),
    ],
)
def test_a_wrong_benchmark_file_names_the_key(tmp_path, changes, seen):
    tree = {"name": "own", "title": "Own", "fields": {"prompt": "q", "answer": "a"},
            "grader": "math", **changes}  # fmt: skip
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(tree))
    with pytest.raises(RecipeError, match=seen):
        load_benchmark(tmp_path / "own.yaml")


def test_the_preset_holds_the_papers_settings():
    paper = EvalSettings.of(preset="paper", seed=3)
    assert (paper.temperature, paper.top_p, paper.max_tokens, paper.seed) == (0.6, 0.95, 3072, 3)
    assert EvalSettings.of(preset="paper", max_tokens=64).max_tokens == 64
    counts = {name: paper.samples_of(load_benchmark(name)) for name in TEXT_SEVEN}
    assert counts.pop("amc") == 8 and set(counts.values()) == {1}
    assert not any(paper.is_greedy_on(load_benchmark(name)) for name in TEXT_SEVEN)
    for name in ("mathvision", "mathvista", "mathverse", "wemath"):
        assert paper.is_greedy_on(load_benchmark(name))


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({"preset": "papr"}, "did you mean paper"),
        ({"temperature": 0.0}, "--temperature"),
        ({"top_p": 0.0}, "--top-p"),
        ({"chat": "sometimes"}, "--chat is 'sometimes'"),
        ({"samples": 0}, "asks for nothing"),
        ({"limit": 0}, "--limit"),
    ],
)
def test_a_setting_out_of_range_is_named(given, seen):
    with pytest.raises(RecipeError, match=seen):
        EvalSettings.of(**given)


def test_no_benchmark_file_names_a_host():
    import corl.evaluation.benchmarks as package

    for file in Path(package.__file__).parent.glob("*.yaml"):
        assert "http" not in file.read_text() and ".co/" not in file.read_text()


@needs_data
@pytest.mark.parametrize(
    ("name", "file"),
    [("gsm8k", "gsm8k_test.jsonl"), ("math500", "math500.jsonl"), ("amc", "amc_83.jsonl"),
     ("humaneval", "humaneval.jsonl.gz")],
)  # fmt: skip
def test_the_real_files_have_the_rows_that_are_announced(name, file):
    benchmark: Benchmark = load_benchmark(name)
    found = load_items(benchmark, Path(str(folder)) / file)
    assert len(found) == benchmark.rows
    assert all(item.problem in item.prompt for item in found)
