"""Finds where the chapters of an EPUB begin: by its table of contents, or else by its headings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from manuscript.epub_package import Entry
from manuscript.epub_page import Paragraph
from manuscript.headings import MAX_JOINED_TITLE, chapter_levels, is_heading, is_same_words, words_of
from manuscript.passages import Passage

MAX_HEADINGS = 8  # consecutive headings that may belong to one chapter
MIN_ENTRIES = 2  # a table of contents with fewer chapters is used only if there are no headings


@dataclass(slots=True)
class ReadPage:
    """A page of the spine with its paragraphs (none if it is left out)."""

    path: str
    paragraphs: list[Paragraph]
    last_ids: tuple[str, ...] = ()  # ids of elements after the last paragraph
    is_left_out: bool = False


_Place = tuple[int, int]  # index of a page, and index of a paragraph in it


def with_chapters(pages: Sequence[ReadPage], entries: Sequence[Entry], book: str) -> Iterator[Passage | None]:
    """The passages of all pages, with None for a scene break; ``book`` is the book's title."""
    headings = _at_headings(pages, book)
    entry_titles = _at_entries(pages, [entry for entry in entries if entry.is_chapter], book)
    starts = headings
    if len(entry_titles) >= MIN_ENTRIES or not headings:
        # Headings such as "Chapter 3" count even if the table lists only the parts of the book.
        heading_titles = {
            (number, position): title
            for (number, position), title in headings.items()
            if is_heading(title) and pages[number].paragraphs[position].level
        }
        starts = heading_titles | entry_titles
    for number, page in enumerate(pages):
        is_title = False
        for position, paragraph in enumerate(page.paragraphs):
            chapter = starts.get((number, position), "")
            if not chapter and is_title and paragraph.level:  # continues the title above
                chapter = _one_line(paragraph.text)
            is_title = bool(chapter) and (
                paragraph.level > 0 or is_heading(paragraph.text) or is_same_words(paragraph.text, chapter)
            )
            yield Passage(paragraph.text, chapter=chapter, is_title=is_title) if paragraph.text else None


def _at_headings(pages: Sequence[ReadPage], book: str) -> dict[_Place, str]:
    """Titles by place, for headings of the two highest levels and lines such as "Chapter 1"."""
    levels = chapter_levels(
        paragraph.level
        for page in pages
        for paragraph in page.paragraphs
        if paragraph.level and not is_same_words(paragraph.text, book)
    )
    return {
        (number, position): _one_line(paragraph.text)
        for number, page in enumerate(pages)
        for position, paragraph in enumerate(page.paragraphs)
        if paragraph.level in levels or is_heading(_one_line(paragraph.text))
    }


def _at_entries(pages: Sequence[ReadPage], entries: Sequence[Entry], book: str) -> dict[_Place, str]:
    """Titles by place, for the entries of a table of contents; several titles for one place are joined.

    An entry whose id the page lacks belongs to the paragraph that is its title, else to the beginning of the page
    unless that has an entry.
    """
    numbers = {page.path: number for number, page in enumerate(pages)}
    folded = {page.path.casefold(): number for number, page in enumerate(pages)}
    places = {number: _ids(page) for number, page in enumerate(pages)}
    linked_pages = {number for entry in entries if (number := numbers.get(entry.path)) is not None}
    targets = _Targets(pages, linked_pages, book)
    titles_of = cache(lambda number: _titles(pages[number]))  # only where an id is missing
    titles_at: dict[_Place, list[str]] = {}
    for entry in entries:
        number = numbers.get(entry.path, folded.get(entry.path.casefold()))
        if number is None or pages[number].is_left_out:
            continue
        position = places[number].get(entry.place) if entry.place else 0
        if position is None:
            position = titles_of(number).get(words_of(entry.title))
        place = targets.find(number, position or 0)
        if place and (position is not None or place not in titles_at):
            titles = titles_at.setdefault(place, [])
            if not titles or not is_same_words(titles[-1], entry.title):
                titles.append(entry.title)
    return {place: " ".join(titles)[:MAX_JOINED_TITLE] for place, titles in titles_at.items()}


class _Targets:
    """Resolves entries to the starts of chapters; ``linked_pages``: indices of the pages that have entries."""

    def __init__(self, pages: Sequence[ReadPage], linked_pages: set[int], book: str) -> None:
        self._pages = pages
        self._book = book
        self._linked_pages = linked_pages
        self.find = cache(self._find)

    def _find(self, number: int, position: int) -> _Place | None:
        """The first paragraph with text from a place on; None if that belongs to another entry."""
        # Skips scene breaks, page ends and title images.
        while not any(paragraph.text for paragraph in self._pages[number].paragraphs[position : position + 1]):
            position += 1
            if position >= len(self._pages[number].paragraphs):
                number, position = number + 1, 0
            if number >= len(self._pages) or (number in self._linked_pages and not position):
                return None
        for _ in range(MAX_HEADINGS):  # headings directly above belong to the chapter
            if not position and self._is_half_title(number - 1):
                number, position = number - 1, len(self._pages[number - 1].paragraphs)
            if not position or not self._pages[number].paragraphs[position - 1].level:
                break
            position -= 1
        return number, position

    def _is_half_title(self, number: int) -> bool:
        """Whether a page without an entry contains only headings, such as the title of a part."""
        if number < 0 or number in self._linked_pages:
            return False
        paragraphs = self._pages[number].paragraphs
        return 0 < len(paragraphs) <= MAX_HEADINGS and all(
            paragraph.level and not is_same_words(paragraph.text, self._book) for paragraph in paragraphs
        )


def _ids(page: ReadPage) -> dict[str, int]:
    """Index of the paragraph for each id of a page; the first occurrence counts."""
    positions: dict[str, int] = {}
    for position, paragraph in enumerate(page.paragraphs):
        for name in paragraph.ids:
            positions.setdefault(name, position)
    for name in page.last_ids:
        positions.setdefault(name, len(page.paragraphs))
    return positions


def _titles(page: ReadPage) -> dict[str, int]:
    """Index of the paragraph for the words of each possible title; headings count first."""
    positions: dict[str, int] = {}
    for position, paragraph in sorted(enumerate(page.paragraphs), key=lambda item: not item[1].level):
        if len(paragraph.text) <= MAX_JOINED_TITLE:
            positions.setdefault(words_of(paragraph.text), position)
    return positions


def _one_line(text: str) -> str:
    return " ".join(text.split())
