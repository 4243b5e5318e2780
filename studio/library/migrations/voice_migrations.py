"""Migrations of the tables of voices that came after schema.py; none is ever edited."""

from __future__ import annotations

from studio.library.migrations.schema import MIGRATIONS
from studio.library.sqlite import Database


@MIGRATIONS()
def m024_audit_by_event(db: Database) -> None:
    """Which voices were bundled is looked up at each start, and the trail grows with every edit."""
    db.execute("create index audit_by_event on audit (event, n)")
    db.execute("create index audit_by_subject on audit (subject, n)")
