"""A cursor over tokens, and the budgets of one parse: nodes and depth."""

from __future__ import annotations

from corl.answers.maths.budgets import MAX_DEPTH, MAX_NODES, Unreadable
from corl.answers.maths.lexer import Token
from corl.answers.maths.tree import Node

END: Token = ("end of text", "")
_LOOKAHEAD = 8


class TokenReader:
    """The tokens of one answer, padded so that looking ahead needs no bounds."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = [*tokens, *[END] * _LOOKAHEAD]
        self.at = 0
        self._depth = 0
        self._nodes = 0

    def peek(self, ahead: int = 0) -> Token:
        return self.tokens[self.at + ahead]

    def take(self) -> Token:
        token = self.tokens[self.at]
        if token is not END:
            self.at += 1
        return token

    def take_if(self, *tokens: Token) -> bool:
        if self.tokens[self.at] in tokens:
            self.at += 1
            return True
        return False

    def expect(self, mark: str) -> None:
        if self.take() != ("op", mark):
            raise Unreadable(f"no {mark!r} where one is due")

    def node(self, op: str, *args: Node, value: object = None) -> Node:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise Unreadable("more nodes than the budget")
        return Node(op, args, value)

    def deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unreadable("deeper nesting than the budget")

    def shallower(self) -> None:
        self._depth -= 1
