"""A solver's votes refuse a wording that it answers otherwise, and only then."""

import json
from pathlib import Path

import pytest

from corl.config import PromptsConfig
from corl.data.prompts import load_prompts
from corl.diversity.rephrase import EndpointSettings, rephrase
from corl.diversity.rephrase.solver import SolverSettings, Votes
from rewriting_server import apples, reworded, serving

QUICKSTART = Path(__file__).parents[2] / "src" / "corl" / "quickstart"


def test_a_real_solver_votes_on_both_wordings():
    config = PromptsConfig(file=str(QUICKSTART / "prompts" / "heldout.jsonl"), limit=40)
    rows = load_prompts(config).rows
    solver = SolverSettings(
        model=QUICKSTART / "models" / "qwen3", votes=4, max_tokens=20, suffix="", batch=16
    ).open()
    same = list(solver.votes([(n, row, row.text) for n, row in enumerate(rows)], lambda: False))
    assert [one.row for one in same] == list(range(40))
    assert all(one.original == one.rewritten and one.agree for one in same)
    answered = {one.row: one.original for one in same if one.original is not None}
    assert len(answered) > 10
    moved = [(n, rows[n], rows[(n + 1) % 40].text) for n in answered]
    votes = list(solver.votes(moved, lambda: False))
    assert [one.original for one in votes] == list(answered.values())
    assert sum(not one.agree for one in votes) > len(votes) / 2
    assert list(solver.votes(moved, lambda: True)) == []


@pytest.mark.parametrize(
    ("original", "rewritten", "agree"),
    [("1", "1", True), ("1", "2", False), (None, "2", True), ("1", None, True), (None, None, True)],
)
def test_a_missing_vote_refuses_nothing(original, rewritten, agree):
    assert Votes(0, original, rewritten).agree == agree


class Doubter:
    """A solver that trusts no first rewrite of every second row."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def open(self):
        return self

    def votes(self, rows, is_stopped):
        for place, prompt, text in rows:
            assert (prompt.text, text) == (apples(place), reworded(apples(place)))
            self.asked.append(place)
            doubts = place % 2 == 0 and self.asked.count(place) == 1
            yield Votes(place, "5", "6" if doubts else "5")


def test_a_refused_wording_is_tried_again_and_voted_on_once(tmp_path):
    prompts = tmp_path / "p.jsonl"
    prompts.write_text(
        "".join(json.dumps({"id": str(n), "prompt": apples(n)}) + "\n" for n in range(6))
    )
    config, to = PromptsConfig(file=str(prompts)), tmp_path / "new.jsonl"
    with serving() as server:
        asked = EndpointSettings(url=server.url, model="m")
        rephrase(config, to, asked)  # without a solver, all pass
        to.unlink()
        doubter = Doubter()
        outcome = rephrase(config, to, asked, solver=doubter)
        assert (outcome.rewritten, outcome.replies) == (6, 9)
        assert sorted(doubter.asked) == [0, 0, 1, 2, 2, 3, 4, 4, 5]
        again = Doubter()
        assert rephrase(config, to, asked, solver=again).replies == 9
        assert again.asked == []
    assert sum(server.requests.values()) == 9
    assert "votes: 5 on the original, 6 on the rewrite" in outcome.audit.read_text()
