"""The table of pronunciations: a global dictionary, one for each voice, and one for each project."""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from manuscript.passages import InvalidDocument
from manuscript.table import NO, YES, rows_of, write_rows
from studio.errors import EditConflict, InvalidRequest, NotFound
from studio.library.checks import check_before, clean_entry
from studio.library.records import MAX_ENTRIES, DictionaryScope, Pronunciation, Scope, entry_of
from studio.library.schema import DICTIONARIES, Database
from studio.library.store import Store, again_if_outdated, check_current
from studio.library.trash import Prepared, Trash, Trashed, now

Check = Callable[[Database, DictionaryScope], None]
"""Raises NotFound or NotAllowed for a dictionary that must not be read, or changed in a transaction that writes."""
Change = tuple[DictionaryScope, list[Pronunciation], list[Pronunciation]]
"""A dictionary, the entries that it loses, and those that it gets; an entry with another text is both."""
Prepare = Callable[
    [Database, DictionaryScope, Sequence[Pronunciation], Sequence[Pronunciation], Prepared], Callable[[Database], None]
]
"""Called with a change before it is made, and returns what is to be done in its transaction afterwards."""
Planned = tuple[Change, list[Pronunciation], Callable[[Database], None]]
"""A change, the entries before it, and what was prepared for both."""
_Replaced = tuple[Pronunciation, Pronunciation | None]
"""A removed entry, and the one that replaced it."""
MAX_DICTIONARY = 1024 * 1024  # bytes of a CSV
_COLUMNS = ("phrase", "said", "match_case")
_NAMED = 5
"""Maximum phrases in the title of entries in the trash."""
_ENTRIES = (
    "select scope, subject, phrase, said, match_case, id, created from pronunciations where {}"
    " order by phrase collate nocase, key"
)


