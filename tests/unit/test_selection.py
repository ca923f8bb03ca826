"""Choosing a checkpoint without labels, on hand-made answers."""

import pytest

from corl.evaluation.accuracy import AnswerSheet, ensemble_maj_at_8, grade, majority_key
from corl.evaluation.selection import (
    Signals,
    checkpoint_signals,
    cohort_signals,
    pick_by_labels,
    pick_checkpoint,
)
from corl.study.picks import measure_picks, summarise_picks


def sheet(*groups):
    """An answer sheet whose greedy answers are the groups' first."""
    return AnswerSheet([group[0] for group in groups], [list(group) for group in groups])


def unanimous(keys, completions=8):
    return sheet(*([key] * completions for key in keys))


def test_a_group_votes_by_its_most_common_key():
    assert majority_key(["a", "a", "b", None]) == ("a", 0.5)
    assert majority_key(["a", "b"]) == (None, 0.0)
    assert majority_key([None, None]) == (None, 0.0)


def test_grading_counts_by_hand():
    answers = sheet(["a"] * 6 + ["b"] * 2, ["b"] * 4 + ["c"] * 3 + [None])
    accuracy = grade(answers, ["a", "c"])
    assert accuracy.greedy == 0.5
    assert accuracy.avg_at_8 == pytest.approx((6 / 8 + 3 / 8) / 2)
    assert accuracy.maj_at_8 == 0.5
    assert accuracy.pass_at_8 == 1.0


def test_silence_is_never_right():
    accuracy = grade(sheet([None] * 8), [None])
    assert (accuracy.greedy, accuracy.avg_at_8, accuracy.maj_at_8) == (0.0, 0.0, 0.0)


def test_an_ensemble_pools_four_completions_of_each():
    left = sheet(["a"] * 4 + ["b"] * 4, ["a"] * 4 + ["b"] * 4)
    right = sheet(["b"] * 4 + ["a"] * 4, ["b"] * 4 + ["b"] * 4)
    # Places 0 to 3 of the left and 4 to 7 of the right: eight times a; then a tie.
    assert ensemble_maj_at_8([left, right], ["a", "b"]) == 0.5
    # Three agents give 3 + 3 + 2.
    a, b, third = sheet(["a"] * 8), sheet(["b"] * 8), sheet(["c"] * 6 + ["b"] * 2)
    assert ensemble_maj_at_8([a, b, third], ["b"]) == 1.0


def test_signals_by_hand():
    own = sheet(["a", "a", "a", "b"], ["b", "b", None, None], ["a", "b", None, None])
    frozen = unanimous(["a", "a", "a"], 4)
    current = sheet(["a"] * 4, ["b"] * 4, ["a", "b", "a", "b"])  # no vote on the third
    signals = checkpoint_signals(40, own, frozen_peers=[frozen], current_peers=[current])
    # Own votes: a, b, none. The frozen peer votes on all three, the current one on two.
    assert signals.frozen_agreement == pytest.approx(1 / 3)
    assert signals.current_agreement == 1.0
    assert signals.vote_support == pytest.approx((0.75 + 0.5 + 0) / 3)
    assert signals.answered_share == pytest.approx(8 / 12)
    product = (1 / 3) ** 2 * 1.0 * ((0.75 + 0.5) / 3)
    assert signals.score == pytest.approx(8 / 12 * product**0.25)


def test_an_agent_alone_is_scored_by_what_it_has():
    signals = checkpoint_signals(0, unanimous(["a"]), frozen_peers=[], current_peers=[])
    assert signals.frozen_agreement is None
    assert signals.score == 1.0
    silent = checkpoint_signals(0, unanimous([None]), frozen_peers=[], current_peers=[])
    assert silent.score == 0.0


def test_a_pair_that_collapsed_together_loses_to_its_start():
    """It agrees with itself whole and aloud; only its frozen peers say otherwise."""
    start = Signals(0, 0.7, 0.7, 0.8, 1.0)
    collapsed = Signals(100, 0.3, 1.0, 1.0, 1.0)
    assert collapsed.current_agreement > start.current_agreement
    assert pick_checkpoint([start, collapsed]) == 0


def test_progress_past_the_frozen_peers_is_still_progress():
    early, late = Signals(20, 0.6, 0.7, 0.8, 1.0), Signals(160, 0.6, 0.9, 0.95, 1.0)
    assert pick_checkpoint([early, late]) == 160


def test_nothing_behind_an_alarm_is_picked():
    rising = [Signals(step, share, share, share, 1.0) for step, share in ((0, 0.5), (20, 0.6))]
    assert pick_checkpoint(rising) == 20
    assert pick_checkpoint(rising, first_alarm=18) == 0
    assert pick_checkpoint(rising[1:], first_alarm=18) == 20  # something has to be picked


def test_of_equals_the_earliest_is_picked():
    assert pick_checkpoint([Signals(step, 0.5, 0.5, 0.5, 1.0) for step in (0, 20, 40)]) == 0
    assert pick_by_labels({0: 0.5, 20: 0.7, 40: 0.7}) == 20


def test_every_agent_is_held_against_the_others_only():
    first = {"a": unanimous(["x", "y"]), "b": unanimous(["x", "z"])}
    later = {"a": unanimous(["x", "z"]), "b": unanimous(["q", "z"])}
    signals = cohort_signals({20: later, 0: first})
    assert [one.step for one in signals["a"]] == [0, 20]
    assert [one.frozen_agreement for one in signals["a"]] == [0.5, 1.0]
    assert [one.current_agreement for one in signals["a"]] == [0.5, 0.5]
    assert [one.frozen_agreement for one in signals["b"]] == [0.5, 0.0]


def test_a_choice_is_measured_on_prompts_that_it_did_not_see():
    """Even prompts choose, odd ones measure: step 20 looks best and is not."""
    truth = ["t"] * 4
    sheets = {
        0: {"a": unanimous(["w", "t", "w", "t"]), "b": unanimous(["t", "w", "t", "w"])},
        20: {"a": unanimous(["t", "w", "t", "w"]), "b": unanimous(["t", "w", "t", "w"])},
    }
    of_a, _ = measure_picks(sheets, truth, first_alarms={})
    assert of_a["picks"]["label_free"] == {"step": 20, "avg_at_8": 0.0}
    assert of_a["picks"]["labelled"] == {"step": 20, "avg_at_8": 0.0}
    assert of_a["picks"]["first"] == {"step": 0, "avg_at_8": 1.0}
    of_a, _ = measure_picks(sheets, truth, first_alarms={"a": 10})
    assert of_a["picks"]["label_free"]["step"] == 0


def test_the_summary_is_a_mean_over_agents_and_seeds():
    def entry(free, last, labelled):
        picks = {"label_free": free, "last": last, "labelled": labelled, "first": 0.5}
        return {"picks": {name: {"step": 0, "avg_at_8": value} for name, value in picks.items()}}

    row = {"method": "peer", "setting": "s"}
    (one,) = summarise_picks(
        [
            {**row, "seed": 0, "agents": [entry(0.8, 0.7, 0.9), entry(0.6, 0.7, 0.7)]},
            {**row, "seed": 1, "agents": [entry(0.9, 0.9, 0.9), entry(0.7, 0.7, 0.7)]},
        ]
    )
    assert one["label_free"] == pytest.approx(0.75)
    assert one["labelled"] == pytest.approx(0.8)
    assert one["regret"] == pytest.approx(0.05)  # seeds lose 0.1 and 0.0
    low, high = one["regret_interval"]
    assert low < 0.05 < high
