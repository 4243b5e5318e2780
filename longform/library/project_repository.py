"""Projects as their owners use them, from creation to deletion, and the library of a studio that has them."""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from longform.library.cast_repository import Cast, character_row
from longform.library.chapters import Chapter, chapters_of, places_of_chapter
from longform.library.part_arrangement import Arrangement
from longform.library.part_edits import PartEdits
from longform.library.part_queue import PartQueue
from longform.library.project_records import (
    SPOKEN_WITH,
    NewPart,
    Part,
    PartState,
    Project,
    ProjectSettings,
    Recipes,
)
from longform.library.project_schema import PLACES_APART
from longform.library.proof_records import OPEN_NOTE
from longform.library.proof_repository import Proofs
from longform.library.replacements import Replacements
from longform.library.row_mapping import (
    AT_REST,
    add_parts,
    clean_title,
    ids_of,
    outcome_of,
    part_of,
    part_row,
    parts_of,
    prepare_respelling,
    project_of,
    projects_of,
    recipes_of,
    row_of,
    settings_of,
    touch,
    update_states,
)
from longform.library.table_plan import encoded_table, keep_table
from longform.library.table_updates import TableUpdates
from manuscript.passages import SURE, NewCharacter
from manuscript.untrusted import Cover
from studio.errors import InvalidRequest, NotFound
from studio.library import Adopted, Library
from studio.library.checks import Right, clean_sharing, readable
from studio.library.library import TRASH_DAYS
from studio.library.records import DictionaryScope
from studio.library.schema import Database
from studio.library.store import Store, again_if_outdated, once_more_with_room
from studio.library.take import Take
from studio.library.take_repository import take_of
from studio.library.trash import Prepared, Trash, Trashed, mark, remove_takes

log = logging.getLogger(__name__)

MAX_PAGE = 500
MAX_PROJECTS = 500
"""Projects of one owner."""

_PARTS_AT_ONCE = 1000
"""Maximum parts that one transaction removes for good."""

PartSelection = Literal["missing", "stale", "all"] | Sequence[str]
"""missing: parts that are new, stale or failed; else the ids of parts to generate again."""
_CONDITIONS = {
    "missing": "state in ('new', 'stale', 'failed')",
    "stale": "state = 'stale'",
    "all": "state != 'speaking'",
}
_QUEUED = "exists (select 1 from parts where project_id = projects.id and state in ('queued', 'speaking'))"
_NOTED = f"id in (select part_id from findings cross join takes on takes.n = findings.take where {OPEN_NOTE})"

READABLE = (
    "deleted is null and (part_id is null or exists (select 1 from parts join projects on projects.id = project_id"
    " where parts.id = part_id and projects.deleted is null))"
)


@dataclass(frozen=True, slots=True)
class PartFilter:
    """Conditions on the listed parts of a project; None: any."""

    state: PartState | None = None
    has_audio: bool | None = None
    """Whether a take is chosen, of the current text or of an earlier one."""
    has_note: bool | None = None
    """Whether a listener's note on one of its takes is still open."""
    character: str | None = None
    """The id of the character who speaks; blank: the narrator."""
    is_unsure: bool = False
    """True: only parts whose speaker is unsure and not confirmed by a person."""
    ids: Sequence[str] | None = None
    """Only these parts."""

    def where(self, project_id: str) -> tuple[str, list[object]]:
        """A condition on parts, and its values."""
        conditions, values = ["project_id = ?"], list[object]([project_id])
        if self.state is not None:
            conditions.append("state = ?")
            values.append(self.state)
        if self.has_audio is not None:
            conditions.append(f"chosen is {'not ' if self.has_audio else ''}null")
        if self.has_note is not None:
            conditions.append(f"{'' if self.has_note else 'not '}{_NOTED}")
        if self.character is not None:
            conditions.append("coalesce(character, '') = ?")
            values.append(self.character)
        if self.is_unsure:
            conditions.append(f"confidence < {SURE} and confirmed = 0")
        if self.ids is not None:
            conditions.append("id in (select value from json_each(?))")
            values.append(json.dumps(list(self.ids)))
        return " and ".join(conditions), values


ALL_PARTS = PartFilter()


