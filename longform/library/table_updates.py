"""Brings a project up to date with a new version of the table that it was made from, and undoes that."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeVar

from longform.library.part_arrangement import prepare, put_back
from longform.library.part_order import AMONG, count_parts, mark_deleted
from longform.library.project_records import (
    replaced_values,
)
from longform.library.row_mapping import (
    AT_REST,
    recipes_of,
    row_of,
    touch,
    update_states,
    write_part,
)
from longform.library.table_plan import (
    Known,
    NewPartOf,
    Plan,
    Row,
    TableUpdate,
    check_size,
    compare,
    keep_table,
    known_of,
    last_table,
    place_all,
    placed_of,
    tables_of,
    version_of,
)
from manuscript.passages import Document
from studio.errors import EditConflict, NotFound
from studio.library.checks import right_of
from studio.library.schema import Database, select
from studio.library.store import Store, again_if_outdated, check_current
from studio.library.trash import Prepared, Trash, now


class _State(NamedTuple):
    """What an undo compares of a project."""

    tables: Sequence[tuple[str]]  # the version of its table, as it is stored, if it has one
    order: Sequence[str]  # of all parts, deleted ones too
    titles: Mapping[str, tuple[str, str | None]]
    """Of chapters, by the parts with which they begin, each with the deleted part that it belongs to."""


@dataclass(frozen=True, slots=True)
class _Undo:
    """What undoes an update, but for the values that it replaced in parts."""

    known: Known
    before: _State
    after: _State
    returned: dict[str, Row]
    """The fields in the trash of the parts that came back from there, the last deleted first."""
    added: Mapping[str, str]  # the texts of new parts by their ids
    gone: Sequence[str]
    cast: list[str]  # the ids of new characters
    make: NewPartOf


_Before = tuple[Known, _State, dict[str, Row], list[Row]]
"""The project before an update, the parts that come back from the trash, and those into which they were merged."""
Result = TypeVar("Result")
_RETURNED = ("text", "chapter", "character", "voice", "pause", "scene", "cells", "merged_into", "merge")
_HOLDER = "select id from all_parts where id = ?3 and deleted > 0"
_GIVEN_BACK = f"""
    update all_parts as gone set chapter = '' where id {AMONG} and deleted > 0 and chapter = (
        select chapter from parts where project_id = gone.project_id and place > gone.place order by place limit 1
    )
