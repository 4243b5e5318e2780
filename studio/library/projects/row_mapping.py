"""Converts rows of projects, parts and takes to their records, and derives the state of a part."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any

from studio.errors import EditConflict, InvalidRequest, NotFound
from studio.library.checks import clean_text
from studio.library.projects.project_records import (
    AS_WRITTEN,
    DIRECTED,
    MAX_PART_TEXT,
    MAX_PAUSE,
    MAX_TITLE,
    PART_STATES,
    Direction,
    NewPart,
    Part,
    PartState,
    Project,
    ProjectSettings,
    Recipes,
)
from studio.library.pronunciations.entries import DictionaryScope, EntryIndex, Pronunciation
from studio.library.pronunciations.entry_rows import entries_of, entries_of_all
from studio.library.sharing import Right, check_right, readable, right_of
from studio.library.sqlite import Database, select
from studio.library.takes.take import Take
from studio.library.takes.take_rows import take_of
from studio.unicode_text import repair_surrogates

_PART_FIELDS = {field.name for field in fields(Part)}
_FLAGS = ("scene", "confirmed")
AFRESH: dict[str, Any] = {"state": "new", "attempts": 0, "error": None}
"""Resets a failed part whose text or voice has changed."""


AT_REST = "state in ('new', 'done', 'stale') and chosen is not null"
"""Parts whose state follows from their chosen take; queued, generating and failed parts keep their state."""


def update_states(
    db: Database,
    recipes: Recipes,
    where: str,
    values: Sequence[object],
    phrases: EntryIndex | None = None,
    choose: bool = True,
) -> None:
    """Derive the state of parts from their chosen takes; with ``phrases``, only of parts whose text contains one.

    If the chosen take no longer matches its part, the newest matching take is chosen instead, unless ``choose`` is
    False. Reads only the necessary columns of parts: a project may have 20,000.
    """
    changes: list[tuple[PartState, str]] = []
    outdated: dict[str, str] = {}  # recipes of parts whose chosen take has a different one
    for part_id, text, voice, direction, state, recipe in _parts_with_recipes(db, where, values):
        if phrases is None or phrases.in_text(text):
            current_recipe = None if recipe is None else recipes.of(text, voice, direction)
            new_state: PartState = "new" if current_recipe is None else "done" if current_recipe == recipe else "stale"
            if new_state != state:
                changes.append((new_state, part_id))
            if current_recipe is not None and current_recipe != recipe:
                outdated[part_id] = current_recipe
    db.conn.executemany("update parts set state = ? where id = ?", changes)
    if choose and outdated:
        _choose(db, outdated)


def _choose(db: Database, recipes: dict[str, str]) -> None:
    """Choose the newest take of each part, by its id, that has this recipe, if there is one."""
    recipes_query = "select key as part, value as recipe from json_each(?)"
    condition = "part_id = wanted.part and takes.recipe = wanted.recipe"
    query = f"select part_id, id from ({recipes_query}) as wanted cross join takes on {condition} order by n"
    newest = dict(db.execute(query, [json.dumps(recipes)]).fetchall())
    rows = [(take_id, part_id) for part_id, take_id in newest.items()]
    db.conn.executemany("update parts set state = 'done', chosen = ? where id = ?", rows)


def settle_pronounced(db: Database, dictionary: DictionaryScope, changed: Sequence[Pronunciation]) -> None:
    """Mark the parts of a project stale whose pronunciation changed; other dictionaries do not affect it."""
    if dictionary.scope == "project":
        for row in db.table("projects").rows_where("id = ?", [dictionary.subject]):
            update_states(db, recipes_of(db, row), f"project_id = ? and {AT_REST}", [row["id"]], EntryIndex(changed))


def compute_recipes(db: Database, recipes: Recipes, where: str, values: Sequence[object]) -> None:
    """Compute the recipes for `update_states` beforehand, so that it does not compute them under the write lock."""
    for _, text, voice, direction, _, recipe in _parts_with_recipes(db, where, values):
        if recipe is not None:
            recipes.of(text, voice, direction)


def _parts_with_recipes(
    db: Database, where: str, values: Sequence[object]
) -> Iterator[tuple[str, str, str | None, Direction, str, str | None]]:
    """Id, text, voice, direction and state of parts, and the recipe of the chosen take."""
    recipe = "(select recipe from takes where takes.id = parts.chosen)"
    columns = f"id, text, voice, state, {recipe}, {', '.join(DIRECTED)}"
    for row in db.execute(f"select {columns} from parts where {where}", values).fetchall():
        part_id, text, voice, state, chosen, *direction = row
        part_direction = Direction(*direction) if any(value is not None for value in direction) else AS_WRITTEN
        yield part_id, text, voice, part_direction, state, chosen


def row_of(db: Database, project_id: str, owner_filter: str | None, needed: Right | None = None) -> dict[str, Any]:
    """The row of a project, for an owner with a right to it: ``needed``, as in `check_right`. None has all rights.

    Every access to a project and its contents uses this. Raises NotFound for a project that does not exist, is deleted,
    or is private and another owner's, and NotAllowed.
    """
    condition = f"id = ?1 and {readable('?2')} and deleted is null"
    for row in db.table("projects").rows_where(condition, [project_id, owner_filter]):
        check_right(db, f"the project {row['title']!r}", row, owner_filter, needed)
        return row
    raise NotFound(f"there is no project {project_id[:80]!r}", "project")


def row_to_restore_to(db: Database, project_id: str) -> dict[str, Any]:
    """The row of a project into which something is restored. Raises NotFound if the project itself is deleted."""
    try:
        return row_of(db, project_id, None)
    except NotFound:
        raise NotFound("its project is deleted too; restore the project first", "project") from None


def part_row(project_id: str, part: NewPart, part_id: str, position: int, predecessor: str | None) -> dict[str, Any]:
    """The row of a new part; ``predecessor``: the id of the part before it. Raises InvalidRequest."""
    continues = None if part.continues is None else (predecessor or "") if part.continues else ""
    placement = {"id": part_id, "project_id": project_id, "position": position, "continues": continues}
    return asdict(part) | AFRESH | placement | {"text": clean_part(part.text), "chosen": None}


def number_of(db: Database, part_id: str) -> int:
    return int(db.execute("select n from parts where id = ?", [part_id]).fetchone()[0])


def settings_of(db: Database, row: dict[str, Any]) -> ProjectSettings:
    return _settings(row, entries_of(db, DictionaryScope("project", row["id"])))


def recipes_of(db: Database, row: dict[str, Any]) -> Recipes:
    return Recipes(settings_of(db, row))


def _settings(row: dict[str, Any], entries: Iterable[Pronunciation]) -> ProjectSettings:
    names = {field.name for field in fields(ProjectSettings)}
    values: dict[str, Any] = {name: value for name, value in json.loads(row["settings"]).items() if name in names}
    if values.get("voice"):
        values["voice"] = repair_surrogates(values["voice"])
    return ProjectSettings(**values | {"pronunciations": tuple(entries)})


def part_of(db: Database, project_id: str, part_id: str) -> Part:
    for part in parts_of(db, "project_id = ? and id = ?", [project_id, part_id]):
        return part
    raise NotFound(f"the project has no part {part_id[:80]!r}", "part")


def parts_of(
    db: Database,
    where: str,
    values: Sequence[object],
    limit: int | None = None,
    offset: int | None = None,
    only_chosen: bool = False,
) -> list[Part]:
    """Parts with all their takes, or only the chosen ones."""
    rows = list(db.table("parts").rows_where(where, values, order_by="position", limit=limit, offset=offset or None))
    column, key = ("id", "chosen") if only_chosen else ("part_id", "id")
    condition = f"{column} in (select value from json_each(?))"
    takes = db.table("takes").rows_where(condition, [json.dumps([row[key] for row in rows])], order_by="n desc")
    by_part: dict[str, list[Take]] = {}
    for take in takes:
        by_part.setdefault(take["part_id"], []).append(take_of(take))
    flags = ({name: bool(row[name]) for name in _FLAGS} for row in rows)
    return [
        Part(
            **{k: v for k, v in row.items() if k in _PART_FIELDS} | part_flags, takes=tuple(by_part.get(row["id"], ()))
        )
        for row, part_flags in zip(rows, flags, strict=True)
    ]


def project_of(db: Database, project_id: str, owner_filter: str | None) -> Project:
    return projects_of(db, [row_of(db, project_id, owner_filter)], owner_filter)[0]


def projects_of(db: Database, rows: Sequence[dict[str, Any]], owner_filter: str | None) -> list[Project]:
    """Projects with the totals of their parts, in the same number of statements as for one."""
    ids = json.dumps([row["id"] for row in rows])
    condition = "in (select value from json_each(?))"
    columns = "count(*) as parts, sum(characters) as characters, sum(heard) as heard, sum(work_s) as work_s"
    query = (
        f"select project_id, state, {columns}, sum(worked) as worked from parts indexed by parts_sums "
        f"where project_id {condition} group by project_id, state"
    )
    sums: dict[str, dict[str, dict[str, Any]]] = {row["id"]: {} for row in rows}
    for group in select(db, query, [ids]):
        sums[group["project_id"]][group["state"]] = group
    # A part with its own time, as in subtitles, starts then, or once the previous one is over.
    timed_projects = f"select project_id from parts where project_id {condition} and start is not null"
    remaining = "sum(heard) over (partition by project_id order by position desc)"
    part_ends = (
        f"select project_id, case when heard > 0 then coalesce(start, 0) + {remaining} else 0 end as ends from parts"
    )
    query = (
        f"select project_id, max(ends) from ({part_ends} where project_id in ({timed_projects})) group by project_id"
    )
    ends_by_project = dict(db.execute(query, [ids]).fetchall())
    covers = dict(db.execute(f"select project_id, digest from covers where project_id {condition}", [ids]).fetchall())
    entries = entries_of_all(db, "project", [row["id"] for row in rows])
    return [
        _project(
            row,
            _settings(row, entries.get(row["id"], ())),
            sums[row["id"]],
            ends_by_project.get(row["id"]),
            covers,
            right_of(row, owner_filter),
        )
        for row in rows
    ]


def _project(
    row: dict[str, Any],
    settings: ProjectSettings,
    sums: dict[str, dict[str, Any]],
    end: float | None,
    covers: dict[str, str],
    right: Right,
) -> Project:
    """``end``: the end of the last take in seconds, if parts have their own times."""
    worked = sum(group["worked"] for group in sums.values())
    return Project(
        id=row["id"],
        owner=row["owner"],
        title=row["title"],
        kind=row["kind"],
        settings=settings,
        paused=bool(row["paused"]),
        created=row["created"],
        changed=row["changed"],
        parts={state: sums[state]["parts"] if state in sums else 0 for state in PART_STATES},
        characters=sum(group["characters"] for group in sums.values()),
        characters_left=sum(sums[state]["characters"] for state in ("queued", "speaking") if state in sums),
        seconds=sum(group["heard"] for group in sums.values()) if end is None else end,
        pace=sum(group["work_s"] for group in sums.values()) / worked if worked else None,
        cover=covers.get(row["id"]),
        skipped=tuple(json.loads(row["skipped"])),
        sharing=row["sharing"],
        right=right,
    )


def clean_part(text: str) -> str:
    """The text of a part. Raises InvalidRequest."""
    text = clean_text("text", text, MAX_PART_TEXT)
    if not text:
        raise InvalidRequest("a part needs text: it is blank", "text")
    return text


def check_unchanged(part: Part, text: str) -> None:
    """Raises EditConflict unless this is still the text of the part, and InvalidRequest if it is not a valid text."""
    if clean_part(text) != part.text:
        raise EditConflict("the text of this part was changed meanwhile; reload it", "text")


def clean_chapter(part: Part, title: str) -> str:
    """A new title of the chapter that begins with a part. Raises InvalidRequest."""
    if part.position and not part.chapter:
        raise InvalidRequest("no chapter begins with this part; name the first part of a chapter", "chapter")
    title = clean_text("chapter", " ".join(title.split()), MAX_TITLE)
    if not title:
        raise InvalidRequest("a chapter needs a title: it is blank", "chapter")
    return title


def clean_pause(pause: float) -> float | None:
    """Seconds; below 0 for the project's pause. Raises InvalidRequest."""
    if pause > MAX_PAUSE:
        raise InvalidRequest(f"pause must be from 0 to {MAX_PAUSE:g} seconds", "pause")
    return None if pause < 0 else pause


def clean_title(title: str) -> str:
    beginning = title.strip()[: 4 * MAX_TITLE]  # splitting millions of words would block all threads
    return clean_text("title", " ".join(beginning.split())[:MAX_TITLE], MAX_TITLE) or "Untitled"


def touch(db: Database, row: dict[str, Any]) -> None:
    """Store a project's row with the current time as its last change."""
    db.table("projects").upsert(row | {"changed": time.time()}, pk="n")