class Projects:
    """The projects of a library. Calls block for milliseconds.

    ``owner_filter`` limits every call to this owner's own projects and those that others share with it. None allows
    all. Calls raise NotAllowed if the right is missing, and NotFound for projects that the owner cannot see.
    """

    def __init__(self, store: Store, trash: Trash) -> None:
        self._store = store
        self._trash = trash
        count = "(select count(*) from parts where project_id = projects.id)"
        listed = f"select id, title, owner, null, deleted, {count}, null, n from projects where deleted > 0"
        trash.kinds["project"] = Trashed("projects", listed, _remove, _put_back)

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
        wanted_id: str = "",
    ) -> Project:
        """Create a project of these parts, none of them queued; ``wanted_id``: its id, unless another one has it,
        perhaps in the trash. Raises InvalidRequest."""
        title = clean_title(title)
        now, project_id = time.time(), f"proj_{secrets.token_hex(12)}"
        if wanted_id:
            with self._store.reading() as db:
                project_id = project_id if db.table("projects").count_where("id = ?", [wanted_id]) else wanted_id
        row: dict[str, Any] = {"id": project_id, "owner": owner, "title": title, "kind": kind, "sharing": "private"}
        row |= {"settings": json.dumps(settings.as_dict()), "skipped": json.dumps(skipped)}
        row |= {"paused": 0, "served": 0.0, "created": now, "changed": now}
        # In ascending order, so that their index is written from one end to the other, then and at each later change.
        ids = sorted(f"part_{secrets.token_hex(12)}" for _ in parts)
        rows = [
            part_row(project_id, part, part_id, PLACES_APART * number, predecessor)
            for number, (part, part_id, predecessor) in enumerate(zip(parts, ids, [None, *ids], strict=False))
        ]
        named = encoded_table([(part.name, part.cells) for part in parts if part.name])
        characters = [character_row(project_id, character) for character in cast]
        with self._store.writing() as db:
            if _count(db, owner) >= MAX_PROJECTS:
                raise _too_many()
            db.table("projects").insert(row)
            if rows:
                add_parts(db, rows)
            if named != "[]":
                keep_table(db, project_id, named)
            db.table("characters").insert_all(characters)
            _put_cover(db, project_id, cover)
            return project_of(db, project_id, owner)

    def get(self, project_id: str, owner_filter: str | None) -> Project:
        """Raises NotFound."""
        with self._store.reading() as db:
            return project_of(db, project_id, owner_filter)

    def check(self, project_id: str, owner_filter: str | None, needed: Right) -> None:
        """Check a right before long work that later makes changes without this owner. Raises NotFound, NotAllowed."""
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter, needed)

    def page(
        self, owner_filter: str | None, limit: int = 50, after: str | None = None, under_way: str | None = None
    ) -> list[Project]:
        """Projects, newest first; ``after`` is the id of the last one on the previous page; ``under_way``: only those
        with parts in the queue, and these, a JSON list of ids. Raises NotFound."""
        with self._store.reading() as db:
            where, values = f"{readable('?1')} and deleted is null", list[object]([owner_filter])
            if after is not None:
                last = row_of(db, after, owner_filter, param="after")
                where, values = f"{where} and n < ?2", [owner_filter, last["n"]]
            elif under_way is not None:
                where += f" and (id in (select value from json_each(?2)) or {_QUEUED})"
                values.append(under_way)
            limit = min(max(limit, 1), MAX_PAGE + 1)
            rows = list(db.table("projects").rows_where(where, values, order_by="n desc", limit=limit))
            return projects_of(db, rows, owner_filter)

    @again_if_outdated
    def edit(
        self,
        project_id: str,
        owner_filter: str | None,
        title: str | None = None,
        settings: ProjectSettings | None = None,
        sharing: str | None = None,
        before: ProjectSettings | None = None,
    ) -> Project:
        """Rename a project or change its settings, which makes parts with other settings stale; only its owner may
        share it. ``before``: the settings that were changed.

        Raises NotFound, InvalidRequest.
        """
        recipes = None if settings is None else self._recipes(project_id, owner_filter, settings, before)
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter, None if sharing is None else "own")
            old_settings = settings_of(db, row)
            if sharing is not None:
                row["sharing"] = clean_sharing(sharing)
            if title is not None:
                row["title"] = clean_title(title)
            if settings is not None:
                row["settings"] = json.dumps(settings.onto(old_settings, before or old_settings).as_dict())
            touch(db, row)
            recipes = recipes_of(db, row, recipes)
            if any(getattr(old_settings, name) != getattr(recipes.settings, name) for name in SPOKEN_WITH):
                update_states(db, recipes, f"project_id = ? and {AT_REST}", [project_id])
            return project_of(db, project_id, owner_filter)

    def _recipes(
        self, project_id: str, owner_filter: str | None, settings: ProjectSettings, before: ProjectSettings | None
    ) -> Recipes:
        """The parts' recipes with these settings, if they change any: seconds of work, done without the write lock."""
        with self._store.reading() as db:
            row = row_of(db, project_id, owner_filter)
            old_settings = settings_of(db, row)
            new_settings = settings.onto(old_settings, before or old_settings)
            recipes = recipes_of(db, row | {"settings": json.dumps(new_settings.as_dict())})
            if any(getattr(old_settings, name) != getattr(recipes.settings, name) for name in SPOKEN_WITH):
                outcome_of(db, recipes, f"project_id = ? and {AT_REST}", [project_id])
        return recipes

    def delete(self, project_id: str, owner_filter: str | None) -> None:
        """Move a project to the trash. Raises NotFound.

        Parts being generated are queued again, where they wait until the project is restored.
        """
        with self._trash.deleting() as db:
            row = row_of(db, project_id, owner_filter, "own")
            db.execute(
                "update all_parts set state = 'queued' where project_id = ? and state = 'speaking'", [project_id]
            )
            mark(db, "projects", [row["id"]])

    def parts(
        self,
        project_id: str,
        owner_filter: str | None,
        offset: int = 0,
        limit: int = -1,
        filters: PartFilter = ALL_PARTS,
        only_chosen: bool = False,
    ) -> list[Part]:
        """A project's parts in order, with all their takes or the chosen ones; -1: all parts. Raises NotFound."""
        where, values = filters.where(project_id)
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            return parts_of(db, where, values, limit, offset, only_chosen, is_complete=filters == ALL_PARTS)

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
        query = f"select id from parts where {where} order by place limit ? offset ?"
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            return [row[0] for row in db.execute(query, [*values, limit, offset]).fetchall()]

    def count_parts(self, project_id: str, owner_filter: str | None, filters: PartFilter) -> int:
        """Raises NotFound."""
        where, values = filters.where(project_id)
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            return int(db.execute(f"select count(*) from parts where {where}", values).fetchone()[0])

    def voices(self, project_id: str, owner_filter: str | None) -> set[str]:
        """The voices that its parts name. Raises NotFound."""
        query = "select distinct voice from parts where project_id = ? and voice is not null"
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            return {voice for [voice] in db.execute(query, [project_id]).fetchall()}

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

    def cover(self, project_id: str, owner_filter: str | None) -> Cover | None:
        """The cover; None without one. Raises NotFound."""
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            for row in db.table("covers").rows_where("project_id = ?", [project_id]):
                return Cover(row["image"], row["media_type"])
        return None

    def version(self, project_id: str) -> int:
        """A number that any change of the project, its cover or its parts changes. Raises NotFound. Reads all parts."""
        with self._store.reading() as db:
            row = row_of(db, project_id, None)
            parts = db.execute("select * from parts where project_id = ? order by n", [project_id]).fetchall()
        return hash((*row.values(), *parts))

    def recent_pace(self) -> float | None:
        """Average seconds of work per character of the newest parts of all projects; None before the first take."""
        newest = "select work_s, worked from all_parts where worked > 0 order by n desc limit 50"
        with self._store.reading() as db:
            work, characters = db.execute(f"select sum(work_s), sum(worked) from ({newest})").fetchone()
        return work / characters if characters else None

    def set_cover(self, project_id: str, owner_filter: str | None, cover: Cover | None) -> Project:
        """Set or replace a project's cover; None removes it. Raises NotFound."""
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            _put_cover(db, project_id, cover)
            touch(db, row)
            return project_of(db, project_id, owner_filter)

    def queue_parts(
        self, project_id: str, owner_filter: str | None, selection: PartSelection, chapter: str | None = None
    ) -> Project:
        """Queue parts and resume the project; ``chapter``: only of the chapter that begins with it. Raises NotFound."""
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            update = "update all_parts set state = 'queued', attempts = 0, error = null"
            update += " where project_id = ? and deleted is null"
            if isinstance(selection, str):
                condition, bounds = _CONDITIONS[selection], list[int]()
                if chapter is not None:
                    bounds = places_of_chapter(db, project_id, chapter)
                    condition += " and place >= ? and place < ?"
                db.execute(f"{update} and {condition}", [project_id, *bounds])
            elif chapter is not None:
                raise InvalidRequest("send either a list of parts or a chapter, not both", "chapter")
            else:
                values = [project_id, json.dumps(list(dict.fromkeys(selection)))]
                ids_of(db, project_id, selection)
                db.execute(f"{update} and id in (select value from json_each(?)) and state != 'speaking'", values)
            touch(db, row | {"paused": 0})
            return project_of(db, project_id, owner_filter)

    def pause(self, project_id: str, owner_filter: str | None, paused: bool) -> Project:
        """Pause or resume a project; a paused one starts no more parts. Raises NotFound."""
        with self._store.writing() as db:
            touch(db, row_of(db, project_id, owner_filter) | {"paused": int(paused)})
            return project_of(db, project_id, owner_filter)

    @again_if_outdated
    def cancel(self, project_id: str, owner_filter: str | None) -> Project:
        """Remove all unfinished parts from the queue. Raises NotFound."""
        queued = "project_id = ? and state in ('queued', 'speaking')"
        with self._store.reading() as db:
            recipes = recipes_of(db, row_of(db, project_id, owner_filter, "edit"))
            outcome_of(db, recipes, queued, [project_id])
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            update_states(db, recipes_of(db, row, recipes), queued, [project_id])
            touch(db, row | {"paused": 0})
            return project_of(db, project_id, owner_filter)


