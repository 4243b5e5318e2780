"""Reads CSV with a header: text and, optionally, columns such as voice and chapter; each row is a part."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from studio.errors import InvalidDocument
from studio.library.projects.project_records import MAX_NAME, MAX_PAUSE
from studio.projects.documents.passages import SCENE_PAUSE, Document, Passage, decode_text

_SEPARATORS = ",;\t|"
_SEPARATOR_LINE = re.compile(r"\"?sep=([^\w\s\"]|\t)[^\w\n]*\n", re.IGNORECASE)


def read_csv(data: bytes) -> Document:
    """Columns may be in any order and case; unknown ones are ignored. Raises InvalidDocument with the line.

    A chapter begins at the first row with its title, as many tables repeat the title in each row.
    """
    passages = [passage for row, line in rows_of(data, ("text",)) if (passage := _passage(row, line))]
    title = ""
    for at, passage in enumerate(passages):
        if passage.chapter == title:
            passages[at] = replace(passage, chapter="")
        title = passage.chapter or title
    return Document(tuple(passages), prose=False)


def rows_of(data: bytes, required: Sequence[str]) -> Iterator[tuple[dict[str, str], int]]:
    """Yield each row as a dict by lowercase column name, with the line in which it ends.

    Excel's first line ``sep=;`` is respected. Raises InvalidDocument with the line if the text is not CSV, a column is
    missing, or a row has more fields than there are columns.
    """
    text = decode_text(data)
    skipped = 0
    if match := _SEPARATOR_LINE.match(text):
        separator, skipped = match[1], 1
        text = text[match.end() :]
    else:
        separator = _separator_of(text)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        names = [name.strip().lower() for name in next(rows, [])]
        if not set(required) <= set(names):
            raise InvalidDocument(
                f"line {1 + skipped}: the first line must name the columns, among them {' and '.join(required)}", "file"
            )
        for row in rows:
            line = rows.line_num + skipped
            if any(field.strip() for field in row[len(names) :]):
                raise InvalidDocument(
                    f"line {line}: this row has {len(row)} fields, but there are {len(names)} columns;"
                    f" a field that contains {separator!r} must be in double quotes",
                    "file",
                )
            yield dict(zip(names, row, strict=False)), line
    except csv.Error as error:
        raise InvalidDocument(f"line {rows.line_num + skipped}: {error}", "file") from None


def _separator_of(text: str) -> str:
    """The separator in the first line; if there is only one column, a character that no text contains."""
    first = text.partition("\n")[0]
    separator = max(_SEPARATORS, key=first.count)
    return separator if separator in first else "\x1f"


def _passage(row: dict[str, str], line: int) -> Passage | None:
    """None for a row without text."""
    text = row.get("text", "").strip()
    if not text:
        return None
    pause_text = row.get("pause", "").strip()
    try:
        pause = float(pause_text.replace(",", ".")) if pause_text else None
    except ValueError:
        raise InvalidDocument(
            f"line {line}: the pause {pause_text[:20]!r} is not a number of seconds", "file"
        ) from None
    if pause is not None and not 0 <= pause <= MAX_PAUSE:
        raise InvalidDocument(f"line {line}: a pause must be from 0 to {MAX_PAUSE:g} seconds", "file")
    return Passage(
        text,
        chapter=row.get("chapter", "").strip()[:200],
        voice=row.get("voice", "").strip() or None,
        pause=SCENE_PAUSE if pause is None and row.get("scene", "").strip() == "1" else pause,
        speaker=" ".join(row.get("character", "").split())[:MAX_NAME],
        continues={"1": True, "0": False}.get(row.get("continues", "").strip()),
    )
