"""Compares a transcript with the recognised words and marks where they differ."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from rapidfuzz.distance import Indel, LCSseq

from speechtext.characters import normalize
from speechtext.errors import TextError

MAX_TEXT = 2000
"""Characters of a transcript."""
ALIKE = 0.75
"""Words with this share of letters in common count as two spellings of one word."""

MAX_ALIKE = 64
"""Maximum letters of a word."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A piece of a transcript; all pieces joined give the transcript."""

    text: str
    heard: str | None = None
    """The words recognised instead, blank for none; None where both agree. Text is blank for words only
    recognised."""


@dataclass(frozen=True, slots=True)
class _Word:
    folded: str
    start: int
    end: int


def compare(transcript: str, heard: str) -> tuple[Mark, ...]:
    """The transcript in pieces, marked where other words were recognised; ignores spelling, case and punctuation.

    Blocking: 50 ms for the longest texts. Raises TextError for one of more than MAX_TEXT characters.
    """
    for name, text in (("ref_text", transcript), ("heard", heard)):
        if len(text) > MAX_TEXT:
            raise TextError(f"{name} has {len(text)} characters; at most {MAX_TEXT} are allowed", name)
    transcript, heard = (normalize("NFC", text) for text in (transcript, heard))
    words, heard_words = _words(transcript), _words(heard)
    marks, position = list[Mark](), 0
    for first, last, start, end in _differences([w.folded for w in words], [w.folded for w in heard_words]):
        if _are_alike(_joined(words[first:last]), _joined(heard_words[start:end])):
            continue
        begins = words[first].start if first < len(words) else len(transcript)
        ends = words[last - 1].end if last > first else begins
        if position < begins:
            marks.append(Mark(transcript[position:begins]))
        replacement = heard[heard_words[start].start : heard_words[end - 1].end] if start < end else ""
        marks.append(Mark(transcript[begins:ends], replacement))
        position = ends
    return (*marks, Mark(transcript[position:])) if position < len(transcript) else tuple(marks)


def _differences(words: list[str], heard_words: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """The spans outside a longest common subsequence: first and last + 1 in one list and in the other."""
    first = start = 0
    for block in LCSseq.editops(words, heard_words).as_matching_blocks():
        if first < block.a or start < block.b:
            yield first, block.a, start, block.b
        first, start = block.a + block.size, block.b + block.size


def _joined(words: list[_Word]) -> str:
    return " ".join(word.folded for word in words)


def _words(text: str) -> list[_Word]:
    """Words without punctuation and case; scripts without spaces count letter by letter."""
    words: list[_Word] = []
    joined = False
    for position, letter in enumerate(text):
        for sign in unicodedata.normalize("NFKC", letter).casefold():
            if sign in "'’":
                continue
            if unicodedata.category(sign)[0] not in "LNM":
                joined = False
                continue
            is_dense = sign >= "\u2e80"
            if words and words[-1].start == position and is_dense:  # one letter that expands to several
                words[-1] = _Word(words[-1].folded + sign, position, position + 1)
            elif joined and not is_dense:
                last = words.pop()
                words.append(_Word(last.folded + sign, last.start, position + 1))
            else:
                words.append(_Word(sign, position, position + 1))
            joined = not is_dense
    return words


def _are_alike(left: str, right: str) -> bool:
    if not left or not right or max(len(left), len(right)) > MAX_ALIKE:
        return False
    return Indel.normalized_similarity(left, right) >= ALIKE
