"""Reads the text of Markdown; headings of the first two levels begin chapters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from manuscript.encodings import decode_text
from manuscript.headings import is_heading, is_scene_break
from manuscript.note_marks import SENTENCE_END, row_text
from manuscript.passages import BLANK_LINES, MAX_TITLE, Document, Passage, Skipped, check_passages, with_scenes
from manuscript.plain import unwrap

CHAPTER_LEVELS = ("h1", "h2")
MAX_HEADER = 20_000  # characters; a longer block is left out unread
MAX_AUTHORS = 20

_PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
"""Without "text_join", which would make escaped characters indistinguishable from others."""
_COSTLY = re.compile(rf"{BLANK_LINES.pattern}|^[^\S\n]*+(?:[-*+#|>]|\d{{1,9}}[.)])|\[", re.MULTILINE)
"""What the parser makes tokens of, at 10 to 30 microseconds each: paragraphs, lines of lists and tables, brackets."""

_NOTE = re.compile(r"[ ]{0,3}\[\^([^\]\s]{1,80})\]:")
_NOTE_MARK = re.compile(r"\[\^([^\]\s]{1,80})\]")
_CONTENTS = re.compile(r"\[\[?_?TOC_?\]?\]|(?:TOC\s*)?\{:toc\}", re.IGNORECASE)
"""Where a converter puts the table of contents."""
_DEFINITION = re.compile(r"(?:^|\n):[ \t]+")
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_WIKI_LINK = re.compile(r"\[\[(?:[^\[\]|\n]{1,200}\|)?([^\[\]|\n]{1,200})\]\]")
_MARKED = re.compile(r"==(?=\S)([^=\n]{1,500})(?<=\S)==")
_ATTRIBUTES = re.compile(r"(?<![ \t])[ \t]*+\{[ \t]*+[#.:][^{}]{0,100}\}$")
_TASK = re.compile(r"\[[ xX]\][ \t]+")

_HEADER = re.compile(
    r"---[ \t]*\n((?:#|[\w-]+:(?:[ \t]|$)).*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
_FIELD = re.compile(r"^([\w-]+):[ \t]+(\S.*)$", re.MULTILINE)


def read_markdown(data: bytes, with_notes: bool = False) -> Document:
    """Paragraphs, list items with their numbers, quotes and rows of tables; not code, HTML, images or URLs.

    With ``with_notes``, footnotes follow the paragraphs that refer to them. Raises InvalidDocument.
    """
    fields, text = _split_header(decode_text(data))
    check_passages(text, _COSTLY)
    text, notes = _without_notes(text.split("\n"))
    tokens = list(_with_rows(_PARSER.parse(text)))
    # The first two levels, or the highest in use. A paragraph above a line of dashes is a heading in Markdown, seldom
    # in books.
    tags = {token.tag for token in tokens if token.type == "heading_open" and token.markup != "-"}
    levels = CHAPTER_LEVELS if tags & set(CHAPTER_LEVELS) else sorted(tags)[:1]
    skipped = Skipped()
    if not with_notes:
        skipped.notes, notes = len(notes), {}
    passages = tuple(with_scenes(_passages(tokens, levels, notes)))
    title, author, language = (
        next(filter(None, (_plain_value(fields.get(name)) for name in names)), "")
        for names in (("title",), ("author", "authors"), ("lang", "language"))
    )
    first = next((passage.chapter for passage in passages if passage.chapter), "") if levels else ""
    kinds = {token.type for token in tokens}
    if kinds & {"fence", "code_block"}:
        skipped.add("Code is left out.")
    if "html_block" in kinds:
        skipped.add("HTML is left out.")
    about = (title[:MAX_TITLE] or first, author, language.replace("_", "-"))
    return Document(passages, True, *about, skipped=skipped.sentences(), notes_left_out=skipped.notes)


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
            if is_title and opened.markup == "-" and ("\n" in token.content or SENTENCE_END.search(text)):
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
                yield from _passages(_PARSER.parse(notes.pop(label, "")), ("",), {})


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


def _split_header(text: str) -> tuple[Mapping[str, object], str]:
    """The fields of a document's header by name in lower case, and its text without the header.

    Malformed YAML, such as a title with a colon, is read line by line.
    """
    match = _HEADER.match(text)
    if not match:
        return {}, text
    header, text = match[1], text[match.end() :]
    try:  # this loader makes only text, lists and mappings
        fields = yaml.load(header, yaml.BaseLoader) if len(header) <= MAX_HEADER else {}
    except (yaml.YAMLError, RecursionError):
        fields = {name: value.strip("\"' ") for name, value in _FIELD.findall(header)}
    return {str(name).lower(): value for name, value in fields.items()} if isinstance(fields, dict) else {}, text


def _plain_value(value: object) -> str:
    """A value as one line: a text, or a list of texts or of authors with their names."""
    values = value[:MAX_AUTHORS] if isinstance(value, list) else [value]
    names = (item.get("name") if isinstance(item, dict) else item for item in values)
    return ", ".join(" ".join(name.split()) for name in names if isinstance(name, str) and name.strip())
