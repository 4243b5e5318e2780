"""The tables of projects: a baseline, then migrations that are only ever appended; none is ever edited."""

from __future__ import annotations

import json
from typing import Any

from studio.library.schema import (
    AUDIO_OWNERS,
    DICTIONARIES,
    MIGRATIONS,
    OWN_CONTENT,
    VOICE_NAMES,
    Database,
    create_tables,
    select,
)

PLACES_APART = 1024
"""Distance between the places of two new parts: ten parts fit at the same place before neighbours have to move."""

OWN_CONTENT.append("select 1 from projects")
DICTIONARIES.append("select 'project', id, owner, sharing, deleted, id from projects")
AUDIO_OWNERS.append(
    "select 'a take of the project ' || project_id from takes join all_parts on all_parts.id = part_id where audio = :d"
)
VOICE_NAMES += [
    "select voice from all_parts",  # those in the trash too
    "select voice from characters",
    "select json_extract(settings, '$.voice') as voice from projects",
]


@MIGRATIONS()
def m036_projects(db: Database) -> None:
    """Projects, their parts, casts and checks, as the former migrations left them."""
    create_tables(db, "projects", TABLES)


@MIGRATIONS()
def m037_sparse_parts(db: Database) -> None:
    """Deleted parts stay in their project; the view `parts` has the others. So far each had a project of its own.

    `place` orders all parts of a project, deleted ones too, and has gaps. `merged_into` is the part into which a
    deleted one was merged, `merge` a JSON object for undoing that: {"text", "before", "takes"}, the text of the other
    part since then, the fields that it had before, and the ids of the takes it was given. `chapter_of` is the deleted
    part with which a part's chapter began.
    """
    for statement in SPARSE_PARTS.split(";\n\n"):
        db.execute(statement)
    bins = "select projects.*, parts.id as part, place, continues from projects join all_parts as parts"
    bins += " on project_id = projects.id where kind like 'bin of %' order by projects.n desc"
    by_project: dict[str, list[dict[str, Any]]] = {}
    for row in select(db, bins):
        by_project.setdefault(row["kind"].removeprefix("bin of "), []).append(row)
    for project_id, rows in by_project.items():
        _empty_bins(db, project_id, rows)
    db.execute("delete from projects where kind like 'bin of %'")
    db.execute("create view parts as select * from all_parts where deleted is null")


@MIGRATIONS()
def m038_merged_characters(db: Database) -> None:
    """What the successor of a deleted character got from it, as a JSON object, for undoing the merge: "voiced", the
    parts whose voice became the successor's, the "aliases" added, and the "gender", blank if it had its own."""
    db.execute('alter table characters add column "merge" text')
    aliases = "(select json_group_array(value) from (select name as value union select value from json_each(aliases)))"
    merge = f"json_object('voiced', json(lines), 'aliases', json({aliases}), 'gender', '')"
    db.execute(f'update characters set "merge" = {merge} where lines is not null')


@MIGRATIONS()
def m043_parts_referred(db: Database) -> None:
    """Indexes of the parts that refer to another one: each part removed for good looks for them."""
    for column in ("continues", "chapter_of"):
        db.execute(f"create index parts_by_{column} on all_parts ({column}) where {column} is not null")


@MIGRATIONS()
def m044_lines_of_tables(db: Database) -> None:
    """The id and the cells of a table's row, and the take of a part that was in the last zip of takes."""
    for column in ("name text not null default ''", "cells text not null default ''", "sent text"):
        db.execute(f"alter table all_parts add column {column}")


@MIGRATIONS()
def m045_feeds(db: Database) -> None:
    """The links of projects' podcast feeds, as the table `shares` has those of takes."""
    db.execute(
        "create table feeds"
        " (token text primary key, project integer not null, created real not null, expires real not null)"
    )
    db.execute("create index feeds_of_projects on feeds (project)")
    db.execute(
        "create trigger feeds_removed after delete on projects begin delete from feeds where project = old.n; end"
    )


@MIGRATIONS()
def m046_prints_of_takes(db: Database) -> None:
    """Voiceprints of checked takes, to find those in another voice: see `longform.library.usual_sound`."""
    db.execute("alter table checked_takes add column print blob not null default x''")


@MIGRATIONS()
def m047_parts_worked(db: Database) -> None:
    """An index of the parts with a pace: a project without takes asks for the newest of all whenever it is shown."""
    db.execute("create index parts_worked on all_parts (n) where worked > 0")


