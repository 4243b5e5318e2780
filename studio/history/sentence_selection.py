"""Which sentences of a text are meant where some of its characters are selected."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from studio.errors import InvalidRequest
from studio.speech.text import sentences_of
from studio.speech.timing.words import places_of

MOST_BEFORE = 300
"""Characters of the sentence before that are spoken too, so that the voice continues as it was; a longer one is not."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Sentences of a text that are regenerated, and where their words are among all of it."""

    text: str
    before: str
    """The sentence before them; blank: there is none, or it is too long."""
    first: int
    """The number of their first word, from 0; ``last`` is that after their last one."""
    last: int

    @property
    def lead(self) -> str:
        """What is spoken before them."""
        return f"{self.before} " if self.before else ""


def select(text: str, start: int, end: int, words: Sequence[str]) -> Selection:
    """The sentences that characters ``start`` to ``end`` of a text touch; ``words`` are all that were said of it.

    Raises InvalidRequest where there is no sentence.
    """
    check_span(text, start, end)
    start = min(start, len(text) - 1)  # a cursor after the last sign is in the last sentence
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
    """Raises InvalidRequest for what is no place in this text."""
    if not 0 <= start <= end <= len(text):
        raise InvalidRequest(f"start and end must be from 0 to {len(text)}, in this order", "start")


def no_sentence() -> InvalidRequest:
    return InvalidRequest("there is no sentence at this place: select words of the text", "start")
