"""Checkpoints in, the same checkpoints out, and everything doubtful refused by name."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, BertConfig

from corl.errors import ModelError
from corl.policy import check_model, load_policy, save_policy
from corl.policy.stop_tokens import stop_ids
from tiny_models import CHAT_TEMPLATE, FAMILIES, build_checkpoint, edit_json, tiny_tokenizer


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A checkpoint that no test changes."""
    return build_checkpoint(tmp_path_factory.mktemp("models") / "qwen3")


@pytest.fixture
def checkpoint(shared, tmp_path):
    """A checkpoint of one's own."""
    return shutil.copytree(shared, tmp_path / "model")


def change_weights(directory, change):
    weights = load_file(directory / "model.safetensors")
    change(weights)
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})


def test_a_policy_on_cpu_holds_and_computes_in_float32(shared):
    policy = load_policy(shared)
    assert {parameter.dtype for parameter in policy.model.parameters()} == {torch.float32}
    assert policy.compute_dtype == torch.float32
    assert policy.model.config._attn_implementation == "corl"
    assert policy.context_length == 128
    assert all(parameter.requires_grad for parameter in policy.model.parameters())


def test_dropout_is_off_even_where_the_config_has_it(tmp_path):
    directory = build_checkpoint(tmp_path, "gpt_neox", hidden_dropout=0.5, attention_dropout=0.5)
    model = load_policy(directory).model
    ids = torch.tensor([[5, 6, 7]])
    assert torch.equal(model(ids).logits, model(ids).logits)


def test_bfloat16_weights_are_loaded_and_saved_as_such(shared, tmp_path):
    policy = load_policy(shared, dtype="bfloat16")
    assert policy.weight_dtype == policy.compute_dtype == torch.bfloat16
    save_policy(policy, tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.bfloat16}


@pytest.mark.parametrize("family", FAMILIES)
def test_gradient_checkpointing_recomputes_layers_and_changes_no_gradient(family, tmp_path):
    directory = build_checkpoint(tmp_path, family)
    ids = torch.tensor([[5, 9, 7, 11]])
    gradients, calls = [], []
    for checkpointing in (False, True):
        model = load_policy(directory, gradient_checkpointing=checkpointing).model
        layer = model.base_model.layers[0]
        mlp_calls = []
        layer.mlp.register_forward_pre_hook(lambda *_, seen=mlp_calls: seen.append(1))
        model(ids, use_cache=False).logits.logsumexp(-1).sum().backward()
        calls.append(len(mlp_calls))
        gradients.append([parameter.grad for parameter in model.parameters()])
    assert calls == [1, 2]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_a_saved_policy_loads_in_plain_transformers(checkpoint, tmp_path):
    policy = load_policy(checkpoint)
    with torch.no_grad():
        policy.model.get_input_embeddings().weight.add_(0.25)
    save_policy(policy, tmp_path / "out")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    for name, parameter in policy.model.named_parameters():
        assert torch.equal(model.get_parameter(name), parameter)
    assert load_policy(tmp_path / "out").stop_ids == policy.stop_ids
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"config.json", "generation_config.json", "tokenizer.json"} <= names


def test_equal_weights_give_equal_bytes_wherever_they_came_from(checkpoint, tmp_path):
    save_policy(load_policy(checkpoint), tmp_path / "one")
    save_policy(load_policy(tmp_path / "one"), tmp_path / "two")
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def test_a_generation_config_that_contradicts_itself_can_be_saved(checkpoint, tmp_path):
    edit_json(checkpoint / "generation_config.json", temperature=0.3, do_sample=False)
    policy = load_policy(checkpoint)
    policy.model.generation_config.max_new_tokens = 5  # no longer as it was published
    save_policy(policy, tmp_path / "out")
    assert (tmp_path / "out" / "generation_config.json").is_file()


def test_stop_ids_join_tokenizer_generation_config_and_chat_marks(checkpoint):
    edit_json(checkpoint / "generation_config.json", eos_token_id=[7, 9])
    # <eos> is 1 and the declared end of turn <|im_end|> is 4.
    assert load_policy(checkpoint).stop_ids == {1, 4, 7, 9}


