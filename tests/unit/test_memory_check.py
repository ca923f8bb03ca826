"""Agents of one device against its memory: together, by turns, and what would make them fit."""

from dataclasses import replace

import pytest

from corl.errors import RecipeError
from corl.launch.memory_check import check_memory, peak
from corl.policy.memory import MemoryNeed

GIB = 2**30
NEED = MemoryNeed(
    num_parameters=GIB // 4, adapter_parameters=0, weights=GIB, gradients=GIB, optimizer=2 * GIB,
    compute_copy=0, reference=0, teacher=0, cache=GIB // 2, activations=3 * GIB,
)  # fmt: skip


def test_phases_share_what_is_held_and_add_their_own():
    assert NEED.held == 3 * GIB
    assert NEED.sampling == 3.5 * GIB
    assert NEED.learning == 7 * GIB == NEED.total
    assert replace(NEED, cache=9 * GIB).total == 12 * GIB


def test_agents_by_turns_hold_all_and_peak_one_at_a_time():
    small = replace(NEED, activations=GIB)
    assert peak([NEED, small], by_turns=False) == 12 * GIB
    assert peak([NEED, small], by_turns=True) == (3 + 3 + 4) * GIB
    assert peak([], by_turns=True) == 0


@pytest.mark.parametrize(("by_turns", "fits"), [(True, True), (False, False)])
def test_what_fits_by_turns_may_not_fit_together(by_turns, fits, monkeypatch):
    monkeypatch.setattr("corl.launch.memory_check.available_bytes", lambda device: 11 * GIB)
    agents = {"left": ("cuda:0", NEED), "right": ("cuda:0", NEED)}
    if fits:
        check_memory(agents, by_turns=by_turns)
        return
    with pytest.raises(RecipeError) as raised:
        check_memory(agents, by_turns=by_turns)
    said = str(raised.value)
    assert "left and right need about 14.0 GiB on cuda:0, where 11.0 GiB are free" in said
    assert "launch: in_process, where agents take turns, saves about 4.0 GiB" in said
    assert "agents[].lora saves about 6.0 GiB" in said
    assert "a smaller optimizer.tokens_per_microbatch saves activations" in said


def test_each_device_is_judged_alone(monkeypatch):
    free = {"cuda:0": 8 * GIB, "cuda:1": 6 * GIB, "cpu": None}
    monkeypatch.setattr("corl.launch.memory_check.available_bytes", free.get)
    check_memory({"a": ("cuda:0", NEED), "b": ("cpu", NEED)}, by_turns=False)
    with pytest.raises(RecipeError, match="^b need about 7.0 GiB on cuda:1"):
        check_memory({"a": ("cuda:0", NEED), "b": ("cuda:1", NEED)}, by_turns=False)


def test_a_long_cache_names_the_rows_decoded_at_once(monkeypatch):
    monkeypatch.setattr("corl.launch.memory_check.available_bytes", lambda device: GIB)
    with pytest.raises(RecipeError, match="a smaller rollout.max_rows saves cache"):
        check_memory({"a": ("cpu", replace(NEED, cache=9 * GIB))}, by_turns=True)
