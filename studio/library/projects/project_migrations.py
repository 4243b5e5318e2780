"""Migrations of the tables of projects that came after those in studio/library/schema.py; none is ever edited."""

from __future__ import annotations

from studio.library.schema import MIGRATIONS
from studio.library.sqlite import Database

__all__ = ["MIGRATIONS"]
"""All: those too."""


@MIGRATIONS()
def m024_skipped(db: Database) -> None:
    """What of a project's document was left out: a JSON list of sentences."""
    db.table("projects").add_column("skipped", str, not_null_default="[]")
