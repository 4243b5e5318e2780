"""Migrations of the tables of casts and parts; none is ever edited."""

from __future__ import annotations

from studio.library.migrations.take_migrations import MIGRATIONS  # so that these come after those
from studio.library.sqlite import Database


@MIGRATIONS()
def m029_cast(db: Database) -> None:
    """The characters of projects; each part's character, with the evidence for it, and its direction.

    `aliases` is a JSON list. A deleted character is part of the trash: `lines` is then a JSON list of the parts that it
    had, and `successor` the character that has them now.
    """
    columns = {"n": int, "id": str, "project_id": str, "name": str, "aliases": str, "gender": str, "voice": str}
    columns |= {"is_narrator": int, "deleted": float, "lines": str, "successor": str}
    needed = ("id", "project_id", "name", "aliases", "gender", "is_narrator")
    db.table("characters").create(columns, pk="n", not_null=needed)
    db.table("characters").create_index(["id"], unique=True)
    db.table("characters").create_index(["project_id"])
    db.execute("create index characters_deleted on characters (deleted) where deleted is not null")
    removed = "delete from characters where project_id = old.id"
    db.execute(f"create trigger characters_of_projects after delete on projects begin {removed}; end")
    parts = db.table("parts")
    for name, kind in {"character": str, "confidence": float, "reason": str}.items():
        parts.add_column(name, kind)
    for name, kind in {"speed": float, "temperature": float, "top_p": float, "top_k": int}.items():
        parts.add_column(name, kind)
    for name in ("confirmed", "scene"):
        parts.add_column(name, int, not_null_default=0)
    db.execute("create index parts_of_characters on parts (character) where character is not null")


@MIGRATIONS()
def m033_paragraphs(db: Database) -> None:
    """The part whose paragraph a part continues; blank: it begins a paragraph; null: unknown, as of all older parts."""
    db.table("parts").add_column("continues", str)
