"""Converts rows of projects, parts and takes to their records, and derives the state of a part."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from longform.library.part_order import AMONG, beginnings, positions_of
from longform.library.project_records import (
    DIRECTED,
    PART_STATES,
    RECIPE,
    Direction,
    EntryIndex,
    NewPart,
    Part,
    PartState,
    Project,
    ProjectSettings,
    Recipes,
)
from manuscript.passages import MAX_PART_TEXT, MAX_PAUSE, MAX_TITLE
from studio.errors import EditConflict, InvalidRequest, NotFound
from studio.library.checks import Right, check_right, clean_text, readable, right_of
from studio.library.pronunciation_repository import entries_of, entries_of_all
from studio.library.records import DictionaryScope, Pronunciation
from studio.library.schema import Database, select
from studio.library.store import check_current
from studio.library.take import Take
from studio.library.take_repository import take_of
from studio.library.trash import Prepared, now
from studio.unicode_text import repair_surrogates

_PART_FIELDS = {field.name for field in fields(Part)}
_NEW_FIELDS = [field.name for field in fields(NewPart)]
_FLAGS = ("scene", "confirmed")
AFRESH: dict[str, Any] = {"state": "new", "attempts": 0, "error": None}
"""Resets a failed part whose text or voice has changed."""


Reword = Callable[[str, str], str]
"""Takes the id of a part and its text; returns its new text. Equal ones give equal texts."""
_AT_REST = ("new", "done", "stale", "failed")
AT_REST = f"state in {_AT_REST} and chosen is not null"
"""Parts whose state follows from their chosen take. A failed part stays so until the take matches it; queued parts and
those being generated keep their state."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a change makes of parts, ready to be written; parts are named by the numbers of their rows."""

    edits: list[tuple[str, str, str]]  # the ids of parts with new texts, the texts before and after
    texts: list[tuple[str, PartState | None, int]]  # new texts, each with the state if it changes
    states: dict[PartState, str]
    """The new states of the other parts, each with their numbers as a JSON list."""
    rest: str
    """The numbers of the changed parts that are not in ``states``, as a JSON list."""
    failed: str
    """The numbers of those that had failed, as a JSON list: with another text, voice or direction they are new."""
    outdated: str
    """The recipes of parts whose chosen take has a different one, as a JSON object by the parts' ids."""


def update_states(
    db: Database,
    recipes: Recipes,
    where: str,
    values: Sequence[object],
    phrases: EntryIndex | None = None,
    choose: bool = True,
) -> None:
    """Derive the state of parts from their chosen takes; with ``phrases``, only of parts whose text contains one.

    If the chosen take no longer matches its part, one that does is chosen instead, unless ``choose`` is False. Reads
    only the necessary columns of parts: a project may have 20,000.
    """
    write_outcome(db, outcome_of(db, recipes, where, values, phrases=phrases), {}, choose)


def outcome_of(
    db: Database,
    recipes: Recipes,
    where: str,
    values: Sequence[object],
    columns: Mapping[str, Any] | None = None,
    reword: Reword | None = None,
    phrases: EntryIndex | None = None,
    table: Literal["parts", "all_parts"] = "parts",
) -> Outcome:
    """What becomes of parts that get these columns and texts; with None for ``columns``, what becomes of the states of
    parts as they are. ``table``: all_parts for deleted ones too.

    It is called before the write lock is taken, and again under it with the same ``recipes``: then the first outcome
    for these values is returned if the parts are still the same, and otherwise only texts that have changed since are
    read again, as ``reword`` and ``phrases`` read each text once: so little is computed while others wait.
    """
    query = f"select n, id, state, chosen, text, voice, {', '.join(DIRECTED)} from {table} where {where}"
    query += " order by place" if where.startswith("project_id") else ""  # about as they are stored: twice as fast
    given = db.execute(query, values).fetchall(), columns, reword, phrases
    key = table, where, *values
    before, outcome = recipes.outcomes.get(key, (None, None))
    if given != before:
        recipes.outcomes[key] = given, (outcome := _outcome(db, recipes, *given))
    return outcome


