"""The table of takes with their audio, codes and word times: stored, searched, starred, deleted, and removed."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

from speechtext.characters import normalize
from speechtext.word_times import Timed
from studio.errors import InvalidRequest, LibraryFull, NotFound
from studio.library.schema import Database, select
from studio.library.store import Store, once_more_with_room
from studio.library.take import TAKE_KINDS, NewTake, SpokenPart, Take, TakeCodes, TakeFilter, TakeKind, TurnTime
from studio.library.trash import REMOVED_AT_ONCE, Trash, Trashed, mark, remove_takes

log = logging.getLogger(__name__)

MOST_AT_ONCE = 1000
"""Maximum takes deleted by one call."""
MAX_STARRED = 5000
"""Maximum starred takes of an owner, which the retention never removes: some 20 GB at most for takes of usual length,
and more than anybody looks through."""
EVERY = TakeFilter()
_TRIGRAM = 3
_LOOKED_UP = 16
"""Maximum characters of a query that are looked up in the index; the rest is searched in the texts found.
100,000 takes of 20 common words, 2 cores: a query of 120 characters takes 120 ms by index alone, 30 ms this way."""
_PASSING = "starred = 0 and deleted is null and part_id is null"
"""Takes that the retention may remove."""
_OF_KEYS = "(caller between 'key ' and 'key!' or caller between 'owner ' and 'owner!')"
"""Takes of holders of keys, as `ApiKey.owner` names them."""
_KIND = "case when state != 'finished' or audio is null then 2 else live end"
"""A take's index in TAKE_KINDS, as two indexes of the table have it."""
_TIMINGS = {"queue_ms", "first_audio_ms", "generation_s", "audio_s", "turns", "resumed_at", "continues", "made_by"}
_TIMINGS |= {"regenerated_from", "can_continue"}
"""Fields that share one column of JSON, since no search uses them."""
_DEFAULTS = {field.name: field.default for field in fields(Take) if field.name in _TIMINGS}


