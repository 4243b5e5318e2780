"""Takes: what was spoken, by whom and how, with its audio; searched, starred, deleted, brought back, and let go."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from studio.errors import NotFound
from studio.library.database import Store, once_more_with_room
from studio.library.records import SpokenPart, StoredTake, TakeCodes, TakeFilter, WordTime
from studio.library.sqlite import Database, select
from studio.unicode_text import normalize

MAX_PAGE = 500
MOST_AT_ONCE = 1000
"""Takes that one call deletes or brings back at most."""
REMOVED_AT_ONCE = 100
"""Takes that one transaction removes for good: their audio makes room for the next."""
EVERY = TakeFilter()
_TRIGRAM = 3
_LOOKED_UP = 16
"""Characters of a query that the index is asked for; the rest is looked for in the texts that it finds.
100,000 takes of 20 common words, 2 cores: a query of 120 characters takes 120 ms by index alone, 30 ms so."""
_PASSING = "starred = 0 and deleted is null"
"""Takes that the retention may let go."""


@dataclass(frozen=True, slots=True)
class NewTake:
    """A take on its way into the library."""

    take: StoredTake
    audio: Sequence[bytes] = field(default=(), repr=False)
    """Its audio file in pieces; none: it has no sound."""
    codes: TakeCodes | None = field(default=None, repr=False)
    words: Sequence[WordTime] | None = None


class Takes:
    """The history of a library. Calls block for milliseconds; any thread and any process may make them."""

    def __init__(self, store: Store, undo_seconds: float) -> None:
        self._store = store
        self.undo_seconds = undo_seconds

    def add(
        self,
        take: StoredTake,
        audio: bytes | None = None,
        codes: TakeCodes | None = None,
        words: Sequence[WordTime] | None = None,
    ) -> StoredTake:
        """Keep a take, and if there are any its audio file, its codes and when its words are heard; as kept."""
        return self.add_all([NewTake(take, [audio] if audio else [], codes, words)])[0]

    @once_more_with_room
    def add_all(self, takes: Sequence[NewTake]) -> list[StoredTake]:
        """Keep these, in this order, or none of them: one transaction, their audio files written side by side."""
        with self._store.adding([new.audio for new in takes if new.audio]) as (db, digests):
            left = iter(digests)
            return [self._insert(db, new, next(left) if new.audio else None) for new in takes]

    def _insert(self, db: Database, new: NewTake, digest: str | None) -> StoredTake:
        row = asdict(new.take) | {
            "parameters": json.dumps(new.take.parameters, sort_keys=True),
            "timings": json.dumps(new.take.timings, sort_keys=True),
            "starred": int(new.take.starred),
        }
        if digest is not None:
            row |= {"audio": digest, "size": sum(map(len, new.audio))}
        number = db.table("takes").insert(row).last_rowid
        if new.codes is not None:
            db.table("take_codes").insert({"take": number} | _codes_row(new.codes))
        if new.words is not None:
            db.table("take_times").insert({"take": number, "words": json.dumps(new.words)})
        return _take(row)

    def codes(self, take_id: str) -> TakeCodes | None:
        """None when none are kept."""
        query = "select take_codes.* from take_codes join takes on takes.n = take_codes.take where takes.id = ?"
        with self._store.reading() as db:
            row = next(select(db, query, [take_id]), None)
        return None if row is None else _codes(row)

    def word_times(self, take_id: str) -> list[WordTime] | None:
        """As they were kept; None when they were not."""
        query = "select words from take_times join takes on takes.n = take_times.take where takes.id = ?"
        with self._store.reading() as db:
            row = db.execute(query, [take_id]).fetchone()
        return None if row is None else [(text, start, end) for text, start, end in json.loads(row[0])]

    def keep_word_times(self, take_id: str, words: list[WordTime]) -> None:
        """Until the take goes; does nothing where it has gone already."""
        add = "insert or replace into take_times (take, words) select n, ? from takes where id = ?"
        with self._store.writing() as db:
            db.execute(add, [json.dumps(words), take_id])

    def get(self, take_id: str, caller: str | None = None) -> StoredTake:
        """Raises NotFound when there is none of this caller (None: of anybody)."""
        found = self.page(TakeFilter(ids=(take_id,), caller=caller), 1)
        if not found:
            raise _unknown(take_id)
        return found[0]

    def page(
        self, wanted: TakeFilter = EVERY, limit: int = 50, after: str | None = None, before: int | None = None
    ) -> list[StoredTake]:
        """Takes, newest first. ``after`` is the id of the last one of the page before; ``before`` is a number
        that those of the page are smaller than. Raises NotFound when ``after`` is gone for good.
        """
        search = _Search(wanted)
        with self._store.reading() as db:
            if after is not None:
                found = db.execute("select n from takes where id = ?", [after]).fetchone()
                if found is None:
                    raise NotFound(f"there is no take {after[:80]!r}", "after")
                before = found[0]
            if before is not None:
                search.ask(f"{search.order} < ?", before)
            return [_take(row) for row in search.rows(db, min(max(limit, 1), MAX_PAGE))]

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """Of those of the ids that are in the library, deleted ones too: a take's number is larger than older ones'."""
        with self._store.reading() as db:
            query = "select id, n from takes where id in (select value from json_each(?))"
            return dict(db.execute(query, [json.dumps(list(ids))]).fetchall())

    def number_at(self, moments: Sequence[float]) -> list[int]:
        """The number of the newest take that began by each of these times, in Unix time; 0 where there is none."""
        newest = "select n from takes where created <= moment.value order by n desc limit 1"
        query = f"select coalesce(({newest}), 0) from json_each(?) as moment order by moment.key"
        with self._store.reading() as db:
            return [row[0] for row in db.execute(query, [json.dumps(list(moments))]).fetchall()]

    def star(self, take_id: str, starred: bool, caller: str | None = None) -> StoredTake:
        """Star a take, or no longer. Raises NotFound."""
        self.get(take_id, caller)
        with self._store.writing() as db:
            db.execute("update takes set starred = ? where id = ?", [int(starred), take_id])
        return self.get(take_id, caller)

    def count(self, wanted: TakeFilter) -> int:
        with self._store.reading() as db:
            return _Search(wanted).count(db)

    def delete(self, wanted: TakeFilter) -> list[str]:
        """Take the newest MOST_AT_ONCE of these away; for `undo_seconds` `restore` brings them back. Their ids."""
        self.purge()
        with self._store.freeing() as db:
            ids = [row["id"] for row in _Search(wanted).rows(db, MOST_AT_ONCE)]
            _mark(db, ids, time.time())
        return ids

    def restore(self, ids: list[str], caller: str | None = None) -> list[str]:
        """Undo deletions; the ids of those for which it was not too late."""
        with self._store.writing() as db:
            search = _Search(TakeFilter(ids=tuple(ids), caller=caller), "deleted > ?", self._undo_until())
            found = [row["id"] for row in search.rows(db, MOST_AT_ONCE)]
            _mark(db, found, None)
        return found

    def purge(self, everything: bool = False) -> int:
        """Remove for good what was deleted too long ago (or at all), with its audio; how many."""
        until = time.time() + 1 if everything else self._undo_until()
        return self._remove("deleted <= ?", until)

    def keep_newest(self, count: int, most_bytes: int | None = None) -> int:
        """Remove all takes but the starred and the newest ``count``, as many as fit into ``most_bytes``; how many."""
        with self._store.reading() as db:
            edge = db.execute(f"select n from takes where {_PASSING} order by n desc limit 1 offset ?", [count])
            edges = [found[0] for found in edge.fetchall()]
            if most_bytes is not None:
                edges += _beyond(db, most_bytes)
        return self._remove(f"{_PASSING} and n <= ?", max(edges)) if edges else 0

    def _remove(self, where: str, value: float) -> int:
        removed = 0
        while True:
            with self._store.freeing() as db:
                few = f"select n, audio from takes where {where} order by n limit ?"
                gone = list(select(db, few, [value, REMOVED_AT_ONCE]))
                db.table("takes").delete_where(
                    "n in (select value from json_each(?))", [json.dumps([row["n"] for row in gone])]
                )
            if digests := {row["audio"] for row in gone if row["audio"]}:
                self._store.drop_unreferred(digests)
            removed += len(gone)
            if len(gone) < REMOVED_AT_ONCE:
                return removed

    def _undo_until(self) -> float:
        return time.time() - self.undo_seconds


@dataclass(slots=True)
class _Search:
    """A filter as SQL: conditions and their values, joined by and."""

    wanted: TakeFilter
    state: str = "deleted is null"
    value: float | None = None
    where: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        wanted, sought = self.wanted, self._sought
        self.ask(self.state, *([] if self.value is None else [self.value]))
        if self.by_index:  # it walks backwards, so a word in every take costs no more than a rare one
            self.ask("takes_text match ?", _either_form(sought[:_LOOKED_UP]))
        if len(sought) > _LOOKED_UP or (sought and not self.by_index):
            self.ask("holds_query(takes.text)")
        if wanted.voice is not None:
            self.ask("take_voices.name = ?", wanted.voice)
        if wanted.ids is not None:
            self.ask("id in (select value from json_each(?))", json.dumps(wanted.ids))
        for condition, value in (
            ("starred = ?", None if wanted.starred is None else int(wanted.starred)),
            ("created >= ?", wanted.since),
            ("created < ?", wanted.until),
            ("caller = ?", wanted.caller),
        ):
            if value is not None:
                self.ask(condition, value)

    def ask(self, condition: str, *values: Any) -> None:
        self.where.append(condition)
        self.values += values

    @property
    def by_index(self) -> bool:
        return len(self._sought) >= _TRIGRAM

    @property
    def _sought(self) -> str:
        return normalize("NFC", self.wanted.query.strip())

    @property
    def order(self) -> str:
        """The number of a take, in the index that is walked backwards."""
        if self.by_index:
            return "takes_text.rowid"
        return "takes.n" if self.wanted.voice is None else "take_voices.take"

    def rows(self, db: Database, limit: int) -> list[dict[str, Any]]:
        """Newest first."""
        query = f"select takes.* {self._from(db)} order by {self.order} desc limit ?"
        return list(select(db, query, [*self.values, limit]))

    def count(self, db: Database) -> int:
        return int(db.execute(f"select count(*) {self._from(db)}", self.values).fetchone()[0])

    def _from(self, db: Database) -> str:
        sought = self._sought.lower()
        db.register_function(lambda text: sought in normalize("NFC", text).lower(), name="holds_query")
        source = "takes_text join takes on takes.n = takes_text.rowid" if self.by_index else "takes"
        if self.wanted.voice is not None:
            source += " join take_voices on take_voices.take = takes.n"
        return f"from {source} where {' and '.join(self.where)}"


def _either_form(sought: str) -> str:
    """For the index, which has each take's letters and marks as they were sent."""
    forms = dict.fromkeys((sought, normalize("NFD", sought)))
    return " OR ".join('"' + form.replace('"', '""') + '"' for form in forms)


