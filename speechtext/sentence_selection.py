"""Finds the sentences of a text that a selection of characters touches, and replaces their words."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from speechtext.errors import TextError
from speechtext.script import sentences_of
from speechtext.word_times import places_of, words_in

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
    new_text: str = field(default="", compare=False)
    """The whole text with the replacement."""

    @property
    def lead(self) -> str:
        """The text of the lead-in."""
        return f"{self.before} " if self.before else ""


@dataclass(frozen=True, slots=True)
class _Span:
    """Whole sentences, from character ``start`` to ``end``."""

    start: int
    end: int
    before: str
    first: int
    last: int


def select(text: str, start: int, end: int, words: Sequence[str], replacement: str | None = None) -> Selection:
    """The sentences that characters ``start`` to ``end`` of a text touch; ``words`` are all of its spoken words.

    ``replacement`` is written in place of these characters. If it leaves the sentences without words, the next
    sentence is regenerated too, else the previous one. Raises TextError if there is no sentence.
    """
    check_span(text, start, end)
    positions = places_of(text, words)
    span = _find_span(text, start, end, positions)
    if replacement is None:
        return _selection(span, text[span.start : span.end], text)

    head, tail = text[:start] + replacement, text[end:]
    if not words_in(_within(span, head, tail, text)):
        if span.last < len(positions):
            span = _find_span(text, start, positions[span.last] + 1, positions)
        elif span.first:
            span = _find_span(text, min(start, positions[span.first - 1]), end, positions)
    sentences = _within(span, head, tail, text)
    if not words_in(sentences):
        raise TextError("the text would have no words left: write at least one", "replacement")
    return _selection(span, sentences, head + tail)


def _within(span: _Span, head: str, tail: str, text: str) -> str:
    """The touched sentences of a ``text`` that is now ``head`` and ``tail``."""
    after = min(len(tail), len(text) - span.end)
    return head[span.start :] + tail[: len(tail) - after]


def _selection(span: _Span, sentences: str, new_text: str) -> Selection:
    before = span.before.strip() if len(span.before) <= MOST_BEFORE else ""
    return Selection(sentences.strip(), before, span.first, span.last, new_text)


def _find_span(text: str, start: int, end: int, positions: Sequence[int]) -> _Span:
    """``positions``: where the spoken words begin. Raises TextError."""
    start = min(start, len(text) - 1)  # a cursor after the last character is in the last sentence
    sentence_end = 0
    before, span = "", None
    for sentence in sentences_of(text):
        sentence_start, sentence_end = sentence_end, sentence_end + len(sentence)
        first, last = bisect_left(positions, sentence_start), bisect_left(positions, sentence_end)
        if (sentence_start <= start < sentence_end or start <= sentence_start < end) and (last > first or span):
            span = (
                _Span(sentence_start, sentence_end, before, first, last)
                if span is None
                else replace(span, end=sentence_end, last=last)
            )
        elif last > first and span is None:
            before = sentence
    if span is None:
        raise no_sentence()
    return span


def check_span(text: str, start: int, end: int) -> None:
    """Raises TextError for a range outside this text."""
    if not 0 <= start <= end <= len(text):
        raise TextError(f"start and end must be from 0 to {len(text)}, in this order", "start")


def no_sentence() -> TextError:
    return TextError("there is no sentence at this place: select words of the text", "start")
