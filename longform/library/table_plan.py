"""Compares a project with a new version of the table that it was made from, and plans what that changes: rows are known
by their ids.

Only what differs between two versions of the table is applied, cell by cell, so each project keeps the version that it
was last given: that shows which lines somebody has deleted, merged, moved or renamed here.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from longform.library.cast_repository import character_row
from longform.library.part_arrangement import new_part_id, prepare
from longform.library.part_order import AMONG, LENDS, count_parts, mark_deleted
from longform.library.project_records import (
    DIRECTED,
    Direction,
    NewPart,
    ProjectSettings,
    ReplacedValues,
)
from longform.library.project_schema import PLACES_APART
from longform.library.row_mapping import (
    AT_REST,
    add_parts,
    clean_part,
    part_row,
    recipes_of,
    reset_failed,
    settings_of,
    touch,
    update_states,
    write_part,
)
from manuscript.passages import MAX_CAST_CHARACTERS, MAX_PARTS, Column, Document, Passage
from manuscript.table import of_rows, passage_of
from speechtext.script import with_tags
from speechtext.tags import manner_tags
from studio.errors import InvalidRequest
from studio.library.schema import Database, select
from studio.library.trash import Prepared, now

_SPOKEN = ("text", "direction")
_SOURCES = {
    "character": ("character",),
    "voice": ("voice", "character"),
    "pause": ("pause",),
    "scene": ("scene",),
}
"""Fields of a part, and the roles of the cells that they follow from; the first one is its own."""

BEGIN = "update all_parts set chapter = ?2, chapter_of = null where id = ?1 and chapter != ?2"

NewPartOf = Callable[[Passage, str | None, ProjectSettings], NewPart]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LineChange:
    """One row of which the new table says something else."""

    name: str  # the id of the row
    change: Literal["added", "changed", "gone"]
    columns: tuple[str, ...] = ()
    """The roles of the changed cells, or the names of columns without a role."""
    cells: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By these columns, what the cell said and says now."""
    before: str = ""
    after: str = ""  # the texts


@dataclass(frozen=True, slots=True)
class TableUpdate:
    lines: tuple[LineChange, ...]
    """Changes in the order of the new table; lines that are gone come last."""
    same: int  # number of rows without a change
    replaced: Sequence[ReplacedValues] = ()  # in parts, once it was applied
    undo: str = ""  # for `TableUpdates.undo`


@dataclass(frozen=True, slots=True)
class Known:
    """The lines of a project, and the version of its table that it was last given."""

    base: dict[str, str]  # the cells of each row of that version, by its folded id, in its order
    columns: Mapping[str, str]  # the roles of its columns
    lines: dict[str, list[Row]]
    """The parts by the folded ids of their rows, else by their own ids; a row that was split has several."""
    trashed: list[Row]  # the last deleted first

    def before(self, key: str) -> dict[str, str] | None:
        """The cells of a row by role; None for a line that the table did not have."""
        return _by_role(self.base[key], self.columns) if key in self.base else None


def tables_of(db: Database, project_id: str) -> list[tuple[str]]:
    return db.execute("select rows from tables where project_id = ?", [project_id]).fetchall()


def placed_of(db: Database, project_id: str) -> tuple[str, ...]:
    """The ids of all parts, deleted ones too, in their order."""
    query = "select id from all_parts where project_id = ? order by place, n"
    return tuple(part_id for [part_id] in db.execute(query, [project_id]))


def check_size(count: int) -> None:
    if count > MAX_PARTS:
        raise InvalidRequest(f"the project would have more than {MAX_PARTS} parts, the maximum", "file")


def last_table(known: Known) -> Document:
    """The version of its table that a project was last given, without texts."""
    titles = ((key, (known.before(key) or {}).get("chapter", "")[:200]) for key in known.base)
    rows = of_rows(Passage("-", title, name=key, cells=known.base[key]) for key, title in titles)
    return replace(rows, columns=tuple(Column(name, role) for name, role in known.columns.items()))


def _key(line: LineChange | Passage) -> str:
    return line.name.casefold()


def version_of(db: Database, row: Row) -> tuple[object, ...]:
    """Differs after each change of a project's lines, and once some of them are removed for good."""
    query = "select count(*), max(n) from all_parts where project_id = ? and deleted > 0"
    return row["changed"], *db.execute(query, [row["id"]]).fetchone()


