"""Cover pictures of projects, at most one each, with the rights to their project."""

from __future__ import annotations

import time

from studio.audio.cover import Cover
from studio.library.projects.project_records import Project
from studio.library.projects.row_mapping import project_of, row_of
from studio.library.sqlite import Database
from studio.library.store import Store


class Covers:
    """Calls block for milliseconds; ``owner_filter`` is as in Projects."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, project_id: str, owner_filter: str | None) -> Cover | None:
        """The cover; None without one. Raises NotFound."""
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            for row in db.table("covers").rows_where("project_id = ?", [project_id]):
                return Cover(row["image"], row["media_type"])
        return None

    def put(self, project_id: str, owner_filter: str | None, cover: Cover | None) -> Project:
        """Set or replace a project's cover; None removes it. Raises NotFound."""
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            put_cover(db, project_id, cover)
            db.execute("update projects set changed = ? where n = ?", [time.time(), row["n"]])
            return project_of(db, project_id, owner_filter)


def put_cover(db: Database, project_id: str, cover: Cover | None) -> None:
    db.table("covers").delete_where("project_id = ?", [project_id])
    if cover is not None:
        row = {"project_id": project_id, "digest": cover.digest, "media_type": cover.media_type}
        db.table("covers").insert(row | {"image": cover.image})
