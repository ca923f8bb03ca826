"""Unicode characters of mathematics and their LaTeX spelling.

Superscript and subscript digits are translated run by run, as one exponent or index.
"""

from __future__ import annotations

import re

_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi "
    "psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
)
_SPELLINGS = {
    **dict.fromkeys("\u2212\u2010\u2011\u2012\u2013\u2014\ufe63\uff0d", "-"),
    **dict.fromkeys(
        "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a", " "
    ),
    **dict.fromkeys("\u202f\u205f\u3000", " "),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u2061\u2062\u2063\u2064\ufe0f", ""),
    "\u00d7": "\\times ",
    "\u2715": "\\times ",
    **dict.fromkeys("\u00b7\u22c5\u2219\u2022", "\\cdot "),
    "\u00f7": "/",
    "\u2044": "/",
    "\u2215": "/",
    "\u221a": "\\sqrt ",
    "\u221b": "\\sqrt[3] ",
    "\u221e": "\\infty ",
    "\u2264": "\\le ",
    "\u2a7d": "\\le ",
    "\u2265": "\\ge ",
    "\u2a7e": "\\ge ",
    "\u2260": "\\ne ",
    "\u2248": "\\approx ",
    "\u2261": "\\equiv ",
    "\u00b1": "\\pm ",
    "\u2213": "\\mp ",
    "\u222a": "\\cup ",
    "\u2229": "\\cap ",
    "\u2208": "\\in ",
    "\u2216": "\\setminus ",
    "\u2205": "\\emptyset ",
    "\u00b0": "^\\circ ",
    "\u2218": "\\circ ",
    "\u2220": "\\angle ",
    "\u25b3": "\\triangle ",
    "\u211d": "\\mathbb{R}",
    "\u230a": "\\lfloor ",
    "\u230b": "\\rfloor ",
    "\u2308": "\\lceil ",
    "\u2309": "\\rceil ",
    "\u27e8": "\\langle ",
    "\u27e9": "\\rangle ",
    "\u2026": "\\ldots ",
    "\u22ef": "\\ldots ",
    "\u2032": "'",
    "\u2019": "'",
    **dict.fromkeys("\u201c\u201d", '"'),
    "\uff05": "%",
    **{chr(0xFF01 + k): chr(0x21 + k) for k in range(94)},
    "\u3002": ".",
    "\u3001": ",",
    **dict.fromkeys("$\u20ac\u00a3\uffe5", "$"),
    **{chr(0x1D7CE + k): str(k % 10) for k in range(50)},
    "\u2153": "\\frac{1}{3}",
    "\u2154": "\\frac{2}{3}",
    **{
        mark: f"\\frac{{{n}}}{{{d}}}"
        for mark, n, d in [
            ("\u00bc", 1, 4),
            ("\u00bd", 1, 2),
            ("\u00be", 3, 4),
            ("\u2155", 1, 5),
            ("\u2156", 2, 5),
            ("\u2157", 3, 5),
            ("\u2158", 4, 5),
            ("\u2159", 1, 6),
            ("\u215a", 5, 6),
            ("\u2150", 1, 7),
            ("\u215b", 1, 8),
            ("\u215c", 3, 8),
            ("\u215d", 5, 8),
            ("\u215e", 7, 8),
            ("\u2151", 1, 9),
            ("\u2152", 1, 10),
        ]
    },
    **{
        letter: f"\\{name} "
        for letter, name in zip(
            "αβγδεζηθκλμνξπρστφχψωΓΔΘΛΞΠΣΦΨΩ",
            _GREEK.split(),
            strict=True,
        )
    },
}
TABLE = str.maketrans(_SPELLINGS)
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉ₙ", "0123456789n")
RAISED_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+")
LOWERED_RUN = re.compile("[₀₁₂₃₄₅₆₇₈₉ₙ]+")
