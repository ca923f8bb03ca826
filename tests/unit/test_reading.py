"""From completion to answer by the row's own kind; code runs in the sandbox."""

import pytest

from corl.answers import Answer
from corl.data.prompts import PromptRow
from corl.data.reading import check_kinds, read_completion, read_label
from corl.errors import RecipeError


def row(kind, **fields):
    return PromptRow(id="1", text="?", kind=kind, **fields)


def test_maths_and_choices_are_read_by_their_rows_kind():
    assert (
        read_completion(r"so \boxed{\frac12}", row("math")).key
        == read_label(row("math", label="0.5")).key
    )
    options = row("choice", choices=("red", "blue"), label="blue")
    assert read_completion("The answer is (B).", options).key == read_label(options).key


def test_a_cut_off_completion_without_a_marker_abstains():
    assert read_completion("12", row("math")) is not None
    assert read_completion("12", row("math"), truncated=True) is None


def test_the_last_number_counts_only_when_lenient():
    text = "It comes to 72 clips, altogether."
    assert read_completion(text, row("math")) is None
    assert (
        read_completion(text, row("math"), lenient=True).key
        == read_label(row("math", label="72")).key
    )


def test_programs_agree_by_what_they_do():
    calls = ("double(3)", "double([1])")

    def behaviour_of(body):
        program = f"```python\ndef double(x):\n    return {body}\n```"
        return read_completion(program, row("code", calls=calls)).key

    assert behaviour_of("x + x") == behaviour_of("2 * x") != behaviour_of("x + x + x")


def test_a_program_that_always_fails_abstains():
    broken = "```python\ndef double(x):\n    raise ValueError\n```"
    assert read_completion(broken, row("code", calls=("double(3)",))) is None


def test_a_row_without_a_label_has_none():
    assert read_label(row("math")) is None
    assert read_label(row("math", label="None")) is None


class Parity:
    """A user's own answer kind: even or odd."""

    def read(self, text, row):
        digits = [c for c in text if c.isdigit()]
        return Answer(digits[-1], "even" if int(digits[-1]) % 2 == 0 else "odd") if digits else None

    def canonical(self, raw, row):
        return Answer(raw, raw)


def test_an_own_kind_is_a_dotted_path():
    own = row(f"{__name__}.Parity", label="odd")
    assert read_completion("it is 13", own) == read_label(own)
    assert read_completion("it is 13", own, truncated=True) is None
    check_kinds([own])


@pytest.mark.parametrize("kind", ["maths", "no.such.Kind", "corl.errors.CorlError"])
def test_an_unknown_kind_is_refused(kind):
    with pytest.raises(RecipeError, match="answer kind"):
        check_kinds([row(kind)])


def test_a_demanded_isolation_reaches_the_sandbox(monkeypatch):
    import corl.evaluation.sandbox

    asked = []
    run = corl.evaluation.sandbox.run_program

    def spy(source, *, minimum):
        asked.append(minimum)
        return run(source)

    monkeypatch.setattr(corl.evaluation.sandbox, "run_program", spy)
    code = row("code", calls=("f(1)",), label="def f(x): return x")
    read_completion("```python\ndef f(x): return x\n```", code, isolation="bubblewrap")
    read_label(code, isolation="limits")
    read_label(code)
    assert asked == ["bubblewrap", "limits", "landlock"]


def test_less_isolation_than_demanded_is_refused_before_anything_runs(monkeypatch):
    from corl.errors import CorlError
    from corl.evaluation.sandbox import levels

    monkeypatch.setattr(levels, "isolation_level", lambda: "landlock")
    code = row("code", calls=("f(1)",))
    check_kinds([code])
    check_kinds([row("code"), row("math")], isolation="bubblewrap")
    with pytest.raises(CorlError, match="'bubblewrap' is required"):
        check_kinds([code], isolation="bubblewrap")
