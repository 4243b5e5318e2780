"""Documents as passages, and their limits."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from manuscript.untrusted import Cover
from speechtext.errors import TextError

MAX_FILE = 32 * 1024 * 1024  # bytes
MAX_TEXT = 5_000_000  # characters of all passages together: about 90 hours of speech
MAX_PASSAGES = 200_000  # no book has as many paragraphs
MAX_SKIPPED = 40  # notes about omissions
PAUSE_WITHIN = 0.2  # seconds of silence between two parts of one paragraph
MAX_PART_TEXT = 4000  # characters in one part
MAX_PARTS = 20_000  # parts in one project
MAX_PAUSE = 30.0  # seconds of silence between two parts
MAX_TITLE = 200
MAX_AUTHOR = 200  # characters, of a narrator too
MAX_NAME = 200  # characters of a cast member's name
MAX_ALIASES = 50  # other names of one character
MAX_CAST_CHARACTERS = 2000  # characters in the cast of one project
SURE = 0.7  # minimum confidence in a speaker; below it, a person decides the line
PARAGRAPH_END = re.compile(r"\n\s*\n")

BLANK_LINES = re.compile(r"\n[^\S\n]*+\n\s*+")


@dataclass(frozen=True, slots=True)
class NewCharacter:
    """A character to be stored."""

    name: str
    aliases: tuple[str, ...] = ()  # other names by which the text calls this person
    gender: str = ""  # female, male or neutral; blank: unknown
    voice: str | None = None  # None: the project's
    is_narrator: bool = False  # whether this person tells the story, in the project's voice
    id: str = field(default_factory=lambda: f"char_{secrets.token_hex(12)}")


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph, a heading, a subtitle or a row."""

    text: str
    chapter: str = ""  # title of the chapter that begins here; blank if none does
    voice: str | None = None
    pause: float | None = None  # seconds of silence after it; None means the project's default
    scene: bool = False  # whether a scene ends after it
    start: float | None = None  # start time in seconds; None means after the previous passage
    end: float | None = None
    is_title: bool = False  # whether the passage is only the chapter's title, or a part of it
    speaker: str = ""  # the name of the character who speaks; blank: the narrator, or an unknown character
    confidence: float | None = None
    """The confidence in that, from 0 to 1, and the reason; None where no quotation was attributed."""
    reason: str | None = None
    continues: bool | None = None
    """Whether it continues the paragraph of the passage before it; None: unknown."""
    name: str = ""  # a table's id for this line, unique without regard to case; blank if it has none
    cells: str = ""  # the row of a table as it was read: a JSON object of cells by column
    direction: str = ""  # how a table says that the line is spoken, such as whisper

    @property
    def is_heading(self) -> bool:
        """Whether nobody speaks it in the story: "Chapter 1: Ashore" is not a line of a character "Chapter 1"."""
        return self.is_title or self.text == self.chapter != ""

    @property
    def is_sure(self) -> bool:
        return self.confidence is None or self.confidence >= SURE

    @property
    def has_end(self) -> bool:
        """Whether what follows is apart from it, by a silence of its own or as another scene."""
        return self.scene or self.pause is not None

    def followed_by(self, last: Passage, text: str) -> Passage:
        """This passage and those after it up to ``last`` as one with the given text, which ends as the last does."""
        return replace(self, text=text, pause=last.pause, scene=last.scene)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its name, the role of `manuscript.table.ROLES` that it has, and its first cells."""

    name: str
    role: str = ""  # blank: the column is kept and not used
    sample: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """``prose`` may be split and grouped again; rows and subtitles stay as they are."""

    passages: tuple[Passage, ...]
    prose: bool
    title: str = ""  # blank if unknown, like the author and the language (BCP 47)
    author: str = ""
    language: str = ""
    cover: Cover | None = None
    skipped: tuple[str, ...] = ()
    """At most MAX_SKIPPED sentences about text that was left out or may have been misread."""
    cast: tuple[NewCharacter, ...] = ()  # the characters that are the speakers of its passages
    columns: tuple[Column, ...] = ()  # of a table
    encoding: str = ""  # of a text that is not Unicode, or whose encoding was chosen, by Python's name
    notes_left_out: int = 0  # number of footnotes and endnotes that can be read on request
    is_script: bool = False  # whether it was found to be the lines of several speakers


class Skipped:
    """Collects sentences about omissions from a document."""

    def __init__(self) -> None:
        self._sentences: list[str] = []
        self.notes = 0  # number of footnotes and endnotes left out

    def add(self, sentence: str) -> None:
        self._sentences.append(sentence)

    def sentences(self) -> tuple[str, ...]:
        """The sentences, at most MAX_SKIPPED."""
        sentences = self._sentences[: MAX_SKIPPED - 2]
        more = len(self._sentences) - len(sentences)
        if self.notes:
            subject = "1 footnote or endnote is" if self.notes == 1 else f"{self.notes} footnotes and endnotes are"
            sentences.append(f"{subject} left out.")
        if more:
            sentences.append(f"{more} more {'thing is' if more == 1 else 'things are'} left out.")
        return tuple(sentences)


def with_scenes(passages: Iterable[Passage | None]) -> Iterator[Passage]:
    """End a scene at each break (None), except next to a chapter's heading. Raises InvalidDocument."""
    previous, is_broken = None, False
    for number, passage in enumerate(passages):
        if number > MAX_PASSAGES:
            raise too_many_passages()
        if passage is None:
            is_broken = True
            continue
        if previous:
            is_scene = is_broken and not passage.chapter and not previous.chapter and previous.pause is None
            yield replace(previous, scene=True) if is_scene else previous
        previous, is_broken = passage, False
    if previous:
        yield previous


def divided(
    passage: Passage, pieces: Sequence[Passage], pause_within: float | None = PAUSE_WITHIN
) -> Iterator[Passage]:
    """The pieces of a passage: the first keeps its chapter and start, the last its end. ``pause_within``: seconds of
    silence before a piece that continues the paragraph of the one before it."""
    for number, piece in enumerate(pieces):
        chapter, start = ("", None) if number else (passage.chapter, passage.start)
        is_last = number == len(pieces) - 1
        pause = passage.pause if is_last else pause_within if pieces[number + 1].continues else None
        new = {"chapter": chapter, "start": start, "pause": pause, "scene": passage.scene and is_last}
        is_same = all(getattr(piece, name) == value for name, value in new.items())
        yield piece if is_same else replace(piece, **new)  # type: ignore[arg-type]


def check_passages(text: str, ends: re.Pattern[str] = BLANK_LINES) -> None:
    """Raise InvalidDocument, in milliseconds, for a text that has too many of what costs much more to read."""
    if next(islice(ends.finditer(text), MAX_PASSAGES, None), None):
        raise too_many_passages()


def too_many_passages() -> InvalidDocument:
    return InvalidDocument(
        f"the document has more than {MAX_PASSAGES} paragraphs, list items, rows or links; divide it"
    )


class InvalidDocument(TextError):
    """The document cannot be read; the message has the reason and, for formats with lines, the line."""

    code = "invalid_document"

    def __init__(self, message: str, param: str | None = "file", code: str | None = None) -> None:
        super().__init__(message, param, code)
