"""Sampler, learner and a plain forward pass agree on prompts with images, family by family.

Each family brings its own trap: Qwen-VL's rotary positions in three dimensions, InternVL's and
SmolVLM's tiles, the empty images that Idefics pads rows with, Gemma 3's two-way attention within
an image. Prompts hold no image, one, or several of different sizes.
"""

import functools
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoImageProcessor, AutoModelForImageTextToText, AutoTokenizer

from corl.config import GrpoConfig, OptimizerConfig
from corl.errors import PromptError
from corl.policy import Policy, load_policy, save_policy
from corl.policy.learner import LearnBatch, Learner
from corl.policy.scoring import CompletionScorer
from corl.policy.vision.encode import EncodedPrompt, encode_seen
from corl.policy.vision.placeholders import placeholder_ids
from corl.policy.vision.positions import with_positions
from corl.policy.vision.towers import vision_parameters
from corl.rollout.noise import Noise
from corl.rollout.sampling import SamplingParameters
from corl.rollout.transformers_engine import TransformersEngine
from tiny_vision import VISION_FAMILIES, build_vision_checkpoint, picture

K = 3
TOKENS = 12
LETTERS = [60, 61]
NOISE = Noise(seed=0, agent="a")
SHOWN = (
    ("7+5=", []),
    ("how many?", [(40, 30)]),
    ("compare them", [(20, 50), (64, 64)]),
    ("a longer text without any picture", []),
    ("?", [(33, 17), (16, 16), (48, 48)]),
)


