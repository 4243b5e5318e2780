"""The entries of dictionaries, read from their table."""

from __future__ import annotations

import json
from collections.abc import Sequence

from studio.library.pronunciations.entries import DictionaryScope, Pronunciation, Scope, entry_of
from studio.library.sqlite import Database, select


def entries_of(db: Database, dictionary: DictionaryScope) -> list[Pronunciation]:
    query = "select * from pronunciations where scope = ? and subject = ? order by phrase collate nocase, key"
    return [entry_of(row) for row in select(db, query, [dictionary.scope, dictionary.subject])]


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
