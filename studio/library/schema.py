"""The library's tables: a baseline, then migrations that are only ever appended; and sqlite-utils without pandas."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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


def create_tables(db: Database, first: str, statements: str) -> None:
    """Run statements of SQL, separated by blank lines, unless the table ``first`` exists: then the migrations before
    the baseline have created all of them."""
    if not db.table(first).exists():
        for statement in statements.split(";\n\n"):
            db.execute(statement)


@MIGRATIONS()
def m035_baseline(db: Database) -> None:
    """All tables but those of projects, as the former migrations left them."""
    create_tables(db, "consents", TABLES)


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


TABLES = """
-- The consents to the use of voices. owner: blank until a key adopts the consent.
create table consents (
    n integer primary key,
    id text not null,
    name text not null,
    language text not null,
    statement text,
    recording text,
    media_type text,
    size integer,
    created real not null,
    owner text not null default ''
);

create unique index idx_consents_id on consents (id);

-- A deleted voice that can still be restored keeps its row but not its name. sharing: the right of all others.
create table voices (
    id text primary key,
    slug text not null,
    name text not null,
    folded text not null,
    description text,
    tags text,
    language text,
    bundled integer,
    licence text,
    consent_id text references consents(id),
    defaults text,
    haystack text,
    created real not null,
    changed real,
    revision integer not null,
    version integer not null,
    deleted real,
    gender text not null default '',
    accent text not null default '',
    colour text not null default '',
    owner text not null default '',
    sharing text not null default 'private'
);

create unique index voices_by_name on voices (folded) where deleted is null;

create unique index voices_by_slug on voices (slug) where deleted is null;

create index voices_deleted on voices (deleted) where deleted is not null;

-- A revision, once written, never changes.
create table revisions (
    voice_id text references voices(id),
    number integer,
    created real,
    primary key (voice_id, number)
);

-- All samples of each revision.
create table samples (
    voice_id text references voices(id),
    revision integer,
    position integer,
    id text not null,
    clip text not null,
    media_type text,
    size integer,
    clip_seconds real,
    text text not null,
    speaker integer,
    start real,
    "end" real,
    gain_db real,
    channel integer,
    cut text not null,
    seconds real not null,
    score integer,
    quality text,
    primary key (voice_id, revision, position)
);

create index idx_samples_clip on samples (clip);

create index idx_samples_cut on samples (cut);

-- Codes of a cut (clip, span, gain, channel) by codec: int16 little-endian, codebook by codebook.
create table codes (
    cut text,
    codec text,
    codebooks integer not null,
    frames integer not null,
    codes blob not null,
    created real,
    primary key (cut, codec)
);

-- Takes of the history, and with a part_id those of projects' parts, which no index of the history has. Its reference
-- to parts is only in libraries of earlier versions: without the long form there is no such table.
create table takes (
    n integer primary key,
    id text not null,
    created real not null,
    text text not null,
    voice_id text,
    voice text not null,
    seed integer not null,
    parameters text,
    state text not null,
    finish_reason text,
    error text,
    timings text,
    frames integer,
    seconds real,
    audio text,
    media_type text,
    size integer,
    caller text not null default '',
    starred integer not null default 0,
    deleted real,
    sample_rate integer not null default 0,
    part_id text,
    recipe text,
    work_s real
);

create unique index idx_takes_id on takes (id);

create index idx_takes_audio on takes (audio);

-- The index of trigrams finds any three characters in a row, in every script.
create virtual table takes_text using fts5 (text, content='takes', content_rowid='n', tokenize='trigram');

-- The audit trail: each entry has a hash over itself and the previous one.
create table audit (
    n integer primary key,
    at real not null,
    event text not null,
    subject text not null,
    details text not null,
    hash text not null
);

create trigger audit_no_update before update on audit begin
    select raise(abort, 'audit only grows');
end;

create trigger audit_no_delete before delete on audit begin
    select raise(abort, 'audit only grows');
end;

create index takes_deleted on takes (deleted) where deleted is not null;