def _outcome(
    db: Database,
    recipes: Recipes,
    rows: Sequence[tuple[Any, ...]],
    columns: Mapping[str, Any] | None,
    reword: Reword | None,
    phrases: EntryIndex | None,
) -> Outcome:
    changed = columns or {}
    overrides = {name: changed[name] for name in DIRECTED if name in changed}
    directed = functools.cache(lambda *direction: replace(Direction(*direction), **overrides))
    query = f"select all_parts.n, recipe from all_parts join takes on takes.id = chosen where all_parts.n {AMONG}"
    known = dict(db.execute(query, [json.dumps([row[0] for row in rows])]).fetchall())
    states = dict[PartState, list[int]]()
    outcome, rest, failed, outdated = Outcome([], [], {}, "", "", ""), list[int](), list[int](), dict[str, str]()
    for number, part_id, state, chosen, text, voice, *direction in rows:
        old_state = state
        new_text = reword(part_id, text) if reword else text
        if (new_text == text and reword and not changed) or (phrases and not phrases.in_text(text)):
            continue
        new_state: PartState | None = None
        if columns is not None and state == "failed":
            failed.append(number)
            old_state = "new"
        if columns is None or (old_state in _AT_REST and chosen):
            recipe = None
            if number in known:
                recipe = recipes.of(new_text, changed.get("voice", voice), directed(*direction))
            new_state = "new" if recipe is None else "done" if recipe == known[number] else "stale"
            if old_state == "failed" and new_state != "done":
                new_state = None
            if recipe is not None and recipe != known[number]:
                outdated[part_id] = recipe
        new_state = None if new_state == old_state else new_state
        if new_text != text:
            outcome.edits.append((part_id, text, new_text))
            outcome.texts.append((new_text, new_state, number))
        if new_state and new_text == text:
            states.setdefault(new_state, []).append(number)
        else:
            rest.append(number)
    return replace(
        outcome,
        states={state: json.dumps(numbers) for state, numbers in states.items()},
        rest=json.dumps(rest),
        failed=json.dumps(failed),
        outdated=json.dumps(outdated),
    )


def write_outcome(db: Database, outcome: Outcome, columns: Mapping[str, Any], choose: bool = True) -> None:
    """Write what `outcome_of` returned for these columns: each statement rewrites the indexes of up to 20,000 parts,
    under the write lock."""
    if outcome.failed != "[]":
        reset_failed(db, f"n {AMONG}", [outcome.failed])
    db.conn.executemany("update all_parts set text = ?, state = coalesce(?, state) where n = ?", outcome.texts)
    assigned = ", ".join(f"{name} = ?" for name in columns)
    for state, numbers in outcome.states.items():
        update = f"update all_parts set {', '.join(filter(None, ('state = ?', assigned)))} where n {AMONG}"
        db.execute(update, [state, *columns.values(), numbers])
    if columns:
        db.execute(f"update all_parts set {assigned} where n {AMONG}", [*columns.values(), outcome.rest])
    if choose and outcome.outdated != "{}":
        _choose_matching(db, outcome.outdated)


def reset_failed(db: Database, where: str, values: Sequence[object]) -> None:
    """Make failed parts new: they have got another text, voice or direction."""
    update = "update all_parts set state = 'new', attempts = 0, error = null where state = 'failed'"
    db.execute(f"{update} and {where}", values)


def _choose_matching(db: Database, recipes: str) -> None:
    """Choose a take of each part that has this recipe, if there is one: the last that was chosen until another recipe's
    was, else the newest. ``recipes``: JSON, by the parts' ids."""
    recipes_query = "select key as part, value as recipe from json_each(?)"
    condition = "part_id = wanted.part and takes.recipe = wanted.recipe"
    matching = f"({recipes_query}) as wanted cross join takes on {condition} left join former_takes on take = takes.n"
    query = f"select part_id, id from {matching} order by replaced, takes.n"  # null is first, and the last is taken
    chosen = dict(db.execute(query, [recipes]).fetchall())
    rows = [(take_id, part_id) for part_id, take_id in chosen.items()]
    db.conn.executemany("update all_parts set state = 'done', chosen = ? where id = ?", rows)


