"""The library's tables, as migrations: a list of small functions that only grows; none is ever edited."""

from __future__ import annotations

from studio.library.sqlite import Database, Migrations

MIGRATIONS = Migrations("studio")


@MIGRATIONS()
def m001_consents(db: Database) -> None:
    """The consents to the use of voices."""
    db.table("consents").create(
        {
            "n": int,
            "id": str,
            "name": str,
            "language": str,
            "statement": str,
            "recording": str,
            "media_type": str,
            "size": int,
            "created": float,
        },
        pk="n",
        not_null=("id", "name", "language", "created"),
    )
    db.table("consents").create_index(["id"], unique=True)


@MIGRATIONS()
def m002_voices(db: Database) -> None:
    """Voices, and the numbers of their revisions."""
    db.table("voices").create(
        {
            "id": str,
            "slug": str,
            "name": str,
            "folded": str,
            "description": str,
            "tags": str,
            "language": str,
            "favourite": int,
            "bundled": int,
            "licence": str,
            "consent_id": str,
            "defaults": str,
            "haystack": str,
            "created": float,
            "changed": float,
            "revision": int,
            "version": int,
            "deleted": float,
        },
        pk="id",
        not_null=("slug", "name", "folded", "created", "revision", "version"),
        foreign_keys=[("consent_id", "consents", "id")],
    )
    # A deleted voice that can still be restored keeps its row but not its name.
    db.execute("create unique index voices_by_name on voices (folded) where deleted is null")
    db.execute("create unique index voices_by_slug on voices (slug) where deleted is null")
    db.execute("create index voices_deleted on voices (deleted) where deleted is not null")
    db.table("revisions").create(
        {"voice_id": str, "number": int, "created": float},
        pk=("voice_id", "number"),
        foreign_keys=[("voice_id", "voices", "id")],
    )


@MIGRATIONS()
def m003_samples(db: Database) -> None:
    """All samples of each revision; a revision, once written, never changes."""
    db.table("samples").create(
        {
            "voice_id": str,
            "revision": int,
            "position": int,
            "id": str,
            "clip": str,
            "media_type": str,
            "size": int,
            "clip_seconds": float,
            "text": str,
            "speaker": int,
            "start": float,
            "end": float,
            "gain_db": float,
            "channel": int,
            "cut": str,
            "seconds": float,
            "score": int,
            "quality": str,
        },
        pk=("voice_id", "revision", "position"),
        not_null=("id", "clip", "text", "cut", "seconds"),
        foreign_keys=[("voice_id", "voices", "id")],
    )
    db.table("samples").create_index(["clip"])
    db.table("samples").create_index(["cut"])


@MIGRATIONS()
def m004_codes(db: Database) -> None:
    """Codes of a cut (clip, span, gain, channel) by codec: int16 little-endian, codebook by codebook."""
    db.table("codes").create(
        {"cut": str, "codec": str, "codebooks": int, "frames": int, "codes": bytes, "created": float},
        pk=("cut", "codec"),
        not_null=("codebooks", "frames", "codes"),
    )


@MIGRATIONS()
def m005_takes(db: Database) -> None:
    """The takes. The index of trigrams finds any three characters in a row, in every script."""
    db.table("takes").create(
        {
            "n": int,
            "id": str,
            "created": float,
            "text": str,
            "voice_id": str,
            "voice": str,
            "seed": int,
            "parameters": str,
            "state": str,
            "finish_reason": str,
            "error": str,
            "timings": str,
            "frames": int,
            "seconds": float,
            "audio": str,
            "media_type": str,
            "size": int,
        },
        pk="n",
        not_null=("id", "created", "text", "voice", "seed", "state"),
    )
    db.table("takes").create_index(["id"], unique=True)
    db.table("takes").create_index(["voice_id", "n"])
    db.table("takes").create_index(["audio"])
    db.execute(
        "create virtual table takes_text using fts5 (text, content='takes', content_rowid='n', tokenize='trigram')"
    )
    added = "insert into takes_text (rowid, text) values (new.n, new.text)"
    removed = "insert into takes_text (takes_text, rowid, text) values ('delete', old.n, old.text)"
    db.execute(f"create trigger takes_added after insert on takes begin {added}; end")
    db.execute(f"create trigger takes_removed after delete on takes begin {removed}; end")


@MIGRATIONS()
def m006_audit(db: Database) -> None:
    """The audit trail: each entry has a hash over itself and the previous one."""
    db.table("audit").create(
        {"n": int, "at": float, "event": str, "subject": str, "details": str, "hash": str},
        pk="n",
        not_null=("at", "event", "subject", "details", "hash"),
    )
    for verb in ("update", "delete"):
        db.execute(
            f"create trigger audit_no_{verb} before {verb} on audit begin select raise(abort, 'audit only grows'); end"
        )


