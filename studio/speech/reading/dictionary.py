"""Words and phrases that are said otherwise than they are written, as a dictionary has them; tags stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate

from studio.library.pronunciations.entries import Pronunciation
from studio.speech.text import TAG

_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, Kana, Han."""
_TOKEN = re.compile(rf"\s+|[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")
"""What a word or phrase is made of: it begins with one of these and ends with one, so never amid a word."""
MOST_KNOWN = 64


class Dictionary:
    """Reads texts by entries, in a time that grows with the text and not with their number.

    At each place the longest phrase counts; of entries for the same one that which comes first.
    """

    def __init__(self, entries: Iterable[Pronunciation]) -> None:
        self._ranked: dict[str, tuple[int, Pronunciation]] = {}
        """By their keys, with their places among the others."""
        counts: dict[str, set[int]] = {}
        for rank, entry in enumerate(sorted(entries, key=lambda each: -len(each.phrase))):
            tokens = _TOKEN.findall(entry.phrase.strip())
            if tokens and entry.key not in self._ranked:
                self._ranked[entry.key] = rank, entry
                counts.setdefault(tokens[0].casefold(), set()).add(len(tokens))
        self._counts = {first: sorted(each, reverse=True) for first, each in counts.items()}
        """How many tokens the phrases that begin with one have, most first."""

    def read(self, text: str) -> str:
        """The text with what is said in the place of each phrase. Blocking: a few milliseconds."""
        if not self._ranked:
            return text
        read, at = list[str](), 0
        for tag in (*TAG.finditer(text), None):
            read.append(self._words(text[at : tag.start() if tag else len(text)]))
            if tag:
                read.append(tag[0])
                at = tag.end()
        return "".join(read)

    def _words(self, text: str) -> str:
        tokens = _TOKEN.findall(text)
        written = [" " if token.isspace() else token for token in tokens]
        folded = [token.casefold() for token in written]
        as_written, as_folded = _Joined(written), _Joined(folded)
        read, at = list[str](), 0
        while at < len(tokens):
            said, count = tokens[at], 1
            for length in self._counts.get(folded[at], ()):
                entry = self._entry(as_written.piece(at, length), as_folded.piece(at, length))
                if entry is not None and at + length <= len(tokens):
                    said, count = entry.said, length
                    break
            read.append(said)
            at += count
        return "".join(read)

    def _entry(self, written: str, folded: str) -> Pronunciation | None:
        """The entry for exactly these words."""
        found = [known for key in (f" {written}", folded) if (known := self._ranked.get(key))]
        same = [known for known in found if _lengths(known[1].phrase) == _lengths(written)]  # ß is not ss
        return min(same, key=lambda known: known[0])[1] if same else None


def _lengths(phrase: str) -> list[int]:
    return list(map(len, phrase.split()))


class _Joined:
    """Tokens as one string, of which any that follow each other can be had at once."""

    def __init__(self, tokens: list[str]) -> None:
        self._whole, self._ends = "".join(tokens), [0, *accumulate(map(len, tokens))]

    def piece(self, start: int, count: int) -> str:
        return self._whole[self._ends[start] : self._ends[min(start + count, len(self._ends) - 1)]]


@lru_cache(maxsize=MOST_KNOWN)
def dictionary_of(entries: tuple[Pronunciation, ...]) -> Dictionary:
    """Made once of the same entries."""
    return Dictionary(entries)
