"""Reads documents into passages of text: one reader per format, chosen by kind and checked against the signature."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from manuscript.docx import read_docx
from manuscript.encodings import NAMES, encoding_named, encoding_of, without_controls
from manuscript.epub import read_epub
from manuscript.headings import join_headings, read_lone_numbers
from manuscript.note_marks import with_initials
from manuscript.parts import into_parts
from manuscript.passages import MAX_AUTHOR, MAX_FILE, MAX_SKIPPED, Document, InvalidDocument, Passage
from manuscript.plain import read_plain
from manuscript.plays import with_names_above
from manuscript.subtitles import read_srt
from manuscript.table import read_csv
from speechtext.language import LANGUAGE_TAG

__all__ = ["KINDS", "MAX_FILE", "TEXTS", "Document", "Passage", "into_parts", "kind_of", "read_document"]

T = TypeVar("T", Document, Passage)
_ZIP = b"PK\x03\x04"
_KINDS = {"pdf": "a PDF", "epub": "an EPUB", "docx": "a Word document"}
_OTHERS = (
    (rb"\xd0\xcf\x11\xe0", "an old Word document (.doc), or one with a password: save it as .docx without a password"),
    (rb"\{\\rtf", "an RTF document: save it as .docx"),
    (rb"(?i)(?:\xef\xbb\xbf)?\s{0,99}<(?:!doctype\s+)?html\b", "a web page (HTML): save its text as .txt"),
    (rb"\x89PNG", "a PNG picture, not a document"),
    (rb"\xff\xd8\xff", "a JPEG picture, not a document"),
    (rb"GIF8[79]a", "a GIF picture, not a document"),
    (rb"RIFF.{4}WEBP", "a WebP picture, not a document"),
    (rb"ID3[\x02-\x04]|\xff[\xf2\xf3\xfa\xfb]|RIFF.{4}WAVE|fLaC|OggS", "an audio file, not a document"),
    (rb"\0\0.{2}ftyp", "an MPEG-4 file, not a document"),
    (rb"PK\x03\x04|\x1f\x8b|7z\xbc\xaf|Rar!\x1a", "an archive: unpack it and send the document in it"),
)


TEXTS = ("txt", "md", "srt", "csv")
"""Kinds that are not compressed, and that may be in any encoding."""
KINDS = ("txt", "pdf", "srt", "csv", "md", "epub", "docx")
_SUFFIXES = {"text": "txt", "markdown": "md", "vtt": "srt", "ass": "srt", "ssa": "srt", "tsv": "csv"} | {
    kind: kind for kind in KINDS
}


def kind_of(file_name: str) -> str:
    """The kind of a file by its extension. Raises InvalidDocument."""
    suffix = file_name.rpartition(".")[2].lower()
    if suffix == "doc":
        raise InvalidDocument("old Word documents (.doc) cannot be read: save it as .docx")
    if suffix not in _SUFFIXES:
        extensions = ".txt, .md, .epub, .docx, .pdf, .srt, .vtt, .ass or .csv"
        raise InvalidDocument(f"{file_name[-80:]!r} cannot be read; send {extensions}")
    return _SUFFIXES[suffix]


def read_document(
    data: bytes, kind: str, with_notes: bool = False, columns: Mapping[str, str] | None = None, encoding: str = ""
) -> Document:
    """Parse a document; it has at least one passage. Blocking.

    ``with_notes`` includes footnotes and endnotes of Markdown, EPUBs and Word documents. ``columns``: the roles of a
    table's columns, as in `read_csv`. ``encoding``: of a text; blank: Unicode, or else detected. Raises InvalidDocument
    with the reason and, for formats with lines, the line.
    """
    if kind not in KINDS:
        raise InvalidDocument(f"{kind[:20]!r} is not a kind of document; use one of {', '.join(KINDS)}", "kind")
    if len(data) > MAX_FILE:
        raise InvalidDocument(f"the document has {len(data)} bytes; at most {MAX_FILE} are allowed")
    check_signature(data, kind)
    is_chosen = bool(encoding.strip())
    encoding = _chosen_encoding(encoding, kind) if is_chosen else encoding_of(data) if kind in TEXTS else ""
    document = _clean(replace(_read(_unicode(data, encoding), kind, with_notes, columns), encoding=encoding))
    document = replace(document, passages=tuple(map(_clean, document.passages)))
    if encoding and not is_chosen:
        note = f"The text is read as {NAMES[encoding]}; if its letters are wrong, choose its encoding."
        document = replace(document, skipped=(note, *document.skipped))
    if document.prose:
        passages = with_names_above(with_initials(document.passages))
        document = read_lone_numbers(replace(document, passages=tuple(passages)))
        document = replace(document, passages=join_headings(document.passages, document.title))
    if not any(passage.text.strip() for passage in document.passages):
        why = " ".join(document.skipped[:3])
        raise InvalidDocument("the document has no text to speak" + (why and f": {why}"))
    language = document.language.strip()
    return replace(
        document,
        author=document.author[:MAX_AUTHOR],
        language=language if LANGUAGE_TAG.fullmatch(language) else "",
        skipped=document.skipped[:MAX_SKIPPED],
    )


def _chosen_encoding(name: str, kind: str) -> str:
    """Raises InvalidDocument."""
    if kind not in TEXTS:
        raise InvalidDocument(f"encoding is for {', '.join(TEXTS)}; a {kind} names its own", "encoding")
    try:
        return encoding_named(name[:40])
    except LookupError:
        known = ", ".join(["utf-8", "utf-16", *NAMES])
        raise InvalidDocument(
            f"{name[:40]!r} is not an encoding that can be read; use one of {known}", "encoding"
        ) from None


def _unicode(data: bytes, encoding: str) -> bytes:
    """The data as UTF-8. Raises InvalidDocument."""
    try:
        return data.decode(encoding).encode() if encoding else data
    except UnicodeError as error:
        at = error.start if isinstance(error, UnicodeDecodeError) else 0
        line = data.count(b"\n", 0, at) + 1
        raise InvalidDocument(
            f"line {line} is not {NAMES.get(encoding, encoding)}; choose another encoding", "encoding"
        ) from None


def _clean(item: T) -> T:
    """A document, without its passages, or a passage, without control characters in its texts."""
    texts = {field.name: value for field in fields(item) if isinstance(value := getattr(item, field.name), str)}
    changed: dict[str, Any] = {name: without_controls(text) for name, text in texts.items() if not text.isprintable()}
    return replace(item, **changed) if changed else item


def _read(data: bytes, kind: str, with_notes: bool, columns: Mapping[str, str] | None) -> Document:
    match kind:
        case "md":
            from manuscript.markdown import read_markdown  # importing its parser takes as long as reading many books

            return read_markdown(data, with_notes)
        case "pdf":
            from manuscript.pdf import read_pdf  # as above

            return read_pdf(data)
        case "epub":
            return read_epub(data, with_notes)
        case "docx":
            return read_docx(data, with_notes)
        case "srt":
            return read_srt(data)
        case "csv":
            return read_csv(data, columns)
    return read_plain(data)


def check_signature(data: bytes, kind: str) -> None:
    """Raises InvalidDocument, with a remedy, for a file that begins like files of another kind."""
    actual_kind = "pdf" if data.startswith(b"%PDF-") else ""
    if data.startswith(_ZIP):
        actual_kind = "epub" if b"META-INF/container.xml" in data else "docx" if b"word/document.xml" in data else ""
    if actual_kind == kind or (kind in ("epub", "docx") and not actual_kind and data.startswith(_ZIP)):
        return
    description = f"{_KINDS[actual_kind]}: rename it to end in .{actual_kind}" if actual_kind else ""
    description = description or next((name for pattern, name in _OTHERS if re.match(pattern, data, re.DOTALL)), "")
    if description:
        raise InvalidDocument(f"this is {description}")
