"""Where a completion states its answer, and when it states none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corl.answers import KINDS, canonical, read_answer
from corl.answers.bare import last_side, unwrapped
from corl.answers.completion import completion_body
from corl.answers.extract import extract, last_box
from corl.answers.phrases import MAX_PHRASES, phrase_starts
from corl.answers.text import text_body
from corl.errors import RecipeError

FRAGMENTS = (
    "\\boxed{",
    "}",
    "{",
    "\\boxed 4 ",
    "\\fbox{3}",
    "\\boxed{}",
    "\\{",
    "\\\\",
    "$",
    "$5$",
    "$$",
    "\\[",
    "\\]",
    "\\(",
    "\\)",
    "<answer>",
    "</answer>",
    "<FINAL_ANSWER>",
    "</FINAL_ANSWER>",
    "####",
    "#### 12",
    "<think>",
    "</think>",
    "<|im_end|>",
    "<|im_start|>assistant",
    "\nQuestion: ",
    "\n\nQ:",
    "The answer is ",
    "Answer:",
    "**Final Answer**\n",
    "Antwort: ",
    "答案是",
    "is not ",
    "None",
    "<<2+3=5>>",
    "5",
    "1,000",
    "-3",
    "\\frac{1}{2}",
    "\\frac12",
    "x=",
    "= 7",
    "(C)",
    "B",
    "A ",
    "I ",
    "C. ",
    "option ",
    " or ",
    "because ",
    ", ",
    ". ",
    "\n",
    "\n\n",
    " ",
    "50%",
    "12 cm",
    "\\text{ cm}",
    "[0,1)",
    "\\sqrt{2}",
    "**",
    "`",
    '"',
    "```python\n",
    "```",
    "def f(x):\n    return x\n",
    '"""',
    "é",
    "\ud800",
    "\x00",
    "\u2212",
    "word ",
    "Sure\n",
    "!",
    "?",
)
texts = st.one_of(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join), st.text())


@given(text=texts, kind=st.sampled_from(KINDS), lenient=st.booleans(), truncated=st.booleans())
@settings(max_examples=400, deadline=None)
def test_no_string_raises_and_reading_again_changes_nothing(
    text: str, kind: str, lenient: bool, truncated: bool
) -> None:
    answer = read_answer(text, kind, lenient=lenient, truncated=truncated)
    canonical(text, kind)
    if answer is None:
        return
    assert answer.text.strip()
    answer.key.encode("utf-8")
    assert read_answer(answer.text, kind) == answer


@given(text=texts)
@settings(max_examples=150, deadline=None)
def test_a_truncated_text_never_gains_an_answer(text: str) -> None:
    cut_short = read_answer(text, truncated=True)
    assert cut_short is None or cut_short == read_answer(text)


