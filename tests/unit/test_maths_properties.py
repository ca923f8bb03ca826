"""Property tests of the maths key on generated answers and on arbitrary text."""

import string
from fractions import Fraction

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corl.answers.maths import maths_key
from corl.answers.maths.key import _read

common = settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
costly = settings(common, max_examples=80)


digits = st.integers(0, 10**9)
small = st.integers(1, 60)


def fraction_text(above: int, below: int) -> str:
    return rf"\frac{{{above}}}{{{below}}}"


atoms = st.one_of(
    digits.map(str),
    st.builds(fraction_text, small, small),
    st.builds(lambda a, b: f"{a}.{b}", small, small),
    small.map(lambda n: rf"\sqrt{{{n}}}"),
    st.sampled_from(["x", "y", "n", "a_1", r"\pi", "e", "i", r"\theta"]),
    st.builds(lambda f, n: rf"\{f}\left({n}\right)", st.sampled_from(["sin", "ln", "cos"]), small),
)
scalars = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds(lambda a, b: f"{a} + {b}", inner, inner),
        st.builds(lambda a, b: rf"\left({a} - {b}\right)", inner, inner),
        st.builds(lambda a, b: rf"{a} \cdot {b}", atoms, atoms),
        st.builds(lambda a, b: rf"\frac{{{a}}}{{{b}}}", inner, atoms),
        st.builds(lambda a, n: rf"\left({a}\right)^{{{n}}}", inner, st.integers(-3, 5)),
        inner.map(lambda a: rf"\sqrt{{{a}}}"),
    ),
    max_leaves=8,
)
lists = st.lists(scalars, min_size=2, max_size=4)
answers = st.one_of(
    scalars,
    lists.map(lambda items: ", ".join(items)),
    lists.map(lambda items: rf"\{{{', '.join(items)}\}}"),
    lists.map(lambda items: rf"\left( {', '.join(items)} \right)"),
    st.builds(lambda a, b: f"[{a}, {b})", scalars, scalars),
    st.builds(lambda a, b: f"{a} = {b}", scalars, scalars),
    st.builds(lambda a, b: rf"{a} \le {b}", scalars, scalars),
    st.builds(lambda a, b: rf"{a} \pm {b}", atoms, atoms),
    scalars.map(lambda a: f"x = {a}"),
    lists.map(lambda c: r"\begin{pmatrix} " + r" \\ ".join(c) + r" \end{pmatrix}"),
    st.builds(lambda a, b: rf"(-\infty, {a}] \cup [{b}, \infty)", small, small),
    st.sampled_from([r"\text{Monday}", r"\text{(C)}", "101_2", "3:4", r"5\text{ cm}", r"20\%"]),
)
PIECES = (
    r"x y 1 23 \frac { } ( ) ^ _ \sqrt + - * / = < , \pi e i ! | [ ] \text{and} \sin \pm \{ \} % "
    r"0.5 \cup \infty & \\ \begin{pmatrix} \end{pmatrix} : ° f( . ' \overline \in cm \ln \left "
    r"\right \text{ 9999 \, 1e5 \boxed{ ~ ² ½ \phantom $ \begin{cases} \mathbb{R} \ne \mid"
)
pieces = st.sampled_from(PIECES.split())


@common
@given(st.text(max_size=80))
def test_no_text_raises(text: str):
    key = maths_key(text)
    assert key is None or key


@common
@given(st.text(alphabet=string.printable, max_size=120))
def test_no_printable_text_raises(text: str):
    maths_key(text)


@common
@given(st.lists(pieces, max_size=30).map("".join))
def test_no_mixture_of_pieces_raises(text: str):
    maths_key(text)


@costly
@given(answers)
def test_reading_twice_gives_the_same_key(text: str):
    assert _read(text) == _read(text) == maths_key(text)
    assert maths_key(text) is not None


@costly
@given(answers)
def test_spelling_variants_share_the_key(text: str):
    key = maths_key(text)
    assert maths_key(text.replace(r"\frac", r"\dfrac")) == key
    assert maths_key(text.replace(r"\frac", r"\tfrac")) == key
    assert maths_key(text.replace(r"\left", "").replace(r"\right", "")) == key
    assert maths_key(text.replace(" ", "  ")) == key
    assert maths_key(f"${text}$") == key
    assert maths_key(f"  {text}. ") == key
    assert maths_key(text.replace("+", r"\,+\,")) == key
    assert maths_key(text.replace(r"\pi", "π").replace(r"\cdot", "·").replace("-", "−")) == key


@costly
@given(scalars, scalars, scalars)
def test_sums_commute_and_associate(a: str, b: str, c: str):
    keys = {maths_key(f"{a} + {b} + {c}"), maths_key(f"{c} + ({a} + {b})")}
    if not any(key is None or key.startswith("string:") for key in keys):
        assert len(keys) == 1


@costly
@given(scalars, small, small)
def test_products_distribute(a: str, n: int, m: int):
    left, right = maths_key(f"{n}({a} + {m})"), maths_key(f"{n}({a}) + {n * m}")
    if not str(left).startswith("string:") and not str(right).startswith("string:"):
        assert left == right


@costly
@given(st.lists(scalars, min_size=2, max_size=4), st.randoms())
def test_lists_are_unordered_and_tuples_are_not(items: list[str], rng):
    shuffled = list(items)
    rng.shuffle(shuffled)
    keys = maths_key(", ".join(items)), maths_key(", ".join(shuffled))
    if not any(str(key).startswith("string:") for key in keys):
        assert keys[0] == keys[1]
    tuples = maths_key(f"({', '.join(items)})"), maths_key(f"({', '.join(shuffled)})")
    if all(str(key).startswith("tuple:") for key in tuples):
        same = [maths_key(a) == maths_key(b) for a, b in zip(items, shuffled, strict=True)]
        assert (tuples[0] == tuples[1]) == all(same)


@common
@given(st.fractions(max_denominator=10**6), st.fractions(max_denominator=10**6))
def test_rationals_have_one_key_each(a: Fraction, b: Fraction):
    keys = [maths_key(fraction_text(x.numerator, x.denominator)) for x in (a, b)]
    assert (keys[0] == keys[1]) == (a == b)
    assert maths_key(f"{a.numerator * 3}/{a.denominator * 3}") == keys[0]
    assert maths_key(f"{a} + {b}".replace("+ -", "- ")) == maths_key(str(a + b))


@common
@given(st.integers(-(10**40), 10**40))
def test_whole_numbers_keep_every_digit(n: int):
    assert maths_key(str(n)) == maths_key(f"{n:,}") == f"number:{n}"
    assert maths_key(str(n)) != maths_key(str(n + 1))


@costly
@given(st.lists(answers, min_size=3, max_size=6))
def test_sameness_is_an_equivalence(texts: list[str]):
    keys = [maths_key(text) for text in texts]
    again = [_read(text) for text in reversed(texts)][::-1]
    assert keys == again, "a key depended on what was read before it"
