"""Which sentences of a text are meant where some of its characters are selected."""

from __future__ import annotations

from dataclasses import dataclass

from studio.errors import InvalidRequest
from studio.speech.text import sentences_of
from studio.speech.timing.words import words_in

MOST_BEFORE = 300
"""Characters of the sentence before that are spoken too, so that the voice goes on as it did; a longer one is not."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Sentences of a text that are spoken anew, and where their words are among all of it."""

    text: str
    before: str
    """The sentence before them; blank: there is none, or it is too long."""
    first: int
    """The number of their first word, from 0; ``last`` is that after their last one."""
    last: int


def select(text: str, start: int, end: int) -> Selection:
    """The sentences that characters ``start`` to ``end`` of a text touch. Raises InvalidRequest where there is none."""
    check_span(text, start, end)
    start = min(start, len(text) - 1)  # a cursor after the last sign is in the last sentence
    at = words = first = 0
    before, chosen = "", list[str]()
    for sentence in sentences_of(text):
        begins, at = at, at + len(sentence)
        count = len(words_in(sentence))
        if (begins <= start < at or start <= begins < end) and (count or chosen):
            first = first if chosen else words
            chosen.append(sentence)
        elif count and not chosen:
            before = sentence
        words += count
    if not chosen:
        raise no_sentence()
    said = "".join(chosen)
    before = before.strip() if len(before) <= MOST_BEFORE else ""
    return Selection(said.strip(), before, first, first + len(words_in(said)))


def check_span(text: str, start: int, end: int) -> None:
    """Raises InvalidRequest for what is no place in this text."""
    if not 0 <= start <= end <= len(text):
        raise InvalidRequest(f"start and end must be from 0 to {len(text)}, in this order", "start")


def no_sentence() -> InvalidRequest:
    return InvalidRequest("there is no sentence at this place: select words of the text", "start")