@given(text=texts, options=st.lists(st.sampled_from(FRAGMENTS), max_size=5))
@settings(max_examples=150, deadline=None)
def test_options_of_any_wording_can_be_read(text: str, options: list[str]) -> None:
    answer = read_answer(text, "choice", choices=options)
    if answer is not None:
        assert answer.text in "ABCDE"[: len(options)]
        assert canonical(answer.text, "choice", choices=options) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The area is \\boxed{12\\pi} and <answer>3</answer>", "12\\pi"),
        ("<answer>3</answer>\n#### 4", "3"),
        ("#### 4\nThe answer is 5.", "4"),
        ("I put it in \\boxed{}. The answer is 9.", "9"),
        ("Use <answer></answer> tags. Answer: 2", "2"),
        ("\\boxed{...} is the form. So \\boxed{8}", "8"),
        ("\\boxed{8} in the form \\boxed{your answer}", "8"),
    ],
)
def test_markers_rank_box_tag_hash_phrase(text: str, answer: str) -> None:
    assert extract(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("we get $\\boxed 7$ metres", "7"),
        ("so \\boxed 12. Done", "12"),
        ("\\fbox{19}", "19"),
        ("\\framebox{19}", "19"),
        ("\\boxed {6}", "6"),
        ("\\boxed\n{6}", "6"),
        ("\\\\boxed{6}", "6"),
        ("boxed{6}", "6"),
        ("\x08oxed{6}", "6"),
        ("\\boxed{\\{1, 2\\}}", "\\{1, 2\\}"),
        (
            "\\boxed{\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}}",
            "\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}",
        ),
        ("\\boxed{\\boxed{6}}", "6"),
        ("\\boxed{x = \\boxed{6}}", "6"),
        ("\\boxed{6} and } a stray brace", "6"),
        ("{ a stray brace, \\boxed{6}", "6"),
        ("unboxed{6}", None),
        ("\\boxed", None),
        ("\\boxed 5 and the rest of some sentence", "5"),
    ],
)
def test_boxes(text: str, answer: str | None) -> None:
    assert extract(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer>17</answer>", "17"),
        ("<answer> The answer is 17. </answer>", "17"),
        ("<ans>4</ans>", "4"),
        ("<Final Answer>4</Final Answer>", "4"),
        ("It follows. <answer>5", "5"),
        ("<answer>3</answer> or <answer>5", "3"),
        ("<answer>It follows from the above that we are done", None),
        ("<answer></answer>", None),
    ],
)
def test_answer_elements(text: str, answer: str | None) -> None:
    assert extract(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("#### 1,250", "1,250"),
        ("so 6 #### 70 ####", "70"),
        ("#### Step 2\nWe add.\n#### 31", "31"),
        ("#### 31\n#### Explanation of the steps", "31"),
        ("#### Final Answer\n31", "31"),
        ("#### We now add the two numbers", None),
    ],
)
def test_hash_lines_are_answers_unless_they_are_headings(text: str, answer: str | None) -> None:
    assert extract(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("**Final Answer**\n\n$\\frac{7}{9}$", "\\frac{7}{9}"),
        ("## Answer\n42", "42"),
        ("The final answer is\n\\[\n5\\sqrt{2}\n\\]", "5\\sqrt{2}"),
        ("Answer: \\( x^2+1 \\)", "x^2+1"),
        ("The answer is $$\n8\n$$", "8"),
        ("The answer is therefore **36** apples.", "36 apples"),
        ("So the answer is $45.50 in total.", "$45.50"),
        ("The answer is \\$18.90.", "\\$18.90"),
        ("The answer is $2 for one and $4 for two", "$2"),
        ("The answer is [0, 3).", "[0, 3)"),
        ("(So the answer is 4)", "4"),
        ("The answer is 72 (seventy-two).", "72"),
        ("The answer is 6 * 9 = 54.", "54"),
        ("The answer to part (b) is 5, not 6.", "5"),
        ("My answer would be the empty set.", "the empty set"),
        ("Ans: 15", "15"),
        ("Answer - 15", "15"),
        ("Answer: There are 15 apples.", "15 apples"),
        ("The answer is not 14 but 15.", "15"),
        ("The answer is -0.5, i.e. minus a half", "-0.5"),
        ("The answer is 10:30 am.", "10:30 am"),
        ("The answer is: no solution", "no solution"),
        ("The ANSWER: 15", "15"),
        ("Die Antwort ist 27.", "27"),
        ("La respuesta es 27.", "27"),
        ("答案是12。", "12"),
        ("정답: 12", "12"),
        ("The answer is 3. That answer is correct because we checked it.", "3"),
        ("The answer is 5 times 3, more or less.", None),
        ("The answer is not 5.", None),
        ("The answer is 3 or 4 depending on the sign.", None),
        ("An answerable question: 7", None),
        ("The answer is obtained by adding up all the numbers we found", None),
        ("The answer is \\boxed{1", None),
        ("Let me answer this. It is 5", None),
    ],
)
def test_answer_phrases(text: str, answer: str | None) -> None:
    assert extract(text) == answer


@pytest.mark.parametrize(
    "text",
    [
        "5",
        "-3",
        "1,024",
        "\\frac{1}{2}",
        "x=5",
        "(3, -1)",
        "[0, 1)",
        "12 cm",
        "5 square inches",
        "50\\%",
        "\\text{two lines}",
        "10\\text{ a.m.}",
        "even",
        "x^2 + 3x",
        "3 and 5",
        "\\sin x + \\cos x",
        "\\emptyset",
        "\\begin{pmatrix} 1 \\\\ 2\n\\end{pmatrix}",
        "34\\text{ sq. units}",
        "x \\in (0, 1)",
    ],
)
def test_a_text_that_is_wholly_one_answer_reads_as_that_answer(text: str) -> None:
    assert extract(text) == text
    assert extract(f"  **{text}**. ") == text
    assert extract(f"${text}$") == text


