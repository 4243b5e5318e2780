"""Finds the sentences of a text that a selection of characters touches."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from studio.errors import InvalidRequest
from studio.speech.text import sentences_of
from studio.speech.timing.words import places_of

MOST_BEFORE = 300
"""Maximum characters of the previous sentence that is generated too, as a lead-in for the voice; a longer one is
not."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Sentences to regenerate, and the positions of their words in the whole text."""

    text: str
    before: str
    """The previous sentence; blank if there is none, or if it is too long."""
    first: int
    """The number of their first word, from 0; ``last`` is the number after their last word."""
    last: int

    @property
    def lead(self) -> str:
        """The text of the lead-in."""
        return f"{self.before} " if self.before else ""


def select(text: str, start: int, end: int, words: Sequence[str]) -> Selection:
    """The sentences that characters ``start`` to ``end`` of a text touch; ``words`` are all of its spoken words.

    Raises InvalidRequest if there is no sentence.
    """
    check_span(text, start, end)
    start = min(start, len(text) - 1)  # a cursor after the last character is in the last sentence
    places = places_of(text, words)
    at = last = first = 0
    before, chosen = "", list[str]()
    for sentence in sentences_of(text):
        begins, at = at, at + len(sentence)
        count = bisect_left(places, at) - bisect_left(places, begins)
        if (begins <= start < at or start <= begins < end) and (count or chosen):
            first = first if chosen else bisect_left(places, begins)
            last = bisect_left(places, at)
            chosen.append(sentence)
        elif count and not chosen:
            before = sentence
    if not chosen:
        raise no_sentence()
    before = before.strip() if len(before) <= MOST_BEFORE else ""
    return Selection("".join(chosen).strip(), before, first, last)


def check_span(text: str, start: int, end: int) -> None:
    """Raises InvalidRequest for a range outside this text."""
    if not 0 <= start <= end <= len(text):
        raise InvalidRequest(f"start and end must be from 0 to {len(text)}, in this order", "start")


def no_sentence() -> InvalidRequest:
    return InvalidRequest("there is no sentence at this place: select words of the text", "start")
