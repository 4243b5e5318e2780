"""Find and replace in all parts of a project, all or nothing; the earlier texts go to the trash."""

from __future__ import annotations

import functools
import json
import re
import secrets
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longform.library.part_order import AMONG
from longform.library.project_records import Recipes
from longform.library.row_mapping import (
    Outcome,
    again_if_outdated,
    check_current,
    clean_part,
    outcome_of,
    recipes_of,
    row_of,
    row_to_restore_to,
    touch,
    write_outcome,
)
from manuscript.passages import MAX_PART_TEXT
from speechtext.characters import normalize
from studio.errors import EditConflict, InvalidRequest, NotFound
from studio.library.schema import Database, select
from studio.library.store import Store
from studio.library.trash import PutBack, Trash, Trashed, now

MAX_FIND = 200
MAX_REPLACE = 1000  # characters
KEPT, KEPT_PARTS = 20, 100_000
"""The newest replacements in a project stay in the trash: so many, and others as long as they changed no more parts
together, each of which may have 4,000 characters."""
_REMOVED_AT_ONCE = 10  # each may have the texts of a whole book


@dataclass(frozen=True, slots=True)
class TextReplacement:
    """The text to find, and its replacement."""

    find: str
    replace: str = ""
    match_case: bool = False
    whole_words: bool = False

    def pattern(self) -> re.Pattern[str]:
        """Raises InvalidRequest."""
        phrase = _clean("find", self.find, MAX_FIND)
        if not phrase:
            raise InvalidRequest("find is empty: say which words to look for", "find")
        pattern = re.escape(phrase)
        if self.whole_words:  # punctuation at either end already is a word boundary
            begin = r"(?<!\w)" if re.match(r"\w", phrase) else ""
            pattern = begin + pattern + (r"(?!\w)" if re.search(r"\w\Z", phrase) else "")
        return re.compile(pattern, 0 if self.match_case else re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Matches:
    """Number of matches, of parts with any, and of parts whose id from a table matches."""

    count: int
    parts: int
    named: int = 0
    positions: tuple[int, ...] = ()  # positions of the matching parts, also by id, ascending
    id: str | None = None  # of the replacement, to undo it; None if nothing was changed


@dataclass(frozen=True, slots=True)
class UndoResult:
    """Number of parts restored, and of parts left as they are because they changed since."""

    parts: int
    left: int


Edit = tuple[str, str, str]  # a part's id, its text before and after


class Replacements:
    """Calls block in proportion to the text: a second for the longest project. ``owner_filter`` is as in Projects."""

    def __init__(self, store: Store, trash: Trash) -> None:
        self._store = store
        self._trash = trash
        listed = (
            "select texts.id, title, owner, sharing, texts.deleted, count, project_id, texts.rowid"
            " from replaced_texts as texts join projects on projects.id = project_id where texts.deleted > 0"
        )
        trash.kinds["replacement"] = Trashed("replaced_texts", listed, _remove, _put_back_all, _prepared)

    def count(self, project_id: str, owner_filter: str | None, replacement: TextReplacement) -> Matches:
        """Raises NotFound, InvalidRequest."""
        pattern = replacement.pattern()
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            query = "select text, name from parts where project_id = ? order by place"
            rows = db.execute(query, [project_id]).fetchall()
        counts = {position: count for position, (text, _) in enumerate(rows) if (count := len(pattern.findall(text)))}
        named = {position for position, (_, name) in enumerate(rows) if name and pattern.search(name)}
        return Matches(sum(counts.values()), len(counts), len(named), tuple(sorted(counts.keys() | named)))

    @again_if_outdated
    def replace(self, project_id: str, owner_filter: str | None, replacement: TextReplacement) -> Matches:
        """Replace every match; the changed parts become stale.

        If any part would become blank or too long, nothing changes and this raises InvalidRequest. Raises NotFound.
        """
        pattern, new_text = replacement.pattern(), _clean("replace", replacement.replace, MAX_REPLACE)
        with self._store.reading() as db:  # a second of work for the longest project, done without the write lock
            recipes = recipes_of(db, row_of(db, project_id, owner_filter, "edit"))
            reword, total = _edits(texts := _texts(db, project_id), pattern, new_text)
            outcome = outcome_of(db, recipes, "project_id = ?", [project_id], {}, reword)
        encoded_edits = json.dumps(outcome.edits)
        with self._trash.deleting(frees_room=False) as db:
            row = row_of(db, project_id, owner_filter)
            recipes = recipes_of(db, row, recipes)
            if is_edited := (texts_now := _texts(db, project_id)) != texts:
                check_current(False)
                reword, total = _edits(texts_now, pattern, new_text)
            outcome = outcome_of(db, recipes, "project_id = ?", [project_id], {}, reword)  # takes may be new
            if is_edited:
                encoded_edits = json.dumps(outcome.edits)
            kept = None
            if outcome.edits:
                kept = _keep(db, project_id, len(outcome.edits), encoded_edits)
                write_outcome(db, outcome, {})
                touch(db, row)
        return Matches(total, len(outcome.edits), id=kept)

    @again_if_outdated
    def undo(self, project_id: str, owner_filter: str | None, replacement_id: str | None = None) -> UndoResult:
        """Undo a replacement, or the newest, in the parts, deleted ones too, that nobody has changed since. Raises
        NotFound without one."""
        condition = "project_id = ?1 and deleted > ?2 and (?3 is null or id = ?3)"
        query = f"select * from replaced_texts where {condition} order by deleted desc, rowid desc limit 1"
        values, undo = [project_id, self._trash.since, replacement_id], None
        with self._store.reading() as db:
            recipes = recipes_of(db, row_of(db, project_id, owner_filter, "edit"))
            for replacement in list(select(db, query, values)):
                undo = _Undo(replacement)
                undo.outcome(db, recipes)
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            for replacement in list(select(db, query, values)):
                if undo is None or undo.id != replacement["id"]:
                    undo = _Undo(replacement)
                return _put_back(db, row, undo, recipes)
        which = "such replacement" if replacement_id else "replacement to undo"
        raise NotFound(f"there is no {which} of this project in the trash", "project")


@dataclass(frozen=True, slots=True)
class _Edits:
    """New texts of parts, by their ids; a part that has another text than the one before keeps it."""

    texts: dict[str, tuple[str, str]]  # the texts before and after

    def __call__(self, part_id: str, text: str) -> str:
        before, after = self.texts.get(part_id, (text, text))
        return after if text == before else text


class _Undo:
    """The way back from a replacement."""

    def __init__(self, replacement: dict[str, Any]) -> None:
        self.row, self.id, self._project_id = replacement, replacement["id"], replacement["project_id"]
        edits: list[Edit] = json.loads(replacement["parts"])
        self.edits = _Edits({part_id: (after, before) for part_id, before, after in edits})

    def rest(self, outcome: Outcome) -> list[Edit]:
        """The edits of the parts that an outcome leaves as they are."""
        undone = {part_id for part_id, *_ in outcome.edits}
        texts = self.edits.texts.items()
        return [(part_id, before, after) for part_id, (after, before) in texts if part_id not in undone]

    def outcome(self, db: Database, recipes: Recipes) -> Outcome:
        """Deleted parts get their earlier texts too: they can be restored later."""
        where = "project_id = ? and merged_into is null"
        return outcome_of(db, recipes, where, [self._project_id], {}, self.edits, table="all_parts")


def _edits(texts: Iterable[tuple[str, int, str]], pattern: re.Pattern[str], new_text: str) -> tuple[_Edits, int]:
    """The changes to parts, and the number of matches. Raises InvalidRequest."""
    edits: dict[str, tuple[str, str]] = {}
    total = 0
    for part_id, position, text in texts:
        if count := len(pattern.findall(text)):
            total += count
            edits[part_id] = text, _replaced(pattern, new_text, text, count, position + 1)
    return _Edits(edits), total


def _keep(db: Database, project_id: str, count: int, edits: str) -> str:
    """Move the earlier texts, edits as JSON, to the trash, and delete the oldest beyond KEPT. Returns the id."""
    row = {"id": _new_id(), "project_id": project_id, "parts": edits}
    db.table("replaced_texts").insert(row | {"count": count, "deleted": now()})
    over = "over (order by deleted desc, rowid desc)"
    columns = f"id, row_number() {over} as number, sum(count) {over} as parts"
    ranked = f"select {columns} from replaced_texts where project_id = ?"
    query = f"select id from ({ranked}) where number > ? and parts > ?"
    db.execute(f"delete from replaced_texts where id in ({query})", [project_id, KEPT, KEPT_PARTS])
    return str(row["id"])


def _prepared(db: Database, rows: Sequence[dict[str, Any]]) -> PutBack:
    """`_put_back_all` with the recipes of the parts. Raises NotFound."""
    computed = {row["id"]: recipes_of(db, row_to_restore_to(db, row["project_id"])) for row in rows}
    for replacement in rows:
        _Undo(replacement).outcome(db, computed[replacement["id"]])
    return functools.partial(_put_back_all, computed=computed)


def _put_back_all(db: Database, rows: Sequence[dict[str, Any]], computed: Mapping[str, Recipes] | None = None) -> None:
    """What of a replacement cannot be undone before later changes are, stays in the trash. Raises EditConflict."""
    for replacement in rows:
        row, recipes = row_to_restore_to(db, replacement["project_id"]), (computed or {}).get(replacement["id"])
        if not _put_back(db, row, _Undo(replacement), recipes, keeps_rest=True).parts:
            raise EditConflict("the texts of these parts have changed since; undo the later changes first", "ids")
    # After all of them: what stays would get the number of a row that is gone, and be taken for it.
    db.execute(f"delete from replaced_texts where id {AMONG}", [json.dumps([row["id"] for row in rows])])


def _put_back(
    db: Database, row: dict[str, Any], undo: _Undo, computed: Recipes | None = None, keeps_rest: bool = False
) -> UndoResult:
    """Restore the texts of a replacement in its project ``row``; ``computed``: the recipes of its parts.

    ``keeps_rest``: texts that are not restored stay in the trash in a new row, and the caller deletes the old one.
    """
    outcome = undo.outcome(db, recipes_of(db, row, computed))
    if not keeps_rest:
        db.table("replaced_texts").delete_where("id = ?", [undo.id])
    elif rest := undo.rest(outcome):
        new_row = undo.row | {"id": _new_id(), "parts": json.dumps(rest), "count": len(rest)}
        db.table("replaced_texts").insert(new_row)
    write_outcome(db, outcome, {})
    touch(db, row)
    return UndoResult(len(outcome.edits), len(undo.edits.texts) - len(outcome.edits))


def _new_id() -> str:
    return f"repl_{secrets.token_hex(12)}"


def _clean(field: str, text: str, limit: int) -> str:
    """Check a text without trimming it. Raises InvalidRequest."""
    if len(text) > limit:
        raise InvalidRequest(f"{field} has {len(text)} characters; at most {limit} are allowed", field)
    if any(unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t" for char in text):
        raise InvalidRequest(f"{field} has control characters or is not valid Unicode", field)
    return normalize("NFC", text)


def _texts(db: Database, project_id: str) -> list[tuple[str, int, str]]:
    """Id, position and text of each part."""
    query = "select id, text from parts where project_id = ? order by place"
    rows = db.execute(query, [project_id]).fetchall()
    return [(part_id, position, text) for position, (part_id, text) in enumerate(rows)]


def _replaced(pattern: re.Pattern[str], replacement: str, text: str, count: int, number: int) -> str:
    """The text of part ``number``, with ``count`` replacements. Raises InvalidRequest."""
    if count * len(replacement) > MAX_PART_TEXT:  # refuse before building a huge text
        raise InvalidRequest(
            f"part {number} would have more than {MAX_PART_TEXT} characters; nothing was replaced", "replace"
        )
    try:
        return clean_part(pattern.sub(lambda _: replacement, text))
    except InvalidRequest as error:
        message = f"part {number} cannot be changed like this: {error}; nothing was replaced"
        raise InvalidRequest(message, "replace") from None


def _remove(db: Database, until: float) -> set[str]:
    query = f"select id from replaced_texts where deleted <= ? limit {_REMOVED_AT_ONCE}"
    db.execute(f"delete from replaced_texts where id in ({query})", [until])
    return set()
