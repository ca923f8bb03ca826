"""What the engine reports while sampling is what a plain forward pass computes afterwards.

Each family brings its own trap: Qwen3 normalises queries and keys, Llama groups them, GPT-NeoX
rotates a part of each head, Gemma 3 has a sliding window shorter than these sequences.
"""

import dataclasses
import random
from pathlib import Path

import pytest
import torch

from corl.errors import PromptError
from corl.policy import Policy, load_policy
from corl.rollout.noise import Noise
from corl.rollout.rollout import Rollout
from corl.rollout.sampling import SamplingParameters
from corl.rollout.transformers_engine import TransformersEngine
from tiny_models import FAMILIES, build_checkpoint, tiny_tokenizer

NOISE = Noise(seed=0, agent="a")
LENGTHS = (3, 9, 14, 9, 6)
K = 4


@pytest.fixture(scope="module")
def directories(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("families")
    return {family: build_checkpoint(root / family, family) for family in FAMILIES}


@pytest.fixture(params=FAMILIES)
def policy(request, directories) -> Policy:
    return load_policy(directories[request.param])


@pytest.fixture
def qwen(directories) -> Policy:
    return load_policy(directories["qwen3"])


def prompts_of(lengths) -> list[list[int]]:
    rng = random.Random(0)
    return [[rng.randrange(5, 95) for _ in range(length)] for length in lengths]


def sample(policy, prompts, *, completions=K, step=0, max_tokens=24, engine=None, **parameters):
    sampling = SamplingParameters(max_tokens=max_tokens, **parameters)
    engine = engine or TransformersEngine(policy)
    return engine.sample(
        prompts, completions=completions, sampling=sampling, noise=NOISE, step=step
    )


def full_logps(policy: Policy, rollout: Rollout, temperature: float = 1.0):
    """Log-distributions [T, V] of every completion by one right-padded forward pass."""
    rows = [
        (prompt, ids)
        for prompt, group in zip(rollout.prompt_ids, rollout.token_ids, strict=True)
        for ids in group
    ]
    width = max(len(prompt) + len(ids) for prompt, ids in rows)
    batch = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros_like(batch)
    for row, (prompt, ids) in enumerate(rows):
        batch[row, : len(prompt) + len(ids)] = torch.tensor(prompt + ids)
        mask[row, : len(prompt) + len(ids)] = 1
    with torch.no_grad():
        logits = policy.model(batch, attention_mask=mask, use_cache=False).logits / temperature
    logps = torch.log_softmax(logits, -1)
    return [
        logps[row, len(prompt) - 1 : len(prompt) + len(ids) - 1]
        for row, (prompt, ids) in enumerate(rows)
    ]


def flat(groups):
    return [item for group in groups for item in group]


def assert_logps_match(policy, rollout, temperature=1.0):
    expected = full_logps(policy, rollout, temperature)
    for ids, logps, full in zip(
        flat(rollout.token_ids), flat(rollout.logps), expected, strict=True
    ):
        chosen = full.gather(1, torch.tensor(ids)[:, None])[:, 0]
        torch.testing.assert_close(logps, chosen, atol=1e-5, rtol=0)


def assert_same(one: Rollout, other: Rollout):
    assert one.token_ids == other.token_ids
    assert one.truncated == other.truncated
    for left, right in zip(flat(one.logps), flat(other.logps), strict=True):
        torch.testing.assert_close(left, right, atol=1e-5, rtol=0)


def test_log_probabilities_equal_a_full_forward_pass_on_ragged_prompts(policy):
    rollout = sample(policy, prompts_of(LENGTHS))
    lengths = flat(rollout.lengths)
    assert max(lengths) == 24 and min(lengths) < 24, "some rows end early, some are cut off"
    assert_logps_match(policy, rollout)


def test_log_probabilities_equal_a_full_forward_pass_without_padding(policy):
    assert_logps_match(policy, sample(policy, prompts_of([9] * 4)))


def test_entropy_and_self_certainty_equal_a_full_forward_pass(policy):
    rollout = sample(policy, prompts_of(LENGTHS))
    full = full_logps(policy, rollout)
    entropy = torch.stack([-(logps.exp() * logps).sum(-1).mean() for logps in full])
    vocabulary = full[0].shape[1]
    certainty = [(-torch.tensor(vocabulary).log() - logps.mean(-1)).mean() for logps in full]
    torch.testing.assert_close(rollout.entropy.flatten(), entropy, atol=2e-5, rtol=0)
    torch.testing.assert_close(
        rollout.self_certainty.flatten(), torch.stack(certainty), atol=2e-5, rtol=0
    )
    assert entropy.max() < 0.95 * torch.tensor(vocabulary).log(), "the models are not uniform"


def test_padding_changes_nothing(policy):
    prompts = prompts_of(LENGTHS)
    together = sample(policy, prompts)
    for index, prompt in enumerate(prompts):
        alone = TransformersEngine(policy).sample(
            [prompt],
            completions=K,
            sampling=SamplingParameters(max_tokens=24),
            noise=Shifted(index),
            step=0,
        )
        assert alone.token_ids[0] == together.token_ids[index]
        for one, other in zip(alone.logps[0], together.logps[index], strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


class Shifted(Noise):
    """The noise of a later prompt, for a call that holds that prompt alone."""

    def __new__(cls, _offset):
        return super().__new__(cls)

    def __init__(self, offset):
        super().__init__(NOISE.seed, NOISE.agent)
        object.__setattr__(self, "offset", offset)

    def batch(self, step, prompts, completions, length):
        return super().batch(step, [self.offset + p for p in prompts], completions, length)


@pytest.mark.parametrize("max_rows", [1, 3, 4, 8, 13])
def test_batches_of_any_size_draw_the_same(qwen, max_rows):
    prompts = prompts_of(LENGTHS)
    small = sample(qwen, prompts, engine=TransformersEngine(qwen, max_rows=max_rows))
    assert_same(small, sample(qwen, prompts))


def test_rows_that_leave_the_batch_change_nothing(policy):
    prompts = prompts_of(LENGTHS)
    policy.stop_ids = frozenset(range(1, 12))  # rows end all the time
    at_once = sample(policy, prompts, engine=TransformersEngine(policy, finished_share=1e-9))
    never = sample(policy, prompts, engine=TransformersEngine(policy, finished_share=2.0))
    assert_same(at_once, never)
    assert_logps_match(policy, at_once)
    assert len(set(flat(at_once.lengths))) > 5


def test_finished_rows_are_not_computed_on(qwen):
    qwen.stop_ids = frozenset(range(1, 40))
    widths = watch_rows(qwen)
    sample(qwen, prompts_of([6] * 4))
    assert widths[0] == 4 and widths[1] <= 16 and widths[-1] < 8
    assert widths == [4, *sorted(widths[1:], reverse=True)]


def watch_rows(policy) -> list[int]:
    """Rows of every forward pass from now on."""
    widths: list[int] = []

    def note(_module, _args, kwargs):
        widths.append(kwargs["input_ids"].shape[0])

    policy.model.register_forward_pre_hook(note, with_kwargs=True)
    return widths


def test_a_prompt_is_read_once_for_all_its_completions(qwen):
    qwen.stop_ids = frozenset()
    widths = watch_rows(qwen)
    sample(qwen, prompts_of(LENGTHS), max_tokens=5)
    assert widths == [5, 20, 20, 20, 20]


@pytest.mark.parametrize("temperature", [0.6, 1.7])
def test_temperature_scales_the_reported_distribution(policy, temperature):
    rollout = sample(policy, prompts_of(LENGTHS), temperature=temperature)
    assert_logps_match(policy, rollout, temperature)


def test_top_p_limits_draws_and_reports_the_whole_distribution(qwen):
    rollout = sample(qwen, prompts_of(LENGTHS), top_p=0.3)
    assert_logps_match(qwen, rollout)
    for ids, full in zip(flat(rollout.token_ids), full_logps(qwen, rollout), strict=True):
        for token, logps in zip(ids, full, strict=True):
            more_probable = logps[logps > logps[token] + 1e-5].exp().sum()
            assert more_probable < 0.3


def test_greedy_equals_transformers_generate(policy):
    prompt = prompts_of([7])[0]
    rollout = sample(policy, [prompt], completions=1, temperature=0.0)
    generated = policy.model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, 7),
        do_sample=False,
        max_new_tokens=24,
        eos_token_id=sorted(policy.stop_ids),
    )
    assert rollout.token_ids[0][0] == generated[0, 7:].tolist()


