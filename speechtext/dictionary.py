"""Applies pronunciation dictionaries: replaces words and phrases by how they are pronounced, except in tags."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from speechtext.tags import TAG, between

_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts without spaces between words: Thai, Lao, Burmese, Khmer, Kana, Han."""
_TOKEN = re.compile(rf"\s+|[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")
"""Phrases consist of whole tokens, so they never match inside a word."""
MAX_CACHED = 64
PHONEMES = ("<|phoneme_start|>", "<|phoneme_end|>")
_APOSTROPHES = str.maketrans(dict.fromkeys("’‘‛ʼʻ´＇", "'"))
"""Keyboards write one of these in a phrase, books another."""


@dataclass(frozen=True, slots=True)
class Entry:
    """How a phrase is pronounced."""

    phrase: str
    said: str  # what is read instead: other words, or phonemes between PHONEMES
    match_case: bool = False

    @property
    def key(self) -> str:
        """Identifies the words of an entry: after a space if their case counts, else folded."""
        words = " ".join(self.phrase.translate(_APOSTROPHES).split())
        return f" {words}" if self.match_case else words.casefold()


def fold_phrase(text: str) -> str:
    """Fold case, spaces and the kinds of apostrophes."""
    return " ".join(text.translate(_APOSTROPHES).casefold().split())


class Dictionary:
    """Replaces phrases in a time that grows with the text and not with the number of entries.

    The longest phrase wins at each position; the first of several entries for the same phrase counts.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._ranked: dict[str, tuple[int, Entry]] = {}  # entries by key, with their rank
        counts: dict[str, set[int]] = {}
        for rank, entry in enumerate(sorted(entries, key=lambda entry: -len(entry.phrase))):
            tokens = _TOKEN.findall(entry.phrase.strip().translate(_APOSTROPHES))
            if tokens and entry.key not in self._ranked:
                self._ranked[entry.key] = rank, entry
                counts.setdefault(tokens[0].casefold(), set()).add(len(tokens))
        self._lengths = {first: sorted(lengths, reverse=True) for first, lengths in counts.items()}
        """Numbers of tokens of the phrases that begin with a token, longest first."""

    def read(self, text: str) -> str:
        """Replace each phrase by its pronunciation. Blocking: a few milliseconds."""
        return between(TAG.finditer(text), text, self._words) if self._ranked else text

    def _words(self, text: str) -> str:
        tokens = _TOKEN.findall(text.translate(_APOSTROPHES))
        ends = [0, *accumulate(map(len, tokens))]  # in the text, whose apostrophes stay where no phrase is
        words = [" " if token.isspace() else token for token in tokens]
        folded = [token.casefold() for token in words]
        as_written, as_folded = _Joined(words), _Joined(folded)
        read, at = list[str](), 0
        while at < len(tokens):
            replacement, count = text[ends[at] : ends[at + 1]], 1
            for length in self._lengths.get(folded[at], ()):
                entry = self._entry(as_written.piece(at, length), as_folded.piece(at, length))
                if entry is not None and at + length <= len(tokens):
                    replacement, count = entry.said, length
                    break
            read.append(replacement)
            at += count
        return "".join(read)

    def _entry(self, phrase: str, folded: str) -> Entry | None:
        """The entry for exactly these words."""
        matches = [match for key in (f" {phrase}", folded) if (match := self._ranked.get(key))]
        exact = [match for match in matches if _lengths(match[1].phrase) == _lengths(phrase)]  # ß is not ss
        return min(exact, key=lambda match: match[0])[1] if exact else None


def _lengths(phrase: str) -> list[int]:
    return list(map(len, phrase.split()))


class _Joined:
    """Tokens joined into one string, with fast access to any run of tokens."""

    def __init__(self, tokens: list[str]) -> None:
        self._whole, self._ends = "".join(tokens), [0, *accumulate(map(len, tokens))]

    def piece(self, start: int, count: int) -> str:
        return self._whole[self._ends[start] : self._ends[min(start + count, len(self._ends) - 1)]]


dictionary_of = lru_cache(maxsize=MAX_CACHED)(Dictionary)  # of a tuple of entries
