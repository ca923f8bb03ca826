"""Detectors on histories made by hand: collapse, success, noise, constants, missing values."""

import math
import random

import pytest
from pydantic import ValidationError

from corl.run.health.config import HealthConfig
from corl.run.health.detectors import DETECTORS
from corl.run.health.watch import Watch

STEPS = 40
HEALTHY = {
    "reward_mean": 0.45,
    "reward_std": 0.25,
    "peer_agreement": 0.55,
    "vote_support": 0.7,
    "labelled_share": 0.95,
    "flat_share": 0.4,
    "answered_share": 0.98,
    "distinct_answers": 2.6,
    "length_mean": 600.0,
    "truncated_share": 0.02,
    "entropy": 0.3,
    "repetition": 0.05,
    "kl": 0.01,
    "nonfinite_tokens": 0,
    "groups_flat": 6,
    "groups_unlabelled": 1,
    "groups_forwarded": 9,
}
CERTAIN = {"peer_agreement": None, "labelled_share": 1.0}
"""What records of methods without votes look like."""


def linear(start, end, *, by=STEPS):
    """A figure that moves from start to end in `by` steps and stays."""
    return lambda step: start + (end - start) * min(1.0, (step - 1) / (by - 1))


def history(*, steps=STEPS, noise=0.0, seed=0, **figures):
    """Records of one agent; a figure is a constant, or a function of the step."""
    draw = random.Random(seed)
    for step in range(1, steps + 1):
        record = {"step": step, "agent": "qwen", **HEALTHY, **figures}
        for key, value in record.items():
            value = value(step) if callable(value) else value
            if noise and isinstance(value, float):
                value *= math.exp(noise * draw.gauss(0, 1))
            record[key] = value
        yield record


def notices(records, **config):
    watch = Watch(HealthConfig(**config), completions_per_group=8)
    return [notice for record in records for notice in watch.observe(record)]


def alarms(records, **config):
    return {notice.detector: notice for notice in notices(records, **config) if notice.is_alarm}


def test_a_constant_history_says_nothing():
    assert notices(history()) == []


def test_success_is_information_and_never_an_alarm():
    """Reward and agreement go to 1, groups go flat, entropy goes to nothing."""
    success = history(
        reward_mean=linear(0.45, 1.0),
        reward_std=linear(0.25, 0.0),
        peer_agreement=linear(0.55, 1.0),
        flat_share=linear(0.4, 1.0),
        distinct_answers=linear(2.6, 1.0),
        entropy=linear(0.3, 0.001),
        length_mean=linear(600.0, 450.0),
        answered_share=linear(0.6, 1.0),
        kl=linear(0.0, 0.9),
        steps=60,
    )
    found = notices(success)
    assert {notice.level for notice in found} == {"info"}
    assert {notice.detector for notice in found} == {
        "reward_std_collapse",
        "entropy_collapse",
        "agreement_saturation",
        "flat_groups",
        "single_answer",
        "kl_ceiling",
    }


@pytest.mark.parametrize("seed", range(20))
def test_noise_of_small_batches_raises_no_alarm(seed):
    assert alarms(history(noise=0.15, seed=seed, steps=200)) == {}
    assert alarms(history(**CERTAIN, noise=0.07, seed=seed, steps=200)) == {}


def test_one_odd_step_raises_no_alarm():
    def spike(step):
        return 3000.0 if step in (15, 22, 27) else 600.0

    assert alarms(history(length_mean=spike, entropy=lambda step: 5.0 if step == 15 else 0.3)) == {}


def test_rewards_of_ones_own_certainty_that_become_equal_are_an_alarm():
    """The published curve of RENT: group reward std a tenth by step 20."""
    found = alarms(history(**CERTAIN, reward_std=linear(0.05, 0.003, by=20), entropy=0.3))
    notice = found["reward_std_collapse"]
    assert notice.step < 22
    percent = round(100 * notice.value)
    assert notice.message == (
        f"agent qwen: group reward std fell to {percent} % of its start by step {notice.step}: "
        "the policy is agreeing with itself"
    )


def test_flat_groups_are_an_alarm_where_the_reward_did_not_rise():
    found = alarms(history(reward_std=linear(0.25, 0.0), reward_mean=linear(0.45, 0.0)))
    assert "not with their labels" in found["reward_std_collapse"].message


def test_certainty_without_votes_is_an_alarm():
    found = alarms(history(**CERTAIN, entropy=linear(0.3, 0.01)))
    assert set(found) == {"entropy_collapse"}


def test_a_policy_that_comes_apart_is_an_alarm_early():
    """Entropy doubles in 40 steps: the alarm comes well before that."""
    found = alarms(history(**CERTAIN, entropy=linear(0.3, 0.6)))
    assert set(found) == {"entropy_rise"}
    assert found["entropy_rise"].step <= 22


def test_with_votes_entropy_may_rise_as_long_as_it_pays():
    scattering = {"entropy": linear(0.3, 0.9)}
    assert alarms(history(**scattering, reward_mean=linear(0.45, 0.9))) == {}
    assert set(alarms(history(**scattering))) == {"entropy_rise_voted"}
    assert alarms(history(entropy=linear(0.3, 0.5))) == {}


