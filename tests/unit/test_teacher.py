"""The EMA teacher: its weights against a hand-rolled loop, its schedule, its memory."""

import math

import pytest
import torch
from tiny_policies import same_bytes, tiny_policy, weights_of

from corl.config import OptimizerConfig, SupervisionConfig
from corl.errors import RecipeError
from corl.policy import ModelFacts
from corl.policy.memory import memory_need
from corl.policy.teacher import follow, teacher_dtype
from corl.supervision import load_supervision


def co_rewarding_2(**options):
    return load_supervision(SupervisionConfig(method="co_rewarding_2", options=options))


@pytest.mark.parametrize("family", ["qwen3", "gpt_neox"])
@pytest.mark.parametrize("policy_dtype", [torch.float32, torch.bfloat16])
def test_the_teacher_is_the_average_that_a_loop_in_float64_finds(family, policy_dtype):
    teacher, policy = tiny_policy(family), tiny_policy(family, seed=1)
    policy.model.to(policy_dtype)
    expected = {name: weight.double() for name, weight in weights_of(teacher).items()}
    method, steps = co_rewarding_2(), 7
    for step in range(1, steps + 1):
        with torch.no_grad():
            for param in policy.model.parameters():
                param.add_(torch.randn(param.shape, dtype=param.dtype))
        follow(teacher, policy, share=method.teacher_share(step, steps=steps))
        share = 1e-5 + 0.5 * (0.01 - 1e-5) * (1 + math.cos(math.pi * step / steps))
        for name, weight in weights_of(policy).items():
            expected[name] = share * weight.double() + (1 - share) * expected[name]
    moved = weights_of(teacher)
    for name, weight in expected.items():
        torch.testing.assert_close(moved[name].double(), weight, atol=1e-6, rtol=1e-6)
    assert not same_bytes(moved, weights_of(tiny_policy(family)))


def test_the_policy_stays_and_a_share_of_nothing_or_all_is_exact():
    teacher, policy = tiny_policy(), tiny_policy(seed=1)
    before, theirs = weights_of(teacher), weights_of(policy)
    follow(teacher, policy, share=0.0)
    assert same_bytes(weights_of(teacher), before)
    follow(teacher, policy, share=1.0)
    assert same_bytes(weights_of(teacher), theirs)
    assert same_bytes(weights_of(policy), theirs)


def test_the_share_falls_from_its_start_to_its_end_over_the_run():
    shares = [co_rewarding_2().teacher_share(step, steps=100) for step in range(1, 101)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == pytest.approx(0.01, rel=1e-3)
    assert shares[49] == pytest.approx((0.01 + 1e-5) / 2)
    assert shares[-1] == pytest.approx(1e-5)


def test_options_may_come_as_yaml_text_and_must_be_shares():
    assert co_rewarding_2(alpha_end="1e-5").alpha_end == 1e-5
    for wrong in (-0.1, 1.5, "much", None, float("nan")):
        with pytest.raises(RecipeError, match="alpha_start"):
            co_rewarding_2(alpha_start=wrong)


def test_a_teacher_is_float32_whatever_the_policy_is():
    assert [teacher_dtype(kind) for kind in ("auto", "float32", "bfloat16")] == [
        "auto",
        "float32",
        "auto",
    ]


def need(**changes):
    options = {
        "agent_dtype": "auto",
        "device": "cpu",
        "optimizer": OptimizerConfig(),
        "keeps_reference": False,
        "completions": 6,
        "max_rows": 4,
        "sequence_length": 8,
        **changes,
    }
    model = ModelFacts("m", "M", "m", 1000, 64, 10, 2, 8, 4, False)
    return memory_need(model, **options)


def test_a_teacher_takes_four_bytes_a_parameter_and_two_more_for_its_copy_on_a_gpu():
    plain = need()
    for device, dtype, size in (
        ("cpu", "auto", 4000),
        ("cpu", "bfloat16", 4000),
        ("cuda", "auto", 6000),
        ("cuda", "float32", 4000),
        ("cuda", "bfloat16", 6000),
    ):
        assert need(keeps_teacher=True, device=device, agent_dtype=dtype).teacher == size
    assert need(keeps_teacher=True).total == plain.total + 4000


def test_the_kl_term_needs_no_reference_beside_the_teacher():
    assert need(keeps_reference=True).reference == 4000
    assert need(keeps_reference=True, keeps_teacher=True).reference == 0
