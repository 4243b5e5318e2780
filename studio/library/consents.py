"""Consents to the use of voices, and the audit trail: who did what to voices and consents, in order."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from typing import Any

from studio.errors import InvalidRequest, NotAllowed, NotFound
from studio.library.checks import MAX_DESCRIPTION, clean_language, clean_text, readable
from studio.library.records import AuditEntry, Consent, NewConsent, Scalar
from studio.library.schema import Database
from studio.library.store import Store, once_more_with_room

MAX_PAGE = 100
_OF_VOICES = f"select consent_id from voices where deleted is null and {readable('?2')}"
_READABLE = f"(?2 is null or owner = ?2 or id in ({_OF_VOICES}))"
MAX_ENTRIES = 20_000
"""Then the oldest are removed: some 5 MB, and years of a person's work."""
_KEPT = "event in ('voice.bundled', 'voice.described', 'library.adopt') or event like 'consent.%'"
"""Entries that stay: of consents, and those from which a start knows which voices it has imported."""


class Consents:
    """The consents of a library. ``viewer`` sees its own ones and consents of voices that it may use; None sees all."""

    def __init__(self, store: Store, viewer: str | None = None) -> None:
        self._store = store
        self._viewer = viewer

    @once_more_with_room
    def create(self, consent: NewConsent) -> Consent:
        """Record a consent. Raises InvalidRequest."""
        with self._store.adding(recordings_of(consent)) as (db, digests):
            return write_consent(db, consent, digests, self._viewer)

    def get(self, consent_id: str) -> Consent:
        """Raises NotFound."""
        with self._store.reading() as db:
            return _consent(_row(db, consent_id, self._viewer))

    def page(self, limit: int = 20, after: str | None = None) -> list[Consent]:
        """Consents, newest first; ``after`` is the id of the last one on the previous page. Raises NotFound."""
        with self._store.reading() as db:
            before = 2**62 if after is None else _row(db, after, self._viewer)["n"]
            page_size = min(max(limit, 1), MAX_PAGE + 1)
            where, values = f"n < ?1 and {_READABLE}", [before, self._viewer]
            rows = db.table("consents").rows_where(where, values, order_by="n desc", limit=page_size)
            return [_consent(row) for row in rows]

    def rename(self, consent_id: str, name: str) -> Consent:
        """Raises NotFound, NotAllowed, InvalidRequest."""
        with self._store.writing() as db:
            consent = self._own(db, consent_id)
            db.execute("update consents set name = ? where id = ?", [_clean_name(name), consent_id])
            note(db, "consent.rename", consent_id, name=name, before=consent.name)
        return self.get(consent_id)

    def delete(self, consent_id: str) -> None:
        """Withdraw a consent; voices that refer to it lose it. Raises NotFound, NotAllowed."""
        with self._store.writing(frees_room=True) as db:
            consent = self._own(db, consent_id)
            db.execute("update voices set consent_id = null, version = version + 1 where consent_id = ?", [consent_id])
            db.table("consents").delete_where("id = ?", [consent_id])
            note(db, "consent.delete", consent_id, name=consent.name)
        if consent.recording:
            self._store.drop_unreferred([consent.recording])

    def _own(self, db: Database, consent_id: str) -> Consent:
        row = _row(db, consent_id, self._viewer)
        if self._viewer not in (None, row["owner"]):
            raise NotAllowed("only the key that recorded this consent may change or withdraw it")
        return _consent(row)


def check_consent(db: Database, consent_id: str | None, viewer: str | None) -> None:
    """Raises InvalidRequest for a consent that a voice cannot get."""
    try:
        if consent_id:
            _row(db, consent_id, viewer)
    except NotFound as error:
        raise InvalidRequest(error.message, error.param, error.code) from None


def recordings_of(consent: NewConsent | None) -> list[list[bytes]]:
    """The files that a consent needs, for `Store.adding`."""
    return [[consent.recording]] if consent and consent.recording else []


def write_consent(db: Database, consent: NewConsent, digests: Sequence[str], owner: str | None) -> Consent:
    """Record a consent within the caller's write transaction, which adds its recording. Raises InvalidRequest.

    ``digests``: of its `recordings_of`.
    """
    row: dict[str, Any] = {
        "id": f"cons_{secrets.token_hex(12)}",
        "name": _clean_name(consent.name),
        "language": clean_language(consent.language),
        "statement": clean_text("statement", consent.statement, MAX_DESCRIPTION),
        "recording": digests[0] if digests else None,
        "media_type": consent.media_type,
        "size": len(consent.recording or b""),
        "created": consent.created or time.time(),
    }
    db.table("consents").insert(row | {"owner": owner or ""})
    note(db, "consent.create", row["id"], name=row["name"])
    return Consent(**row)


def _clean_name(name: str) -> str:
    name = clean_text("name", name, 200)
    if not name:
        raise InvalidRequest("a consent needs the name of the person who gives it", "name")
    return name


def _consent(row: dict[str, Any]) -> Consent:
    return Consent(**{name: value for name, value in row.items() if name not in ("n", "owner")})


def _row(db: Database, consent_id: str, viewer: str | None) -> dict[str, Any]:
    """Raises NotFound."""
    for row in db.table("consents").rows_where(f"id = ?1 and {_READABLE}", [consent_id, viewer]):
        return row
    raise NotFound(f"there is no consent {consent_id[:80]!r}", "consent", "consent_not_found")


def note(db: Database, event: str, subject: str, **details: Scalar) -> None:
    """Append an entry within the caller's write transaction, so that both are committed or neither is."""
    text = json.dumps(details, sort_keys=True, ensure_ascii=False)
    columns = "insert into audit (at, event, subject, details) values (?, ?, ?, ?)"
    db.execute(columns, [time.time(), event, subject, text])
    db.execute(f"delete from audit where n <= last_insert_rowid() - ? and not ({_KEPT})", [MAX_ENTRIES])


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


def _entry(row: dict[str, Any]) -> AuditEntry:
    return AuditEntry(**{**row, "details": json.loads(row["details"])})
