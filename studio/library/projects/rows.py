"""Rows of projects, parts and takes as their records, and the state that a part has at rest."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from studio.errors import InvalidRequest, NotFound
from studio.library.checks import clean_text
from studio.library.projects.records import (
    MAX_PART_TEXT,
    MAX_PAUSE,
    PART_STATES,
    Part,
    PartState,
    PartTake,
    Project,
    ProjectSettings,
)
from studio.library.pronunciations.entries import Shelf, entries_on
from studio.library.sqlite import Database, select
from studio.strings import mended

AFRESH: dict[str, Any] = {"state": "new", "attempts": 0, "error": None}
"""What becomes of a part that failed once it has other words or another voice."""


def settle(db: Database, part: Part, settings: ProjectSettings, at_rest: bool = False) -> None:
    """Give a part the state that follows from its chosen take; one under way or failed keeps its own."""
    if part.state in ("queued", "speaking", "failed") and not at_rest:
        return
    take = part.take
    fits = take is not None and take.recipe == settings.recipe(part.text, part.voice)
    state: PartState = "new" if take is None else "done" if fits else "stale"
    db.execute("update parts set state = ? where id = ?", [state, part.id])


def row_of(db: Database, project_id: str, sees: str | None) -> dict[str, Any]:
    """Raises NotFound for a project that does not exist, is deleted, or is not of ``sees``; None sees all."""
    mine = "id = ?1 and (?2 is null or owner = ?2) and deleted is null"
    for row in db.table("projects").rows_where(mine, [project_id, sees]):
        return row
    raise NotFound(f"there is no project {project_id[:80]!r}", "project")


def number_of(db: Database, part_id: str) -> int:
    return int(db.execute("select n from parts where id = ?", [part_id]).fetchone()[0])


def settings_of(db: Database, row: dict[str, Any]) -> ProjectSettings:
    known = {each.name for each in fields(ProjectSettings)}
    kept: dict[str, Any] = {name: value for name, value in json.loads(row["settings"]).items() if name in known}
    if kept.get("voice"):
        kept["voice"] = mended(kept["voice"])
    return ProjectSettings(**kept | {"pronunciations": tuple(entries_on(db, Shelf("project", row["id"])))})


def settle_all(db: Database, row: dict[str, Any]) -> None:
    """`settle` every part of a project that was spoken."""
    settings = settings_of(db, row)
    for part in parts_of(db, "project_id = ? and chosen is not null", [row["id"]]):
        settle(db, part, settings)


def part_of(db: Database, project_id: str, part_id: str) -> Part:
    for part in parts_of(db, "project_id = ? and id = ?", [project_id, part_id]):
        return part
    raise NotFound(f"the project has no part {part_id[:80]!r}", "part")


def parts_of(
    db: Database, where: str, values: Sequence[object], limit: int | None = None, offset: int | None = None
) -> list[Part]:
    rows = list(db.table("parts").rows_where(where, values, order_by="position", limit=limit, offset=offset or None))
    if limit is None and not offset:
        inner = f"part_id in (select id from parts where {where})"
        takes = db.table("part_takes").rows_where(inner, values, order_by="n desc")
    else:
        ids = [row["id"] for row in rows]
        takes = db.table("part_takes").rows_where(f"part_id in ({','.join('?' * len(ids))})", ids, order_by="n desc")
    by_part: dict[str, list[PartTake]] = {}
    for take in takes:
        by_part.setdefault(take["part_id"], []).append(take_of(take))
    return [Part(**{k: v for k, v in row.items() if k != "n"}, takes=tuple(by_part.get(row["id"], ()))) for row in rows]


def project_of(db: Database, project_id: str, sees: str | None) -> Project:
    return as_project(db, row_of(db, project_id, sees))


def as_project(db: Database, row: dict[str, Any]) -> Project:
    sums = "select state, count(*) as parts, sum(length(text)) as characters from parts where project_id = ?"
    states = {each["state"]: each for each in select(db, f"{sums} group by state", [row["id"]])}
    mine = "from part_takes join parts on parts.id = part_takes.part_id where parts.project_id = ?"
    # What has a time of its own, as subtitles have, begins then, or once the one before it is over.
    onward = "sum(1.0 * samples / sample_rate) over (order by position desc) as seconds"
    heard = f"select start, {onward} {mine} and parts.chosen = part_takes.id"
    seconds = db.execute(f"select max(coalesce(start, 0) + seconds) from ({heard})", [row["id"]]).fetchone()[0]
    work, spoken = db.execute(f"select sum(work_s), sum(part_takes.characters) {mine}", [row["id"]]).fetchone()
    cover = db.execute("select digest from covers where project_id = ?", [row["id"]]).fetchone()
    left = sum(states[state]["characters"] for state in ("queued", "speaking") if state in states)
    return Project(
        id=row["id"],
        owner=row["owner"],
        title=row["title"],
        kind=row["kind"],
        settings=settings_of(db, row),
        paused=bool(row["paused"]),
        created=row["created"],
        changed=row["changed"],
        parts={state: states[state]["parts"] if state in states else 0 for state in PART_STATES},
        characters=sum(each["characters"] for each in states.values()),
        characters_left=left,
        seconds=seconds or 0.0,
        pace=work / spoken if spoken else None,
        cover=cover[0] if cover else None,
    )


def clean_part(text: str) -> str:
    """The text of a part. Raises InvalidRequest."""
    text = clean_text("text", text, MAX_PART_TEXT)
    if not text:
        raise InvalidRequest("a part needs text: it is blank", "text")
    return text


def clean_pause(pause: float) -> float | None:
    """Seconds; below 0: the project's. Raises InvalidRequest."""
    if pause > MAX_PAUSE:
        raise InvalidRequest(f"pause must be from 0 to {MAX_PAUSE:g} seconds", "pause")
    return None if pause < 0 else pause


def touch(db: Database, row: dict[str, Any]) -> None:
    """Keep a project's row, changed now."""
    db.table("projects").upsert(row | {"changed": time.time()}, pk="n")


def take_of(row: dict[str, Any]) -> PartTake:
    return PartTake(**{name: value for name, value in row.items() if name != "n"})