class Pronunciations:
    """The dictionaries of a library. Calls block for milliseconds."""

    def __init__(self, store: Store, trash: Trash, check: Check, prepare: Prepare) -> None:
        """``check`` is called before `show` and each change, ``prepare`` too, in general without the write lock."""
        held = f"({' union all '.join(DICTIONARIES)}) as held on held.scope = kept.scope and held.id = subject"
        listed = (
            "select kept.id, title, coalesce(owner, ''), coalesce(sharing, 'edit'), kept.deleted, count, project,"
            f" kept.rowid from replaced_entries as kept left join {held} where kept.deleted > 0"
            " and (kept.scope = 'global' or (held.id is not null and held.deleted is not 0))"
        )
        self.trashed = Trashed("replaced_entries", listed, _remove, self._put_back, self._prepare_return)
        self._store = store
        self._trash = trash
        self._check = check
        self._prepare = prepare

    def entries(self, *dictionaries: DictionaryScope) -> tuple[Pronunciation, ...]:
        """The entries of these dictionaries, in order, each by phrase. Unchecked: a take needs those of its voice."""
        with self._store.reading() as db:
            return tuple(entries_of(db, *dictionaries))

    def show(self, dictionary: DictionaryScope) -> list[Pronunciation]:
        """The entries of a dictionary, by phrase. Raises NotFound."""
        with self._store.reading() as db:
            self._check(db, dictionary)
            return entries_of(db, dictionary)

    def add(self, dictionary: DictionaryScope, entry: Pronunciation) -> Pronunciation:
        """Add an entry. Raises InvalidRequest if it is invalid, its words have one, or the dictionary is full."""
        new_entry = _complete(entry)
        return self._make(lambda db: (dictionary, [], [new_entry]))[2][0]

    def change(
        self, entry_id: str, changes: Mapping[str, Any], before: Mapping[str, Any]
    ) -> tuple[DictionaryScope, Pronunciation]:
        """Set fields of an entry; returns its dictionary, too. Raises NotFound, InvalidRequest, and EditConflict as
        `check_before` does."""

        def plan(db: Database) -> Change:
            dictionary, [entry] = _entry(db, entry_id)
            new_entry = _complete(replace(entry, **changes))
            check_before(asdict(entry), before, asdict(new_entry))
            return dictionary, [entry], [new_entry]

        dictionary, _, [new_entry] = self._make(plan)
        return dictionary, new_entry

    def delete(self, entry_id: str) -> None:
        """Raises NotFound."""
        self._make(lambda db: (*_entry(db, entry_id), []), keeps=True)

    def merge(self, dictionary: DictionaryScope, entries: Sequence[Pronunciation], replacing: bool) -> int:
        """Add many entries. One for the same words is changed and keeps its id; ``replacing`` removes all others.
        What was changed or removed goes to the trash.

        Returns the new number of entries. All or nothing. Raises InvalidRequest.
        """
        new_entries = {entry.key: entry for entry in map(_complete, entries)}

        def plan(db: Database) -> Change:
            stored = {entry.key: entry for entry in entries_of(db, dictionary)}
            removed = [entry for key, entry in stored.items() if replacing or key in new_entries]
            old = [stored.get(key, entry) for key, entry in new_entries.items()]
            added = zip(new_entries.values(), old, strict=True)
            return dictionary, removed, [replace(new, id=old.id, created=old.created) for new, old in added]

        self._make(plan, keeps=True)
        return len(self.entries(dictionary))

    @again_if_outdated
    def _make(self, plan: Callable[[Database], Change], keeps: bool = False) -> Change:
        """Make a change, which may be worked out several times, and return it. What follows from it for thousands of
        parts is prepared without the write lock, again if somebody else changes the dictionary meanwhile. ``keeps``:
        moves the entries that it changes to the trash."""
        with self._store.reading() as db:
            self._check(db, (change := plan(db))[0])
            planned = self._planned(db, change, {})
        with self._trash.deleting(frees_room=False) if keeps else self._store.writing() as db:
            self._check(db, (change := plan(db))[0])
            self._write(db, change, planned)
            if keeps:
                _keep(db, *change, now())
        return change

    def _planned(self, db: Database, change: Change, prepared: Prepared) -> Planned:
        return change, entries_of(db, change[0]), self._prepare(db, *change, prepared)

    def _write(self, db: Database, change: Change, planned: Planned | None) -> None:
        """Write a change, and what was prepared with it, unless somebody has changed the dictionary since."""
        dictionary, removed, added = change
        if planned is None or planned[:2] != (change, entries_of(db, dictionary)):
            check_current(planned is None)
            planned = self._planned(db, change, {})
        db.conn.executemany("delete from pronunciations where id = ?", [(entry.id,) for entry in removed])
        for entry in added:
            _insert(db, dictionary, entry)
        query = "select count(*) from pronunciations where scope = ? and subject = ?"
        if db.execute(query, [dictionary.scope, dictionary.subject]).fetchone()[0] > MAX_ENTRIES:
            message = f"a dictionary has at most {MAX_ENTRIES} entries; this one would have more"
            raise InvalidRequest(message, "phrase")
        planned[2](db)

    def _prepare_return(self, db: Database, rows: Sequence[dict[str, Any]], prepared: Prepared) -> None:
        for dictionary, given in _given(db, rows).items():
            prepared[_returning, dictionary] = given, (returning := _returning(dictionary, *given))
            prepared[dictionary] = self._planned(db, returning[0], prepared)

    def _put_back(self, db: Database, rows: Sequence[dict[str, Any]], prepared: Prepared) -> None:
        for dictionary, given in _given(db, rows).items():
            before, returning = prepared.get((_returning, dictionary), (None, None))
            change, left = returning if before == given else _returning(dictionary, *given)
            if any(len(pairs) == row["count"] for row, pairs in left):
                raise EditConflict("these words have other entries now; delete those first", "ids")
            self._write(db, change, prepared.get(dictionary))
            for row, pairs in left:
                _keep(db, dictionary, (old for old, _ in pairs), (new for _, new in pairs if new), row["deleted"])
        # After all of them: what stays would get the number of a row that is gone, and be taken for it.
        db.conn.executemany("delete from replaced_entries where id = ?", [(row["id"],) for row in rows])


def _keep(
    db: Database,
    dictionary: DictionaryScope,
    removed: Iterable[Pronunciation],
    added: Iterable[Pronunciation],
    deleted: float,
) -> None:
    """Put removed entries into the trash, each with the one that replaced it; without those that stayed the same."""
    after = {entry.key: entry for entry in added}
    if lost := [(entry, after.get(entry.key)) for entry in removed if after.get(entry.key) != entry]:
        pairs = json.dumps([[asdict(old), new and asdict(new)] for old, new in lost])
        row = asdict(dictionary) | {"id": f"dict_{secrets.token_hex(12)}", "entries": pairs, "deleted": deleted}
        row |= {"title": ", ".join(old.phrase for old, _ in lost[:_NAMED]), "count": len(lost)}
        db.table("replaced_entries").insert(row)


def _given(
    db: Database, rows: Sequence[dict[str, Any]]
) -> dict[DictionaryScope, tuple[list[Pronunciation], list[dict[str, Any]]]]:
    """By dictionary: its entries, and those of the rows that are restored to it."""
    given: dict[DictionaryScope, tuple[list[Pronunciation], list[dict[str, Any]]]] = {}
    for row in rows:
        if (dictionary := DictionaryScope(row["scope"], row["subject"])) not in given:
            given[dictionary] = entries_of(db, dictionary), []
        given[dictionary][1].append(row)
    return given


