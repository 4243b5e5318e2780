"""Numbers on their own: headings of chapters without a title, or page numbers within the text."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from studio.projects.documents.headings import MAX_TITLE, SENTENCE_END, is_heading, is_title, names_chapter
from studio.projects.documents.passages import Document, Passage
from studio.speech.reading.rules import roman

LEAST_CHAPTERS = 2
LEAST_PAGES = 3
"""Minimum of consecutive numbers, some of them in the middle of a sentence."""
LAST_PAGE = 1400
"""Higher numbers are more likely to be years than pages."""

_ALONE = re.compile(
    r"(?P<page>(?:page|p\.|seite)\s{1,3})?[\[(—–-]?\s?(\d{1,4}|[IVXLC]{1,7})\s?[.)\]—–-]?", re.IGNORECASE
)
_PAGE_OF_ALL = re.compile(r"(?:page\s{1,3})(\d{1,4})(?:\s?(?:of|/)\s?\d{1,4})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Number:
    """A number that is a passage, or the first line of one."""

    at: int
    value: int
    is_page: bool
    """Whether it is marked as a page number by a word."""
    is_roman: bool
    rest: str
    """The other lines of the passage."""


def read_lone_numbers(document: Document) -> Document:
    """The document with chapters at numbers that count up from one, and without page numbers."""
    passages = document.passages
    numbers = [number for at in range(len(passages)) if (number := _number(passages, at))]
    if _are_pages(passages, numbers):
        left_out = "Page numbers are left out."
        return replace(document, passages=_without_pages(passages, numbers), skipped=(*document.skipped, left_out))
    chapters = _chapters(passages, numbers) or _before_headings(passages, numbers)
    return replace(document, passages=_with_chapters(passages, chapters)) if chapters else document


def _number(passages: Sequence[Passage], at: int) -> _Number | None:
    passage = passages[at]
    first, _, rest = passage.text.partition("\n")
    if passage.chapter or len(first) > 40:
        return None
    first = first.strip()
    if page := _PAGE_OF_ALL.fullmatch(first):
        return _Number(at, int(page[1]), True, False, rest)
    match = _ALONE.fullmatch(first)
    if not match:
        return None
    figures = match[2]
    value = int(figures) if figures.isdigit() else roman(figures) if figures.isupper() else None
    return None if value is None else _Number(at, value, bool(match["page"]), not figures.isdigit(), rest)


def _are_pages(passages: Sequence[Passage], numbers: Sequence[_Number]) -> bool:
    """Whether the numbers are consecutive and some are in the middle of a sentence."""
    if len(numbers) < LEAST_PAGES or any(number.is_roman or number.rest for number in numbers):
        return False
    if numbers[-1].value > LAST_PAGE:
        return False
    steps = [high.value - low.value for low, high in pairwise(numbers)]
    return all(1 <= step <= 2 for step in steps) and any(_is_in_a_sentence(passages, number.at) for number in numbers)


def _is_in_a_sentence(passages: Sequence[Passage], at: int) -> bool:
    if not 0 < at < len(passages) - 1 or passages[at - 1].chapter:
        return False
    return not SENTENCE_END.search(passages[at - 1].text) and passages[at + 1].text[:1].islower()


def _without_pages(passages: Sequence[Passage], numbers: Sequence[_Number]) -> tuple[Passage, ...]:
    """The passages without page numbers; sentences that they interrupted are joined."""
    pages = {number.at: _is_in_a_sentence(passages, number.at) for number in numbers}
    remaining: list[Passage] = []
    for at, passage in enumerate(passages):
        if at in pages:
            continue
        if remaining and pages.get(at - 1):
            remaining[-1] = replace(remaining[-1], text=f"{remaining[-1].text} {passage.text}", pause=passage.pause)
        else:
            remaining.append(passage)
    return tuple(remaining)


def _chapters(passages: Sequence[Passage], numbers: Sequence[_Number]) -> Sequence[_Number]:
    """The numbers that begin chapters: they count up from one, and may restart in the next part of the book.

    Empty if other headings begin chapters: numbers below those belong to sections.
    """
    titles = [passage.chapter for passage in passages if passage.chapter]
    if any(names_chapter(title) or not is_heading(title) for title in titles):
        return ()
    candidates = [number for number in numbers if number.is_roman == numbers[0].is_roman and not number.is_page]
    if len(candidates) < LEAST_CHAPTERS:
        return ()
    before = 0
    for number, following in zip(candidates, [*candidates[1:], None], strict=True):
        is_next = number.value == before + 1 or (before > 1 and number.value == 1)
        has_text = number.rest or (number.at + 1 < len(passages) and (not following or following.at > number.at + 1))
        if not is_next or not has_text or _is_in_a_sentence(passages, number.at):
            return ()
        before = number.value
    return candidates


def _before_headings(passages: Sequence[Passage], numbers: Sequence[_Number]) -> Sequence[_Number]:
    """The numbers that begin chapters where other chapters have headings: "7", text, "Chapter Eight", text, "9".

    The first one is at the front, below titles at most; the others continue it, with the headings counted.
    """
    headings = [at for at, passage in enumerate(passages) if passage.chapter]
    if not headings or not numbers or any(len(passage.text) > MAX_TITLE for passage in passages[: numbers[0].at]):
        return ()
    chapters: list[_Number] = []
    before = None
    for number, following in zip(numbers, [*numbers[1:], None], strict=True):
        count = bisect(headings, number.at)  # of the headings above
        end = min([*headings[count : count + 1], following.at if following else len(passages)])
        has_prose = any(
            len(text) > MAX_TITLE
            for text in (number.rest, *(passage.text for passage in passages[number.at + 1 : end]))
        )
        is_next = number.value - count == before if before is not None else not count
        if not is_next or not has_prose or number.is_page or number.is_roman != numbers[0].is_roman:
            break
        chapters.append(number)
        before = number.value - count + 1
    return chapters


def _with_chapters(passages: Sequence[Passage], chapters: Sequence[_Number]) -> tuple[Passage, ...]:
    numbers = {number.at: number for number in chapters}
    read: list[Passage] = []
    for at, passage in enumerate(passages):
        number = numbers.get(at)
        if not number:
            read.append(passage)
            continue
        first = passage.text.partition("\n")[0].strip()
        if not number.rest or is_title(number.rest):
            read.append(replace(passage, chapter=" ".join(passage.text.split()), is_title=True))
        else:
            read += [replace(passage, text=first, chapter=first, pause=None), replace(passage, text=number.rest)]
    return tuple(read)
