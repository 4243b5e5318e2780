"""Recognises, by their first bytes, files that are not of the kind that their sender claims."""

from __future__ import annotations

import re

from studio.errors import InvalidDocument

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


def check_signature(data: bytes, kind: str) -> None:
    """Raises InvalidDocument, with a remedy, for a file that begins like files of another kind."""
    actual_kind = _kind_of(data)
    if actual_kind == kind or (kind in ("epub", "docx") and not actual_kind and data.startswith(_ZIP)):
        return
    description = f"{_KINDS[actual_kind]}: rename it to end in .{actual_kind}" if actual_kind else ""
    description = description or next((name for pattern, name in _OTHERS if re.match(pattern, data, re.DOTALL)), "")
    if description:
        raise InvalidDocument(f"this is {description}", "file")


def _kind_of(data: bytes) -> str:
    if data.startswith(b"%PDF-"):
        return "pdf"
    if not data.startswith(_ZIP):
        return ""
    return "epub" if b"META-INF/container.xml" in data else "docx" if b"word/document.xml" in data else ""
