"""The library's tables: a baseline, then migrations that are only ever appended; and sqlite-utils without pandas."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def _without_pandas() -> Iterator[None]:
    """sqlite-utils (4.2, ``db.py``) imports pandas if it is installed, for columns of its times, which are not used.

    Without this, the first page and every other process wait 0.3 to 0.9 s for it, and it takes 35 MB.
    """
    is_imported = "pandas" in sys.modules
    if not is_imported:
        sys.modules["pandas"] = None  # type: ignore[assignment]  # so that an import fails
    try:
        yield
    finally:
        if not is_imported:
            del sys.modules["pandas"]


with _without_pandas():
    from sqlite_utils import Database
    from sqlite_utils.migrations import Migrations

# Other packages register their own tables in these five, before a library is opened.
MIGRATIONS = Migrations("studio")
OWN_CONTENT = ["select 1 from voices where bundled = 0", "select 1 from takes", "select 1 from consents"]
OWN_CONTENT += ["select 1 from pronunciations", "select 1 from favourites"]
OWN_CONTENT += ["select 1 from audit where event not in ('voice.bundled', 'voice.described')"]  # bundled voices, edited
"""Queries of what a library has that no new one has."""
AUDIO_OWNERS = [
    "select 'a clip of the voice ' || voices.name from samples join voices on voices.id = voice_id where clip = :d",
    "select 'the sound of the take ' || id from takes where audio = :d and part_id is null",
    "select 'the recording of the consent ' || id from consents where recording = :d",
]
"""Queries of the owner of an audio file, without titles and people's names, which are private."""
VOICE_NAMES = list[str]()
"""Queries of the voices, as `voice`, with which something is yet to be spoken, as a person has named them."""
DICTIONARIES = ["select 'voice' as scope, id, owner, sharing, deleted, null as project from voices"]
"""Queries of what has a dictionary of its own."""
BASELINE = "m035_baseline"
FORMER_MIGRATIONS, LAST_FORMER, FORMER_COMMIT = 33, "m034_favourites", "6db5e448"
"""The migrations that the baseline replaces, the last of them, and the last commit that has them."""


def select(db: Database, sql: str, params: Sequence[Any] | dict[str, Any] = ()) -> Iterator[dict[str, Any]]:
    """The rows of a read-only statement within a transaction.

    ``Database.query`` sets a savepoint for each statement and releases it. Under load that is slow: every statement
    passes the interpreter's lock to another thread.
    """
    cursor = db.execute(sql, params)
    names = [name for name, *_ in cursor.description]
    return (dict(zip(names, row, strict=True)) for row in cursor)


def run_statements(db: Database, path: Path) -> None:
    """Run a file of SQL, whose statements are separated by blank lines."""
    for statement in path.read_text("utf-8").split(";\n\n"):
        db.execute(statement)


@MIGRATIONS()
def m035_baseline(db: Database) -> None:
    """All tables but those of projects, as the former migrations left them."""
    if not db.table("consents").exists():  # else the former migrations have created them
        run_statements(db, Path(__file__).with_name("baseline.sql"))


@MIGRATIONS()
def m040_live_takes(db: Database) -> None:
    """live: whether a take came through a socket or Fish Audio's protocol, which agents use.

    The retention counts the takes of each kind, of one owner or of all, and adds up their sizes after every take.
    """
    db.execute("alter table takes add column live integer not null default 0")
    db.execute("drop index takes_kept")
    passing = "starred = 0 and deleted is null and part_id is null"
    kind = "case when state != 'finished' or audio is null then 2 else live end"
    db.execute(f"create index takes_kept on takes ({kind}, n, size) where {passing}")
    db.execute(f"create index takes_kept_of on takes (caller, {kind}, n, size) where {passing}")


@MIGRATIONS()
def m041_plain_audit(db: Database) -> None:
    """The audit trail without hashes, which whoever could change the file could also compute again."""
    for name in ("audit_no_update", "audit_no_delete"):
        db.execute(f"drop trigger {name}")
    db.execute("alter table audit drop column hash")


@MIGRATIONS()
def m042_regenerated_from(db: Database) -> None:
    """timings: the take whose sentences were regenerated has another name."""
    db.execute("""update takes set timings = replace(timings, '"mends": ', '"regenerated_from": ')""")


@MIGRATIONS()
def m050_vectors(db: Database) -> None:
    """vector: what models with a voice encoder need of a cut beside its codes; float32 little-endian."""
    db.execute("alter table codes add column vector blob")


@MIGRATIONS()
def m051_replaced_entries(db: Database) -> None:
    """Entries of dictionaries in the trash; entries: pairs of an entry and the one that replaced it, or null."""
    columns = "id text primary key, scope text, subject text, title text, count integer, entries text, deleted real"
    db.execute(f"create table replaced_entries ({columns})")


@MIGRATIONS()
def m052_takes_in_trash(db: Database) -> None:
    """Deleted takes in the order of the trash, with their owner, so that the takes of others are not read."""
    db.execute("drop index takes_deleted")
    db.execute("create index takes_deleted on takes (deleted, id, caller) where deleted is not null")
