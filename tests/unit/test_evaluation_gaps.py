"""Evaluation and diversity at their edges: bounds, defaults, order, what is passed on."""

import math

import numpy as np
import pytest

from corl.config import Recipe
from corl.data.prompts import PromptRow
from corl.diversity import error_overlap
from corl.diversity.answer_table import Answers
from corl.diversity.basins import (
    COMPLETIONS,
    FOLLOWED,
    answer_shares,
    predict_ring,
    predict_self,
    signal_share,
)
from corl.diversity.comparison import compare
from corl.diversity.counts import probe_of
from corl.diversity.forecast import Forecast, forecast, write_forecast
from corl.diversity.intervals import posterior_interval
from corl.diversity.label_free import FEWEST_ANSWERS, label_free_overlap, pool_of
from corl.diversity.pair_figures import PairFigures, kappa_table
from corl.diversity.pairing import Edge, all_rings, edge_worth, pair, write_recipe
from corl.diversity.rephrase.audit import audit
from corl.diversity.rephrase.checks import faults
from corl.diversity.rephrase.copies import copy_fault, length_fault
from corl.diversity.rephrase.rows import Row
from corl.evaluation.accuracy import AnswerSheet, answer_sheet
from corl.evaluation.benchmarks import Item, load_benchmark
from corl.evaluation.completions import Asking, Completion, complete
from corl.evaluation.consistency import leading_answers
from corl.evaluation.contamination import Problem, overlap
from corl.evaluation.intervals import seed_interval
from corl.evaluation.paired import paired_comparison
from corl.evaluation.resampling import Z_975, problem_interval, wilson_interval
from corl.evaluation.samples import read_samples
from corl.evaluation.selection import Signals, checkpoint_signals, pick_checkpoint
from corl.evaluation.suite.answering import Record
from corl.evaluation.suite.comas import behaviour_key, comas_scores
from corl.evaluation.suite.compare import compare_models
from corl.evaluation.suite.ensembles import ensemble_scores
from corl.evaluation.suite.scores import Figure, Score, plain_average
from probe_cases import four_with_a_weak_one, model, problem, worked_example

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def unanimous(keys):
    return AnswerSheet(list(keys), [[key] * 4 for key in keys])


def tallies(*groups):
    return Answers("m", "m", tuple(map(tuple, groups))).tallies()


def test_sixteen_differences_are_flipped_exactly():
    assert paired_comparison([0.5] * 16, [0.0] * 16).p_value == 2 / 2**16


def test_no_sampled_p_value_is_zero():
    assert paired_comparison([0.5] * 40, [0.0] * 40).p_value == 1 / 20_001


def test_values_between_zero_and_one_on_either_side_are_no_pairs_of_yes_and_no():
    ours, theirs = [1, 1, 0, 1], [0.5, 0.25, 0.75, 0.5]
    found, turned = paired_comparison(ours, theirs), paired_comparison(theirs, ours)
    assert found.p_value == turned.p_value
    assert found.interval == pytest.approx(tuple(-end for end in reversed(turned.interval)))


def test_the_interval_of_a_mean_difference_by_hand():
    found = paired_comparison([0.5, 0.25, 0.75], [0.25, 0.25, 0.25])
    half = Z_975 * 0.25 / math.sqrt(3)
    assert found.interval == pytest.approx((0.25 - half, 0.25 + half))


def test_bonett_and_prices_interval_by_hand():
    found = paired_comparison([1] * 6 + [0] * 2 + [1] * 2, [0] * 6 + [1] * 2 + [1] * 2)
    a, b = 7 / 12, 3 / 12
    half = Z_975 * math.sqrt((a + b - (a - b) ** 2) / 12)
    assert found.interval == pytest.approx((a - b - half, a - b + half))


@pytest.mark.parametrize("ends", [(1, 0), (0.9, 0.0)])
def test_no_interval_of_a_difference_leaves_its_range(ends):
    high, low = ends
    ours, theirs = [high, high, high, low], [low, low, low, low]
    for a, b in ((ours, theirs), (theirs, ours)):
        found = paired_comparison(a, b)
        assert -1 <= found.interval[0] < found.difference < found.interval[1] <= 1


def test_one_pair_has_no_interval():
    assert paired_comparison([1], [0]).interval is None
    assert paired_comparison([0.5], [0.25]).interval is None


