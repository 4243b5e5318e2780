"""Documents as passages, their limits, and the decoding of text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from studio.audio.cover import Cover
from studio.errors import InvalidDocument, InvalidRequest
from studio.library.checks import clean_language
from studio.library.projects.project_records import SURE, NewCharacter

MAX_FILE = 32 * 1024 * 1024
"""Maximum size of a file, in bytes."""
MAX_TEXT = 5_000_000
"""Characters of all passages together: about 90 hours of speech."""
MAX_PASSAGES = 200_000
"""Maximum number of passages; no book has as many paragraphs."""
MAX_SKIPPED = 40
"""Maximum number of notes about omissions."""
SCENE_PAUSE = math.inf
"""Value of a passage's pause: a scene ends here, and the project determines the silence."""
PAUSE_WITHIN = 0.2
"""Seconds of silence between two parts of one paragraph."""

_SAMPLE = 4096
_WESTERN_LETTERS = [bytes([code]) for code in (*range(0xC0, 0xD7), *range(0xD8, 0xF7), *range(0xF8, 0xFF))]
_PLAIN_LETTERS = [bytes([code]) for code in (*range(0x41, 0x5B), *range(0x61, 0x7B))]
_NOT_WESTERN = re.compile(
    rb"[\x00-\x08\x0e-\x1f\x7f\x81\x8d\x8f\x90\x9d\xff]"  # never or hardly ever in text
    rb"|[\xd0\xdd\xde\xf0\xfd\xfe]"  # Turkish as often as Icelandic
    rb"|[A-Za-z\xc0-\xfe][\x80-\x84\x86-\x89\x8b\xa1-\xa9\xac\xae-\xb6\xb8\xb9\xbc-\xbf][a-z\xe0-\xfe]"
    rb"|[\xc0-\xfe]{4}"  # a word in another alphabet
    rb"|[\xc3-\xc5][\x80-\xbf]|\xe2[\x80-\xbf]{2}"  # UTF-8 that is damaged elsewhere
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph, a heading, a subtitle or a row."""

    text: str
    chapter: str = ""
    """Title of the chapter that begins here; blank if none does."""
    voice: str | None = None
    pause: float | None = None
    """Seconds of silence after it; None means the project's default."""
    start: float | None = None
    """Start time in seconds; None means after the previous passage."""
    end: float | None = None
    is_title: bool = False
    """Whether the passage is only the chapter's title, or a part of it."""
    speaker: str = ""
    """The name of the character who speaks; blank: the narrator, or an unknown character."""
    confidence: float | None = None
    """The confidence in that, from 0 to 1, and the reason; None where no quotation was attributed."""
    reason: str | None = None
    continues: bool | None = None
    """Whether it continues the paragraph of the passage before it; None: unknown."""

    @property
    def is_sure(self) -> bool:
        return self.confidence is None or self.confidence >= SURE


@dataclass(frozen=True, slots=True)
class Document:
    """``prose`` may be split and grouped again; rows and subtitles stay as they are."""

    passages: tuple[Passage, ...]
    prose: bool
    title: str = ""
    """Blank if unknown, like the author and the language (BCP 47)."""
    author: str = ""
    language: str = ""
    cover: Cover | None = None
    skipped: tuple[str, ...] = ()
    """At most MAX_SKIPPED sentences about text that was left out or may have been misread."""
    cast: tuple[NewCharacter, ...] = ()
    """The characters that are the speakers of its passages."""
    notes_left_out: int = 0
    """Number of footnotes and endnotes that can be read on request."""


class Skipped:
    """Collects sentences about omissions from a document."""

    def __init__(self) -> None:
        self._sentences: list[str] = []
        self._more = 0
        self.notes = 0
        """Number of footnotes and endnotes left out."""

    def add(self, sentence: str) -> None:
        if len(self._sentences) < MAX_SKIPPED - 2:
            self._sentences.append(sentence)
        else:
            self._more += 1

    def sentences(self) -> tuple[str, ...]:
        """The sentences, at most MAX_SKIPPED."""
        counts = []
        if self.notes:
            subject = "1 footnote or endnote is" if self.notes == 1 else f"{self.notes} footnotes and endnotes are"
            counts.append(f"{subject} left out.")
        if self._more:
            counts.append(f"{self._more} more {'thing is' if self._more == 1 else 'things are'} left out.")
        return (*self._sentences, *counts)


def with_pauses(passages: Iterable[Passage | None]) -> Iterator[Passage]:
    """Turn scene breaks (None) into pauses, except next to a chapter's heading."""
    previous, is_broken = None, False
    for passage in passages:
        if passage is None:
            is_broken = True
            continue
        if previous:
            is_scene = is_broken and not passage.chapter and not previous.chapter and previous.pause is None
            yield replace(previous, pause=SCENE_PAUSE) if is_scene else previous
        previous, is_broken = passage, False
    if previous:
        yield previous


def decode_text(data: bytes) -> str:
    """Decode UTF-8, or UTF-16 or Windows-1252 if detected; line ends become newlines.

    Raises InvalidDocument, with the line.
    """
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else _unmarked_utf_16(data) or "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        text = _western(data) if encoding == "utf-8-sig" else ""
        if not text:
            line = data.count(b"\n", 0, error.start) + 1
            raise InvalidDocument(f"line {line}: this is not UTF-8 text; save the document as UTF-8", "file") from None
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        raise InvalidDocument(f"line {line}: this contains a NUL character and is not text", "file")
    if len(text) > MAX_TEXT:
        raise InvalidDocument(f"the document has {len(text)} characters; at most {MAX_TEXT} are allowed", "file")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _unmarked_utf_16(data: bytes) -> str:
    """The encoding of UTF-16 without a byte order mark: most pairs have a NUL, always on the same side."""
    sample = data[: _SAMPLE & ~1]
    low, high = sample[::2].count(0), sample[1::2].count(0)
    pairs = len(sample) // 2
    if len(data) % 2 or not pairs or max(low, high) < 0.6 * pairs or min(low, high):
        return ""
    return "utf-16-le" if high else "utf-16-be"


def _western(data: bytes) -> str:
    """Decode Windows-1252 if the text clearly consists of words in Western letters; otherwise blank."""
    if len(data) > MAX_TEXT or _NOT_WESTERN.search(data):
        return ""
    letters = sum(map(data.count, _WESTERN_LETTERS))
    plain = sum(map(data.count, _PLAIN_LETTERS))
    return data.decode("cp1252") if letters <= 0.4 * plain else ""


def valid_language(language: str) -> str:
    """A language as a document names it; blank if that is not a BCP 47 tag."""
    try:
        return clean_language(language)
    except InvalidRequest:
        return ""
