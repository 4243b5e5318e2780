"""Word documents as writers make them."""

from __future__ import annotations

from tests.studio.documents import docx
from tests.studio.odd_books.odd_book import OddBook


def paragraph(text: str, properties: str = "") -> str:
    return f'<w:p><w:pPr>{properties}</w:pPr><w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def style(style_id: str, name: str, more: str = "") -> str:
    return f'<w:style w:styleId="{style_id}"><w:name w:val="{name}"/>{more}</w:style>'


def no_title() -> OddBook:
    body = paragraph("Chapter 1: A Crooked Map", '<w:pStyle w:val="h1"/>') + paragraph("It was dark.")
    data = docx(body, styles=style("h1", "heading 1"))
    return OddBook("My novel.docx", data, ("Chapter 1: A Crooked Map",), ("It was dark.",), title="My novel")


WORD_DOCUMENTS = (no_title,)