@pytest.fixture(scope="module")
def directories(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("vision")
    return {one: build_vision_checkpoint(root / one, one) for one in VISION_FAMILIES}


@pytest.fixture(params=VISION_FAMILIES)
def policy(request, directories) -> Policy:
    return load_policy(directories[request.param])


def pictures(sizes, seed):
    return [picture(*size, seed=10 * seed + place) for place, size in enumerate(sizes)]


def encoded(policy: Policy, shown=SHOWN) -> list[EncodedPrompt]:
    prompts = []
    for seed, (text, sizes) in enumerate(shown):
        one = encode_seen(policy.processor, text, pictures(sizes, seed))
        positioned = with_positions(one.vision, one.ids, policy.model)
        prompts.append(EncodedPrompt(one.ids, positioned))
    return prompts


def sample(policy, prompts, *, engine=None, places=None, **parameters):
    engine = engine or TransformersEngine(policy)
    return engine.sample(
        [prompt.ids for prompt in prompts],
        completions=K,
        sampling=SamplingParameters(max_tokens=TOKENS, **parameters),
        noise=NOISE,
        step=0,
        places=places,
        vision=[prompt.vision for prompt in prompts],
    )


def plain_logps(model, prompt: EncodedPrompt, tokens: list[int]) -> torch.Tensor:
    """[T, V] by transformers alone, which finds positions and masks itself; one row, no padding."""
    if hasattr(model.base_model, "rope_deltas"):
        model.base_model.rope_deltas = None
    ids = torch.tensor([prompt.ids + tokens])
    extra = {}
    if prompt.vision is not None:
        behind = torch.zeros(len(tokens), dtype=torch.long)
        extra = {k: v for k, v in prompt.vision.tensors.items() if k != "num_crops"}
        for key, values in prompt.vision.token_tensors.items():
            extra[key] = torch.cat([values, behind])[None]
    with torch.no_grad():
        logits = model(
            input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False, **extra
        ).logits
    if hasattr(model.base_model, "rope_deltas"):
        model.base_model.rope_deltas = None
    return torch.log_softmax(logits[0, len(prompt.ids) - 1 : -1], -1)


def rows(prompts, rollout):
    for prompt, group, logps in zip(prompts, rollout.token_ids, rollout.logps, strict=True):
        yield from ((prompt, ids, row) for ids, row in zip(group, logps, strict=True))


def worst(policy, prompts, rollout) -> float:
    return max(
        (logps - plain_logps(policy.model, prompt, ids).gather(1, torch.tensor(ids)[:, None])[:, 0])
        .abs()
        .max()
        .item()
        for prompt, ids, logps in rows(prompts, rollout)
    )


def scores_of(policy, prompts, rollout, **options):
    flat = list(rows(prompts, rollout))
    scorer = CompletionScorer(policy, temperature=1.0, **options)
    scores = scorer(
        [prompt.ids for prompt, _, _ in flat],
        [ids for _, ids, _ in flat],
        vision=[prompt.vision for prompt, _, _ in flat],
    )
    return scorer, scores, flat


def test_sampler_learner_and_plain_forward_agree(policy):
    prompts = encoded(policy)
    rollout = sample(policy, prompts)
    assert worst(policy, prompts, rollout) < 1e-5
    scorer, scores, flat = scores_of(policy, prompts, rollout)
    assert scorer.path == "chunked"
    for row, (_, ids, logps) in enumerate(flat):
        learned = scores.logps_bt[row, : len(ids)].detach()
        torch.testing.assert_close(learned, logps, atol=1e-5, rtol=0)


def test_images_matter_to_what_is_drawn(policy):
    """Else every test here would pass on a model that never looks."""
    prompts = encoded(policy)
    ids = policy.tokenizer("abc", add_special_tokens=False)["input_ids"]
    for one in prompts:
        two = EncodedPrompt(one.ids, one.vision and with_other_pixels(one.vision))
        gap = (plain_logps(policy.model, one, ids) - plain_logps(policy.model, two, ids)).abs()
        assert (gap.max() > 1e-2) == (one.vision is not None), gap.max()


def with_other_pixels(vision):
    changed = {
        key: value.flip(-1) if key == "pixel_values" else value
        for key, value in vision.tensors.items()
    }
    return replace(vision, tensors=changed)


def test_rows_that_leave_the_batch_change_nothing(policy):
    policy.stop_ids = frozenset(range(50, 75))  # rows end all the time
    prompts = encoded(policy)
    at_once = sample(policy, prompts, engine=TransformersEngine(policy, finished_share=1e-9))
    never = sample(policy, prompts, engine=TransformersEngine(policy, finished_share=2.0))
    assert at_once.token_ids == never.token_ids
    assert len({length for group in at_once.lengths for length in group}) > 2
    assert worst(policy, prompts, at_once) < 1e-5


def test_a_batch_equals_one_by_one(policy):
    prompts = encoded(policy)
    together = sample(policy, prompts)
    for place, prompt in enumerate(prompts):
        alone = sample(policy, [prompt], places=[place])
        assert alone.token_ids[0] == together.token_ids[place]
        for one, other in zip(alone.logps[0], together.logps[place], strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


@pytest.mark.parametrize("max_rows", [1, 4, 7])
def test_chunks_of_any_size_draw_the_same(policy, max_rows):
    prompts = encoded(policy)
    small = sample(policy, prompts, engine=TransformersEngine(policy, max_rows=max_rows))
    assert small.token_ids == sample(policy, prompts).token_ids


def test_the_models_own_forward_scores_the_same(policy):
    """The path for heads that are read wrongly takes images as well."""
    prompts = encoded(policy)
    rollout = sample(policy, prompts)
    _, scores, flat = scores_of(policy, prompts, rollout)
    scorer = CompletionScorer(policy, temperature=1.0)
    scorer._head = None
    slow = scorer(
        [prompt.ids for prompt, _, _ in flat],
        [ids for _, ids, _ in flat],
        vision=[prompt.vision for prompt, _, _ in flat],
    )
    torch.testing.assert_close(slow.logps_bt, scores.logps_bt, atol=1e-5, rtol=0)


def test_placeholders_are_never_drawn(policy):
    """They are made the most probable tokens, and the draw is hot."""
    never = placeholder_ids(policy.model.config, policy.tokenizer, policy.processor)
    assert never and never.isdisjoint(policy.stop_ids)
    head = policy.model.get_output_embeddings()
    bias = torch.zeros(head.weight.shape[0])
    bias[sorted(never)] = 30.0
    head.register_forward_hook(lambda _module, _args, output: output + bias)
    policy.stop_ids = frozenset()
    rollout = sample(policy, encoded(policy), temperature=2.0)
    assert never.isdisjoint(token for group in rollout.token_ids for ids in group for token in ids)


def learner_of(policy):
    return Learner(
        policy, OptimizerConfig(), GrpoConfig(), total_steps=2, temperature=1.0, max_tokens=TOKENS
    )


def batch_of(prompts, rollout):
    return LearnBatch(
        prompt_ids=rollout.prompt_ids,
        token_ids=rollout.token_ids,
        engine_logps=rollout.logps,
        rewards_pk=torch.tensor([[1.0, 0.0, 0.0]] * len(prompts)),
        truncated=rollout.truncated,
        vision=rollout.vision,
    )


@pytest.mark.parametrize("train_vision", [False, True])
def test_vision_is_trained_only_when_asked(directories, train_vision):
    for family in VISION_FAMILIES:
        policy = load_policy(directories[family], train_vision=train_vision)
        before = {name: p.detach().clone() for name, p in policy.model.named_parameters()}
        prompts = encoded(policy)
        learner = learner_of(policy)
        trained = {id(p) for group in learner._optimizer.param_groups for p in group["params"]}
        learned = learner.update(batch_of(prompts, sample(policy, prompts)))
        assert learned["ratio_mean"] == pytest.approx(1.0)
        assert abs(learned["mismatch_mean"] - 1) < 1e-4
        seeing = vision_parameters(policy.model)
        assert seeing and len(seeing) < len(before)
        for name, parameter in policy.model.named_parameters():
            assert (id(parameter) in trained) == (train_vision or name not in seeing), name
        moved = {
            name
            for name, parameter in policy.model.named_parameters()
            if not torch.equal(parameter, before[name])
        }
        assert moved - set(seeing), family
        assert bool(moved & set(seeing)) == train_vision, family


def test_saving_keeps_model_and_processor(policy, tmp_path):
    prompts = encoded(policy)
    save_policy(policy, tmp_path)
    model = AutoModelForImageTextToText.from_pretrained(tmp_path).eval()
    policy.model.set_attn_implementation("sdpa")  # as plain transformers attends
    for prompt in prompts:
        ours = plain_logps(policy.model, prompt, LETTERS)
        assert torch.equal(plain_logps(model, prompt, LETTERS), ours)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer.get_vocab() == policy.tokenizer.get_vocab()
    image = picture(40, 30)
    again = AutoImageProcessor.from_pretrained(tmp_path)(image, return_tensors="pt")
    first = policy.processor.image_processor(image, return_tensors="pt")
    assert torch.equal(
        torch.as_tensor(again["pixel_values"]), torch.as_tensor(first["pixel_values"])
    )
    reloaded = load_policy(tmp_path)
    for one, other in zip(encoded(reloaded), prompts, strict=True):
        assert one.ids == other.ids
        assert (one.vision is None) == (other.vision is None)


def test_settings_of_videos_survive_saving(directories, tmp_path):
    save_policy(load_policy(directories["smolvlm"]), tmp_path)
    kept = json.loads((tmp_path / "processor_config.json").read_text())
    assert kept["processor_class"] == "SmolVLMProcessor"
    assert kept["video_processor"]["fps"] == 3 and kept["image_seq_len"] == 4


def test_without_a_template_the_placeholder_stands_in_front(tmp_path):
    for family in VISION_FAMILIES:
        policy = load_policy(build_vision_checkpoint(tmp_path / family, family, chat=False))
        prompts = encoded(policy)
        assert worst(policy, prompts, sample(policy, prompts)) < 1e-5
        assert policy.tokenizer.decode(prompts[1].ids).endswith("how many?")


def test_a_text_that_holds_a_placeholder_is_refused(policy):
    mark = getattr(policy.processor, "image_token", None)
    with pytest.raises(PromptError, match="which the model reads as an image"):
        encode_seen(policy.processor, f"look {mark} here", [])


def test_a_reference_and_its_policy_see_the_same_images(directories):
    policy = load_policy(directories["qwen2_5_vl"])
    prompts = encoded(policy)
    rollout = sample(policy, prompts)
    frozen = load_policy(directories["qwen2_5_vl"])
    learner = Learner(
        policy,
        OptimizerConfig(),
        GrpoConfig(kl=0.1),
        total_steps=1,
        temperature=1.0,
        max_tokens=TOKENS,
        reference=CompletionScorer(frozen, temperature=1.0),
    )
    assert learner.update(batch_of(prompts, rollout))["kl"] == pytest.approx(0.0, abs=1e-9)


def test_prompts_are_what_the_processor_makes_of_a_conversation(policy):
    """Our rendering against `apply_chat_template` of the processor itself."""
    if type(policy.processor).__name__ == "SmolVLMProcessor":
        pytest.skip("its own method asks the video part, which needs torchvision")
    for seed, (text, sizes) in enumerate(SHOWN):
        shown = [{"type": "image", "image": one} for one in pictures(sizes, seed)]
        content = [*shown, {"type": "text", "text": text}]
        theirs = policy.processor.apply_chat_template(
            [{"role": "user", "content": content}],
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            add_generation_prompt=True,
        )
        ours = encode_seen(policy.processor, text, pictures(sizes, seed))
        assert ours.ids == theirs["input_ids"][0].tolist()
        if sizes:
            assert ours.vision is not None
            assert torch.equal(ours.vision.tensors["pixel_values"], theirs["pixel_values"])


def test_a_low_precision_copy_sees_images_too(policy):
    policy.compute_dtype = torch.bfloat16
    prompts = encoded(policy)
    rollout = sample(policy, prompts, engine=TransformersEngine(policy))
    _, scores, flat = scores_of(policy, prompts, rollout)
    gaps = [
        (scores.logps_bt[row, : len(ids)] - logps).abs().mean().item()
        for row, (_, ids, logps) in enumerate(flat)
    ]
    assert max(gaps) < 0.3


@pytest.mark.parametrize("train_vision", [False, True])
def test_gradient_checkpointing_changes_no_gradient(directories, train_vision):
    for family in VISION_FAMILIES:
        gradients = []
        for checkpointed in (False, True):
            policy = load_policy(
                directories[family], gradient_checkpointing=checkpointed, train_vision=train_vision
            )
            prompts = encoded(policy)
            _, scores, _ = scores_of(policy, prompts, sample(policy, prompts))
            scores.logps_bt.sum().backward()
            gradients.append({n: p.grad for n, p in policy.model.named_parameters()})
        plain, saved = gradients
        assert any(value is not None for value in plain.values())
        for name, value in plain.items():
            assert (value is None) == (saved[name] is None), (family, name)
            if value is not None:
                torch.testing.assert_close(saved[name], value, atol=1e-4, rtol=1e-4)


def test_empty_images_of_other_rows_change_no_gradient(policy):
    """Rows together and one by one teach the same."""
    prompts = encoded(policy)
    rollout = sample(policy, prompts)
    scorer, scores, flat = scores_of(policy, prompts, rollout)
    trained = [p for p in policy.model.parameters() if p.requires_grad]
    together = torch.autograd.grad(scores.logps_bt.sum(), trained, allow_unused=True)
    apart = [torch.zeros_like(p) for p in trained]
    for prompt, ids, _ in flat:
        loss = scorer([prompt.ids], [ids], vision=[prompt.vision]).logps_bt.sum()
        for total, part in zip(
            apart, torch.autograd.grad(loss, trained, allow_unused=True), strict=True
        ):
            total += 0 if part is None else part
    for one, other in zip(together, apart, strict=True):
        if one is not None:
            torch.testing.assert_close(one, other, atol=1e-2, rtol=1e-4)


def test_the_tower_sees_each_prompt_once_an_update(policy):
    """However many of its completions are in a micro-batch."""
    prompts = encoded(policy)
    rollout = sample(policy, prompts)
    seen = []
    inner = policy.model.base_model.get_image_features

    @functools.wraps(inner)
    def count(*args, **kwargs):
        pixels = kwargs["pixel_values"] if "pixel_values" in kwargs else args[0]
        seen.append(pixels.numel())
        return inner(*args, **kwargs)

    policy.model.base_model.get_image_features = count
    _, scores, flat = scores_of(policy, prompts, rollout)
    shown = [one.vision.tensors["pixel_values"] for one in prompts if one.vision is not None]
    if shown[0].ndim == 5:  # filled up to the row with most images
        expected = len(shown) * max(one.numel() for one in shown)
    else:
        expected = sum(one.numel() for one in shown)
    assert seen == [expected]
    assert len(flat) == K * len(prompts)
