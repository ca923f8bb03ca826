"""The tree of a parsed answer, and the two walks that need nothing but the tree.

Sums and products are flat (`neg` and `inv` wrap their subtracted and divided
members), so that a tree is only as deep as the nesting that the parser allowed.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Node(NamedTuple):
    """One operation `op` on `args`; `value` is its literal, name or brackets.

    Scalars: num sym const inf add neg mul inv pow root fn call fact binom abs floor
    ceil deg pm det. Structures: tuple set union inter minus reals matrix ratio based
    relation.
    """

    op: str
    args: tuple[Node, ...] = ()
    value: Any = None


STRUCTURES = frozenset(
    {"tuple", "set", "union", "inter", "minus", "reals", "matrix", "ratio", "based", "relation"}
)

ZERO = Node("num", (), 0)
ONE = Node("num", (), 1)
INFINITY = Node("inf")


def number(value: Any) -> Node:
    """A literal: int or Fraction."""
    return Node("num", (), value)


def negated(node: Node) -> Node:
    return Node("num", (), -node.value) if node.op == "num" else Node("neg", (node,))


def difference(left: Node, right: Node) -> Node:
    return Node("add", (left, negated(right)))


def quotient(above: Node, below: Node) -> Node:
    return Node("mul", (above, Node("inv", (below,))))


def symbols(node: Node) -> frozenset[str]:
    """Names of the free symbols; an uninterpreted function counts as one."""
    found: set[str] = set()
    pending = [node]
    while pending:
        top = pending.pop()
        if top.op == "sym":
            found.add(top.value)
        elif top.op == "call":
            found.add(f"{top.value}()")
        pending.extend(top.args)
    return frozenset(found)


def contains(node: Node, op: str) -> bool:
    pending = [node]
    while pending:
        top = pending.pop()
        if top.op == op:
            return True
        pending.extend(top.args)
    return False


def substituted(node: Node, name: str, value: Node) -> Node:
    """The tree with every symbol `name` replaced."""
    if node.op == "sym":
        return value if node.value == name else node
    if not node.args:
        return node
    args = tuple(substituted(arg, name, value) for arg in node.args)
    return Node(node.op, args, node.value)
