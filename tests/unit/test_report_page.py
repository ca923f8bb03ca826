"""The page as a whole: escaping, size, self-containment, rollouts."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from corl.report import write_report
from corl.report.html import el, href, text
from corl.report.page import MAX_BYTES
from corl.report.pages import read_page
from report_cases import (
    ATTACK,
    metric_line,
    result_row,
    write_lines,
    write_rollouts,
    write_run,
    write_study,
)


class _Elements(HTMLParser):
    """Names and attributes of all elements, as a browser would find them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.data: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.data.append(data)


def _elements(page: str) -> _Elements:
    parser = _Elements()
    parser.feed(page)
    return parser


def _assert_harmless(page: str) -> None:
    found = _elements(page).found
    assert sum(tag == "script" for tag, _ in found) == 1
    assert not {"img", "iframe", "object", "link", "base", "form"} & {tag for tag, _ in found}
    for _, attributes in found:
        assert not [name for name in attributes if name.startswith("on") or name == "src"]
        link = urlsplit(attributes.get("href") or "")
        assert not link.scheme and not link.netloc


def test_what_a_model_wrote_is_text(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    write_rollouts(run, "left", 1, [ATTACK, "\\boxed{2}</pre></article>"], prompt=ATTACK)
    page = write_report([run], tmp_path).read_text()
    _assert_harmless(page)
    assert "".join(_elements(page).data).count(ATTACK) == 2


def test_hostile_names_paths_and_errors_are_text(tmp_path: Path) -> None:
    name = "\"><script>alert(1)</script><a href='javascript:alert(1)'>"
    folder = name.replace("/", "-")
    row = result_row("peer", 0, 0.8, setting=name, error=name)
    row.update(run=f"cells/{folder}", status=name, alarms=[{"message": name}, name, 3])
    row.update(method=name, seed=name)
    row["agents"][0]["name"] = name
    study = write_study(tmp_path / folder, [result_row("peer", 0, 0.7)])
    (study / "results.json").write_text(json.dumps({"rows": [row]}))
    cell = write_run(study / "cells" / folder, method=name, agents=(name, "../..", "left"))
    write_rollouts(cell, "left", 1, ["\\boxed{2}"])
    write_lines(
        cell / "health.jsonl",
        [{"step": 1, "agent": name, "detector": name, "level": name, "message": name}],
    )
    page = write_report([study], tmp_path / "javascript:alert(1)").read_text()
    _assert_harmless(page)


def test_a_path_cannot_become_a_scheme_a_host_or_a_fragment(tmp_path: Path) -> None:
    assert href(tmp_path / "javascript:x", tmp_path) == "./javascript%3Ax"
    assert href(tmp_path / "a b#c?d%", tmp_path) == "./a%20b%23c%3Fd%25"
    assert href(tmp_path.parent / "x", tmp_path) == "./../x"


def test_characters_that_no_page_can_hold_are_replaced() -> None:
    assert text("a\x00\x1b\ud800b\n") == "a\ufffd\ufffd\ufffdb\n"
    assert el("p", "<", title='"') == '<p title="&quot;">&lt;</p>'


def test_the_page_loads_nothing_and_names_no_address(tmp_path: Path) -> None:
    page = write_report([write_run(tmp_path / "run")], tmp_path).read_text()
    policy = next(a for tag, a in _elements(page).found if a.get("http-equiv"))["content"]
    assert policy and policy.startswith("default-src 'none'") and "sha256-" in policy
    assert "http://" not in page and "https://" not in page and "url(" not in page
    assert "@import" not in page


def test_the_same_directories_give_the_same_bytes(tmp_path: Path) -> None:
    study = write_study(tmp_path / "s", [result_row("peer", 0, 0.8)])
    first = write_report([study], tmp_path / "a.html").read_bytes()
    assert write_report([study], tmp_path / "a.html").read_bytes() == first


def test_a_whole_study_of_long_rollouts_stays_small(tmp_path: Path) -> None:
    methods = ("peer", "ground_truth", "self_vote", "entropy", "self_certainty", "a", "b")
    study = write_study(tmp_path / "s", [result_row(m, s, 0.5) for m in methods for s in range(3)])
    texts = [f"{index} {ATTACK * 12}" for index in range(8)]
    for cell in (study / "cells").iterdir():
        lines = [
            metric_line(step, agent, reward_mean=0.123456 * (step % 7))
            for step in range(1, 161)
            for agent in ("left", "right")
        ]
        write_lines(cell / "metrics.jsonl", lines)
        for agent in ("left", "right"):
            for step in (1, 40, 80, 120, 160):
                write_rollouts(cell, agent, step, texts)
    file = write_report([study], tmp_path)
    assert 500_000 < file.stat().st_size < MAX_BYTES
    page = file.read_text()
    assert page.count('class="run-pages"') == 42
    assert page.count('data-step="160"') == 42, "the last page of every agent is kept"


def test_pages_read_back_as_they_were_written(tmp_path: Path) -> None:
    texts = [
        "\\boxed{2}",
        "```\n\\boxed{2}\n## Prompt x\n\nReward 9, answer `z`\n```",
        "",
        "tail ````\n\n",
    ]
    file = write_rollouts(tmp_path, "left", 7, texts, prompt="a\n```b```\n# Step 9, agent q")
    page = read_page(file, 7)
    (prompt,) = page.prompts
    assert page.graded_by == "right"
    assert (prompt.id, prompt.text) == ("row-1", "a\n```b```\n# Step 9, agent q")
    assert prompt.vote.endswith(":2 (2 of 4)") and prompt.label.endswith(":2")
    assert [completion.text for completion in prompt.completions] == texts
    assert [completion.reward for completion in prompt.completions] == ["1", "1", "0", "0"]


@pytest.mark.parametrize(
    "content", ["", "```", "# Step", "## Prompt\n\nReward", "Reward 1, answer"]
)
def test_a_page_that_is_none_is_no_error(tmp_path: Path, content: str) -> None:
    run = write_run(tmp_path / "run")
    file = run / "agents" / "left" / "pages" / "step-000001.md"
    file.parent.mkdir(parents=True)
    file.write_text(content)
    assert 'class="page"' in write_report([run], tmp_path).read_text()


def test_a_directory_gets_report_html_and_a_file_keeps_its_name(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    assert write_report([run], tmp_path / "new" / "folder").name == "report.html"
    assert write_report([run], tmp_path / "mine.html") == tmp_path / "mine.html"


def test_a_table_without_a_measure_has_no_tab_for_it(tmp_path: Path) -> None:
    row = result_row("peer", 0, 0.8)
    row["agents"] = [{"name": "left", "before": {"greedy": 0.5}, "after": {"greedy": 0.75}}]
    page = write_report([write_study(tmp_path / "s", [row])], tmp_path).read_text()
    assert 'id="measure-greedy"' in page and 'id="measure-avg_at_8"' not in page
    assert ">+25.0<" in page


def test_only_the_first_alarm_of_an_agent_stands_open(tmp_path: Path) -> None:
    said = [
        {"step": step, "agent": agent, "detector": "d", "level": level, "message": f"{agent}{step}"}
        for step, agent, level in [
            (9, "left", "alarm"),
            (3, "left", "info"),
            (5, "left", "alarm"),
            (7, "right", "alarm"),
        ]
    ]
    run = write_run(tmp_path / "run")
    write_lines(run / "health.jsonl", said)
    page = write_report([run], tmp_path / "r.html").read_text()
    health = page[page.index('<section id="health"') :]
    is_open = health[: health.index("<details")]
    assert "left5" in is_open and "right7" in is_open
    assert "left9" not in is_open and "left3" not in is_open
    assert "left9" in health and "left3" in health