@MIGRATIONS()
def m007_takes_history(db: Database) -> None:
    """Takes belong to a caller, can be starred, and can be restored after their deletion."""
    table = db.table("takes")
    table.add_column("caller", str, not_null_default="")
    table.add_column("starred", int, not_null_default=0)
    table.add_column("deleted", float)
    table.add_column("sample_rate", int, not_null_default=0)
    # The retention counts these rows and adds up their sizes after every take.
    db.execute("create index takes_kept on takes (n, size) where starred = 0 and deleted is null")
    db.execute("create index takes_starred on takes (n) where starred = 1")
    db.execute("create index takes_deleted on takes (deleted) where deleted is not null")


@MIGRATIONS()
def m008_projects(db: Database) -> None:
    """Long texts to be spoken: projects and their parts, in order."""
    db.table("projects").create(
        {
            "n": int,
            "id": str,
            "owner": str,
            "title": str,
            "kind": str,
            "settings": str,
            "paused": int,
            "served": float,
            "created": float,
            "changed": float,
        },
        pk="n",
        not_null=("id", "owner", "title", "settings", "paused", "served", "created", "changed"),
    )
    db.table("projects").create_index(["id"], unique=True)
    db.table("projects").create_index(["owner", "n"])
    db.table("parts").create(
        {
            "n": int,
            "id": str,
            "project_id": str,
            "position": int,
            "chapter": str,
            "text": str,
            "voice": str,
            "pause": float,
            "start": float,
            "end": float,
            "state": str,
            "attempts": int,
            "error": str,
            "chosen": str,
        },
        pk="n",
        not_null=("id", "project_id", "position", "chapter", "text", "state", "attempts"),
        foreign_keys=[("project_id", "projects", "id")],
    )
    db.table("parts").create_index(["id"], unique=True)
    db.table("parts").create_index(["project_id", "position"])
    db.execute("create index parts_queued on parts (project_id, position) where state = 'queued'")


@MIGRATIONS()
def m009_part_takes(db: Database) -> None:
    """The takes of each part."""
    db.table("part_takes").create(
        {
            "n": int,
            "id": str,
            "part_id": str,
            "created": float,
            "recipe": str,
            "voice": str,
            "seed": int,
            "finish_reason": str,
            "audio": str,
            "samples": int,
            "sample_rate": int,
            "characters": int,
            "work_s": float,
        },
        pk="n",
        not_null=("id", "part_id", "created", "recipe", "voice", "seed", "audio", "samples", "sample_rate"),
        foreign_keys=[("part_id", "parts", "id")],
    )
    db.table("part_takes").create_index(["id"], unique=True)
    db.table("part_takes").create_index(["part_id"])
    db.table("part_takes").create_index(["audio"])


@MIGRATIONS()
def m010_take_voices(db: Database) -> None:
    """Names by which a take's voices can be searched: id, slug and slug@revision, of a dialogue's cast too."""
    db.execute("create table take_voices (name text, take integer, primary key (name, take)) without rowid")
    db.execute("create index take_voices_by_take on take_voices (take)")
    addresses = (
        "select new.voice as address union all select json_extract(new.parameters, '$.voice')"
        " union all select value from json_each(new.parameters, '$.cast')"
    )
    slugs = f"select rtrim(rtrim(address, '0123456789'), '@') as slug from ({addresses})"
    names = (
        f"select new.voice_id as name union all {addresses} union all {slugs}"
        f" union all select id from voices where deleted is null and slug in ({slugs})"
    )
    add = f"insert or ignore into take_voices select name, new.n from ({names}) where name is not null"
    db.execute(f"create trigger take_voices_added after insert on takes begin {add}; end")
    db.execute(f"create trigger take_voices_now after update of voice on takes begin {add}; end")
    db.execute("update takes set voice = voice")
    db.execute("drop trigger take_voices_now")
    removed = "delete from take_voices where take = old.n"
    db.execute(f"create trigger take_voices_removed after delete on takes begin {removed}; end")
    db.execute("drop index idx_takes_voice_id_n")  # no query uses it now


@MIGRATIONS()
def m011_codes_of_packs(db: Database) -> None:
    """Deletes codes that came with a pack: only codes computed here are certain to be those of the clip."""
    imported = "select cut from samples where voice_id in (select subject from audit where event = 'voice.import')"
    db.execute(f"delete from codes where cut in ({imported})")


@MIGRATIONS()
def m012_take_codes(db: Database) -> None:
    """Codes of takes cut off by a limit: each part's seed, frames and whether it is whole; int16 little-endian, part by
    part, codebook by codebook."""
    db.table("take_codes").create(
        {"take": int, "made_by": str, "codebooks": int, "parts": str, "codes": bytes},
        pk="take",
        not_null=("made_by", "codebooks", "parts", "codes"),
    )
    removed = "delete from take_codes where take = old.n"
    db.execute(f"create trigger take_codes_removed after delete on takes begin {removed}; end")


