"""Changes parts, one or many at once, and puts back what changes replaced where nobody has changed it since."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from longform.library.cast_repository import voice_of_character
from longform.library.part_order import AMONG, THESE, rename_chapter
from longform.library.project_records import (
    DIRECTED,
    Part,
    PartChanges,
    PartRange,
    Recipes,
    ReplacedValues,
    replaced_values,
)
from longform.library.row_mapping import (
    AT_REST,
    Reword,
    changing,
    check_unchanged,
    clean_chapter,
    clean_part,
    clean_pause,
    decision_time,
    ids_of,
    outcome_of,
    part_of,
    recipes_of,
    row_of,
    touch,
    update_states,
    write_outcome,
    write_part,
)
from studio.errors import EditConflict, NotFound
from studio.library.checks import check_before
from studio.library.schema import Database, select
from studio.library.store import Store, again_if_outdated

_AMONG = f"n {AMONG}"
_NUMBERED = f"+project_id = ? and {_AMONG}"
"""Parts by a JSON list of the numbers of their rows. The plus keeps SQLite from an index of the project: it would read
the whole project for each part."""
MOST_REPLACED = 10_000
"""Voices of projects in memory."""


class PartEdits:
    """Calls block for milliseconds, in proportion to the parts; ``owner_filter`` is as for Projects."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._replaced_voices = dict[tuple[str, str], None]()  # first in, first out
        self._remembering = threading.Lock()

    def edit_part(
        self, project_id: str, owner_filter: str | None, part_id: str, changes: PartChanges
    ) -> tuple[Part, list[ReplacedValues]]:
        """Change a part, which makes only this part stale; returns it, and what was replaced. Raises NotFound,
        InvalidRequest, EditConflict."""
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            part = part_of(db, project_id, part_id)
            values: dict[str, Any] = {}
            if changes.chapter is not None:
                values["chapter"] = clean_chapter(part, changes.chapter)
                if changes.chapter_before is not None:
                    check_before({"chapter": part.chapter}, {"chapter": changes.chapter_before}, values)
                rename_chapter(db, part_id, values["chapter"])
                if part.is_title and changes.text is None:  # the heading
                    changes = replace(changes, text=values["chapter"])
            if changes.text is not None:
                values["text"] = clean_part(changes.text)
            if changes.text_before is not None and part.text != values.get("text"):  # else nothing is overwritten
                check_unchanged(part.text, changes.text_before)
            if changes.take_before is not None and part.chosen not in (changes.take_before, changes.take or ""):
                raise EditConflict("another take of this part was chosen meanwhile; reload it", "take")
            if changes.take is not None and changes.take not in {take.id for take in part.takes}:
                raise NotFound(f"this part has no take {changes.take[:80]!r}", "take")
            values |= {} if changes.take is None else {"chosen": changes.take}
            if changes.credits is not None:
                write_part(db, part_id, {"credits": changes.credits})
            columns, where = _columns(db, row, changes, decision_time()), _selected(db, project_id, [part_id])
            replaced = _change(db, row, where, values, columns, changes.reword and _Reword(changes.reword))
            return part_of(db, project_id, part_id), replaced

    @again_if_outdated
    def edit_parts(
        self, project_id: str, owner_filter: str | None, selection: Sequence[str] | PartRange, changes: PartChanges
    ) -> tuple[int, list[ReplacedValues]]:
        """Change all these parts, or none; returns their number, and what was replaced. Raises NotFound,
        InvalidRequest."""
        reword, decided = changes.reword and _Reword(changes.reword), decision_time()
        with self._store.reading() as db:  # a second of work for the longest project, done without the write lock
            row = row_of(db, project_id, owner_filter, "edit")
            where = _selected(db, project_id, selection)
            recipes = recipes_of(db, row)
            columns = _columns(db, row, changes, decided)
            if _is_spoken_otherwise(columns, reword):
                outcome_of(db, recipes, _NUMBERED, where, columns, reword)
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            columns = _columns(db, row, changes, decided)
            count = "select count(*), json_array_length(?2) from parts where +project_id = ?1 and n"
            existing, selected = db.execute(f"{count} in (select value from json_each(?2))", where).fetchone()
            if existing < selected:  # some were deleted meanwhile
                _selected(db, project_id, selection)
            return existing, _change(db, row, where, {}, columns, reword, recipes)

    @again_if_outdated
    def undo(
        self,
        project_id: str,
        owner_filter: str | None,
        replaced: Sequence[ReplacedValues],
        followed: Sequence[ReplacedValues] = (),
    ) -> tuple[int, list[str]]:
        """Put back what changes replaced, in the parts that still are as they were after them; ``followed``: only if
        any of the others is. Returns the number of parts, and the ids of those left as they are. Raises NotFound,
        InvalidRequest."""
        with self._store.reading() as db:
            row = row_of(db, project_id, owner_filter, "edit")
            recipes = recipes_of(db, row)
            for old in _old_values(db, project_id, (*replaced, *followed))[0]:
                if _is_spoken_otherwise(old.columns, old.reword):
                    outcome_of(db, recipes, _NUMBERED, old.where(project_id), old.columns, old.reword)
        with changing(self._store.writing(), project_id, owner_filter) as (db, row):
            found, left = _old_values(db, project_id, replaced)
            if found and followed:
                followers, more_left = _old_values(db, project_id, followed)
                found, left = [*found, *followers], [*left, *more_left]
            recipes = recipes_of(db, row, recipes)
            for old in found:
                _put_back(db, project_id, recipes, old)
            return sum(len(old.parts) for old in found), left

    def remember_voices(self, project_id: str, *names: str | None) -> None:
        """Remember until the next start that changes replaced these voices in a project."""
        with self._remembering:
            self._replaced_voices |= {(project_id, name): None for name in names if name}
            while len(self._replaced_voices) > MOST_REPLACED:
                del self._replaced_voices[next(iter(self._replaced_voices))]

    def had_voice(self, project_id: str, name: str) -> bool:
        """Whether a change replaced this voice in a project, as far as is remembered."""
        return (project_id, name) in self._replaced_voices


