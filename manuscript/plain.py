"""Reads plain text: paragraphs between blank lines, with wrapped lines joined, and chapters by their headings.

The matter around a book is left out: Project Gutenberg's header and licence, the contents.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from manuscript.encodings import decode_text
from manuscript.headings import SENTENCE_END, is_bare_heading, is_heading, is_scene_break, is_title, undecorated
from manuscript.note_marks import HalfWords
from manuscript.passages import Document, Passage, Skipped, check_passages, with_scenes
from manuscript.plain_notes import Block, without_line_numbers, without_star_notes, without_transcriber
from manuscript.plays import with_italic_names
from speechtext.turns import begins_turn

Key = tuple[str, ...]  # the words of a heading, regardless of case and punctuation
WITHIN = 200  # number of blocks at the beginning in which a table of contents may begin
MAX_ENTRY = 120  # characters of an entry in the table of contents

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
    r"\[(?:Illustration|Decoration|Music|Blank Page|"
    r"(?P<note>Footnote [\w*]{1,5}:))[^\[\]]{0,4000}(?:\[[^\[\]]{0,600}\][^\[\]]{0,4000}){0,8}\]"
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
_PAGE = re.compile(
    r"(?<![ \t.…])(?=[ \t.]{0,3}?(?:\.[ \t]?\.|[ \t]{2}|\t|…))[ \t.…]++(?:\d{1,4}|[ivxlc]{1,7})$"  # a leader, a number
)
_ENDS_WITH_PAGE = re.compile(r"(?:^|[\s.…])(?:\d{1,4}|[ivxlc]{1,7})$")
_NUMBERED = re.compile(r"(?:\d{1,3}|[IVXLC]{1,7})(?:[.)][ \t]+|[ \t]{2,})\S")
_COLUMNS = re.compile(r"(?:chapter|chap\.?|kapitel|chapitre)?\s*(?:page|seite|pág\.?)", re.IGNORECASE)
_WORDS = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]_*]*$")
WRAPPED = 45  # lines of at least this many characters count as wrapped
_MAX_LISTS = 3  # tables at the front of a book: of chapters, of illustrations
TITLE_LINES = 3  # maximum lines of a heading

_EMPHASIS = re.compile(r"(?<![\w*_\\])(_{1,3}|\*{1,3})(?=[^\s*_])([^*_]{1,1000})(?<=[^\s\\])\1(?![\w*_])")
_BOLD = re.compile(r"(?<![\w=])=(?=[^\s=])([^=]{1,300})(?<=[^\s=])=(?![\w=])")  # as transcribers mark it
_RUBY = re.compile(r"｜(?=[^｜《》\n]{1,40}《)|(?<=[^\s《》])《[\u3040-\u30ff]{1,40}》|［＃[^［］\n]{0,200}］")
"""Readings and instructions as Aozora Bunko writes them: ｜名前《なまえ》, and ［＃ here begins a chapter ］."""


@dataclass(frozen=True, slots=True)
class _Book:
    """A book without Project Gutenberg's own text, and the metadata found there; unknown fields are blank."""

    text: str
    title: str = ""
    author: str = ""
    language: str = ""
    is_gutenberg: bool = False
    notes: int = 0  # number of footnotes left out


def read_plain(data: bytes) -> Document:
    """The text without Project Gutenberg's own, the contents, and marks of emphasis. Raises InvalidDocument."""
    check_passages(text := decode_text(data))
    # Without furigana, which would be read twice, and notes to the typesetter.
    book = _without_licence(_RUBY.sub("", text) if "《" in text or "［＃" in text else text)
    blocks = list(_blocks(book.text))
    skipped = Skipped()
    if book.is_gutenberg:
        blocks = _without_credits(blocks)
        skipped.add("Project Gutenberg's header and licence are left out.")
    skipped.notes = book.notes
    blocks, has_notes = without_transcriber(blocks)
    if has_notes:
        skipped.add("The transcriber's notes are left out.")
    blocks, numbers = without_line_numbers(blocks)
    if numbers:
        skipped.add(f"{numbers} numbers of lines in the margin are left out.")
    blocks, notes = without_star_notes(blocks)
    skipped.notes += notes
    entries = frozenset[Key]()
    for _ in range(_MAX_LISTS):
        blocks, keys = _without_contents(blocks)
        if keys and not entries:
            skipped.add("The table of contents is left out.")
        entries |= keys
        if not keys:
            break
    firsts = with_italic_names([block[0] for block in blocks])
    blocks = [[first, *block[1:]] for first, block in zip(firsts, blocks, strict=True)]
    half_words = HalfWords((line for block in blocks for line in block), keeps_hyphen=book.is_gutenberg)
    passages = tuple(with_scenes(_passages(blocks, entries, half_words)))
    return Document(passages, True, book.title, book.author, book.language, skipped=skipped.sentences())


def unwrap(lines: Iterable[str], half_words: HalfWords | None = None, wrapped: int = WRAPPED) -> str:
    """Join wrapped lines; newlines stay before a speaker's name and after lines of less than ``wrapped`` characters.

    ``half_words`` joins hyphenated words.
    """
    pieces: list[str] = []
    length = 0  # of the current line
    for line in (line.strip() for line in lines):
        if not line:
            continue
        is_wrapped = (length >= wrapped or line[:1].islower()) and not begins_turn(line)
        if pieces and is_wrapped and half_words and half_words.are_one(pieces[-1], line):
            pieces[-1] = half_words.unhyphenated(pieces[-1], line)
        elif pieces:
            pieces.append(" " if is_wrapped else "\n")
        length = length + 1 + len(line) if pieces and is_wrapped else len(line)
        pieces.append(line)
    return "".join(pieces)