@MIGRATIONS()
def m048_tables(db: Database) -> None:
    """The version of its table that a project was last given: a JSON list of the id and the cells of each row.

    A new version is compared with it; parts alone do not tell what somebody has deleted, merged, split or moved.
    """
    db.execute("create table tables (project_id text primary key, rows text not null)")
    lines = (
        "select project_id, name, cells from all_parts where deleted is null and name != '' order by project_id, place"
    )
    rows = "json_group_array(json_array(name, cells))"
    db.execute(f"insert into tables select project_id, {rows} from ({lines}) group by project_id")
    db.execute(
        "create trigger tables_removed after delete on projects begin delete from tables where project_id = old.id; end"
    )


@MIGRATIONS()
def m049_index_of_each_reference(db: Database) -> None:
    """`parts_by_chapter_of` and `parts_by_continues` serve the queries of these two as well."""
    for index in ("parts_borrowing", "parts_continuing"):
        db.execute(f"drop index {index}")


@MIGRATIONS()
def m053_trash_of_projects(db: Database) -> None:
    """An index of the deleted parts of each project in the order of the trash."""
    db.execute("create index parts_in_trash on all_parts (project_id, deleted, id) where deleted is not null")


def _empty_bins(db: Database, project_id: str, bins: list[dict[str, Any]]) -> None:
    """Return deleted parts, the last deleted first, to the places after the parts that they followed."""
    if not db.execute("select 1 from projects where id = ?", [project_id]).fetchone():  # it was being removed for good
        project_id = bins[0]["id"]  # remove them with the first one's project
        db.execute("update projects set kind = '', deleted = 0 where id = ?", [project_id])
    query = "select id from all_parts where project_id = ? order by place"
    order = [part_id for [part_id] in db.execute(query, [project_id]).fetchall()]
    for row in bins:
        settings = json.loads(row["settings"])
        place = row["place"] // PLACES_APART
        if settings.get("after") in order:
            place = order.index(settings["after"]) + 1
        elif settings.get("after", "") is None:
            place = 0
        if row["part"] not in order:
            order.insert(place, row["part"])
        into = settings.get("into")
        followers = json.dumps(settings.get("followers", []))
        relink = "update all_parts set continues = ? where continues is ? and id in (select value from json_each(?))"
        db.execute(relink, [row["part"], into or row["continues"], followers])
        merge = json.dumps({name: settings[name] for name in ("text", "before", "takes")}) if into else None
        update = 'update all_parts set project_id = ?, deleted = ?, merged_into = ?, "merge" = ? where id = ?'
        db.execute(update, [project_id, row["deleted"], into, merge, row["part"]])
    places = [(number * PLACES_APART, part_id) for number, part_id in enumerate(order)]
    db.conn.executemany("update all_parts set place = ? where id = ?", places)
    _note_chapters(db, project_id)


def _note_chapters(db: Database, project_id: str) -> None:
    """Note with which deleted part a chapter began that now begins with another one: the next with the same title."""
    query = "select id, chapter, deleted, text = chapter as is_heading from all_parts where project_id = ?"
    holder, title = "", ""
    for row in list(select(db, f"{query} and merged_into is null order by place", [project_id])):
        is_borrowed = row["chapter"] == title != "" and not row["is_heading"]
        if is_borrowed and row["deleted"] is not None:
            db.execute("update all_parts set chapter = '' where id = ?", [row["id"]])
        elif is_borrowed:
            db.execute("update all_parts set chapter_of = ? where id = ?", [holder, row["id"]])
        elif row["deleted"] is not None and row["chapter"]:
            holder, title = row["id"], row["chapter"]
        if row["deleted"] is None and row["chapter"]:
            title = ""


SPARSE_PARTS = """
alter table parts rename to all_parts;

alter table all_parts rename column position to place;

alter table all_parts add column deleted real;

alter table all_parts add column merged_into text;

alter table all_parts add column "merge" text;

alter table all_parts add column chapter_of text;

update all_parts set place = place * 1024;

drop index idx_parts_project_id_position;

drop index parts_queued;

drop index parts_sums;

drop index parts_timed;

create index parts_places on all_parts (project_id, place);

-- With the column deleted, so that parts are counted without reading their rows.
create index parts_in_order on all_parts (project_id, place, deleted) where deleted is null;

create index parts_deleted on all_parts (deleted) where deleted is not null;

create index parts_queued on all_parts (project_id, place) where state = 'queued' and deleted is null;

create index parts_timed on all_parts (project_id) where start is not null and deleted is null;

create index parts_of_chapters on all_parts (project_id, place) where chapter != '';

create index parts_borrowing on all_parts (chapter_of) where chapter_of is not null;

-- The parts that continue a part's paragraph.
create index parts_continuing on all_parts (continues) where continues != '';

-- Sums of a project over its parts, in one index: a poll must not read the texts and takes of all parts.
create index parts_sums on all_parts (project_id, state, characters, heard, work_s, worked, deleted)
    where deleted is null
"""