def test_rounding_makes_no_flip_less_extreme():
    found = paired_comparison([0.0, 0.0, 0.0, 0.3, 0.1], [0.6, 0.5, 0.3, 0.0, 0.0])
    assert found.p_value == 12 / 2**5


def test_an_average_of_samples_is_worth_a_whole_answer_at_least():
    values = [0.0, 1.0, 0.5, 0.5]
    low, high = problem_interval(values)
    assert 0 < low < 0.5 < high < 1


@pytest.mark.parametrize(
    ("seeds", "quantile"), [(4, 3.182), (5, 2.776), (6, 2.571), (8, 2.365), (11, 2.228), (12, 1.96)]
)
def test_each_number_of_seeds_takes_its_own_quantile(seeds, quantile):
    values = [float(seed) for seed in range(seeds)]
    low, high = seed_interval(values)
    assert (high - low) / 2 == pytest.approx(quantile * np.std(values, ddof=1) / seeds**0.5)


def test_leading_answers_are_sorted():
    assert leading_answers(["b", "a"]) == leading_answers(["a", "b"]) == ["a", "b"]


def test_a_checkpoint_at_the_alarm_is_behind_it():
    rising = [Signals(step, share, share, share, 1.0) for step, share in ((0, 0.5), (20, 0.6))]
    assert pick_checkpoint(rising, first_alarm=20) == 0


def test_where_all_checkpoints_are_behind_the_alarm_the_earliest_is_picked():
    rising = [Signals(step, share, share, share, 1.0) for step, share in ((40, 0.6), (20, 0.5))]
    assert pick_checkpoint(rising, first_alarm=10) == 20


def test_agreement_is_the_mean_over_peers_that_vote():
    own = unanimous(["a", "b"])
    peers = [unanimous(["a", "b"]), unanimous(["a", "c"]), unanimous([None, None])]
    found = checkpoint_signals(0, own, frozen_peers=peers, current_peers=peers[2:])
    assert found.frozen_agreement == 0.75
    assert found.current_agreement is None


def test_the_least_similarity_is_still_a_match():
    rows = [Problem("t", " ".join(WORDS))]
    assert len(overlap(rows, rows, similarity=1).exact) == 1
    twelve = [Problem("b", " ".join([*WORDS, "eleven", "twelve"]))]
    assert len(overlap(rows, twelve, similarity=0.8).near) == 1


def test_three_triples_of_four_are_a_match_and_two_of_three_are_none():
    rows = [Problem("t", " ".join(WORDS[:5]))]
    assert len(overlap(rows, [Problem("b", " ".join(WORDS[:6]))]).near) == 1
    assert overlap(rows[:1], [Problem("b", " ".join([*WORDS[1:5], "six"]))]).near == ()


def test_the_similarity_is_shared_triples_over_all():
    ours, theirs = [*WORDS[:8], "x"], [*WORDS[:8], "y"]
    found = overlap([Problem("t", " ".join(ours))], [Problem("b", " ".join(theirs))])
    assert found.near[0].similarity == 0.75


def test_matches_go_from_the_most_alike_on():
    bench = [Problem("b", " ".join(WORDS))]
    rows = [Problem("far", " ".join(WORDS[:8])), Problem("close", " ".join(WORDS[:9]))]
    assert [one.train_id for one in overlap(rows, bench).near] == ["close", "far"]


def test_the_same_triples_in_another_length_are_near_and_not_exact():
    rows = [Problem("t", "a b c " * 3)]
    found = overlap(rows, [Problem("b", "a b c " * 4)])
    assert found.exact == () and found.near[0].similarity == 1


def records(*rows):
    return {
        f"r{row}": [
            Record(f"r{row}", n, key or "", False, key, key, bool(key and key.isupper()), "right")
            for n, key in enumerate(keys)
        ]
        for row, keys in enumerate(rows)
    }


def of(name, figure, ids=("p", "q")):
    return Score(name, ids, 1, {"avg@1": figure}, "avg@1", {}, 0.0)


def test_an_average_of_scores_stays_between_zero_and_one():
    high = Figure((1.0, 0.9), (0.3, 1.2))
    assert plain_average([of("one", high)])["interval"][1] == 1
    assert plain_average([of("one", Figure((0.0, 0.1), (-0.2, 0.6)))])["interval"][0] == 0


