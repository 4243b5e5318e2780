"""Arranging the parts of a project: insert, split, merge, move, delete, restore."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from studio.errors import EditConflict, InvalidRequest, NotFound
from studio.library.projects.deleted_places import DeletedPlaces, replace_predecessor
from studio.library.projects.project_records import MAX_PART_TEXT, MAX_PARTS, PARAGRAPH_END, NewPart, Part
from studio.library.projects.row_mapping import (
    AFRESH,
    AT_REST,
    check_unchanged,
    clean_part,
    number_of,
    part_of,
    part_row,
    parts_of,
    recipes_of,
    row_of,
    row_to_restore_to,
    touch,
    update_states,
)
from studio.library.sqlite import Database
from studio.library.store import Store
from studio.library.trash import BIN, Trash

UNDER_WAY = ("queued", "speaking")


class Arrangement:
    """Each call is one transaction, so the second of two simultaneous calls sees the result of the first. Calls block
    for milliseconds; ``owner_filter`` is as in Projects. Takes of parts whose text is unchanged are not touched."""

    def __init__(self, store: Store, trash: Trash) -> None:
        self._store = store
        self._trash = trash
        trash.put_back["part"] = _put_back

    def insert(
        self,
        project_id: str,
        owner_filter: str | None,
        part: NewPart,
        after: str | None,
        part_id: str | None = None,
        chapter: str = "",
    ) -> Part:
        """Insert a part after another one; None: before the first. ``part_id``: its id; None: a new one.

        ``chapter``: the title of the chapter that then begins with the following part, unless one does already; blank:
        that part belongs to the chapter of the inserted one. Raises NotFound, InvalidRequest.
        """
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            position = 0 if after is None else part_of(db, project_id, after).position + 1
            part_id = _add(db, project_id, part, position, part_id=part_id)
            if after is None:
                replace_predecessor(db, project_id, None, part_id)
            if chapter:
                _name_chapter(db, project_id, position + 1, chapter)
            touch(db, row)
            return part_of(db, project_id, part_id)

    def split(self, project_id: str, owner_filter: str | None, part_id: str, text: str, at: int) -> tuple[Part, Part]:
        """Cut a part before character ``at`` of its ``text``; the first half keeps the takes, which no longer match.

        If the part was queued, both are. Raises NotFound, InvalidRequest, and EditConflict if its text has
        changed since.
        """
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            part = part_of(db, project_id, part_id)
            check_unchanged(part, text)
            if not text[:at].strip() or not text[at:].strip():
                raise InvalidRequest(
                    "there is no text on one side of this position: split a part between two words", "at"
                )
            part_fields = {field.name: getattr(part, field.name) for field in fields(NewPart)}
            gap = len(text[:at].rstrip()), len(text) - len(text[at:].lstrip())
            changes = {
                "text": text[at:],
                "chapter": "",
                "start": None,
                "continues": not PARAGRAPH_END.search(text, *gap),
            }
            second = NewPart(**part_fields | changes)
            followers = _followers(db, part)
            state = "queued" if part.state in UNDER_WAY else "new"
            second_id = _add(db, project_id, second, part.position + 1, state, predecessor=part_id)
            _relink(db, followers, part_id, second_id)
            replace_predecessor(db, project_id, part_id, second_id)
            _reword(db, part, {"text": clean_part(text[:at]), "pause": None, "end": None, "scene": False})
            update_states(db, recipes_of(db, row), f"id = ? and {AT_REST}", [part_id])
            touch(db, row)
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
        with self._trash.deleting() as db:
            row = row_of(db, project_id, owner_filter)
            part, second = part_of(db, project_id, part_id), part_of(db, project_id, following)
            if second.position != part.position + 1:
                raise EditConflict("these parts are no longer next to each other; reload the list", "following")
            # A title has no full stop to separate it from the text that follows.
            gap = "\n" if part.is_title else "\n\n" if second.continues == "" else " "
            text = f"{part.text}{gap}{second.text}"
            if full_text is not None:
                if "".join(full_text.split()) != "".join(text.split()):
                    raise EditConflict("the text of these parts changed since the split; merge them instead", "text")
                text = clean_part(full_text)
            if len(text) > MAX_PART_TEXT:
                message = f"the two parts have {len(text)} characters together; at most {MAX_PART_TEXT} are allowed"
                raise InvalidRequest(message, "following")
            changes = {name: getattr(second, name) for name in ("pause", "end", "scene")}
            changes |= {"text": text, "chosen": part.chosen or second.chosen}
            original = {name: getattr(part, name) for name in changes}
            if second.state in UNDER_WAY and part.state not in UNDER_WAY:
                changes |= {"state": "queued", "attempts": 0, "error": None}
            _reword(db, part, changes)
            db.execute("update takes set part_id = ? where part_id = ?", [part_id, following])
            takes = [take.id for take in second.takes]
            merge_record = {"into": part_id, "text": text, "before": original, "takes": takes}
            self._put_away(db, row, second, merge_record, is_restorable=full_text is None)
            if full_text is not None:
                replace_predecessor(db, project_id, following, part_id)
            _close_gap(db, second)
            update_states(db, recipes_of(db, row), f"id = ? and {AT_REST}", [part_id])
            touch(db, row)
            return part_of(db, project_id, part_id)

    def move(self, project_id: str, owner_filter: str | None, part_id: str, position: int) -> Part:
        """Move a part to this position, counted from 0; the parts between shift. Raises NotFound, InvalidRequest."""
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            part = part_of(db, project_id, part_id)
            last_position = _count(db, project_id) - 1
            if not 0 <= position <= last_position:
                raise InvalidRequest(f"position must be from 0 to {last_position}", "position")
            values = [project_id, min(part.position, position), max(part.position, position)]
            step = 1 if position < part.position else -1
            query = "update parts set position = position + ? where project_id = ? and position between ? and ?"
            db.execute(query, [step, *values])
            db.execute("update parts set position = ? where id = ?", [position, part_id])
            touch(db, row)
            return part_of(db, project_id, part_id)

    def delete(self, project_id: str, owner_filter: str | None, part_id: str) -> None:
        """Move a part to the trash; a chapter that began with it begins with the next one.

        The part then belongs to a separate deleted project. Raises NotFound, and InvalidRequest for the only part of
        a project, which cannot be deleted.
        """
        with self._trash.deleting() as db:
            row = row_of(db, project_id, owner_filter)
            part = part_of(db, project_id, part_id)
            if _count(db, project_id) == 1:
                raise InvalidRequest("a project has at least one part; delete the project instead", "part")
            if part.chapter:
                _name_chapter(db, project_id, part.position + 1, part.chapter)
            self._put_away(db, row, part)
            _close_gap(db, part)
            touch(db, row)

    def restore(self, project_id: str, owner_filter: str | None, part_ids: Sequence[str]) -> list[Part]:
        """Restore parts of a project, each after the part that preceded it, with its takes; returns them.

        Raises NotFound where none of them is in the trash, InvalidRequest for more parts than allowed.
        """
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter, "edit")
        restored = self._trash.restore([("part", part_id) for part_id in part_ids], owner_filter, project_id)
        if not restored:
            raise NotFound("none of these parts is in the trash", "ids")
        with self._store.reading() as db:
            return [part_of(db, project_id, part_id) for _, part_id in restored]

    def _put_away(
        self,
        db: Database,
        row: dict[str, Any],
        part: Part,
        merge_record: dict[str, Any] | None = None,
        is_restorable: bool = True,
    ) -> None:
        """``merge_record``: for `_separate`, if the part was merged into another one."""
        predecessor = db.execute(
            "select id from parts where project_id = ? and position = ?", [row["id"], part.position - 1]
        ).fetchone()
        settings = {"after": predecessor and predecessor[0]} | (merge_record or {})
        followers = _followers(db, part)
        if followers:  # they continue the paragraph without it
            settings |= {"followers": followers}
            _relink(db, followers, part.id, settings.get("into", part.continues))
        now = time.time()
        bin_row = {"id": f"bin_{secrets.token_hex(12)}", "owner": row["owner"], "title": "", "kind": BIN + row["id"]}
        bin_row |= {"settings": json.dumps(settings), "paused": 0, "served": 0.0}
        bin_row |= {"created": now, "changed": now, "deleted": now if is_restorable else 0}
        db.table("projects").insert(bin_row)
        state = "queued" if part.state == "speaking" else part.state
        db.execute("update parts set project_id = ?, state = ? where id = ?", [bin_row["id"], state, part.id])


def _put_back(db: Database, bins: Sequence[dict[str, Any]]) -> None:
    """Move parts back from the projects that hold them."""
    bins_by_project: dict[str, list[dict[str, Any]]] = {}
    for bin_row in bins:
        bins_by_project.setdefault(bin_row["kind"].removeprefix(BIN), []).append(bin_row)
    for project_id, bin_rows in bins_by_project.items():
        row = row_to_restore_to(db, project_id)
        places = DeletedPlaces(db, project_id)
        part_ids = []
        for bin_row in bin_rows:
            part = _move_back(db, project_id, bin_row["id"], places)
            part_ids.append(part.id)
            settings = json.loads(bin_row["settings"])
            _relink(db, settings.get("followers", ()), settings.get("into", part.continues), part.id)
            if "into" in settings:
                part_ids.append(_separate(db, project_id, part.id, settings))
        condition = f"id in (select value from json_each(?)) and {AT_REST}"
        update_states(db, recipes_of(db, row), condition, [json.dumps(part_ids)])
        touch(db, row)


def _move_back(db: Database, project_id: str, bin_id: str, places: DeletedPlaces) -> Part:
    """Restores the part in the project ``bin_id``. Raises InvalidRequest."""
    [part] = parts_of(db, "project_id = ?", [bin_id])
    if (count := _count(db, project_id)) >= MAX_PARTS:
        raise _too_many()
    position = places.restore(part, count)
    _make_gap(db, project_id, position)
    db.execute("update parts set project_id = ?, position = ? where id = ?", [project_id, position, part.id])
    db.execute("delete from projects where id = ?", [bin_id])
    return part


def _separate(db: Database, project_id: str, part_id: str, merge_record: dict[str, Any]) -> str:
    """Return to a part the takes that were merged with it into another one, which gets its own text back unless it
    was edited since; returns the id of the other part."""
    ids = json.dumps(merge_record["takes"])
    condition = "id in (select value from json_each(?))"
    db.execute(f"update takes set part_id = ? where part_id = ? and {condition}", [part_id, merge_record["into"], ids])
    target = next(iter(parts_of(db, "project_id = ? and id = ?", [project_id, merge_record["into"]])), None)
    if target is not None and target.text == merge_record["text"]:
        db.table("parts").update(number_of(db, target.id), merge_record["before"])
    is_missing = (
        "chosen is not null and not exists (select 1 from takes where takes.id = chosen and part_id = parts.id)"
    )
    part_ids = [part_id, merge_record["into"]]
    db.execute(f"update parts set chosen = null where id in (?, ?) and {is_missing}", part_ids)
    at_rest = "state in ('done', 'stale')"
    db.execute(f"update parts set state = 'new' where id in (?, ?) and chosen is null and {at_rest}", part_ids)
    return str(merge_record["into"])


def _followers(db: Database, part: Part) -> list[str]:
    """The parts that continue the paragraph of this one: the next one at most, unless parts were moved."""
    query = "select id from parts where project_id = ? and continues = ?"
    return [part_id for [part_id] in db.execute(query, [part.project_id, part.id]).fetchall()]


def _relink(db: Database, part_ids: Sequence[str], old_id: str | None, new_id: str | None) -> None:
    """Make parts that continue the paragraph of the part ``old_id`` continue another part's paragraph."""
    query = "update parts set continues = ? where continues is ? and id in (select value from json_each(?))"
    db.execute(query, [new_id, old_id, json.dumps(list(part_ids))])