def test_a_rise_of_entropy_from_next_to_nothing_is_none():
    assert alarms(history(**CERTAIN, entropy=linear(0.002, 0.01))) == {}


def test_a_rise_that_does_not_stand_clear_of_the_first_steps_is_none():
    """The first steps hold one of 0.45; the latest have 0.44."""
    wavering = history(**CERTAIN, entropy=lambda step: 0.44 if step > 4 else (0.3, 0.45)[step == 4])
    assert alarms(wavering) == {}


@pytest.mark.parametrize(
    ("figures", "detector"),
    [
        ({"length_mean": linear(650.0, 1350.0)}, "length_inflation"),
        ({"length_mean": linear(600.0, 3.0)}, "length_deflation"),
        ({"truncated_share": linear(0.02, 0.9)}, "truncated_rise"),
        ({"repetition": linear(0.05, 0.8)}, "repetition_rise"),
        ({"answered_share": linear(0.98, 0.1)}, "answered_fall"),
        ({"labelled_share": linear(0.95, 0.05)}, "labelled_floor"),
        ({"nonfinite_tokens": lambda step: 2000 if step > 20 else 0}, "nonfinite"),
    ],
)
def test_each_way_to_fall_ill_has_its_alarm(figures, detector):
    assert set(alarms(history(**figures))) == {detector}


def test_few_labels_from_the_start_are_information():
    (notice,) = notices(history(labelled_share=0.1))
    assert (notice.detector, notice.level) == ("labelled_floor", "info")


def test_total_agreement_from_the_start_names_its_likely_cause():
    (notice,) = notices(history(peer_agreement=1.0))
    assert notice.level == "info"
    assert "labels itself" in notice.message


def test_groups_without_any_answer_are_not_taken_for_unanimous():
    assert notices(history(distinct_answers=0.0)) == []


@pytest.mark.parametrize("hole", [None, math.nan, math.inf])
@pytest.mark.parametrize("key", sorted(HEALTHY))
def test_missing_values_raise_no_alarm(hole, key):
    """Every third value missing, and all of them."""
    every_third = history(**{key: lambda step: hole if step % 3 == 0 else HEALTHY[key]})
    assert alarms(every_third) == {}
    assert alarms(history(**{key: hole})) == {}


def test_a_collapse_is_seen_through_missing_values():
    fall = linear(600.0, 3.0)
    found = alarms(history(length_mean=lambda step: None if step % 3 == 0 else fall(step)))
    assert set(found) == {"length_deflation"}


def test_records_without_newer_figures_are_read():
    records = [{"step": step, "agent": "qwen"} for step in range(1, STEPS)]
    assert notices(records) == []


def test_a_figure_that_starts_at_zero_has_no_ratio():
    assert alarms(history(reward_std=linear(0.0, 0.3), entropy=0.0)) == {}


def test_nothing_is_said_before_start_and_window_are_full():
    records = list(history(length_mean=lambda step: 600.0 if step <= 3 else 1.0))
    (notice,) = notices(records, warmup=4, window=6)
    assert notice.step == 10


def test_an_alarm_is_given_again_after_it_was_gone_information_is_not():
    def twice(step):
        return 1.0 if step in range(15, 21) or step in range(30, 36) else 600.0

    found = notices(history(length_mean=twice, steps=60))
    assert [notice.detector for notice in found] == ["length_deflation"] * 2
    assert [notice.step for notice in found] == [17, 32]

    def agreeing_twice(step):
        return 1.0 if step in range(15, 21) or step in range(30, 36) else 0.55

    (notice,) = notices(history(peer_agreement=agreeing_twice, steps=60))
    assert notice.step == 17


def test_a_threshold_of_null_turns_its_detector_off():
    """One history that trips every detector but those of the opposite direction."""
    for field in HealthConfig.model_fields:
        if field in ("policy", "warmup", "window"):
            continue
        assert HealthConfig(**{field: None}).model_dump()[field] is None
    assert alarms(history(length_mean=linear(600.0, 3.0)), length_deflation=None) == {}
    assert notices(history(labelled_share=0.1), labelled_floor=None) == []


def test_every_detector_obeys_a_threshold_of_its_own_name():
    thresholds = set(HealthConfig.model_fields) - {"policy", "warmup", "window"}
    assert len(thresholds) == len(DETECTORS)


def test_a_misspelt_threshold_is_refused():
    with pytest.raises(ValidationError, match="lenght_inflation"):
        HealthConfig(lenght_inflation=2.0)


@pytest.mark.parametrize(
    ("policy", "every", "keep", "kept"),
    [
        ("warn", 1, 2, 2),
        ("rollback", 0, 2, 2),
        ("rollback", 50, 2, 3),
        ("rollback", 1, 2, 11),
        ("rollback", 2, 9, 9),
    ],
)
def test_a_rollback_keeps_checkpoints_from_before_its_alarm(policy, every, keep, kept):
    config = HealthConfig(policy=policy, window=5)
    assert config.checkpoints_to_keep(keep=keep, every=every) == kept
