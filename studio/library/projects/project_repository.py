"""Projects as their owners use them: created, listed, changed, generated, paused, cancelled and deleted."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from studio.audio.cover import Cover
from studio.errors import InvalidRequest, NotFound
from studio.library.projects.cast_repository import character_row, voice_of_character
from studio.library.projects.chapters import Chapter, chapters_of, positions_of_chapter
from studio.library.projects.covers import put_cover
from studio.library.projects.part_filter import ALL_PARTS, PartFilter
from studio.library.projects.project_records import (
    DIRECTED,
    SPOKEN_WITH,
    NewCharacter,
    NewPart,
    Part,
    PartChanges,
    PartRange,
    Project,
    ProjectSettings,
    Recipes,
)
from studio.library.projects.row_mapping import (
    AT_REST,
    check_unchanged,
    clean_chapter,
    clean_part,
    clean_pause,
    clean_title,
    compute_recipes,
    number_of,
    part_of,
    part_row,
    parts_of,
    project_of,
    projects_of,
    recipes_of,
    row_of,
    settings_of,
    touch,
    update_states,
)
from studio.library.sharing import Right, clean_sharing, readable
from studio.library.sqlite import Database
from studio.library.store import Store, once_more_with_room
from studio.library.takes.take import Take
from studio.library.takes.take_rows import take_of
from studio.library.trash import Trash, mark

MAX_PAGE = 500
MAX_PROJECTS = 500
"""Projects of one owner."""

PartSelection = Literal["missing", "stale", "all"] | Sequence[str]
"""missing: parts that are new, stale or failed; else the ids of parts to generate again."""
_CONDITIONS = {
    "missing": "state in ('new', 'stale', 'failed')",
    "stale": "state = 'stale'",
    "all": "state != 'speaking'",
}


class Projects:
    """The projects of a library. Calls block for milliseconds.

    ``owner_filter`` limits every call to this owner's own projects and those that others share with it. None allows
    all. Calls raise NotAllowed if the right is missing, and NotFound for projects that the owner cannot see.
    """

    def __init__(self, store: Store, trash: Trash) -> None:
        self._store = store
        self._trash = trash
        trash.put_back["project"] = _put_back

    @once_more_with_room
    def create(
        self,
        owner: str,
        title: str,
        kind: str,
        parts: Sequence[NewPart],
        settings: ProjectSettings,
        cover: Cover | None = None,
        skipped: Sequence[str] = (),
        cast: Sequence[NewCharacter] = (),
    ) -> Project:
        """Create a project of these parts, none of them queued. Raises InvalidRequest."""
        title = clean_title(title)
        now, project_id = time.time(), f"proj_{secrets.token_hex(12)}"
        row = {
            "id": project_id,
            "owner": owner,
            "title": title,
            "kind": kind,
            "settings": json.dumps(settings.as_dict()),
            "paused": 0,
            "served": 0.0,
            "created": now,
            "changed": now,
            "skipped": json.dumps(skipped),
            "sharing": "private",
        }
        ids = [f"part_{secrets.token_hex(12)}" for _ in parts]
        rows = [
            part_row(project_id, part, part_id, position, predecessor)
            for position, (part, part_id, predecessor) in enumerate(zip(parts, ids, [None, *ids], strict=False))
        ]
        characters = [character_row(project_id, character) for character in cast]
        with self._store.writing() as db:
            if _count(db, owner) >= MAX_PROJECTS:
                raise _too_many()
            db.table("projects").insert(row)
            db.table("parts").insert_all(rows)
            db.table("characters").insert_all(characters)
            put_cover(db, project_id, cover)
            return project_of(db, project_id, owner)

    def get(self, project_id: str, owner_filter: str | None) -> Project:
        """Raises NotFound."""
        with self._store.reading() as db:
            return project_of(db, project_id, owner_filter)

    def check(self, project_id: str, owner_filter: str | None, needed: Right) -> None:
        """Check a right before long work that later makes changes without this owner. Raises NotFound, NotAllowed."""
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter, needed)

    def page(self, owner_filter: str | None, limit: int = 50, after: str | None = None) -> list[Project]:
        """Projects, newest first; ``after`` is the id of the last one on the previous page. Raises NotFound."""
        with self._store.reading() as db:
            where, values = f"{readable('?1')} and deleted is null", list[object]([owner_filter])
            if after is not None:
                where, values = f"{where} and n < ?2", [owner_filter, row_of(db, after, owner_filter)["n"]]
            limit = min(max(limit, 1), MAX_PAGE + 1)
            rows = list(db.table("projects").rows_where(where, values, order_by="n desc", limit=limit))
            return projects_of(db, rows, owner_filter)

    def edit(
        self,
        project_id: str,
        owner_filter: str | None,
        title: str | None = None,
        settings: ProjectSettings | None = None,
        sharing: str | None = None,
    ) -> Project:
        """Rename a project or change its settings, which makes parts with other settings stale; only its owner may
        share it.

        Raises NotFound, InvalidRequest.
        """
        recipes = None if settings is None else self._recipes(project_id, owner_filter, settings)
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter, None if sharing is None else "own")
            old_settings = settings_of(db, row)
            if sharing is not None:
                row["sharing"] = clean_sharing(sharing)
            if title is not None:
                row["title"] = clean_title(title)
            if settings is not None:
                row["settings"] = json.dumps(settings.as_dict())
            touch(db, row)
            new_settings = settings_of(db, row)
            if any(getattr(old_settings, name) != getattr(new_settings, name) for name in SPOKEN_WITH):
                new_recipes = (
                    recipes if recipes is not None and recipes.settings == new_settings else Recipes(new_settings)
                )
                update_states(db, new_recipes, f"project_id = ? and {AT_REST}", [project_id])
            return project_of(db, project_id, owner_filter)

    def _recipes(self, project_id: str, owner_filter: str | None, settings: ProjectSettings) -> Recipes:
        """The parts' recipes with these settings, if they change any: seconds of work, done without the write lock."""
        with self._store.reading() as db:
            row = row_of(db, project_id, owner_filter)
            old_settings, new_settings = (
                settings_of(db, row),
                settings_of(db, row | {"settings": json.dumps(settings.as_dict())}),
            )
            recipes = Recipes(new_settings)
            if any(getattr(old_settings, name) != getattr(new_settings, name) for name in SPOKEN_WITH):
                compute_recipes(db, recipes, f"project_id = ? and {AT_REST}", [project_id])
        return recipes

    def delete(self, project_id: str, owner_filter: str | None) -> None:
        """Move a project to the trash. Raises NotFound.

        Parts being generated are queued again, where they wait until the project is restored.
        """
        with self._trash.deleting() as db:
            row = row_of(db, project_id, owner_filter, "own")
            db.execute("update parts set state = 'queued' where project_id = ? and state = 'speaking'", [project_id])
            mark(db, "project", [row["id"]])

    def parts(
        self,
        project_id: str,
        owner_filter: str | None,
        offset: int = 0,
        limit: int | None = None,
        filters: PartFilter = ALL_PARTS,
        only_chosen: bool = False,
    ) -> list[Part]:
        """A project's parts in order, with all their takes or the chosen ones; None: all parts. Raises NotFound."""
        where, values = filters.where(project_id)
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            return parts_of(db, where, values, limit, offset, only_chosen)

    def part_ids(
        self,
        project_id: str,
        owner_filter: str | None,
        filters: PartFilter = ALL_PARTS,
        offset: int = 0,
        limit: int = -1,
    ) -> list[str]:
        """The ids of parts in order; all of them with -1. Raises NotFound."""
        where, values = filters.where(project_id)
        query = f"select id from parts where {where} order by position limit ? offset ?"
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            return [row[0] for row in db.execute(query, [*values, limit, offset]).fetchall()]

    def count_parts(self, project_id: str, owner_filter: str | None, filters: PartFilter) -> int:
        """Raises NotFound."""
        where, values = filters.where(project_id)
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            return int(db.execute(f"select count(*) from parts where {where}", values).fetchone()[0])

    def chapters(self, project_id: str, owner_filter: str | None) -> list[Chapter]:
        """The chapters of a project in order. Raises NotFound."""
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            return chapters_of(db, project_id)

    def part(self, project_id: str, owner_filter: str | None, part_id: str) -> Part:
        """Raises NotFound."""
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            return part_of(db, project_id, part_id)

    def take(self, project_id: str, owner_filter: str | None, take_id: str) -> Take:
        """Raises NotFound."""
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            condition = "id = ? and part_id in (select id from parts where project_id = ?)"
            for row in db.table("takes").rows_where(condition, [take_id, project_id]):
                return take_of(row)
        raise NotFound(f"the project has no take {take_id[:80]!r}", "take")

    def edit_part(self, project_id: str, owner_filter: str | None, part_id: str, changes: PartChanges) -> Part:
        """Change a part, which makes only this part stale. Raises NotFound, InvalidRequest, EditConflict."""
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            part = part_of(db, project_id, part_id)
            values: dict[str, Any] = {}
            if changes.chapter is not None:
                values["chapter"] = clean_chapter(part, changes.chapter)
                if part.is_title and changes.text is None:  # the heading
                    changes = replace(changes, text=values["chapter"])
            if changes.text is not None:
                values["text"] = clean_part(changes.text)
            if changes.text_before is not None and part.text != values.get("text"):  # else nothing is overwritten
                check_unchanged(part, changes.text_before)
            if changes.take is not None:
                if changes.take not in {take.id for take in part.takes}:
                    raise NotFound(f"this part has no take {changes.take[:80]!r}", "take")
                values["chosen"] = changes.take
            if values:
                db.table("parts").update(number_of(db, part_id), values)
            _change(db, row, [part_id], changes)
            return part_of(db, project_id, part_id)

    def edit_parts(
        self, project_id: str, owner_filter: str | None, selection: Sequence[str] | PartRange, changes: PartChanges
    ) -> int:
        """Change all these parts, or none; returns their number. Raises NotFound, InvalidRequest."""
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            part_ids = _ids_of(db, project_id, selection)
            _change(db, row, part_ids, changes)
            return len(part_ids)

    def queue_parts(
        self, project_id: str, owner_filter: str | None, selection: PartSelection, chapter: str | None = None
    ) -> Project:
        """Queue parts and resume the project; ``chapter``: only of the chapter that begins with it. Raises NotFound."""
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            update = "update parts set state = 'queued', attempts = 0, error = null where project_id = ?"
            if isinstance(selection, str):
                bounds = (0, 2**31) if chapter is None else positions_of_chapter(db, project_id, chapter)
                condition = f"{_CONDITIONS[selection]} and position >= ? and position < ?"
                db.execute(f"{update} and {condition}", [project_id, *bounds])
            elif chapter is not None:
                raise InvalidRequest("parts already lists ids; leave out chapter", "chapter")
            else:
                values = [project_id, json.dumps(list(dict.fromkeys(selection)))]
                _ids_of(db, project_id, selection)
                db.execute(f"{update} and id in (select value from json_each(?)) and state != 'speaking'", values)
            touch(db, row | {"paused": 0})
            return project_of(db, project_id, owner_filter)

    def pause(self, project_id: str, owner_filter: str | None, paused: bool) -> Project:
        """Pause or resume a project; a paused one starts no more parts. Raises NotFound."""
        with self._store.writing() as db:
            touch(db, row_of(db, project_id, owner_filter) | {"paused": int(paused)})
            return project_of(db, project_id, owner_filter)

    def cancel(self, project_id: str, owner_filter: str | None) -> Project:
        """Remove all unfinished parts from the queue. Raises NotFound."""
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            update_states(db, recipes_of(db, row), "project_id = ? and state in ('queued', 'speaking')", [project_id])
            touch(db, row | {"paused": 0})
            return project_of(db, project_id, owner_filter)