class _Reword:
    """Cleans the new texts of parts, each once."""

    def __init__(self, reword: Callable[[str], str]) -> None:
        self._cleaned = functools.cache(lambda text: clean_part(reword(text)))

    def __call__(self, part_id: str, text: str) -> str:
        """Raises InvalidRequest."""
        return self._cleaned(text)


@dataclass(slots=True)
class _OldTexts:
    """Texts to put back, by the ids of parts."""

    texts: dict[str, str] = field(default_factory=dict)

    def __call__(self, part_id: str, text: str) -> str:
        return self.texts.get(part_id, text)


@dataclass(slots=True)
class _OldValues:
    """Values to put back into parts."""

    columns: dict[str, Any]
    parts: dict[int, str] = field(default_factory=dict)
    """Their ids by the numbers of their rows."""
    takes: dict[int, str | None] = field(default_factory=dict)
    """The takes to choose, by the numbers of all these rows, or of none."""
    reword: _OldTexts | None = None

    def where(self, project_id: str) -> list[str]:
        """The values of _NUMBERED."""
        return [project_id, json.dumps([*self.parts])]


def _rows(db: Database, where: str, values: Sequence[object], names: Iterable[str]) -> list[dict[str, Any]]:
    return list(select(db, f"select id, {', '.join(names)} from parts where +project_id = ? and {where}", values))


def _selected(db: Database, project_id: str, selection: Sequence[str] | PartRange) -> list[str]:
    """The values of _NUMBERED for parts. Raises NotFound for an unknown part."""
    if not isinstance(selection, PartRange):
        ids = ids_of(db, project_id, selection)
        query, values = f"select n from parts where {THESE}", [json.dumps(ids)]
    else:
        ids = ids_of(db, project_id, [selection.first, selection.last])  # one, if they are the same
        ends = db.execute(f"select min(place), max(place) from parts where {THESE}", [json.dumps(ids)]).fetchone()
        query, values = "select n from parts where project_id = ? and place between ? and ?", [project_id, *ends]
    return [project_id, json.dumps([number for [number] in db.execute(query, values).fetchall()])]


def _columns(db: Database, row: dict[str, Any], changes: PartChanges, decided: int) -> dict[str, Any]:
    """The columns that parts get; ``decided``: as returned by `decision_time`. Raises NotFound, InvalidRequest."""
    values: dict[str, Any] = {}
    if changes.character is not None:
        has_character = bool(changes.character)
        values["character"] = changes.character or None
        values["voice"] = voice_of_character(db, row["id"], changes.character) if has_character else None
    if changes.voice is not None:
        values["voice"] = changes.voice.strip()[:200] or None
    if changes.pause is not None:
        values["pause"] = clean_pause(changes.pause)
    if changes.confirmed is not None or changes.character is not None:
        values["confirmed"] = 0 if changes.confirmed is False else decided
    if changes.scene is not None:
        values["scene"] = int(changes.scene)
    for name in DIRECTED:
        if (value := getattr(changes, name)) is not None:
            values[name] = None if value < 0 else value
    return values


