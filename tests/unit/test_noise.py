"""Noise depends on its coordinates and on nothing else."""

import numpy as np
import pytest

from corl.rollout.noise import Noise

PINNED = [0.10666420165592938, 0.43137986459716715, 0.8191315656753959]


def test_values_lie_in_the_half_open_unit_interval():
    values = Noise(0, "a").uniforms(0, 0, 0, 100_000)
    assert values.dtype == np.float64
    assert 0.0 <= values.min() < 1e-3 and 1.0 - 1e-3 < values.max() < 1.0


def test_a_longer_draw_starts_with_the_shorter():
    noise = Noise(3, "a")
    np.testing.assert_array_equal(noise.uniforms(5, 1, 2, 10), noise.uniforms(5, 1, 2, 23)[:10])


def test_values_are_pinned():
    """A change here breaks the resume of every run that was started before it."""
    np.testing.assert_array_equal(Noise(0, "a").uniforms(0, 0, 0, 3), PINNED)


def test_a_batch_equals_its_rows_whatever_the_order():
    noise = Noise(1, "a")
    prompts, completions = [4, 0, 4, 2], [1, 7, 0, 3]
    batch = noise.batch(9, prompts, completions, 6)
    for row, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        np.testing.assert_array_equal(batch[row], noise.uniforms(9, prompt, completion, 6))


@pytest.mark.parametrize(
    "other",
    [
        Noise(1, "a").uniforms(0, 0, 0, 4000),
        Noise(0, "b").uniforms(0, 0, 0, 4000),
        Noise(0, "a").uniforms(1, 0, 0, 4000),
        Noise(0, "a").uniforms(0, 1, 0, 4000),
        Noise(0, "a").uniforms(0, 0, 1, 4000),
    ],
    ids=["seed", "agent", "step", "prompt", "completion"],
)
def test_every_coordinate_gives_an_independent_stream(other):
    base = Noise(0, "a").uniforms(0, 0, 0, 4000)
    assert not np.isin(base, other).any()
    # The standard error of the correlation of 4000 independent pairs is 0.016.
    assert abs(np.corrcoef(base, other)[0, 1]) < 0.07


def test_neighbouring_rows_are_uncorrelated_and_uniform():
    first = Noise(0, "a").batch(0, range(4000), [0] * 4000, 2)
    assert abs(np.corrcoef(first[:-1, 0], first[1:, 0])[0, 1]) < 0.07
    assert abs(np.corrcoef(first[:, 0], first[:, 1])[0, 1]) < 0.07
    counts = np.histogram(first[:, 0], bins=20, range=(0, 1))[0]
    # Chi-square with 19 degrees of freedom: 43.8 is its 99.9th percentile.
    assert ((counts - 200) ** 2 / 200).sum() < 43.8


def test_agent_names_and_steps_never_spell_the_same_key():
    one = Noise(1, "a:2").uniforms(3, 0, 0, 4)
    two = Noise(1, "a").uniforms(23, 0, 0, 4)
    assert not np.isin(one, two).any()
