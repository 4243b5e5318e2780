"""Reads the text of Markdown; headings of the first two levels begin chapters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from studio.projects.documents.books.table_rows import row_text
from studio.projects.documents.headings import is_heading, is_scene_break
from studio.projects.documents.markdown.markdown_header import split_header
from studio.projects.documents.passages import Document, Passage, Skipped, decode_text, with_pauses
from studio.projects.documents.plain import unwrap

CHAPTER_LEVELS = ("h1", "h2")

_PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
"""Without "text_join", which would make escaped characters indistinguishable from others."""
_NO_LEVELS = ("",)

_NOTE = re.compile(r"[ ]{0,3}\[\^([^\]\s]{1,80})\]:")
_NOTE_MARK = re.compile(r"\[\^([^\]\s]{1,80})\]")
_CONTENTS = re.compile(r"\[\[?_?TOC_?\]?\]|(?:TOC\s*)?\{:toc\}", re.IGNORECASE)
"""Where a converter puts the table of contents."""
_DEFINITION = re.compile(r"(?:^|\n):[ \t]+")
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_WIKI_LINK = re.compile(r"\[\[(?:[^\[\]|\n]{1,200}\|)?([^\[\]|\n]{1,200})\]\]")
_MARKED = re.compile(r"==(?=\S)([^=\n]{1,500})(?<=\S)==")
_ATTRIBUTES = re.compile(r"[ \t]*\{[ \t]*[#.:][^{}]{0,100}\}$")
_TASK = re.compile(r"\[[ xX]\][ \t]+")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")


def read_markdown(data: bytes, with_notes: bool = False) -> Document:
    """Paragraphs, list items with their numbers, quotes and rows of tables; not code, HTML, images or URLs.

    With ``with_notes``, footnotes follow the paragraphs that refer to them. Raises InvalidDocument.
    """
    header, text = split_header(decode_text(data))
    text, notes = _without_notes(text.split("\n"))
    tokens = list(_with_rows(_PARSER.parse(text)))
    levels = _chapter_levels(tokens)
    skipped = Skipped()
    if not with_notes:
        skipped.notes, notes = len(notes), {}
    passages = tuple(with_pauses(_passages(tokens, levels, notes)))
    title = next((passage.chapter for passage in passages if passage.chapter), "") if levels else ""
    kinds = {token.type for token in tokens}
    if kinds & {"fence", "code_block"}:
        skipped.add("Code is left out.")
    if "html_block" in kinds:
        skipped.add("HTML is left out.")
    about = (header.title or title, header.author, header.language)
    return Document(passages, True, *about, skipped=skipped.sentences(), notes_left_out=skipped.notes)


def _chapter_levels(tokens: Iterable[Token]) -> Sequence[str]:
    """The tags of headings that begin chapters: the first two levels, or the highest level in use."""
    levels = {token.tag for token in tokens if token.type == "heading_open" and not _is_paragraph(token)}
    return CHAPTER_LEVELS if levels & set(CHAPTER_LEVELS) else sorted(levels)[:1]


def _is_paragraph(opened: Token) -> bool:
    """Whether a heading may be a paragraph above a line of dashes, which is a heading in Markdown."""
    return opened.markup == "-"


def _passages(tokens: Sequence[Token], levels: Sequence[str], notes: dict[str, str]) -> Iterator[Passage | None]:
    """Passages, with None for a scene break; each of the ``notes`` follows the first paragraph that refers to it."""
    number = ""
    for at, token in enumerate(tokens):
        if token.type == "hr":
            yield None
        elif token.type == "list_item_open":
            number = f"{token.info}. " if token.info else ""
        elif token.type == "inline" and not _CONTENTS.fullmatch(token.content.strip()):
            text = "\n".join(unwrap(lines.split("\n")) for lines in _DEFINITION.split(_words(token))).strip()
            opened = tokens[at - 1]
            is_title = opened.type == "heading_open"
            if is_title and _is_paragraph(opened) and ("\n" in token.content or _SENTENCE_END.search(text)):
                yield Passage(text)
                yield None
            elif is_scene_break(text):
                yield None
            elif text:
                text = _ATTRIBUTES.sub("", text) if is_title else number + _TASK.sub("", text, count=1)
                is_chapter = opened.tag in levels if is_title else not levels and is_heading(text)
                chapter = text.replace("\\[", "[") if is_chapter else ""
                yield Passage(text, chapter=chapter, is_title=is_chapter and chapter != text)
            number = ""
            for label in _NOTE_MARK.findall(token.content) if notes else ():
                yield from _passages(_PARSER.parse(notes.pop(label, "")), _NO_LEVELS, {})


def _with_rows(tokens: Iterable[Token]) -> Iterator[Token]:
    """The tokens with one for a row of a table, instead of one for each cell, where `row_text` joins them."""
    row: list[Token] | None = None
    for token in tokens:
        if token.type == "tr_close":
            cells = [cell for cell in row or () if _words(cell).strip()]
            line = row_text([_words(cell).strip() for cell in cells])
            if line is not None:
                content = " ".join(cell.content for cell in cells)  # with the note marks
                cells = [Token("inline", "", 0, content=content, children=[Token("text", "", 0, content=line)])]
            yield from cells
            row = None
        if row is None:
            yield token
        elif token.type == "inline":
            row.append(token)
        if token.type == "tr_open":
            row = []


def _words(inline: Token) -> str:
    """The text of a line's tokens, including tags such as [whispering].

    An escaped bracket keeps its backslash, so that it does not become a tag later.
    """
    pieces = []
    for token in inline.children or ():
        is_break = token.type in ("softbreak", "hardbreak") or (
            token.type == "html_inline" and token.content[:3].lower() == "<br"
        )
        if is_break:
            pieces.append("\n")
        elif token.type in ("text", "code_inline"):
            pieces.append(token.content)
        elif token.type == "text_special":  # an entity, or a sign after a backslash
            pieces.append(token.markup if token.markup == "\\[" else token.content)
    text = _NOTE_MARK.sub("", "".join(pieces))
    return _MARKED.sub(r"\1", _WIKI_LINK.sub(r"\1", text))


def _without_notes(lines: Iterable[str]) -> tuple[str, dict[str, str]]:
    """The text without footnotes (paragraphs that begin with "[^1]:"), and their texts by label."""
    body_lines, fence, after_blank = [], "", False
    note: list[str] | None = None
    notes: dict[str, list[str]] = {}
    for line in lines:
        match = _FENCE.match(line)
        if match and (not fence or (match[1].startswith(fence) and not line.strip(" `~"))):
            fence = "" if fence else match[1]
        note_start = None if fence else _NOTE.match(line)
        if note_start:
            note = notes.setdefault(note_start[1], [])
        elif note is not None and line.strip():  # a paragraph of the note after a blank line is indented
            note = note if not match and (not after_blank or line.startswith(("    ", "\t"))) else None
        after_blank = not line.strip()
        if note is not None:
            note.append(line[note_start.end() if note_start else 0 :].strip())
        if note is None or after_blank:
            body_lines.append(line)
    return "\n".join(body_lines), {label: "\n".join(texts) for label, texts in notes.items()}
