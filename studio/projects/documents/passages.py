"""What every reader gives: a document as passages, its limits, and how its bytes become text."""

from __future__ import annotations

from dataclasses import dataclass

from studio.audio.cover import Cover
from studio.errors import InvalidDocument

MAX_FILE = 32 * 1024 * 1024
"""Bytes of a document."""
MAX_TEXT = 5_000_000
"""Characters of all passages together: about 90 hours of speech."""


MAX_PASSAGES = 200_000
"""Of a document; so many short lines have no book."""
MAX_SKIPPED = 40
"""Sentences about what was left out; the last one counts the rest."""
SCENE_PAUSE = 1.0
"""Seconds of silence where a scene ends."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph, a heading, a subtitle or a row."""

    text: str
    chapter: str = ""
    """The title of the chapter that begins here; blank: none begins."""
    voice: str | None = None
    pause: float | None = None
    """Seconds of silence after it; None is the project's."""
    start: float | None = None
    """When it is to be heard, in seconds; None: after what is before it."""
    end: float | None = None
    is_title: bool = False
    """Whether it is the title of the chapter that begins here, or a part of it, and nothing else."""


@dataclass(frozen=True, slots=True)
class Document:
    """``prose`` may be cut and grouped again; rows and subtitles stay as they are."""

    passages: tuple[Passage, ...]
    prose: bool
    title: str = ""
    """Blank where it does not say; the author and the language (BCP 47) too."""
    author: str = ""
    language: str = ""
    cover: Cover | None = None
    skipped: tuple[str, ...] = ()
    """What of the file is not in the passages: a sentence each, at most MAX_SKIPPED."""


def text_of(data: bytes) -> str:
    """UTF-8, or UTF-16 with its mark; lines end with a newline. Raises InvalidDocument, with the line."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidDocument(f"line {line}: this is not UTF-8 text; save the document as UTF-8", "file") from None
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        raise InvalidDocument(f"line {line}: this contains a NUL character and is not text", "file")
    if len(text) > MAX_TEXT:
        raise InvalidDocument(f"the document has {len(text)} characters; at most {MAX_TEXT} are allowed", "file")
    return text.replace("\r\n", "\n").replace("\r", "\n")