def test_generation_defaults_of_the_checkpoint_never_leak(directories, tmp_path):
    leaky = build_checkpoint(
        tmp_path,
        generation={
            "do_sample": True,
            "temperature": 0.1,
            "top_k": 1,
            "top_p": 0.1,
            "repetition_penalty": 5.0,
            "max_new_tokens": 2,
        },
    )
    prompts = prompts_of(LENGTHS)
    assert_same(
        sample(load_policy(leaky), prompts), sample(load_policy(directories["qwen3"]), prompts)
    )


def test_a_stop_token_is_kept_and_only_its_absence_is_truncation(qwen):
    rollout = sample(qwen, prompts_of(LENGTHS))
    for ids, truncated in zip(flat(rollout.token_ids), flat(rollout.truncated), strict=True):
        assert not qwen.stop_ids.intersection(ids[:-1])
        assert truncated == (ids[-1] not in qwen.stop_ids)
        assert not truncated or len(ids) == 24
    assert rollout.truncated_share == sum(flat(rollout.truncated)) / 20


def test_padding_may_be_the_end_token(directories, tmp_path):
    tokenizer = tiny_tokenizer(pad_is_eos=True)
    policy = load_policy(build_checkpoint(tmp_path, tokenizer=tokenizer))
    assert policy.tokenizer.pad_token_id in policy.stop_ids
    prompts = prompts_of(LENGTHS)
    assert_same(sample(policy, prompts), sample(load_policy(directories["qwen3"]), prompts))


