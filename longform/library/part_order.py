"""The order of a project's parts: places with gaps, positions, and the chapters that begin with deleted parts.

Every part has a place, deleted ones too, so that a part is restored where it was. Positions, from 0, count the others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from longform.library.project_schema import PLACES_APART
from studio.library.schema import Database, select

AMONG = "in (select value from json_each(?))"
THESE = f"n in (select n from all_parts where id {AMONG})"
"""Parts by a JSON list of ids. Their rows are read and written in the order in which they are stored: with 20,000
random ids, the order of the ids takes three times as long."""
LENDS = "(deleted is not null and chapter != '' and merged_into is null and credits = '')"
"""Whether the next part that exists begins the chapter of this one. Credits are a chapter of their own."""
_COUNTED_ONE_BY_ONE = 200
"""Number of places above which it is faster to read the places of all parts (20,000: 5 ms) than to count between
them."""
BEYOND = 2**62  # a place greater than all; with the sign reversed, less than all
_ROOM = 4
"""Minimum distance between two places after neighbours were moved; one of 1 would move them again at the next part."""


def positions_of(db: Database, project_id: str, places: Sequence[int]) -> list[int]:
    """The positions of parts from their places, in ascending order."""
    if len(places) > _COUNTED_ONE_BY_ONE:
        query = "select place from parts where project_id = ? order by place"
        positions = {place: number for number, (place,) in enumerate(db.execute(query, [project_id]).fetchall())}
        return [positions[place] for place in places]
    counted, position, low = list[int](), 0, -BEYOND
    query = "select count(*) from parts where project_id = ? and place >= ? and place < ?"
    for place in places:
        position += int(db.execute(query, [project_id, low, place]).fetchone()[0])
        counted.append(position)
        low = place
    return counted


def groups_of(
    db: Database, project_id: str, low: int = -BEYOND, high: int = BEYOND
) -> dict[int | None, list[tuple[int, int]]]:
    """The parts between two places in order, by the numbers of their rows: each with the deleted ones that stay beside
    it wherever it is, as places and numbers. These are those behind it; those of a chapter that they begin are before
    the next part, or after all. None: those that stay before all parts.
    """
    query = (
        "select place, n, 1, 0 from parts where project_id = ?1 and place between ?2 and ?3 union all"
        f" select place, n, 0, {LENDS} from all_parts indexed by parts_in_trash"
        " where project_id = ?1 and deleted is not null and place between ?2 and ?3 order by place"
    )
    last, waiting = list[tuple[int, int]](), list[tuple[int, int]]()
    groups: dict[int | None, list[tuple[int, int]]] = {None: last}
    for place, number, is_there, begins in db.execute(query, [project_id, low, high]).fetchall():
        if is_there:
            last = groups[number] = [*waiting, (place, number)]
            waiting = []
        else:
            (waiting if waiting or begins else last).append((place, number))
    return groups


def place_behind(db: Database, project_id: str, place: int) -> int:
    """The place of a part, or of the last of the deleted ones behind it that stay beside it, or after all."""
    following = "select min(place), (select max(place) from all_parts where project_id = ?1) from parts"
    high, end = db.execute(f"{following} where project_id = ?1 and place > ?2", [project_id, place]).fetchone()
    if high is None:
        return int(end)
    _, group, *_ = groups_of(db, project_id, place, high).values()
    return group[-1][0]


def count_parts(db: Database, project_id: str) -> int:
    return int(db.execute("select count(*) from parts where project_id = ?", [project_id]).fetchone()[0])


def places_after(db: Database, project_id: str, low: int | None, count: int = 1) -> list[int]:
    """Free places directly after a place, in ascending order; None: before all parts.

    If there are too few, the parts after it move apart: as many as needed, which are few however long the project is.
    """
    if low is None:
        first = db.execute("select min(place) from all_parts where project_id = ?", [project_id]).fetchone()[0] or 0
        return [first - PLACES_APART * number for number in range(count, 0, -1)]
    query = "select place, id from all_parts where project_id = ? and place > ? order by place limit ?"
    moved, apart, size = list[tuple[int, str]](), 1, 1
    while True:
        following = db.execute(query, [project_id, low, size]).fetchall()
        if len(following) < size:  # nothing limits the places after the last part
            moved, high = following, low + PLACES_APART * (count + len(following) + 1)
        else:
            *moved, (high, _) = following
        if high - low > apart * (count + len(moved)):
            break
        apart, size = _ROOM, 2 * size
    step = (high - low) / (count + len(moved) + 1)
    places = [low + int(step * number) for number in range(1, count + len(moved) + 1)]
    rows = [(place, part_id) for place, (_, part_id) in zip(places[count:], moved, strict=True)]
    db.conn.executemany("update all_parts set place = ? where id = ?", rows)
    return places[:count]


def mark_deleted(db: Database, project_id: str, part_ids: Sequence[str], deleted: float) -> None:
    """Mark parts as deleted; a chapter that began with one begins with the next existing part."""
    ids = json.dumps(list(part_ids))
    lent = db.execute(f"select chapter_of from parts where {THESE} and chapter_of is not null", [ids]).fetchall()
    db.execute(f"update all_parts set chapter = '', chapter_of = null where {THESE} and chapter_of is not null", [ids])
    update = "update all_parts set deleted = ?, state = case state when 'speaking' then 'queued' else state end"
    db.execute(f"{update} where {THESE}", [deleted, ids])
    _lend_chapters(db, project_id, [*part_ids, *(part_id for [part_id] in lent)])


def mark_restored(db: Database, project_id: str, numbers: str) -> None:
    """Undo `mark_deleted`; a chapter whose beginning stays deleted begins with the first restored part after it.
    ``numbers``: of the parts' rows, as a JSON list."""
    low, high = (
        f"(select {extreme}(place) from parts where project_id = gone.project_id and place {sign} gone.place)"
        for extreme, sign in (("max", "<"), ("min", ">"))
    )
    gaps = db.execute(f"select distinct {low}, {high} from all_parts as gone where n {AMONG}", [numbers]).fetchall()
    query = "select id from all_parts where chapter != '' and project_id = ? and place > ? and place < ?"
    holders = [
        part_id
        for low, high in gaps
        for [part_id] in db.execute(
            query, [project_id, -BEYOND if low is None else low, BEYOND if high is None else high]
        )
    ]
    borrowed = f"update all_parts set chapter = '', chapter_of = null where chapter_of {AMONG}"
    db.execute(borrowed, [json.dumps(holders)])
    db.execute(f"update all_parts set deleted = null where n {AMONG}", [numbers])
    _lend_chapters(db, project_id, holders)


