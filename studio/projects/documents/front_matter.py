"""What stands around the words of a book's plain text: Project Gutenberg's header and licence, and the contents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from studio.projects.documents.headings import is_bare_heading, is_heading, undecorated

Block = list[str]
"""The lines between two blank ones, without blanks at their ends."""
Key = tuple[str, ...]
"""The words of a heading, whatever their case and what stands between them."""

WITHIN = 200
"""Blocks from the beginning in which a list of contents begins."""
MAX_ENTRY = 120
"""Characters of a line of the contents."""

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
_ILLUSTRATION = re.compile(r"\[Illustration(?::[^\]]{0,600})?\]")
_CONTENTS = re.compile(
    "(?:the |table of )?contents|list of chapters|inhalt(?:sverzeichnis)?|table des matières|sommaire|[íi]ndice|sumário"
    "|contenido|sommario|inhoud(?:sopgave)?|spis treści|оглавление|содержание|目录|目錄|目次|もくじ|차례|목차",
    re.IGNORECASE,
)
_PAGE = re.compile(r"(?:[ \t]*(?:\.[ \t]?){2,}|[ \t]{2,}|…+|\t)[ \t.]*(?:\d{1,4}|[ivxlc]{1,7})$")
_ENDS_WITH_PAGE = re.compile(r"(?:^|[\s.…])(?:\d{1,4}|[ivxlc]{1,7})$")
_NUMBERED = re.compile(r"(?:\d{1,3}|[IVXLC]{1,7})[.)][ \t]+\S")
_COLUMNS = re.compile(r"(?:chapter|chap\.?|kapitel|chapitre)?\s*(?:page|seite|pág\.?)", re.IGNORECASE)
_WORDS = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]_*]*$")


@dataclass(frozen=True, slots=True)
class Book:
    """A text without Project Gutenberg's own words, and what they say of it; blank where they say nothing."""

    text: str
    title: str = ""
    author: str = ""
    language: str = ""
    is_gutenberg: bool = False


def without_licence(text: str) -> Book:
    """The book between Project Gutenberg's two marks; any other text as it is."""
    start = _START.search(text)
    if not start:
        return Book(text)
    end = _END.search(text, start.end())
    fields = {name: words.strip() for name, words in reversed(_FIELD.findall(text, 0, start.start()))}
    return Book(
        text[start.end() : end.start() if end else len(text)],
        fields.get("Title", ""),
        fields.get("Author", ""),
        _LANGUAGES.get(fields.get("Language", ""), ""),
        True,
    )


def without_credits(blocks: Sequence[Block]) -> list[Block]:
    """Without what volunteers wrote into a book of Project Gutenberg: their names, and where its pictures were."""
    kept = []
    for number, block in enumerate(blocks):
        if number < 5 and _CREDITS.match(block[0]):
            continue
        lines = block
        if any("[Illustration" in line for line in block):
            lines = [line for line in _ILLUSTRATION.sub("", "\n".join(block)).split("\n") if line.strip()]
        if lines:
            kept.append(lines)
    return kept


def begins_contents(line: str) -> bool:
    """Whether a line is the title of a list of contents."""
    return len(line) <= 40 and _CONTENTS.fullmatch(undecorated(line).strip(" .:_*=")) is not None


def ends_with_page(line: str) -> bool:
    """Whether a line of a PDF ends with the number of a page, as an entry of the contents does."""
    return len(line) <= MAX_ENTRY and _ENDS_WITH_PAGE.search(line) is not None


def without_contents(blocks: list[Block]) -> tuple[list[Block], frozenset[Key]]:
    """Without the list of contents at the front, and the keys of its entries; none where there is no list.

    The list ends where the first of its entries comes again, as the heading of its chapter.
    """
    begins = next((at for at, block in enumerate(blocks[:WITHIN]) if _starts_list(block)), None)
    if begins is None:
        return blocks, frozenset()
    prose = next((at for at in range(begins, len(blocks)) if _is_prose(blocks[at])), len(blocks))
    first, seen = set[Key](), set[Key]()
    again: list[tuple[int, bool]] = []
    for at in range(begins, prose):
        lines = blocks[at][1:] if at == begins and begins_contents(blocks[at][0]) else blocks[at]
        entries = [keys for line in lines if not _COLUMNS.fullmatch(line) and (keys := _keys(line))]
        if at > begins and entries and entries[0][0] in seen:
            again.append((at, entries[0][0] in first))
        first = first or {key for keys in entries[:1] for key in keys}
        seen.update(key for keys in entries for key in keys)
    # Chapters may be counted from one again in each part, so it is the last time that the first entry comes.
    ends = max((at for at, is_first in again if is_first), default=again[-1][0] if again else 0)
    ends = ends or begins + _listed(blocks[begins:prose])
    if ends >= len(blocks):  # nothing but a list: it is what is to be spoken
        return blocks, frozenset()
    listed = [line for block in blocks[begins:ends] for line in block]
    return blocks[:begins] + blocks[ends:], frozenset(keys[0] for line in listed if (keys := _keys(line)))


def key_of(line: str) -> Key:
    """What a heading and its entry in the contents have in common."""
    return tuple(_WORDS.findall(line.casefold()))


def _starts_list(block: Block) -> bool:
    return begins_contents(block[0]) or (len(block) > 2 and all(is_heading(line) for line in block))


def _is_prose(block: Block) -> bool:
    """Whether no list of contents has such lines."""
    if any(len(line) > MAX_ENTRY for line in block):
        return True
    return not any(map(_is_entry, block)) and bool(_SENTENCE_END.search(block[-1])) and sum(map(len, block)) >= 30


def _is_entry(line: str) -> bool:
    return bool(is_heading(line) or _PAGE.search(line) or _NUMBERED.match(line))


def _keys(line: str) -> list[Key]:
    """By which an entry is found again: its words without its page, and its number alone."""
    words = key_of(_PAGE.sub("", line))
    bare = [words[:count] for count in (2, 3) if count < len(words) and is_bare_heading(" ".join(words[:count]))]
    return [words, *bare] if words else []


def _listed(blocks: Sequence[Block]) -> int:
    """How many blocks are a list of contents whose entries do not come again; the first may be its title."""
    count = 1 if begins_contents(blocks[0][0]) and len(blocks[0]) == 1 else 0
    entries = 0
    for block in blocks[count:]:
        lines = block[1:] if begins_contents(block[0]) else block
        if not all(is_heading(line) or _PAGE.search(line) for line in lines):
            break
        count += 1
        entries += len(lines)
    last = blocks[count - 1] if count else []
    if entries and len(last) == 1 and not _PAGE.search(last[0]):  # more likely the heading of what follows
        count, entries = count - 1, entries - 1
    return count if entries > 1 else 0
