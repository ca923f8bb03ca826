"""Predictions from counts of answers, and the reading of `kappa.json`."""

import copy
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corl.diversity.basins import (
    FOLLOWED,
    answer_shares,
    predict_ring,
    predict_self,
    signal_share,
)
from corl.diversity.counts import probe_of, read_probe
from corl.diversity.forecast import forecast, write_forecast
from corl.errors import PromptError, RecipeError
from probe_cases import LABEL, four_with_a_weak_one, model, problem, worked_example


def one_problem(**models):
    """A probe of one problem: model -> (right, wrong answers)."""
    return probe_of(
        [model(name, [problem("p", right, wrong)]) for name, (right, wrong) in models.items()]
    )


def test_the_worked_example():
    probed = probe_of(worked_example())
    left, right = (predict_self(probed, name) for name in ("left", "right"))
    assert (left.ceiling, right.ceiling) == pytest.approx((0.5, 0.5), abs=0.01)
    assert left.lost == ("p6", "p7", "p8", "p9", "p10", "p11")
    assert right.lost == ("p0", "p1", "p2", "p3", "p4", "p5")
    for one in predict_ring(probed, ["left", "right"]):
        assert one.ceiling == pytest.approx(1, abs=0.01)
        assert one.lost == () and len(one.gained) == 6
        assert one.start == pytest.approx(9 / 16, abs=0.03)
        assert one.gain == pytest.approx(one.ceiling - one.start)


def test_self_reward_follows_the_plurality_not_the_half():
    leads = one_problem(a=(3, {"x": 2, "y": 2, "z": 1}))
    trails = one_problem(a=(3, {"x": 4, "y": 1}))
    assert predict_self(leads, "a").ceiling > 0.98
    assert predict_self(trails, "a").ceiling < 0.02


def test_one_shared_wrong_answer_is_worse_than_two_different_ones():
    differ = one_problem(a=(3, {"x": 5}), b=(3, {"y": 5}))
    shared = one_problem(a=(3, {"x": 5}), b=(3, {"x": 5}))
    assert predict_ring(differ, ["a", "b"])[0].ceiling > 0.98
    assert predict_ring(shared, ["a", "b"])[0].ceiling < 0.02
    assert predict_ring(differ, ["a", "b"])[0].signal > predict_ring(shared, ["a", "b"])[0].signal


def test_a_teacher_is_the_one_before_on_the_ring():
    probed = probe_of(four_with_a_weak_one())
    ring = predict_ring(probed, ["weak", "first", "third"], follows=False)
    assert [(one.teacher, one.pupil) for one in ring] == [
        ("third", "weak"),
        ("weak", "first"),
        ("first", "third"),
    ]
    assert all(math.isnan(one.ceiling) for one in ring)


def test_abstentions_neither_vote_nor_count_as_an_answer():
    probed = one_problem(a=(2, {"x": 1}))  # five of eight state nothing
    shares = answer_shares(probed, ["a"])[0, 0]
    assert shares.argmax() == FOLLOWED
    assert predict_self(probed, "a").ceiling > 0.95


def test_shares_are_smoothed_towards_what_the_cohort_gives():
    probed = one_problem(a=(0, {"x": 8}), b=(8, {}), c=(0, {"x": 8}))
    beside_b, beside_c = (
        answer_shares(probed, ["a", "b"])[0, 0],
        answer_shares(probed, ["a", "c"])[0, 0],
    )
    assert 0 < beside_c[0] < beside_b[0] < 0.1
    # (0 + 0.95 * 0.5 + 0.05 / 7) / 9
    assert beside_b[0] == pytest.approx((0.95 * 0.5 + 0.05 / (FOLLOWED + 1)) / 9)


@given(counts=st.lists(st.integers(0, 5), min_size=1, max_size=12), right=st.integers(0, 5))
@settings(max_examples=50, deadline=None)
def test_shares_are_distributions_with_every_outcome_possible(counts, right):
    wrong = {f"w{index}": count for index, count in enumerate(counts) if count}
    total = sum(counts) + right
    probed = probe_of([model("a", [problem("p", right, wrong, samples=total + 1)])])
    shares = answer_shares(probed, ["a"])
    assert shares.shape == (1, 1, FOLLOWED + 1)
    assert shares.sum() == pytest.approx(1)
    assert (shares > 0).all()
    assert shares[0, 0, 0] == pytest.approx(right / (total + 1), abs=1 / (total + 2) + 0.06)


def test_signal_by_hand():
    # One certain wrong vote that the pupil never gives moves nothing; a right one does.
    teacher = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert signal_share(np.array([[0.5, 0.0, 0.5], [0.5, 0.0, 0.5]]), teacher, 8) == 1
    assert signal_share(np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]), teacher, 8) == 0.5
    assert math.isnan(signal_share(teacher, np.array([[0.0, 0.0, 1.0]] * 2), 8))


