r"""The grammar around scalars: lists, relations, unions, tuples, sets, matrices.

An answer is a list of clauses; a clause is a chain of operands and relations, perhaps
behind a name (`f(x) =`, `\text{Area} =`) that the reader of keys may drop.
"""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

from corl.answers.maths.budgets import Unreadable
from corl.answers.maths.lexer import Token
from corl.answers.maths.terms import TermParser
from corl.answers.maths.tokens import END
from corl.answers.maths.tree import Node, negated

_RELATIONS: dict[Token, str] = {
    ("op", "<"): "<",
    ("op", ">"): ">",
    ("op", "="): "=",
    ("cmd", "le"): "<=",
    ("cmd", "ge"): ">=",
    ("cmd", "ne"): "!=",
    ("cmd", "in"): "in",
    ("cmd", "approx"): "~",
}
_JOINED = {"<": "<=", ">": ">=", "=": "=", "!": "!=", ":": "="}
_UNIONS = {"cup": "union", "cap": "inter", "setminus": "minus"}
_SEPARATORS = {("op", ","): ",", ("op", ";"): ",", ("sep", "and"): "and", ("sep", "or"): "or"}
_CLOSING = frozenset({")", "]", "}", "}set"})
_MATRICES = frozenset({"pmatrix", "bmatrix", "matrix", "vmatrix", "smallmatrix", "array", "cases"})


class Listing(NamedTuple):
    """Clauses in order, and what stands between them ("," "and" "or")."""

    clauses: tuple[Node, ...]
    links: tuple[str, ...]


