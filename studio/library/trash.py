"""The trash: deleted takes, voices, projects, parts, characters, replaced texts and entries, until restored or expired.

Its clock is the system's unless that has just jumped: a wrong year must not empty it.
"""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal

from studio.errors import LibraryUnavailable, NotFound
from studio.library.audio_files import EARLIEST
from studio.library.schema import Database, select
from studio.library.store import Store, again_if_outdated

TOLERANCE = 60.0
"""Seconds by which clocks are corrected in ordinary operation."""
DOUBT_SECONDS = 3600.0
"""Seconds after which a jump is believed: by then, the network has corrected a wrong clock."""
DAY = 86_400.0
MAX_PAGE = 500
REMOVED_AT_ONCE = 100
"""Maximum takes or voices that one transaction removes for good; then the next transaction runs."""
_MARKED_AT_ONCE = 1000  # maximum items that one transaction marks for removal

TrashKind = Literal["take", "voice", "project", "part", "replacement", "character", "dictionary"]
Row = dict[str, Any]
Prepared = dict[Any, Any]
"""Results that were worked out before the write lock is taken. All kinds of items share them, because what is restored
first affects the rest: a dictionary's entries, for example, change the recipes of its project."""
PutBack = Callable[[Database, Sequence[Row], Prepared], None]
"""Additional work for restoring these rows, which are still marked as deleted then."""
Remove = Callable[[Database, float], set[str]]
"""Removes a few of the rows deleted until then, and returns the digests of their audio."""


def _ticks() -> float:
    if sys.platform == "linux":  # where `time.monotonic` stops while a computer sleeps, which would look like a jump
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class SteadyClock:
    """Unix time that follows a jump of the system's clock only after DOUBT_SECONDS."""

    def __init__(self, wall: Callable[[], float] = lambda: time.time(), ticks: Callable[[], float] = _ticks) -> None:
        self._wall, self._ticks = wall, ticks
        self._lock = threading.Lock()
        self._last = wall(), ticks()
        """The last believed time, and the ticks then."""
        self._doubt: tuple[float, float] | None = None
        """The ticks when the present jump was first seen, and its seconds."""

    def now(self) -> float:
        """Seconds since 1970."""
        with self._lock:
            wall, ticks = self._wall(), self._ticks()
            expected = self._last[0] + ticks - self._last[1]
            jump = wall - expected
            if self._doubt is None or abs(jump - self._doubt[1]) > TOLERANCE:
                self._doubt = ticks, jump
            has_lasted = wall >= EARLIEST and ticks - self._doubt[0] >= DOUBT_SECONDS
            if abs(jump) > TOLERANCE and expected >= EARLIEST and not has_lasted:
                return expected
            self._last, self._doubt = (wall, ticks), None
            return wall


now = SteadyClock().now
"""The time by one clock for the whole process, since a jump is seen only from before it."""


@dataclass(frozen=True, slots=True)
class Trashed:
    """The items of one kind: rows of a table with a column `deleted`, which is 0 while they are being removed."""

    table: str
    listed: str
    """Selects those that can be restored: id, title, owner, sharing of their project (null: without one), deleted,
    parts, project_id, rowid."""
    remove: Remove
    put_back: PutBack | None = None
    prepare: PutBack | None = None
    """Does the long work of ``put_back`` before the write lock is taken."""
    newest: str = ""
    """Selects the rowids of those that a page may have, for a kind with so many that others are not to be looked at."""


@dataclass(frozen=True, slots=True)
class TrashItem:
    """One item in the trash."""

    kind: TrashKind
    id: str
    title: str
    """For a take or part the beginning of its text, for a replacement the title of the project, for a character the
    name, for a dictionary the first phrases."""
    deleted: float
    """Unix time."""
    parts: int | None
    """For a project its number of parts, for a replacement the number of parts it changed, for a character the number
    of its lines, for a dictionary the number of its entries that were removed."""
    project_id: str | None
    """Project of a part, a replacement or a character."""