def _lend_chapters(db: Database, project_id: str, part_ids: Sequence[str]) -> None:
    """Make the chapters that began with these deleted parts begin with the next existing ones, unless one does."""
    query = f"select id, place, chapter from all_parts where {LENDS}"
    holders = db.execute(f"{query} and {THESE} order by place desc", [json.dumps(list(part_ids))]).fetchall()
    for part_id, place, chapter in holders:  # the nearest one wins
        begin_chapter(db, project_id, place, chapter, part_id)


def begin_chapter(db: Database, project_id: str, place: int, chapter: str, chapter_of: str | None = None) -> None:
    """Make a chapter begin with the part after this place, unless one already does; ``chapter_of``: the deleted part
    that it belongs to."""
    following = "select min(place) from parts where project_id = ?1 and place > ?2"
    update = "update all_parts set chapter = ?3, chapter_of = ?4 where project_id = ?1 and chapter = ''"
    db.execute(f"{update} and place = ({following})", [project_id, place, chapter, chapter_of])


def rename_chapter(db: Database, part_id: str, chapter: str) -> None:
    """Give the deleted part with which a part's chapter began its new title, so that restoring it makes no other."""
    holder = "(select chapter_of from all_parts where id = ?)"
    db.execute(f"update all_parts set chapter = ? where id = {holder}", [chapter, part_id])


def beginnings(db: Database, links: Sequence[str]) -> dict[str, str | None]:
    """The parts to continue instead of deleted ones, by the ids of these: a paragraph goes on without deleted parts."""
    target = "coalesce(gone.merged_into, gone.continues)"
    query = f"""
        with recursive chain(link, target) as (
            select value, {target} from json_each(?) join all_parts as gone on gone.id = value and deleted is not null
            union select link, {target} from chain join all_parts as gone on gone.id = target and deleted is not null
        )
        select link, target from chain
        where not exists (select 1 from all_parts where id = target and deleted is not null)
    """
    return {row["link"]: row["target"] for row in select(db, query, [json.dumps(list(links))])}
