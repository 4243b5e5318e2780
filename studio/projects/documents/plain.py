"""Plain text: paragraphs between blank lines, lines that were wrapped put together, chapters by their headings."""

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
from studio.projects.documents.passages import Document, Passage, Skipped, text_of, with_pauses
from studio.speech.dialogue import begins_turn

WRAPPED = 45
"""A line of at least so many characters goes on in the next one."""
_MOST_LISTS = 3
"""At the front of a book: of chapters, of illustrations."""
TITLE_LINES = 3
"""Of a heading, at most."""

_OTHER_BREAKS = (("\f", "\n\n"), ("\u2029", "\n\n"), ("\u2028", "\n"))
_EMPHASIS = re.compile(r"(?<![\w*_\\])(_{1,3}|\*{1,3})(?=[^\s*_])([^*_]{1,1000})(?<=[^\s\\])\1(?![\w*_])")
_RUBY = re.compile(r"｜(?=[^｜《》\n]{1,40}《)|(?<=[^\s《》])《[\u3040-\u30ff]{1,40}》|［＃[^［］\n]{0,200}］")
"""As Aozora Bunko writes it: ｜名前《なまえ》, and ［＃ here begins a chapter ］."""


def read_plain(data: bytes) -> Document:
    """Without Project Gutenberg's own words, the contents, and signs of emphasis. Raises InvalidDocument."""
    book = without_licence(_without_ruby(text_of(data)))
    blocks = list(_blocks(book.text))
    skipped = Skipped()
    if book.is_gutenberg:
        blocks = without_credits(blocks)
        skipped.add("Project Gutenberg's header and licence are left out.")
    skipped.notes = book.notes
    entries = frozenset[Key]()
    for _ in range(_MOST_LISTS):
        blocks, listed = without_contents(blocks)
        if listed and not entries:
            skipped.add("The table of contents is left out.")
        entries |= listed
        if not listed:
            break
    half_words = HalfWords((line for block in blocks for line in block), keeps_hyphen=book.is_gutenberg)
    passages = tuple(with_pauses(_passages(blocks, entries, half_words)))
    return Document(passages, True, book.title, book.author, book.language, skipped=skipped.sentences())


def _without_ruby(text: str) -> str:
    """Without the readings of Japanese words, which would be heard twice, and without notes to the typesetter."""
    return _RUBY.sub("", text) if "《" in text or "［＃" in text else text


def unwrap(lines: Iterable[str], half_words: HalfWords | None = None) -> str:
    """The lines with a newline only where the writer meant one: before a speaker's name, and after short lines.

    ``half_words``: puts together words that are divided at the end of a line.
    """
    pieces: list[str] = []
    length = 0  # of the line that is being put together
    for line in (line.strip() for line in lines):
        if not line:
            continue
        fits = (length >= WRAPPED or line[:1].islower()) and not begins_turn(line)
        if pieces and fits and half_words and half_words.are_one(pieces[-1], line):
            pieces[-1] = half_words.begun(pieces[-1], line)
        elif pieces:
            pieces.append(" " if fits else "\n")
        length = length + 1 + len(line) if pieces and fits else len(line)
        pieces.append(line)
    return "".join(pieces)


def _blocks(text: str) -> Iterator[Block]:
    """The lines between blank ones; a line of signs that parts two scenes is a block by itself."""
    block: Block = []
    for line in map(
        str.strip, io.StringIO(text.replace("\f", "\n\n").replace("\u2029", "\n\n").replace("\u2028", "\n"))
    ):
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
    """``entries`` of the contents begin chapters too. None stands for a break between two scenes."""
    was_bare = False  # whether the heading before is a number alone, which may be followed by its title
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
    """A block's lines in order, and whether they are a heading; ``was_bare``: below a heading without a title."""
    if len(block) <= TITLE_LINES and _is_chapter(block, was_bare):
        lines = 1 if is_bare_heading(undecorated(block[0])) else len(block)
        yield from ((part, True) for part in (block[:lines], block[lines:]) if part)
        return
    if len(block) == 1:
        yield block, False
        return
    held: Block = []
    was_bare = False
    for line, below in zip(block, [*block[1:], ""], strict=True):
        may_begin = not held or len(held[-1]) < WRAPPED or SENTENCE_END.search(held[-1])
        is_wrapped = len(line) >= WRAPPED or below[:1].islower()
        if may_begin and _is_chapter([line], was_bare and not held and not is_wrapped):
            if held:
                yield held, False
                held = []
            yield [line], True
            was_bare = is_bare_heading(undecorated(line))
            continue
        held.append(line)
    if held:
        yield held, False


def _is_chapter(lines: Block, was_bare: bool) -> bool:
    first = undecorated(lines[0])
    rest = " ".join(lines[1:])
    if is_heading(first) or (lines[0].startswith("#") and first != lines[0] and not lines[0].startswith("###")):
        return not rest or (is_title(rest) and not begins_turn(rest))
    return was_bare and is_title(" ".join(lines)) and not begins_turn(lines[0])
