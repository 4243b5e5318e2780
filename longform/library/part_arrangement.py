"""Arranging the parts of a project: insert, split, merge, move, delete, restore."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from longform.library.part_order import (
    AMONG,
    THESE,
    begin_chapter,
    count_parts,
    groups_of,
    mark_deleted,
    mark_restored,
    place_behind,
    places_after,
)
from longform.library.project_records import NewPart, Part
from longform.library.row_mapping import (
    AFRESH,
    AT_REST,
    add_parts,
    changing,
    check_unchanged,
    clean_part,
    ids_of,
    outcome_of,
    part_of,
    part_row,
    recipes_of,
    recipes_to_restore_with,
    row_of,
    row_to_restore_to,
    touch,
    update_states,
    write_outcome,
    write_part,
)
from manuscript.passages import MAX_PART_TEXT, MAX_PARTS, PARAGRAPH_END
from studio.errors import EditConflict, InvalidRequest, NotFound
from studio.library.schema import Database, select
from studio.library.store import Store
from studio.library.trash import Prepared, Trash, Trashed, now, remove_takes

UNDER_WAY = ("queued", "speaking")
_MERGED = ("pause", "end", "scene")
"""The fields that the result of a merge has from the second part."""
_NEWEST = (
    "select value from projects, json_each((select json_group_array(n) from (select n from all_parts"
    " where project_id = projects.id and deleted > :since and (deleted, id) < (:last, :after)"
    " order by deleted desc, id desc limit :limit)))"
    " where :owner_filter is null or owner = :owner_filter or sharing = 'edit'"
)
"""The last deleted parts of each project: a book deleted part by part has tens of thousands."""


class Arrangement:
    """Each call is one transaction, so the second of two simultaneous calls sees the result of the first. Calls block
    for milliseconds, and as long again for each hundred parts that they change; ``owner_filter`` is as in Projects.
    Takes of parts whose text is unchanged are not touched."""

    def __init__(self, store: Store, trash: Trash) -> None:
        self._store = store
        self._trash = trash
        listed = (
            "select parts.id, substr(text, 1, 80), owner, sharing, parts.deleted, null, project_id, parts.n"
            " from all_parts as parts join projects on projects.id = project_id where parts.deleted > 0"
        )
        trash.kinds["part"] = Trashed("all_parts", listed, _remove, put_back, prepare, _NEWEST)

    def insert(
        self,
        project_id: str,
        owner_filter: str | None,
        part: NewPart,
        after: str | None,
        chapter: str = "",
        named_in: str = "",
    ) -> Part:
        """Insert a part after another one; None: before the first.

        ``chapter``: the title of the chapter that then begins with the following part, unless one does already; blank:
        that part belongs to the chapter of the inserted one. ``named_in``: the field of the project's settings that
        gets the part's id. Raises NotFound, InvalidRequest.
        """
        with changing(self._store.writing(), project_id, owner_filter) as (db, row):
            place, part_id = _add(db, project_id, part, after)
            if named_in:
                row["settings"] = json.dumps(json.loads(row["settings"]) | {named_in: part_id})
            if chapter:
                begin_chapter(db, project_id, place, chapter)
            return part_of(db, project_id, part_id)

    def split(self, project_id: str, owner_filter: str | None, part_id: str, text: str, at: int) -> tuple[Part, Part]:
        """Cut a part before character ``at`` of its ``text``; the first half keeps the takes, which no longer match.

        If the part was queued or being spoken, both are queued. Raises NotFound, InvalidRequest, and EditConflict if
        its text has changed since.
        """
        with changing(self._store.writing(), project_id, owner_filter) as (db, row):
            part = part_of(db, project_id, part_id)
            check_unchanged(part.text, text)
            if not text[:at].strip() or not text[at:].strip():
                raise InvalidRequest("one side of this position has no text; split the part between two words", "at")
            part_fields = {field.name: getattr(part, field.name) for field in fields(NewPart)}
            gap = len(text[:at].rstrip()), len(text) - len(text[at:].lstrip())
            changes = {
                "text": text[at:],
                "chapter": "",
                "start": None,
                "continues": not PARAGRAPH_END.search(text, *gap),
            }
            state = "queued" if part.state in UNDER_WAY else "new"
            _, second_id = _add(db, project_id, NewPart(**part_fields | changes), part_id, state)
            db.execute("update all_parts set continues = ?1 where continues = ?2 and id != ?1", [second_id, part_id])
            _reword(db, part, {"text": clean_part(text[:at]), "pause": None, "end": None, "scene": 0})
            update_states(db, recipes_of(db, row), f"id = ? and {AT_REST}", [part_id])
            return part_of(db, project_id, part_id), part_of(db, project_id, second_id)

    def merge(
        self, project_id: str, owner_filter: str | None, part_id: str, following: str, full_text: str | None = None
    ) -> Part:
        """Merge a part with the next one, in the voice of the first; the takes of both stay.

        A chapter that begins with the second part no longer exists. That part goes into the trash: restoring it undoes
        the merge. ``full_text``: the text before a split, which is undone; the second part is then removed for good.
        Raises NotFound, InvalidRequest for a result that is too long, and EditConflict if another part is now between
        the two or their text has changed.
        """
        with changing(self._trash.deleting(), project_id, owner_filter) as (db, row):
            part, second = part_of(db, project_id, part_id), part_of(db, project_id, following)
            if second.position != part.position + 1:
                raise EditConflict("these parts are no longer next to each other; reload the list", "following")
            text = _merged_text(part, second, full_text)
            changes: dict[str, Any] = {name: getattr(second, name) for name in _MERGED}
            changes |= {"text": text, "chosen": part.chosen or second.chosen}
            before = {name: getattr(part, name) for name in changes}
            if second.state in UNDER_WAY and part.state not in UNDER_WAY:
                changes |= {"state": "queued", "attempts": 0, "error": None}
            _reword(db, part, changes)
            db.execute("update takes set part_id = ? where part_id = ?", [part_id, following])
            record = {"text": text, "before": before, "takes": [take.id for take in second.takes]}
            deleted = 0.0 if full_text is not None else now()
            write_part(db, following, {"merged_into": part_id, "merge": json.dumps(record)} | _at_rest(second, deleted))
            update_states(db, recipes_of(db, row), f"id = ? and {AT_REST}", [part_id])
            return part_of(db, project_id, part_id)

    def move(
        self,
        project_id: str,
        owner_filter: str | None,
        part_ids: Sequence[str],
        position: int,
        position_before: int | None = None,
    ) -> int:
        """Move parts, in their order, so that the first has this position, counted from 0; returns their number. The
        deleted ones beside a part stay there, so that moving it back and restoring them gives the former order.
        ``position_before``: of the first in ``part_ids``; None: any.

        Raises NotFound, InvalidRequest, EditConflict.
        """
        with changing(self._store.writing(), project_id, owner_filter) as (db, _):
            if position_before not in (None, part_of(db, project_id, part_ids[0]).position):
                raise EditConflict("this part was moved meanwhile; reload the list", "position_before")
            ids = json.dumps(ids_of(db, project_id, part_ids))
            numbers = {number for [number] in db.execute(f"select n from all_parts where id {AMONG}", [ids])}
            groups = groups_of(db, project_id)
            moved = [one for number, group in groups.items() if number in numbers for _, one in group]
            others = [group for number, group in groups.items() if number not in numbers]
            if not 0 <= position < len(others):
                raise InvalidRequest(f"position must be from 0 to {len(others) - 1}", "position")
            places = places_after(db, project_id, others[position][-1][0] if others[position] else None, len(moved))
            db.conn.executemany("update all_parts set place = ? where n = ?", zip(places, moved, strict=True))
            return len(numbers)

    def delete(
        self,
        project_id: str,
        owner_filter: str | None,
        part_ids: Sequence[str],
        text_before: str | None = None,
        titled: tuple[str, str] | None = None,
    ) -> int:
        """Move parts to the trash, and return their number; a chapter that began with one begins with the next one.
        ``text_before``: of all of them; None: any. ``titled``: the id of a part with which no chapter begins any more,
        unless its title is another one by now.

        Raises NotFound, EditConflict, and InvalidRequest for all parts of a project.
        """
        with changing(self._trash.deleting(), project_id, owner_filter) as (db, _):
            ids = ids_of(db, project_id, part_ids)
            if text_before is not None:
                query = f"select distinct text from parts where {THESE}"
                for [text] in db.execute(query, [json.dumps(ids)]).fetchall():
                    check_unchanged(text, text_before)
            if count_parts(db, project_id) == len(ids):
                raise InvalidRequest("a project has at least one part; delete the project instead", "part")
            mark_deleted(db, project_id, ids, now())
            if titled:
                where = "project_id = ? and id = ? and chapter = ?"
                db.execute(f"update all_parts set chapter = '' where {where}", [project_id, *titled])
            return len(ids)

    def restore(self, project_id: str, owner_filter: str | None, part_ids: Sequence[str]) -> int:
        """Restore parts of a project where they were, with their takes; returns their number.

        Raises NotFound where none of them is in the trash, InvalidRequest for more parts than allowed.
        """
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter, "edit")
        restored = self._trash.restore([("part", part_id) for part_id in part_ids], owner_filter, project_id)
        if not restored:
            raise NotFound("none of these parts is in the trash", "ids")
        return len(restored)

    def is_deleted(self, part_id: str) -> bool:
        """Whether a part is in the trash, deleted or merged into another one."""
        with self._store.reading() as db:
            return bool(db.execute("select 1 from all_parts where id = ? and deleted > 0", [part_id]).fetchone())


def _merged_text(part: Part, second: Part, full_text: str | None) -> str:
    """Raises EditConflict, InvalidRequest."""
    # A title has no full stop to separate it from the text that follows.
    gap = "\n" if part.is_title else "\n\n" if second.continues is False else " "
    text = f"{part.text}{gap}{second.text}"
    if full_text is not None:
        if "".join(full_text.split()) != "".join(text.split()):
            raise EditConflict("the text of these parts changed since the split; merge them instead", "text")
        text = clean_part(full_text)
    if len(text) > MAX_PART_TEXT:
        message = f"the two parts have {len(text)} characters together; at most {MAX_PART_TEXT} are allowed"
        raise InvalidRequest(message, "following")
    return text


def by_project(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows of the trash by the ids of their projects, in their order."""
    by_project: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_project.setdefault(row["project_id"], []).append(row)
    return by_project