def known_of(db: Database, row: Row, document: Document) -> Known:
    """Raises InvalidRequest for a project whose lines have no ids."""
    speaker = "coalesce((select name from characters where characters.id = parts.character), '') as speaker"
    columns = f"n, id, name, cells, text, chapter, voice, pause, scene, character, {', '.join(DIRECTED)}, {speaker}"
    query = f"select {columns} from parts where project_id = ? order by place"
    listed, lines = {_key(passage) for passage in document.passages}, dict[str, list[Row]]()
    for part in select(db, query, [row["id"]]):
        key = part["id"] if part["id"] in listed or not part["name"] else part["name"].casefold()
        lines.setdefault(key, []).append(part)
    base = {name.casefold(): cells for [table] in tables_of(db, row["id"]) for name, cells in json.loads(table)}
    if not base and not any(parts[0]["name"] for parts in lines.values()):
        message = "the lines of this project have no ids: it was not made from a table with a column of ids"
        raise InvalidRequest(f"{message}. Make a new project from the table", "project")
    query = "select * from all_parts where project_id = ? and deleted > 0 order by deleted desc, n desc"
    return Known(base, settings_of(db, row).columns, lines, list(select(db, query, [row["id"]])))


def compare(known: Known, document: Document) -> TableUpdate:
    if any(not passage.name for passage in document.passages):
        raise InvalidRequest("every row of the table needs an id, and one line of text", "file")
    columns = {column.name: column.role for column in document.columns if column.role}
    lines, names = list[LineChange](), {_key(passage) for passage in document.passages}
    for passage in document.passages:
        parts, before = known.lines.get(_key(passage)), known.before(_key(passage))
        differing = _differing(before, parts, passage, columns)
        if parts is None and (before is None or differing):
            lines.append(LineChange(passage.name, "added", after=passage.text))
        elif parts and differing:
            lines.append(LineChange(passage.name, "changed", tuple(differing), differing, _text(parts), passage.text))
    same = len(document.passages) - len(lines)
    gone = [known.lines[key] for key in known.base if key not in names and key in known.lines]
    return TableUpdate((*lines, *(LineChange(parts[0]["name"], "gone", before=_text(parts)) for parts in gone)), same)


def _superseded(known: Known, line: LineChange) -> Sequence[Row]:
    """The parts that a change moves to the trash: those of a line that is gone, and the further ones of a line that was
    split and gets another text."""
    parts = known.lines.get(_key(line), [])
    return parts if line.change == "gone" else parts[1:] if "text" in line.columns else []


def _is_own(known: Known, passage: Passage) -> bool:
    """Whether the row is a part that no table had: a manifest names it by the part's own id."""
    return _key(passage) in known.lines and known.lines[_key(passage)][0]["name"].casefold() != _key(passage)


def _text(parts: Sequence[Row]) -> str:
    return " ".join(part["text"] for part in parts)


def _differing(
    before: Mapping[str, str] | None, parts: Sequence[Row] | None, passage: Passage, columns: Mapping[str, str]
) -> dict[str, tuple[str, str]]:
    """The columns, by role or else by name, that differ both from the row's earlier version and from the part as it is;
    with what they said and say now.

    A table that was exported from the project repeats the part as it is. A new column without a role does not count.
    """
    now: dict[str, str | None] = {}
    if parts:
        first, last = parts[0], parts[-1]
        pause, text = "" if last["pause"] is None else f"{last['pause']:g}", _text(parts)
        now = {
            "voice": first["voice"] or "",
            "character": first["speaker"],
            "chapter": first["chapter"],
            "pause": pause,
        }
        now |= {"scene": "1" if last["scene"] else "", "text": text}
        now |= dict.fromkeys(_SPOKEN) if text.split() == passage.text.split() else {}
    return {
        name: (now.get(name) or (before or {}).get(name, ""), cell)
        for name, cell in _by_role(passage.cells, columns).items()
        if cell != (before or {}).get(name, now.get(name, cell))
        and name not in ("continues", "id")
        and (name not in now or now[name] not in (None, cell))
    }


def _by_role(cells: str, columns: Mapping[str, str]) -> dict[str, str]:
    """The cells of a row by the role of their column, or by its name."""
    row = {columns.get(name) or name: cell.strip() for name, cell in json.loads(cells or "{}").items()}
    with contextlib.suppress(ValueError, KeyError):
        row["pause"] = f"{float(row['pause'].replace(',', '.')):g}"
    return row


