"""Words and phrases that are said otherwise than they are written, as a dictionary has them; tags stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from studio.library.pronunciations.entries import Pronunciation
from studio.speech.text import TAG

_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, Kana, Han."""
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")
"""Where a word or phrase may begin: what stands before it is no letter of the same word."""
_GOES_ON = rf"(?![^\W{_UNSPACED}])"
MOST_KNOWN = 64
MOST_PATTERNS = 4096
"""Made when their first words are met: to make thousands takes a good part of a second."""


class Dictionary:
    """Reads texts by entries, in a time that grows with the text and hardly with their number.

    At each place the longest phrase counts; of entries for the same one that which comes first.
    """

    def __init__(self, entries: Iterable[Pronunciation]) -> None:
        self._by_token: dict[str, list[Pronunciation]] = {}
        known = set[str]()
        for entry in sorted(entries, key=lambda each: -len(each.phrase)):
            begins = _TOKEN.search(entry.phrase)
            if begins is None or entry.key in known:
                continue
            known.add(entry.key)
            self._by_token.setdefault(begins[0].casefold(), []).append(entry)

    def read(self, text: str) -> str:
        """The text with what is said in the place of each phrase. Blocking: a few milliseconds."""
        if not self._by_token:
            return text
        read, at = list[str](), 0
        for tag in (*TAG.finditer(text), None):
            read.append(self._words(text, at, tag.start() if tag else len(text)))
            if tag:
                read.append(tag[0])
                at = tag.end()
        return "".join(read)

    def _words(self, text: str, start: int, end: int) -> str:
        read, at = list[str](), start
        for token in _TOKEN.finditer(text, start, end):
            if token.start() < at:
                continue
            for entry in self._by_token.get(token[0].casefold(), ()):
                if found := _pattern(entry).match(text, token.start(), end):
                    read += text[at : token.start()], entry.said
                    at = found.end()
                    break
        return "".join([*read, text[at:end]])


@lru_cache(maxsize=MOST_KNOWN)
def dictionary_of(entries: tuple[Pronunciation, ...]) -> Dictionary:
    """Made once of the same entries."""
    return Dictionary(entries)


@lru_cache(maxsize=MOST_PATTERNS)
def _pattern(entry: Pronunciation) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, entry.phrase.split()))
    ends_a_word = re.search(rf"[^\W{_UNSPACED}]\Z", entry.phrase)
    return re.compile(words + (_GOES_ON if ends_a_word else ""), 0 if entry.match_case else re.IGNORECASE)
