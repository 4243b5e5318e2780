"""Chapters of a document to choose from, with front and back matter told by their titles; and its division into parts.

Parts have a length that suits generating, reviewing and regenerating.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal

from manuscript.passages import (
    MAX_PART_TEXT,
    MAX_PARTS,
    PARAGRAPH_END,
    PAUSE_WITHIN,
    Document,
    InvalidDocument,
    Passage,
    divided,
)
from speechtext.errors import TextError
from speechtext.script import is_blank, sentences_of, split_text
from speechtext.tags import TAG

PART_BYTES = 400  # default size limit of a part of prose, in bytes of UTF-8: about 25 s of English
MIN_PART_BYTES, MAX_PART_BYTES = 100, 2000

SplitBy = Literal["length", "paragraph", "sentence"]
Matter = Literal["front", "body", "back"]

MAX_OPENING = 200  # words before the first chapter that count as a title page; longer text is read
_WORDS = re.compile(r"[^\W\d_]+")
_TITLES = json.loads(Path(__file__).with_name("matter.json").read_text("utf-8"))
"""Patterns of titles, in lower case and without punctuation."""
_IS_FRONT, _IS_BACK, _IS_NOTES = (re.compile("|".join(_TITLES[kind])) for kind in ("front", "back", "notes"))


@dataclass(frozen=True, slots=True)
class PartSplitting:
    """Settings for splitting prose into parts."""

    by: SplitBy = "length"
    """length: as many sentences as fit; otherwise one paragraph or sentence per part, up to MAX_PART_BYTES."""
    part_bytes: int = PART_BYTES  # maximum bytes of UTF-8 if split by length


BY_LENGTH = PartSplitting()


@dataclass(frozen=True, slots=True)
class Section:
    """A chapter of a document, or the text before the first one."""

    title: str
    matter: Matter
    words: int  # pieces between blanks
    characters: int


def sections_of(document: Document, with_notes: bool = False) -> tuple[Section, ...]:
    """The chapters in order; a chapter of notes belongs to the body if notes are included.

    Blocking, in proportion to the text.
    """
    groups, sections = _groups(document.passages), list[Section]()
    for group in groups:
        title = group[0].chapter
        words = sum(len(passage.text.split()) for passage in group)
        is_opening = not title and len(groups) > 1 and words <= MAX_OPENING
        matter: Matter = "front" if is_opening else _matter_of(title, with_notes)
        sections.append(Section(title, matter, words, sum(len(passage.text) for passage in group)))
    return tuple(sections)


def chosen_sections(document: Document, numbers: Iterable[int]) -> Document:
    """The document with only these of its sections, counted from 0. Raises TextError."""
    groups = _groups(document.passages)
    selected = set(numbers)
    if unknown := sorted(selected - set(range(len(groups)))):
        raise TextError(f"chapter {unknown[0]} does not exist: the document has {len(groups)}, from 0", "chapters")
    passages = [passage for number, group in enumerate(groups) if number in selected for passage in group]
    if not any(passage.text.strip() for passage in passages):
        raise TextError("choose at least one chapter with text", "chapters")
    return replace(document, passages=tuple(passages))


def _groups(passages: Iterable[Passage]) -> list[list[Passage]]:
    groups: list[list[Passage]] = []
    for passage in passages:
        if passage.chapter or not groups:
            groups.append([])
        groups[-1].append(passage)
    return groups


def _matter_of(title: str, with_notes: bool) -> Matter:
    words = " ".join(_WORDS.findall(title[:200].casefold()))
    if _IS_NOTES.fullmatch(words):
        return "body" if with_notes else "back"
    return "front" if _IS_FRONT.fullmatch(words) else "back" if _IS_BACK.fullmatch(words) else "body"


def into_parts(document: Document, splitting: PartSplitting = BY_LENGTH) -> list[Passage]:
    """The parts of a document, with every word in order; no word is split.

    Prose is split according to ``splitting``; parts never span chapters or speakers, and a sentence that begins with a
    tag begins a part. Raises InvalidDocument.
    """
    passages = iter(document.passages)
    parts = list(islice(_prose(passages, splitting) if document.prose else passages, MAX_PARTS + 1))
    if len(parts) > MAX_PARTS:
        message = f"the document has more than {MAX_PARTS} parts, the maximum"
        raise InvalidDocument(f"{message}: make the parts longer, or divide the document")
    if not parts:
        raise InvalidDocument("the document has no text to speak, only speaker names or invisible characters")
    for part in parts:  # prose is cut; a row or a subtitle stays one part
        if len(part.text) > MAX_PART_TEXT:
            limit = f"{len(part.text)} characters; at most {MAX_PART_TEXT} are allowed"
            raise InvalidDocument(f"the line that begins with {part.text[:40]!r} has {limit}: divide it in the file")
    return parts


def _prose(passages: Iterable[Passage], splitting: PartSplitting) -> Iterator[Passage]:
    if splitting.by == "length":
        yield from _grouped(passages, splitting.part_bytes)
        return
    current, has_word = None, False
    pieces = (piece for passage in passages for piece in _pieces(passage, splitting.by))
    for piece in pieces:
        is_spoken = any(sign.isalnum() for sign in TAG.sub("", piece.text))
        # Punctuation or tags alone cannot be spoken: they join the neighbouring part.
        is_one = current and not current.has_end and _continues(current, piece) and not (has_word and is_spoken)
        if current and is_one and len(current.text) < MAX_PART_BYTES:
            text = f"{current.text}{chr(10) * 2 if splitting.by == 'paragraph' else ' '}{piece.text}"
            current = current.followed_by(piece, text)
            has_word = has_word or is_spoken
            continue
        if current:
            yield from _cut(current, MAX_PART_BYTES)
        current, has_word = piece, is_spoken
    if current:
        yield from _cut(current, MAX_PART_BYTES)


def _pieces(passage: Passage, split_by: SplitBy) -> Iterator[Passage]:
    texts = sentences_of(passage.text) if split_by == "sentence" else [passage.text]
    return _divided(passage, [text.strip() for text in texts if not is_blank(text)], None)


def _continues(previous: Passage, passage: Passage) -> bool:
    """Whether both have the same voice, and neither needs a decision about its speaker."""
    same = (passage.voice, passage.speaker) == (previous.voice, previous.speaker)
    return not passage.chapter and same and previous.is_sure and passage.is_sure


def _grouped(passages: Iterable[Passage], part_bytes: int) -> Iterator[Passage]:
    group: list[Passage] = []
    size = 0
    for passage in passages:
        if group and (group[0].chapter or group[-1].has_end or not _continues(group[0], passage)):
            yield from _cut(_joined(group), part_bytes)
            group, size = [], 0
        size += len(passage.text.encode()) + (2 if group else 0)
        group.append(passage)
        if size > 8 * part_bytes:  # bounds the buffer; the end of a paragraph is a good place to split
            yield from _cut(_joined(group), part_bytes)
            group, size = [], 0
    if group:
        yield from _cut(_joined(group), part_bytes)


def _joined(passages: list[Passage]) -> Passage:
    text = "\n\n".join(passage.text for passage in passages)
    least = min(passages, key=lambda passage: 1.0 if passage.confidence is None else passage.confidence)
    whole = passages[0].followed_by(passages[-1], text)
    return replace(whole, confidence=least.confidence, reason=least.reason)


def _cut(passage: Passage, part_bytes: int) -> Iterator[Passage]:
    return _divided(passage, split_text(passage.text, part_bytes, apart=True), PAUSE_WITHIN)


def _divided(passage: Passage, texts: Iterable[str], pause_within: float | None) -> Iterator[Passage]:
    pieces, end = list[Passage](), 0
    for text in texts:
        start = passage.text.index(text, end)
        continues = not PARAGRAPH_END.search(passage.text, end, start) if end else bool(passage.continues)
        pieces.append(replace(passage, text=text, continues=continues))
        end = start + len(text)
    return divided(passage, pieces, pause_within)