TABLES = """
-- Long texts to be spoken. deleted: Unix time; for a while it can be restored. skipped: a JSON list of sentences.
create table projects (
    n integer primary key,
    id text not null,
    owner text not null,
    title text not null,
    kind text,
    settings text not null,
    paused integer not null,
    served real not null,
    created real not null,
    changed real not null,
    deleted real,
    skipped text not null default '[]',
    sharing text not null default 'private'
);

create unique index idx_projects_id on projects (id);

create index idx_projects_owner_n on projects (owner, n);

-- lease, leased_until: the token of a claim, and its expiry unless renewed. heard, work_s: seconds of the chosen
-- take, and of all work on the part so far; worked: characters that this work was for. continues: the part whose
-- paragraph this one continues; blank: it begins a paragraph; null: unknown.
create table parts (
    n integer primary key,
    id text not null,
    project_id text not null references projects(id),
    position integer not null,
    chapter text not null,
    text text not null,
    voice text,
    pause real,
    start real,
    "end" real,
    state text not null,
    attempts integer not null,
    error text,
    chosen text,
    lease text,
    leased_until real,
    characters integer generated always as (length(text)) virtual,
    heard real not null default 0.0,
    work_s real not null default 0.0,
    worked integer not null default 0,
    character text,
    confidence real,
    reason text,
    speed real,
    temperature real,
    top_p real,
    top_k integer,
    confirmed integer not null default 0,
    scene integer not null default 0,
    continues text
);

create unique index idx_parts_id on parts (id);

create index idx_parts_project_id_position on parts (project_id, position);

create index parts_queued on parts (project_id, position) where state = 'queued';

-- Cover pictures of projects.
create table covers (
    project_id text primary key references projects(id),
    digest text not null,
    media_type text not null,
    image blob not null
);

create trigger covers_removed before delete on projects begin
    delete from covers where project_id = old.id;
end;

create trigger pronunciations_of_projects after delete on projects begin
    delete from pronunciations where scope = 'project' and subject = old.id;
end;

create index projects_deleted on projects (deleted) where deleted is not null;

create index parts_spoken on parts (leased_until) where state = 'speaking';

-- Sums of a project over its parts, in one index: a poll must not read the texts and takes of all parts.
create index parts_sums on parts (project_id, state, characters, heard, work_s, worked);

create index parts_timed on parts (project_id) where start is not null;

-- Texts that were replaced in a project: parts is a JSON list of [part, text before, text after], count its length.
create table replaced_texts (
    id text primary key not null,
    project_id text not null,
    parts text not null,
    count integer not null,
    deleted real not null
);

create index idx_replaced_texts_project_id on replaced_texts (project_id);

create index idx_replaced_texts_deleted on replaced_texts (deleted);

create trigger replaced_texts_of_projects after delete on projects begin
    delete from replaced_texts where project_id = old.id;
end;

create trigger parts_heard after update of chosen on parts begin
    update parts set heard = coalesce((select seconds from takes where id = new.chosen), 0.0) where n = new.n;
end;

-- The cast. aliases: a JSON list. Of a deleted character, lines is a JSON list of the parts that it had, and
-- successor the character that has them now.
create table characters (
    n integer primary key,
    id text not null,
    project_id text not null,
    name text not null,
    aliases text not null,
    gender text not null,
    voice text,
    is_narrator integer not null,
    deleted real,
    lines text,
    successor text
);

create unique index idx_characters_id on characters (id);

create index idx_characters_project_id on characters (project_id);

create index characters_deleted on characters (deleted) where deleted is not null;

create trigger characters_of_projects after delete on projects begin
    delete from characters where project_id = old.id;
end;

create index parts_of_characters on parts (character) where character is not null;

-- The transcripts of checked takes of projects' parts.
create table checked_takes (
    take integer primary key,
    version integer not null,
    recogniser text not null,
    words integer not null,
    wrong integer not null,
    speech_s real not null,
    level real,
    pace real,
    checked real not null
);

-- Doubtful spots of checked takes; the kind note is written by listeners. first, last: characters of the take's
-- text.
create table findings (
    n integer primary key,
    id text not null,
    take integer not null,
    kind text not null,
    weight integer not null,
    start real not null,
    "end" real not null,
    first integer not null,
    last integer not null,
    heard text not null,
    accepted integer not null default 0
);

create unique index idx_findings_id on findings (id);

create index idx_findings_take on findings (take);

create trigger checked_takes_removed after delete on takes begin
    delete from checked_takes where take = old.n;
end;

create trigger findings_removed after delete on takes begin
    delete from findings where take = old.n;
end
"""
