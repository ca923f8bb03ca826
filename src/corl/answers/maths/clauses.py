r"""From the trees of structures and relations to their keys.

Policies that decide what is the same:
* A name set equal to a constant or a structure drops (x = 5 is 5, D = (0,1) is (0,1)),
  and so does a function's name with its arguments (f(x) = 2x is 2x). An equation that is
  linear in its only symbol is its root (2x = 10 is 5). Any other equation is keyed up to
  a non-zero factor, so y = 2x + 3 is 2x - y + 3 = 0 and not 2x + 3.
* A condition on one name is the set where it holds: x >= 2 is [2, \infty).
* An open interval (a, b) and the pair (a, b) are written alike and have one key.
* A bare list is unordered and keeps repeats; a set in braces drops them; a set with one
  member is that member. Lists of assignments to several names keep the names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from corl.answers.maths.arithmetic import Arithmetic, Value, spelled
from corl.answers.maths.brackets import Listing
from corl.answers.maths.budgets import MAX_SIGN_CHOICES, PRECISIONS, Unreadable
from corl.answers.maths.evaluate import NUM_POINTS
from corl.answers.maths.numbers import digest
from corl.answers.maths.scalar import (
    Reading,
    linear_root,
    placed,
    scalar_key,
    settle,
    value_key,
)
from corl.answers.maths.spans import (
    HIGHEST,
    LOWEST,
    REALS,
    Cut,
    Span,
    common,
    outside,
    united,
)
from corl.answers.maths.tree import (
    INFINITY,
    STRUCTURES,
    Node,
    contains,
    difference,
    number,
    quotient,
    symbols,
)

_TURNED = {">": "<", ">=": "<="}
_INFINITE = {INFINITY: "infinity", Node("neg", (INFINITY,)): "-infinity"}


class Clause(NamedTuple):
    """One read member of a list: its name, its key, and its spans if it is a set of reals."""

    name: str | None
    key: str
    spans: list[Span] | None = None


class ClauseReader:
    """Keys of clauses under one reading; remembers the key of every value that it orders."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self._values: dict[str, Fraction] = {}
        self._keys: dict[Fraction, str] = {}

    def key(self, node: Node) -> str:
        """The key of an operand: a scalar or a structure."""
        if node.op == "num":
            return value_key(node.value)
        if node.op == "tuple":
            opener, closer = node.value
            return bracket_key(opener, [self.clause(arg).key for arg in node.args], closer)
        if node.op == "set":
            return joined_key(read_members(node.args, self.reading), is_set=True)
        if node.op in ("union", "inter", "minus", "reals"):
            return self._region_key(node)
        if node.op == "matrix":
            cells = ",".join(self.clause(arg).key for arg in node.args)
            return f"matrix:{node.value[0]}x{node.value[1]}[{cells}]"
        if node.op == "ratio":
            return self._ratio_key(node)
        if node.op == "based":
            return f"based:{node.value}"
        if node.op == "relation":
            return self.clause(node).key
        if node in _INFINITE:
            return _INFINITE[node]
        return self._scalar_or_scaled(node)

    def _scalar_or_scaled(self, node: Node) -> str:
        if node.op == "neg" and node.args[0].op == "based":
            return f"based:-{node.args[0].value}"
        if node.op in ("mul", "neg") and sum(arg.op == "matrix" for arg in node.args) == 1:
            matrix = next(arg for arg in node.args if arg.op == "matrix")
            cells = []
            for cell in matrix.args:
                args = tuple(cell if arg is matrix else arg for arg in node.args)
                cells.append(Node(node.op, args))
            return self.key(Node("matrix", tuple(cells), matrix.value))
        return scalar_key(node, self.reading)

    def _ratio_key(self, node: Node) -> str:
        first, *others = node.args
        keys = [self.key(quotient(other, first)) for other in others]
        return f"ratio:1:{':'.join(keys)}"

    # Sets of reals

    def _region_key(self, node: Node) -> str:
        try:
            return self.spans_key(self.spans(node))
        except Unreadable:
            if node.op != "union":
                raise
        return f"union:{{{','.join(sorted({self.key(arg) for arg in node.args}))}}}"

    def spans(self, node: Node) -> list[Span]:
        """The set of reals that an operand denotes, if it denotes one."""
        if node.op == "reals":
            return REALS
        if node.op == "tuple" and len(node.args) == 2:
            opener, closer = node.value
            low = self._cut(node.args[0], after=opener == "(")
            high = self._cut(node.args[1], after=closer == "]")
            if low >= high:
                raise Unreadable("an interval from high to low")
            return [Span(low, high)]
        if node.op == "set":
            points = [self._cut(arg, after=False) for arg in node.args]
            return united(Span(cut, cut._replace(after=1)) for cut in points)
        if node.op == "relation":
            spans = self.clause(node).spans
            if spans is None:
                raise Unreadable("a relation that is no set of reals")
            return spans
        if node.op in ("union", "inter", "minus"):
            return self._combined(node)
        raise Unreadable(f"a {node.op} in a union")

    def _combined(self, node: Node) -> list[Span]:
        first, *others = (self.spans(arg) for arg in node.args)
        for other in others:
            if node.op == "union":
                first = united([*first, *other])
            else:
                first = common(first, other if node.op == "inter" else outside(other))
        return first

    def _cut(self, node: Node, *, after: bool) -> Cut:
        if node in _INFINITE:
            return LOWEST if node.op == "neg" else HIGHEST
        key, value = placed(node, self.reading)
        if key not in self._values:
            self._values[key] = value
            self._keys[value] = key
        return Cut(0, self._values[key], int(after))

    def spans_key(self, spans: list[Span]) -> str:
        """The key of a set of reals, the same as of the interval or set written out."""
        parts: list[str] = []
        points: list[str] = []
        for low, high in spans:
            low_key, high_key = self._cut_key(low), self._cut_key(high)
            if low_key == high_key:
                points.append(low_key)
                parts.append(f"{{{low_key}}}")
            else:
                opener = "[" if low.side == 0 and not low.after else "("
                closer = "]" if high.side == 0 and high.after else ")"
                parts.append(bracket_key(opener, [low_key, high_key], closer))
        if len(points) == len(parts):
            return set_key(points, keeps_repeats=False)
        return parts[0] if len(parts) == 1 else f"union:{','.join(parts)}"

    def _cut_key(self, cut: Cut) -> str:
        if cut.side:
            return "infinity" if cut.side > 0 else "-infinity"
        return self._keys[cut.value]

    # Relations

    def clause(self, node: Node) -> Clause:
        if node.op != "relation":
            return Clause(None, self.key(node), self._spans_or_none(node))
        name, relations = node.value
        operands = node.args
        if not relations:
            inner = self.clause(operands[0])
            return Clause(name, inner.key, inner.spans)
        if name is not None:
            inner = self._chain(operands, relations)
            return Clause(name, inner.key, inner.spans)
        return self._chain(operands, relations)

    def _spans_or_none(self, node: Node) -> list[Span] | None:
        if node.op not in ("union", "inter", "minus", "reals"):
            return None
        try:
            return self.spans(node)
        except Unreadable:
            return None

    def _chain(self, operands: tuple[Node, ...], relations: tuple[str, ...]) -> Clause:
        kinds = set(relations)
        if kinds <= {"=", "~"}:
            return self._equal(operands, relations)
        if relations == ("in",):
            name = self.name_of(operands[0])
            if name is None:
                raise Unreadable("membership of something that has no name")
            return Clause(name, self.key(operands[1]), self._spans_or_none(operands[1]))
        if relations == ("!=",):
            return self._different(*operands)
        if kinds <= {">", ">="}:
            operands, relations = operands[::-1], tuple(_TURNED[r] for r in reversed(relations))
        elif not kinds <= {"<", "<="}:
            raise Unreadable("a chain of mixed relations")
        return self._ordered(operands, relations)

    def name_of(self, node: Node) -> str | None:
        """The name that an assignment gives a value to: x, f(2), AB, (x, y)."""
        if node.op == "sym":
            return str(node.value)
        if node.op == "const" and node.value in ("i", "e"):
            return str(node.value)
        if node.op == "call":
            return f"{node.value}({','.join(self.key(arg) for arg in node.args)})"
        if node.op in ("tuple", "ratio") and all(arg.op == "sym" for arg in node.args):
            return f"({','.join(arg.value for arg in node.args)})"
        if node.op == "mul" and all(arg.op == "sym" for arg in node.args):
            names = [arg.value for arg in node.args]
            if all(name[0].isupper() for name in names) or " " in names[-1]:
                return "".join(names)
        return None

    def _equal(self, operands: tuple[Node, ...], relations: tuple[str, ...]) -> Clause:
        name = self.name_of(operands[0])
        if "~" in relations:
            # An approximation says nothing new, except where only a name stands before it.
            stop = relations.index("~") + 1
            operands = operands[: max(stop, 2) if name is not None else stop]
        if len(operands) == 2 and self.name_of(operands[1]) and not self._has_unknown(operands[0]):
            operands = operands[::-1]
            name = self.name_of(operands[0])
        if name is not None and len(operands) > 1:
            if len(operands) > 2 or not self._has_unknown(operands[1]):
                return Clause(name, self._chain_key(operands[1:]))
        elif len(operands) != 2 or not any(self._has_unknown(node) for node in operands):
            return Clause(None, self._chain_key(operands))
        return self._equation(*operands)

    def _has_unknown(self, node: Node) -> bool:
        return node.op not in STRUCTURES and bool(symbols(node))

    def _chain_key(self, operands: tuple[Node, ...]) -> str:
        """The key that all sides share, or that of the last if it is the only constant."""
        keys = [self.key(node) for node in operands]
        if len(set(keys)) == 1:
            return keys[0]
        if self._has_unknown(operands[-2]) and not self._has_unknown(operands[-1]):
            return keys[-1]
        # 0.56 = 56\%: the percent sign is a unit, and this states both forms of one value.
        for here, other in ((-1, 0), (0, -1)):
            percent = operands[here]
            if percent.op == "percent" and keys[other] == self.key(quotient(percent, number(100))):
                return keys[here]
        raise Unreadable("sides that are not equal")

    def _equation(self, left: Node, right: Node) -> Clause:
        gap = difference(left, right)
        unknowns = symbols(gap)
        if len(unknowns) == 1 and not contains(gap, "call"):
            (unknown,) = unknowns
            root = linear_root(gap, unknown, self.reading)
            if root is not None:
                return Clause(unknown, self.key(root[0]))
        values = self._scaled_values(gap, keeps_sign=False)
        return Clause(None, f"equation:{values}")

    def _scaled_values(self, node: Node, *, keeps_sign: bool) -> str:
        """A digest of the values at the points, divided by the first that is not zero.

        keeps_sign: divide by its absolute value, as an inequality needs.
        """
        values = [settle(node, self.reading, point=point) for point in range(NUM_POINTS)]
        first = next((value for value in values if value != 0), None)
        if first is None:
            return "identity"
        at = Arithmetic(PRECISIONS[0], work=self.reading.work)
        scale: Value = at.absolute(first) if keeps_sign else first
        inverse = at.invert(scale)
        return digest(";".join(spelled(at.multiply(value, inverse)) for value in values))

    def _different(self, left: Node, right: Node) -> Clause:
        name = self.name_of(left)
        if name is None or self._has_unknown(right):
            raise Unreadable("an inequation between expressions")
        points = right if right.op == "set" else Node("set", (right,))
        spans = outside(self.spans(points))
        return Clause(name, self.spans_key(spans), spans)

    def _ordered(self, operands: tuple[Node, ...], relations: tuple[str, ...]) -> Clause:
        """a < b <= c ...: the set of one unknown, or the relation itself."""
        pairs = list(zip(operands, operands[1:], relations, strict=False))
        if len(pairs) <= 2:
            halves = [self._bounded(low, high, relation) for low, high, relation in pairs]
            names = {half[0] for half in halves if half is not None}
            if None not in halves and len(names) == 1:
                spans = REALS
                for half in halves:
                    assert half is not None
                    spans = common(spans, half[1])
                return Clause(names.pop(), self.spans_key(spans), spans)
        keys = [self._inequality(low, high, relation) for low, high, relation in pairs]
        return Clause(None, f"inequality:{','.join(keys)}")

    def _bounded(self, low: Node, high: Node, relation: str) -> tuple[str, list[Span]] | None:
        """(name, spans) of low < high, if one side bounds a name or one unknown linearly."""
        closed = relation == "<="
        for node, bound, below in ((high, low, True), (low, high, False)):
            name = self.name_of(node)
            if name is not None and not self._has_unknown(bound):
                return name, self._half(bound, below=below, closed=closed)
        if low in _INFINITE or high in _INFINITE:
            return None
        gap = difference(high, low)
        unknowns = symbols(gap)
        if len(unknowns) != 1 or contains(gap, "call"):
            return None
        (unknown,) = unknowns
        root = linear_root(gap, unknown, self.reading)
        if root is None:
            return None
        rises = placed(root[1], self.reading)[1] > 0
        return unknown, self._half(root[0], below=rises, closed=closed)

    def _half(self, bound: Node, *, below: bool, closed: bool) -> list[Span]:
        if below:
            return [Span(self._cut(bound, after=not closed), HIGHEST)]
        return [Span(LOWEST, self._cut(bound, after=closed))]

    def _inequality(self, low: Node, high: Node, relation: str) -> str:
        gap = difference(high, low)
        if not symbols(gap):
            raise Unreadable("an order of constants")
        return f"0{relation}{self._scaled_values(gap, keeps_sign=True)}"