def test_draws_do_not_depend_on_the_length_limit(qwen):
    prompts = prompts_of(LENGTHS)
    short, long = sample(qwen, prompts, max_tokens=7), sample(qwen, prompts, max_tokens=24)
    assert flat(short.token_ids) == [ids[:7] for ids in flat(long.token_ids)]


def test_steps_draw_different_completions(qwen):
    prompts = prompts_of(LENGTHS)
    assert sample(qwen, prompts).token_ids != sample(qwen, prompts, step=1).token_ids


def test_the_context_limits_each_prompt_by_its_own_length(policy):
    policy.context_length = 20
    policy.stop_ids = frozenset()
    rollout = sample(policy, prompts_of((3, 14, 19)), max_tokens=12)
    assert [set(lengths) for lengths in rollout.lengths] == [{12}, {6}, {1}]
    assert rollout.truncated_share == 1.0
    assert_logps_match(policy, rollout)


def test_prompts_that_cannot_be_continued_are_refused(qwen):
    with pytest.raises(PromptError, match="prompt 1 has 128 tokens.*context is 128"):
        sample(qwen, prompts_of((3, 128)))
    with pytest.raises(PromptError, match="prompt 0 has no tokens"):
        sample(qwen, [[]])


def test_texts_are_the_tokens_without_special_ones(qwen):
    rollout = sample(qwen, prompts_of(LENGTHS))
    for ids, text in zip(flat(rollout.token_ids), flat(rollout.texts), strict=True):
        assert text == "".join(qwen.tokenizer.convert_ids_to_tokens([i for i in ids if i > 4]))


