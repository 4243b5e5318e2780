"""The table of takes with their audio: stored, searched, starred, deleted, and removed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from studio.errors import NotFound
from studio.library.sqlite import Database, select
from studio.library.store import Store, once_more_with_room
from studio.library.takes.take import NewTake, Take, TakeCodes, TakeFilter, Timed
from studio.library.takes.take_rows import codes_of, insert_take, take_of
from studio.library.trash import REMOVED_AT_ONCE, Trash, mark, remove_takes
from studio.unicode_text import normalize

MAX_PAGE = 500
MOST_AT_ONCE = 1000
"""Maximum takes deleted by one call."""
EVERY = TakeFilter()
_TRIGRAM = 3
_LOOKED_UP = 16
"""Maximum characters of a query that are looked up in the index; the rest is searched in the texts found.
100,000 takes of 20 common words, 2 cores: a query of 120 characters takes 120 ms by index alone, 30 ms this way."""
_PASSING = "starred = 0 and deleted is null and part_id is null"
"""Takes that the retention may remove."""
_READABLE = (
    "deleted is null and (part_id is null or exists (select 1 from parts join projects on projects.id = project_id"
    " where parts.id = part_id and projects.deleted is null))"
)


class Takes:
    """The takes of a library. Only `get`, codes and word times include takes of projects.

    Calls block for milliseconds; any thread and any process may make them.
    """

    def __init__(self, store: Store, trash: Trash) -> None:
        self._store = store
        self._trash = trash

    def add(
        self,
        take: Take,
        audio: bytes | None = None,
        codes: TakeCodes | None = None,
        words: Sequence[Timed] | None = None,
    ) -> Take:
        """Store a take, with its audio file, codes and word times if any; returns it as stored."""
        return self.add_all([NewTake(take, [audio] if audio else [], codes, words)])[0]

    @once_more_with_room
    def add_all(self, takes: Sequence[NewTake]) -> list[Take]:
        """Store these takes in order, or none of them: one transaction, their audio files written in parallel."""
        with self._store.adding([new_take.audio for new_take in takes if new_take.audio]) as (db, digests):
            remaining = iter(digests)
            return [insert_take(db, new_take, next(remaining) if new_take.audio else None) for new_take in takes]

    def codes(self, take_id: str) -> TakeCodes | None:
        """The codes; None if none are stored."""
        query = "select take_codes.* from take_codes join takes on takes.n = take_codes.take where takes.id = ?"
        with self._store.reading() as db:
            row = next(select(db, query, [take_id]), None)
        return None if row is None else codes_of(row)

    def word_times(self, take_ids: Sequence[str]) -> dict[str, list[Timed]]:
        """Stored word times by take id."""
        query = "select id, words from takes join take_times on take = n where id in (select value from json_each(?))"
        with self._store.reading() as db:
            rows = db.execute(query, [json.dumps(list(take_ids))]).fetchall()
        return {take_id: [Timed(*word) for word in json.loads(words)] for take_id, words in rows}

    def keep_word_times(self, take_id: str, words: list[Timed]) -> None:
        """Store word times; does nothing if the take is gone."""
        query = "insert or replace into take_times (take, words) select n, ? from takes where id = ?"
        with self._store.writing() as db:
            db.execute(query, [json.dumps(words), take_id])

    def get(self, take_id: str, caller: str | None = None) -> Take:
        """A take, also of a project. Raises NotFound if this caller (None: any caller) has no such take."""
        query = f"select * from takes where id = ?1 and (?2 is null or caller = ?2) and {_READABLE}"
        with self._store.reading() as db:
            for row in select(db, query, [take_id, caller]):
                return take_of(row)
        raise _unknown(take_id)

    def page(
        self, filters: TakeFilter = EVERY, limit: int = 50, after: str | None = None, before: int | None = None
    ) -> list[Take]:
        """Takes, newest first. ``after`` is the id of the last one on the previous page; ``before``: only takes with
        smaller numbers. Raises NotFound when ``after`` is gone for good.
        """
        search = _Search(filters)
        with self._store.reading() as db:
            if after is not None:
                row = db.execute("select n from takes where id = ?", [after]).fetchone()
                if row is None:
                    raise NotFound(f"there is no take {after[:80]!r}", "after")
                before = row[0]
            if before is not None:
                search.require(f"{search.order} < ?", before)
            return [take_of(row) for row in search.rows(db, min(max(limit, 1), MAX_PAGE))]

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """Numbers by id, of stored takes, deleted ones too: a newer take has a larger number."""
        with self._store.reading() as db:
            query = "select id, n from takes where id in (select value from json_each(?))"
            return dict(db.execute(query, [json.dumps(list(ids))]).fetchall())

    def number_at(self, times: Sequence[float]) -> list[int]:
        """For each time, in Unix time, the number of the newest take that began by then; 0 if there is none."""
        newest = "select n from takes where part_id is null and created <= moment.value order by n desc limit 1"
        query = f"select coalesce(({newest}), 0) from json_each(?) as moment order by moment.key"
        with self._store.reading() as db:
            return [row[0] for row in db.execute(query, [json.dumps(list(times))]).fetchall()]

    def star(self, take_id: str, starred: bool, caller: str | None = None) -> Take:
        """Star or unstar a take. Raises NotFound."""
        condition = "id = ?2 and (?3 is null or caller = ?3) and deleted is null and part_id is null"
        with self._store.writing() as db:
            if not db.execute(
                f"update takes set starred = ?1 where {condition}", [int(starred), take_id, caller]
            ).rowcount:
                raise _unknown(take_id)
        return self.get(take_id, caller)

    def count(self, filters: TakeFilter) -> int:
        with self._store.reading() as db:
            return _Search(filters).count(db)

    def delete(self, filters: TakeFilter) -> list[str]:
        """Move the newest MOST_AT_ONCE of these to the trash; returns their ids."""
        with self._trash.deleting() as db:
            ids = [row["id"] for row in _Search(filters).rows(db, MOST_AT_ONCE)]
            mark(db, "take", ids)
        return ids

    def keep_newest(self, count: int, most_bytes: int | None = None) -> int:
        """Remove all takes except starred ones and the newest ``count`` within ``most_bytes``; returns the number
        removed."""
        with self._store.reading() as db:
            cursor = db.execute(f"select n from takes where {_PASSING} order by n desc limit 1 offset ?", [count])
            limits = [row[0] for row in cursor.fetchall()]
            if most_bytes is not None:
                limits += _beyond(db, most_bytes)
        return self._remove(f"{_PASSING} and n <= ?", max(limits)) if limits else 0

    def _remove(self, where: str, value: float) -> int:
        removed = 0
        while True:
            with self._store.freeing() as db:
                rows = remove_takes(db, where, value)
            if digests := {row["audio"] for row in rows if row["audio"]}:
                self._store.drop_unreferred(digests)
            removed += len(rows)
            if len(rows) < REMOVED_AT_ONCE:
                return removed


@dataclass(slots=True)
class _Search:
    """A filter as SQL: conditions and their values, joined by and."""

    filters: TakeFilter
    where: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        filters, query = self.filters, self._query
        self.require("deleted is null and part_id is null")
        if self.by_index:  # walks backwards, so that a word in every take is as fast as a rare one
            self.require("takes_text match ?", _either_form(query[:_LOOKED_UP]))
        if len(query) > _LOOKED_UP or (query and not self.by_index):
            self.require("holds_query(takes.text)")
        if filters.voice is not None:
            self.require("take_voices.name = ?", filters.voice)
        if filters.ids is not None:
            self.require("id in (select value from json_each(?))", json.dumps(filters.ids))
        for condition, value in (
            ("starred = ?", None if filters.starred is None else int(filters.starred)),
            ("created >= ?", filters.since),
            ("created < ?", filters.until),
            ("caller = ?", filters.caller),
        ):
            if value is not None:
                self.require(condition, value)

    def require(self, condition: str, *values: Any) -> None:
        self.where.append(condition)
        self.values += values

    @property
    def by_index(self) -> bool:
        return len(self._query) >= _TRIGRAM

    @property
    def _query(self) -> str:
        return normalize("NFC", self.filters.query.strip())

    @property
    def order(self) -> str:
        """The column of a take's number in the index that is walked backwards."""
        if self.by_index:
            return "takes_text.rowid"
        return "takes.n" if self.filters.voice is None else "take_voices.take"

    def rows(self, db: Database, limit: int) -> list[dict[str, Any]]:
        """The matching rows, newest first."""
        query = f"select takes.* {self._from(db)} order by {self.order} desc limit ?"
        return list(select(db, query, [*self.values, limit]))

    def count(self, db: Database) -> int:
        return int(db.execute(f"select count(*) {self._from(db)}", self.values).fetchone()[0])

    def _from(self, db: Database) -> str:
        query = self._query.lower()
        db.register_function(lambda text: query in normalize("NFC", text).lower(), name="holds_query")
        source = "takes_text join takes on takes.n = takes_text.rowid" if self.by_index else "takes"
        if self.filters.voice is not None:
            source += " join take_voices on take_voices.take = takes.n"
        return f"from {source} where {' and '.join(self.where)}"


def _either_form(text: str) -> str:
    """A query for the index, which stores each take's letters and marks as they were sent."""
    forms = dict.fromkeys((text, normalize("NFD", text)))
    return " OR ".join('"' + form.replace('"', '""') + '"' for form in forms)


def _beyond(db: Database, most_bytes: int) -> list[int]:
    """The number of the newest take that exceeds the size limit, if any."""
    if (db.execute(f"select sum(size) from takes where {_PASSING}").fetchone()[0] or 0) <= most_bytes:
        return []
    totals = f"select n, sum(size) over (order by n desc) as total from takes where {_PASSING}"
    return [db.execute(f"select max(n) from ({totals}) where total > ?", [most_bytes]).fetchone()[0]]


def _unknown(take_id: str) -> NotFound:
    return NotFound(f"there is no take {take_id[:80]!r}", "take_id")