class Takes:
    """The takes of a library. Only `get`, codes and word times include takes of parts.

    Calls block for milliseconds; any thread and any process may make them.
    """

    readable = "deleted is null and part_id is null"
    """The SQL condition on takes that `get` finds."""

    def __init__(self, store: Store, trash: Trash) -> None:
        self._store = store
        self._trash = trash
        listed = "select id, substr(text, 1, 80) as title, caller as owner, null as sharing, deleted, null as parts,"
        listed += " null as project_id, n as place from takes where deleted > 0"
        trash.kinds["take"] = Trashed("takes", listed, _remove_deleted)

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
        query = f"select * from takes where id = ?1 and (?2 is null or caller = ?2) and {self.readable}"
        with self._store.reading() as db:
            for row in select(db, query, [take_id, caller]):
                return take_of(row)
        raise _unknown(take_id)

    def page(self, filters: TakeFilter = EVERY, limit: int = 50, after: str | None = None) -> list[Take]:
        """Takes, newest first. ``after`` is the id of the last one on the previous page.

        Raises NotFound when ``after`` is gone for good, or another owner's.
        """
        search = _Search(filters)
        with self._store.reading() as db:
            if after is not None:
                query = "select n from takes where id = ?1 and (?2 is null or caller = ?2)"
                row = db.execute(query, [after, filters.caller]).fetchone()
                if row is None:
                    raise NotFound(f"there is no take {after[:80]!r}", "after")
                search.require(f"{search.order} < ?", row[0])
            return [take_of(row) for row in search.rows(db, limit)]

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """Numbers by id, of stored takes, deleted ones too: a newer take has a larger number."""
        with self._store.reading() as db:
            query = "select id, n from takes where id in (select value from json_each(?))"
            return dict(db.execute(query, [json.dumps(list(ids))]).fetchall())

    def star(self, take_id: str, starred: bool, caller: str | None = None) -> Take:
        """Star or unstar a take. Raises NotFound, InvalidRequest if MAX_STARRED takes are starred."""
        condition = "id = ?2 and (?3 is null or caller = ?3) and deleted is null and part_id is null"
        others = "starred = 1 and deleted is null and part_id is null and id != ? and (?2 is null or caller = ?2)"
        with self._store.writing() as db:
            count = f"select count(*) from takes where {others}"
            if starred and db.execute(count, [take_id, caller]).fetchone()[0] >= MAX_STARRED:
                message = f"{MAX_STARRED} takes are starred, which is the limit; unstar or delete one first"
                raise InvalidRequest(message, "starred")
            update = f"update takes set starred = ?1 where {condition}"
            if not db.execute(update, [int(starred), take_id, caller]).rowcount:
                raise _unknown(take_id)
        return self.get(take_id, caller)

    def count(self, filters: TakeFilter) -> int:
        with self._store.reading() as db:
            return _Search(filters).count(db)

    def delete(self, filters: TakeFilter) -> list[str]:
        """Move the newest MOST_AT_ONCE of these to the trash, or fewer if a full disk has no room for so long a log;
        returns their ids."""
        count = MOST_AT_ONCE
        with self._store.reading() as db:  # texts are searched before others would have to wait
            found = replace(filters, ids=tuple(row["id"] for row in _Search(filters).rows(db, count)), query="")
        while True:
            try:
                with self._trash.deleting() as db:
                    ids = [row["id"] for row in _Search(found).rows(db, count)]
                    mark(db, "takes", ids)
                return ids
            except LibraryFull:
                count //= 10
                if not count:
                    raise

    def keep_newest(
        self, count: int, most_bytes: int | None = None, owner: str | None = None, most: int = REMOVED_AT_ONCE
    ) -> int:
        """Remove takes of an owner (None: of all callers without keys together) except starred ones; returns the number
        removed.

        The newest ``count`` of each kind stay, as long as they have at most ``most_bytes`` together; beyond that those
        cut off go first, then live ones, of each kind the oldest. If more than ``most`` are beyond a limit, it must
        have been lowered, perhaps by mistake: they are moved to the trash.
        """
        removed = 0
        for is_by_size in (False, True) if most_bytes is not None else (False,):
            with self._store.reading() as db:
                kept = _Kept(db, owner)
                ends = kept.beyond_size(most_bytes or 0) if is_by_size else kept.beyond_count(count)
                ids = [name for kind, end in ends.items() for name in kept.ids(kind, end)]
            if len(ids) > most:
                log.warning("%d takes are beyond STUDIO_KEEP_TAKES=%d now: they are in the trash", len(ids), count)
                for first in range(0, len(ids), MOST_AT_ONCE):
                    self.delete(TakeFilter(ids=tuple(ids[first : first + MOST_AT_ONCE]), starred=False))
            elif ids:
                with self._store.writing(frees_room=True) as db:
                    rows = remove_takes(db, f"id in (select value from json_each(?)) and {_PASSING}", json.dumps(ids))
                self._store.drop_unreferred({row["audio"] for row in rows if row["audio"]})
                removed += len(rows)
        return removed

    def removed_next(self, count: int, most_bytes: int, owner: str | None = None) -> dict[TakeKind, Take]:
        """By kind: the take that `keep_newest` will remove when one more take of its kind, of the average size, has
        been stored."""
        with self._store.reading() as db:
            kept = _Kept(db, owner)
            kinds = kept.beyond_count(count - 1) | kept.beyond_size(most_bytes, is_average_free=True)
            return {TAKE_KINDS[kind]: kept.oldest(kind) for kind in sorted(kinds)}


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


def _remove_deleted(db: Database, until: float) -> set[str]:
    return {row["audio"] for row in remove_takes(db, "deleted <= ?", until) if row["audio"]}


def _either_form(text: str) -> str:
    """A query for the index, which stores each take's letters and marks as they were sent."""
    forms = dict.fromkeys((text, normalize("NFD", text)))
    return " OR ".join('"' + form.replace('"', '""') + '"' for form in forms)