def row_of(
    db: Database, project_id: str, owner_filter: str | None, needed: Right | None = None, param: str = "project"
) -> dict[str, Any]:
    """The row of a project, for an owner with a right to it: ``needed``, as in `check_right`. None has all rights.

    Every access to a project and its contents uses this. Raises NotFound for a project that does not exist, is deleted,
    or is private and another owner's, and NotAllowed.
    """
    condition = f"id = ?1 and {readable('?2')} and deleted is null"
    for row in db.table("projects").rows_where(condition, [project_id, owner_filter]):
        check_right(db, f"the project {row['title']!r}", row, owner_filter, needed)
        return row
    raise NotFound(f"there is no project {project_id[:80]!r}", param)


@contextmanager
def changing(
    transaction: AbstractContextManager[Database], project_id: str, owner_filter: str | None
) -> Iterator[tuple[Database, dict[str, Any]]]:
    """A transaction that changes a project, and its row, whose time of the last change is set at the end. Raises as
    `row_of`."""
    with transaction as db:
        row = row_of(db, project_id, owner_filter)
        yield db, row
        touch(db, row)


def row_to_restore_to(db: Database, project_id: str) -> dict[str, Any]:
    """The row of a project into which something is restored. Raises NotFound if the project itself is deleted."""
    try:
        return row_of(db, project_id, None)
    except NotFound:
        raise NotFound("its project is deleted too; restore the project first", "project") from None


def recipes_to_restore_with(db: Database, project_id: str, prepared: Prepared) -> Recipes:
    """The recipes of a project, with the entries that come back to its dictionary too; the project itself may come back
    only with them."""
    recipes: Recipes = prepared.get(project_id) or recipes_of(db, _row_in_any_state(db, project_id))
    prepared[project_id] = recipes
    return recipes


def _row_in_any_state(db: Database, project_id: str) -> dict[str, Any]:
    """The row of a project, which may be in the trash."""
    return next(select(db, "select * from projects where id = ?", [project_id]))


def part_row(project_id: str, part: NewPart, part_id: str, place: int, predecessor: str | None) -> dict[str, Any]:
    """The row of a new part; ``predecessor``: the id of the part before it. Raises InvalidRequest."""
    continues = None if part.continues is None else (predecessor or "") if part.continues else ""
    placement = {"id": part_id, "project_id": project_id, "place": place, "continues": continues}
    given = {name: getattr(part, name) for name in _NEW_FIELDS}
    return given | AFRESH | placement | {"text": clean_part(part.text), "chosen": None}


