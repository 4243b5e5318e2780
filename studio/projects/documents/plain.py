"""Reads plain text: paragraphs between blank lines, with wrapped lines joined, and chapters by their headings."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator

from studio.projects.documents.front_matter import (
    Block,
    Key,
    key_of,
    without_contents,
    without_credits,
    without_licence,
)
from studio.projects.documents.half_words import HalfWords
from studio.projects.documents.headings import (
    SENTENCE_END,
    is_bare_heading,
    is_heading,
    is_scene_break,
    is_title,
    undecorated,
)
from studio.projects.documents.passages import Document, Passage, Skipped, decode_text, with_pauses
from studio.speech.dialogue import begins_turn

WRAPPED = 45
"""Lines of at least this many characters count as wrapped."""
_MAX_LISTS = 3
"""Tables at the front of a book: of chapters, of illustrations."""
TITLE_LINES = 3
"""Maximum lines of a heading."""

_EMPHASIS = re.compile(r"(?<![\w*_\\])(_{1,3}|\*{1,3})(?=[^\s*_])([^*_]{1,1000})(?<=[^\s\\])\1(?![\w*_])")
_RUBY = re.compile(r"｜(?=[^｜《》\n]{1,40}《)|(?<=[^\s《》])《[\u3040-\u30ff]{1,40}》|［＃[^［］\n]{0,200}］")
"""In the notation of Aozora Bunko: ｜名前《なまえ》, and ［＃ here begins a chapter ］."""


def read_plain(data: bytes) -> Document:
    """The text without Project Gutenberg's own, the contents, and marks of emphasis. Raises InvalidDocument."""
    book = without_licence(_without_ruby(decode_text(data)))
    blocks = list(_blocks(book.text))
    skipped = Skipped()
    if book.is_gutenberg:
        blocks = without_credits(blocks)
        skipped.add("Project Gutenberg's header and licence are left out.")
    skipped.notes = book.notes
    entries = frozenset[Key]()
    for _ in range(_MAX_LISTS):
        blocks, keys = without_contents(blocks)
        if keys and not entries:
            skipped.add("The table of contents is left out.")
        entries |= keys
        if not keys:
            break
    half_words = HalfWords((line for block in blocks for line in block), keeps_hyphen=book.is_gutenberg)
    passages = tuple(with_pauses(_passages(blocks, entries, half_words)))
    return Document(passages, True, book.title, book.author, book.language, skipped=skipped.sentences())


def _without_ruby(text: str) -> str:
    """The text without furigana, which would be read twice, and without notes to the typesetter."""
    return _RUBY.sub("", text) if "《" in text or "［＃" in text else text


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
        is_entry = len(block) <= TITLE_LINES and bool(entries) and key_of(" ".join(block)) in entries
        for lines, is_chapter in [(block, True)] if is_entry else _divided(block, was_bare):
            text = _EMPHASIS.sub(r"\2", unwrap(lines, half_words))
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
