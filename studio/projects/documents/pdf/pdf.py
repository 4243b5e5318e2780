"""PDF: its text as paragraphs, without what repeats on each page; chapters by its outline, or by their headings."""

from __future__ import annotations

import re

from studio.errors import InvalidDocument
from studio.library.projects.project_records import MAX_AUTHOR
from studio.projects.documents.passages import MAX_TEXT, Document, with_pauses
from studio.projects.documents.pdf.page_furniture import without_furniture
from studio.projects.documents.pdf.page_titles import MAX_TITLE, PageTitles
from studio.projects.documents.pdf.pdf_paragraphs import PdfParagraphs
from studio.projects.documents.pdf.pdf_text import text_of_pdf

FEW = 8
"""Letters and digits a page; with fewer it is a scan, of which at most a page number can be read."""

_UNKNOWN = ("untitled", "anonymous", "unknown", "unspecified", "no title")
_PROGRAM = re.compile(r"\AMicrosoft Word - ")


def read_pdf(data: bytes) -> Document:
    """Lines become paragraphs again, by their lengths; the outline's first two levels, or headings, begin chapters.

    Raises InvalidDocument for a scan without text, one with a password, and what takes too much memory.
    """
    pdf = text_of_pdf(data)
    signs = sum(sign.isalnum() for page in pdf.pages for line in page for sign in line.text)
    if signs < FEW * max(1, len(pdf.pages)):
        raise InvalidDocument(
            "this PDF has no text, as if its pages were scanned: have a program for text recognition (OCR) make one",
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
    """A title or an author as programs write it; blank where they write that they know none."""
    name = " ".join(words.split())[:MAX_TITLE]
    return "" if name.strip("()").casefold() in _UNKNOWN else _PROGRAM.sub("", name)
