"""The trash: deleted takes, voices, projects, parts, characters and replaced texts, until restored or expired."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal

from studio.errors import LibraryUnavailable, NotFound
from studio.library.audit import note
from studio.library.sqlite import Database, select
from studio.library.store import Store

DAY = 86_400.0
MAX_PAGE = 500
REMOVED_AT_ONCE = 100
"""Maximum takes or voices that one transaction removes for good; then the next transaction runs."""
_MARKED_AT_ONCE = 1000
_PARTS_AT_ONCE = 1000
_TEXTS_AT_ONCE = 10

BIN = "bin of "
"""Prefix of the kind of a project that holds a deleted part; the id of the project of the part follows."""

TrashKind = Literal["take", "voice", "project", "part", "replacement", "character"]
TABLES: dict[TrashKind, str] = {
    "take": "takes",
    "voice": "voices",
    "project": "projects",
    "part": "projects",
    "replacement": "replaced_texts",
    "character": "characters",
}
"""Tables with a column `deleted`. Projects come before parts, which may belong to them."""
_TRASH = f"""
    select 'take' as kind, id, substr(text, 1, 80) as title, caller as owner, null as sharing, deleted, null as parts,
        null as project_id, n as place from takes where deleted > 0
    union all select 'voice', id, name, owner, null, deleted, null, null, rowid from voices where deleted > 0
    union all select 'project', id, title, owner, null, deleted,
        (select count(*) from parts where project_id = projects.id), null, n from projects
        where deleted > 0 and kind not like '{BIN}%'
    union all select 'part', parts.id, substr(text, 1, 80), owner,
        (select sharing from projects as home where home.id = substr(projects.kind, {len(BIN) + 1})), deleted, null,
        substr(kind, {len(BIN) + 1}), projects.n from projects join parts on project_id = projects.id
        where deleted > 0 and kind like '{BIN}%'
    union all select 'replacement', texts.id, title, owner, sharing, texts.deleted, count, project_id, texts.rowid
        from replaced_texts as texts join projects on projects.id = project_id where texts.deleted > 0
    union all select 'character', gone.id, name, owner, sharing, gone.deleted, json_array_length(lines), project_id,
        gone.n from characters as gone join projects on projects.id = project_id where gone.deleted > 0
