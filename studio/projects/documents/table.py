"""CSV with a heading: text, and if wanted voice, pause and chapter; each row is a part."""

from __future__ import annotations

import csv
import io

from studio.errors import InvalidDocument
from studio.library.projects.records import MAX_PAUSE
from studio.projects.documents.passages import Document, Passage, text_of

_SEPARATORS = ",;\t|"


def read_csv(data: bytes) -> Document:
    """Columns in any order and case; other columns are left alone. Raises InvalidDocument, with the line."""
    text = text_of(data)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator_of(text), strict=True)
    try:
        names = [name.strip().lower() for name in next(rows, [])]
        if "text" not in names:
            raise InvalidDocument("line 1: the first line must name the columns, and one of them must be text", "file")
        passages = [
            passage for row in rows if (passage := _passage(dict(zip(names, row, strict=False)), rows.line_num))
        ]
    except csv.Error as error:
        raise InvalidDocument(f"line {rows.line_num}: {error}", "file") from None
    return Document(tuple(passages), prose=False)


def separator_of(text: str) -> str:
    """What stands between the columns, by the first line."""
    return max(_SEPARATORS, key=text.partition("\n")[0].count)


def _passage(row: dict[str, str], line: int) -> Passage | None:
    """None for a row without text."""
    text = row["text"].strip() if "text" in row else ""
    if not text:
        return None
    told = row.get("pause", "").strip()
    try:
        pause = float(told.replace(",", ".")) if told else None
    except ValueError:
        raise InvalidDocument(f"line {line}: the pause {told[:20]!r} is not a number of seconds", "file") from None
    if pause is not None and not 0 <= pause <= MAX_PAUSE:
        raise InvalidDocument(f"line {line}: a pause must be from 0 to {MAX_PAUSE:g} seconds", "file")
    return Passage(
        text, chapter=row.get("chapter", "").strip()[:200], voice=row.get("voice", "").strip() or None, pause=pause
    )
