"""Removes the matter around the text of a plain-text book: Project Gutenberg's header and licence, the contents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from studio.projects.documents.headings import is_bare_heading, is_heading, undecorated

Block = list[str]
"""The stripped lines between two blank ones."""
Key = tuple[str, ...]
"""The words of a heading, regardless of case and punctuation."""

WITHIN = 200
"""Number of blocks at the beginning in which a table of contents may begin."""
MAX_ENTRY = 120
"""Characters of an entry in the table of contents."""

_START = re.compile(
    r"^[ \t]*\*{3}[ \t]*START OF (?:THE|THIS) PROJECT GUTENBERG[^*]{0,300}\*{3}[ \t]*$"
    r"|^\*END\*?[^\n]{0,20}SMALL PRINT[^\n]{0,100}$",
    re.MULTILINE,
)
_END = re.compile(
    r"^[ \t]*(?:\*{3}[ \t]*END OF (?:THE|THIS) PROJECT GUTENBERG|End of (?:the )?Project Gutenberg)", re.MULTILINE
)
_FIELD = re.compile(r"^(Title|Author|Language):[ \t]*(\S[^\n]{0,200})$", re.MULTILINE)
_LANGUAGES = {
    "English": "en", "German": "de", "French": "fr", "Spanish": "es", "Portuguese": "pt", "Italian": "it",
    "Dutch": "nl", "Chinese": "zh", "Japanese": "ja", "Polish": "pl", "Russian": "ru", "Swedish": "sv",
    "Danish": "da", "Finnish": "fi", "Latin": "la", "Greek": "el",
}  # fmt: skip
_CREDITS = re.compile(
    r"(?:Produced|Transcribed|Scanned|E-?text prepared|This (?:e-?text|ebook) (?:was|is)|Credits?:"
    r"|\[?Transcriber.s note)",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"\[(?:Illustration|(?P<note>Footnote [\w*]{1,5}:))[^\[\]]{0,4000}(?:\[[^\[\]]{0,600}\][^\[\]]{0,4000}){0,8}\]"
)
"""May span paragraphs and contain brackets."""
_MARK = re.compile(r"(?<=[^\s\[])(\[(?:[A-Z]|\d{1,3})\])(?!\w)")
_NOTE = re.compile(r"^[ \t]*(\[(?:[A-Z]|\d{1,3})\])[ \t]+\S.*(?:\n[ \t]*\S.*)*", re.MULTILINE)
"""A paragraph that begins with its mark."""
_NOTES = re.compile(r"^[ \t]*FOOTNOTES?:?[ \t]*$", re.MULTILINE | re.IGNORECASE)
_CONTENTS = re.compile(
    "(?:the |table of )?contents|(?:list of )?(?:chapters|illustrations|plates|figures|tables)"
    "|inhalt(?:sverzeichnis)?|table des matières|sommaire|[íi]ndice|sumário"
    "|contenido|sommario|inhoud(?:sopgave)?|spis treści|оглавление|содержание|目录|目錄|目次|もくじ|차례|목차",
    re.IGNORECASE,
)
_PAGE = re.compile(r"(?:[ \t]*(?:\.[ \t]?){2,}|[ \t]{2,}|…+|\t)[ \t.]*(?:\d{1,4}|[ivxlc]{1,7})$")
_ENDS_WITH_PAGE = re.compile(r"(?:^|[\s.…])(?:\d{1,4}|[ivxlc]{1,7})$")
_NUMBERED = re.compile(r"(?:\d{1,3}|[IVXLC]{1,7})(?:[.)][ \t]+|[ \t]{2,})\S")
_COLUMNS = re.compile(r"(?:chapter|chap\.?|kapitel|chapitre)?\s*(?:page|seite|pág\.?)", re.IGNORECASE)
_WORDS = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]_*]*$")


@dataclass(frozen=True, slots=True)
class Book:
    """A book without Project Gutenberg's own text, and the metadata found there; unknown fields are blank."""

    text: str
    title: str = ""
    author: str = ""
    language: str = ""
    is_gutenberg: bool = False
    notes: int = 0
    """Number of footnotes left out."""


