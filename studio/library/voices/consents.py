"""Consents: who agreed that a voice is used and when, with an optional recording of the words."""

from __future__ import annotations

import secrets
import time
from typing import Any

from studio.errors import InvalidRequest, NotFound
from studio.library.audit import note
from studio.library.checks import MAX_DESCRIPTION, clean_language, clean_text
from studio.library.database import Store, once_more_with_room
from studio.library.records import Consent, NewConsent
from studio.library.sqlite import Database

MAX_PAGE = 100


class Consents:
    """The consents of a library."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @once_more_with_room
    def create(self, new: NewConsent) -> Consent:
        """Record a consent. Raises InvalidRequest."""
        with self._store.writing() as db:
            return write_consent(db, self._store, new)

    def get(self, consent_id: str) -> Consent:
        """Raises NotFound."""
        with self._store.reading() as db:
            for row in db.table("consents").rows_where("id = ?", [consent_id]):
                return _consent(row)
        raise _unknown(consent_id)

    def page(self, limit: int = 20, after: str | None = None) -> list[Consent]:
        """Consents, newest first; ``after`` is the id of the last one on the previous page. Raises NotFound."""
        with self._store.reading() as db:
            edge = None
            if after is not None:
                edge = db.execute("select n from consents where id = ?", [after]).fetchone()
                if edge is None:
                    raise _unknown(after)
            where, values = ("n < ?", [edge[0]]) if edge else (None, None)
            limited = min(max(limit, 1), MAX_PAGE + 1)
            return [
                _consent(row)
                for row in db.table("consents").rows_where(where, values, order_by="n desc", limit=limited)
            ]

    def rename(self, consent_id: str, name: str) -> Consent:
        """Raises NotFound, InvalidRequest."""
        consent = self.get(consent_id)
        with self._store.writing() as db:
            db.execute("update consents set name = ? where id = ?", [_clean_name(name), consent_id])
            note(db, "consent.rename", consent_id, name=name, before=consent.name)
        return self.get(consent_id)

    def delete(self, consent_id: str) -> None:
        """Withdraw a consent; voices that refer to it lose it. Raises NotFound."""
        consent = self.get(consent_id)
        with self._store.freeing() as db:
            db.execute("update voices set consent_id = null, version = version + 1 where consent_id = ?", [consent_id])
            db.table("consents").delete_where("id = ?", [consent_id])
            note(db, "consent.delete", consent_id, name=consent.name)
        if consent.recording:
            self._store.drop_unreferred([consent.recording])


def write_consent(db: Database, store: Store, new: NewConsent) -> Consent:
    """Record a consent within the caller's write transaction. Raises InvalidRequest."""
    row: dict[str, Any] = {
        "id": f"cons_{secrets.token_hex(12)}",
        "name": _clean_name(new.name),
        "language": clean_language(new.language),
        "statement": clean_text("statement", new.statement, MAX_DESCRIPTION),
        "recording": store.files.put(new.recording) if new.recording else None,
        "media_type": new.media_type,
        "size": len(new.recording or b""),
        "created": new.created or time.time(),
    }
    db.table("consents").insert(row)
    note(db, "consent.create", row["id"], name=row["name"])
    return Consent(**row)


def _clean_name(name: str) -> str:
    name = clean_text("name", name, 200)
    if not name:
        raise InvalidRequest("a consent needs the name of the person who gives it", "name")
    return name


def _consent(row: dict[str, Any]) -> Consent:
    return Consent(**{name: value for name, value in row.items() if name != "n"})


def _unknown(consent_id: str) -> NotFound:
    return NotFound(f"there is no consent {consent_id[:80]!r}", "consent", "consent_not_found")