"""
_OWN = f"from ({_TRASH}) where deleted > :since and (:owner_filter is null or owner = :owner_filter)"
_MINE = f"{_OWN[:-1]} or sharing = 'edit')"
"""Own items, and items deleted in projects that others share for editing."""

Row = dict[str, Any]
PutBack = Callable[[Database, Sequence[Row]], None]
"""Additional work for restoring these rows, which are still marked as deleted then."""


@dataclass(frozen=True, slots=True)
class TrashItem:
    """One item in the trash."""

    kind: TrashKind
    id: str
    title: str
    """For a take or part the beginning of its text, for a replacement the title of the project, for a character the
    name."""
    deleted: float
    """Unix time."""
    parts: int | None
    """For a project its number of parts, for a replacement the number of parts it changed, for a character the number
    of its lines."""
    project_id: str | None
    """Project of a part, a replacement or a character."""


class Trash:
    """The trash of a library. Calls block; any thread and any process may make them.

    ``owner_filter`` is the owner of the items, or may edit their project; None: all owners. Only owners can remove
    items for good.
    """

    def __init__(self, store: Store, days: float) -> None:
        """``days``: how long items stay in the trash; 0: they are removed as soon as they are deleted."""
        self._store = store
        self.seconds = days * DAY
        self.put_back: dict[TrashKind, PutBack] = {}
        store.make_room = lambda: self._remove_some(time.time() + 1)

    @property
    def since(self) -> float:
        """Unix time: items deleted later than that can be restored."""
        return time.time() - self.seconds

    @contextmanager
    def deleting(self) -> Iterator[Database]:
        """Like `Store.freeing`, for a transaction that marks items as deleted; afterwards removes expired items if
        possible."""
        with self._store.freeing() as db:
            yield db
        with suppress(LibraryUnavailable):
            self.expire()

    def page(self, owner_filter: str | None, limit: int = 50, after: str | None = None) -> list[TrashItem]:
        """Items that can be restored, the last deleted first; ``after`` is the id of the last one on the previous page.

        Raises NotFound if ``after`` is not in the trash.
        """
        values = {
            "owner_filter": owner_filter,
            "since": self.since,
            "after": after,
            "limit": min(max(limit, 1), MAX_PAGE),
        }
        where = ""
        with self._store.reading() as db:
            if after is not None:
                last_row = db.execute(f"select deleted {_MINE} and id = :after", values).fetchone()
                if last_row is None:
                    raise NotFound(f"{after[:80]!r} is not in the trash; start from the first page", "after")
                values["last"] = last_row[0]
                where = "and (deleted < :last or (deleted = :last and id < :after))"
            query = f"select kind, id, title, deleted, parts, project_id {_MINE} {where}"
            rows = db.execute(f"{query} order by deleted desc, id desc limit :limit", values).fetchall()
        return [TrashItem(*row) for row in rows]

    def restore(
        self, items: Sequence[tuple[TrashKind, str]], owner_filter: str | None, project_id: str | None = None
    ) -> list[tuple[TrashKind, str]]:
        """Restore items in the trash, if ``project_id`` is given only of that project; the newest of a kind first.

        All of them or none. Raises NameTaken, InvalidRequest and NotFound if one of them can no longer be restored.
        """
        restored: list[tuple[TrashKind, str]] = []
        with self._store.writing() as db:
            for kind, table in TABLES.items():
                ids = json.dumps([item_id for item_kind, item_id in items if item_kind == kind])
                where = "kind = :kind and id in (select value from json_each(:ids)) and :project in ('', project_id)"
                values = {
                    "owner_filter": owner_filter,
                    "since": self.since,
                    "kind": kind,
                    "ids": ids,
                    "project": project_id or "",
                }
                query = f"select place, id {_MINE} and {where} order by place desc"
                if deleted := db.execute(query, values).fetchall():
                    rowids = [[rowid] for rowid, _ in deleted]
                    rows = [next(select(db, f"select * from {table} where rowid = ?", rowid)) for rowid in rowids]
                    if kind in self.put_back:
                        self.put_back[kind](db, rows)
                    db.conn.executemany(f"update {table} set deleted = null where rowid = ?", rowids)
                    restored += [(kind, item_id) for _, item_id in deleted]
        return restored

    def restore_one(
        self, kind: TrashKind, item_id: str, owner_filter: str | None, param: str, code: str | None = None
    ) -> None:
        """Restore one item. Raises NotFound, with ``param`` and ``code``, if it is not in the trash, and `restore`'s
        errors."""
        if not self.restore([(kind, item_id)], owner_filter):
            raise NotFound(f"no {kind} with the id {item_id[:80]!r} is in the trash", param, code)

    def empty(self, owner_filter: str | None, kind: TrashKind | None = None, ids: Sequence[str] | None = None) -> int:
        """Remove items in the trash for good, all or those selected; returns their number."""
        condition = "(:kind is null or kind = :kind) and (:ids = 'null' or id in (select value from json_each(:ids)))"
        query = f"select kind, place {_OWN} and {condition} limit {_MARKED_AT_ONCE}"
        count = 0
        while True:
            values = {
                "owner_filter": owner_filter,
                "since": self.since,
                "kind": kind,
                "ids": json.dumps(ids),
            }
            with self.deleting() as db:
                rows = db.execute(query, values).fetchall()
                for name, rowid in rows:
                    db.execute(f"update {TABLES[name]} set deleted = 0 where rowid = ?", [rowid])
            count += len(rows)
            if len(rows) < _MARKED_AT_ONCE:
                return count

    def expire(self) -> None:
        """Remove for good everything that has been in the trash for too long. Raises LibraryUnavailable."""
        until = self.since
        while self._remove_some(until):
            pass

    def _remove_some(self, until: float) -> bool:
        """Remove a few items deleted by then, takes first, with their audio; returns whether there were any."""
        with self._store.reading() as db:
            due = "select exists (select 1 from {} where deleted <= ?)"
            table = next((table for table in _REMOVE if db.execute(due.format(table), [until]).fetchone()[0]), None)
        if table is None:
            return False
        with self._store.freeing() as db:
            audio = _REMOVE[table](db, until)
        if audio:
            self._store.drop_unreferred(audio)
        return True


def mark(db: Database, kind: TrashKind, ids: Sequence[str]) -> None:
    """Move items to the trash, within `Trash.deleting`."""
    query = f"update {TABLES[kind]} set deleted = ? where id in (select value from json_each(?))"
    db.execute(query, [time.time(), json.dumps(ids)])


def remove_takes(db: Database, where: str, value: float | str) -> list[Row]:
    """Remove the oldest REMOVED_AT_ONCE takes of a condition for good; returns their numbers and audio."""
    rows = list(select(db, f"select n, audio from takes where {where} order by n limit ?", [value, REMOVED_AT_ONCE]))
    db.conn.executemany("delete from takes where n = ?", [(row["n"],) for row in rows])
    return rows


def _remove_takes(db: Database, until: float) -> set[str]:
    return {row["audio"] for row in remove_takes(db, "deleted <= ?", until) if row["audio"]}


def _remove_projects(db: Database, until: float) -> set[str]:
    """Remove some of the first expired project, or a deleted part's: its takes, then its parts, then the project."""
    for [project_id] in db.execute("select id from projects where deleted <= ? limit 1", [until]).fetchall():
        # Neither the rest of it nor its deleted parts can be restored now.
        db.execute(
            "update projects set deleted = 0 where deleted > 0 and (id = ?1 or kind = ?2 || ?1)", [project_id, BIN]
        )
        condition = "part_id in (select id from parts where project_id = ?)"
        if takes := remove_takes(db, condition, project_id):
            return {take["audio"] for take in takes if take["audio"]}
        query = f"delete from parts where n in (select n from parts where project_id = ? limit {_PARTS_AT_ONCE})"
        if not db.execute(query, [project_id]).rowcount:
            db.execute("delete from projects where id = ?", [project_id])
    return set()