def without_licence(text: str) -> Book:
    """The book between Project Gutenberg's two markers, without illustration notes, footnotes and their marks.

    Any other text stays as it is.
    """
    start = _START.search(text)
    if not start:
        return Book(text)
    end = _END.search(text, start.end())
    fields = {name: words.strip() for name, words in reversed(_FIELD.findall(text, 0, start.start()))}
    text = text[start.end() : end.start() if end else len(text)]
    notes = sum(bool(aside["note"]) for aside in _ASIDE.finditer(text))
    text = _ASIDE.sub("", text)
    marks = set(_MARK.findall(text))
    notes += sum(note[1] in marks for note in _NOTE.finditer(text))
    text = _NOTE.sub(lambda note: "" if note[1] in marks else note[0], text)
    return Book(
        _NOTES.sub("", _MARK.sub("", text)) if notes else text,
        fields.get("Title", ""),
        fields.get("Author", ""),
        _LANGUAGES.get(fields.get("Language", ""), ""),
        True,
        notes,
    )


def without_credits(blocks: Sequence[Block]) -> list[Block]:
    """The blocks without the credits at the front of a Project Gutenberg book."""
    return [block for number, block in enumerate(blocks) if number >= 5 or not _CREDITS.match(block[0])]


def begins_contents(line: str) -> bool:
    """Whether a line is the title of a table of contents."""
    return len(line) <= 40 and _CONTENTS.fullmatch(undecorated(line).strip(" .:_*=")) is not None


def ends_with_page(line: str) -> bool:
    """Whether a line of a PDF ends with a page number, like an entry of a table of contents."""
    return len(line) <= MAX_ENTRY and _ENDS_WITH_PAGE.search(line) is not None


def without_contents(blocks: list[Block]) -> tuple[list[Block], frozenset[Key]]:
    """The blocks without the table of contents at the front, and the keys of its entries (none without a table).

    The table ends where its first entry is repeated, as the heading of a chapter.
    """
    start = next((at for at, block in enumerate(blocks[:WITHIN]) if _starts_list(block)), None)
    if start is None:
        return blocks, frozenset()
    prose = next((at for at in range(start, len(blocks)) if _is_prose(blocks[at])), len(blocks))
    first, seen = set[Key](), set[Key]()
    repeats: list[tuple[int, bool]] = []
    for at in range(start, prose):
        lines = blocks[at][1:] if at == start and begins_contents(blocks[at][0]) else blocks[at]
        entries = [keys for line in lines if not _COLUMNS.fullmatch(line) and (keys := _keys(line))]
        if at > start and entries and entries[0][0] in seen:
            repeats.append((at, entries[0][0] in first))
        first = first or {key for keys in entries[:1] for key in keys}
        seen.update(key for keys in entries for key in keys)
    # Chapters may be numbered from one in each part, so the last repeat of the first entry counts.
    end = max((at for at, is_first in repeats if is_first), default=repeats[-1][0] if repeats else 0)
    end = end or start + _entry_blocks(blocks[start:prose])
    if end >= len(blocks):  # the whole document is a list, so keep it
        return blocks, frozenset()
    entry_lines = [line for block in blocks[start:end] for line in block]
    return blocks[:start] + blocks[end:], frozenset(keys[0] for line in entry_lines if (keys := _keys(line)))


def key_of(line: str) -> Key:
    """The key by which a heading matches its entry in the contents."""
    return tuple(_WORDS.findall(line.casefold()))


def _starts_list(block: Block) -> bool:
    return begins_contents(block[0]) or (len(block) > 2 and all(is_heading(line) for line in block))


def _is_prose(block: Block) -> bool:
    """Whether a block cannot be part of a table of contents."""
    if any(len(line) > MAX_ENTRY for line in block):
        return True
    return not any(map(_is_entry, block)) and bool(_SENTENCE_END.search(block[-1])) and sum(map(len, block)) >= 30


def _is_entry(line: str) -> bool:
    return bool(is_heading(line) or _PAGE.search(line) or _NUMBERED.match(line))


def _keys(line: str) -> list[Key]:
    """The keys of an entry: its words without the page number, and its number alone."""
    words = key_of(_PAGE.sub("", line))
    prefixes = [words[:count] for count in (2, 3) if count < len(words) and is_bare_heading(" ".join(words[:count]))]
    return [words, *prefixes] if words else []


def _entry_blocks(blocks: Sequence[Block]) -> int:
    """Number of blocks of a table of contents whose entries are not repeated; the first may be its title."""
    count = 1 if begins_contents(blocks[0][0]) and len(blocks[0]) == 1 else 0
    entries = 0
    for block in blocks[count:]:
        lines = block[1:] if begins_contents(block[0]) else block
        if not all(_is_entry(line) or _COLUMNS.fullmatch(line) for line in lines):
            break
        count += 1
        entries += len(lines)
    last_block = blocks[count - 1] if count else []
    if entries and len(last_block) == 1 and not _PAGE.search(last_block[0]):  # more likely the next heading
        count, entries = count - 1, entries - 1
    return count if entries > 1 else 0
