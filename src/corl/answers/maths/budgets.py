"""The fixed limits of the maths reader, and the error that means "beyond them".

Each limit counts something in the text or the arithmetic, never time: two machines
give up at the same place, and what they give up on is keyed by its normalised text.
"""

MAX_CHARS = 2000
"""Longest text that is parsed, in characters."""

MAX_CLEANED_CHARS = 8000
"""Longest text whose spelling is normalised, in characters; beyond it only spaces go."""

MAX_NODES = 400
"""Most nodes of one parsed answer."""

MAX_DEPTH = 24
"""Deepest nesting of groups, arguments and exponents."""

MAX_LITERAL_DIGITS = 400
"""Longest number literal, in digits."""

MAX_EXACT_BITS = 32768
"""Largest numerator or denominator that is kept exactly, in bits."""

MAX_EXPONENT_DIGITS = 1_000_000
"""Largest decimal exponent of an inexact value."""

MAX_FACTORIAL = 3000
"""Largest argument of an exact factorial."""

MAX_SIGN_CHOICES = 4
"""Most plus-minus signs in one element: 2**4 readings."""

MAX_WORK = 100.0
"""Arithmetic spent on one answer. One unit is a logarithm to 110 digits."""

PRECISIONS = (110, 250, 600)
"""Working precisions in decimal digits; the next is used when cancellation eats one."""

KEY_DIGITS = 40
"""Significant digits of an inexact value that enter a key."""


class Unreadable(Exception):
    """The text is outside the grammar or a budget; its normalised text is the key."""
