"""Removes tables of contents within an EPUB's text: rows of paragraphs that link into the book."""

from __future__ import annotations

from collections.abc import Sequence

from studio.projects.documents.epub.page_kinds import NO_CHAPTERS
from studio.projects.documents.epub.page_reader import Paragraph

MIN_LINKS = 5
"""Consecutive paragraphs of links that count as a table of contents."""
SHORT = 40
"""Characters of a paragraph that may separate two links, such as a number in a table cell."""
_LINKED = 0.7


def is_mostly_links(paragraphs: Sequence[Paragraph]) -> bool:
    """Whether most of a page's text links into the book; headings without links do not count."""
    body = "".join(paragraph.text for paragraph in paragraphs if not paragraph.level or paragraph.linked)
    linked = sum(paragraph.linked for paragraph in paragraphs)
    return linked > _LINKED * sum(map(str.isalnum, body))


def without_link_lists(paragraphs: list[Paragraph]) -> list[Paragraph]:
    """The paragraphs without rows of MIN_LINKS or more links and their headings."""
    if sum(paragraph.linked > 0 for paragraph in paragraphs) < MIN_LINKS:
        return paragraphs
    remaining: list[Paragraph] = []
    row: list[Paragraph] = []
    for paragraph in [*paragraphs, None]:
        if paragraph and (_is_link(paragraph) or (row and _is_between(paragraph, row[-1]))):
            row.append(paragraph)
            continue
        after = [row.pop()] if row and not _is_link(row[-1]) else []
        if sum(map(_is_link, row)) < MIN_LINKS:
            remaining += row
        else:
            if remaining and not any(map(str.isalpha, remaining[-1].text)):  # the number of the first row
                remaining.pop()
            if remaining and remaining[-1].text.casefold().strip(" .:") in NO_CHAPTERS:
                remaining.pop()
        remaining += after
        row = []
        if paragraph:
            remaining.append(paragraph)
    return remaining


def _is_link(paragraph: Paragraph) -> bool:
    return paragraph.linked > _LINKED * sum(map(str.isalnum, paragraph.text))


def _is_between(paragraph: Paragraph, before: Paragraph) -> bool:
    return _is_link(before) and not paragraph.level and len(paragraph.text) <= SHORT
