"""Headings that follow each other without text between them: the title of one chapter."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from studio.projects.documents.headings import is_heading
from studio.projects.documents.passages import Passage

LONGEST_TITLE = 200
"""Characters of a title that is put together, or comes from a table of contents."""
_NUMBER = re.compile(r"\d{1,4}|[IVXLCDM]{1,8}")
_CHAPTER_LEVELS = 2


def join_headings(passages: Iterable[Passage], book: str) -> tuple[Passage, ...]:
    """The passages, where headings without text between them are one chapter, and one passage.

    A heading that is the title of the ``book`` begins none where another
    follows.
    """
    found: list[Passage] = []
    for passage in passages:
        before = found[-1] if found else None
        if before and _is_title(before) and _is_title(passage):
            if is_same_words(before.chapter, book) and not _is_numbered(before.chapter):
                found[-1] = replace(before, chapter="", is_title=False)
            elif _belongs(before, passage):
                found[-1] = replace(
                    before,
                    text=f"{before.text}\n{passage.text}",
                    chapter=joined_title(before.chapter, passage.chapter),
                    is_title=True,
                )
                continue
        found.append(passage)
    return tuple(found)


def joined_title(first: str, second: str) -> str:
    """Of two headings in a row: "1. The Beginning", "Chapter One The Beginning"; words of both are there once."""
    if len(_words(second)) > 1 and _words(first).endswith(_words(second)):
        return first
    if not _NUMBER.fullmatch(first) and _words(second).startswith(_words(first)):
        return second
    return f"{first}{'.' if _NUMBER.fullmatch(first) else ''} {second}"


def chapter_levels(levels: Iterable[int]) -> set[int]:
    """Of all levels of headings that a document has, those that begin chapters: the two highest."""
    return set(sorted({level for level in levels if level})[:_CHAPTER_LEVELS])


def is_same_words(first: str, second: str) -> bool:
    """Whether two titles differ in nothing that is spoken."""
    return _words(first) == _words(second) != ""


def _words(text: str) -> str:
    return "".join(sign for sign in text.casefold() if sign.isalnum())


def _is_title(passage: Passage) -> bool:
    return bool(passage.chapter) and (passage.is_title or passage.text == passage.chapter)


def _is_numbered(title: str) -> bool:
    return is_heading(title) or _NUMBER.fullmatch(title) is not None


def _belongs(first: Passage, second: Passage) -> bool:
    """Whether two headings are of one chapter; "Chapter 1" and "Chapter 2" are not, with or without text between."""
    if len(first.chapter) + len(second.chapter) + 2 > LONGEST_TITLE:
        return False
    if _NUMBER.fullmatch(first.chapter) and _NUMBER.fullmatch(second.chapter):
        return False
    kinds = [each.chapter.split()[0].casefold() for each in (first, second)]
    return kinds[0] != kinds[1] or not (is_heading(first.chapter) and is_heading(second.chapter))