def test_an_average_with_a_figure_without_an_interval_has_none():
    two = [of("one", Figure((0.2, 0.4), (0.1, 0.6))), of("two", Figure((1.0,), None))]
    assert plain_average(two)["interval"] is None


def test_models_are_compared_as_a_minus_b_on_the_same_rows_alone():
    good, bad = Figure((1.0, 1.0), None), Figure((0.0, 1.0), None)
    scores = {"a": [of("x", good), of("y", good)], "b": [of("x", bad), of("y", bad, ("p", "z"))]}
    (entry,) = compare_models(scores)
    assert (entry["benchmark"], entry["difference"]) == ("x", 0.5)


def test_an_ensemble_is_held_against_its_best_member():
    recorded = {
        "left": {"sums": records(["A", "A"], ["b", "b"]), "only": records(["A", "A"])},
        "right": {"sums": records(["c", "c"], ["d", "d"])},
    }
    (found,) = ensemble_scores(recorded, ["left", "right"], votes=2, weights=[2, 1])
    assert found.benchmark == "sums"
    assert found.ensemble.values == (1.0, 0.0)
    assert found.against_best.difference == 0
    (turned,) = ensemble_scores(recorded, ["right", "left"], votes=2, weights=[1, 2])
    assert turned.ensemble.values == (1.0, 0.0)


def test_code_without_a_right_program_scores_nothing_without_its_rows():
    rows = {"r": [Record("r", n, "x", False, None, None, False, "wrong") for n in range(5)]}
    assert comas_scores({"m": {"humaneval": rows}}, {})["m"]["humaneval"].values == (0.0,)


def test_an_agent_is_asked_as_its_recipe_samples_it():
    recipe = Recipe.model_validate(
        {
            "name": "r",
            "agents": [
                {"name": "a", "model": "m", "sampling": {"temperature": 0.5, "stop": ["END"]}},
                {"name": "b", "model": "m", "system_prompt": "Think."},
            ],
            "prompts": {"file": "p.jsonl"},
            "sampling": {"max_tokens": 77, "temperature": 0.9},
            "votes": {"lenient": True},
            "rollout": {"max_rows": 5},
            "supervision": {"method": "peer", "ring": ["a", "b"]},
        }
    )
    first, second = (Asking.of(recipe, agent) for agent in recipe.agents)
    assert (first.temperature, first.stop, first.max_tokens) == (0.5, ("END",), 77)
    assert (second.temperature, second.stop, second.system_prompt) == (0.9, (), "Think.")
    assert first.lenient and first.max_rows == 5


def test_each_model_has_the_interval_of_its_own_accuracy():
    found = error_overlap([1] * 90 + [0] * 10, [1] * 10 + [0] * 90)
    assert found.accuracy_a_interval.low > 0.8
    assert found.accuracy_b_interval.high < 0.2
    assert found.exactly_one_right_interval.high > 0.8


def test_answers_in_both_disagreements_count_in_the_interval_of_one_right():
    found = error_overlap([1] * 40 + [0] * 40 + [1] * 20, [0] * 40 + [1] * 40 + [1] * 20)
    low, high = found.exactly_one_right_interval
    assert low > 0.7 and high < 0.9


def test_six_answers_of_every_problem_are_enough_for_an_estimate():
    three = tallies("xxy", "yyz")
    assert label_free_overlap(three, three, pool_of([three] * 2)).reason is None
    few = tallies("x" * FEWEST_ANSWERS, "y")
    found = label_free_overlap(few, few, pool_of([few, few]))
    assert found.kappa_estimate is None and "too few" in found.reason


def test_where_every_answer_is_the_same_nothing_exceeds_chance():
    same = tallies("x", "x", "x")
    assert label_free_overlap(same, same, pool_of([same, same])).beyond_chance is None
    assert label_free_overlap(same[:1], same[:1], pool_of([same[:1]] * 2)).beyond_chance is None


def test_the_pool_holds_every_pass_of_a_model():
    rows = [PromptRow(id="p", text="?", kind="math", label="1")]
    passes = [Answers("a", "a", (("number@1:1",),)), Answers("a", "a", (("number@1:2",),))]
    both = [Answers("b", "b", (("number@1:1",) * 4,))]
    free = compare([passes, both], rows).pairs[0].label_free
    assert free.reason is None


