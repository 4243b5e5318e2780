"""Formats the numbers of ordered lists of the kinds 1, a, A, i and I, as in HTML."""

from __future__ import annotations

MAX_ROMAN = 4999
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


def ordinal(number: int, kind: str) -> str:
    """The number of a list item of kind 1, a, A, i or I; in digits if the kind cannot express it."""
    if kind in ("a", "A") and number > 0:
        letters = ""
        while number:
            number, letter = divmod(number - 1, 26)
            letters = chr(ord(kind) + letter) + letters
        return letters
    if kind in ("i", "I") and 0 < number <= MAX_ROMAN:
        roman = ""
        for value, sign in _ROMAN:
            count, number = divmod(number, value)
            roman += sign * count
        return roman if kind == "i" else roman.upper()
    return str(number)