def _is_spoken_otherwise(columns: Iterable[str], reword: Reword | None) -> bool:
    return reword is not None or not {"voice", *DIRECTED}.isdisjoint(columns)


def _change(
    db: Database,
    row: dict[str, Any],
    where: Sequence[object],
    values: dict[str, Any],
    columns: dict[str, Any],
    reword: Reword | None,
    computed: Recipes | None = None,
) -> list[ReplacedValues]:
    """Change parts and derive their states; returns what was replaced. ``where``: the values of _NUMBERED; ``values``:
    of a single part; ``computed``: the recipes.

    Raises NotFound, InvalidRequest.
    """
    names = {*values, *columns, *(["text"] if reword else [])} or {"n"}
    if "text" in names or _is_spoken_otherwise(names, None):  # then another take may be chosen
        names.add("chosen")
    before = _rows(db, _AMONG, where, names)
    _assign(db, where, values)
    _write(db, recipes_of(db, row, computed), where, columns, reword, values)
    touch(db, row)
    return replaced_values(before, _rows(db, _AMONG, where, names))


def _write(
    db: Database,
    recipes: Recipes,
    where: Sequence[object],
    columns: dict[str, Any],
    reword: Reword | None,
    values: Iterable[str],
) -> None:
    """Write columns and texts, and derive the states of parts, which have got these ``values`` already."""
    has_take = "chosen" in values
    if "text" in values or _is_spoken_otherwise(columns, reword):
        write_outcome(db, outcome_of(db, recipes, _NUMBERED, where, columns, reword), columns, choose=not has_take)
        return
    _assign(db, where, columns)  # a new pause keeps the take that a person has chosen
    if has_take:
        update_states(db, recipes, f"{_NUMBERED} and {AT_REST}", where, choose=False)


def _assign(db: Database, where: Sequence[object], columns: dict[str, Any]) -> None:
    if columns:
        assigned = ", ".join(f"{name} = ?" for name in columns)
        db.execute(f"update all_parts set {assigned} where {_NUMBERED}", [*columns.values(), *where])


def _old_values(
    db: Database, project_id: str, replaced: Sequence[ReplacedValues]
) -> tuple[list[_OldValues], list[str]]:
    """What can be put back, and the ids of the parts that have changed since, or whose old take or character is gone;
    a take that only followed from another change holds nothing up. Raises InvalidRequest."""
    ids = json.dumps([part_id for one in replaced for part_id in one.ids])
    names = {"n", *(name for one in replaced for name in one.after)}
    rows = {row["id"]: row for row in _rows(db, THESE, [project_id, ids], names)}
    chosen = json.dumps([one.before["chosen"] for one in replaced if "chosen" in one.before])
    takes = dict(db.execute(f"select id, part_id from takes where id {AMONG}", [chosen]).fetchall())
    cast = db.execute("select id from characters where project_id = ? and deleted is null", [project_id]).fetchall()
    characters = {None, *(character for [character] in cast)}
    found, left = dict[tuple[str, bool, bool], _OldValues](), list[str]()
    for one in replaced:
        columns = {name: value for name, value in one.before.items() if name not in ("text", "chosen")}
        others = one.after.keys() - {"chosen"}
        key, text = (
            json.dumps(columns, sort_keys=True),
            clean_part(one.before["text"]) if "text" in one.before else None,
        )
        for part_id in one.ids:
            row, take = rows.get(part_id), one.before.get("chosen")
            is_same = row is not None and all(row[name] == one.after[name] for name in others)
            if row is None or not is_same or columns.get("character") not in characters:
                left.append(part_id)
                continue
            has_take = "chosen" in one.before and row["chosen"] == one.after["chosen"]
            has_take = has_take and (take is None or takes.get(take) == part_id)
            if not has_take and one.before.keys() == {"chosen"}:
                left.append(part_id)
                continue
            old = found.setdefault((key, has_take, text is not None), _OldValues(columns))
            old.parts[row["n"]] = part_id
            if has_take:
                old.takes[row["n"]] = take
            if text is not None:
                old.reword = old.reword or _OldTexts()
                old.reword.texts[part_id] = text
    return [*found.values()], left


def _put_back(db: Database, project_id: str, recipes: Recipes, old: _OldValues) -> None:
    if "chapter" in old.columns:
        for part_id in old.parts.values():
            rename_chapter(db, part_id, old.columns["chapter"])
    takes = ((take, number) for number, take in old.takes.items())
    db.conn.executemany("update all_parts set chosen = ? where n = ?", takes)
    _write(db, recipes, old.where(project_id), old.columns, old.reword, ["chosen"] if old.takes else [])