class AnswerParser(TermParser):
    """Reads one whole answer; Unreadable unless every token is used."""

    def answer(self) -> Listing:
        listing = self.listing()
        if self.peek() != END:
            raise Unreadable(f"{self.peek()[1]!r} is left over")
        return listing

    def listing(self) -> Listing:
        clauses = [self.clause()]
        links: list[str] = []
        while (link := self._link()) is not None:
            if self.peek() == END or (self.peek()[0] == "op" and self.peek()[1] in _CLOSING):
                raise Unreadable("a list that ends with a separator")
            links.append(link)
            clauses.append(self.clause())
        return Listing(tuple(clauses), tuple(links))

    def _link(self) -> str | None:
        """One separator: a comma, a connective, or a comma and a connective."""
        link = _SEPARATORS.get(self.peek())
        if link is None:
            return None
        self.at += 1
        if link == "," and self.peek()[0] == "sep":
            link = self.take()[1]
        return link

    # Clauses

    def clause(self) -> Node:
        """An operand, or a relation node whose value is (name or None, relations)."""
        name = self._name()
        relations: list[str] = []
        # "= 5" and "\\approx 8.2" have lost their left side; ">= 5" bounds something unnamed.
        if name is None and self._relation() not in (None, "=", "~"):
            raise Unreadable("a relation without a left side")
        operands = [self.union()]
        while (relation := self._relation()) is not None:
            relations.append(relation)
            operands.append(self.union())
        if name is None and not relations:
            return operands[0]
        return self.node("relation", *operands, value=(name, tuple(relations)))

    def _relation(self) -> str | None:
        token = self.peek()
        if token[0] == "op" and token[1] in _JOINED and self.peek(1) == ("op", "="):
            self.at += 2
            return _JOINED[token[1]]
        relation = _RELATIONS.get(token)
        if relation is not None:
            self.at += 1
        return relation

    def _name(self) -> str | None:
        r"""`\text{Area} =`, `P(x) =` or `f^{-1}(x) =`, consumed with its equals sign."""
        if self.peek()[0] == "words" and self.peek(1) == ("op", "="):
            name = self.take()[1].casefold()
            self.at += 1
            return name
        if self.peek()[0] != "sym":
            return None
        ahead, name = 1, self.peek()[1]
        for mark in _INVERSE_MARKS:
            if [self.peek(ahead + k) for k in range(len(mark))] == mark:
                ahead += len(mark)
                name += "^-1"
        while self.peek(ahead) == ("op", "'"):
            ahead, name = ahead + 1, name + "'"
        if self.peek(ahead) != ("op", "("):
            return None
        while True:
            kind, body = self.peek(ahead + 1)
            if kind not in ("sym", "num"):
                return None
            name += "," + body
            ahead += 2
            if self.peek(ahead) == ("op", ","):
                continue
            if self.peek(ahead) != ("op", ")") or self.peek(ahead + 1) != ("op", "="):
                return None
            self.at += ahead + 2
            return name

    # Operands

    def union(self) -> Node:
        node = self.ratio()
        while self.peek()[0] == "cmd" and self.peek()[1] in _UNIONS:
            op = _UNIONS[self.take()[1]]
            right = self.ratio()
            flat = node.args if node.op == op == "union" else (node,)
            node = self.node(op, *flat, right)
        return node

    def ratio(self) -> Node:
        parts = [self.sum()]
        while self.peek() == ("op", ":") and self.peek(1) != ("op", "="):
            self.at += 1
            parts.append(self.sum())
        return parts[0] if len(parts) == 1 else self.node("ratio", *parts)

    def brackets(self, opener: str) -> Node:
        """What follows a taken (, [ or \\langle: a grouped value, a tuple or an interval."""
        self.deeper()
        outer, self._bars = self._bars, 0
        items = self.listing().clauses
        self._bars = outer
        self.shallower()
        kind, closer = self.take()
        if (kind, closer) == ("cmd", "rangle") and opener == "langle":
            opener, closer = "(", ")"
        elif kind != "op" or closer not in (")", "]") or opener == "langle":
            raise Unreadable("a bracket that does not close")
        if len(items) > 1:
            return self.node("tuple", *items, value=(opener, closer))
        if (opener == "(") != (closer == ")"):
            raise Unreadable("an interval with one end")
        return items[0]

    def braces(self, opener: str) -> Node:
        r"""What follows a taken { or \{: a group, a set, or {x | condition}."""
        closer = ("op", "}" if opener == "{" else "}set")
        if opener == "{set" and self.take_if(closer):
            return self.node("set")
        self.deeper()
        outer, self._bars = self._bars, 0
        if opener == "{set":
            self._bars = 1
            node = self._set(closer)
        else:
            items = self.listing().clauses
            node = items[0] if len(items) == 1 else self.node("set", *items)
            if self.take_if(("cmd", "choose")):
                node = self.node("binom", node, self.sum())
        self._bars = outer
        self.shallower()
        if self.take() != closer:
            raise Unreadable("a brace that does not close")
        return node

    def _set(self, closer: Token) -> Node:
        """Members, or a symbol with the condition that it meets."""
        if self.peek()[0] == "sym" and self.peek(1) in _SUCH_THAT:
            self.at += 2
            self._bars = 0
            condition = self.clause()
            if condition.op != "relation":
                raise Unreadable("a set of no condition")
            return condition
        if self.peek() == ("op", "|"):
            self._bars = 0
        return self.node("set", *self.listing().clauses)

    # Matrices

    def environment(self, name: str) -> Node:
        if name not in _MATRICES:
            raise Unreadable(f"the environment {name}")
        self.deeper()
        rows: list[list[Node]] = [[self.clause()]]
        while self.peek() != ("end", name):
            if self.take_if(("op", "&")):
                rows[-1].append(self.clause())
            elif self.take_if(("op", "row")):
                if self.peek() != ("end", name):
                    rows.append([self.clause()])
            else:
                raise Unreadable("a matrix that does not end")
        self.at += 1
        self.shallower()
        width = len(rows[0])
        if any(len(row) != width for row in rows):
            raise Unreadable("matrix rows of different lengths")
        if name == "cases":
            if width > 1:
                raise Unreadable("a function by cases")
            return self.node("set", *(row[0] for row in rows))
        if name == "vmatrix":
            return self._determinant(rows)
        cells = [cell for row in rows for cell in row]
        return self.node("matrix", *cells, value=(len(rows), width))

    def _determinant(self, rows: list[list[Node]]) -> Node:
        """Leibniz's sum."""
        size = len(rows)
        if size != len(rows[0]) or not 2 <= size <= 4:
            raise Unreadable("a determinant that is not 2x2 to 4x4")
        terms = []
        for order in permutations(range(size)):
            term = self.node("mul", *(rows[k][column] for k, column in enumerate(order)))
            inversions = sum(order[a] > order[b] for a in range(size) for b in range(a + 1, size))
            terms.append(negated(term) if inversions % 2 else term)
        return self.node("add", *terms)


_SUCH_THAT = frozenset({("cmd", "mid"), ("op", "|"), ("op", ":")})
_INVERSE_MARKS: list[list[Token]] = [
    [("op", "^"), ("op", "{"), ("op", "-"), ("num", "1"), ("op", "}")],
    [("op", "^"), ("op", "-"), ("num", "1")],
]
