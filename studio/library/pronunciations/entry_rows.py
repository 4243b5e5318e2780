"""The entries of dictionaries, read from their table."""

from __future__ import annotations

import json
from collections.abc import Sequence

from studio.library.pronunciations.entries import DictionaryScope, Pronunciation, Scope, entry_of
from studio.library.sqlite import Database, select


def entries_of(db: Database, *dictionaries: DictionaryScope) -> list[Pronunciation]:
    """The entries of these dictionaries, in order, each by phrase. One statement, because every take needs them."""
    condition = " or ".join(["scope = ? and subject = ?"] * len(dictionaries)) or "false"
    query = f"select * from pronunciations where {condition} order by phrase collate nocase, key"
    positions = {dictionary: position for position, dictionary in enumerate(dictionaries)}
    rows = list(
        select(db, query, [value for dictionary in dictionaries for value in (dictionary.scope, dictionary.subject)])
    )
    rows.sort(key=lambda row: positions[DictionaryScope(row["scope"], row["subject"])])
    return [entry_of(row) for row in rows]


def entries_of_all(db: Database, scope: Scope, subjects: Sequence[str]) -> dict[str, list[Pronunciation]]:
    """Like `entries_of`, for many dictionaries at once; empty dictionaries are left out."""
    query = (
        "select * from pronunciations where scope = ? and subject in (select value from json_each(?)) "
        "order by phrase collate nocase, key"
    )
    dictionaries: dict[str, list[Pronunciation]] = {}
    for row in select(db, query, [scope, json.dumps(list(subjects))]):
        dictionaries.setdefault(row["subject"], []).append(entry_of(row))
    return dictionaries