def _blocks(text: str) -> Iterator[Block]:
    """Split a text at blank lines; a scene break is a block by itself."""
    block: Block = []
    text = text.replace("\f", "\n\n").replace("\u2029", "\n\n").replace("\u2028", "\n")
    for line in map(str.strip, io.StringIO(text)):
        if line and not is_scene_break(line):
            block.append(line)
            continue
        if block:
            yield block
            block = []
        if line:
            yield [line]
    if block:
        yield block


def _passages(blocks: Iterable[Block], entries: frozenset[Key], half_words: HalfWords) -> Iterator[Passage | None]:
    """Passages, with None for a scene break. ``entries`` of the contents begin chapters too."""
    was_bare = False  # whether the previous heading is a number alone, which its title may follow
    for block in blocks:
        if len(block) == 1 and is_scene_break(block[0]):
            yield None
            was_bare = False
            continue
        is_entry = len(block) <= TITLE_LINES and bool(entries) and _key_of(" ".join(block)) in entries
        for lines, is_chapter in [(block, True)] if is_entry else _divided(block, was_bare):
            text = _BOLD.sub(r"\1", _EMPHASIS.sub(r"\2", unwrap(lines, half_words)))
            if is_chapter or text.startswith("#"):
                text = undecorated(" ".join(text.split()) if is_chapter else text)
            was_bare = is_chapter and is_bare_heading(text)
            yield Passage(text, chapter=text if is_chapter else "")


def _divided(block: Block, was_bare: bool) -> Iterator[tuple[Block, bool]]:
    """Split a block into headings (True) and text (False); ``was_bare``: it follows a heading without a title."""
    if len(block) <= TITLE_LINES and _is_chapter(block, was_bare):
        lines = 1 if is_bare_heading(undecorated(block[0])) else len(block)
        yield from ((part, True) for part in (block[:lines], block[lines:]) if part)
        return
    if len(block) == 1:
        yield block, False
        return
    pending: Block = []
    was_bare = False
    for line, below in zip(block, [*block[1:], ""], strict=True):
        may_begin = not pending or len(pending[-1]) < WRAPPED or SENTENCE_END.search(pending[-1])
        is_wrapped = len(line) >= WRAPPED or below[:1].islower()
        if may_begin and _is_chapter([line], was_bare and not pending and not is_wrapped):
            if pending:
                yield pending, False
                pending = []
            yield [line], True
            was_bare = is_bare_heading(undecorated(line))
            continue
        pending.append(line)
    if pending:
        yield pending, False


def _is_chapter(lines: Block, was_bare: bool) -> bool:
    first = undecorated(lines[0])
    rest = " ".join(lines[1:])
    if is_heading(first) or (lines[0].startswith("#") and first != lines[0] and not lines[0].startswith("###")):
        return not rest or (is_title(rest) and not begins_turn(rest))
    return was_bare and is_title(" ".join(lines)) and not begins_turn(lines[0])


def _without_licence(text: str) -> _Book:
    """The book between Project Gutenberg's two markers, without illustration notes, footnotes and their marks.

    Any other text stays as it is.
    """
    start = _START.search(text)
    if not start:
        return _Book(text)
    end = _END.search(text, start.end())
    fields = {name: words.strip() for name, words in reversed(_FIELD.findall(text, 0, start.start()))}
    text = text[start.end() : end.start() if end else len(text)]
    notes = sum(bool(aside["note"]) for aside in _ASIDE.finditer(text))
    text = _ASIDE.sub("", text)
    marks = set(_MARK.findall(text))
    notes += sum(note[1] in marks for note in _NOTE.finditer(text))
    text = _NOTE.sub(lambda note: "" if note[1] in marks else note[0], text)
    return _Book(
        _NOTES.sub("", _MARK.sub("", text)) if notes else text,
        fields.get("Title", ""),
        fields.get("Author", ""),
        _LANGUAGES.get(fields.get("Language", ""), ""),
        True,
        notes,
    )


def _without_credits(blocks: Sequence[Block]) -> list[Block]:
    """The blocks without the credits at the front of a Project Gutenberg book."""
    return [block for number, block in enumerate(blocks) if number >= 5 or not _CREDITS.match(block[0])]


def begins_contents(line: str) -> bool:
    """Whether a line is the title of a table of contents."""
    return len(line) <= 40 and _CONTENTS.fullmatch(undecorated(line).strip(" .:_*=")) is not None


def ends_with_page(line: str) -> bool:
    """Whether a line of a PDF ends with a page number, like an entry of a table of contents."""
    return len(line) <= MAX_ENTRY and _ENDS_WITH_PAGE.search(line) is not None


def _without_contents(blocks: list[Block]) -> tuple[list[Block], frozenset[Key]]:
    """The blocks without the table of contents at the front, and the keys of its entries (none without a table).

    The table ends where its first entry is repeated, as the heading of a chapter.
    """
    start = next((at for at, block in enumerate(blocks[:WITHIN]) if _starts_list(block) and not _is_prose(block)), None)
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


def _key_of(line: str) -> Key:
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
    words = _key_of(_PAGE.sub("", line))
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