class Trash:
    """The trash of a library. Calls block; any thread and any process may make them.

    ``owner_filter`` is the owner of the items, or may edit their project; None: all owners. Only owners can remove
    items for good; those of nobody, which all may restore, the holder of the first key.
    """

    def __init__(self, store: Store, days: float) -> None:
        """``days``: how long items stay in the trash; 0: they are removed as soon as they are deleted."""
        self._store = store
        self.seconds = days * DAY
        self.first_owner = ""
        self.kinds: dict[TrashKind, Trashed] = {}
        """In the order in which they are restored; those that hold others come first."""
        self._began = now(), _ticks()  # since when the clock has not been set
        store.make_room = lambda: self._remove_some(now() + 1)

    def _mine(self, owned: str = "owner = :owner_filter or sharing = 'edit'") -> str:
        """The end of a query of items: ``owned`` ones, by default also those deleted in projects shared for editing."""
        every = " union all ".join(f"select '{kind}' as kind, * from ({of.listed})" for kind, of in self.kinds.items())
        return f"from ({every}) where deleted > :since and (:owner_filter is null or {owned})"

    @property
    def since(self) -> float:
        """Unix time: items deleted later than that can be restored."""
        return now() - self.seconds

    @contextmanager
    def deleting(self, frees_room: bool = True) -> Iterator[Database]:
        """A transaction that marks items as deleted; afterwards removes expired items if possible. ``frees_room``:
        False for changes that store as much, and would use up the disk reserve."""
        with self._store.writing(frees_room) as db:
            yield db
        with suppress(LibraryUnavailable):
            self.expire()

    def page(self, owner_filter: str | None, limit: int = 50, after: str | None = None) -> list[TrashItem]:
        """Items that can be restored, the last deleted first; ``after`` is the id of the last one on the previous page.

        Raises NotFound if ``after`` is not in the trash.
        """
        with suppress(LibraryUnavailable):  # what was deleted by a wrong clock is not too old
            self._set_right()
        values: Row = {"owner_filter": owner_filter, "since": self.since, "after": after or "", "last": math.inf}
        values["limit"] = min(max(limit, 1), MAX_PAGE)
        with self._store.reading() as db:
            if after is not None:
                if not (row := db.execute(f"select deleted {self._mine()} and id = :after", values).fetchone()):
                    raise NotFound(f"{after[:80]!r} is not in the trash; start from the first page", "after")
                [values["last"]] = row
            items = [TrashItem(*row) for pair in self.kinds.items() for row in db.execute(_newest(*pair), values)]
        return sorted(items, key=lambda item: (item.deleted, item.id), reverse=True)[: values["limit"]]

    def restore(
        self, items: Sequence[tuple[TrashKind, str]], owner_filter: str | None, project_id: str | None = None
    ) -> list[tuple[TrashKind, str]]:
        """Restore items in the trash, if ``project_id`` is given only of that project; the newest of a kind first.

        All of them or none. Raises InvalidRequest and NotFound if one of them can no longer be restored.
        """
        values = {"owner_filter": owner_filter, "since": self.since, "project": project_id or ""}

        def found(db: Database, kind: TrashKind) -> list[tuple[int, str, float]]:
            """The rowids, ids and times of these items of a kind."""
            ids = json.dumps([item_id for item_kind, item_id in items if item_kind == kind])
            where = "kind = :kind and id in (select value from json_each(:ids)) and :project in ('', project_id)"
            query = f"select place, id, deleted {self._mine()} and {where} order by deleted desc, place desc"
            return db.execute(query, values | {"kind": kind, "ids": ids}).fetchall() if ids != "[]" else []

        def rows_of(db: Database, kind: TrashKind, deleted: list[tuple[int, str, float]]) -> list[Row]:
            query = f"select items.* from json_each(?) cross join {self.kinds[kind].table} as items"
            numbers = json.dumps([place for place, _, _ in deleted])
            return list(select(db, f"{query} on items.rowid = value order by key", [numbers]))

        @again_if_outdated
        def put_back() -> list[tuple[TrashKind, str]]:
            before, restored = dict[TrashKind, tuple[Any, list[Row]]](), list[tuple[TrashKind, str]]()
            prepared: Prepared = {}
            with self._store.reading() as db:
                for kind, kept in self.kinds.items():
                    if kept.prepare and (deleted := found(db, kind)):
                        before[kind] = deleted, (rows := rows_of(db, kind, deleted))
                        kept.prepare(db, rows, prepared)
            with self._store.writing() as db:
                for kind, kept in self.kinds.items():
                    deleted, (known, rows) = found(db, kind), before.get(kind, ([], []))
                    if deleted and kept.put_back:  # nothing in the trash changes but by leaving it
                        kept.put_back(db, rows if deleted == known else rows_of(db, kind, deleted), prepared)
                    here = "deleted is not null and rowid in (select value from json_each(?))"  # most put back all
                    numbers = json.dumps([place for place, _, _ in deleted])
                    db.execute(f"update {kept.table} set deleted = null where {here}", [numbers])
                    restored += [(kind, item_id) for _, item_id, _ in deleted]
            return restored

        return put_back()

    def restore_one(
        self, kind: TrashKind, item_id: str, owner_filter: str | None, param: str, code: str | None = None
    ) -> None:
        """Restore one item. Raises `restore`'s errors, and NotFound with ``param`` and ``code`` if it is not there."""
        if not self.restore([(kind, item_id)], owner_filter):
            raise NotFound(f"no {kind} with the id {item_id[:80]!r} is in the trash", param, code)

    def empty(self, owner_filter: str | None, kind: TrashKind | None = None, ids: Sequence[str] | None = None) -> int:
        """Remove items in the trash for good, all or those selected; returns their number."""
        condition = "(:kind is null or kind = :kind) and (:ids = 'null' or id in (select value from json_each(:ids)))"
        owned = "owner = :owner_filter or owner = '' and :owner_filter = :first_owner"
        query = f"select kind, place {self._mine(owned)} and {condition} limit {_MARKED_AT_ONCE}"
        values = {"owner_filter": owner_filter, "since": self.since, "kind": kind, "ids": json.dumps(ids)}
        values, count = values | {"first_owner": self.first_owner}, 0
        while True:
            with self.deleting() as db:
                rows = db.execute(query, values).fetchall()
                for name, rowid in rows:
                    db.execute(f"update {self.kinds[name].table} set deleted = 0 where rowid = ?", [rowid])
            count += len(rows)
            if len(rows) < _MARKED_AT_ONCE:
                return count

    def expire(self) -> None:
        """Remove for good everything that has been in the trash for too long. Raises LibraryUnavailable."""
        self._set_right()
        until = self.since
        while self._remove_some(until):
            pass

    def _set_right(self) -> None:
        """Let the days of items begin now that were deleted while the clock was wrong, or before it was set."""
        time, ticks = now(), _ticks()
        wrong = f"(deleted > 0 and deleted < {EARLIEST} or deleted > {time + DAY})"
        began, jump = self._began[0], time - self._began[0] - ticks + self._began[1]
        if abs(jump) > TOLERANCE:
            wrong, self._began = f"({wrong} or deleted between {began} and {time - jump})", (time, ticks)
        tables = {kept.table for kept in self.kinds.values()}
        with self._store.reading() as db:
            found = [table for table in tables if db.execute(f"select 1 from {table} where {wrong} limit 1").fetchone()]
        if found:
            with self._store.writing(frees_room=True) as db:
                for table in found:
                    db.execute(f"update {table} set deleted = ? where {wrong}", [time])

    def _remove_some(self, until: float) -> bool:
        """Remove a few items deleted by then, takes first, with their audio; returns whether there were any."""
        with self._store.reading() as db:
            due = "select exists (select 1 from {} where deleted <= ?)"
            kinds = (kept for kept in self.kinds.values() if db.execute(due.format(kept.table), [until]).fetchone()[0])
            kept = next(kinds, None)
        if kept is None:
            return False
        with self._store.writing(frees_room=True) as db:
            audio = kept.remove(db, until)
        if audio:
            self._store.drop_unreferred(audio)
        return True