"""
"""A deleted part whose chapter begins with the next part again begins none when it is restored."""
MOST_UNDONE = 8
"""Updates of tables in memory, each with the table before it."""


class TableUpdates:
    """Calls block in proportion to the table: a second for the longest; ``owner_filter`` is as in Projects."""

    def __init__(self, store: Store, trash: Trash) -> None:
        self._store = store
        self._trash = trash
        self._undos = dict[tuple[str, str], _Undo | list[str]]()  # by project; of an undone one its new characters

    def mark_sent(self, project_id: str, owner_filter: str | None, takes: Mapping[str, str]) -> None:
        """Note which takes a zip had, by the parts' ids; nothing without the right to edit. Raises NotFound."""
        with self._store.reading() as db:
            right = right_of(row_of(db, project_id, owner_filter), owner_filter)
        if right != "read":
            with self._store.writing() as db:
                rows = [(take, part, project_id) for part, take in takes.items()]
                db.conn.executemany("update all_parts set sent = ? where id = ? and project_id = ?", rows)

    def compare(self, project_id: str, owner_filter: str | None, document: Document) -> TableUpdate:
        """What an update would change. Raises NotFound, InvalidRequest for a project or a table without ids."""
        with self._store.reading() as db:
            return compare(known_of(db, row_of(db, project_id, owner_filter, "edit"), document), document)

    def update(self, project_id: str, owner_filter: str | None, document: Document, new_part: NewPartOf) -> TableUpdate:
        """Change the cells of which the table says something else, add new rows, and move those that are gone to the
        trash. What somebody changed, deleted or moved here stays so where the table still says the same. New rows get
        the table's order; parts that no table has stay behind the part before them. ``new_part``: makes a part from a
        row.

        Raises NotFound, InvalidRequest.
        """
        make = partial(Plan, document=document, make=new_part)
        update, old = self._planned(project_id, owner_filter, make, self._begin)
        _, _, returned, others = old
        if not returned:
            return update
        make = partial(make, update=update)
        try:
            return self._planned(project_id, owner_filter, make, lambda db, row, plan: self._write(db, row, plan, *old))
        except BaseException:  # what does not succeed changes nothing
            with self._trash.deleting() as db:
                _return(db, project_id, returned, [*returned])
                for part in others:
                    write_part(db, part["id"], {name: part[name] for name in ("text", "chosen", "pause", "scene")})
                row, ids = row_of(db, project_id, owner_filter), json.dumps([part["id"] for part in others])
                update_states(db, recipes_of(db, row), f"id {AMONG} and {AT_REST}", [ids])
                touch(db, row)
            raise

    @again_if_outdated
    def _planned(
        self,
        project_id: str,
        owner_filter: str | None,
        plan_of: Callable[[Database, Row], Plan],
        write: Callable[[Database, Row, Plan], Result],
    ) -> Result:
        """Carry out a plan, which is made before the write lock is taken: a second of work for the longest project."""
        with self._store.reading() as db:
            plan = plan_of(db, row_of(db, project_id, owner_filter, "edit"))
        with self._trash.deleting(frees_room=False) as db:
            row = row_of(db, project_id, owner_filter, "edit")
            if version_of(db, row) != plan.version:
                check_current(False)
                plan = plan_of(db, row)
            return write(db, row, plan)

    def _begin(self, db: Database, row: Row, plan: Plan) -> tuple[TableUpdate, _Before]:
        """Carry out a plan, or only return the parts from the trash that it needs: then another plan is to be made."""
        returned = {part["id"]: {name: part[name] for name in _RETURNED} for part in plan.returning}
        others = _values(db, "id", [into for part in plan.returning if (into := part["merged_into"]) not in returned])
        old = replace(plan.known, lines={}, trashed=[]), _state(db, row["id"]), returned, others
        if not returned:
            return self._write(db, row, plan, *old), old
        put_back(db, plan.returning, plan.prepared)
        twice = sum(not part["merged_into"] for part in plan.returning)  # they are among the added ones
        check_size(count_parts(db, row["id"]) + len(plan.added) - twice - len(plan.gone))
        return plan.update, old

    def _write(
        self,
        db: Database,
        row: Row,
        plan: Plan,
        known: Known,
        state: _State,
        returned: dict[str, Row],
        others: list[Row],
    ) -> TableUpdate:
        """``known`` and ``state``: before the update; ``returned`` and ``others``: the parts that came back from the
        trash, and those into which they were merged, before they did."""
        project_id, undo = row["id"], f"table_{secrets.token_hex(12)}"
        before = {part["id"]: part for part in (*_values(db, "n", plan.numbers), *others) if part["id"] not in returned}
        plan.write(db, row)
        added, gone = _texts(db, [*plan.added, *returned]), [part for part in plan.gone if part not in returned]
        cast, after = [row["id"] for row in plan.cast.added], _state(db, project_id)
        self._undos = {key: it for key, it in self._undos.items() if key[0] != project_id or isinstance(it, _Undo)}
        self._undos[project_id, undo] = _Undo(known, state, after, returned, added, gone, cast, plan.make)
        while len(self._undos) > MOST_UNDONE:
            del self._undos[next(iter(self._undos))]
        replaced = replaced_values([*before.values()], _values(db, "id", [*before]))
        return replace(plan.update, replaced=replaced, undo=undo)

    def undo(self, project_id: str, owner_filter: str | None, undo_id: str) -> tuple[int, list[str], list[str]]:
        """Undo an update, but for the values that it replaced in parts: its new parts go to the trash unless they have
        other texts by now, those that were gone come back, all get their former order unless it has been changed since,
        and the table before it is the last one again. Returns the number of these parts, the ids of those left as they
        are, and those of the characters that it added: without lines, they are to be deleted after all is undone.

        Raises NotFound for an update that is not remembered, EditConflict if there was another one since.
        """
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter, "edit")
            undo = self._undos.get((project_id, undo_id))
            if isinstance(undo, list):  # what follows it in a request has failed, or the answer was lost: sent again
                return 0, [], undo
            if undo is None:
                raise NotFound("this update of a table is not remembered any more", "table")
            prepared: Prepared = {}
            prepare(db, _in_trash(db, undo.gone), prepared)
        with self._trash.deleting(frees_room=False) as db:
            row, state = row_of(db, project_id, owner_filter, "edit"), _state(db, project_id)
            _check_last(state.tables, undo)
            added = [part_id for part_id, text in _texts(db, [*undo.added]).items() if text == undo.added[part_id]]
            typed = {name: {"chapter": title} for name, (title, _) in state.titles.items() - undo.after.titles.items()}
            _return(db, project_id, {name: old | typed.get(name, {}) for name, old in undo.returned.items()}, added)
            put_back(db, _in_trash(db, undo.gone), prepared)
            touch(db, row)
            placed = placed_of(db, project_id)
        table = last_table(undo.known)
        plan_of = partial(Plan, document=table, make=undo.make, update=TableUpdate((), len(table.passages)))

        def finish(db: Database, row: Row, plan: Plan) -> dict[str, str]:
            _check_last(tables_of(db, project_id), undo)
            is_in_order = _same_order(state.order, undo.after.order) and placed_of(db, project_id) == placed
            plan.write(db, row)
            for [rows] in undo.before.tables:  # as it was, by which an earlier update knows it
                keep_table(db, project_id, rows)
            if is_in_order:
                place_all(db, project_id, undo.before.order, (), None)
            names = {*undo.before.titles, *_state(db, project_id).titles}
            ids = [name for name in names if state.titles.get(name) == undo.after.titles.get(name)]
            begin = f"update all_parts set chapter = ?2, chapter_of = ({_HOLDER}) where id = ?1"
            db.conn.executemany(begin, [(name, *undo.before.titles.get(name, ("", None))) for name in ids])
            db.execute(_GIVEN_BACK, [json.dumps([name for name in undo.added if name not in undo.returned])])
            return _texts(db, [*undo.added, *undo.gone])

        here = self._planned(project_id, owner_filter, plan_of, finish)  # it can be sent again, if this fails
        self._undos[project_id, undo_id] = undo.cast
        left = [*(name for name in undo.added if name in here), *(name for name in undo.gone if name not in here)]
        return len(undo.added) + len(undo.gone) - len(left), left, undo.cast