def _mark(db: Database, ids: list[str], deleted: float | None) -> None:
    db.execute("update takes set deleted = ? where id in (select value from json_each(?))", [deleted, json.dumps(ids)])


def _beyond(db: Database, most_bytes: int) -> list[int]:
    """The number of the newest take that has no room any more, if there is one."""
    if (db.execute(f"select sum(size) from takes where {_PASSING}").fetchone()[0] or 0) <= most_bytes:
        return []
    running = f"select n, sum(size) over (order by n desc) as total from takes where {_PASSING}"
    return [db.execute(f"select max(n) from ({running}) where total > ?", [most_bytes]).fetchone()[0]]


def _unknown(take_id: str) -> NotFound:
    return NotFound(f"there is no take {take_id[:80]!r}", "take_id")


def _codes_row(codes: TakeCodes) -> dict[str, Any]:
    return {
        "made_by": codes.made_by,
        "codebooks": codes.parts[0].codes.shape[0],
        "parts": json.dumps([[p.seed, p.codes.shape[1], p.is_whole, p.text, p.end] for p in codes.parts]),
        "codes": b"".join(np.ascontiguousarray(part.codes, "<i2").tobytes() for part in codes.parts),
    }


def _codes(row: dict[str, Any]) -> TakeCodes:
    flat, at, parts = np.frombuffer(row["codes"], "<i2").astype(np.int16), 0, []
    for seed, frames, is_whole, *said in json.loads(row["parts"]):
        size = row["codebooks"] * frames
        parts.append(SpokenPart(seed, flat[at : at + size].reshape(row["codebooks"], frames), is_whole, *said))
        at += size
    return TakeCodes(row["made_by"], tuple(parts))


def _take(row: dict[str, Any]) -> StoredTake:
    fields = {name: value for name, value in row.items() if name != "n"}
    parsed = {name: json.loads(row[name]) for name in ("parameters", "timings")}
    return StoredTake(**fields | parsed | {"starred": bool(row["starred"])})
