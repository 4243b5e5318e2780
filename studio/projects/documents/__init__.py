"""Reads documents into passages of text: one reader per format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from studio.errors import InvalidDocument
from studio.projects.documents.epub.spine import read_epub
from studio.projects.documents.file_signatures import check_signature
from studio.projects.documents.lone_numbers import read_lone_numbers
from studio.projects.documents.parts import into_parts
from studio.projects.documents.passages import MAX_FILE, MAX_SKIPPED, Document, Passage
from studio.projects.documents.plain import read_plain
from studio.projects.documents.subtitles import read_srt
from studio.projects.documents.table import read_csv
from studio.projects.documents.titles import join_headings
from studio.projects.documents.word.docx import read_docx

__all__ = ["KINDS", "MAX_FILE", "Document", "Passage", "into_parts", "kind_of", "read_document"]


def _read_markdown(data: bytes, with_notes: bool) -> Document:
    from studio.projects.documents.markdown.markdown import (
        read_markdown,
    )  # importing its parser takes as long as reading many books

    return read_markdown(data, with_notes)


def _read_pdf(data: bytes) -> Document:
    from studio.projects.documents.pdf.pdf import read_pdf  # as above

    return read_pdf(data)


READERS: Mapping[str, Callable[[bytes], Document]] = {
    "txt": read_plain,
    "pdf": _read_pdf,
    "srt": read_srt,
    "csv": read_csv,
}
READERS_OF_NOTES: Mapping[str, Callable[[bytes, bool], Document]] = {
    "md": _read_markdown,
    "epub": read_epub,
    "docx": read_docx,
}
"""Readers of formats with footnotes, which are read or left out."""
KINDS = (*READERS, *READERS_OF_NOTES)
_SUFFIXES = {"text": "txt", "markdown": "md", "vtt": "srt", "tsv": "csv"} | {kind: kind for kind in KINDS}


def kind_of(file_name: str) -> str:
    """The kind of a file by its extension. Raises InvalidDocument."""
    suffix = file_name.rpartition(".")[2].lower()
    if suffix == "doc":
        raise InvalidDocument("old Word documents (.doc) cannot be read: save it as .docx", "file")
    if suffix not in _SUFFIXES:
        extensions = ".txt, .md, .epub, .docx, .pdf, .srt, .vtt or .csv"
        raise InvalidDocument(f"{file_name[-80:]!r} cannot be read; send {extensions}", "file")
    return _SUFFIXES[suffix]


def read_document(data: bytes, kind: str, with_notes: bool = False) -> Document:
    """Parse a document; it has at least one passage. Blocking.

    ``with_notes`` includes footnotes and endnotes of Markdown, EPUBs and Word documents. Raises InvalidDocument with
    the reason and, for formats with lines, the line.
    """
    if kind not in KINDS:
        raise InvalidDocument(f"{kind[:20]!r} is not a kind of document; use one of {', '.join(KINDS)}", "kind")
    if len(data) > MAX_FILE:
        raise InvalidDocument(f"the document has {len(data)} bytes; at most {MAX_FILE} are allowed", "file")
    check_signature(data, kind)
    read = READERS_OF_NOTES.get(kind)
    document = read(data, with_notes) if read else READERS[kind](data)
    if document.prose:
        document = read_lone_numbers(document)
        document = replace(document, passages=join_headings(document.passages, document.title))
    document = replace(document, skipped=document.skipped[:MAX_SKIPPED])
    if not any(passage.text.strip() for passage in document.passages):
        raise InvalidDocument("the document has no text to speak", "file")
    return document