@pytest.mark.parametrize(
    "text",
    [
        "I think there are 7 apples",
        "Total: 72",
        "3 + 4 =",
        "Step 1",
        "so 5",
        "the 5 apples",
        "First we add 3",
        "Is it 5?",
        "at -12 degrees",
        "pages 3 and 4",
        "5. Then 6",
        "sure",
        "line one\nline two",
        "30% of",
        "{1, 2",
        "\\frac{1}{",
        "a very long name of some thing",
        "...",
        "x" * 500,
    ],
)
def test_prose_and_fragments_are_no_bare_answers(text: str) -> None:
    assert extract(text) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("It is 3 and then 1,234,567.89 km", "1,234,567.89"),
        ("x^2 and a_{17} give 25.", "25"),
        ("as 10-3 is seven, 8 - 2 stays", "2"),
        ("it falls to -12 degrees there", "-12"),
        ("about 45% are left", "45%"),
        ("thus 3/4 remains for us", "3/4"),
        ("so \\frac{5}{6} of it is left", "\\frac{5}{6}"),
        ("that costs $70,000.", "$70,000"),
        ("pages 3-5 of it", "5"),
        ("no digits here", None),
    ],
)
def test_the_last_number_counts_only_when_lenient(text: str, number: str | None) -> None:
    assert extract(text, lenient=True) == number
    assert extract(text) is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("5", None),
        ("so we have 12", None),
        ("The answer is 12", None),
        ("The answer is 12. Let me check:", "12"),
        ("#### 12", None),
        ("#### 12\n", None),
        ("\\boxed{12} and to ver", "12"),
        ("\\boxed{12} or rather \\boxed{1", None),
        ("\\boxed{1", None),
        ("The answer is 7. \\boxed{1", None),
        ("<answer>1", None),
        ("<answer>12</answer> or <answer>1", None),
        ("\\boxed{12}<|im_end|>", "12"),
        ("#### 12\n\nQuestion: How many", "12"),
    ],
)
def test_a_truncated_completion_gives_only_closed_answers(text: str, answer: str | None) -> None:
    assert extract(text, truncated=True) == answer


def test_the_last_number_of_a_truncated_text_needs_lenience() -> None:
    assert extract("we add 3 and 4", truncated=True) is None
    assert extract("we add 3 and 4", truncated=True, lenient=True) == "4"


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("<think>a</think>b", "b"),
        ("a<think>b</think>c", "a\nc"),
        ("a</think>b", "b"),
        ("<think>a<think>b</think>c", "c"),
        ("<think>a</think>b</think>c", "b\nc"),
        ("<THINK>a</THINK>b", "b"),
        ("<|begin_of_thought|>a<|end_of_thought|>b", "b"),
        ("<thi<think>x</think>nk>b", "<thi\nnk>b"),
        ("<think>a", None),
        ("a<think>b", None),
        ("a\nQuestion: b<think>c", "a"),
        ("I think so", "I think so"),
    ],
)
def test_thinking_is_removed(text: str, visible: str | None) -> None:
    body = completion_body(text)
    assert (body.text if body else None) == visible


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("a<|im_end|>b", "a"),
        ("a<|endoftext|>", "a"),
        ("<|im_start|>assistant\na<|im_end|>", "a"),
        ("<|start_header_id|>assistant<|end_header_id|>\n\na<|eot_id|>b", "a"),
        ("a\n<|im_start|>user\nb", "a"),
        ("a</s>b", "a"),
        ("a [INST] b", "a"),
        ("a\nQuestion: b", "a"),
        ("a\n**Problem 2:** b", "a"),
        ("a\nHuman: b", "a"),
        ("a\n\nQ: b", "a"),
        ("a\n### Instruction: b", "a"),
        ("P: 1\nQ: 2", "P: 1\nQ: 2"),
        ("Question: a\nb", "Question: a\nb"),
        ("the Question: a", "the Question: a"),
        ("Let me restate it.\nProblem: a", "Let me restate it.\nProblem: a"),
        ("|a|<|b|>|c|", "|a|<|b|>|c|"),
    ],
)
def test_what_follows_the_own_turn_is_cut(text: str, visible: str) -> None:
    body = completion_body(text)
    assert body is not None and body.text == visible


