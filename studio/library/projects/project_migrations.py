"""Migrations of the tables of projects that came after those in studio/library/schema.py; none is ever edited."""

from __future__ import annotations

from studio.library.schema import MIGRATIONS
from studio.library.sqlite import Database

__all__ = ["MIGRATIONS"]
"""All: those too."""


@MIGRATIONS()
def m021_deleted_projects(db: Database) -> None:
    """When a project was deleted, in Unix time: for a while it can be restored."""
    db.table("projects").add_column("deleted", float)
    db.execute("create index projects_deleted on projects (deleted) where deleted is not null")
