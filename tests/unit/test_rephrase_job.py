"""The job keeps rows, order and what was paid for; its files are safe to read."""

import json
import re
from pathlib import Path

import pytest

from corl.config import PromptsConfig
from corl.data.prompts import align, load_prompts
from corl.diversity.rephrase import EndpointSettings, rephrase
from corl.diversity.rephrase.audit import audit
from corl.diversity.rephrase.instruction import rewrite_of, user_message
from corl.diversity.rephrase.journal import Journal
from corl.diversity.rephrase.rows import read_rows
from corl.errors import CheckpointError, PromptError
from rewriting_server import apples, reworded, serving


def write(path: Path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def lines(path: Path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def prompts(tmp_path):
    return write(
        tmp_path / "prompts.jsonl",
        [
            {"id": f"p{row}", "prompt": apples(row), "answer": f"LABEL{row}", "level": row % 3}
            for row in range(12)
        ],
    )


def run(prompts, server, *, concurrency=4, **options):
    settings = EndpointSettings(
        url=server.url, model="m", timeout=10.0, attempts=4, concurrency=concurrency,
        first_backoff=0.001, temperature=options.pop("temperature", 0.7),
    )  # fmt: skip
    config = PromptsConfig(file=str(prompts), limit=options.pop("limit", None))
    return rephrase(config, options.pop("to", prompts.parent / "new.jsonl"), settings, **options)


def test_rows_keep_order_ids_labels_and_fields(prompts):
    with serving() as server:
        outcome = run(prompts, server)
    assert (outcome.rows, outcome.rewritten, outcome.replies) == (12, 12, 12)
    for before, after in zip(lines(prompts), lines(outcome.file), strict=True):
        assert after == {**before, "prompt": reworded(before["prompt"]), "rephrased": True}


def test_labels_never_leave(prompts):
    with serving() as server:
        outcome = run(prompts, server)
    assert "LABEL" not in json.dumps(server.bodies)
    assert "LABEL" not in outcome.journal.read_text() + outcome.audit.read_text()


def test_the_rewrite_is_another_agents_prompts(prompts):
    with serving(lambda problem, _: "copy" if problem == apples(3) else "good") as server:
        outcome = run(prompts, server)
    sets = {
        "original": load_prompts(PromptsConfig(file=str(prompts))),
        "rewritten": load_prompts(PromptsConfig(file=str(outcome.file))),
    }
    before, after = align(sets).values()
    assert [row.id for row in before.rows] == [row.id for row in after.rows]
    assert [row.label for row in before.rows] == [row.label for row in after.rows]
    same = [own.text == row.text for own, row in zip(before.rows, after.rows, strict=True)]
    assert same == [place == 3 for place in range(12)]


def test_rows_without_ids_align_by_place(tmp_path):
    prompts = write(tmp_path / "p.jsonl", [{"prompt": apples(row)} for row in range(5)])
    with serving() as server:
        outcome = run(prompts, server)
    sets = [load_prompts(PromptsConfig(file=str(file))) for file in (prompts, outcome.file)]
    assert [row.text for row in align({"a": sets[0], "b": sets[1]})["b"].rows] == [
        reworded(apples(row)) for row in range(5)
    ]


@pytest.mark.parametrize("fault", ["altered", "copy", "solved", "length", "untagged end"])
def test_a_refused_rewrite_is_asked_for_again_with_the_reason(prompts, fault):
    with serving(lambda _, number: fault if number == 1 else "good") as server:
        outcome = run(prompts, server)
    assert (outcome.rewritten, outcome.replies) == (12, 24)
    assert "An earlier rewrite was refused" in server.bodies[-1]["messages"][1]["content"]


@pytest.mark.parametrize("shape", ["bare", "thinking"])
def test_other_shapes_of_a_good_reply_are_read(prompts, shape):
    with serving(lambda *_: shape) as server:
        assert run(prompts, server).rewritten == 12


def test_a_row_whose_rewrites_all_fail_keeps_its_words_and_says_so(prompts):
    with serving(lambda problem, _: "altered" if problem == apples(5) else "good") as server:
        outcome = run(prompts, server, tries=2)
    assert server.requests[apples(5)] == 2
    kept = lines(outcome.file)[5]
    assert (kept["prompt"], kept["rephrased"]) == (apples(5), False)
    assert "Kept in their own words" in outcome.audit.read_text()


def test_require_all_writes_nothing_and_names_the_row(prompts):
    with (
        serving(lambda problem, _: "copy" if problem == apples(5) else "good") as server,
        pytest.raises(PromptError, match="1 of 12 prompts have no rewrite, the first with id 'p5'"),
    ):
        run(prompts, server, require_all=True)
    assert not (prompts.parent / "new.jsonl").exists()


def test_running_again_asks_for_nothing_and_writes_the_same(prompts):
    with serving() as server:
        first = run(prompts, server)
        content = first.file.read_bytes()
        first.file.unlink()
        again = run(prompts, server)
        assert again.file.read_bytes() == content
        assert set(server.requests.values()) == {1}


def test_more_tries_go_on_where_fewer_gave_up(prompts):
    with serving(lambda _, number: "copy" if number < 3 else "good") as server:
        assert run(prompts, server, tries=1).rewritten == 0
        assert run(prompts, server, tries=3).rewritten == 12
    assert set(server.requests.values()) == {3}


def test_a_journal_cut_at_any_byte_loses_one_reply_at_most(prompts):
    with serving() as server:
        first = run(prompts, server, limit=4)
        journal, content = first.journal.read_bytes(), first.file.read_bytes()
        for end in range(0, len(journal), 211):
            first.journal.write_bytes(journal[:end])
            server.requests.clear()
            assert run(prompts, server, limit=4).file.read_bytes() == content
            recorded = max(journal[:end].count(b"\n") - 1, 0)
            assert sum(server.requests.values()) == 4 - recorded


def test_a_journal_of_another_job_is_refused(prompts):
    with serving() as server:
        outcome = run(prompts, server)
        with pytest.raises(CheckpointError, match="made with rewriter 'm, temperature 0.7"):
            run(prompts, server, temperature=0.2)
        rows = lines(prompts)
        rows[2]["prompt"] = apples(50)
        write(prompts, rows)
        with pytest.raises(CheckpointError, match="made with prompts"):
            run(prompts, server)
        outcome.journal.write_text("not JSON\n")
        with pytest.raises(CheckpointError, match="line 1: not a record"):
            run(prompts, server)


def test_two_jobs_do_not_share_a_journal(prompts, tmp_path):
    with Journal(tmp_path / "new.journal.jsonl", {}), serving() as server:
        with pytest.raises(CheckpointError, match="another `corl rephrase` is writing"):
            run(prompts, server)
        assert not server.requests


@pytest.mark.parametrize("name", ["prompts.jsonl", "new.csv", "taken.jsonl"])
def test_files_that_must_not_be_written(prompts, name):
    (prompts.parent / "taken.jsonl").write_text("mine\n")
    before = prompts.read_bytes()
    with serving() as server, pytest.raises(PromptError, match="--to|exists"):
        run(prompts, server, to=prompts.parent / name)
    assert prompts.read_bytes() == before
    assert (prompts.parent / "taken.jsonl").read_text() == "mine\n"


def test_every_journal_line_holds_what_was_asked_answered_and_decided(prompts):
    with serving(lambda _, number: "altered" if number == 1 else "good") as server:
        outcome = run(prompts, server, limit=2)
    header, *records = lines(outcome.journal)
    assert header["rewriter"] == "m, temperature 0.7, 2048 tokens"
    assert len(records) == 4
    for one in records:
        assert one["asked"] == apples(one["row"])
        assert one["rewrite"] in one["reply"]
        assert one["accepted"] == (one["faults"] == []) == (one["try"] == 2)


def test_the_audit_page_holds_untrusted_text_shut_in(tmp_path):
    evil = "```\n# Owned <script>alert(1)</script>\n`````\n\x1b[2J [x](javascript:1)"
    rows = read_rows(
        PromptsConfig(file=str(write(tmp_path / "p.jsonl", [{"id": "<b>*x*</b>", "prompt": evil}])))
    )
    rows[0].take(
        {"row": 0, "try": 1, "reply": evil, "rewrite": evil, "faults": ["copy: <i>`x`"],
         "accepted": False}
    )  # fmt: skip
    page = audit(rows, rewriter="<m>|")
    assert "\x1b" not in page
    outside = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", page)
    assert "script" not in outside and "Owned" not in outside
    assert not re.search(r"(?<!\\)<", outside)
    assert r"id \<b\>\*x\*\</b\>" in page


@pytest.mark.parametrize(
    ("reply", "text", "is_cut"),
    [
        ("<rewritten>\nA?\n</rewritten>", "A?", False),
        ("Sure.\n<REWRITTEN>A?</REWRITTEN>\nDone.", "A?", False),
        ("<rewritten>A", "A", True),
        ("A?", "A?", False),
        ("A?</rewritten>", "A?", False),
        ("```text\nA?\n```", "A?", False),
        ("<think>hm</think>\nA?", "A?", False),
        ("<think>hm", "", True),
        ("<problem>\nA?\n</problem>", "A?", False),
        ("", "", False),
    ],
)
def test_takes_the_wording_out_of_a_reply(reply, text, is_cut):
    got = rewrite_of(reply)
    assert (got.text, got.is_cut) == (text, is_cut)


def test_the_message_says_what_was_wrong():
    assert user_message(" A? ") == "<problem>\nA?\n</problem>"
    assert user_message("A?", ["copy: x"]).endswith("was refused:\n- copy: x")
