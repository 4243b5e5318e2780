"""Migrations of the tables of projects that came after schema.py; none is ever edited."""

from __future__ import annotations

from studio.library.migrations.schema import MIGRATIONS
from studio.library.sqlite import Database


@MIGRATIONS()
def m021_deleted_projects(db: Database) -> None:
    """The time at which a project was deleted, in Unix time: for a while it can be restored."""
    db.table("projects").add_column("deleted", float)
    db.execute("create index projects_deleted on projects (deleted) where deleted is not null")


@MIGRATIONS()
def m022_leases(db: Database) -> None:
    """The lease of a part being generated: the token of a claim, and its expiry unless renewed, in Unix time."""
    db.table("parts").add_column("lease", str)
    db.table("parts").add_column("leased_until", float)
    db.execute("create index parts_spoken on parts (leased_until) where state = 'speaking'")


@MIGRATIONS()
def m023_sums_of_parts(db: Database) -> None:
    """Sums of a project over its parts, in one index: a poll must not read the texts and takes of all parts."""
    db.execute("alter table parts add column characters integer generated always as (length(text)) virtual")
    for column in ("heard", "work_s"):  # seconds: of the chosen take, and of all work on the part so far
        db.table("parts").add_column(column, float, not_null_default=0.0)
    db.table("parts").add_column("worked", int, not_null_default=0)  # characters that this work was for
    of_chosen = "coalesce((select 1.0 * samples / sample_rate from part_takes where id = parts.chosen), 0.0)"
    taken = "from part_takes where part_id = parts.id"
    work = f"coalesce((select sum(work_s) {taken}), 0.0)"
    db.execute(
        f"update parts set heard = {of_chosen}, work_s = {work}, "
        f"worked = coalesce((select sum(part_takes.characters) {taken}), 0)"
    )
    heard = f"update parts set heard = {of_chosen} where n = new.n"
    db.execute(f"create trigger parts_heard after update of chosen on parts begin {heard}; end")
    db.execute("create index parts_sums on parts (project_id, state, characters, heard, work_s, worked)")
    db.execute("create index parts_timed on parts (project_id) where start is not null")


@MIGRATIONS()
def m024_skipped(db: Database) -> None:
    """The omissions from a project's document: a JSON list of sentences."""
    db.table("projects").add_column("skipped", str, not_null_default="[]")


@MIGRATIONS()
def m026_replaced_texts(db: Database) -> None:
    """Texts that were replaced in a project, and when: several for each project, as part of the trash.

    `parts` is a JSON list of [part, text before, text after], `count` its length.
    """
    columns = {"id": str, "project_id": str, "parts": str, "count": int, "deleted": float}
    db.table("replaced_texts").create(columns, pk="id", not_null=columns)
    db.table("replaced_texts").create_index(["project_id"])
    db.table("replaced_texts").create_index(["deleted"])
    kept = "project_id, parts, json_array_length(parts), cast(strftime('%s', 'now') as real)"
    db.execute(f"insert into replaced_texts select 'repl_' || lower(hex(randomblob(12))), {kept} from replacements")
    db.execute("drop trigger replacements_of_projects")
    db.execute("drop table replacements")
    removed = "delete from replaced_texts where project_id = old.id"
    db.execute(f"create trigger replaced_texts_of_projects after delete on projects begin {removed}; end")
