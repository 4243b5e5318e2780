"""Splits and groups passages into parts of a length that suits generating, reviewing and regenerating."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from studio.errors import InvalidDocument
from studio.library.projects.project_records import MAX_PART_TEXT, MAX_PARTS
from studio.projects.documents.passages import Document, Passage
from studio.speech.dialogue import turns_of
from studio.speech.text import TAG, is_blank, sentences_of, split_text

PART_BYTES = 400
"""Default size limit of a part of prose, in bytes of UTF-8: about 25 s of English."""
MIN_PART_BYTES, MAX_PART_BYTES = 100, 2000

SplitBy = Literal["length", "paragraph", "sentence"]

VoiceOf = Callable[[str], str | None]
"""The voice of a speaker by name; None if the name is not that of a speaker."""


@dataclass(frozen=True, slots=True)
class Cutting:
    """How prose is split into parts."""

    by: SplitBy = "length"
    """length: as many sentences as fit; otherwise one paragraph or sentence per part, up to MAX_PART_BYTES."""
    part_bytes: int = PART_BYTES
    """Maximum bytes of UTF-8 if split by length."""


BY_LENGTH = Cutting()


def into_parts(document: Document, voice_of: VoiceOf, cut: Cutting = BY_LENGTH) -> list[Passage]:
    """The parts of a document, with every word in order; no word is split.

    A line that begins with a name known to ``voice_of`` and a colon gives the paragraph from there on to that voice.
    Prose is split according to ``cut``, and parts never span chapters. Raises InvalidDocument.
    """
    voiced = (part for passage in document.passages for part in _by_voice(passage, voice_of))
    parts = list(islice(_prose(voiced, cut) if document.prose else voiced, MAX_PARTS + 1))
    if len(parts) > MAX_PARTS:
        raise InvalidDocument(f"the document has more than {MAX_PARTS} parts; at most that many are allowed", "file")
    if not parts:
        raise InvalidDocument("the document has no text to speak, only speaker names or invisible characters", "file")
    for number, part in enumerate(parts, start=1):
        if len(part.text) > MAX_PART_TEXT:
            raise InvalidDocument(
                f"part {number} has {len(part.text)} characters; at most {MAX_PART_TEXT} are allowed", "file"
            )
    return parts


def _by_voice(passage: Passage, voice_of: VoiceOf) -> Iterator[Passage]:
    """Split a passage into its speakers' turns; the first keeps the chapter and the start, the last the pause."""
    turns = (
        [(None, passage.text)]
        if passage.voice
        else list(turns_of(passage.text, lambda name: voice_of(name) is not None))
    )
    if len(turns) == 1 and turns[0] == (None, passage.text):
        yield passage
        return
    for number, (speaker, text) in enumerate(turns):
        last = number == len(turns) - 1
        yield replace(
            passage,
            text=text,
            voice=voice_of(speaker) if speaker else passage.voice,
            chapter=passage.chapter if number == 0 else "",
            start=passage.start if number == 0 else None,
            pause=passage.pause if last else None,
        )


def _prose(passages: Iterable[Passage], cut: Cutting) -> Iterator[Passage]:
    if cut.by == "length":
        yield from _grouped(passages, cut.part_bytes)
        return
    held, has_word = None, False
    for piece in _pieces(passages, cut.by):
        is_spoken = any(sign.isalnum() for sign in TAG.sub("", piece.text))
        # Punctuation or tags alone cannot be spoken: they join the neighbouring part.
        is_one = held and held.pause is None and _continues(held, piece) and not (has_word and is_spoken)
        if held and is_one and len(held.text) < MAX_PART_BYTES:
            text = f"{held.text}{chr(10) * 2 if cut.by == 'paragraph' else ' '}{piece.text}"
            held = replace(held, text=text, pause=piece.pause)
            has_word = has_word or is_spoken
            continue
        if held:
            yield from _cut(held, MAX_PART_BYTES)
        held, has_word = piece, is_spoken
    if held:
        yield from _cut(held, MAX_PART_BYTES)


def _pieces(passages: Iterable[Passage], by: SplitBy) -> Iterator[Passage]:
    for passage in passages:
        texts = sentences_of(passage.text) if by == "sentence" else [passage.text]
        pieces = [text.strip() for text in texts if not is_blank(text)]
        for number, text in enumerate(pieces):
            yield _piece(passage, text, number, len(pieces))


def _continues(held: Passage, passage: Passage) -> bool:
    return not passage.chapter and passage.voice == held.voice


def _grouped(passages: Iterable[Passage], part_bytes: int) -> Iterator[Passage]:
    held: list[Passage] = []
    size = 0
    for passage in passages:
        if held and (held[0].chapter or held[-1].pause is not None or not _continues(held[0], passage)):
            yield from _cut(_joined(held), part_bytes)
            held, size = [], 0
        size += len(passage.text.encode()) + (2 if held else 0)
        held.append(passage)
        if size > 8 * part_bytes:  # bounds the buffer; the end of a paragraph is a good place to split
            yield from _cut(_joined(held), part_bytes)
            held, size = [], 0
    if held:
        yield from _cut(_joined(held), part_bytes)


def _joined(passages: list[Passage]) -> Passage:
    text = "\n\n".join(passage.text for passage in passages)
    return replace(passages[0], text=text, pause=passages[-1].pause)


def _cut(passage: Passage, part_bytes: int) -> Iterator[Passage]:
    texts = list(split_text(passage.text, part_bytes))
    for number, text in enumerate(texts):
        yield _piece(passage, text, number, len(texts))


def _piece(passage: Passage, text: str, number: int, count: int) -> Passage:
    """One of ``count`` pieces of a passage: the first keeps the chapter, the last the pause."""
    return replace(
        passage,
        text=text,
        chapter=passage.chapter if number == 0 else "",
        pause=passage.pause if number == count - 1 else None,
    )