@MIGRATIONS()
def m013_take_times(db: Database) -> None:
    """The times of a take's words, after the first request: a JSON list of [word, start, end], in seconds.

    From here on take_codes has the codes of every take with audio, and for each part its text and its end too.
    """
    db.table("take_times").create({"take": int, "words": str}, pk="take", not_null=("words",))
    removed = "delete from take_times where take = old.n"
    db.execute(f"create trigger take_times_removed after delete on takes begin {removed}; end")


@MIGRATIONS()
def m014_covers(db: Database) -> None:
    """Cover pictures of projects, deleted with their project."""
    db.table("covers").create(
        {"project_id": str, "digest": str, "media_type": str, "image": bytes},
        pk="project_id",
        not_null=("digest", "media_type", "image"),
        foreign_keys=[("project_id", "projects", "id")],
    )
    removed = "delete from covers where project_id = old.id"
    db.execute(f"create trigger covers_removed before delete on projects begin {removed}; end")


@MIGRATIONS()
def m015_pronunciations(db: Database) -> None:
    """Pronunciations, for everyone, for a voice or for a project; those of a voice or project are deleted with it."""
    db.table("pronunciations").create(
        {
            "id": str,
            "scope": str,
            "subject": str,
            "key": str,
            "phrase": str,
            "said": str,
            "match_case": int,
            "created": float,
        },
        pk="id",
        not_null=("scope", "subject", "key", "phrase", "said", "match_case", "created"),
    )
    db.table("pronunciations").create_index(["scope", "subject", "key"], unique=True)
    for table, scope in (("voices", "voice"), ("projects", "project")):
        removed = f"delete from pronunciations where scope = '{scope}' and subject = old.id"
        db.execute(f"create trigger pronunciations_of_{table} after delete on {table} begin {removed}; end")


@MIGRATIONS()
def m015_part_take_times(db: Database) -> None:
    """The times of the words of a part's take: its text, and a JSON list of [word, start, end], in seconds."""
    db.table("part_take_times").create({"take": str, "text": str, "words": str}, pk="take", not_null=("text", "words"))
    removed = "delete from part_take_times where take = old.id"
    db.execute(f"create trigger part_take_times_removed after delete on part_takes begin {removed}; end")


@MIGRATIONS()
def m016_voice_facts(db: Database) -> None:
    """Facts for choosing a voice: gender, accent, and its colour as #rrggbb; blank if not given."""
    for column in ("gender", "accent", "colour"):
        db.table("voices").add_column(column, str, not_null_default="")


@MIGRATIONS()
def m017_shares(db: Database) -> None:
    """Links with which anyone may play a take until they expire, in Unix time; deleted with the take."""
    db.table("shares").create(
        {"token": str, "take": int, "created": float, "expires": float},
        pk="token",
        not_null=("take", "created", "expires"),
    )
    db.table("shares").create_index(["take"])
    removed = "delete from shares where take = old.n"
    db.execute(f"create trigger shares_removed after delete on takes begin {removed}; end")


@MIGRATIONS()
def m018_replacements(db: Database) -> None:
    """The last find and replace of each project, to undo it: a JSON list of [part, text before, text after]."""
    db.table("replacements").create({"project_id": str, "parts": str}, pk="project_id", not_null=("parts",))
    removed = "delete from replacements where project_id = old.id"
    db.execute(f"create trigger replacements_of_projects after delete on projects begin {removed}; end")


@MIGRATIONS()
def m019_pronunciation_keys(db: Database) -> None:
    """A blank marks phrases whose case counts. They began with =, which the key of a phrase may begin with too."""
    db.execute("update pronunciations set key = ' ' || substr(key, 2) where match_case = 1 and key like '=%'")


@MIGRATIONS()
def m020_take_revisions(db: Database) -> None:
    """A take's voices can also be requested by id@revision, which stays the same when their slugs change."""
    of = "new.parameters, '$."
    cast = f"select json_extract({of}voice') union all select value from json_each({of}cast')"
    addresses = f"select new.voice as address union all {cast}"
    slug = "rtrim(rtrim(address, '0123456789'), '@')"
    spoke = f"id = new.voice_id or (new.voice_id is null and deleted is null and slug = {slug})"
    names = f"select id || substr(address, length({slug}) + 1), new.n from ({addresses}) join voices on {spoke}"
    add = f"insert or ignore into take_voices {names}"
    db.execute(f"create trigger take_revisions_added after insert on takes begin {add}; end")
    db.execute(f"create trigger take_revisions_now after update of voice on takes begin {add}; end")
    db.execute("update takes set voice = voice")
    db.execute("drop trigger take_revisions_now")