def _ids_of(db: Database, project_id: str, selection: Sequence[str] | PartRange) -> list[str]:
    """The ids of parts. Raises NotFound for an unknown part."""
    if isinstance(selection, PartRange):
        ends = sorted(part_of(db, project_id, part_id).position for part_id in (selection.first, selection.last))
        query = "select id from parts where project_id = ? and position between ? and ?"
        return [part_id for [part_id] in db.execute(query, [project_id, *ends]).fetchall()]
    query = "select id from parts where project_id = ? and id in (select value from json_each(?))"
    existing = {part_id for [part_id] in db.execute(query, [project_id, json.dumps(list(selection))]).fetchall()}
    for part_id in selection:
        if part_id not in existing:
            raise NotFound(f"the project has no part {part_id[:80]!r}", "part")
    return list(existing)


def _change(db: Database, row: dict[str, Any], part_ids: Sequence[str], changes: PartChanges) -> None:
    """Change parts and derive their states. Raises NotFound, InvalidRequest."""
    values: dict[str, Any] = {}
    if changes.character is not None:
        has_character = bool(changes.character)
        values["character"] = changes.character or None
        values["voice"] = voice_of_character(db, row["id"], changes.character) if has_character else None
        values["confirmed"] = 1
    if changes.voice is not None:
        values["voice"] = changes.voice.strip()[:200] or None
    if changes.pause is not None:
        values["pause"] = clean_pause(changes.pause)
    for name in ("confirmed", "scene"):
        if (flag := getattr(changes, name)) is not None:
            values[name] = int(flag)
    for name in DIRECTED:
        if (value := getattr(changes, name)) is not None:
            values[name] = None if value < 0 else value
    ids, condition = json.dumps(list(part_ids)), "id in (select value from json_each(?))"
    if values:
        columns = ", ".join(f"{name} = ?" for name in values)
        db.execute(f"update parts set {columns} where {condition}", [*values.values(), ids])
    if changes.reword is not None:
        texts = db.execute(f"select id, text from parts where {condition}", [ids]).fetchall()
        rows = [(clean_part(changes.reword(text)), part_id) for part_id, text in texts]
        db.conn.executemany("update parts set text = ? where id = ?", rows)
    has_new_text = changes.text is not None or changes.reword is not None
    if is_changed := has_new_text or not values.keys().isdisjoint(("voice", *DIRECTED)):
        reset = "update parts set state = 'new', attempts = 0, error = null"
        db.execute(f"{reset} where state = 'failed' and {condition}", [ids])
    choose = is_changed and changes.take is None  # a new pause keeps the take that a person has chosen
    update_states(db, recipes_of(db, row), f"{condition} and {AT_REST}", [ids], choose=choose)
    touch(db, row)


def _put_back(db: Database, rows: Sequence[dict[str, Any]]) -> None:
    """Restore projects; those with queued parts are paused until someone resumes them. Raises InvalidRequest."""
    for row in rows:
        if _count(db, row["owner"]) >= MAX_PROJECTS:
            raise _too_many()
        queued = "exists (select 1 from parts where project_id = projects.id and state = 'queued')"
        db.execute(f"update projects set deleted = null, paused = max(paused, {queued}) where n = ?", [row["n"]])


def _count(db: Database, owner: str) -> int:
    query = "select count(*) from projects where owner = ? and deleted is null"
    return int(db.execute(query, [owner]).fetchone()[0])


def _too_many() -> InvalidRequest:
    return InvalidRequest(f"there are already {MAX_PROJECTS} projects, the maximum; delete some first", "projects")