def read_members(nodes: Iterable[Node], reading: Reading) -> list[Clause]:
    """The clauses of a list or set, each plus-minus spelled out."""
    clauses: list[Clause] = []
    for node in nodes:
        found: list[Clause] = []
        for signs in _sign_choices(node, has_signs=reading.has_signs):
            reader = ClauseReader(replace(reading, signs=signs) if signs else reading)
            clause = reader.clause(node)
            found.extend([clause] if clause not in found else [])
        clauses.extend(found)
    return clauses


_NO_SIGNS: list[tuple[int, ...]] = [()]


def _sign_choices(node: Node, *, has_signs: bool) -> list[tuple[int, ...]]:
    """All signs of the plus-minus marks in one member; other marks stay positive."""
    if not has_signs:
        return _NO_SIGNS
    marks: set[int] = set()
    pending = [node]
    while pending:
        top = pending.pop()
        if top.op == "pm":
            marks.add(top.value[0])
        # A set inside spells out its own members.
        pending.extend(top.args if top.op != "set" else ())
    if len(marks) > MAX_SIGN_CHOICES:
        raise Unreadable("more plus-minus signs than the budget")
    if not marks:
        return _NO_SIGNS
    ordered = sorted(marks)
    choices = []
    for signs in product((1, -1), repeat=len(ordered)):
        every = [1] * (ordered[-1] + 1)
        for mark, sign in zip(ordered, signs, strict=True):
            every[mark] = sign
        choices.append(tuple(every))
    return choices


