"""Raised digits in books: marks of footnotes, which are not read aloud, or exponents, which are."""

from __future__ import annotations

import re

BEFORE = 80
"""Characters before a mark that decide whether it is one."""

_MARK = re.compile(r"[\s\d,;*†‡§¶\[\]()–-]{1,12}")
_SIGN = re.compile(r"[\d*†‡§¶]")
_EXPONENT = re.compile(r"[\d+−–-]{1,6}")
_RAISED = str.maketrans("0123456789+-−–", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻")
_WORD = re.compile(r"[^\W\d_]+\Z")
_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d\Z")
_WORDS_IN_BRACKETS = re.compile(r"\([^()]*[^\W\d_]{3}[^()]*\)\Z")
_POWERS = frozenset((
    "mm", "cm", "dm", "km", "ft", "in", "yd", "mi", "nm", "μm", "sin", "cos", "tan", "log", "ln", "mc",
))  # fmt: skip
"""Units and functions that have exponents; so has a single letter."""
_CLOSING = ".,;:!?…\"'”’»›“‘]」』。、"
_OPENS = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]+\s*(?=\s|[^\W\d_][^\W\d_])")


def is_note_mark(before: str, raised: str) -> bool:
    """Whether the text ``raised`` after the text ``before`` is the mark of a note, and not an exponent.

    It is one after a word or the end of a sentence; stars and daggers are always one.
    """
    if not (_MARK.fullmatch(raised) and _SIGN.search(raised)):
        return False
    if not any(sign.isdigit() for sign in raised):
        return True
    if word := _WORD.search(before):
        return len(word[0]) > 1 and word[0] not in _POWERS
    if before.endswith(")"):
        return _WORDS_IN_BRACKETS.search(before) is not None
    return before.endswith(tuple(_CLOSING)) or _YEAR.search(before) is not None


def as_raised(text: str) -> str:
    """Digits as raised ones, so that 10² is not read as 102; anything else stays."""
    return text.translate(_RAISED) if _EXPONENT.fullmatch(text) else text


def without_first_mark(text: str) -> str:
    """A paragraph without the raised number with which a note, or a verse, begins."""
    return text[found.end() :].lstrip() if (found := _OPENS.match(text)) else text
