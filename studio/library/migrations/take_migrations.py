"""Migrations of the table of takes that came after schema.py; none is ever edited."""

from __future__ import annotations

from studio.library.migrations.project_migrations import MIGRATIONS  # so that these come after those
from studio.library.sqlite import Database

_TRIGGERS = ("takes_added", "takes_removed", "take_voices_added", "take_revisions_added")


@MIGRATIONS()
def m025_one_table_of_takes(db: Database) -> None:
    """Takes of a project's parts are rows of takes, by their part_id. No index of the history has them.

    Their text is the one stored with the times of its words, else the part's.
    """
    for column in ("part_id text references parts (id)", "recipe text", "work_s real"):
        db.execute(f"alter table takes add column {column}")
    db.execute("create index takes_of_parts on takes (part_id) where part_id is not null")
    db.execute("create index takes_listed on takes (n) where part_id is null")
    for name, columns, starred in (("kept", "n, size", 0), ("starred", "n", 1)):
        which = f"starred = {starred} and deleted is null and part_id is null"
        db.execute(f"drop index takes_{name}")
        db.execute(f"create index takes_{name} on takes ({columns}) where {which}")
    _leave_parts_out(db)
    _move_part_takes(db)
    heard = "coalesce((select seconds from takes where id = new.chosen), 0.0)"
    db.execute("drop trigger parts_heard")
    db.execute(
        "create trigger parts_heard after update of chosen on parts "
        f"begin update parts set heard = {heard} where n = new.n; end"
    )
    for table in ("part_take_times", "part_takes"):
        db.execute(f"drop table {table}")


def _leave_parts_out(db: Database) -> None:
    """Make the triggers that update the indexes of texts and voices skip takes of parts."""
    for name in _TRIGGERS:
        [sql] = db.execute("select sql from sqlite_master where type = 'trigger' and name = ?", [name]).fetchone()
        before, _, after = sql.partition(" begin ")
        row = "old" if name == "takes_removed" else "new"
        db.execute(f"drop trigger {name}")
        db.execute(f"{before} when {row}.part_id is null begin {after}")


def _move_part_takes(db: Database) -> None:
    size = "44 + 2 * samples"  # of a WAV with 16 bits
    voice_id = "(select id from voices where slug = rtrim(rtrim(t.voice, '0123456789'), '@') and deleted is null)"
    columns = {
        "id": "t.id",
        "created": "t.created",
        "text": "coalesce(part_take_times.text, parts.text)",
        "voice_id": voice_id,
        "voice": "t.voice",
        "seed": "t.seed",
        "parameters": "'{}'",
        "state": "'finished'",
        "finish_reason": "t.finish_reason",
        "timings": "'{}'",
        "frames": "0",
        "seconds": "1.0 * samples / sample_rate",
        "audio": "t.audio",
        "media_type": "'audio/wav'",
        "size": size,
        "caller": "projects.owner",
        "sample_rate": "sample_rate",
        "part_id": "part_id",
        "recipe": "recipe",
        "work_s": "t.work_s",
    }
    db.execute(
        f"insert into takes ({', '.join(columns)}) select {', '.join(columns.values())} from part_takes as t"
        " join parts on parts.id = part_id join projects on projects.id = project_id"
        " left join part_take_times on part_take_times.take = t.id order by t.n"
    )
    db.execute(
        "insert into take_times (take, words) select takes.n, words from part_take_times"
        " join takes on takes.id = part_take_times.take"
    )
