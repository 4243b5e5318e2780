"""Splits and groups passages into parts of a length that suits generating, reviewing and regenerating."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from studio.errors import InvalidDocument
from studio.library.projects.project_records import MAX_PART_TEXT, MAX_PARTS, PARAGRAPH_END
from studio.projects.documents.passages import PAUSE_WITHIN, Document, Passage
from studio.speech.text import TAG, is_blank, sentences_of, split_text

PART_BYTES = 400
"""Default size limit of a part of prose, in bytes of UTF-8: about 25 s of English."""
MIN_PART_BYTES, MAX_PART_BYTES = 100, 2000

SplitBy = Literal["length", "paragraph", "sentence"]


@dataclass(frozen=True, slots=True)
class PartSplitting:
    """Settings for splitting prose into parts."""

    by: SplitBy = "length"
    """length: as many sentences as fit; otherwise one paragraph or sentence per part, up to MAX_PART_BYTES."""
    part_bytes: int = PART_BYTES
    """Maximum bytes of UTF-8 if split by length."""


BY_LENGTH = PartSplitting()


def into_parts(document: Document, splitting: PartSplitting = BY_LENGTH) -> list[Passage]:
    """The parts of a document, with every word in order; no word is split.

    Prose is split according to ``splitting``; parts never span chapters or speakers, and a sentence that begins with a
    tag begins a part. Raises InvalidDocument.
    """
    passages = iter(document.passages)
    parts = list(islice(_prose(passages, splitting) if document.prose else passages, MAX_PARTS + 1))
    if len(parts) > MAX_PARTS:
        message = f"the document has more than {MAX_PARTS} parts, the maximum"
        raise InvalidDocument(f"{message}: make the parts longer, or divide the document", "file")
    if not parts:
        raise InvalidDocument("the document has no text to speak, only speaker names or invisible characters", "file")
    for number, part in enumerate(parts, start=1):
        if len(part.text) > MAX_PART_TEXT:
            raise InvalidDocument(
                f"part {number} has {len(part.text)} characters; at most {MAX_PART_TEXT} are allowed", "file"
            )
    return parts


def _prose(passages: Iterable[Passage], splitting: PartSplitting) -> Iterator[Passage]:
    if splitting.by == "length":
        yield from _grouped(passages, splitting.part_bytes)
        return
    current, has_word = None, False
    for piece in _pieces(passages, splitting.by):
        is_spoken = any(sign.isalnum() for sign in TAG.sub("", piece.text))
        # Punctuation or tags alone cannot be spoken: they join the neighbouring part.
        is_one = current and current.pause is None and _continues(current, piece) and not (has_word and is_spoken)
        if current and is_one and len(current.text) < MAX_PART_BYTES:
            text = f"{current.text}{chr(10) * 2 if splitting.by == 'paragraph' else ' '}{piece.text}"
            current = replace(current, text=text, pause=piece.pause)
            has_word = has_word or is_spoken
            continue
        if current:
            yield from _cut(current, MAX_PART_BYTES)
        current, has_word = piece, is_spoken
    if current:
        yield from _cut(current, MAX_PART_BYTES)


def _pieces(passages: Iterable[Passage], split_by: SplitBy) -> Iterator[Passage]:
    for passage in passages:
        texts = sentences_of(passage.text) if split_by == "sentence" else [passage.text]
        pieces = [text.strip() for text in texts if not is_blank(text)]
        yield from _divided(passage, pieces, inner_pause=None)


def _continues(previous: Passage, passage: Passage) -> bool:
    """Whether both have the same voice, and neither needs a decision about its speaker."""
    same = (passage.voice, passage.speaker) == (previous.voice, previous.speaker)
    return not passage.chapter and same and previous.is_sure and passage.is_sure


def _grouped(passages: Iterable[Passage], part_bytes: int) -> Iterator[Passage]:
    group: list[Passage] = []
    size = 0
    for passage in passages:
        if group and (group[0].chapter or group[-1].pause is not None or not _continues(group[0], passage)):
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
    evidence = {"confidence": least.confidence, "reason": least.reason}
    return replace(passages[0], text=text, pause=passages[-1].pause, **evidence)  # type: ignore[arg-type]


def _cut(passage: Passage, part_bytes: int) -> Iterator[Passage]:
    return _divided(passage, split_text(passage.text, part_bytes, apart=True), inner_pause=PAUSE_WITHIN)


def _divided(passage: Passage, texts: Sequence[str], inner_pause: float | None) -> Iterator[Passage]:
    """Pieces of a passage: the first keeps the chapter, the last the pause; ``inner_pause``: within paragraphs."""
    continues, end = list[bool](), 0
    for text in texts:
        start = passage.text.index(text, end)
        continues.append(not PARAGRAPH_END.search(passage.text, end, start) if end else bool(passage.continues))
        end = start + len(text)
    pauses = [*(inner_pause if is_continued else None for is_continued in continues[1:]), passage.pause]
    for number, (text, pause) in enumerate(zip(texts, pauses, strict=False)):
        chapter = passage.chapter if number == 0 else ""
        yield replace(passage, text=text, chapter=chapter, pause=pause, continues=continues[number])