def test_the_most_frequent_wrong_answers_are_followed():
    wrong = {f"w{n}": 1 + n for n in range(FOLLOWED + 2)}
    probed = probe_of([model("a", [problem("p", 1, wrong, samples=64)])])
    shares = answer_shares(probed, ["a"])[0, 0]
    assert shares[1] == shares[:-1].max() == pytest.approx(8 / 64, abs=0.01)
    unfollowed = sum(sorted(wrong.values())[: len(wrong) - FOLLOWED + 1])
    silent = 64 - 1 - sum(wrong.values())
    assert shares[-1] == pytest.approx((unfollowed + silent) / 64, abs=0.01)


def test_a_problem_that_moves_by_a_quarter_is_gained_or_lost():
    probed = probe_of([model("a", [problem("up", 6, {"x": 2}), problem("down", 2, {"x": 6})])])
    found = predict_self(probed, "a")
    assert (found.gained, found.lost) == (("up",), ("down",))


def test_a_problem_that_moves_by_less_than_a_fifth_is_neither():
    probed = probe_of([model("a", [problem("up", 7, {"x": 1}), problem("down", 1, {"x": 7})])])
    found = predict_self(probed, "a")
    assert (found.gained, found.lost) == ((), ())


def test_the_interval_of_a_ceiling_holds_95_per_cent():
    problems = [problem(f"u{n}", 7, {"x": 1}) for n in range(50)]
    problems += [problem(f"d{n}", 1, {"x": 7}) for n in range(50)]
    low, high = predict_self(probe_of([model("a", problems)]), "a").interval
    assert high - low == pytest.approx(2 * Z_975 * 0.05, rel=0.06)


def test_a_signal_is_that_of_the_groups_that_are_drawn():
    probed = probe_of(four_with_a_weak_one())
    names = [one.name for one in probed.models]
    shares = answer_shares(probed, names[:2])
    few, many = (signal_share(shares[0], shares[1], size) for size in (2, COMPLETIONS))
    assert abs(few - many) > 0.01
    (first, _) = predict_ring(probed, names[:2], completions=2, follows=False)
    assert first.signal == pytest.approx(few)
    assert edge_worth(probed, completions=2)[0, 1] == pytest.approx(few)
    found = pair(probed, completions=2)
    assert found.worth == pytest.approx(all_rings(edge_worth(probed, completions=2))[0].worth)


def test_a_teacher_with_half_of_its_pupils_accuracy_is_not_weak():
    assert Edge("t", "p", 0.9, 0.25, 0.5).warning is None
    assert "weak teacher" in Edge("t", "p", 0.9, 0.24, 0.5).warning
    assert Edge("t", "p", 0.5, 0.5, 0.5).warning is None
    assert "more wrong than right" in Edge("t", "p", 0.49, 0.5, 0.5).warning


def test_as_many_other_rings_are_shown_as_asked_for():
    found = pair(probe_of(four_with_a_weak_one(2)), shown=2)
    assert len(found.others) == 2


def test_rings_of_one_worth_stand_in_lexical_order():
    worth = np.full((5, 5), 0.1)
    worth[0, 1], worth[1, 2], worth[2, 0] = 0.3, 0.1 + 0.2, 0.7
    rings = all_rings(worth)
    keys = [(-round(one.worth, 9), one.order) for one in rings]
    assert keys == sorted(keys)


def test_the_recipe_on_disk_takes_its_completions(tmp_path):
    probed = probe_of(four_with_a_weak_one(2))
    write_recipe(probed, pair(probed), tmp_path / "r.yaml", prompts="p.jsonl", completions=12)
    assert "completions: 12" in (tmp_path / "r.yaml").read_text()


def test_the_fewest_samples_are_those_of_the_scarcest_problem():
    both = [problem("p", 1, {}, samples=1), problem("q", 4, {})]
    assert probe_of([model("a", both)]).fewest_samples == 1


def test_accuracy_counts_silence_as_wrong():
    assert probe_of([model("a", [problem("p", 2, {"x": 2})])]).accuracy("a") == 0.25


