"""What each detector looks at, as a pure function of one agent's history.

Success flattens groups, raises agreement and lowers entropy just as collapse does: there the
detectors inform. They alarm where rewards come from the policy's own certainty, or where the reward
has not risen. Everything else here does not happen to a policy that gets better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from corl.run.health.config import HealthConfig
from corl.run.health.history import History

Level = Literal["info", "alarm"]

# A rise of entropy from next to nothing is noise, however many times its start it is.
_LEAST_ENTROPY_RISE = 0.02


@dataclass(frozen=True, slots=True)
class Finding:
    """What a detector has to say of one agent at one step."""

    detector: str
    level: Level
    value: float
    """The figure that crossed: a ratio to the start, a rise, or the figure itself."""
    threshold: float
    what: str
    """What was seen, to be followed by `by step N`."""
    means: str


Detector = Callable[[History, HealthConfig], Finding | None]


def is_rewarded_by_itself(history: History) -> bool:
    """Whether rewards are the policy's own token statistics: labelled prompts, yet no label."""
    labelled = history.now("labelled_share")
    return labelled is not None and labelled > 0 and history.is_absent("peer_agreement")


def reward_std_collapse(history: History, config: HealthConfig) -> Finding | None:
    """Rewards of a group have become equal: the update has nothing to prefer."""
    ratio, limit = history.ratio("reward_std"), config.reward_std_collapse
    if ratio is None or limit is None or ratio >= limit:
        return None
    level: Level = "alarm"
    if is_rewarded_by_itself(history):
        means = "the policy is agreeing with itself"
    elif (history.rise("reward_mean") or 0.0) > 0:
        level, means = "info", "groups agree with their labels; accuracy alone tells if rightly"
    else:
        means = "groups agree, but not with their labels"
    what = f"group reward std fell to {_percent(ratio)} of its start"
    return Finding("reward_std_collapse", level, ratio, limit, what, means)


def entropy_collapse(history: History, config: HealthConfig) -> Finding | None:
    """The policy has become certain; without a vote behind it, of anything at all."""
    ratio, limit = history.ratio("entropy"), config.entropy_collapse
    if ratio is None or limit is None or ratio >= limit:
        return None
    what = f"token entropy fell to {_percent(ratio)} of its start"
    if is_rewarded_by_itself(history):
        means = "the policy is certain, and nothing but its own certainty rewards it"
        return Finding("entropy_collapse", "alarm", ratio, limit, what, means)
    means = "it hardly explores any more"
    return Finding("entropy_collapse", "info", ratio, limit, what, means)


def entropy_rise(history: History, config: HealthConfig) -> Finding | None:
    """Rewarded for its certainty, the policy grows less certain: it comes apart."""
    if not is_rewarded_by_itself(history):
        return None
    means = "rewarded for certainty, the policy grows less certain and comes apart"
    return _risen_entropy(history, config.entropy_rise, name="entropy_rise", means=means)


def entropy_rise_voted(history: History, config: HealthConfig) -> Finding | None:
    """Answers scatter and earn no more for it. A learner's entropy may wobble by half."""
    if is_rewarded_by_itself(history) or (history.rise("reward_mean") or 0.0) > 0:
        return None
    means = "answers scatter without earning more"
    return _risen_entropy(
        history, config.entropy_rise_voted, name="entropy_rise_voted", means=means
    )


def _risen_entropy(
    history: History, limit: float | None, *, name: str, means: str
) -> Finding | None:
    ratio, rise = history.ratio("entropy"), history.rise("entropy")
    if ratio is None or rise is None or limit is None or ratio <= limit:
        return None
    if rise < _LEAST_ENTROPY_RISE or not history.lies_above("entropy"):
        return None
    what = f"token entropy rose to {_percent(ratio)} of its start"
    return Finding(name, "alarm", ratio, limit, what, means)


def length_inflation(history: History, config: HealthConfig) -> Finding | None:
    """Completions grow: more tokens to be certain of."""
    ratio, limit = history.ratio("length_mean"), config.length_inflation
    if ratio is None or limit is None or ratio <= limit:
        return None
    what = f"mean length rose to {_percent(ratio)} of its start"
    means = "completions are drawn out"
    return Finding("length_inflation", "alarm", ratio, limit, what, means)


def length_deflation(history: History, config: HealthConfig) -> Finding | None:
    """Completions shrink: the reasoning is dropped."""
    ratio, limit = history.ratio("length_mean"), config.length_deflation
    if ratio is None or limit is None or ratio >= limit:
        return None
    what = f"mean length fell to {_percent(ratio)} of its start"
    means = "completions are cut down to next to nothing"
    return Finding("length_deflation", "alarm", ratio, limit, what, means)


