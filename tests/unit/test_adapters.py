"""Adapters against peft alone: gradients, files, merging, and what they leave untouched."""

import json
import random

import peft
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

from corl.config import GrpoConfig, LoraConfig, OptimizerConfig
from corl.errors import ModelError
from corl.policy import check_model, load_policy, save_merged, save_policy
from corl.policy.adapters import count_adapter, on_base, target_layers
from corl.policy.learn_batch import LearnBatch
from corl.policy.learner import Learner
from corl.policy.load import bare_model
from corl.policy.scoring import CompletionScorer
from corl.rollout.noise import Noise
from corl.rollout.sampling import SamplingParameters
from corl.rollout.transformers_engine import TransformersEngine
from tiny_models import FAMILIES, build_checkpoint, edit_json
from tiny_vision import build_vision_checkpoint

LORA = LoraConfig(rank=4, alpha=8)
PROMPTS = [[5, 9, 12], [40, 6, 7, 30, 22], [17] * 4]


@pytest.fixture(scope="module")
def directories(tmp_path_factory):
    root = tmp_path_factory.mktemp("bases")
    return {family: build_checkpoint(root / family, family) for family in FAMILIES}


def adapted(directory, **settings):
    return load_policy(directory, **{"lora": LORA, "adapter_seed": 3, **settings})


def stirred(policy, seed=0):
    """The policy with adapters that do something."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in policy.model.named_parameters():
            if "lora_" in name:
                parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return policy


def sampled(policy, *, completions=4):
    engine = TransformersEngine(policy)
    engine.sync()
    return engine.sample(
        PROMPTS,
        completions=completions,
        sampling=SamplingParameters(max_tokens=12),
        noise=Noise(seed=0, agent="a"),
        step=1,
    )


def batch_of(rollout, seed=0):
    rng = random.Random(seed)
    rewards = [[float(rng.random() < 0.5) for _ in group] for group in rollout.token_ids]
    for group in rewards:
        group[0], group[1] = 0.0, 1.0
    return LearnBatch(
        prompt_ids=rollout.prompt_ids,
        token_ids=rollout.token_ids,
        engine_logps=rollout.logps,
        rewards_pk=torch.tensor(rewards),
        labelled_p=torch.tensor([True] * len(rewards)),
        truncated=rollout.truncated,
    )


def learner(policy, **settings):
    return Learner(
        policy, OptimizerConfig(learning_rate=1e-2, warmup_share=0.0), GrpoConfig(**settings),
        total_steps=10, temperature=1.0,
    )  # fmt: skip


def logits(model, ids):
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids])).logits


@pytest.mark.parametrize("family", FAMILIES)
def test_fresh_adapters_change_nothing_and_are_all_that_is_trained(directories, family):
    plain = load_policy(directories[family])
    policy = adapted(directories[family])
    assert torch.equal(logits(plain.model, PROMPTS[1]), logits(policy.model, PROMPTS[1]))
    trained = {name for name, p in policy.model.named_parameters() if p.requires_grad}
    assert trained and all("lora_" in name for name in trained)
    head = policy.model.get_output_embeddings()
    assert not hasattr(head, "lora_A")
    count = sum(p.numel() for p in policy.model.parameters() if p.requires_grad)
    bare = bare_model(directories[family], trust_remote_code=False)
    assert count == count_adapter(bare, LORA, with_vision=False)


def test_first_weights_follow_from_the_seed_alone(directories):
    def first(seed):
        torch.manual_seed(random.randrange(1000))
        policy = adapted(directories["llama"], adapter_seed=seed)
        return torch.cat([p.flatten() for p in policy.model.parameters() if p.requires_grad])

    assert torch.equal(first(1), first(1))
    assert not torch.equal(first(1), first(2))


@pytest.mark.parametrize("family", FAMILIES)
def test_sampler_and_learner_agree_with_adapters_on(directories, family):
    policy = stirred(adapted(directories[family]))
    rollout = sampled(policy)
    prompts = [p for p in rollout.prompt_ids for _ in range(4)]
    tokens = [ids for group in rollout.token_ids for ids in group]
    scores = CompletionScorer(policy, temperature=1.0)(prompts, tokens, [4] * len(PROMPTS))
    engine = [logps for group in rollout.logps for logps in group]
    for row, expected in enumerate(engine):
        found = scores.logps_bt[row, : len(expected)]
        torch.testing.assert_close(found.detach(), expected.float(), atol=1e-5, rtol=0)
    plain = CompletionScorer(load_policy(directories[family]), temperature=1.0)
    assert CompletionScorer(policy, temperature=1.0).shares_prompts == plain.shares_prompts


@pytest.mark.parametrize("family", ["qwen3", "gpt_neox"])
def test_gradients_are_those_of_peft_alone(directories, family, tmp_path):
    """The same adapter in peft's own wrapper, the policy gradient written out plainly."""
    policy = stirred(adapted(directories[family]))
    save_policy(policy, tmp_path / "adapter")
    batch = batch_of(sampled(policy))
    seen = {}
    ours = learner(policy)
    step = ours._optimizer.step

    def keep():
        seen.update(
            {n: p.grad.clone() for n, p in policy.model.named_parameters() if p.grad is not None}
        )
        return step()

    ours._optimizer.step = keep
    ours._optimizer_config = ours._optimizer_config.model_copy(update={"grad_clip": 1e9})
    ours.update(batch)

    base = AutoModelForCausalLM.from_pretrained(directories[family], dtype=torch.float32)
    theirs = peft.PeftModel.from_pretrained(base, tmp_path / "adapter", is_trainable=True).eval()
    rewards = batch.rewards_pk
    advantages = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)
    num_tokens = sum(len(ids) for group in batch.token_ids for ids in group)
    loss = 0
    for prompt, group, adv in zip(batch.prompt_ids, batch.token_ids, advantages, strict=True):
        for ids, advantage in zip(group, adv, strict=True):
            whole = torch.tensor([[*prompt, *ids]])
            logps = theirs(input_ids=whole).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
            taken = logps.gather(1, torch.tensor(ids)[:, None])
            loss = loss - advantage * taken.sum() / num_tokens
    loss.backward()
    expected = {
        name.removeprefix("base_model.model."): p.grad
        for name, p in theirs.named_parameters()
        if p.requires_grad
    }
    assert seen.keys() == expected.keys()
    norm = torch.sqrt(sum(g.square().sum() for g in expected.values()))
    assert norm > 1e-3
    for name, grad in expected.items():
        assert (seen[name] - grad).norm() <= 2e-5 * norm, name