def test_a_forecast_takes_the_completions_it_is_given(tmp_path, monkeypatch):
    import corl.diversity.forecast as module

    probed = probe_of(four_with_a_weak_one(1))
    monkeypatch.setattr(module, "read_probe", lambda path: probed)
    monkeypatch.setattr(module, "read_pairs", lambda path: [])
    found = forecast(tmp_path, completions=2)
    names = [one.pupil for one in found.ring]
    assert found.alone[0] == predict_self(probed, names[0], completions=2)
    assert list(found.pairs[0]) == predict_ring(probed, names[:2], completions=2)
    assert list(found.ring) == predict_ring(probed, names, completions=2)
    assert found.alone[0] != predict_self(probed, names[0])


def test_a_portrait_has_the_first_model_across(tmp_path):
    probed = probe_of(worked_example(1))
    pupils = tuple(predict_ring(probed, ["left", "right"]))
    places = Forecast(probed, (), 8, (), (pupils,), ()).places(0)
    first, second, *_ = (getattr(places, name) for name in type(places).__dataclass_fields__)
    assert tuple(first) == pupils[0].starts and tuple(second) == pupils[1].starts


def test_kappa_of_a_pair_stands_on_both_sides():
    pairs = [PairFigures("b", "a", 0.5, None, (None, None, 0.25))]
    assert kappa_table(["a", "b"], pairs) == [[None, 0.5], [0.5, None]]
    assert pairs[0].cells()[1:] == ["0.50", "-", "-", "-", "25.0"]


def test_one_word_in_a_hundred_is_a_copy_and_one_in_ten_is_none():
    words = [f"{a}{b}" for a in "bcdfghjklm" for b in "aeiouaeiou"]
    hundred = " ".join(f"{word}{n}" for n, word in enumerate(words))
    assert copy_fault(hundred, hundred.replace("be11 ", "other ")) is not None
    assert copy_fault(" ".join(WORDS), " ".join([*WORDS[:9], "other"])) is None


@pytest.mark.parametrize(
    ("before", "after", "is_refused"),
    [
        (1000, 250, True),
        (1000, 280, False),
        (1000, 3600, False),
        (1000, 3800, True),
        (20, 1, False),
        (20, 200, False),
        (20, 300, True),
    ],
)
def test_lengths_out_of_proportion_are_refused(before, after, is_refused):
    assert (length_fault("x" * before, "y" * after) is not None) == is_refused


def test_a_rewrite_too_long_to_read_is_refused_whatever_the_original():
    assert [one.check for one in faults("What is 1?", "x" * 200_000)] == ["length"]


def refused(place, *reasons):
    row = Row(place, PromptRow(id=f"id{place}", text="What is 1?", kind="math", label=None), {})
    row.tries.append({"rewrite": "No.", "faults": list(reasons)})
    return row


def test_the_audit_counts_a_reply_once_for_each_check():
    page = audit([refused(0, "numbers: 1 lost", "numbers: 2 new", "copy: all")], rewriter="m")
    assert "| numbers | 1 |" in page and "| copy | 1 |" in page


def test_the_audit_counts_rows_from_one_and_those_refused_as_kept():
    page = audit([refused(0, "copy: all"), refused(1, "copy: all")], rewriter="m")
    assert "2 prompts, 0 rewritten, 2 kept in their own words" in page
    assert "### Row 1, id id0" in page and "### Row 2, id id1" in page


def test_an_answer_sheet_is_read_as_it_was_asked_for(monkeypatch):
    import corl.evaluation.accuracy as module

    read, asked = [], []

    def complete_(policy, rows, asking, *, completions, seed):
        asked.append((asking.temperature, completions, seed))
        return [[Completion("4", False)] * completions for _ in rows]

    monkeypatch.setattr(module, "complete", complete_)
    monkeypatch.setattr(module, "read_completion", lambda text, row, **how: read.append(how))
    asking = Asking(max_tokens=9, temperature=0.7, lenient=True, isolation="limits")
    row = PromptRow(id="p", text="?", kind="math", label="4")
    answer_sheet(None, [row], asking, seed=3)
    assert sorted(asked) == [(0.0, 1, 3), (0.7, 8, 3)]
    assert len(read) == 9
    assert all(how["lenient"] and how["isolation"] == "limits" for how in read)


