"""Find and replace in all parts of a project, all or nothing; the earlier texts go to the trash."""

from __future__ import annotations

import json
import re
import secrets
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from longform.library.part_arrangement import by_project
from longform.library.part_order import AMONG
from longform.library.project_records import Recipes
from longform.library.row_mapping import (
    Outcome,
    clean_part,
    outcome_of,
    recipes_of,
    recipes_to_restore_with,
    row_of,
    row_to_restore_to,
    touch,
    write_outcome,
)
from manuscript.passages import MAX_PART_TEXT
from speechtext.characters import normalize
from studio.errors import EditConflict, InvalidRequest, NotFound
from studio.library.schema import Database, select
from studio.library.store import Store, again_if_outdated, check_current
from studio.library.trash import Prepared, Row, Trash, Trashed, now

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
        trash.kinds["replacement"] = Trashed("replaced_texts", listed, _remove, _put_back, _prepare)

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
            recipes, prepared = recipes_of(db, row, recipes), outcome
            outcome = outcome_of(db, recipes, "project_id = ?", [project_id], {}, reword)
            if outcome is not prepared and (texts_now := _texts(db, project_id)) != texts:  # not only takes are new
                check_current(False)
                reword, total = _edits(texts_now, pattern, new_text)
                outcome = outcome_of(db, recipes, "project_id = ?", [project_id], {}, reword)
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
                undo = _Undo([replacement])
                undo.outcome(db, recipes)
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            for replacement in list(select(db, query, values)):
                if undo is None or undo.rows[0]["id"] != replacement["id"]:
                    undo = _Undo([replacement])
                outcome = undo.outcome(db, recipes_of(db, row, recipes))
                db.table("replaced_texts").delete_where("id = ?", [replacement["id"]])
                write_outcome(db, outcome, {})
                touch(db, row)
                return UndoResult(len(outcome.edits), replacement["count"] - len(outcome.edits))
        which = "such replacement" if replacement_id else "replacement to undo"
        raise NotFound(f"there is no {which} of this project in the trash", "project")


@dataclass(frozen=True, slots=True)
class _Edits:
    """Changes of parts, one after another; a part that has another text than the one before a change keeps it then."""

    changes: Sequence[Mapping[str, tuple[str, str]]]  # by the parts' ids: the texts before and after

    def __call__(self, part_id: str, text: str) -> str:
        for texts in self.changes:
            before, after = texts.get(part_id, (text, text))
            text = after if text == before else text
        return text


class _Undo:
    """The way back from replacements in one project, the last first: a part that several changed is written once."""

    def __init__(self, replacements: Sequence[Row]) -> None:
        self.rows = replacements
        edits: list[list[Edit]] = [json.loads(row["parts"]) for row in replacements]
        self._edits = _Edits([{part_id: (after, before) for part_id, before, after in some} for some in edits])
        self._rests: tuple[Outcome | None, list[list[Edit]]] = None, []

    def outcome(self, db: Database, recipes: Recipes) -> Outcome:
        """Deleted parts get their earlier texts too: they can be restored later."""
        where, values = "project_id = ? and merged_into is null", [self.rows[0]["project_id"]]
        return outcome_of(db, recipes, where, values, {}, self._edits, table="all_parts")

    def rests(self, db: Database, outcome: Outcome) -> list[list[Edit]]:
        """The edits of each replacement that are not undone, because the part has another text or is gone; worked out
        once for an outcome, which is the same one as long as the parts are."""
        if self._rests[0] is not outcome:
            texts, rests = {part_id: text for part_id, text, _ in outcome.edits}, list[list[Edit]]()
            others = {part_id for change in self._edits.changes for part_id in change} - texts.keys()
            query = f"select id, text from all_parts where id {AMONG} and merged_into is null"
            texts |= dict(db.execute(query, [json.dumps([*others])]).fetchall())
            for change in self._edits.changes:
                rests.append([(name, *edit[::-1]) for name, edit in change.items() if texts.get(name) != edit[0]])
                texts |= {name: before for name, (after, before) in change.items() if texts.get(name) == after}
            self._rests = outcome, rests
        return self._rests[1]


def _edits(texts: Iterable[tuple[str, int, str]], pattern: re.Pattern[str], new_text: str) -> tuple[_Edits, int]:
    """The changes to parts, and the number of matches. Raises InvalidRequest."""
    edits: dict[str, tuple[str, str]] = {}
    total = 0
    for part_id, position, text in texts:
        if count := len(pattern.findall(text)):
            total += count
            edits[part_id] = text, _replaced(pattern, new_text, text, count, position + 1)
    return _Edits([edits]), total


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


def _prepare(db: Database, rows: Sequence[Row], prepared: Prepared) -> None:
    """Work out what becomes of the parts."""
    for project_id, replacements in by_project(rows).items():
        undo = prepared[_Undo, project_id] = _Undo(replacements)
        undo.rests(db, undo.outcome(db, recipes_to_restore_with(db, project_id, prepared)))


def _put_back(db: Database, rows: Sequence[Row], prepared: Prepared) -> None:
    """Restore the texts of replacements. What of one cannot be undone before later changes are, stays in the trash.
    Raises EditConflict."""
    for project_id, replacements in by_project(rows).items():
        row, undo = row_to_restore_to(db, project_id), prepared.get((_Undo, project_id))
        if undo is None or undo.rows != replacements:
            undo = _Undo(replacements)
        outcome = undo.outcome(db, recipes_of(db, row, prepared.get(project_id)))
        for replacement, rest in zip(replacements, undo.rests(db, outcome), strict=True):
            if len(rest) == replacement["count"]:
                raise EditConflict("the texts of these parts have changed since; undo the later changes first", "ids")
            if rest:
                new_row = replacement | {"id": _new_id(), "parts": json.dumps(rest), "count": len(rest)}
                db.table("replaced_texts").insert(new_row)
        write_outcome(db, outcome, {})
        touch(db, row)
    # After all of them: what stays would get the number of a row that is gone, and be taken for it.
    db.execute(f"delete from replaced_texts where id {AMONG}", [json.dumps([row["id"] for row in rows])])


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
