"""The table of pronunciations: a global dictionary, one for each voice, and one for each project."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from studio.errors import InvalidRequest, NotFound
from studio.library.pronunciations.entries import (
    MAX_ENTRIES,
    DictionaryScope,
    Pronunciation,
    clean_entry,
    entry_of,
)
from studio.library.pronunciations.entry_rows import entries_of
from studio.library.sqlite import Database
from studio.library.store import Store

Check = Callable[[Database, DictionaryScope], None]
"""Raises NotFound or NotAllowed for a dictionary that must not be changed."""
OnChange = Callable[[Database, DictionaryScope, Sequence[Pronunciation]], None]
"""Receives a dictionary's entries before and after a change."""


class Pronunciations:
    """The dictionaries of a library. Calls block for milliseconds; the caller checks what may be read."""

    def __init__(self, store: Store, check: Check, on_change: OnChange) -> None:
        """Within the same transaction, ``check`` is called before each change, and ``on_change`` with its entries."""
        self._store = store
        self._check = check
        self._on_change = on_change

    def entries(self, *dictionaries: DictionaryScope) -> tuple[Pronunciation, ...]:
        """The entries of these dictionaries, in order, each by phrase."""
        with self._store.reading() as db:
            return tuple(entries_of(db, *dictionaries))

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
            stored = _insert(db, dictionary, clean_entry(entry))
            self._on_change(db, dictionary, [stored])
        return stored

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
            stored = _insert(db, dictionary, clean_entry(changed))
            self._on_change(db, dictionary, [entry, stored])
        return stored

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
            present = {entry.key: entry for entry in entries_of(db, dictionary)}
            given = {entry.key: entry for entry in map(clean_entry, entries)}
            gone = [present[key] for key in (present if replacing else given.keys() & present.keys())]
            for entry in gone:
                db.execute("delete from pronunciations where id = ?", [entry.id])
            for key, entry in given.items():
                old = present.get(key, entry)
                _insert(db, dictionary, replace(entry, id=old.id, created=old.created))
            count = _check_room(db, dictionary, 0)
            before = {(entry.phrase, entry.said, entry.match_case): entry for entry in gone}
            after = {(entry.phrase, entry.said, entry.match_case): entry for entry in given.values()}
            self._on_change(db, dictionary, [(before | after)[key] for key in before.keys() ^ after.keys()])
        return count


def _insert(db: Database, dictionary: DictionaryScope, entry: Pronunciation) -> Pronunciation:
    stored = replace(entry, id=entry.id or f"pron_{secrets.token_hex(12)}", created=entry.created or time.time())
    row: dict[str, object] = {
        "id": stored.id,
        "scope": dictionary.scope,
        "subject": dictionary.subject,
        "key": stored.key,
        "phrase": stored.phrase,
    }
    row |= {"said": stored.said, "match_case": int(stored.match_case), "created": stored.created}
    try:
        db.table("pronunciations").insert(row)
    except sqlite3.IntegrityError:
        raise InvalidRequest(f"{stored.phrase!r} already has an entry here; change that one", "phrase") from None
    return stored


def _check_room(db: Database, dictionary: DictionaryScope, more: int) -> int:
    query = "select count(*) from pronunciations where scope = ? and subject = ?"
    count = int(db.execute(query, [dictionary.scope, dictionary.subject]).fetchone()[0])
    if count + more > MAX_ENTRIES:
        raise InvalidRequest(f"a dictionary has at most {MAX_ENTRIES} entries; this one would have more", "phrase")
    return count


def _entry(db: Database, entry_id: str) -> tuple[DictionaryScope, Pronunciation]:
    for row in db.table("pronunciations").rows_where("id = ?", [entry_id]):
        return DictionaryScope(row["scope"], row["subject"]), entry_of(row)
    raise NotFound(f"there is no entry {entry_id[:80]!r}", "pronunciation")
