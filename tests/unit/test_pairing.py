"""The ring that a probe favours: search, warnings, recipe."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corl.config import load_recipe
from corl.diversity.basins import predict_ring
from corl.diversity.counts import Probed, probe_of
from corl.diversity.pairing import all_rings, edge_worth, pair, recipe_text, search
from corl.errors import RecipeError
from corl.supervision.peer import predecessor
from probe_cases import four_with_a_weak_one, model, problem


def brute_force(worth):
    """The best mean, edge by edge, through the supervision's own notion of who grades whom."""
    best = -np.inf
    for rest in permutations(range(1, len(worth))):
        ring = [str(n) for n in (0, *rest)]
        edges = [worth[int(name), int(predecessor(name, ring))] for name in ring]
        best = max(best, sum(edges) / len(edges))
    return best


@given(size=st.integers(2, 6), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_all_rings_equal_brute_force(size, seed):
    worth = np.random.default_rng(seed).normal(size=(size, size))
    rings = all_rings(worth)
    assert rings[0].worth == pytest.approx(brute_force(worth))
    assert len({ring.order for ring in rings}) == len(rings) == np.prod(range(1, size), initial=1)
    assert all(a.worth >= b.worth - 1e-9 for a, b in zip(rings, rings[1:], strict=False))


def test_eight_models_are_looked_at_exhaustively():
    worth = np.random.default_rng(3).normal(size=(8, 8))
    rings = all_rings(worth)
    assert len(rings) == 5040
    assert rings[0].worth == pytest.approx(brute_force(worth))


@pytest.mark.parametrize("seed", range(8))
def test_the_search_finds_what_the_exhaustive_one_does(seed):
    rng = np.random.default_rng(seed)
    worth = rng.uniform(size=(8, 8)) if seed % 2 else np.round(rng.uniform(size=(8, 8)), 1)
    found = search(worth)
    assert found.worth == pytest.approx(all_rings(worth)[0].worth)
    assert found.order[0] == 0 and sorted(found.order) == list(range(8))
    assert found == search(worth)


def test_the_search_finds_a_ring_planted_among_many():
    size = 14
    order = np.random.default_rng(0).permutation(size)
    worth = np.random.default_rng(1).uniform(0, 0.5, size=(size, size))
    worth[order, np.roll(order, 1)] = 1
    assert search(worth).worth == pytest.approx(1)


def test_direction_matters():
    worth = np.zeros((3, 3))
    worth[1, 0] = worth[2, 1] = worth[0, 2] = 1  # 0 teaches 1, 1 teaches 2, 2 teaches 0
    assert all_rings(worth)[0].order == (0, 1, 2)
    assert search(worth).order == (0, 1, 2)
    assert all_rings(worth.T)[0].order == (0, 2, 1)


def test_edges_are_the_signals_of_predictions():
    probed = probe_of(four_with_a_weak_one())
    worth = edge_worth(probed)
    first, second = predict_ring(probed, ["first", "second"], follows=False)
    assert worth[0, 1] == pytest.approx(first.signal)
    assert worth[1, 0] == pytest.approx(second.signal)
    assert (worth[:3, :3][~np.eye(3, dtype=bool)] > 0.6).all()
    assert (worth[:3, 3] < worth[:3, :3].max(1)).all()
    assert worth[2, 3] == worth[:3, 3].min()  # `weak` makes the mistakes of `third`


def test_the_weak_teacher_is_named_and_kept_from_the_one_it_harms_most():
    found = pair(probe_of(four_with_a_weak_one()))
    (weak,) = [edge for edge in found.edges if edge.teacher == "weak"]
    assert weak.pupil != "third"
    (warning,) = [text for text in found.warnings if "weak teacher" in text]
    assert warning.startswith("weak is a weak teacher: right in 12 %")
    assert f"its pupil {weak.pupil} in 58 %" in warning
    assert found.is_exhaustive and len(found.others) == 5
    assert all(worth <= found.worth for _, worth in found.others)
    assert [edge.pupil for edge in found.edges] == list(found.names)
    assert [edge.teacher for edge in found.edges] == [found.names[-1], *found.names[:-1]]


def test_peers_with_one_mistake_are_warned_of():
    twins = [
        model(name, [problem(f"p{n}", 6 if n % 3 == 0 else 2, {"x": 2 if n % 3 == 0 else 6})
                     for n in range(9)])
        for name in ("a", "b")
    ]  # fmt: skip
    warnings = pair(probe_of(twins)).warnings
    assert len(warnings) == 2 and all("more wrong than right" in text for text in warnings)
    differ = pair(probe_of(four_with_a_weak_one()[:3]))
    assert differ.warnings == []


def test_above_eight_models_a_search_decides():
    four = four_with_a_weak_one(2)
    many = [{**four[n % 3], "name": f"m{n}"} for n in range(9)]
    found = pair(probe_of(many))
    assert not found.is_exhaustive and found.others == ()
    kinds = [int(name[1:]) % 3 for name in found.names]
    assert all(kinds[n] != kinds[n - 1] for n in range(9))  # nobody is taught by a twin


def test_the_recipe_loads_and_means_the_ring(tmp_path):
    tree = four_with_a_weak_one()
    tree[1]["name"], tree[2]["name"] = "org/second model", "other/second model"
    probed = probe_of(tree)
    found = pair(probed)
    file = tmp_path / "ring.yaml"
    file.write_text(recipe_text(probed, found.names, prompts="train.jsonl", completions=12))
    recipe = load_recipe(file)
    called = {"org/second model": "second-model", "other/second model": "second-model-2"}
    expected = [called.get(name, name) for name in found.names]
    if expected.index("second-model-2") < expected.index("second-model"):
        swap = {"second-model": "second-model-2", "second-model-2": "second-model"}
        expected = [swap.get(name, name) for name in expected]
    assert list(recipe.ring) == expected
    assert recipe.supervision.method == "peer" and recipe.batch.completions == 12
    assert recipe.prompts.file == str(tmp_path / "train.jsonl")
    by_name = dict(zip(found.names, recipe.agents, strict=True))
    assert by_name["weak"].model == str(tmp_path / "checkpoints" / "weak")


def test_refusals():
    alone = Probed(("p",), ("x",), ())
    with pytest.raises(RecipeError, match="2 to 8 models"):
        pair(alone)
    with pytest.raises(RecipeError, match="square table"):
        search(np.full((3, 3), np.nan))
    with pytest.raises(RecipeError, match="2 to 8"):
        all_rings(np.zeros((9, 9)))
