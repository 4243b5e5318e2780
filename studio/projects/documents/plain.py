"""Plain text: paragraphs between blank lines, lines that were wrapped put together, chapters by their headings."""

from __future__ import annotations

import re

from studio.projects.documents.headings import is_heading
from studio.projects.documents.passages import Document, Passage, text_of
from studio.speech.dialogue import begins_turn

WRAPPED = 45
"""A line of at least so many characters goes on in the next one."""


def read_plain(data: bytes) -> Document:
    """Raises InvalidDocument."""
    paragraphs = re.split(r"\n[ \t]*(?:\n[ \t]*)+", text_of(data))
    return Document(tuple(_passage(paragraph) for paragraph in paragraphs if paragraph.strip()), prose=True)


def unwrap(paragraph: str) -> str:
    """The paragraph with a newline only where the writer meant one: before a speaker's name, and after short lines."""
    pieces: list[str] = []
    length = 0  # of the line that is being put together
    for line in (line.strip() for line in paragraph.splitlines() if line.strip()):
        fits = (length >= WRAPPED or line[:1].islower()) and not begins_turn(line)
        if pieces:
            pieces.append(" " if fits else "\n")
        length = length + 1 + len(line) if pieces and fits else len(line)
        pieces.append(line)
    return "".join(pieces)


def _passage(paragraph: str) -> Passage:
    text = unwrap(paragraph)
    return Passage(text, chapter=text if "\n" not in text and is_heading(text) else "")