@pytest.mark.parametrize(
    ("chain", "value"),
    [
        ("3+4=7", "7"),
        ("Total = 8", "8"),
        ("\\text{Total} = 8", "8"),
        ("x = 3+4 = 7", "x = 7"),
        ("1,000 + 1 = 1,001", "1,001"),
        ("x = 7", "x = 7"),
        ("0 = x", "0 = x"),
        ("y = 2x", "y = 2x"),
        ("3 x 4 = 12", "12"),
        ("5 coins / 20 coins * 100% = 25%", "25%"),
        ("5 apples + 3 apples = 8 apples", "8 apples"),
        ("x = 1, y = 2", "x = 1, y = 2"),
        ("a <= 3", "a <= 3"),
        ("= 5", "= 5"),
    ],
)
def test_a_chain_of_constants_is_its_last_value(chain: str, value: str) -> None:
    assert last_side(chain) == value


@pytest.mark.parametrize(
    ("label", "bare"),
    [
        ("\\boxed{4}", "4"),
        (" <answer>\\boxed{4}</answer> ", "4"),
        ("\\boxed{1} + \\boxed{2}", "\\boxed{1} + \\boxed{2}"),
        ("\\frac{1}{2}", "\\frac{1}{2}"),
    ],
)
def test_a_label_is_unwrapped_and_never_searched(label: str, bare: str) -> None:
    assert unwrapped(label) == bare


def test_a_fraction_as_label_stays_a_fraction() -> None:
    half = canonical("\\frac{1}{2}")
    assert half is not None and half.key == "number@1:1/2"
    assert canonical("so it is 2") != canonical("2")


@pytest.mark.parametrize("raw", ["", "  ", "None", "none", "\\text{None}", "N/A", "NaN", "null"])
@pytest.mark.parametrize("kind", ["math", "text"])
def test_a_label_that_says_nothing_is_no_answer(raw: str, kind: str) -> None:
    assert canonical(raw, kind) is None
    assert read_answer(f"\\boxed{{{raw}}}", kind) is None


def test_an_answer_that_would_not_read_as_itself_keeps_its_box() -> None:
    answer = read_answer("\\boxed{there is no such number}")
    assert answer is not None and answer.text == "\\boxed{there is no such number}"
    assert read_answer(answer.text) == answer
    assert canonical(answer.text) == answer


def test_an_unknown_kind_names_the_kinds() -> None:
    with pytest.raises(RecipeError, match="'poem' is not known; use one of: math, choice, code"):
        read_answer("5", "poem")
    with pytest.raises(ValueError, match="math, choice, code, text"):
        canonical("5", "poem")


def test_the_phrases_tried_are_a_fixed_number() -> None:
    assert len(list(phrase_starts("The answer is unclear, we say. " * 2000))) <= MAX_PHRASES
    assert extract("The answer is unclear, as we say. " * 2000) is None


@pytest.mark.parametrize(
    "unit", ["\\boxed{", "{", "}", "\\", "<answer>", "####", "\n####", "$", "answer is "]
)
def test_boxes_are_found_in_long_hostile_texts(unit: str) -> None:
    assert extract("\\boxed{7}" + unit.replace("{", "\\{") * 4000) in ("7", None)
    found = last_box(unit * 4000 + "\\boxed{7}")
    assert found is not None and found.text == "7"


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("Paris", "  paris. ", True),
        ("New  York", "\\text{New York}", True),
        ("well-known", "Well known", True),
        ("U.S.A.", "USA", True),
        ("Don't", "don’t", True),
        ("-3.5 m", "3.5 m", False),
        ("3.5", "35", False),
        ("7:30", "730", False),
        ("C++", "C", False),
        ("C#", "c", False),
        ("café", "cafe\u0301", True),
        ("50%", "50", False),
    ],
)
def test_texts_are_the_same_in_their_words(first: str, second: str, same: bool) -> None:
    assert (text_body(first) == text_body(second)) is same


def test_a_text_answer_keeps_its_sentence() -> None:
    said = read_answer("The answer is that he went home early.", "text")
    assert said is not None and said == canonical("he went home early", "text")
    assert read_answer("Answer: Marie Curie", "text") == canonical("marie curie", "text")
    assert read_answer("The Treaty of Paris", "text") == canonical("the treaty of paris", "text")
    assert canonical("?!", "text") is None


def test_a_long_text_is_keyed_by_its_digest() -> None:
    one, other = canonical("word " * 500, "text"), canonical("word " * 501, "text")
    assert one is not None and other is not None and one != other
    assert len(one.key) < 200
