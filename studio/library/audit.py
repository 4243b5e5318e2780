"""The audit trail: an append-only table in which every entry's hash covers the previous one."""

from __future__ import annotations

import hashlib
import json
import time
from typing import Any

from studio.errors import StudioError
from studio.library.records import AuditEntry, Scalar
from studio.library.sqlite import Database
from studio.library.store import Store

_GENESIS = "0" * 64


def note(db: Database, event: str, subject: str, **details: Scalar) -> None:
    """Append an entry within the caller's write transaction, so that both are committed or neither is."""
    last = db.execute("select n, hash from audit order by n desc limit 1").fetchone() or (0, _GENESIS)
    number, at, text = last[0] + 1, time.time(), json.dumps(details, sort_keys=True, ensure_ascii=False)
    sealed = _seal(last[1], number, at, event, subject, text)
    db.table("audit").insert(
        {"n": number, "at": at, "event": event, "subject": subject, "details": text, "hash": sealed}
    )


class Audit:
    """Reads the audit trail."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def entries(self, subject: str | None = None, event: str | None = None) -> list[AuditEntry]:
        """All entries, or those about one voice or consent, or of one kind; oldest first."""
        columns = {"subject": subject, "event": event}
        filters = {column: value for column, value in columns.items() if value is not None}
        where = " and ".join(f"{column} = :{column}" for column in filters) or "1"
        with self._store.reading() as db:
            return [_entry(row) for row in db.table("audit").rows_where(where, filters, order_by="n")]

    def verify(self) -> int:
        """Check the hash of every entry and return their number. Raises StudioError naming the first invalid entry."""
        previous, count = _GENESIS, 0
        with self._store.reading() as db:
            for row in db.table("audit").rows_where(order_by="n"):
                count += 1
                sealed = _seal(previous, count, row["at"], row["event"], row["subject"], row["details"])
                if row["n"] != count or row["hash"] != sealed:
                    raise StudioError(f"the audit trail was changed at entry {count}")
                previous = sealed
        return count


def _seal(previous: str, number: int, at: object, event: object, subject: object, details: object) -> str:
    text = json.dumps([previous, number, at, event, subject, details], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _entry(row: dict[str, Any]) -> AuditEntry:
    return AuditEntry(**{**row, "details": json.loads(row["details"])})
