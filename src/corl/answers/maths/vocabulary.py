"""The words and commands that the lexer knows, as plain lists.

A word that is in none of them is prose: behind a number it is a unit, elsewhere the whole
answer is text. Extending a list changes keys, so it raises the policy version.
"""

from __future__ import annotations


def listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _named(words: str) -> dict[str, str]:
    return {word: word for word in words.split()}


GREEK = listed(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi "
    "rho sigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Upsilon Phi "
    "Psi Omega ell hbar"
)

FUNCTIONS = {
    **_named("sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh"),
    **_named("ln log exp gcd lcm max min"),
    "lg": "log",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "cosec": "csc",
}

PLAIN_COMMANDS = {
    "sqrt": "sqrt",
    "cbrt": "cbrt",
    "pi": "pi",
    "infinity": "infty",
    "infty": "infty",
    "inf": "infty",
    "oo": "infty",
    "union": "cup",
    "abs": "absfn",
    "floor": "floorfn",
    "ceil": "ceilfn",
    "binom": "binom",
    "pm": "pm",
}

SKIPPED = listed(
    "left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr displaystyle textstyle limits "
    "quad qquad mathbf mathit boldsymbol bm mathsf mathcal mathnormal boxed fbox middle "
    "bf it enspace thinspace nolimits mathstrut hfill"
)

ALIASES = {
    "dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "leq": "le", "leqslant": "le",
    "geq": "ge", "geqslant": "ge", "neq": "ne", "lt": "<", "gt": ">", "dots": "ldots",
    "cdots": "ldots", "dotsc": "ldots", "vdots": "ldots", "dbinom": "binom", "tbinom": "binom",
    "ast": "times", "div": "/", "lbrace": "{set", "rbrace": "}set", "lvert": "|", "rvert": "|",
    "vert": "|", "lbrack": "[", "rbrack": "]", "varnothing": "emptyset", "prime": "'",
    "backslash": "setminus", "degree": "degree", "degrees": "degree", "colon": ":", "mid": "mid",
    "land": "and", "lor": "or", "wedge": "and", "vee": "or", "simeq": "approx", "cdotp": "cdot",
    "overrightarrow": "vec", "bar": "overline", "widehat": "hat", "arccot": "arccot",
}  # fmt: skip

OPERATOR_COMMANDS = frozenset({"<", ">", "/", "|", "[", "]", ":", "'", "{set", "}set"})

ESCAPED = {
    "{": "{set",
    "}": "}set",
    "\\": "row",
    "%": "%",
    "|": "||",
    "&": "&",
    "#": "#",
    "_": "_",
}

UNITS = listed(
    "cm km mm kg mg ml mL ft yd mi lb lbs oz mph kph kmh hr hrs min mins sec secs sq gal USD usd "
    "deg rad ways units unit cents cent days day pts pt hours hour inches inch feet foot miles "
    "dollars yen euros mL kWh kW Hz Pa atm mol"
)

UNIT_STOPPERS = listed(
    "more less than least most not no over under about approximately mod modulo if when for is are "
    "where to from between only except other without infinitely many but a.m. p.m. am pm base "
    "remainder times million billion thousand hundred percent dozen trillion half halves squared "
    "cubed each at up nor neither either both thirds plus minus divided "
    "and or below above negative"
)

SHORT_WORDS = listed(
    "yes no odd one two six ten red may jun jul aug sep oct nov dec jan feb mar apr mon tue wed "
    "thu fri sat sun dne nan all any not the of is it he she they her him his tie win low up top "
    "old new big hot dry wet boy girl cat dog man men day net van bus car cow pig hen fox bee"
)

MATHS_NAMES = listed(
    "pi sqrt cbrt sin cos tan cot sec csc arcsin arccos arctan asin acos atan sinh cosh tanh log "
    "ln exp abs floor ceil infinity infty inf oo alpha beta gamma delta theta lambda phi omega "
    "sigma mu rho tau epsilon psi union degrees degree deg gcd lcm max min sup"
)

ATOM_COMMANDS = listed(
    "frac sqrt cbrt pi infty binom lfloor lceil overline vec hat dot angle measuredangle triangle "
    "mathbb emptyset langle absfn floorfn ceilfn"
)

BASE_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