-- Names by which a take's voices can be searched: id, slug, slug@revision and id@revision, of a dialogue's cast too.
create table take_voices (
    name text,
    take integer,
    primary key (name, take)
) without rowid;

create index take_voices_by_take on take_voices (take);

create trigger take_voices_removed after delete on takes begin
    delete from take_voices where take = old.n;
end;

-- Codes of takes with audio; parts: each part's seed, frames, whether it is whole, text and end.
-- int16 little-endian, part by part, codebook by codebook.
create table take_codes (
    take integer primary key,
    made_by text not null,
    codebooks integer not null,
    parts text not null,
    codes blob not null
);

create trigger take_codes_removed after delete on takes begin
    delete from take_codes where take = old.n;
end;

-- The times of a take's words, after the first request: a JSON list of [word, start, end], in seconds.
create table take_times (
    take integer primary key,
    words text not null
);

create trigger take_times_removed after delete on takes begin
    delete from take_times where take = old.n;
end;

-- Pronunciations, for everyone, for a voice or for a project. key: a blank first marks phrases whose case counts.
create table pronunciations (
    id text primary key,
    scope text not null,
    subject text not null,
    key text not null,
    phrase text not null,
    said text not null,
    match_case integer not null,
    created real not null
);

create unique index idx_pronunciations_scope_subject_key on pronunciations (scope, subject, key);

create trigger pronunciations_of_voices after delete on voices begin
    delete from pronunciations where scope = 'voice' and subject = old.id;
end;

-- Links with which anyone may play a take until they expire, in Unix time.
create table shares (
    token text primary key,
    take integer not null,
    created real not null,
    expires real not null
);

create index idx_shares_take on shares (take);

create trigger shares_removed after delete on takes begin
    delete from shares where take = old.n;
end;

create index takes_of_parts on takes (part_id) where part_id is not null;

create index takes_listed on takes (n) where part_id is null;

-- The retention counts these rows and adds up their sizes after every take.
create index takes_kept on takes (n, size) where starred = 0 and deleted is null and part_id is null;

create index takes_starred on takes (n) where starred = 1 and deleted is null and part_id is null;

create trigger takes_added after insert on takes when new.part_id is null begin
    insert into takes_text (rowid, text) values (new.n, new.text);
end;

create trigger takes_removed after delete on takes when old.part_id is null begin
    insert into takes_text (takes_text, rowid, text) values ('delete', old.n, old.text);
end;

create trigger take_voices_added after insert on takes when new.part_id is null begin
    insert or ignore into take_voices select name, new.n from (select new.voice_id as name union all select
    new.voice as address union all select json_extract(new.parameters, '$.voice') union all select value from
    json_each(new.parameters, '$.cast') union all select rtrim(rtrim(address, '0123456789'), '@') as slug from
    (select new.voice as address union all select json_extract(new.parameters, '$.voice') union all select value
    from json_each(new.parameters, '$.cast')) union all select id from voices where deleted is null and slug in
    (select rtrim(rtrim(address, '0123456789'), '@') as slug from (select new.voice as address union all select
    json_extract(new.parameters, '$.voice') union all select value from json_each(new.parameters, '$.cast'))))
    where name is not null;
end;

create trigger take_revisions_added after insert on takes when new.part_id is null begin
    insert or ignore into take_voices select id || substr(address, length(rtrim(rtrim(address, '0123456789'),
    '@')) + 1), new.n from (select new.voice as address union all select json_extract(new.parameters, '$.voice')
    union all select value from json_each(new.parameters, '$.cast')) join voices on id = new.voice_id or
    (new.voice_id is null and deleted is null and slug = rtrim(rtrim(address, '0123456789'), '@'));
end;

-- Favourite voices by owner.
create table favourites (
    voice_id text,
    owner text,
    primary key (voice_id, owner)
) without rowid;

create trigger favourites_removed after delete on voices begin
    delete from favourites where voice_id = old.id;
end;

-- Which voices were bundled is looked up at each start, and the trail grows with every edit.
create index audit_by_event on audit (event, n);

create index audit_by_subject on audit (subject, n)
"""
