"""How words and phrases are said: a dictionary for everybody, one for each voice, and one for each project."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import replace

from studio.errors import InvalidRequest, NotFound
from studio.library.database import Store
from studio.library.projects.row_mapping import AT_REST, recipes_of, settle
from studio.library.pronunciations.entries import (
    MAX_ENTRIES,
    DictionaryScope,
    EntryIndex,
    Pronunciation,
    clean_entry,
    entries_on,
    entry_of,
)
from studio.library.sqlite import Database


class Pronunciations:
    """The dictionaries of a library. Calls block for milliseconds; whoever calls knows who may see a shelf."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def on(self, *shelves: DictionaryScope) -> tuple[Pronunciation, ...]:
        """The entries of these shelves, one after the other, each by its phrase."""
        with self._store.reading() as db:
            return tuple(entry for shelf in shelves for entry in entries_on(db, shelf))

    def where(self, entry_id: str) -> tuple[DictionaryScope, Pronunciation]:
        """An entry and its shelf. Raises NotFound."""
        with self._store.reading() as db:
            return _found(db, entry_id)

    def add(self, shelf: DictionaryScope, entry: Pronunciation) -> Pronunciation:
        """Raises InvalidRequest: it has an entry for these words, is full, or the entry makes no sense."""
        with self._store.writing() as db:
            _check_room(db, shelf, 1)
            kept = _insert(db, shelf, clean_entry(entry))
            _settle(db, shelf, kept)
        return kept

    def change(self, entry_id: str, phrase: str | None, said: str | None, match_case: bool | None) -> Pronunciation:
        """None leaves it as it is. Raises NotFound, InvalidRequest."""
        with self._store.writing() as db:
            shelf, entry = _found(db, entry_id)
            changed = replace(
                entry,
                phrase=entry.phrase if phrase is None else phrase,
                said=entry.said if said is None else said,
                match_case=entry.match_case if match_case is None else match_case,
            )
            db.execute("delete from pronunciations where id = ?", [entry_id])
            kept = _insert(db, shelf, clean_entry(changed))
            _settle(db, shelf, entry, kept)
        return kept

    def delete(self, entry_id: str) -> None:
        """Raises NotFound."""
        with self._store.writing() as db:
            shelf, entry = _found(db, entry_id)
            db.execute("delete from pronunciations where id = ?", [entry_id])
            _settle(db, shelf, entry)

    def merge(self, shelf: DictionaryScope, entries: Sequence[Pronunciation], replacing: bool) -> int:
        """Put many in. An entry for the same words is changed, and keeps its id; ``replacing`` removes all others.

        How many there are now. All or none of it; raises InvalidRequest.
        """
        with self._store.writing() as db:
            present = {entry.key: entry for entry in entries_on(db, shelf)}
            given = {entry.key: entry for entry in map(clean_entry, entries)}
            gone = [present[key] for key in (present if replacing else given.keys() & present.keys())]
            for entry in gone:
                db.execute("delete from pronunciations where id = ?", [entry.id])
            for key, entry in given.items():
                old = present.get(key, entry)
                _insert(db, shelf, replace(entry, id=old.id, created=old.created))
            count = _check_room(db, shelf, 0)
            before = {(entry.phrase, entry.said, entry.match_case): entry for entry in gone}
            after = {(entry.phrase, entry.said, entry.match_case): entry for entry in given.values()}
            _settle(db, shelf, *((before | after)[each] for each in before.keys() ^ after.keys()))
        return count


def _insert(db: Database, shelf: DictionaryScope, entry: Pronunciation) -> Pronunciation:
    kept = replace(entry, id=entry.id or f"pron_{secrets.token_hex(12)}", created=entry.created or time.time())
    row: dict[str, object] = {
        "id": kept.id,
        "scope": shelf.scope,
        "subject": shelf.subject,
        "key": kept.key,
        "phrase": kept.phrase,
    }
    row |= {"said": kept.said, "match_case": int(kept.match_case), "created": kept.created}
    try:
        db.table("pronunciations").insert(row)
    except sqlite3.IntegrityError:
        raise InvalidRequest(f"{kept.phrase!r} has an entry here already: change that one", "phrase") from None
    return kept


def _check_room(db: Database, shelf: DictionaryScope, more: int) -> int:
    query = "select count(*) from pronunciations where scope = ? and subject = ?"
    count = int(db.execute(query, [shelf.scope, shelf.subject]).fetchone()[0])
    if count + more > MAX_ENTRIES:
        raise InvalidRequest(f"a dictionary has at most {MAX_ENTRIES} entries; this one would have more", "phrase")
    return count


def _found(db: Database, entry_id: str) -> tuple[DictionaryScope, Pronunciation]:
    for row in db.table("pronunciations").rows_where("id = ?", [entry_id]):
        return DictionaryScope(row["scope"], row["subject"]), entry_of(row)
    raise NotFound(f"there is no entry {entry_id[:80]!r}", "pronunciation")


def _settle(db: Database, shelf: DictionaryScope, *changed: Pronunciation) -> None:
    """Parts of a project that were spoken with other entries become stale. ``changed``: entries as they were, and as
    they are now."""
    if shelf.scope == "project":
        for row in db.table("projects").rows_where("id = ?", [shelf.subject]):
            settle(db, recipes_of(db, row), f"project_id = ? and {AT_REST}", [row["id"]], EntryIndex(changed))