def add_parts(db: Database, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows as `part_row` returns them: one statement, as a project may begin with 20,000."""
    names = ", ".join(f'"{name}"' for name in rows[0])
    marks = ", ".join("?" for _ in rows[0])  # names take a third longer
    values = [tuple(row.values()) for row in rows]
    db.conn.executemany(f"insert into all_parts ({names}) values ({marks})", values)


def write_part(db: Database, part_id: str, values: dict[str, Any]) -> None:
    """Set columns of a part."""
    columns = ", ".join(f'"{name}" = ?' for name in values)
    db.execute(f"update all_parts set {columns} where id = ?", [*values.values(), part_id])


def settings_of(db: Database, row: dict[str, Any]) -> ProjectSettings:
    return _settings(row, entries_of(db, DictionaryScope("project", row["id"])))


def recipes_of(db: Database, row: dict[str, Any], computed: Recipes | None = None) -> Recipes:
    """The recipes of a project's parts: those ``computed`` before, unless settings that affect them have changed."""
    settings = settings_of(db, row)
    if computed is not None and all(getattr(computed.settings, name) == getattr(settings, name) for name in RECIPE):
        return computed
    check_current(computed is None)
    return Recipes(settings, computed)


def recipes_for(
    db: Database,
    recipes: Recipes,
    where: str,
    values: Sequence[object],
    new_voices: Callable[[str, str | None], Iterable[str | None]],
) -> Recipes:
    """These recipes. Those of these parts, in their own voices and in ``new_voices`` of an id and a character, are
    computed already: a second of work for the longest project, to be done without the write lock."""
    columns = f"id, text, character, voice, {', '.join(DIRECTED)}"
    query = f"select {columns} from all_parts where {where} and chosen is not null"
    for part_id, text, character, voice, *direction in db.execute(query, values).fetchall():
        for one in {voice, *new_voices(part_id, character)}:
            recipes.of(text, one, Direction(*direction))
    return recipes


def prepare_respelling(
    db: Database,
    dictionary: DictionaryScope,
    removed: Sequence[Pronunciation],
    added: Sequence[Pronunciation],
    prepared: Prepared,
) -> Callable[[Database], None]:
    """Work out which parts of a project become stale when its dictionary loses and gets these entries: seconds for the
    longest project, which may come back from the trash before the change is made. Returns what writes it, once the
    dictionary is changed, and raises `row_to_restore_to`'s error; ``prepared`` gets the recipes of the project then."""
    if dictionary.scope != "project":  # which affects no project
        return lambda db: None
    project_id = dictionary.subject
    before, after = ({(one.phrase, one.said, one.match_case): one for one in some} for some in (removed, added))
    changed = EntryIndex([(before | after)[key] for key in before.keys() ^ after.keys()])
    settings = settings_of(db, _row_in_any_state(db, project_id))
    gone = {entry.id for entry in removed}
    entries = [*(entry for entry in settings.pronunciations if entry.id not in gone), *added]
    entries.sort(key=lambda entry: (entry.phrase.encode().lower(), entry.key))  # as the library returns them
    recipes = prepared[project_id] = Recipes(replace(settings, pronunciations=tuple(entries)))
    where = f"project_id = ? and {AT_REST}"
    outcome_of(db, recipes, where, [project_id], phrases=changed)

    def write(db: Database) -> None:
        current = recipes_of(db, row_to_restore_to(db, project_id), recipes)
        update_states(db, current, where, [project_id], changed)

    return write


def _settings(row: dict[str, Any], entries: Iterable[Pronunciation]) -> ProjectSettings:
    names = {field.name for field in fields(ProjectSettings)}
    values: dict[str, Any] = {name: value for name, value in json.loads(row["settings"]).items() if name in names}
    if values.get("voice"):
        values["voice"] = repair_surrogates(values["voice"])
    return ProjectSettings(**values | {"pronunciations": tuple(entries)})


def ids_of(db: Database, project_id: str, part_ids: Sequence[str]) -> list[str]:
    """The ids of parts, each once. Raises NotFound for an unknown part."""
    query = "select id from parts where project_id = ? and id in (select value from json_each(?))"
    existing = {part_id for [part_id] in db.execute(query, [project_id, json.dumps(list(part_ids))]).fetchall()}
    for part_id in part_ids:
        if part_id not in existing:
            raise NotFound(f"the project has no part {part_id[:80]!r}", "part")
    return list(dict.fromkeys(part_ids))


def part_of(db: Database, project_id: str, part_id: str) -> Part:
    for part in parts_of(db, "project_id = ? and id = ?", [project_id, part_id]):
        return part
    raise NotFound(f"the project has no part {part_id[:80]!r}", "part")


def parts_of(
    db: Database,
    where: str,
    values: Sequence[object],
    limit: int = -1,
    offset: int = 0,
    only_chosen: bool = False,
    is_complete: bool = False,
) -> list[Part]:
    """Parts of one project, in order, with all their takes or only the chosen ones.

    ``is_complete``: the condition selects all parts of the project, so that their positions need not be counted.
    """
    query = f"select * from parts where {where} order by place limit ? offset ?"
    rows = list(select(db, query, [*values, limit, offset]))
    if not rows:
        return []
    places = [row["place"] for row in rows]
    first = range(offset, offset + len(rows))
    positions = first if is_complete else positions_of(db, rows[0]["project_id"], places)
    continued = _continued(db, rows, positions)
    column, key = ("id", "chosen") if only_chosen else ("part_id", "id")
    condition = f"{column} in (select value from json_each(?))"
    takes = select(db, f"select * from takes where {condition} order by n desc", [json.dumps([r[key] for r in rows])])
    by_part: dict[str, list[Take]] = {}
    for take in takes:
        by_part.setdefault(take["part_id"], []).append(take_of(take))
    columns = _PART_FIELDS & rows[0].keys()
    parts = []
    for row, position, continues in zip(rows, positions, continued, strict=True):
        fields = {name: row[name] for name in columns}
        fields |= {name: bool(row[name]) for name in _FLAGS} | {"position": position, "continues": continues}
        parts.append(Part(**fields, takes=tuple(by_part.get(row["id"], ()))))
    return parts


def _continued(db: Database, rows: Sequence[dict[str, Any]], positions: Sequence[int]) -> list[bool | None]:
    """Whether each part continues the paragraph of the part before it; None: unknown."""
    listed = {row["id"] for row in rows}
    replaced = beginnings(db, [link for row in rows if (link := row["continues"]) and link not in listed])
    continued: list[bool | None] = []
    previous, previous_position = None, -1
    for row, position in zip(rows, positions, strict=True):
        link = row["continues"] and replaced.get(row["continues"], row["continues"])
        if link and position != previous_position + 1:
            query = "select id from parts where project_id = ? and place < ? order by place desc limit 1"
            [previous] = db.execute(query, [row["project_id"], row["place"]]).fetchone() or (None,)
        continued.append(None if link is None else bool(link) and link == previous)
        previous, previous_position = row["id"], position
    return continued


def project_of(db: Database, project_id: str, owner_filter: str | None) -> Project:
    return projects_of(db, [row_of(db, project_id, owner_filter)], owner_filter)[0]


def projects_of(db: Database, rows: Sequence[dict[str, Any]], owner_filter: str | None) -> list[Project]:
    """Projects with the totals of their parts, in the same number of statements as for one."""
    ids = json.dumps([row["id"] for row in rows])
    condition = "in (select value from json_each(?))"
    columns = "count(*) as parts, sum(characters) as characters, sum(heard) as heard, sum(work_s) as work_s"
    query = (
        f"select project_id, state, {columns}, sum(worked) as worked from all_parts indexed by parts_sums "
        f"where deleted is null and project_id {condition} group by project_id, state"
    )
    sums: dict[str, dict[str, dict[str, Any]]] = {row["id"]: {} for row in rows}
    for group in select(db, query, [ids]):
        sums[group["project_id"]][group["state"]] = group
    # A part with its own time, as in subtitles, starts then, or once the previous one is over.
    timed = "from all_parts indexed by parts_timed where deleted is null and start is not null"
    timed_projects = f"select project_id {timed} and project_id {condition}"
    remaining = "sum(heard) over (partition by project_id order by place desc)"
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
        characters_missing=sum(sums[state]["characters"] for state in ("new", "stale", "failed") if state in sums),
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


def decision_time() -> int:
    """What a confirmed part or an accepted spot has in its column: the time in microseconds, by which a decision
    differs from another one that says the same."""
    return int(now() * 1e6)


def check_unchanged(current: str, text: str) -> None:
    """Raises EditConflict unless a part's current text is still this one, and InvalidRequest for an invalid text."""
    if clean_part(text) != current:
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
