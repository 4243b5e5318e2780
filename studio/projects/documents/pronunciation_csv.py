"""Reads and writes pronunciation dictionaries as CSV with the columns phrase, said and, optionally, match_case."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from studio.errors import InvalidDocument, InvalidRequest
from studio.library.pronunciations.entries import MAX_ENTRIES, Pronunciation, clean_entry
from studio.projects.documents.table import rows_of

MAX_BYTES = 1024 * 1024
COLUMNS = ("phrase", "said", "match_case")
_YES, _NO = ("yes", "true", "1", "x"), ("no", "false", "0", "")


def read_dictionary(data: bytes) -> list[Pronunciation]:
    """The entries in order; the last one for the same words counts. Raises InvalidDocument with the line."""
    if len(data) > MAX_BYTES:
        raise InvalidDocument(f"the file has {len(data)} bytes; at most {MAX_BYTES} are allowed", "file")
    entries: dict[str, Pronunciation] = {}
    for row, line in rows_of(data, COLUMNS[:2]):
        if any(field.strip() for field in row.values()):
            entry = _entry(row, line)
            entries[entry.key] = entry
    if not entries:
        raise InvalidDocument("the file has no entries", "file")
    if len(entries) > MAX_ENTRIES:
        raise InvalidDocument(f"the file has {len(entries)} entries; at most {MAX_ENTRIES} are allowed", "file")
    return list(entries.values())


def write_dictionary(entries: Iterable[Pronunciation]) -> str:
    """The CSV that `read_dictionary` reads."""
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow(COLUMNS)
    table.writerows((entry.phrase, entry.said, "yes" if entry.match_case else "") for entry in entries)
    return text.getvalue()


def _entry(row: dict[str, str], line: int) -> Pronunciation:
    match_case = row.get("match_case", "").strip().lower()
    if match_case not in (*_YES, *_NO):
        raise InvalidDocument(f"line {line}: match_case must be yes, no or blank, not {match_case[:20]!r}", "file")
    try:
        return clean_entry(Pronunciation(row.get("phrase", ""), row.get("said", ""), match_case in _YES))
    except InvalidRequest as error:
        raise InvalidDocument(f"line {line}: {error}", "file") from None