def test_a_policy_is_sampled_by_every_setting_of_the_asking(monkeypatch):
    from types import SimpleNamespace

    import corl.policy.vision.encode
    from corl.rollout.transformers_engine import TransformersEngine

    calls, rows_at_once = [], []

    def sample(self, prompt_ids, *, sampling, step, **rest):
        calls.append((sampling, step))
        return SimpleNamespace(texts=[["x"]], truncated=[[False]])

    def start(self, policy, *, max_rows):
        rows_at_once.append(max_rows)

    monkeypatch.setattr(TransformersEngine, "__init__", start)
    monkeypatch.setattr(TransformersEngine, "sync", lambda self: None)
    monkeypatch.setattr(TransformersEngine, "sample", sample)
    monkeypatch.setattr(
        corl.policy.vision.encode,
        "encode_for",
        lambda *_, **how: SimpleNamespace(ids=[1], vision=None),
    )
    row = PromptRow(id="p", text="?", kind="math", label="4")
    for temperature in (0.0, 0.7):
        asking = Asking(
            max_tokens=9, temperature=temperature, top_p=0.9, top_k=4, stop=("END",), max_rows=3
        )
        complete(None, [row], asking, completions=1)
    (greedy, first), (sampled, second) = calls
    assert (sampled.top_p, sampled.top_k, sampled.stop) == (0.9, 4, ("END",))
    assert (sampled.temperature, sampled.max_tokens, greedy.temperature) == (0.7, 9, 0.0)
    assert first != second and rows_at_once == [3, 3]


def test_what_the_setup_of_a_program_defines_is_no_example():
    extra = {"tests": ["assert area(Node(1)) == 2"], "setup": "class Node:\n    pass\n"}
    row = Item(id="r", problem="x", prompt="x", plain="x", kind="code", extra=extra)
    mbpp, body = load_benchmark("mbpp"), "def area(x):\n    return 2\n"
    keys = {
        behaviour_key(mbpp, row, f"```python\n{remark}{body}```", minimum="landlock")
        for remark in ("", "# a remark\n")
    }
    assert len(keys) == 1 and None not in keys


def test_a_number_is_one_token():
    rows = [Problem("t", "Add 12345 to 67 now.")]
    assert overlap(rows, [Problem("b", "Add 12 345 to 67 now.")]).exact == ()


def test_a_forecast_of_a_pair_shows_no_other_pairs(tmp_path, monkeypatch):
    import corl.diversity.forecast as module

    shown = []
    monkeypatch.setattr(
        module, "write_pair_pictures", lambda names, pairs, out: shown.extend(pairs) or []
    )
    probed = probe_of(four_with_a_weak_one(1))
    alone = tuple(predict_self(probed, name) for name in ("first", "second"))
    pairs = [
        PairFigures("first", other, 0.5, None, (None, None, None)) for other in ("second", "weak")
    ]
    write_forecast(Forecast(probed, tuple(pairs), 8, alone, (), ()), tmp_path)
    assert shown == pairs[:1]


def test_an_interval_needs_half_of_the_draws():
    tables, pure = np.eye(2).repeat(5, axis=0), np.eye(2)

    def known_in(fifths):
        def statistic(sums):
            return np.where(np.arange(len(sums)) % 5 < fifths, sums[:, 0] / sums.sum(1), np.nan)

        return posterior_interval(tables, pure, statistic)

    assert known_in(2) is None
    assert known_in(3) is not None


def test_how_often_models_depart_does_not_move_the_interval_of_where_they_depart_to():
    def interval(ours, same, other):
        a, b = tallies(*[ours] * 10), tallies(*[same] * 5, *[other] * 5)
        most = tallies(*["c"] * 10)
        return label_free_overlap(a, b, pool_of([a, b, most, most, most]))

    seldom, often = interval("cw", "cw", "cv"), interval("w", "w", "v")
    assert seldom.minority_agreement == often.minority_agreement == 0.5
    assert seldom.minority_agreement_interval == pytest.approx(often.minority_agreement_interval)


def test_the_interval_of_averaged_samples_by_hand():
    spread = (0.125 + 0.1 * 0.5) / (4 - 1 + 2 * 0.1)
    expected = wilson_interval(0.5, 4 * 0.25 / spread)
    assert problem_interval([0.25, 0.5, 0.75, 0.5]) == pytest.approx(expected)


def test_the_files_of_a_folder_are_read_in_order_of_name(tmp_path):
    for name in "bac":
        (tmp_path / f"{name}.jsonl").write_text(f'{{"id": "{name}", "completion": "x"}}\n')
    assert [one.id for one in read_samples(tmp_path)] == ["a", "b", "c"]