def _remove_voices(db: Database, until: float) -> set[str]:
    clips = set[str]()
    query = f"select id, name from voices where deleted <= ? limit {REMOVED_AT_ONCE}"
    for voice_id, name in db.execute(query, [until]).fetchall():
        clips |= {row[0] for row in db.execute("select clip from samples where voice_id = ?", [voice_id])}
        for table, key in (("samples", "voice_id"), ("revisions", "voice_id"), ("voices", "id")):
            db.execute(f"delete from {table} where {key} = ?", [voice_id])
        note(db, "voice.purge", voice_id, name=name)
    db.execute("delete from codes where cut not in (select cut from samples)")
    return clips


def _remove_texts(db: Database, until: float) -> set[str]:
    query = f"select id from replaced_texts where deleted <= ? limit {_TEXTS_AT_ONCE}"
    db.execute(f"delete from replaced_texts where id in ({query})", [until])
    return set()


def _remove_characters(db: Database, until: float) -> set[str]:
    db.execute("delete from characters where deleted <= ?", [until])
    return set()


_REMOVE: dict[str, Callable[[Database, float], set[str]]] = {
    "takes": _remove_takes,
    "projects": _remove_projects,
    "voices": _remove_voices,
    "replaced_texts": _remove_texts,
    "characters": _remove_characters,
}
"""Functions that remove a few rows of a table for good and return their audio, in the order in which they are used."""
