"""The tables of projects: a baseline, then migrations that are only ever appended; none is ever edited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from studio.library.schema import (
    AUDIO_OWNERS,
    DICTIONARIES,
    MIGRATIONS,
    OWN_CONTENT,
    VOICE_NAMES,
    Database,
    run_statements,
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
    if not db.table("projects").exists():  # else the former migrations have created them
        run_statements(db, Path(__file__).with_name("projects.sql"))


@MIGRATIONS()
def m037_sparse_parts(db: Database) -> None:
    """Deleted parts stay in their project; the view `parts` has the others. So far each had a project of its own.

    `place` orders all parts of a project, deleted ones too, and has gaps. `merged_into` is the part into which a
    deleted one was merged, `merge` a JSON object for undoing that: {"text", "before", "takes"}, the text of the other
    part since then, the fields that it had before, and the ids of the takes it was given. `chapter_of` is the deleted
    part with which a part's chapter began.
    """
    run_statements(db, Path(__file__).with_name("sparse-parts.sql"))
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


@MIGRATIONS()
def m054_former_takes(db: Database) -> None:
    """Takes that were chosen until one with another recipe was, and when that was: see `_choose_matching`."""
    db.execute("create table former_takes (take integer primary key, replaced real not null)")
    db.execute(
        "create trigger takes_replaced after update of chosen on all_parts when old.chosen is not new.chosen begin"
        " insert or replace into former_takes select former.n, julianday('now') from takes as former"
        " left join takes as latter on latter.id = new.chosen"
        " where former.id = old.chosen and former.recipe is not latter.recipe; end"
    )
    db.execute(
        "create trigger former_takes_removed after delete on takes begin"
        " delete from former_takes where take = old.n; end"
    )


@MIGRATIONS()
def m055_last_chosen_takes(db: Database) -> None:
    """Takes that were replaced by one with the same recipe are former ones too: see `_prune`."""
    db.execute("drop trigger takes_replaced")
    db.execute(
        "create trigger takes_replaced after update of chosen on all_parts when old.chosen is not new.chosen begin"
        " insert or replace into former_takes select n, julianday('now') from takes where id = old.chosen; end"
    )


@MIGRATIONS()
def m056_texts_of_credits(db: Database) -> None:
    """The text of the credits that a part was last given: what else it says was written by somebody."""
    db.execute("alter table all_parts add column credits text not null default ''")


@MIGRATIONS()
def m057_merged_parts(db: Database) -> None:
    """An index of the parts that were merged into others: removing these for good looks for them."""
    db.execute("create index parts_merged on all_parts (deleted) where merged_into is not null")


@MIGRATIONS()
def m058_last_errors(db: Database) -> None:
    """Parts no longer keep the reason of a failure after which they got a take."""
    db.execute("update all_parts set error = null where error is not null and state in ('done', 'stale')")


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
