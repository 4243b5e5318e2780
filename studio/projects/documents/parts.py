"""Passages cut and grouped into parts of a length that is good to speak, to listen to again and to mend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice

from studio.errors import InvalidDocument
from studio.library.projects.records import MAX_PART_TEXT
from studio.projects.documents.passages import Document, Passage
from studio.speech.dialogue import turns_of
from studio.speech.text import split_text

PART_BYTES = 400
"""A part of prose has at most so many bytes of UTF-8 if nothing is said: about 25 s of English."""
MIN_PART_BYTES, MAX_PART_BYTES = 100, 2000
MAX_PARTS = 20_000

VoiceOf = Callable[[str], str | None]
"""The voice of a speaker's name, None where it is no speaker."""


def into_parts(document: Document, voice_of: VoiceOf, part_bytes: int = PART_BYTES) -> list[Passage]:
    """The parts in order. Every word is in one of them, in the same order; no word is cut.

    A line that begins with a name that ``voice_of`` knows, and a colon, is that voice's, to the end of its paragraph.
    Prose is put together sentence by sentence within a chapter. Raises InvalidDocument.
    """
    voiced = (part for passage in document.passages for part in _by_voice(passage, voice_of))
    parts = list(islice(_grouped(voiced, part_bytes) if document.prose else voiced, MAX_PARTS + 1))
    if len(parts) > MAX_PARTS:
        raise InvalidDocument(f"the document has more than {MAX_PARTS} parts; at most that many are allowed", "file")
    if not parts:
        raise InvalidDocument("the document has no text to speak: names alone, or signs that nobody sees", "file")
    for number, part in enumerate(parts, start=1):
        if len(part.text) > MAX_PART_TEXT:
            raise InvalidDocument(
                f"part {number} has {len(part.text)} characters; at most {MAX_PART_TEXT} are allowed", "file"
            )
    return parts


def _by_voice(passage: Passage, voice_of: VoiceOf) -> Iterator[Passage]:
    """A passage as its speakers' turns; the first keeps its chapter and start, the last its pause."""
    turns = (
        [(None, passage.text)]
        if passage.voice
        else list(turns_of(passage.text, lambda name: voice_of(name) is not None))
    )
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


def _grouped(passages: Iterable[Passage], part_bytes: int) -> Iterator[Passage]:
    held: Passage | None = None
    for passage in passages:
        if held and (passage.chapter or held.chapter or passage.voice != held.voice):
            yield from _cut(held, part_bytes)
            held = None
        held = replace(held, text=f"{held.text}\n\n{passage.text}") if held else passage
        if len(held.text.encode()) > 8 * part_bytes:  # cut what is settled; a paragraph's end is a good place
            yield from _cut(held, part_bytes)
            held = None
    if held:
        yield from _cut(held, part_bytes)


def _cut(passage: Passage, part_bytes: int) -> Iterator[Passage]:
    for number, text in enumerate(split_text(passage.text, part_bytes)):
        yield replace(passage, text=text, chapter=passage.chapter if number == 0 else "")