def test_a_mark_that_is_ordinary_text_stops_nothing():
    tokenizer = tiny_tokenizer()
    assert stop_ids(tokenizer, None) == {1, 4}
    assert "<|eot_id|>" not in tokenizer.get_added_vocab()


def test_facts_agree_with_the_loaded_model(tmp_path):
    for family in FAMILIES:
        directory = build_checkpoint(tmp_path / family, family, chat_template=CHAT_TEMPLATE)
        facts, policy = check_model(directory), load_policy(directory)
        assert facts.num_parameters == sum(p.numel() for p in policy.model.parameters())
        assert facts.architecture == type(policy.model).__name__
        assert facts.context_length == policy.context_length
        assert facts.vocab_size == policy.model.get_output_embeddings().weight.shape[0]
        assert facts.has_chat_template


def test_checking_a_model_builds_none(shared, monkeypatch):
    monkeypatch.setattr(torch.nn.Module, "__init__", None)
    assert not check_model(shared).has_chat_template


@pytest.mark.parametrize("source", ["./nowhere", "/no/where", "some/where/else"])
def test_a_missing_directory_is_named(source):
    for check in (check_model, load_policy):
        with pytest.raises(ModelError, match="no such directory") as caught:
            check(source)
        assert source in str(caught.value)


def test_an_unreachable_hub_id_is_named(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for check in (check_model, load_policy):
        with pytest.raises(ModelError, match="nobody/nothing.*not in the local cache"):
            check("nobody/nothing")


def test_a_directory_without_config_is_no_checkpoint(tmp_path):
    with pytest.raises(ModelError, match=r"no config\.json"):
        check_model(tmp_path)


def test_an_encoder_is_refused(checkpoint):
    BertConfig().save_pretrained(checkpoint)
    edit_json(checkpoint / "config.json", model_type="vit", architectures=["ViTModel"])
    for check in (check_model, load_policy):
        with pytest.raises(ModelError, match="no causal language model"):
            check(checkpoint)


def test_pickled_weights_are_refused_with_advice(checkpoint):
    weights = load_file(checkpoint / "model.safetensors")
    torch.save(weights, checkpoint / "pytorch_model.bin")
    (checkpoint / "model.safetensors").unlink()
    for check in (check_model, load_policy):
        with pytest.raises(ModelError, match=r"[Pp]ickle.*save_pretrained it again"):
            check(checkpoint)


def test_missing_weights_are_an_error(checkpoint):
    change_weights(checkpoint, lambda weights: weights.pop("model.layers.1.mlp.up_proj.weight"))
    with pytest.raises(ModelError, match=r"1 missing.*layers\.1\.mlp\.up_proj"):
        load_policy(checkpoint)


def test_unknown_weights_are_an_error(checkpoint):
    change_weights(checkpoint, lambda weights: weights.update(extra=torch.ones(2)))
    with pytest.raises(ModelError, match="unknown to the model.*extra"):
        load_policy(checkpoint)


def test_weights_of_another_shape_are_an_error(checkpoint):
    edit_json(checkpoint / "config.json", intermediate_size=32)
    with pytest.raises(ModelError, match="weights"):
        load_policy(checkpoint)


def test_a_cut_off_weight_file_is_an_error(checkpoint):
    path = checkpoint / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelError, match="header announces"):
        check_model(checkpoint)
    with pytest.raises(ModelError, match="weights do not load"):
        load_policy(checkpoint)


def test_a_missing_shard_is_named(checkpoint):
    index = {"metadata": {}, "weight_map": {"a": "model.safetensors", "b": "two.safetensors"}}
    (checkpoint / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelError, match=r"1 of 2 weight files.*two\.safetensors"):
        check_model(checkpoint)


def test_a_tokenizer_that_does_not_fit_is_an_error(checkpoint):
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens([f"<extra{index}>" for index in range(9)])
    tokenizer.save_pretrained(checkpoint)
    for check in (check_model, load_policy):
        with pytest.raises(ModelError, match="tokenizer has 104 tokens"):
            check(checkpoint)


def test_devices_and_dtypes_that_are_not_there_are_named(shared):
    with pytest.raises(ModelError, match="cuda:99"):
        load_policy(shared, device="cuda:99")
    with pytest.raises(ModelError, match="float16"):
        load_policy(shared, dtype="float16")
