"""The words of a text as somebody wrote them, and which of those that were read stand for which."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from studio.speech.text import TAG, sentences_of
from studio.strings import normalised

_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
"""Scripts without spaces, of which each character counts as a word."""
_WORD = re.compile(rf"[{_ALONE}]|[^\s—…{_ALONE}]+")
_READ_ALOUD = "%&#@"
"""Punctuation by its category, and yet words."""
_FIGURE = re.compile(r"[\d$€£¥%&@#]")
_WRITTEN_AHEAD, _READ_AHEAD = 24, 200
"""How many words may be written, and how many read, before both meet again: a number has many."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A piece of a text, as it is written, and when it is heard, in seconds."""

    text: str
    start: float
    end: float


def words_in(text: str) -> list[tuple[int, int]]:
    """From where to where each word goes, without the punctuation around it. [tags] are none."""
    spans = []
    for found in _WORD.finditer(_without_tags(text)):
        start, end = found.span()
        while start < end and _is_around(text[start]):
            start += 1
        while start < end and _is_around(text[end - 1]):
            end -= 1
        if start < end:
            spans.append((start, end))
    return spans


def as_written(text: str, read: Sequence[Timed]) -> list[Timed]:
    """The words of a text at the times of those that were read of it.

    Words that are read otherwise than they are written share the time of what was read in their place, by their
    letters. What comes after the last word that was read is left out.
    """
    words = [text[start:end] for start, end in words_in(text)]
    timed: list[Timed] = []
    for written, said in _met([_folded(word) for word in words], [_folded(each.text) for each in read]):
        if said.start < said.stop:
            timed += _shared(words[written.start : written.stop], read[said.start].start, read[said.stop - 1].end)
        elif said.stop < len(read):
            at = read[said.stop].start
            timed += [Timed(word, at, at) for word in words[written.start : written.stop]]
    return timed


def sentences(text: str, words: Sequence[Timed]) -> list[Timed]:
    """The sentences of a text, without their tags, from the times of its words; those that have none are left out."""
    timed, at = [], 0
    for sentence in sentences_of(_without_tags(text)):
        heard = words[at : at + len(words_in(sentence))]
        at += len(heard)
        if heard:
            timed.append(Timed(" ".join(sentence.split()), heard[0].start, heard[-1].end))
    return timed


def _folded(word: str) -> str:
    """Words that fold to the same are the same, however their letters and marks are written."""
    return normalised("NFC", word).casefold()


def _without_tags(text: str) -> str:
    """Spaces in their place, sign for sign."""
    return TAG.sub(lambda tag: " " * len(tag[0]), text)


def _is_around(sign: str) -> bool:
    return unicodedata.category(sign).startswith("P") and sign not in _READ_ALOUD


def _met(written: Sequence[str], read: Sequence[str]) -> Iterator[tuple[range, range]]:
    """Which written words stand for which read ones: one for one where they are the same, else several for several.

    The time it takes grows with the words and not with their square.
    """
    i = j = 0
    while i < len(written) and j < len(read):
        di, dj = (1, 1) if written[i] == read[j] else _next_meeting(written, read, i, j)
        yield range(i, i + di), range(j, j + dj)
        i, j = i + di, j + dj
    yield range(i, len(written)), range(j, len(read))


def _next_meeting(written: Sequence[str], read: Sequence[str], i: int, j: int) -> tuple[int, int]:
    """How many words on both say the same again, or end; all that are left, if that is nowhere near."""
    most_written, most_read = min(_WRITTEN_AHEAD, len(written) - i), min(_READ_AHEAD, len(read) - j)
    for steps in range(1, most_written + most_read + 1):
        for di in range(max(0, steps - most_read), min(steps, most_written) + 1):
            if _agree(written, read, i + di, j + steps - di):
                return di, steps - di
    return len(written) - i, len(read) - j


def _agree(written: Sequence[str], read: Sequence[str], i: int, j: int) -> bool:
    """Two words in a row; one before a figure, but for the "and" that many figures are read with."""
    if list(written[i : i + 2]) == list(read[j : j + 2]):
        return True
    is_between = i + 1 < len(written) and bool(_FIGURE.search(written[i + 1]))
    return is_between and j < len(read) and written[i] == read[j] != "and"


def _shared(words: Sequence[str], start: float, end: float) -> list[Timed]:
    letters, at, timed = sum(map(len, words)), 0, []
    for word in words:
        begins, at = start + (end - start) * at / letters, at + len(word)
        timed.append(Timed(word, begins, start + (end - start) * at / letters))
    return timed