def _count(db: Database, project_id: str) -> int:
    return int(db.execute("select count(*) from parts where project_id = ?", [project_id]).fetchone()[0])


def _name_chapter(db: Database, project_id: str, position: int, chapter: str) -> None:
    """Make a chapter begin with the part at this position, unless one already does."""
    query = "update parts set chapter = ? where project_id = ? and position = ? and chapter = ''"
    db.execute(query, [chapter, project_id, position])


def new_part_id() -> str:
    return f"part_{secrets.token_hex(12)}"


def _add(
    db: Database,
    project_id: str,
    part: NewPart,
    position: int,
    state: str = "new",
    part_id: str | None = None,
    predecessor: str | None = None,
) -> str:
    """Adds a part at this position and returns its id; ``predecessor``: the part whose paragraph it may continue.

    Raises InvalidRequest.
    """
    if _count(db, project_id) >= MAX_PARTS:
        raise _too_many()
    part_id = part_id or new_part_id()
    _make_gap(db, project_id, position)
    db.table("parts").insert(part_row(project_id, part, part_id, position, predecessor) | {"state": state})
    return part_id


def _reword(db: Database, part: Part, changes: dict[str, Any]) -> None:
    reset = AFRESH if part.state == "failed" else {}
    db.table("parts").update(number_of(db, part.id), reset | changes)


def _make_gap(db: Database, project_id: str, position: int) -> None:
    db.execute(
        "update parts set position = position + 1 where project_id = ? and position >= ?", [project_id, position]
    )


def _close_gap(db: Database, part: Part) -> None:
    db.execute(
        "update parts set position = position - 1 where project_id = ? and position > ?",
        [part.project_id, part.position],
    )


def _too_many() -> InvalidRequest:
    return InvalidRequest(f"the project already has {MAX_PARTS} parts, which is the maximum", "parts")