def test_the_interval_holds_the_ceiling_and_narrows_with_problems():
    few, many = probe_of(worked_example(3)), probe_of(worked_example(60))
    wide, narrow = (predict_self(probed, "left").interval for probed in (few, many))
    assert wide[0] <= 0.5 <= wide[1] and narrow[0] < 0.5 < narrow[1]
    assert narrow[1] - narrow[0] < (wide[1] - wide[0]) / 2


def test_refusals_of_rings_and_names():
    probed = probe_of(worked_example())
    for ring in (["left"], ["left", "left"]):
        with pytest.raises(RecipeError, match="two different models"):
            predict_ring(probed, ring)
    with pytest.raises(PromptError, match="no model 'lefty'; it has left, right"):
        predict_self(probed, "lefty")
    with pytest.raises(RecipeError, match="group of one"):
        predict_self(probed, "left", completions=1)


def broken(change):
    tree = copy.deepcopy(worked_example())
    change(tree)
    return tree


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t[0]["problems"][2].update(right=None), "left, problem 2 has no label"),
        (lambda t: t[1]["problems"][0].update(label=None), "right, problem 0 has no label"),
        (lambda t: t[0]["problems"][1].update(right=3), "says 3 samples"),
        (lambda t: t[0]["problems"][1].update(samples=7), "`samples` is 7"),
        (lambda t: t[0]["problems"][1].update(samples=True), "`samples` is True"),
        (lambda t: t[0]["problems"][1].update(answers=[1]), "not a table of answers"),
        (lambda t: t[0]["problems"][1].update(answers={"x": -1}), "not a table of answers"),
        (lambda t: t[0]["problems"][1].update(id="p0"), "'p0' stands twice"),
        (lambda t: t[0]["problems"].pop(), "did not answer the same problems"),
        (lambda t: t[1].update(name="left"), "two models are named 'left'"),
        (lambda t: t[0].update(problems=[]), "left has no problems"),
        (lambda t: t[0].pop("name"), "has no name"),
    ],
)
def test_probes_that_cannot_be_read_name_the_place(change, says):
    with pytest.raises(PromptError, match=says):
        probe_of(broken(change))


def test_labels_that_differ_between_models_are_refused():
    def relabel(tree):
        tree[1]["problems"][0] = {
            "id": "p0", "right": 0, "samples": 8, "answers": {}, "label": "other"
        }  # fmt: skip

    with pytest.raises(PromptError, match=f"'p0' has the label 'other' for right and '{LABEL}'"):
        probe_of(broken(relabel))


@pytest.mark.parametrize("text", ["", "[]", '{"models": []}', "{", '{"models": 3}', "[" * 10**5])
def test_files_that_are_no_probe(tmp_path, text):
    file = tmp_path / "kappa.json"
    file.write_text(text)
    with pytest.raises(PromptError, match="kappa.json"):
        read_probe(tmp_path)
    with pytest.raises(PromptError, match="cannot be read"):
        read_probe(tmp_path / "elsewhere.json")


def test_a_forecast_of_all_models_and_its_file(tmp_path):
    (tmp_path / "kappa.json").write_text(json.dumps({"models": four_with_a_weak_one(3)}))
    found = forecast(tmp_path, completions=4)
    assert len(found.alone) == 4 and len(found.pairs) == 6 and len(found.ring) == 4
    pytest.importorskip("matplotlib")
    two = forecast(tmp_path, pair=["first", "second"], completions=4)
    assert two.pairs[0] == found.pairs[0] and two.ring == ()
    written = write_forecast(two, tmp_path / "out")
    assert {path.name for path in written} == {
        "basins.json",
        "portrait-first-second.png",
        "portrait-first-second.svg",
    }
    tree = json.loads((tmp_path / "out" / "basins.json").read_text())
    assert len(tree["predictions"]) == 2 + 2
    one = tree["predictions"][2]
    assert (one["pupil"], one["teacher"], one["method"]) == ("first", "second", "peer")
    assert one["ceiling"] == pytest.approx(np.mean(one["ends"]), abs=1e-3)


def test_a_forecast_needs_several_samples_and_two_names(tmp_path):
    lone = [model(name, [problem("p", 1, {}, samples=1)]) for name in ("a", "b")]
    (tmp_path / "kappa.json").write_text(json.dumps({"models": lone}))
    with pytest.raises(PromptError, match="--samples 8"):
        forecast(tmp_path, completions=8)
    (tmp_path / "kappa.json").write_text(json.dumps({"models": worked_example()}))
    for pair in (["left"], ["left", "left"], ["left", "right", "x"]):
        with pytest.raises(RecipeError, match="--pair takes"):
            forecast(tmp_path, pair=pair, completions=8)
