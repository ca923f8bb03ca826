r"""The grammar of one scalar: sums, products, powers, functions, fractions and roots.

Readings that a reader would not guess: an exponent or a radicand without braces is the
whole number (`x^10`, `\sqrt18`), a numerator is one digit (`\frac12`), as their writers
mean; `1/2x` is (1/2)x; a whole number before a proper fraction of literals is a mixed
number; a function without brackets takes the implicit product behind it (`\sin 5x`),
and a quotient only if it is an angle (`\sin \pi/6`); two numbers side by side are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from corl.answers.maths.budgets import Unreadable
from corl.answers.maths.lexer import Token, is_unit
from corl.answers.maths.numbers import decimal_literal, plain
from corl.answers.maths.tokens import TokenReader
from corl.answers.maths.tree import INFINITY, Node, contains, negated, number, quotient
from corl.answers.maths.vocabulary import ATOM_COMMANDS, BASE_WORDS

_CLOSERS = {"(": ")", "{": "}", "[": "]"}
_SIGNS = frozenset({("op", "+"), ("op", "-"), ("cmd", "pm"), ("cmd", "mp")})
_TIMES = frozenset({("op", "*"), ("cmd", "times"), ("cmd", "cdot")})
_BEHIND = frozenset({("op", "^"), ("op", "*"), ("op", "!"), ("op", "%"), ("cmd", "degree")})
_FORMAL_FUNCTIONS = frozenset("fgh")
_INVERSES = {"sin": "arcsin", "cos": "arccos", "tan": "arctan"}


class TermParser(TokenReader):
    """Recursive descent over the tokens of one answer; `brackets` adds the structures."""

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(tokens)
        self.num_signs = 0
        self._linked = ("cmd", "mp") in tokens
        self._bars = 0
        self._proper: Fraction | None = None

    # Sums and products

    def sum(self) -> Node:
        terms = [self._signed(self.product)]
        while (sign := self._sign()) is not None:
            terms.append(self._with_sign(sign, self._signed(self.product)))
        return terms[0] if len(terms) == 1 else self.node("add", *terms)

    def _sign(self) -> str | None:
        token = self.tokens[self.at]
        if token in _SIGNS:
            self.at += 1
            return token[1]
        return None

    def _signed(self, inner: Callable[[], Node]) -> Node:
        """What `inner` reads, behind up to two signs."""
        if self.tokens[self.at] not in _SIGNS:
            return inner()
        signs = [sign for sign in (self._sign(), self._sign()) if sign is not None]
        node = inner()
        for sign in reversed(signs):
            node = self._with_sign(sign, node)
        return node

    def _with_sign(self, sign: str, node: Node) -> Node:
        if sign == "+":
            return node
        if sign == "-":
            return negated(node)
        if not self._linked or not self.num_signs:
            self.num_signs += 1
        return self.node("pm", node, value=(self.num_signs - 1, 1 if sign == "pm" else -1))

    def product(self) -> Node:
        is_literal = self.peek()[0] == "num"
        factors = [self.factor()]
        if is_literal and isinstance(factors[0].value, int):
            self._mix(factors)
        while True:
            token = self.tokens[self.at]
            if token in _TIMES:
                self.at += 1
                factors.append(self._signed(self.factor))
            elif token == ("op", "/"):
                self.at += 1
                factors.append(self.node("inv", self._signed(self.factor)))
            elif token[0] == "words":
                self._unit()
                break
            elif self.starts_factor():
                self._check_neighbours()
                factors.append(self.factor())
            else:
                break
        return factors[0] if len(factors) == 1 else self.node("mul", *factors)

    def _mix(self, factors: list[Node]) -> None:
        r"""Join a whole number with the proper fraction behind it: 3\frac{1}{2}, 3 1/2."""
        part: Fraction | None = None
        if self.peek() == ("cmd", "frac"):
            self._proper = None
            fraction = self.factor()
            if self._proper is None or fraction != number(self._proper):
                factors.append(fraction)
                return
            part = self._proper
        elif self.peek()[0] == "num" and self.peek(1) == ("op", "/") and self.peek(2)[0] == "num":
            above, below = self.peek()[1], self.peek(2)[1]
            if above.isdigit() and below.isdigit() and len(above + below) < 30:
                if not 0 < int(above) < int(below):
                    raise Unreadable("two numbers side by side")
                part = Fraction(int(above), int(below))
                self.at += 3
        if part is not None:
            factors[0] = number(factors[0].value + part)

    def _check_neighbours(self) -> None:
        """Refuse a number behind a number or a symbol: 3 5, x2."""
        if self.peek()[0] == "num":
            kind, body = self.peek(-1)
            if kind in ("num", "sym") or body == "pi":
                raise Unreadable("two numbers side by side")

    def _unit(self) -> None:
        """Drop a unit: words, perhaps with a power, a slash or a dot and more words."""
        while self.peek()[0] == "words":
            if not is_unit(self.take()[1]):
                raise Unreadable("words that are not a unit")
            if self.take_if(("op", "^")):
                self.argument()
            if self.peek() in (("op", "/"), ("cmd", "cdot")) and self.peek(1)[0] == "words":
                self.at += 1

    # Factors: an atom and what is written behind it

    def starts_factor(self) -> bool:
        kind, body = self.peek()
        if kind == "op":
            return body in ("(", "[", "{", "{set") or (body == "|" and not self._bars)
        return kind in ("num", "sym", "fn", "begin") or (kind == "cmd" and body in ATOM_COMMANDS)

    def factor(self) -> Node:
        self.deeper()
        node = self.atom()
        for _ in range(8):
            token = self.tokens[self.at]
            if token not in _BEHIND:
                self.shallower()
                return node
            if token == ("op", "^"):
                self.at += 1
                node = self._raised(node)
            elif token == ("op", "*"):
                if self.peek(1) != ("op", "*"):
                    self.shallower()
                    return node
                self.at += 2
                node = self.node("pow", node, self._signed(self.factor))
            elif token == ("op", "!"):
                if self.peek(1) in (("op", "!"), ("op", "=")):
                    raise Unreadable("a double factorial or an inequation")
                self.at += 1
                node = self.node("fact", node)
            elif token == ("op", "%"):
                self.at += 1
                node = self.node("percent", node)
            else:
                self.at += 1
                node = self.node("deg", node)
        raise Unreadable("too many marks behind one factor")

    def _raised(self, base: Node) -> Node:
        circle = ("cmd", "circ"), ("cmd", "degree")
        if self.peek() in circle:
            self.at += 1
            return self.node("deg", base)
        if self.peek() == ("op", "{") and self.peek(1) in circle and self.peek(2) == ("op", "}"):
            self.at += 3
            return self.node("deg", base)
        return self.node("pow", base, self._exponent())

    def _exponent(self) -> Node:
        self.deeper()
        node = self._signed(self.argument)
        if self.take_if(("op", "^")):
            node = self.node("pow", node, self._exponent())
        self.shallower()
        return node

    def argument(self, *, one_digit: bool = False) -> Node:
        """What a command takes: a group, a number (or its first digit) or another atom."""
        kind, body = self.peek()
        if kind == "num" and one_digit and len(body) > 1 and body.isdigit():
            self.tokens[self.at] = ("num", body[1:])
            return number(int(body[0]))
        if kind == "num":
            self.at += 1
            return number(literal_value(body))
        self.deeper()
        node = self.atom()
        self.shallower()
        return node

    # Atoms

    def atom(self) -> Node:
        kind, body = self.take()
        if kind == "num":
            return self._numeral(body)
        if kind == "sym":
            return self._symbol(body)
        if kind == "fn":
            return self._function(body)
        if kind == "op" and body in ("(", "["):
            return self.brackets(body)
        if kind == "op" and body in ("{", "{set"):
            return self.braces(body)
        if kind == "op" and body == "|":
            return self._between_bars()
        if kind == "begin":
            return self.environment(body)
        if kind == "cmd" and body in ATOM_COMMANDS:
            return self._command(body)
        raise Unreadable(f"{body or kind!r} where a value is due")

    def brackets(self, opener: str) -> Node:
        raise NotImplementedError

    def braces(self, opener: str) -> Node:
        raise NotImplementedError

    def environment(self, name: str) -> Node:
        raise NotImplementedError

    def group(self) -> Node:
        """The scalar between the next braces, brackets or none."""
        opener = self.take()[1]
        if opener not in _CLOSERS:
            raise Unreadable("no bracket where one is due")
        self.deeper()
        outer, self._bars = self._bars, 0
        node = self.sum()
        self._bars = outer
        self.shallower()
        self.expect(_CLOSERS[opener])
        return node

    def _between_bars(self) -> Node:
        self.deeper()
        self._bars += 1
        node = self.sum()
        self._bars -= 1
        self.shallower()
        self.expect("|")
        return self.node("abs", node)

    def _numeral(self, body: str) -> Node:
        if self.peek() == ("op", "_"):
            return self._based(body)
        if self.peek() in (("cmd", "overline"), ("cmd", "dot")) and "." in body:
            return self._repeating(body)
        if "." in body and "e" not in body.lower() and self.peek() in _TIMES:
            shift = self._power_of_ten()
            if shift is not None:
                return number(literal_value(f"{body}e{shift}"))
        return self.node("num", value=literal_value(body))

    def _power_of_ten(self) -> int | None:
        r"""The k of a following \times 10^{k}, consumed: part of the same literal."""
        if self.peek(1) != ("num", "10") or self.peek(2) != ("op", "^"):
            return None
        ahead, braced = 3, self.peek(3) == ("op", "{")
        ahead += braced
        minus = self.peek(ahead) == ("op", "-")
        ahead += minus
        kind, digits = self.peek(ahead)
        if kind != "num" or not digits.isdigit() or len(digits) > 3:
            return None
        if braced and self.peek(ahead + 1) != ("op", "}"):
            return None
        self.at += ahead + 1 + braced
        return -int(digits) if minus else int(digits)

    def _repeating(self, body: str) -> Node:
        r"""0.1\overline{6}: 1/6."""
        self.at += 1
        braced = self.take_if(("op", "{"))
        kind, period = self.take()
        if braced:
            self.expect("}")
        if kind != "num" or not period.isdigit() or len(period) + len(body) > 60:
            raise Unreadable("a repeating decimal without its digits")
        whole, _, start = body.partition(".")
        scale = 10 ** len(start)
        exact = Fraction(int(whole + start or "0"), scale)
        return number(plain(exact + Fraction(int(period), (10 ** len(period) - 1) * scale)))

    def _based(self, digits: str) -> Node:
        """A literal with its base; base ten is the plain number."""
        self.at += 1
        braced = self.take_if(("op", "{"))
        kind, base = self.take()
        if braced:
            self.expect("}")
        if kind == "words" and base in BASE_WORDS:
            base = str(BASE_WORDS.index(base) + 2)
        elif kind != "num" or not base.isdigit():
            raise Unreadable("a subscript that is no base")
        if base == "10":
            return number(literal_value(digits))
        return self.node("based", value=based_body(digits, base))

    def _symbol(self, name: str) -> Node:
        if name in _FORMAL_FUNCTIONS:
            name += self._primes()
            if self.peek() == ("op", "("):
                self.at += 1
                inner = self.brackets("(")
                args = inner.args if inner.op == "tuple" else (inner,)
                return self.node("call", *args, value=name)
        if self.peek() == ("op", "_"):
            self.at += 1
            name += "_" + self._spelling()
        name += self._primes()
        if name in ("i", "e"):
            return self.node("const", value=name)
        return self.node("sym", value=name)

    def _primes(self) -> str:
        count = 0
        while count < 4:
            if self.take_if(("op", "'")):
                count += 1
            elif self.peek() == ("op", "^") and self.peek(1) == ("op", "'"):
                self.at += 2
                count += 1
            else:
                break
        return "'" * count

    def _spelling(self) -> str:
        """The text of the next token or braced group: a subscript, or what a bar covers."""
        if not self.take_if(("op", "{")):
            kind, body = self.take()
            if kind not in ("num", "sym", "words"):
                raise Unreadable("no name where one is due")
            return body
        bodies: list[str] = []
        while not self.take_if(("op", "}")):
            kind, body = self.take()
            if kind not in ("num", "sym", "words") and body not in ("+", "-", ",", "'"):
                raise Unreadable("no name where one is due")
            bodies.append(body)
        return "".join(bodies)

    def _command(self, name: str) -> Node:
        if name == "frac":
            return self._fraction()
        if name in ("sqrt", "cbrt"):
            return self._root(3 if name == "cbrt" else 2)
        if name == "pi":
            return self.node("const", value="pi")
        if name == "infty":
            return INFINITY
        if name == "binom":
            return self._binomial()
        if name in ("lfloor", "lceil"):
            node = self.sum()
            if self.take() != ("cmd", "r" + name[1:]):
                raise Unreadable("a whole part that does not end")
            return self.node(name[1:], node)
        if name in ("absfn", "floorfn", "ceilfn"):
            return self.node(name[:-2], self.group())
        if name in ("overline", "vec", "hat", "dot"):
            return self.node("sym", value=f"{name}:{self._spelling()}")
        if name in ("angle", "measuredangle", "triangle"):
            return self._figure(name)
        if name == "mathbb":
            letter = self._spelling()
            return self.node("reals") if letter == "R" else self.node("sym", value=f"set:{letter}")
        if name == "emptyset":
            return self.node("set")
        return self.brackets("langle")

    def _figure(self, name: str) -> Node:
        letters = ""
        while len(letters) < 3 and self.peek()[0] == "sym":
            letters += self.take()[1]
        if not letters:
            raise Unreadable("an angle without a name")
        return self.node("sym", value=f"{name.removeprefix('measured')} {letters}")

    def _fraction(self) -> Node:
        above = self.argument(one_digit=True)
        below = self.argument(one_digit=True)
        if above.op == below.op == "num" and below.value:
            exact = Fraction(above.value) / below.value
            whole = isinstance(above.value, int) and isinstance(below.value, int)
            if whole and 0 < above.value < below.value:
                self._proper = exact
            return self.node("num", value=plain(exact))
        return quotient(above, below)

    def _root(self, degree: int) -> Node:
        index = number(degree)
        if self.take_if(("op", "[")):
            index = self.sum()
            self.expect("]")
        return self.node("root", self.argument(), index)

    def _binomial(self) -> Node:
        if self.take_if(("op", "(")):
            pair = self.brackets("(")
            if pair.op != "tuple" or len(pair.args) != 2:
                raise Unreadable("a binomial without two arguments")
            return self.node("binom", *pair.args)
        above = self.argument(one_digit=True)
        return self.node("binom", above, self.argument(one_digit=True))

    # Functions

    def _function(self, name: str) -> Node:
        power: Node | None = None
        base: Node | None = None
        for _ in range(2):
            if self.take_if(("op", "^")):
                power = self._exponent()
            elif self.take_if(("op", "_")):
                base = self.argument()
        if power == number(-1) and name in _INVERSES:
            name, power = _INVERSES[name], None
        node = self._applied(name, self._operands(name), base)
        return node if power is None else self.node("pow", node, power)

    def _applied(self, name: str, args: tuple[Node, ...], base: Node | None) -> Node:
        if name in ("gcd", "lcm", "max", "min"):
            return self.node(name, *args)
        if len(args) != 1:
            raise Unreadable(f"{name} of {len(args)} arguments")
        if name == "exp":
            return self.node("pow", Node("const", (), "e"), args[0])
        if name == "log":
            return self.node("log", args[0], base or number(10))
        if base is not None:
            raise Unreadable(f"{name} with a base")
        return self.node(name, *args)

    def _operands(self, name: str) -> tuple[Node, ...]:
        if self.peek() in (("op", "("), ("op", "{")):
            node = self.argument()
            return node.args if node.op in ("tuple", "set") else (node,)
        self.deeper()
        node = self._signed(self._open_operand)
        self.shallower()
        return (node,)

    def _open_operand(self) -> Node:
        r"""The implicit product behind \sin: 5x, \pi/6, \frac{1}{2}\theta."""
        factors = [self.factor()]
        while self.starts_factor() and self.peek()[0] != "fn":
            self._check_neighbours()
            factors.append(self.factor())
        angle = any(Node("const", (), "pi") == f or contains(f, "deg") for f in factors)
        if angle and self.peek() == ("op", "/") and self.peek(1)[0] == "num":
            self.at += 1
            factors.append(self.node("inv", self.factor()))
        return factors[0] if len(factors) == 1 else self.node("mul", *factors)


def literal_value(body: str) -> int | Fraction:
    """The exact value of a literal such as 12, .5, 7. or 1.5e-3."""
    mantissa, _, exponent = body.lower().partition("e")
    whole, _, places = mantissa.partition(".")
    shift = 0
    if exponent:
        if len(exponent) > 5:
            raise Unreadable("a literal beyond the digit budget")
        shift = int(exponent)
    return decimal_literal(whole + places, places=len(places) - shift)


def based_body(digits: str, base: str) -> str:
    """One spelling of a literal in another base: no idle zeros, capital letters."""
    whole, _, places = digits.upper().partition(".")
    places = places.rstrip("0")
    return f"{whole.lstrip('0') or '0'}{'.' + places if places else ''}_{base.lstrip('0')}"