def listing_key(listing: Listing, reading: Reading) -> str:
    """The key of a whole answer."""
    clauses = read_members(listing.clauses, reading)
    if len(clauses) > 1 and "," not in listing.links and len(listing.links) == len(clauses) - 1:
        spans = [clause.spans for clause in clauses if clause.spans is not None]
        names = {clause.name for clause in clauses}
        if len(spans) == len(clauses) and len(names) == 1:
            return _connected(listing.links, spans, listing.clauses, reading)
    return joined_key(clauses, is_set=False)


def _connected(
    links: tuple[str, ...], spans: list[list[Span]], nodes: tuple[Node, ...], reading: Reading
) -> str:
    """Conditions joined by "or" (all of the union) or "and" (the intersection)."""
    reader = ClauseReader(reading)
    for node in nodes:
        # The reader learns the keys of the ends.
        spans_here = reader.clause(node).spans
        assert spans_here is not None
    result = spans[0]
    for link, other in zip(links, spans[1:], strict=True):
        result = common(result, other) if link == "and" else united([*result, *other])
    return reader.spans_key(result)


def joined_key(clauses: list[Clause], *, is_set: bool) -> str:
    names = [clause.name for clause in clauses]
    if len({name for name in names if name is not None}) > 1:
        return _assignments_key(clauses)
    return set_key([clause.key for clause in clauses], keeps_repeats=not is_set)


def _assignments_key(clauses: list[Clause]) -> str:
    """Values of several names, in any order; a value without a name belongs to the last one."""
    parts: set[str] = set()
    name: str | None = None
    for clause in clauses:
        name = clause.name or name
        if name is None:
            raise Unreadable("a value before the first name")
        parts.add(f"{name}={clause.key}")
    return f"assignment:{{{','.join(sorted(parts))}}}"


def set_key(keys: list[str], *, keeps_repeats: bool) -> str:
    members = sorted(keys) if keeps_repeats else sorted(set(keys))
    return members[0] if len(members) == 1 else f"set:{{{','.join(members)}}}"


def bracket_key(opener: str, keys: list[str], closer: str) -> str:
    """A pair keeps its brackets; an open one, and longer lists, are tuples."""
    body = ",".join(keys)
    if len(keys) == 2 and (opener, closer) != ("(", ")"):
        return f"interval:{opener}{body}{closer}"
    if opener != "[" and closer == "]":
        raise Unreadable("a half-open bracket of more than two")
    return f"tuple:({body})"