def test_stop_texts_end_a_completion_at_their_last_token(qwen):
    qwen.stop_ids = frozenset()
    prompts = prompts_of(LENGTHS)
    free = sample(qwen, prompts, max_tokens=60)
    stops = (free.texts[0][0][25:27], free.texts[2][1][40])
    stopped = sample(qwen, prompts, max_tokens=60, stop=stops)
    for ids, whole, truncated in zip(
        flat(stopped.token_ids), flat(free.token_ids), flat(stopped.truncated), strict=True
    ):
        texts = [qwen.tokenizer.decode(whole[:length]) for length in range(61)]
        ends = [length for length in range(61) if any(stop in texts[length] for stop in stops)]
        assert ids == whole[: min(ends, default=60)] and truncated == (not ends)
    assert stopped.num_tokens < free.num_tokens
    assert_logps_match(qwen, stopped)


def test_ids_past_the_tokenizer_are_never_drawn(tmp_path):
    policy = load_policy(build_checkpoint(tmp_path, vocab_size=512))
    rollout = sample(policy, prompts_of(LENGTHS))
    assert max(max(ids) for ids in flat(rollout.token_ids)) < len(policy.tokenizer)
    assert_logps_match(policy, rollout)


def test_sampling_leaves_the_model_trainable(policy):
    before = [module.training for module in policy.model.modules()]
    rollout = sample(policy, prompts_of(LENGTHS))
    assert [module.training for module in policy.model.modules()] == before
    logits = policy.model(torch.tensor([rollout.prompt_ids[2]]), use_cache=False).logits
    (torch.log_softmax(logits, -1).sum() * rollout.logps[0][0].sum()).backward()
    assert all(parameter.grad is not None for parameter in policy.model.parameters())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_low_precision_copy_follows_the_master_weights(directories, family):
    policy = load_policy(directories[family])
    policy.compute_dtype = torch.bfloat16
    engine = TransformersEngine(policy)
    copy = engine._model
    assert {parameter.dtype for parameter in copy.parameters()} == {torch.bfloat16}
    assert {parameter.dtype for parameter in policy.model.parameters()} == {torch.float32}
    tied = policy.model.config.tie_word_embeddings
    shared = copy.get_input_embeddings().weight is copy.get_output_embeddings().weight
    assert shared == tied
    for name, buffer in policy.model.named_buffers():
        assert copy.get_buffer(name).dtype == buffer.dtype

    prompts = prompts_of(LENGTHS)
    before = sample(policy, prompts, engine=engine)
    with torch.no_grad():
        for parameter in policy.model.parameters():
            parameter.mul_(-1.0)
    assert sample(policy, prompts, engine=engine).token_ids == before.token_ids
    engine.sync()
    assert engine._model is copy
    after = sample(policy, prompts, engine=engine)
    assert after.token_ids != before.token_ids
    assert_same(after, sample(policy, prompts))  # an engine made from the new weights


def test_in_one_dtype_the_engine_reads_the_learners_own_module(qwen):
    engine = TransformersEngine(qwen)
    before = sample(qwen, prompts_of(LENGTHS), engine=engine)
    with torch.no_grad():
        qwen.model.get_input_embeddings().weight.mul_(-1.0)
    engine.sync()
    after = sample(qwen, prompts_of(LENGTHS), engine=engine)
    assert after.token_ids != before.token_ids
    assert_logps_match(qwen, after)


def test_gradient_checkpointing_does_not_cost_the_cache(directories):
    prompts = prompts_of(LENGTHS)
    checkpointed = load_policy(directories["llama"], gradient_checkpointing=True)
    assert_same(sample(checkpointed, prompts), sample(load_policy(directories["llama"]), prompts))


def test_a_model_without_position_argument_is_never_padded(qwen):
    engine = TransformersEngine(qwen)
    engine._interface = dataclasses.replace(engine._interface, takes_positions=False)
    seen: list[bool] = []
    qwen.model.register_forward_pre_hook(
        lambda _module, _args, kwargs: seen.append("attention_mask" in kwargs), with_kwargs=True
    )
    rollout = sample(qwen, prompts_of(LENGTHS), engine=engine)
    assert not any(seen)
    assert_logps_match(qwen, rollout)


def test_phases_are_timed(qwen):
    rollout = sample(qwen, prompts_of(LENGTHS))
    assert rollout.prefill_s > 0 and rollout.decode_s > 0
    assert rollout.num_tokens == sum(flat(rollout.lengths))
