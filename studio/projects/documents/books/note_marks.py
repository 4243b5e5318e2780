"""Tells footnote marks, which are not read aloud, from exponents, which are."""

from __future__ import annotations

import re

BEFORE = 80
"""Characters of context needed before a mark."""

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
"""Units and functions that can have exponents, like any single letter."""
_CLOSING = ".,;:!?…\"'”’»›“‘]」』。、"
_OPENS = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]+\s*(?=\s|[^\W\d_][^\W\d_])")


def is_note_mark(before: str, text: str) -> bool:
    """Whether the raised text is a note mark rather than an exponent.

    It is one after a word or the end of a sentence (``before``); stars and daggers always are.
    """
    if not (_MARK.fullmatch(text) and _SIGN.search(text)):
        return False
    if not any(sign.isdigit() for sign in text):
        return True
    if word := _WORD.search(before):
        return len(word[0]) > 1 and word[0] not in _POWERS
    if before.endswith(")"):
        return _WORDS_IN_BRACKETS.search(before) is not None
    return before.endswith(tuple(_CLOSING)) or _YEAR.search(before) is not None


def as_raised(text: str) -> str:
    """Superscript digits, so that 10² is not read as 102; other text stays."""
    return text.translate(_RAISED) if _EXPONENT.fullmatch(text) else text


def without_first_mark(text: str) -> str:
    """A paragraph without the raised number at its start, as in notes and verses."""
    return text[mark.end() :].lstrip() if (mark := _OPENS.match(text)) else text