def prepare(db: Database, rows: Sequence[dict[str, Any]], prepared: Prepared) -> None:
    """Work out the recipes of these parts, which takes a second for 20,000."""
    for project_id, parts in by_project(rows).items():
        recipes = recipes_to_restore_with(db, project_id, prepared)
        numbers = json.dumps(sorted(part["n"] for part in parts))
        outcome_of(db, recipes, f"n {AMONG} and {AT_REST}", [numbers], table="all_parts")


def put_back(db: Database, rows: Sequence[dict[str, Any]], prepared: Prepared) -> None:
    """Restore deleted parts, the last deleted first. Raises NotFound, InvalidRequest, EditConflict."""
    for project_id, parts in by_project(rows).items():
        row = row_to_restore_to(db, project_id)
        if count_parts(db, project_id) + len(parts) > MAX_PARTS:
            raise _too_many()
        numbers = sorted(part["n"] for part in parts)
        _check_nesting(db, {part["id"]: part["merged_into"] for part in parts})
        mark_restored(db, project_id, json.dumps(numbers))
        others = json.dumps([_separate(db, part) for part in parts if part["merged_into"]])
        numbers += [n for [n] in db.execute(f"select n from all_parts where id {AMONG}", [others]).fetchall()]
        recipes = recipes_of(db, row, prepared.get(project_id))
        outcome = outcome_of(db, recipes, f"n {AMONG} and {AT_REST}", [json.dumps(numbers)], table="all_parts")
        write_outcome(db, outcome, {})
        touch(db, row)