class _Kept:
    """The takes of an owner (None: of all callers without keys) to which the retention applies, by kind: an index in
    TAKE_KINDS. For one transaction."""

    def __init__(self, db: Database, owner: str | None) -> None:
        self._db, self._where = db, _PASSING
        self._values: list[str] = [] if owner is None else [owner]
        if owner is not None:
            self._where += " and caller = ?"
        elif self._one(f"select 1 from takes where {_PASSING} and {_OF_KEYS}"):  # else an index has all it needs
            self._where += f" and not {_OF_KEYS}"
        self._from = f"from takes where {self._where}"

    def ids(self, kind: int, number: int) -> list[str]:
        """The ids of the takes of a kind with at most this number."""
        query = f"select id from takes where {self._where} and {_KIND} = {kind} and n <= ?"
        return [row[0] for row in self._db.execute(query, [*self._values, number])]

    def beyond_count(self, count: int) -> dict[int, int]:
        """By kind: the number of the newest take beyond the newest ``count``, if there are more."""
        found = {
            kind: self._one(f"select n {self._from} and {_KIND} = {kind} order by n desc limit 1 offset ?", count)
            for kind in range(len(TAKE_KINDS))
        }
        return {kind: row[0] for kind, row in found.items() if row}

    def beyond_size(self, most_bytes: int, is_average_free: bool = False) -> dict[int, int]:
        """By kind: the number of the newest take beyond ``most_bytes`` in the order in which takes are kept.

        ``is_average_free``: as if one more take of the average size were stored.
        """
        count, size = self._one(f"select count(*), coalesce(sum(size), 0) {self._from}")
        most_bytes -= size // max(count, 1) if is_average_free else 0
        if size <= most_bytes:
            return {}
        totals = f"select {_KIND} as kind, n, sum(size) over (order by {_KIND}, n desc) as total {self._from}"
        query = f"select kind, max(n) from ({totals}) where total > ? group by kind"
        return dict(self._db.execute(query, [*self._values, most_bytes]).fetchall())

    def oldest(self, kind: int) -> Take:
        """The oldest take of a kind that exists."""
        query = f"select * {self._from} and {_KIND} = {kind} order by n limit 1"
        return take_of(next(select(self._db, query, self._values)))

    def _one(self, query: str, *values: int) -> Any:
        return self._db.execute(query, [*self._values, *values]).fetchone()


def _unknown(take_id: str) -> NotFound:
    why = "one that is not kept (STUDIO_KEEP_TAKES=0, or store: false) is gone once it is sent"
    return NotFound(f"there is no take {take_id[:80]!r}; {why}", "take_id")


def insert_take(db: Database, new_take: NewTake, digest: str | None) -> Take:
    """The take as stored; ``digest``: of its audio file."""
    take = new_take.take if digest is None else replace(new_take.take, audio=digest, size=sum(map(len, new_take.audio)))
    row = asdict(take)
    timings = {name: row.pop(name) for name in _DEFAULTS if row[name] != _DEFAULTS[name]}
    row |= {"audio": take.audio or None, "timings": json.dumps(timings, sort_keys=True)}
    row["parameters"] = json.dumps(take.parameters, sort_keys=True)
    number = db.table("takes").insert({name: row[name] for name in row if name not in _DEFAULTS}).last_rowid
    if new_take.codes is not None:
        db.table("take_codes").insert({"take": number} | _codes_row(new_take.codes))
    if new_take.words is not None:
        db.table("take_times").insert({"take": number, "words": json.dumps(new_take.words)})
    return take


def take_of(row: dict[str, Any]) -> Take:
    """A row of takes as a record; modifies the row instead of copying it, since a project has 100,000 of them."""
    del row["n"]
    timings = {name: value for name, value in json.loads(row.pop("timings")).items() if name in _DEFAULTS}
    if "turns" in timings:
        timings["turns"] = tuple(TurnTime(**turn) for turn in timings["turns"])
    timings.setdefault("audio_s", row["seconds"])
    row["parameters"] = json.loads(row["parameters"])
    row["starred"], row["live"] = bool(row["starred"]), bool(row["live"])
    row["audio"] = row["audio"] or ""
    return Take(**row, **timings)


def codes_of(row: dict[str, Any]) -> TakeCodes:
    """A row of take_codes."""
    flat, offset, parts = np.frombuffer(row["codes"], "<i2").astype(np.int16), 0, []
    for seed, frames, is_whole, *text_and_end in json.loads(row["parts"]):
        size = row["codebooks"] * frames
        codes = flat[offset : offset + size].reshape(row["codebooks"], frames)
        parts.append(SpokenPart(seed, codes, is_whole, *text_and_end))
        offset += size
    return TakeCodes(row["made_by"], tuple(parts))


def _codes_row(codes: TakeCodes) -> dict[str, Any]:
    parts = [[part.seed, part.codes.shape[1], part.is_whole, part.text, part.end] for part in codes.parts]
    return {
        "made_by": codes.made_by,
        "codebooks": codes.parts[0].codes.shape[0],
        "parts": json.dumps(parts),
        "codes": b"".join(np.ascontiguousarray(part.codes, "<i2").tobytes() for part in codes.parts),
    }
