"""The table of pronunciations: a global dictionary, one for each voice, and one for each project."""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from studio.errors import InvalidRequest, NotFound
from studio.library.entries import MAX_ENTRIES, DictionaryScope, Pronunciation, Scope, clean_entry, entry_of
from studio.library.schema import Database, select
from studio.library.store import Store

Check = Callable[[Database, DictionaryScope], None]
"""Raises NotFound or NotAllowed for a dictionary that must not be read, or changed in a transaction that writes."""
OnChange = Callable[[Database, DictionaryScope, Sequence[Pronunciation]], None]
"""Receives a dictionary's entries before and after a change."""


class Pronunciations:
    """The dictionaries of a library. Calls block for milliseconds."""

    def __init__(self, store: Store, check: Check, on_change: OnChange) -> None:
        """Within the same transaction, ``check`` is called before `show` and each change, and ``on_change`` with the
        change's entries."""
        self._store = store
        self._check = check
        self._on_change = on_change

    def entries(self, *dictionaries: DictionaryScope) -> tuple[Pronunciation, ...]:
        """The entries of these dictionaries, in order, each by phrase. Unchecked: a take needs those of its voice."""
        with self._store.reading() as db:
            return tuple(entries_of(db, *dictionaries))

    def show(self, dictionary: DictionaryScope) -> list[Pronunciation]:
        """The entries of a dictionary, by phrase. Raises NotFound."""
        with self._store.reading() as db:
            self._check(db, dictionary)
            return entries_of(db, dictionary)

    def find(self, entry_id: str) -> tuple[DictionaryScope, Pronunciation]:
        """An entry and its dictionary. Raises NotFound."""
        with self._store.reading() as db:
            return _entry(db, entry_id)

    def add(self, dictionary: DictionaryScope, entry: Pronunciation) -> Pronunciation:
        """Add an entry. Raises InvalidRequest if these words have one, the dictionary is full, or the entry is
        invalid."""
        with self._store.writing() as db:
            self._check(db, dictionary)
            _check_room(db, dictionary, 1)
            new_entry = _insert(db, dictionary, clean_entry(entry))
            self._on_change(db, dictionary, [new_entry])
        return new_entry

    def change(self, entry_id: str, phrase: str | None, said: str | None, match_case: bool | None) -> Pronunciation:
        """None leaves it as it is. Raises NotFound, InvalidRequest."""
        with self._store.writing() as db:
            dictionary, entry = _entry(db, entry_id)
            self._check(db, dictionary)
            changed = replace(
                entry,
                phrase=entry.phrase if phrase is None else phrase,
                said=entry.said if said is None else said,
                match_case=entry.match_case if match_case is None else match_case,
            )
            db.execute("delete from pronunciations where id = ?", [entry_id])
            new_entry = _insert(db, dictionary, clean_entry(changed))
            self._on_change(db, dictionary, [entry, new_entry])
        return new_entry

    def delete(self, entry_id: str) -> None:
        """Raises NotFound."""
        with self._store.writing() as db:
            dictionary, entry = _entry(db, entry_id)
            self._check(db, dictionary)
            db.execute("delete from pronunciations where id = ?", [entry_id])
            self._on_change(db, dictionary, [entry])

    def merge(self, dictionary: DictionaryScope, entries: Sequence[Pronunciation], replacing: bool) -> int:
        """Add many entries. One for the same words is changed and keeps its id; ``replacing`` removes all others.

        Returns the new number of entries. All or nothing. Raises InvalidRequest.
        """
        with self._store.writing() as db:
            self._check(db, dictionary)
            stored = entries_of(db, dictionary)
            existing = {entry.key: entry for entry in stored}
            new_entries = {entry.key: entry for entry in map(clean_entry, entries)}
            removed = [entry for entry in stored if replacing or entry.key in new_entries]
            for entry in removed:
                db.execute("delete from pronunciations where id = ?", [entry.id])
            for key, entry in new_entries.items():
                original = existing.get(key, entry)
                _insert(db, dictionary, replace(entry, id=original.id, created=original.created))
            count = _check_room(db, dictionary, 0)
            before = {(entry.phrase, entry.said, entry.match_case): entry for entry in removed}
            after = {(entry.phrase, entry.said, entry.match_case): entry for entry in new_entries.values()}
            self._on_change(db, dictionary, [(before | after)[key] for key in before.keys() ^ after.keys()])
        return count


def _insert(db: Database, dictionary: DictionaryScope, entry: Pronunciation) -> Pronunciation:
    new_entry = replace(entry, id=entry.id or f"pron_{secrets.token_hex(12)}", created=entry.created or time.time())
    row: dict[str, object] = {
        "id": new_entry.id,
        "scope": dictionary.scope,
        "subject": dictionary.subject,
        "key": new_entry.key,
        "phrase": new_entry.phrase,
    }
    row |= {"said": new_entry.said, "match_case": int(new_entry.match_case), "created": new_entry.created}
    try:
        db.table("pronunciations").insert(row)
    except sqlite3.IntegrityError:
        raise InvalidRequest(f"{new_entry.phrase!r} already has an entry here; change that one", "phrase") from None
    return new_entry


def _check_room(db: Database, dictionary: DictionaryScope, added: int) -> int:
    query = "select count(*) from pronunciations where scope = ? and subject = ?"
    count = int(db.execute(query, [dictionary.scope, dictionary.subject]).fetchone()[0])
    if count + added > MAX_ENTRIES:
        raise InvalidRequest(f"a dictionary has at most {MAX_ENTRIES} entries; this one would have more", "phrase")
    return count


def _entry(db: Database, entry_id: str) -> tuple[DictionaryScope, Pronunciation]:
    for row in db.table("pronunciations").rows_where("id = ?", [entry_id]):
        return DictionaryScope(row["scope"], row["subject"]), entry_of(row)
    raise NotFound(f"there is no entry {entry_id[:80]!r}", "pronunciation")


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
