"""What print leaves in a text: footnote marks, large initials, numbers of list items, rows of tables, split words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from manuscript.headings import is_heading
from manuscript.passages import Passage

BEFORE = 80  # characters of context needed before a mark

_MARK = re.compile(r"[\s\d,;*†‡§¶\[\]()–-]{1,12}")
_SIGN = re.compile(r"[\d*†‡§¶]")
_EXPONENT = re.compile(r"[\d+−–-]{1,6}")
_RAISED = str.maketrans("0123456789+-−–", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻")
_WORD = re.compile(r"(?<![^\W\d_])[^\W\d_]++\Z")
_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d\Z")
_WORDS_IN_BRACKETS = re.compile(r"\((?=[^()]*?[^\W\d_]{3})[^()]*+\)\Z")
_POWERS = frozenset((
    "mm", "cm", "dm", "km", "ft", "in", "yd", "mi", "nm", "μm", "sin", "cos", "tan", "log", "ln", "mc",
))  # fmt: skip
"""Units and functions that can have exponents, like any single letter."""
_CLOSING = ".,;:!?…\"'”’»›“‘]」』。、"
_OPENS = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]+\s*(?=\s|[^\W\d_][^\W\d_])")

_INITIAL = re.compile(r"[\"'“‘«„]?[^\W\d_]")
_FIRST_WORD = re.compile(r"[^\W\d_]+")

MAX_ROMAN = 4999
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip

MAX_CELL = 60
"""Maximum characters; a table with longer cells, or with sentences, only arranges paragraphs."""
SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")

_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]\Z")
_HYPHENATED = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_AND = re.compile(r"(?:and|or|to|nor|und|oder|bis|et|ou|y|e|o)\b")
"""Follows a hyphen that stays, as in "pre- and post-war"."""


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


def with_initials(passages: Sequence[Passage]) -> Sequence[Passage]:
    """Join each letter on its own, a large initial, with the paragraph below, which begins in lower case.

    A letter that is a word too, as A and I are, gets a space where the rest is a word of the document and both together
    are not.
    """
    letters = {
        at
        for at, (passage, below) in enumerate(pairwise(passages))
        if _INITIAL.fullmatch(passage.text)
        and passage.text[-1].isupper()
        and below.text[:1].islower()
        and not (below.chapter or passage.is_title or passage.chapter == passage.text)
    }
    if not letters:
        return passages
    words = {word.casefold() for passage in passages for word in _FIRST_WORD.findall(passage.text)[1:]}
    joined: list[Passage] = []
    for at, passage in enumerate(passages):
        if at - 1 not in letters:
            joined.append(passage)
            continue
        letter, rest = joined[-1], _FIRST_WORD.findall(passage.text[:BEFORE])[0].casefold()
        initial = letter.text[-1].casefold()
        gap = " " if {initial, rest} <= words and len(rest) > 1 and f"{initial}{rest}" not in words else ""
        joined[-1] = letter.followed_by(passage, f"{letter.text}{gap}{passage.text}")
    return joined


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


def row_text(cells: Sequence[str]) -> str | None:
    """A row with commas between its cells; None if each cell is a paragraph. ``cells``: those with text."""
    if len(cells) < 2 or any(
        "\n" in cell or len(cell) > MAX_CELL or SENTENCE_END.search(cell) or is_heading(cell) for cell in cells
    ):
        return None
    line = cells[0]
    for cell in cells[1:]:
        line += f" {cell}" if line[-1] in ",;:" else f", {cell}"
    return None if is_heading(line) else line


def ends_in_half_word(line: str) -> bool:
    """Whether the last word of a line may continue on the next line."""
    return _HYPHEN.search(line) is not None


class HalfWords:
    """Joins lines by looking up which words occur unbroken elsewhere in the document.

    ``keeps_hyphen``: words found nowhere else keep their hyphen, as in books that break only compounds.
    """

    def __init__(self, lines: Iterable[str], keeps_hyphen: bool = False) -> None:
        # Not the first and the last word of a line, which may be halves.
        self._words = Counter(word.casefold() for line in lines for word in _HYPHENATED.findall(line)[1:-1])
        self._keeps_hyphen = keeps_hyphen

    def are_one(self, line: str, following: str) -> bool:
        """Whether the last word of a line continues on the next line."""
        return ends_in_half_word(line) and following[:1].islower() and not _AND.match(following)

    def unhyphenated(self, line: str, following: str) -> str:
        """A line whose last word continues on the next one, without the hyphen unless it belongs to the word."""
        words, ending = _HYPHENATED.findall(line[-60:-1] or " "), _HYPHENATED.match(following)
        if not words or not ending or line[-1] == "\u00ad":
            return line[:-1]
        joined, hyphenated = f"{words[-1]}{ending[0]}".casefold(), f"{words[-1]}-{ending[0]}".casefold()
        balance = self._words[hyphenated] - self._words[joined]
        return line if balance > 0 or (self._keeps_hyphen and not balance) else line[:-1]