def _put_cover(db: Database, project_id: str, cover: Cover | None) -> None:
    db.table("covers").delete_where("project_id = ?", [project_id])
    if cover is not None:
        row = {"project_id": project_id, "digest": cover.digest, "media_type": cover.media_type}
        db.table("covers").insert(row | {"image": cover.image})


def _put_back(db: Database, rows: Sequence[dict[str, Any]], _: Prepared) -> None:
    """Restore projects; those with queued parts are paused until someone resumes them. Raises InvalidRequest."""
    for row in rows:
        if _count(db, row["owner"]) >= MAX_PROJECTS:
            raise _too_many()
        db.execute(f"update projects set deleted = null, paused = max(paused, {_QUEUED}) where n = ?", [row["n"]])


def _remove(db: Database, until: float) -> set[str]:
    """Remove some of the first expired project: its takes, then its parts, then the project."""
    for [project_id] in db.execute("select id from projects where deleted <= ? limit 1", [until]).fetchall():
        # The rest of it cannot be restored now.
        db.execute("update projects set deleted = 0 where deleted > 0 and id = ?", [project_id])
        if takes := remove_takes(db, "part_id in (select id from all_parts where project_id = ?)", project_id):
            return {take["audio"] for take in takes if take["audio"]}
        some = f"select n from all_parts where project_id = ? limit {_PARTS_AT_ONCE}"
        if not db.execute(f"delete from all_parts where n in ({some})", [project_id]).rowcount:
            db.execute("delete from projects where id = ?", [project_id])
            db.execute("delete from replaced_entries where subject = ?", [project_id])
    return set()