def _returning(known: Known, update: TableUpdate) -> Iterator[Row]:
    """The parts that come back from the trash: lines with changes that were deleted, and what was merged into lines
    that get another text."""
    by_id, wanted = {row["id"]: row for row in known.trashed}, set[str]()
    last = {row["name"].casefold(): row["id"] for row in reversed(known.trashed)}
    merged = dict[str, list[str]]()
    for row in known.trashed:
        if row["merged_into"]:
            merged.setdefault(row["merged_into"], []).append(row["id"])
    for line in update.lines:
        if line.change == "added" and _key(line) in last:
            wanted.add(last[_key(line)])
        elif not set(_SPOKEN).isdisjoint(line.columns):
            wanted.update(part_id for part in known.lines[_key(line)] for part_id in merged.get(part["id"], ()))
    for row in reversed(known.trashed):  # with those into which they were merged, if these are in the trash
        into = by_id.get(row["merged_into"] or "")
        if row["id"] in wanted and into and into["merged_into"]:
            wanted.add(into["id"])
    return (row for row in known.trashed if row["id"] in wanted)


class Plan:
    """What an update makes of a project, to be written later; ``update``: what changes, if that is known."""

    def __init__(
        self, db: Database, project: Row, document: Document, make: NewPartOf, update: TableUpdate | None = None
    ) -> None:
        """Raises InvalidRequest."""
        self.version, self.known, self.make = version_of(db, project), known_of(db, project, document), make
        self.update = update or compare(self.known, document)
        self.returning = [] if update else list(_returning(self.known, self.update))
        """Parts to return from the trash, with what is prepared for that; then another plan is to be made."""
        self.prepared: Prepared = {}
        prepare(db, self.returning, self.prepared)
        self.ids = dict[str, str]()
        """The first part of each row that has one, by the row's folded id."""
        self._added, self._stale = list[Row](), list[int]()
        self._values = dict[tuple[str, ...], list[tuple[Any, ...]]]()
        """By columns: their values, and the number of a part's row."""
        self._project_id, self._recipes = project["id"], recipes_of(db, project)
        self._columns = {column.name: column.role for column in document.columns if column.role}
        self._changed = {_key(line) for line in self.update.lines}
        self.cast = _Cast(db, project["id"], self.known, document)
        self._predecessor: str | None = None
        for passage in document.passages:
            self._add(passage)
        self._order, self._chapters = _order(self.known, self.ids, document), _chapters(self.known, self.ids, document)
        rows = [passage for passage in document.passages if not _is_own(self.known, passage)]
        self.table = encoded_table((passage.name, passage.cells) for passage in rows)
        self.gone = [part["id"] for line in self.update.lines for part in _superseded(self.known, line)]

    @property
    def numbers(self) -> list[int]:
        """Of the rows of the parts that it changes."""
        return [values[-1] for rows in self._values.values() for values in rows]

    @property
    def added(self) -> list[str]:
        return [part["id"] for part in self._added]

    def write(self, db: Database, row: Row) -> None:
        """Raises InvalidRequest."""
        mark_deleted(db, self._project_id, self.gone, now())
        db.table("characters").insert_all(self.cast.added)
        for columns, values in self._values.items():
            assigned = ", ".join(f'"{name}" = ?' for name in columns)
            db.conn.executemany(f"update all_parts set {assigned} where n = ?", values)
        if self._added:
            add_parts(db, self._added)
        check_size(count_parts(db, self._project_id))
        settings, added = settings_of(db, row), {*self.added}
        place_all(db, self._project_id, self._order, added, settings.closing_part)
        db.conn.executemany(BEGIN, self._chapters)
        _begin_after_credits(db, settings.opening_part, self._order, added)
        stale = json.dumps(self._stale)
        reset_failed(db, f"n {AMONG}", [stale])
        update_states(db, recipes_of(db, row, self._recipes), f"n {AMONG} and {AT_REST}", [stale])
        keep_table(db, self._project_id, self.table)
        touch(db, row | {"settings": json.dumps(settings.as_dict() | {"columns": self._columns})})

    def _add(self, passage: Passage) -> None:
        """Raises InvalidRequest."""
        key = _key(passage)
        parts, is_changed = self.known.lines.get(key), key in self._changed
        if parts is None and not is_changed:  # somebody has deleted it
            return
        part = None
        if is_changed:
            part = self.make(passage, self.cast.find(passage.speaker), self._recipes.settings)
        if parts is None:
            assert part is not None
            self._added.append(part_row(self._project_id, part, new_part_id(), 0, self._predecessor))
            self.ids[key] = self._predecessor = self._added[-1]["id"]
            return
        self.ids[key], self._predecessor = parts[0]["id"], parts[-1]["id"]
        columns = tuple(_differing(self.known.before(key), parts, passage, self._columns)) if part else ()
        for number, old in enumerate(parts[:1] if "text" in columns else parts):
            is_last = "text" in columns or number == len(parts) - 1
            values = self._new_values(old, key, part, columns, number == 0, is_last) if part else {}
            if values:
                self._stale.append(old["n"])
                new = old | values
                self._recipes.of(new["text"], new["voice"], Direction(*(old[name] for name in DIRECTED)))
            if old["name"] and passage.cells != old["cells"]:
                values["cells"] = passage.cells
            if values:
                self._values.setdefault(tuple(values), []).append((*values.values(), old["n"]))

    def _new_values(
        self, old: Row, key: str, part: NewPart, columns: Sequence[str], is_first: bool, is_last: bool
    ) -> dict[str, Any]:
        """The fields of a part that follow from changed cells, unless somebody has changed here what follows only
        indirectly."""
        given = self._given(old, key)
        values = {
            name: getattr(part, name)
            for name, (own, *others) in _SOURCES.items()
            if own in columns or (old[name] in given[name] and not set(others).isdisjoint(columns))
        }
        if not is_last:
            values = {name: value for name, value in values.items() if name not in ("pause", "scene")}
        if is_first and "text" in columns:
            values["text"] = part.text
        elif is_first and "direction" in columns:
            tags = [tag[1] for tag in manner_tags(part.text)]
            values["text"] = clean_part(with_tags(old["text"], tags))
        return values

    def _given(self, old: Row, key: str) -> dict[str, tuple[Any, ...]]:
        """The values of a part that the table has given it so far."""
        given: dict[str, tuple[Any, ...]] = {name: (old[name],) for name in _SOURCES}
        if key in self.known.base:
            passage = passage_of(json.loads(self.known.base[key] or "{}"), self.known.columns)
            if passage is not None:
                before = self.make(passage, old["character"], self._recipes.settings)
                given |= {"pause": (before.pause,), "scene": (before.scene,)}
                given["voice"] = before.voice, self.cast.voices.get(old["character"])
        return given


