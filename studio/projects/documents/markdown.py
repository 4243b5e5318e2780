"""Markdown: what is read aloud of it; headings of the first two levels begin chapters."""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.token import Token

from studio.projects.documents.passages import Document, Passage, text_of
from studio.projects.documents.plain import unwrap

CHAPTER_LEVELS = ("h1", "h2")


def read_markdown(data: bytes) -> Document:
    """Paragraphs, list items, quotes and table cells; no code, HTML, images or addresses. Raises InvalidDocument."""
    tokens = MarkdownIt("commonmark").enable("table").parse(_without_front_matter(text_of(data)))
    passages = []
    title = ""
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type != "inline":
            continue
        text = unwrap(_words(token).split(chr(10)))
        if not text:
            continue
        heading = before is not None and before.type == "heading_open" and before.tag in CHAPTER_LEVELS
        title = title or (text if heading else "")
        passages.append(Passage(text, chapter=text if heading else ""))
    return Document(tuple(passages), prose=True, title=title)


def _words(inline: Token) -> str:
    """The text of a line's tokens; a tag such as [whispering] is text too, as it links nowhere."""
    pieces = []
    for token in inline.children or ():
        if token.type in ("softbreak", "hardbreak"):
            pieces.append("\n")
        elif token.type in ("text", "code_inline"):
            pieces.append(token.content)
    return "".join(pieces)


def _without_front_matter(text: str) -> str:
    if text.startswith("---\n"):
        _, found, rest = text[4:].partition("\n---\n")
        return rest if found else text
    return text