def test_learning_moves_the_adapters_and_not_one_bit_of_the_base(directories):
    policy = adapted(directories["qwen3"])
    before = {n: p.clone() for n, p in policy.model.named_parameters()}
    ours = learner(policy)
    for step in range(3):
        ours.update(batch_of(sampled(policy), seed=step))
    for name, parameter in policy.model.named_parameters():
        assert torch.equal(before[name], parameter) != ("lora_" in name), name
    state = ours.state_dict()["optimizer"]["state"]
    assert len(state) == sum("lora_" in name for name in before)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_saved_adapter_is_pefts_own_and_merges_into_a_plain_checkpoint(
    directories, family, tmp_path
):
    policy = stirred(adapted(directories[family]))
    expected = logits(policy.model, PROMPTS[1])
    assert (expected - logits(load_policy(directories[family]).model, PROMPTS[1])).abs().max() > 0.1

    save_policy(policy, tmp_path / "adapter")
    names = {path.name for path in (tmp_path / "adapter").iterdir()}
    assert {"adapter_config.json", "adapter_model.safetensors", "tokenizer.json"} <= names
    assert "config.json" not in names and "model.safetensors" not in names
    base = AutoModelForCausalLM.from_pretrained(directories[family], dtype=torch.float32)
    by_peft = peft.PeftModel.from_pretrained(base, tmp_path / "adapter").eval()
    torch.testing.assert_close(logits(by_peft, PROMPTS[1]), expected, atol=1e-5, rtol=0)

    again = load_policy(tmp_path / "adapter")
    assert torch.equal(logits(again.model, PROMPTS[1]), expected)
    save_policy(again, tmp_path / "twice")
    for name in ("adapter_model.safetensors", "adapter_config.json"):
        first, second = (tmp_path / folder / name for folder in ("adapter", "twice"))
        assert first.read_bytes() == second.read_bytes()

    save_merged(policy, tmp_path / "merged")
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "merged", dtype=torch.float32).eval()
    torch.testing.assert_close(logits(plain, PROMPTS[1]), expected, atol=1e-5, rtol=0)
    assert not list((tmp_path / "merged").glob("adapter*"))
    assert torch.equal(logits(policy.model, PROMPTS[1]), expected)  # merging left it alone


