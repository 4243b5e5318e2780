"""The chapters of a document for import: recognises front and back matter by their titles."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from studio.errors import InvalidRequest
from studio.paths import json_beside
from studio.projects.documents.passages import Document, Passage

Matter = Literal["front", "body", "back"]

MAX_OPENING = 200
"""Words before the first chapter that count as a title page; longer text is read."""
_WORDS = re.compile(r"[^\W\d_]+")
_TITLES = json_beside(__file__, "matter.json")
"""Patterns of titles, in lower case and without punctuation."""
_IS_FRONT, _IS_BACK, _IS_NOTES = (re.compile("|".join(_TITLES[kind])) for kind in ("front", "back", "notes"))


@dataclass(frozen=True, slots=True)
class Section:
    """A chapter of a document, or the text before the first one."""

    title: str
    matter: Matter
    words: int
    """Pieces between blanks."""
    characters: int


def sections_of(document: Document, with_notes: bool = False) -> tuple[Section, ...]:
    """The chapters in order; a chapter of notes belongs to the body if notes are included.

    Blocking, in proportion to the text.
    """
    groups = _groups(document.passages)
    return tuple(_section(group, len(groups) > 1, with_notes) for group in groups)


def chosen_sections(document: Document, numbers: Iterable[int]) -> Document:
    """The document with only these of its sections, counted from 0. Raises InvalidRequest."""
    groups = _groups(document.passages)
    selected = set(numbers)
    if unknown := sorted(selected - set(range(len(groups)))):
        raise InvalidRequest(f"chapter {unknown[0]} does not exist: the document has {len(groups)}, from 0", "chapters")
    passages = [passage for number, group in enumerate(groups) if number in selected for passage in group]
    if not any(passage.text.strip() for passage in passages):
        raise InvalidRequest("choose at least one chapter with text", "chapters")
    return replace(document, passages=tuple(passages))


def _groups(passages: Iterable[Passage]) -> list[list[Passage]]:
    groups: list[list[Passage]] = []
    for passage in passages:
        if passage.chapter or not groups:
            groups.append([])
        groups[-1].append(passage)
    return groups


def _section(passages: list[Passage], is_one_of_many: bool, with_notes: bool) -> Section:
    words = sum(len(passage.text.split()) for passage in passages)
    title = passages[0].chapter
    is_opening = not title and is_one_of_many and words <= MAX_OPENING
    matter: Matter = "front" if is_opening else _matter_of(title, with_notes)
    return Section(title, matter, words, sum(len(passage.text) for passage in passages))


def _matter_of(title: str, with_notes: bool) -> Matter:
    words = " ".join(_WORDS.findall(title[:200].casefold()))
    if _IS_NOTES.fullmatch(words):
        return "body" if with_notes else "back"
    return "front" if _IS_FRONT.fullmatch(words) else "back" if _IS_BACK.fullmatch(words) else "body"
