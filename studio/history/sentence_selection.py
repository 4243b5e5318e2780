"""Finds the sentences of a text that a selection of characters touches, and replaces their words."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from studio.errors import InvalidRequest
from studio.speech.text import sentences_of
from studio.speech.timing.words import places_of, words_in

MOST_BEFORE = 300
"""Maximum characters of the previous sentence for it to be generated too, as a lead-in for the voice."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Sentences to regenerate, and the positions of their words in the whole text."""

    text: str
    """The text of the sentences, with the replacement if there is one."""
    before: str
    """The previous sentence; blank if there is none, or if it is too long."""
    first: int
    """The number of their first word in the old text, from 0; ``last`` is the number after their last word."""
    last: int
    whole: str = field(default="", compare=False)
    """The whole text with the replacement."""

    @property
    def lead(self) -> str:
        """The text of the lead-in."""
        return f"{self.before} " if self.before else ""


@dataclass(frozen=True, slots=True)
class _Touched:
    """Whole sentences, from character ``begins`` to ``ends``."""

    begins: int
    ends: int
    before: str
    first: int
    last: int


def select(text: str, start: int, end: int, words: Sequence[str], replacement: str | None = None) -> Selection:
    """The sentences that characters ``start`` to ``end`` of a text touch; ``words`` are all of its spoken words.

    ``replacement`` is written in place of these characters. If it leaves the sentences without words, the next
    sentence is regenerated too, else the previous one. Raises InvalidRequest if there is no sentence.
    """
    check_span(text, start, end)
    places = places_of(text, words)
    touched = _touched(text, start, end, places)
    if replacement is None:
        return _selection(touched, text[touched.begins : touched.ends], text)

    head, tail = text[:start] + replacement, text[end:]
    if not words_in(_within(touched, head, tail, text)):
        if touched.last < len(places):
            touched = _touched(text, start, places[touched.last] + 1, places)
        elif touched.first:
            touched = _touched(text, min(start, places[touched.first - 1]), end, places)
    chosen = _within(touched, head, tail, text)
    if not words_in(chosen):
        raise InvalidRequest("the text would have no words left: write at least one", "replacement")
    return _selection(touched, chosen, head + tail)


def _within(touched: _Touched, head: str, tail: str, text: str) -> str:
    """The touched sentences of a ``text`` that is now ``head`` and ``tail``."""
    after = min(len(tail), len(text) - touched.ends)
    return head[touched.begins :] + tail[: len(tail) - after]


def _selection(touched: _Touched, chosen: str, whole: str) -> Selection:
    before = touched.before.strip() if len(touched.before) <= MOST_BEFORE else ""
    return Selection(chosen.strip(), before, touched.first, touched.last, whole)


def _touched(text: str, start: int, end: int, places: Sequence[int]) -> _Touched:
    """``places``: where the spoken words begin. Raises InvalidRequest."""
    start = min(start, len(text) - 1)  # a cursor after the last character is in the last sentence
    at = 0
    before, selection = "", None
    for sentence in sentences_of(text):
        begins, at = at, at + len(sentence)
        first, last = bisect_left(places, begins), bisect_left(places, at)
        if (begins <= start < at or start <= begins < end) and (last > first or selection):
            selection = (
                _Touched(begins, at, before, first, last)
                if selection is None
                else replace(selection, ends=at, last=last)
            )
        elif last > first and selection is None:
            before = sentence
    if selection is None:
        raise no_sentence()
    return selection


def check_span(text: str, start: int, end: int) -> None:
    """Raises InvalidRequest for a range outside this text."""
    if not 0 <= start <= end <= len(text):
        raise InvalidRequest(f"start and end must be from 0 to {len(text)}, in this order", "start")


def no_sentence() -> InvalidRequest:
    return InvalidRequest("there is no sentence at this place: select words of the text", "start")