def _returning(
    dictionary: DictionaryScope, entries: Sequence[Pronunciation], rows: Sequence[dict[str, Any]]
) -> tuple[Change, list[tuple[dict[str, Any], list[_Replaced]]]]:
    """The change that restores removed entries, the last removed first, except those for whose words somebody has made
    others since; and what of each row stays in the trash."""
    before = {entry.key: entry for entry in entries}
    after, left = dict(before), list[tuple[dict[str, Any], list[_Replaced]]]()
    for row in rows:
        taken = {*after, *(entry.id for entry in after.values())}  # an entry may have got other words
        back, stays = dict[str, Pronunciation](), list[_Replaced]()
        for values, replacing in json.loads(row["entries"]):
            old, new = Pronunciation(**values), replacing and Pronunciation(**replacing)
            if after.get(old.key) == new or taken.isdisjoint((old.key, old.id)):
                back[old.key] = old
            else:
                stays.append((old, new))
        after |= back
        left.append((row, stays))
    removed = [entry for key, entry in before.items() if after[key] != entry]
    return (dictionary, removed, [entry for key, entry in after.items() if before.get(key) != entry]), left


def _remove(db: Database, until: float) -> set[str]:
    db.execute("delete from replaced_entries where deleted <= ?", [until])
    return set()


def _complete(entry: Pronunciation) -> Pronunciation:
    """A clean entry with an id. Raises InvalidRequest."""
    new_id, created = entry.id or f"pron_{secrets.token_hex(12)}", entry.created or time.time()
    return replace(clean_entry(entry), id=new_id, created=created)


def _insert(db: Database, dictionary: DictionaryScope, entry: Pronunciation) -> None:
    row = asdict(dictionary) | asdict(entry) | {"key": entry.key, "match_case": int(entry.match_case)}
    try:
        db.table("pronunciations").insert(row)
    except sqlite3.IntegrityError:
        raise InvalidRequest(f"{entry.phrase!r} already has an entry here; change that one", "phrase") from None


def _entry(db: Database, entry_id: str) -> tuple[DictionaryScope, list[Pronunciation]]:
    """An entry, and its dictionary. Raises NotFound."""
    for scope, subject, *fields in db.execute(_ENTRIES.format("id = ?"), [entry_id]):
        return DictionaryScope(scope, subject), [entry_of(*fields)]
    raise NotFound(f"there is no entry {entry_id[:80]!r}", "pronunciation")


def entries_of(db: Database, *dictionaries: DictionaryScope) -> list[Pronunciation]:
    """The entries of these dictionaries, in order, each by phrase. One statement, because every take needs them."""
    positions = {(dictionary.scope, dictionary.subject): at for at, dictionary in enumerate(dictionaries)}
    condition = " or ".join(["scope = ? and subject = ?"] * len(positions)) or "false"
    rows = db.execute(_ENTRIES.format(condition), [value for pair in positions for value in pair]).fetchall()
    rows.sort(key=lambda row: positions[row[:2]])
    return [entry_of(*fields) for _, _, *fields in rows]


def entries_of_all(db: Database, scope: Scope, subjects: Sequence[str]) -> dict[str, list[Pronunciation]]:
    """Like `entries_of`, for many dictionaries at once; empty dictionaries are left out."""
    query = _ENTRIES.format("scope = ? and subject in (select value from json_each(?))")
    dictionaries: dict[str, list[Pronunciation]] = {}
    for _, subject, *fields in db.execute(query, [scope, json.dumps(list(subjects))]):
        dictionaries.setdefault(subject, []).append(entry_of(*fields))
    return dictionaries


def read_dictionary(data: bytes) -> list[Pronunciation]:
    """The entries in order; the last one for the same words counts. Raises InvalidDocument with the line."""
    if len(data) > MAX_DICTIONARY:
        raise InvalidDocument(f"the file has {len(data)} bytes; at most {MAX_DICTIONARY} are allowed")
    entries: dict[str, Pronunciation] = {}
    for row, line in rows_of(data, _COLUMNS[:2]):
        if any(field.strip() for field in row.values()):
            entry = _entry_in(row, line)
            entries[entry.key] = entry
    if not entries:
        raise InvalidDocument("the file has no entries")
    if len(entries) > MAX_ENTRIES:
        raise InvalidDocument(f"the file has {len(entries)} entries; at most {MAX_ENTRIES} are allowed")
    return list(entries.values())


def write_dictionary(entries: Iterable[Pronunciation]) -> str:
    """The CSV that `read_dictionary` reads."""
    rows = ((entry.phrase, entry.said, "yes" if entry.match_case else "") for entry in entries)
    return write_rows([_COLUMNS, *rows])


def _entry_in(row: dict[str, str], line: int) -> Pronunciation:
    match_case = row.get("match_case", "").strip().lower()
    if match_case not in (*YES, *NO, ""):
        raise InvalidDocument(f"line {line}: match_case must be yes, no or blank, not {match_case[:20]!r}")
    try:
        return clean_entry(Pronunciation(row.get("phrase", ""), row.get("said", ""), match_case in YES))
    except InvalidRequest as error:
        raise InvalidDocument(f"line {line}: {error}") from None