def truncated_rise(history: History, config: HealthConfig) -> Finding | None:
    """Completions run into the length cap."""
    rise, limit = history.rise("truncated_share"), config.truncated_rise
    if rise is None or limit is None or rise <= limit:
        return None
    what = f"the share of completions cut off rose by {_points(rise)}"
    means = "they run into sampling.max_tokens"
    return Finding("truncated_rise", "alarm", rise, limit, what, means)


def repetition_rise(history: History, config: HealthConfig) -> Finding | None:
    """Completions loop."""
    rise, limit = history.rise("repetition"), config.repetition_rise
    if rise is None or limit is None or rise <= limit:
        return None
    what = f"the share of repeated 4-grams rose by {_points(rise)}"
    means = "completions go round in circles"
    return Finding("repetition_rise", "alarm", rise, limit, what, means)


def answered_fall(history: History, config: HealthConfig) -> Finding | None:
    """Completions no longer state an answer."""
    ratio, limit = history.ratio("answered_share"), config.answered_fall
    if ratio is None or limit is None or ratio >= limit:
        return None
    what = f"the share of completions with an answer fell to {_percent(ratio)} of its start"
    means = "the policy no longer answers"
    return Finding("answered_fall", "alarm", ratio, limit, what, means)


def labelled_floor(history: History, config: HealthConfig) -> Finding | None:
    """Hardly a prompt has a label. From the start on, that is the recipe's and not an illness."""
    share, limit = history.now("labelled_share"), config.labelled_floor
    if share is None or limit is None or share >= limit:
        return None
    start = history.start("labelled_share")
    level: Level = "info" if start is None or start < limit else "alarm"
    what = f"only {_percent(share)} of prompts had a label"
    return Finding("labelled_floor", level, share, limit, what, "next to nothing is learned")


def nonfinite(history: History, config: HealthConfig) -> Finding | None:
    """Sampled tokens have NaN or infinite log-probabilities."""
    share, limit = history.now("nonfinite_share"), config.nonfinite_share
    if share is None or limit is None or share <= limit:
        return None
    what = f"{_percent(share)} of sampled tokens had no finite log-probability"
    means = "the weights overflow; fp32 compute or a lower learning rate helps"
    return Finding("nonfinite", "alarm", share, limit, what, means)


def kl_ceiling(history: History, config: HealthConfig) -> Finding | None:
    """The policy has gone far from where it began, for better or worse."""
    kl, limit = history.now("kl"), config.kl_ceiling
    if kl is None or limit is None or kl <= limit:
        return None
    what = f"KL to the starting policy rose to {kl:.2f} nats a token"
    return Finding("kl_ceiling", "info", kl, limit, what, "it has gone far from its start")


def agreement_saturation(history: History, config: HealthConfig) -> Finding | None:
    """Own votes are the labels; from the start on where an agent, or its twin, labels itself."""
    agreement, limit = history.now("peer_agreement"), config.agreement_ceiling
    if agreement is None or limit is None or agreement < limit:
        return None
    start = history.start("peer_agreement")
    what = f"its votes equalled their labels on {_percent(agreement)} of prompts"
    if start is not None and start >= limit:
        means = "as from the start: it labels itself, or shares noise or weights with its peer"
    else:
        means = "peers have no more to tell each other, be they right or wrong"
    return Finding("agreement_saturation", "info", agreement, limit, what, means)


def flat_groups(history: History, config: HealthConfig) -> Finding | None:
    """Most groups have one reward for all."""
    share, limit = history.now("flat_share"), config.flat_ceiling
    if share is None or limit is None or share < limit:
        return None
    what = f"{_percent(share)} of groups had one reward for all completions"
    return Finding("flat_groups", "info", share, limit, what, "little is left to learn from")


def single_answer(history: History, config: HealthConfig) -> Finding | None:
    """Groups hold one answer. None at all is the business of `answered_fall`."""
    count, limit = history.now("distinct_answers"), config.distinct_floor
    if count is None or limit is None or not 0 < count <= limit:
        return None
    what = f"a group held {count:.2f} different answers"
    return Finding("single_answer", "info", count, limit, what, "votes have become a formality")


DETECTORS: tuple[Detector, ...] = (
    reward_std_collapse,
    entropy_collapse,
    entropy_rise,
    entropy_rise_voted,
    length_inflation,
    length_deflation,
    truncated_rise,
    repetition_rise,
    answered_fall,
    labelled_floor,
    nonfinite,
    kl_ceiling,
    agreement_saturation,
    flat_groups,
    single_answer,
)
"""In the order in which they speak."""


def examine(history: History, config: HealthConfig) -> list[Finding]:
    """All that is found now; nothing before the history is ready."""
    if not history.is_ready:
        return []
    found = (detector(history, config) for detector in DETECTORS)
    return [finding for finding in found if finding is not None]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _points(rise: float) -> str:
    return f"{100 * rise:.0f} points"
