"""Random two-layer policies of several families, small enough to train in milliseconds."""

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from corl.policy.attention import use_our_attention
from corl.policy.computing import ComputeModel
from corl.policy.scoring import CompletionScorer

VOCABULARY = 23
_COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_GROUPED = {**_COMMON, "num_key_value_heads": 1, "head_dim": 8}
FAMILIES: dict[str, dict[str, Any]] = {
    "qwen3": {**_GROUPED, "tie_word_embeddings": True},
    "llama": {**_GROUPED, "tie_word_embeddings": False},
    "gpt_neox": _COMMON,
    "gemma2": {**_GROUPED, "final_logit_softcapping": 30.0},
    "gemma3_text": {**_GROUPED, "sliding_window": 4},
    "granite": {**_GROUPED, "logits_scaling": 8.0},
    "cohere": {**_GROUPED, "logit_scale": 0.0625},
    "gpt2": {
        "vocab_size": VOCABULARY,
        "n_embd": 16,
        "n_layer": 2,
        "n_head": 2,
        "n_positions": 64,
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
}


@dataclass
class TinyPolicy:
    model: Any
    device: torch.device = torch.device("cpu")
    compute_dtype: torch.dtype = torch.float32

    @cached_property
    def computing(self) -> ComputeModel:
        return ComputeModel(self.model, self.compute_dtype)


def tiny_policy(family: str = "qwen3", *, seed: int = 0, size: float = 1.0) -> TinyPolicy:
    """A fresh policy in evaluation mode; `size` scales its weights away from uniform logits."""
    torch.manual_seed(seed)
    config = AutoConfig.for_model(family, **FAMILIES[family])
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for param in model.parameters():
            if param.ndim >= 2:
                param.normal_(0.0, 0.3 * size)
    use_our_attention(model)
    return TinyPolicy(model.eval())


def weights_of(policy: TinyPolicy) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in policy.model.named_parameters()}


def same_bytes(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


def frozen_reference(policy: TinyPolicy, *, temperature: float) -> CompletionScorer:
    """A scorer of a copy that does not follow the policy."""
    return CompletionScorer(copy.deepcopy(policy), temperature=temperature)