def _return(db: Database, project_id: str, returned: dict[str, Row], ids: Sequence[str]) -> None:
    """Move parts to the trash; those that came back from there are as they were there."""
    query = f"update takes set part_id = ? where part_id = ? and id {AMONG}"
    for part_id, old in reversed(returned.items()):
        if part_id in ids:
            takes = json.loads(old["merge"] or '{"takes": []}')["takes"]
            db.execute(query, [old["merged_into"], part_id, json.dumps(takes)])
            write_part(db, part_id, old)
    mark_deleted(db, project_id, ids, now())


def _check_last(tables: Sequence[tuple[str]], undo: _Undo) -> None:
    if tables != undo.after.tables:
        raise EditConflict("this project was updated from another table since", "table")


def _same_order(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether the parts that are in both have the same order; those that are new since stay behind others."""
    both = {*first} & {*second}
    return [part_id for part_id in first if part_id in both] == [part_id for part_id in second if part_id in both]


def _in_trash(db: Database, ids: Sequence[str]) -> list[Row]:
    """These parts, if they are in the trash, the last deleted first."""
    query = f"select * from all_parts where id {AMONG} and deleted > 0 order by deleted desc, n desc"
    return list(select(db, query, [json.dumps(ids)]))


def _values(db: Database, column: str, values: Sequence[int | str]) -> list[Row]:
    query = f"select id, text, chosen, voice, pause, scene, character from all_parts where {column} {AMONG}"
    return list(select(db, query, [json.dumps(values)]))


def _texts(db: Database, ids: Sequence[str]) -> dict[str, str]:
    return dict(db.execute(f"select id, text from parts where id {AMONG}", [json.dumps(ids)]).fetchall())


def _state(db: Database, project_id: str) -> _State:
    query = "select id, chapter, chapter_of from parts where project_id = ? and chapter != ''"
    titles = {part_id: (title, holder) for part_id, title, holder in db.execute(query, [project_id])}
    return _State(tables_of(db, project_id), placed_of(db, project_id), titles)