def _check_nesting(db: Database, merged: Mapping[str, str | None]) -> None:
    """Merges are undone in reverse: the takes of a part are with the last one that it was merged into. ``merged``: the
    parts to restore, and those into which they were merged. Raises EditConflict."""
    query = f"select id, substr(text, 1, 60) from all_parts where id {AMONG} and merged_into is not null"
    for part_id, text in db.execute(query, [json.dumps([into for into in merged.values() if into])]).fetchall():
        if part_id not in merged:
            message = f"this part was merged into {text!r}, which was merged into another one: restore that one first"
            raise EditConflict(message, "ids")


def _separate(db: Database, second: dict[str, Any]) -> str:
    """Undo a merge: return to the second part its takes, and to the other one the fields that nobody has changed since;
    returns the id of the other part."""
    merge, into = json.loads(second["merge"]), str(second["merged_into"])
    update = f"update takes set part_id = ? where part_id = ? and id {AMONG}"
    db.execute(update, [second["id"], into, json.dumps(merge["takes"])])
    for target in list(select(db, "select * from all_parts where id = ?", [into])):
        before = merge["before"]
        written = {name: second[name] for name in _MERGED} | {"text": merge["text"]}
        written["chosen"] = before["chosen"] or second["chosen"]
        unchanged = {name: before[name] for name, value in written.items() if target[name] == value}
        unchanged |= {"state": "queued"} if target["state"] == "speaking" else {}
        added = merge["text"].removeprefix(before["text"])  # else it would be spoken twice
        if target["text"].count(added) == 1 and (rest := target["text"].replace(added, "").strip()):
            unchanged["text"] = rest
        if unchanged:
            write_part(db, into, unchanged)
    write_part(db, second["id"], {"merged_into": None, "merge": None})
    is_missing = (
        "chosen is not null and not exists (select 1 from takes where takes.id = chosen and part_id = all_parts.id)"
    )
    part_ids = [second["id"], into]
    db.execute(f"update all_parts set chosen = null where id in (?, ?) and {is_missing}", part_ids)
    at_rest = "state in ('done', 'stale')"
    db.execute(f"update all_parts set state = 'new' where id in (?, ?) and chosen is null and {at_rest}", part_ids)
    return into


