"""Loss and gradients equal TRL 1.16's GRPOTrainer on the same batch.

TRL is driven through its public surface: `rollout_func` hands it fixed
completions with planned rewards, `train()` runs one optimiser step, a callback
reads the gradients, and an overridden `compute_loss` notes the loss.
"""

import contextlib
import copy
import os
import warnings

import pytest
import torch

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
trl = pytest.importorskip("trl", reason="parity with TRL needs the dev extra")
if not trl.__version__.startswith("1.16."):
    pytest.skip(f"formulas are those of TRL 1.16, found {trl.__version__}", allow_module_level=True)

from datasets import Dataset  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402
from transformers import (  # noqa: E402
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    TrainerCallback,
)

from corl.config import GrpoConfig, OptimizerConfig  # noqa: E402
from corl.policy.attention import use_our_attention  # noqa: E402
from corl.policy.computing import ComputeModel  # noqa: E402
from corl.policy.learner import LearnBatch, Learner  # noqa: E402
from corl.policy.scoring import CompletionScorer  # noqa: E402

VOCABULARY, PAD, EOS = 31, 0, 1
K, MAX_TOKENS = 4, 12
# Half of the groups are flat: one all right, one all wrong.
REWARDS = [[1.0, 0.0, 0.0, 1.0], [1.0] * K, [0.0] * K, [0.0, 1.0, 0.0, 0.0]]
PROMPTS = ["w3 w4 w5 w6 w7", "w8", "w9 w10 w11", "w12 w13"]


class _Policy:
    def __init__(self, model):
        self.model = model
        self.device = torch.device("cpu")
        use_our_attention(model)
        self.computing = ComputeModel(model, torch.float32)


def _model():
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=64,
        tie_word_embeddings=True,
        pad_token_id=PAD,
        eos_token_id=EOS,
        bos_token_id=None,
    )
    model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        for param in model.parameters():
            if param.ndim == 2:
                param.normal_(0.0, 0.25)
    return model


@pytest.fixture(scope="module")
def tokenizer():
    words = {"<pad>": PAD, "<eos>": EOS, "<unk>": 2}
    words |= {f"w{i}": i for i in range(3, VOCABULARY)}
    inner = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )


def _reference():
    """Weights near those of `_model`, so that the KL term is of the loss's size."""
    model = _model()
    g = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for param in model.parameters():
            param.add_(0.03 * torch.randn(param.shape, generator=g))
    return model


def _completions():
    """Ragged completions of 1 to 12 tokens; some end with eos, some are cut off."""
    g = torch.Generator().manual_seed(11)
    completions = []
    for p in range(len(PROMPTS)):
        group = []
        for k in range(K):
            length = (
                MAX_TOKENS if (p + k) % 4 == 1 else int(torch.randint(0, 11, (1,), generator=g))
            )
            tokens = torch.randint(3, VOCABULARY, (length,), generator=g).tolist()
            group.append(tokens if length == MAX_TOKENS else [*tokens, EOS])
        completions.append(group)
    return completions


COMPLETIONS = _completions()


class _Trainer(trl.GRPOTrainer):
    """TRL's trainer that notes each loss on its way to backward."""

    def compute_loss(self, *args, **kwargs):
        loss = super().compute_loss(*args, **kwargs)
        self.seen_losses.append(loss.item())
        return loss


class _Gradients(TrainerCallback):
    def __init__(self):
        self.seen = []

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        self.seen.append(torch.cat([p.grad.flatten() for p in model.parameters()]))


def _rollout(tokenizer, rewards):
    def roll(prompts, trainer):
        counts = dict.fromkeys(PROMPTS, 0)
        out = {"prompt_ids": [], "completion_ids": [], "logprobs": None, "planned": []}
        for prompt in prompts:
            p, k = PROMPTS.index(prompt), counts[prompt]
            counts[prompt] += 1
            out["prompt_ids"].append(tokenizer(prompt)["input_ids"])
            out["completion_ids"].append(COMPLETIONS[p][k])
            out["planned"].append(rewards[p][k])
        assert set(counts.values()) == {K}
        return out

    return roll


def _planned_reward(completions, planned, **_):
    return planned


def _trl(tmp_path, tokenizer, model, reference, rewards=REWARDS, **settings):
    """Losses, gradients and final model of one TRL training run on the batch."""
    rows = len(PROMPTS) * K
    updates = settings.get("num_iterations", 1)
    arguments = trl.GRPOConfig(
        output_dir=str(tmp_path),
        per_device_train_batch_size=rows,
        gradient_accumulation_steps=1,
        num_generations=K,
        max_completion_length=MAX_TOKENS,
        max_steps=updates,
        max_grad_norm=0.0,
        adam_beta2=0.95,
        lr_scheduler_type="constant",
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        **{"learning_rate": 1e-9, **settings},
    )
    if reference is not None:
        # TRL loads the reference from where the model says it came from.
        reference.save_pretrained(tmp_path / "reference")
        model.config._name_or_path = str(tmp_path / "reference")
    gradients = _Gradients()
    with warnings.catch_warnings(), contextlib.redirect_stdout(None):
        warnings.simplefilter("ignore")
        trainer = _Trainer(
            model=model,
            reward_funcs=_planned_reward,
            args=arguments,
            train_dataset=Dataset.from_dict({"prompt": PROMPTS}),
            processing_class=tokenizer,
            callbacks=[gradients],
            rollout_func=_rollout(tokenizer, rewards),
        )
        trainer.seen_losses = []
        trainer.train()
    return trainer.seen_losses, gradients.seen, model


