"""Links that open a take or another item to anyone without a key, until they expire or are revoked."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from studio.errors import InvalidRequest, NotFound
from studio.library.store import Store
from studio.library.trash import DAY, now

MAX_SHARES = 20
"""Maximum links per item at a time."""


@dataclass(frozen=True, slots=True)
class Share:
    token: str
    """Anyone with the token may open the item."""
    item_id: str
    created: float
    expires: float
    """Unix time, as created."""


class Shares:
    """The links to items of one kind. Calls block for milliseconds. The caller has checked the owner of the item."""

    def __init__(self, store: Store, table: str = "shares", kind: str = "take") -> None:
        """``kind``: the column of the table with the number of the item, and in the plural the items' table."""
        self._store, self._table, self._kind = store, table, kind
        self._joined = f"from {table} join {kind}s on {kind}s.n = {kind}"

    def add(self, item_id: str, days: int) -> Share:
        """Create a link to an item. Raises NotFound for a missing item, InvalidRequest for too many links."""
        created, kind = now(), self._kind
        share = Share(secrets.token_urlsafe(16), item_id, created, created + days * DAY)
        with self._store.writing() as db:
            db.execute(f"delete from {self._table} where expires <= ?", [created])
            count = f"select count(*) {self._joined} where {kind}s.id = ?"
            if db.execute(count, [item_id]).fetchone()[0] >= MAX_SHARES:
                raise InvalidRequest(f"this {kind} has {MAX_SHARES} links already; revoke one first", f"{kind}_id")
            insert = f"insert into {self._table} (token, {kind}, created, expires) select ?, n, ?, ? from {kind}s"
            values = [share.token, share.created, share.expires, item_id]
            if not db.execute(f"{insert} where id = ?", values).rowcount:
                raise NotFound(f"there is no {kind} {item_id[:80]!r}", f"{kind}_id")
        return share

    def of(self, item_id: str | None = None) -> list[Share]:
        """The links to an item that are still valid, newest first; None: those of all items."""
        query = f"select token, {self._kind}s.id, {self._table}.created, expires {self._joined} where expires > ?1"
        query += f" and (?2 is null or {self._kind}s.id = ?2) order by {self._table}.created desc"
        with self._store.reading() as db:
            return [Share(*row) for row in db.execute(query, [now(), item_id])]

    def remove(self, item_id: str, token: str) -> None:
        """Revoke a link. Raises NotFound."""
        kind = self._kind
        query = f"delete from {self._table} where token = ? and {kind} = (select n from {kind}s where id = ?)"
        with self._store.writing() as db:
            if not db.execute(query, [token, item_id]).rowcount:
                raise NotFound(f"this {kind} has no such link", "token")

    def item_id(self, token: str) -> str:
        """The item that a link opens. Raises NotFound if it has expired, was revoked, or never existed."""
        query = f"select {self._kind}s.id {self._joined} where token = ? and expires > ?"
        with self._store.reading() as db:
            row = db.execute(query, [token, now()]).fetchone()
        if row is None:
            raise NotFound("this link has expired or was revoked", "token")
        return str(row[0])
