"""Joins consecutive headings into the title of one chapter."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from studio.projects.documents.headings import is_heading
from studio.projects.documents.passages import Passage

MAX_JOINED_TITLE = 200
"""Characters of a joined title, or of one from a table of contents."""
_NUMBER = re.compile(r"\d{1,4}|[IVXLCDM]{1,8}")
_CHAPTER_LEVELS = 2


def join_headings(passages: Iterable[Passage], book: str) -> tuple[Passage, ...]:
    """Join headings without text between them into one passage and one chapter.

    A heading that is the title of the ``book`` does not begin a chapter if another heading follows.
    """
    joined: list[Passage] = []
    for passage in passages:
        before = joined[-1] if joined else None
        if before and _is_title(before) and _is_title(passage):
            if is_same_words(before.chapter, book) and not _is_numbered(before.chapter):
                joined[-1] = replace(before, chapter="", is_title=False)
            elif _belongs(before, passage):
                joined[-1] = replace(
                    before,
                    text=f"{before.text}\n{passage.text}",
                    chapter=joined_title(before.chapter, passage.chapter),
                    is_title=True,
                )
                continue
        joined.append(passage)
    return tuple(joined)


def joined_title(first: str, second: str) -> str:
    """The title of two headings in a row: "1. The Beginning", "Chapter One The Beginning"; without repeated words."""
    if len(words_of(second)) > 1 and words_of(first).endswith(words_of(second)):
        return first
    if not _NUMBER.fullmatch(first.rstrip(".):")) and words_of(second).startswith(words_of(first)):
        return second
    return f"{first}{'.' if _NUMBER.fullmatch(first) else ''} {second}"


def chapter_levels(levels: Iterable[int]) -> set[int]:
    """The levels of headings that begin chapters: the two highest in use."""
    return set(sorted({level for level in levels if level})[:_CHAPTER_LEVELS])


def is_same_words(first: str, second: str) -> bool:
    """Whether two titles are the same apart from case and punctuation."""
    return words_of(first) == words_of(second) != ""


def words_of(text: str) -> str:
    """A title's letters and digits, in lower case: the same for two titles that differ in punctuation alone."""
    return "".join(sign for sign in text.casefold() if sign.isalnum())


def _is_title(passage: Passage) -> bool:
    return bool(passage.chapter) and (passage.is_title or passage.text == passage.chapter)


def _is_numbered(title: str) -> bool:
    return is_heading(title) or _NUMBER.fullmatch(title) is not None


def _belongs(first: Passage, second: Passage) -> bool:
    """Whether two headings belong to one chapter; "Chapter 1" and "Chapter 2" do not, even without text between."""
    if len(first.chapter) + len(second.chapter) + 2 > MAX_JOINED_TITLE:
        return False
    if _NUMBER.fullmatch(first.chapter) and _NUMBER.fullmatch(second.chapter):
        return False
    kinds = [heading.chapter.split()[0].casefold() for heading in (first, second)]
    return kinds[0] != kinds[1] or not (is_heading(first.chapter) and is_heading(second.chapter))