class _Cast:
    """Finds the characters of a table in its project; ``added``: the rows of those that its changed rows need."""

    def __init__(self, db: Database, project_id: str, known: Known, document: Document) -> None:
        self._project_id, self.added = project_id, list[Row]()
        query = "select id, name, aliases, voice from characters where project_id = ? and deleted is null"
        rows = list(select(db, query, [project_id]))
        self.voices: dict[str | None, str | None] = {row["id"]: row["voice"] for row in rows}
        self._new = {character.name.casefold(): character for character in document.cast}
        speakers = dict[str, set[str | None]]()  # by the names that the table gave them: some have other names here
        for key, parts in known.lines.items():
            name = (known.before(key) or {}).get("character", "").casefold()
            speakers.setdefault(name, set()).update(part["character"] for part in parts)
        self._ids = {name: next(iter(ids)) for name, ids in speakers.items() if len(ids) == 1 and name}
        self._ids = {name: found for name, found in self._ids.items() if found}
        names = ((name, row["id"]) for row in rows for name in (*json.loads(row["aliases"]), row["name"]))
        self._ids |= {name.casefold(): character for name, character in names}

    def find(self, name: str) -> str | None:
        """Raises InvalidRequest if it would be one too many."""
        key = name.casefold()
        if key not in self._ids and (character := self._new.get(key)):
            if len(self.voices) >= MAX_CAST_CHARACTERS:
                message = f"the cast would have more than {MAX_CAST_CHARACTERS} characters, the maximum"
                raise InvalidRequest(message, "file")
            self.added.append(row := character_row(self._project_id, character))
            self._ids[key], self.voices[row["id"]] = row["id"], row["voice"]
        return self._ids.get(key)