def _newest(kind: TrashKind, kept: Trashed) -> str:
    """A query of the items of one kind that a page may have. It follows an index, where there may be many."""
    some = f" and place in ({kept.newest})" if kept.newest else ""
    return (
        f"with items (id, title, owner, sharing, deleted, parts, project_id, place) as ({kept.listed})"
        f" select '{kind}', id, title, deleted, parts, project_id from items"
        " where (:owner_filter is null or owner = :owner_filter or sharing = 'edit')"
        f" and deleted > :since and (deleted, id) < (:last, :after){some} order by deleted desc, id desc limit :limit"
    )


def mark(db: Database, table: str, ids: Sequence[str]) -> None:
    """Move rows of a table to the trash, within `Trash.deleting`."""
    query = f"update {table} set deleted = ? where id in (select value from json_each(?))"
    db.execute(query, [now(), json.dumps(ids)])


def remove_takes(db: Database, where: str, *values: float | str) -> list[Row]:
    """Remove the oldest REMOVED_AT_ONCE takes of a condition for good; returns their numbers and audio."""
    rows = list(select(db, f"select n, audio from takes where {where} order by n limit ?", [*values, REMOVED_AT_ONCE]))
    db.conn.executemany("delete from takes where n = ?", [(row["n"],) for row in rows])
    return rows