def _count(db: Database, owner: str) -> int:
    query = "select count(*) from projects where owner = ? and deleted is null"
    return int(db.execute(query, [owner]).fetchone()[0])


def _too_many() -> InvalidRequest:
    return InvalidRequest(f"there are already {MAX_PROJECTS} projects, the maximum; delete some first", "projects")


class ProjectLibrary(Library):
    def __init__(self, home: Path, trash_days: float = TRASH_DAYS, has_keys: bool = False) -> None:
        super().__init__(home, trash_days, has_keys)
        store, trash = self.store, self.trash
        self.takes.readable = READABLE
        self.projects = Projects(store, trash)
        # After its project, and before parts and texts, whose recipes it changes:
        trash.kinds["dictionary"] = trash.kinds.pop("dictionary")
        self.arrangement = Arrangement(store, trash)
        self.replacements = Replacements(store, trash)
        self.tables = TableUpdates(store, trash)
        self.cast = Cast(store, trash)
        self.part_edits = PartEdits(store)
        self.part_queue = PartQueue(store)
        self.proofs = Proofs(store)

    @staticmethod
    def _check_dictionary(db: Database, dictionary: DictionaryScope, viewer: str | None) -> None:
        if dictionary.scope == "project":
            row_of(db, dictionary.subject, viewer)
        else:
            Library._check_dictionary(db, dictionary, viewer)

    _prepare_respelling = staticmethod(prepare_respelling)

    def assign_owners(self, owners: Mapping[str, str], first_owner: str) -> None:
        """Pauses the projects of owners whose keys are gone, too: nobody sees them, or could stop them."""
        super().assign_owners(owners, first_owner)
        gone = f"paused = 0 and {_QUEUED} and owner not in (select value from json_each(?))"
        with self.store.writing() as db:
            known = json.dumps([first_owner, *owners.values()])
            count = db.execute(f"update projects set paused = 1 where {gone}", [known]).rowcount
        if count:
            log.warning("%d projects whose owners' keys are gone are paused; with the key they can be resumed", count)

    def _change_owner(self, db: Database, new_owner: str, condition: str, old_owner: str) -> Adopted:
        adopted = super()._change_owner(db, new_owner, condition, old_owner)
        update = f"update projects set owner = ? where owner {condition}"
        return replace(adopted, projects=db.execute(update, [new_owner, old_owner]).rowcount)
