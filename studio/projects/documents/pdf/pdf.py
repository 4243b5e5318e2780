"""Reads the text of PDFs as paragraphs, without page headers and footers; chapters by the outline or by headings."""

from __future__ import annotations

import re

from studio.errors import InvalidDocument
from studio.library.projects.project_records import MAX_AUTHOR
from studio.projects.documents.passages import MAX_TEXT, Document, with_pauses
from studio.projects.documents.pdf.page_furniture import without_furniture
from studio.projects.documents.pdf.page_titles import MAX_TITLE, PageTitles
from studio.projects.documents.pdf.pdf_paragraphs import PdfParagraphs
from studio.projects.documents.pdf.pdf_text import text_of_pdf

MIN_CHARACTERS = 8
"""Letters and digits per page; a PDF with fewer is a scan."""

_UNKNOWN = ("untitled", "anonymous", "unknown", "unspecified", "no title")
_PROGRAM = re.compile(r"\AMicrosoft Word - ")


def read_pdf(data: bytes) -> Document:
    """Join lines into paragraphs; the first two levels of the outline, or else headings, begin chapters.

    Raises InvalidDocument for a scan without text, a password, and a file that takes too much memory.
    """
    pdf = text_of_pdf(data)
    signs = sum(sign.isalnum() for page in pdf.pages for line in page for sign in line.text)
    if signs < MIN_CHARACTERS * max(1, len(pdf.pages)):
        raise InvalidDocument(
            "this PDF has no text, probably because its pages are scans: convert it with text recognition (OCR) first",
            "file",
        )
    if signs > MAX_TEXT:
        raise InvalidDocument(f"the PDF has more than {MAX_TEXT} characters of text", "file")
    titles: dict[int, PageTitles] = {}
    for page, title in pdf.outline:
        titles.setdefault(page, PageTitles()).add(" ".join(title.split())[:MAX_TITLE])
    pages, skipped = without_furniture(pdf, titles)
    passages = tuple(with_pauses(PdfParagraphs(pages, titles).passages()))
    title, author = (_name(words) for words in (pdf.title, pdf.author))
    return Document(passages, True, title, author[:MAX_AUTHOR], skipped=skipped.sentences())


def _name(words: str) -> str:
    """A title or an author from the metadata; blank for placeholders such as "untitled"."""
    name = " ".join(words.split())[:MAX_TITLE]
    return "" if name.strip("()").casefold() in _UNKNOWN else _PROGRAM.sub("", name)
