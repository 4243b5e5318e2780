"""Migrations of the tables of checked takes; none is ever edited."""

from __future__ import annotations

from studio.library.migrations.schema import MIGRATIONS
from studio.library.sqlite import Database


@MIGRATIONS()
def m028_checked_takes(db: Database) -> None:
    """The transcripts of checked takes of projects' parts, and the doubtful spots; both are deleted with their take.

    Spots of the kind note are written by listeners. first and last are characters of the take's text.
    """
    columns = {"take": int, "version": int, "recogniser": str, "words": int, "wrong": int}
    columns |= {"speech_s": float, "level": float, "pace": float, "checked": float}
    kept = ("version", "recogniser", "words", "wrong", "speech_s", "checked")
    db.table("checked_takes").create(columns, pk="take", not_null=kept)
    columns = {"n": int, "id": str, "take": int, "kind": str, "weight": int, "start": float, "end": float}
    columns |= {"first": int, "last": int, "heard": str, "accepted": int}
    db.table("findings").create(columns, pk="n", not_null=columns.keys() - {"n"}, defaults={"accepted": 0})
    db.table("findings").create_index(["id"], unique=True)
    db.table("findings").create_index(["take"])
    for table in ("checked_takes", "findings"):
        removed = f"delete from {table} where take = old.n"
        db.execute(f"create trigger {table}_removed after delete on takes begin {removed}; end")
