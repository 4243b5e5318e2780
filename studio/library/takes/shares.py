"""Links that let anyone play a take without a key, until they expire or are revoked."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass

from studio.errors import InvalidRequest, NotFound
from studio.library.store import Store
from studio.library.trash import DAY

MAX_SHARES = 20
"""Maximum links per take at a time."""
_OF_TAKE = "from shares join takes on takes.n = shares.take where takes.id = ? and shares.expires > ?"


@dataclass(frozen=True, slots=True)
class Share:
    token: str
    """Anyone with the token may play the take."""
    take_id: str
    created: float
    expires: float
    """Unix time, as created."""


class Shares:
    """Calls block for milliseconds. The caller has checked the owner of the take."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, take_id: str, days: int) -> Share:
        """Create a link to a take. Raises NotFound for a missing take, InvalidRequest for too many links."""
        now = time.time()
        share = Share(secrets.token_urlsafe(16), take_id, now, now + days * DAY)
        with self._store.writing() as db:
            db.execute("delete from shares where expires <= ?", [now])
            if db.execute(f"select count(*) {_OF_TAKE}", [take_id, now]).fetchone()[0] >= MAX_SHARES:
                raise InvalidRequest(f"this take has {MAX_SHARES} links already; revoke one first", "take_id")
            insert = "insert into shares (token, take, created, expires) select ?, n, ?, ? from takes where id = ?"
            if not db.execute(insert, [share.token, share.created, share.expires, take_id]).rowcount:
                raise NotFound(f"there is no take {take_id[:80]!r}", "take_id")
        return share

    def of(self, take_id: str) -> list[Share]:
        """The links that are still valid, newest first."""
        query = f"select token, takes.id, shares.created, expires {_OF_TAKE} order by shares.created desc"
        with self._store.reading() as db:
            return [Share(*row) for row in db.execute(query, [take_id, time.time()])]

    def remove(self, take_id: str, token: str) -> None:
        """Revoke a link. Raises NotFound."""
        query = "delete from shares where token = ? and take = (select n from takes where id = ?)"
        with self._store.writing() as db:
            if not db.execute(query, [token, take_id]).rowcount:
                raise NotFound("this take has no such link", "token")

    def take_id(self, token: str) -> str:
        """The take that a link opens. Raises NotFound if it has expired, was revoked, or never existed."""
        query = "select takes.id from shares join takes on takes.n = shares.take where token = ? and expires > ?"
        with self._store.reading() as db:
            row = db.execute(query, [token, time.time()]).fetchone()
        if row is None:
            raise NotFound("this link has expired or was revoked", "token")
        return str(row[0])
