"""Joins words that are hyphenated at the end of a line, and keeps the hyphens of compounds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]\Z")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_AND = re.compile(r"(?:and|or|to|nor|und|oder|bis|et|ou|y|e|o)\b")
"""Follows a hyphen that stays, as in "pre- and post-war"."""


def ends_in_half_word(line: str) -> bool:
    """Whether the last word of a line may continue on the next line."""
    return _HYPHEN.search(line) is not None


class HalfWords:
    """Joins lines by looking up which words occur unbroken elsewhere in the document.

    ``keeps_hyphen``: words found nowhere else keep their hyphen, as in books that break only compounds.
    """

    def __init__(self, lines: Iterable[str], keeps_hyphen: bool = False) -> None:
        self._words = Counter(word for line in lines for word in _inner_words(line))
        self._keeps_hyphen = keeps_hyphen

    def are_one(self, line: str, following: str) -> bool:
        """Whether the last word of a line continues on the next line."""
        return ends_in_half_word(line) and following[:1].islower() and not _AND.match(following)

    def unhyphenated(self, line: str, following: str) -> str:
        """A line whose last word continues on the next one, without the hyphen unless it belongs to the word."""
        words, ending = _WORD.findall(line[-60:-1] or " "), _WORD.match(following)
        if not words or not ending or line[-1] == "\u00ad":
            return line[:-1]
        joined, hyphenated = f"{words[-1]}{ending[0]}".casefold(), f"{words[-1]}-{ending[0]}".casefold()
        balance = self._words[hyphenated] - self._words[joined]
        return line if balance > 0 or (self._keeps_hyphen and not balance) else line[:-1]


def _inner_words(line: str) -> list[str]:
    """The words of a line except the first and the last, which may be halves."""
    return [word.casefold() for word in _WORD.findall(line)[1:-1]]