def _order(known: Known, ids: Mapping[str, str], document: Document) -> list[str]:
    """The first parts of the rows in their new order: the table's if it has changed that, else as they are here."""
    keys = [_key(passage) for passage in document.passages if _key(passage) in ids]
    listed = set(keys)
    if [key for key in known.base if key in listed] != [key for key in keys if key in known.base]:
        return [ids[key] for key in keys]
    behind, anchor = dict[str | None, list[str]](), None
    for key in keys:
        if key in known.lines:
            anchor = key
        else:
            behind.setdefault(anchor, []).append(ids[key])
    here = [key for key in known.lines if key in listed]
    return behind.get(None, []) + [each for key in here for each in (ids[key], *behind.get(key, []))]


def place_all(db: Database, project_id: str, order: Sequence[str], added: Collection[str], closing: str | None) -> None:
    """Give these parts places in this order; all others, deleted ones too, stay behind the one before them, but those
    of a chapter that a deleted one begins before the next part, as in `groups_of`.

    ``added``: the new ones, which have no place yet; ``closing``: the closing credits, behind which nothing is added.
    """
    query = f"select id, deleted is null, {LENDS} from all_parts where project_id = ? order by place, n"
    rows = [row for row in db.execute(query, [project_id]).fetchall() if row[0] not in added]
    before = [part_id for part_id, *_ in rows]
    listed, followers, waiting = set(order), dict[str | None, list[str]](), list[str]()
    if closing is not None and closing in before and not listed.intersection(before[before.index(closing) + 1 :]):
        order = [*(part_id for part_id in order if part_id != closing), closing]
        listed.add(closing)
    anchor, ahead = None, dict[str, list[str]]()
    for part_id, is_there, begins_chapter in rows:
        if part_id in listed:
            anchor, ahead[part_id], waiting = part_id, waiting, []
        elif is_there:
            followers.setdefault(anchor, []).extend([*waiting, part_id])
            waiting = []
        else:
            (waiting if waiting or begins_chapter else followers.setdefault(anchor, [])).append(part_id)
    after = followers.get(None, [])
    after += [each for name in order for each in (*ahead.get(name, ()), name, *followers.get(name, ()))] + waiting
    if after != before:
        places = [(number * PLACES_APART, part_id) for number, part_id in enumerate(after)]
        db.conn.executemany("update all_parts set place = ? where id = ?", places)


def _chapters(known: Known, ids: Mapping[str, str], document: Document) -> list[tuple[str, str]]:
    """The parts with which chapters begin that the table now begins elsewhere, and their titles: those given here."""
    if not any(column.role == "chapter" for column in document.columns):
        return []
    before = {row.name: row.chapter for row in last_table(known).passages}
    titles = {title: known.lines[key][0]["chapter"] for key, title in before.items() if title and key in known.lines}
    return [
        (ids[_key(passage)], titles.get(passage.chapter) or passage.chapter)
        for passage in document.passages
        if _key(passage) in ids and passage.chapter != before.get(_key(passage), "")
    ]


def _begin_after_credits(db: Database, opening: str | None, order: Sequence[str], added: Collection[str]) -> None:
    """Let the chapter after the opening credits begin with a row that was added before its first one."""
    query = f"select id from parts where id {AMONG} and chapter != '' order by place limit 1"
    ids = [part_id for part_id in order if part_id != opening]
    if (
        opening is None
        or not ids
        or ids[0] not in added
        or not list(select(db, "select 1 from parts where id = ?", [opening]))
    ):
        return
    for [part_id] in db.execute(query, [json.dumps(ids)]).fetchall():
        if part_id != ids[0] and set(ids[: ids.index(part_id)]) <= set(added):
            title = "(select chapter from all_parts where id = ?)"
            db.execute(f"update all_parts set chapter = {title} where id = ?", [part_id, ids[0]])
            write_part(db, part_id, {"chapter": ""})


def encoded_table(rows: Iterable[tuple[str, str]]) -> str:
    """The ids and the cells of a table, for `keep_table`."""
    return json.dumps(list(rows))


def keep_table(db: Database, project_id: str, rows: str) -> None:
    """Keep a table as the version that its project was last given."""
    db.table("tables").upsert({"project_id": project_id, "rows": rows}, pk="project_id")
