"""Migrations of the rights to voices and projects, and of favourites; none is ever edited."""

from __future__ import annotations

from studio.library.migrations.schema import MIGRATIONS
from studio.library.sqlite import Database


@MIGRATIONS()
def m032_sharing(db: Database) -> None:
    """Owners of voices and consents, blank until a key adopts them, and the rights of all others.

    So far anyone could use and change every voice, but no other owner's project: existing items keep these rights.
    """
    for table in ("voices", "consents"):
        db.table(table).add_column("owner", str, not_null_default="")
    for table in ("voices", "projects"):
        db.table(table).add_column("sharing", str, not_null_default="private")
    db.execute("update voices set sharing = 'edit'")


@MIGRATIONS()
def m034_favourites(db: Database) -> None:
    """Favourite voices by owner. Until now they were everyone's; they go to the owner of the voice."""
    columns = "voice_id text, owner text, primary key (voice_id, owner)"
    db.execute(f"create table favourites ({columns}) without rowid")
    db.execute("insert into favourites select id, owner from voices where favourite")
    db.execute("alter table voices drop column favourite")
    removed = "delete from favourites where voice_id = old.id"
    db.execute(f"create trigger favourites_removed after delete on voices begin {removed}; end")
