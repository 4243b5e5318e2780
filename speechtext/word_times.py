"""Aligns the words of a text as written with the words as read."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rapidfuzz.distance import LCSseq

from speechtext.characters import clean_signs
from speechtext.elements import ELEMENT
from speechtext.markup import CITATION, LINK_TARGET
from speechtext.script import sentences_of
from speechtext.tags import TAG, hide_tags

_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
"""Scripts without spaces, in which each character counts as a word."""
_WORD = re.compile(rf"[{_ALONE}]|[^\s—…{_ALONE}]+")
_READ_ALOUD = "%&#@"  # read as words, though punctuation by their category
_SILENT = ("So", "Sk", "Mn", "Me", "Cf", "Co", "Cn", "Cc")
"""Categories of characters that are not words on their own, such as emoji."""
_FIGURE = re.compile(r"[\d$€£¥%&@#]")


class Timed(NamedTuple):
    """A word of a text as typed, or a sentence, with its times in seconds."""

    text: str
    start: float
    end: float


def words_in(text: str) -> list[tuple[int, int]]:
    """Start and end of each word as read, without the punctuation around it. [tags] are not words."""
    return _words_in(TAG.sub(_spaces, text))


def with_times_as_written(text: str, read: Sequence[Timed], tags: Collection[str] | None = None) -> list[Timed]:
    """The words of a text, with the times of the words read from it.

    Words that are read differently from how they are written share the time of the words read instead, in proportion to
    their letters. Text after the last word read is left out. ``tags``: the names of the model's tags, None where any
    bracketed words may be a tag.
    """
    words = [text[start:end] for start, end in _words_in(hide_tags(_visible(text), tags))]
    timed: list[Timed] = []
    for text_range, read_range in _aligned([_folded(word) for word in words], [_folded(word.text) for word in read]):
        if read_range.start < read_range.stop:
            timed += _shared(
                words[text_range.start : text_range.stop], read[read_range.start].start, read[read_range.stop - 1].end
            )
        elif read_range.stop < len(read):
            at = read[read_range.stop].start
            timed += [Timed(word, at, at) for word in words[text_range.start : text_range.stop]]
    return timed


def places_of(text: str, words: Sequence[str]) -> list[int]:
    """The start of each of these words in a text; they must be all of its spoken words, in order."""
    visible, at, places = _visible(text), 0, list[int]()
    for word in words:
        place = visible.find(word, at)
        place = len(text) if place < 0 else place  # not in this text, nor are the following ones
        places.append(place)
        at = min(place + len(word), len(text))
    return places


def are_all(text: str, words: Sequence[str]) -> bool:
    """Whether these words reach the end of the text."""
    if not words:
        return False
    end = places_of(text, words)[-1] + len(words[-1])
    return end <= len(text) and not _words_in(TAG.sub(_spaces, _visible(text)[end:]))


@dataclass(frozen=True, slots=True)
class TimedSentence:
    """A sentence of a text; times in seconds, None if none of its words has a time."""

    raw: str  # as in the text, with the white space around it: joined, all sentences are the text
    text: str  # without tags
    start: float | None
    end: float | None


def all_sentences(text: str, words: Sequence[Timed]) -> list[TimedSentence]:
    """The sentences of a text, with the times of their words."""
    places = places_of(text, [word.text for word in words])
    timed, ends = list[TimedSentence](), 0
    for sentence in sentences_of(text):
        begins, ends = ends, ends + len(sentence)
        first, last = bisect_left(places, begins), bisect_left(places, ends)
        plain = " ".join(_without_tags(sentence, [place - begins for place in places[first:last]]).split())
        times = (words[first].start, words[last - 1].end) if first < last else (None, None)
        timed.append(TimedSentence(sentence, plain, *times))
    return timed


def sentences(text: str, words: Sequence[Timed]) -> list[Timed]:
    """The sentences of a text, without their tags, with the times of their words; sentences without times are left
    out."""
    return [
        Timed(sentence.text, sentence.start, sentence.end)
        for sentence in all_sentences(text, words)
        if sentence.start is not None and sentence.end is not None
    ]


def _words_in(text: str) -> list[tuple[int, int]]:
    spans = []
    for match in _WORD.finditer(text):
        start, end = match.span()
        while start < end and _is_around(text[start]):
            start += 1
        while start < end and _is_around(text[end - 1]):
            end -= 1
        if any(unicodedata.category(sign) not in _SILENT for sign in text[start:end]):
            spans.append((start, end))
    return spans


def _visible(text: str) -> str:
    """The text with spaces in place of each character that no model speaks: citation marks, link addresses, tags."""
    return CITATION.sub(_spaces, LINK_TARGET.sub(_spaces, ELEMENT.sub(_spaces, text) if "<" in text else text))


def _without_tags(sentence: str, places: Sequence[int]) -> str:
    """The sentence without brackets, and without their content unless it was spoken."""

    def words(tag: re.Match[str]) -> str:
        was_said = bisect_left(places, tag.start()) < bisect_left(places, tag.end())
        return tag[0][1:-1] if was_said else " "

    return TAG.sub(words, sentence)


def _folded(word: str) -> str:
    """Fold a word for comparison: ignores how its letters, marks and ligatures are encoded."""
    return clean_signs(word).casefold()


def _spaces(hidden: re.Match[str]) -> str:
    return " " * len(hidden[0])


def _is_around(sign: str) -> bool:
    return unicodedata.category(sign).startswith("P") and sign not in _READ_ALOUD


def _aligned(words: Sequence[str], read_words: Sequence[str]) -> Iterator[tuple[range, range]]:
    """Which written words correspond to which read words: one to one where equal, else several to several."""
    i = j = 0
    for block in LCSseq.editops(words, read_words).as_matching_blocks():
        at, read_at, size = block.a, block.b, block.size
        if (at, read_at) != (i, j) and not _is_meeting(words, read_words, at, read_at, size):
            continue
        if at > i or read_at > j:
            yield range(i, at), range(j, read_at)
        yield from (
            (range(at + step, at + step + 1), range(read_at + step, read_at + step + 1)) for step in range(size)
        )
        i, j = at + size, read_at + size
    if i < len(words) or j < len(read_words):
        yield range(i, len(words)), range(j, len(read_words))


def _is_meeting(words: Sequence[str], read_words: Sequence[str], i: int, j: int, size: int) -> bool:
    """Whether equal words after unequal ones are a real match: two in a row, the last, or one before a figure, except
    the "and" with which many figures are read."""
    if size != 1 or (i + 1 == len(words) and j + 1 == len(read_words)):
        return size > 0
    return i + 1 < len(words) and bool(_FIGURE.search(words[i + 1])) and words[i] != "and"


def _shared(words: Sequence[str], start: float, end: float) -> list[Timed]:
    letters, at, timed = sum(map(len, words)), 0, []
    for word in words:
        begins, at = start + (end - start) * at / letters, at + len(word)
        timed.append(Timed(word, begins, start + (end - start) * at / letters))
    return timed
