"""Prompts as tokens: templates, start tokens, and no end token before the answer."""

import pytest

from corl.data.template import render
from corl.errors import PromptError
from tiny_models import BOS, CHAT_TEMPLATE, EOS, tiny_tokenizer


def ids_of(text, tokenizer):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def test_a_base_model_reads_the_bare_text():
    tokenizer = tiny_tokenizer()
    assert tokenizer.decode(render(tokenizer, "1+1=")) == "1+1="


def test_a_chat_model_reads_one_user_turn_and_an_open_answer():
    tokenizer = tiny_tokenizer(chat_template=CHAT_TEMPLATE)
    expected = "<|im_start|>user\n1+1<|im_end|>\n<|im_start|>assistant\n"
    assert tokenizer.decode(render(tokenizer, "1+1")) == expected


def test_result_is_a_plain_list_of_ints():
    for template in (None, CHAT_TEMPLATE):
        ids = render(tiny_tokenizer(chat_template=template), "1+1")
        assert type(ids) is list and {type(index) for index in ids} == {int}


def test_the_system_prompt_comes_first_in_both_forms():
    chat = tiny_tokenizer(chat_template=CHAT_TEMPLATE)
    text = chat.decode(render(chat, "1+1", system_prompt="add"))
    assert text.startswith("<|im_start|>system\nadd<|im_end|>\n<|im_start|>user\n1+1")
    plain = tiny_tokenizer()
    assert plain.decode(render(plain, "1+1", system_prompt="add")) == "add\n\n1+1"


def test_never_leaves_the_template_out():
    tokenizer = tiny_tokenizer(chat_template=CHAT_TEMPLATE)
    assert tokenizer.decode(render(tokenizer, "1+1", chat="never")) == "1+1"


def test_always_without_a_template_is_refused():
    with pytest.raises(PromptError, match="no chat template"):
        render(tiny_tokenizer(), "1+1", chat="always")


def test_template_arguments_reach_the_template():
    template = CHAT_TEMPLATE + "{% if not thinking %}no{% endif %}"
    tokenizer = tiny_tokenizer(chat_template=template)
    closed = render(tokenizer, "1", chat_template_kwargs={"thinking": False})
    opened = render(tokenizer, "1", chat_template_kwargs={"thinking": True})
    assert closed == opened + ids_of("no", tokenizer)


def test_a_template_that_refuses_the_system_role_is_named():
    template = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}x"
    )
    tokenizer = tiny_tokenizer(chat_template=template)
    with pytest.raises(PromptError, match="no system"):
        render(tokenizer, "1", system_prompt="add")


def test_an_end_token_of_the_tokenizer_is_left_out():
    tokenizer = tiny_tokenizer(add_bos=True, append_eos=True)
    bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
    assert tokenizer("1+1")["input_ids"][-1] == eos
    assert render(tokenizer, "1+1") == [bos, *ids_of("1+1", tokenizer)]


def test_an_end_token_that_the_text_spells_is_kept():
    tokenizer = tiny_tokenizer(append_eos=True)
    assert render(tokenizer, f"1{EOS}") == [*ids_of("1", tokenizer), tokenizer.eos_token_id]


def test_a_start_token_never_doubles():
    tokenizer = tiny_tokenizer(add_bos=True)
    expected = [tokenizer.bos_token_id, *ids_of("1", tokenizer)]
    assert render(tokenizer, "1") == expected
    assert render(tokenizer, f"{BOS}1") == expected
    chat = tiny_tokenizer(add_bos=True, chat_template="{{ bos_token }}" + CHAT_TEMPLATE)
    assert render(chat, "1").count(chat.bos_token_id) == 1


def test_an_empty_prompt_starts_from_the_start_token_or_is_refused():
    tokenizer = tiny_tokenizer(append_eos=True)
    assert render(tokenizer, "") == [tokenizer.bos_token_id]
    tokenizer = tiny_tokenizer()
    tokenizer.bos_token = None
    with pytest.raises(PromptError, match="no tokens"):
        render(tokenizer, "")