def test_a_mixed_base_is_kept_once_and_its_adapters_are_float32(directories):
    policy = stirred(adapted(directories["llama"], dtype="mixed"))
    assert policy.computing.module is policy.model
    dtypes = {("lora_" in n): set() for n, _ in policy.model.named_parameters()}
    for name, parameter in policy.model.named_parameters():
        dtypes["lora_" in name].add(parameter.dtype)
    assert dtypes == {False: {torch.bfloat16}, True: {torch.float32}}
    ours = learner(policy)
    found = ours.update(batch_of(sampled(policy)))
    assert found["grad_norm"] > 0
    assert abs(found["mismatch_mean"] - 1) < 0.02


def test_the_reference_is_the_base_and_the_adapters_come_back(directories):
    policy = stirred(adapted(directories["qwen3"]))
    plain = load_policy(directories["qwen3"])
    rows = PROMPTS[:2], [[8, 9], [10]]
    score = CompletionScorer(policy, temperature=1.0)
    reference = on_base(policy.model, score)
    with torch.no_grad():
        expected = CompletionScorer(plain, temperature=1.0)(*rows).logps_bt
        first = score(*rows).logps_bt
        torch.testing.assert_close(reference(*rows).logps_bt, expected, atol=1e-6, rtol=0)
        assert torch.equal(score(*rows).logps_bt, first)
    assert (first - expected).abs().max() > 1e-2


def test_named_targets_alone_get_an_adapter(directories):
    chosen = LoraConfig(targets=("q_proj", "mlp.down_proj"))
    policy = adapted(directories["llama"], lora=chosen)
    names = {n.partition(".lora_")[0] for n, p in policy.model.named_parameters() if "lora_" in n}
    assert {name.rpartition(".")[2] for name in names} == {"q_proj", "down_proj"}
    assert len(names) == 4
    with pytest.raises(
        ModelError, match=r"lora.targets \['c_attn'\] fit no layer of LlamaFor.*q_p"
    ):
        adapted(directories["llama"], lora=LoraConfig(targets=("q_proj", "c_attn")))


@pytest.mark.parametrize("with_vision", [False, True])
def test_a_vision_models_tower_gets_adapters_only_when_asked(tmp_path, with_vision):
    directory = build_vision_checkpoint(tmp_path / "llava", "llava")
    model = AutoModelForImageTextToText.from_pretrained(directory)
    found = list(target_layers(model, LORA, with_vision=with_vision))
    assert any("language_model" in name for name in found)
    assert any("vision_tower" in name for name in found) == with_vision


def test_check_model_tells_of_the_base(directories, tmp_path):
    save_policy(stirred(adapted(directories["qwen3"])), tmp_path / "adapter")
    facts, base = check_model(tmp_path / "adapter"), check_model(directories["qwen3"])
    assert facts.num_parameters == base.num_parameters
    assert facts.source == str(tmp_path / "adapter")


def test_adapters_that_cannot_be_loaded_are_named(directories, tmp_path):
    folder = tmp_path / "adapter"
    save_policy(stirred(adapted(directories["qwen3"])), folder)
    with pytest.raises(ModelError, match="does not fit .*gpt_neox"):
        load_policy(folder, base=directories["gpt_neox"])
    config = json.loads((folder / "adapter_config.json").read_text())
    edit_json(folder / "adapter_config.json", base_model_name_or_path=str(tmp_path / "gone"))
    with pytest.raises(ModelError, match="gone"):
        load_policy(folder)
    edit_json(folder / "adapter_config.json", base_model_name_or_path=None)
    with pytest.raises(ModelError, match="names no base_model_name_or_path"):
        load_policy(folder)
    (folder / "adapter_config.json").write_text(json.dumps(config))
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    with pytest.raises(ModelError, match="Pickled adapters are refused"):
        load_policy(folder)
    (folder / "adapter_config.json").write_text("{")
    with pytest.raises(ModelError, match="cannot be read"):
        load_policy(folder)