_REMOVED_AT_ONCE = 1000  # parts: others may write in between


def _remove(db: Database, until: float) -> set[str]:
    """Remove some deleted parts for good: their takes, but for those of parts in the trash that were merged into them,
    then the parts; paragraphs, and merges into parts into which these were merged, go on without them."""
    query = (
        "select gone.id, gone.merge, target.merged_into from all_parts as gone indexed by parts_merged"
        " cross join all_parts as target on target.id = gone.merged_into"
        " where gone.merged_into is not null and gone.deleted > ?1 and target.deleted <= ?1"
    )
    holder = "select 1 from all_parts where id = takes.part_id and deleted <= ?"
    update = f"update takes set part_id = ? where id {AMONG} and exists ({holder})"
    for part_id, merge, into in db.execute(query, [until]).fetchall():
        db.execute(update, [part_id, json.dumps(json.loads(merge)["takes"]), until])
        db.execute("update all_parts set merged_into = coalesce(?, merged_into) where id = ?", [into, part_id])
    expired = f"select id from all_parts where deleted <= ? limit {_REMOVED_AT_ONCE}"
    if takes := remove_takes(db, f"part_id in ({expired})", until):
        return {take["audio"] for take in takes if take["audio"]}
    target = "select coalesce(merged_into, continues) from all_parts where id = ?1"
    for [part_id] in db.execute(expired, [until]).fetchall():
        db.execute(f"update all_parts set continues = ({target}) where continues = ?1", [part_id])
        db.execute("update all_parts set chapter_of = null where chapter_of = ?", [part_id])
        db.execute("delete from all_parts where id = ?", [part_id])
    return set()


def _at_rest(part: Part, deleted: float) -> dict[str, Any]:
    return {"deleted": deleted, "state": "queued" if part.state == "speaking" else part.state}


def new_part_id() -> str:
    return f"part_{secrets.token_hex(12)}"


def _add(
    db: Database, project_id: str, part: NewPart, after: str | None, half_state: str | None = None
) -> tuple[int, str]:
    """Add a part after another one and the deleted ones behind it; returns its place and id. ``half_state``: the state
    of the second half of that part, which comes directly after it. Raises NotFound, InvalidRequest."""
    query = "select place from parts where project_id = ? and id = ?"
    row = None if after is None else db.execute(query, [project_id, after]).fetchone()
    if after is not None and row is None:
        raise NotFound(f"the project has no part {after[:80]!r}", "part")
    if count_parts(db, project_id) >= MAX_PARTS:
        raise _too_many()
    part_id = new_part_id()
    low = row and (row[0] if half_state else place_behind(db, project_id, row[0]))
    [place] = places_after(db, project_id, low)
    add_parts(db, [part_row(project_id, part, part_id, place, after) | {"state": half_state or "new"}])
    return place, part_id


def _reword(db: Database, part: Part, changes: dict[str, Any]) -> None:
    states = {"failed": AFRESH, "speaking": {"state": "queued"}}  # else its take would be stale when it comes
    reset = states.get(part.state, {})
    write_part(db, part.id, reset | changes)


def _too_many() -> InvalidRequest:
    return InvalidRequest(f"the project already has {MAX_PARTS} parts, which is the maximum", "parts")