def _ours(tokenizer, model, reference, *, temperature, rewards=REWARDS, optimizer=None, **grpo):
    policy = _Policy(model)
    learner = Learner(
        policy,
        OptimizerConfig(
            **{
                "learning_rate": 1e-9,
                "grad_clip": 1e9,
                "tokens_per_microbatch": 60,
                "warmup_share": 0.0,
                "floor_share": 1.0,
                **(optimizer or {}),
            }
        ),
        GrpoConfig(**grpo),
        total_steps=1,
        temperature=temperature,
        max_tokens=MAX_TOKENS,
        reference=reference
        and CompletionScorer(_Policy(copy.deepcopy(reference)), temperature=temperature),
    )
    gradients = []
    step = learner._optimizer.step

    def note():
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
        step()

    learner._optimizer.step = note
    known = [[r if r is not None else 0.0 for r in group] for group in rewards]
    metrics = learner.update(
        LearnBatch(
            prompt_ids=[tokenizer(prompt)["input_ids"] for prompt in PROMPTS],
            token_ids=COMPLETIONS,
            rewards_pk=torch.tensor(known),
            labelled_p=torch.tensor([group[0] is not None for group in rewards]),
            truncated=[[tokens[-1] != EOS for tokens in group] for group in COMPLETIONS],
        )
    )
    return metrics, gradients, model


# Loss type, scale, kl, mask truncated, temperature: every value, not every combination.
CASES = [
    ("grpo", "group", 0.0, False, 1.0),
    ("bnpo", "group", 0.0, False, 1.0),
    ("dr_grpo", "group", 0.0, False, 1.0),
    ("dapo", "group", 0.0, False, 1.0),
    ("grpo", "batch", 0.0, False, 0.7),
    ("bnpo", "batch", 0.0, False, 1.0),
    ("dr_grpo", "none", 0.0, False, 1.3),
    ("dapo", "batch", 0.0, True, 1.0),
    ("grpo", "group", 0.2, False, 1.0),
    ("bnpo", "group", 0.2, False, 0.7),
    ("dr_grpo", "batch", 0.2, False, 1.0),
    ("dapo", "none", 0.2, False, 1.3),
    ("grpo", "group", 0.0, True, 1.0),
    ("bnpo", "group", 0.0, True, 1.0),
    ("dr_grpo", "group", 0.0, True, 1.0),
    ("bnpo", "group", 0.2, True, 0.7),
]


def _report(record_property, ours, theirs, got, want):
    loss_error = abs(ours - theirs)
    gradient_error = ((got - want).norm() / want.norm()).item()
    record_property("loss_error", loss_error)
    record_property("gradient_error", gradient_error)
    print(f"loss {theirs:+.6f}, off by {loss_error:.1e}; gradient off by {gradient_error:.1e}")
    return loss_error, gradient_error


@pytest.mark.parametrize("loss, scale, kl, masked, temperature", CASES)
def test_loss_and_gradient_equal_trl(
    tmp_path, tokenizer, record_property, loss, scale, kl, masked, temperature
):
    reference = _reference() if kl else None
    losses, gradients, _ = _trl(
        tmp_path,
        tokenizer,
        _model(),
        reference,
        loss_type=loss,
        scale_rewards=scale,
        beta=kl,
        mask_truncated_completions=masked,
        temperature=temperature,
    )
    metrics, got, _ = _ours(
        tokenizer,
        _model(),
        reference,
        temperature=temperature,
        loss=loss,
        scale=scale,
        kl=kl,
        mask_truncated=masked,
    )
    assert len(losses) == len(got) == 1
    assert gradients[0].norm() > 1e-2
    loss_error, gradient_error = _report(
        record_property, metrics["loss"], losses[0], got[0], gradients[0]
    )
    assert loss_error < 1e-6
    assert gradient_error < 1e-5
    assert metrics["groups_forwarded"] == (4 if kl else 2)


def test_a_group_without_a_label_equals_trls_unscorable_completions(
    tmp_path, tokenizer, record_property
):
    rewards = [*REWARDS[:2], [None] * K, REWARDS[3]]
    losses, gradients, _ = _trl(
        tmp_path, tokenizer, _model(), None, rewards, loss_type="bnpo", scale_rewards="batch"
    )
    metrics, got, _ = _ours(
        tokenizer, _model(), None, rewards=rewards, temperature=1.0, loss="bnpo", scale="batch"
    )
    loss_error, gradient_error = _report(
        record_property, metrics["loss"], losses[0], got[0], gradients[0]
    )
    assert loss_error < 1e-6
    assert gradient_error < 1e-5


def test_two_updates_on_one_batch_end_at_trls_weights(tmp_path, tokenizer, record_property):
    """Clipping, old log-probabilities and AdamW together, at a rate where the clip bites."""
    rate = 5e-3
    losses, gradients, theirs = _trl(
        tmp_path,
        tokenizer,
        _model(),
        None,
        loss_type="bnpo",
        num_iterations=2,
        learning_rate=rate,
        epsilon=0.1,
        epsilon_high=0.3,
        # A larger epsilon keeps a gradient near 0 from being blown up to a whole step.
        adam_epsilon=1e-4,
    )
    metrics, got, ours = _ours(
        tokenizer,
        _model(),
        None,
        temperature=1.0,
        loss="bnpo",
        updates=2,
        clip_low=0.1,
        clip_high=0.3,
        optimizer={"learning_rate": rate, "epsilon": 1e-4},
    )
    assert metrics["clip_share"] > 0.05
    loss_error, gradient_error = _report(
        record_property, metrics["loss"], sum(losses) / 2, got[1], gradients[1]
    )
    assert loss_error < 1e-6
    assert gradient_error < 1e-4
    start = dict(_model().named_parameters())
    for name, want in theirs.named_parameters():
        moved = (want - start[name]).norm()
        assert moved > 0
        assert (dict(ours.named_parameters())[name] - want).norm() < 1e-4 * moved
