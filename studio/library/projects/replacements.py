"""Find and replace in all parts of a project, all or nothing; the earlier texts go to the trash."""

from __future__ import annotations

import json
import re
import secrets
import time
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from studio.errors import InvalidRequest, NotFound
from studio.library.projects.project_records import MAX_PART_TEXT
from studio.library.projects.row_mapping import (
    AT_REST,
    clean_part,
    recipes_of,
    row_of,
    row_to_restore_to,
    touch,
    update_states,
)
from studio.library.sqlite import Database, select
from studio.library.store import Store
from studio.library.trash import Trash
from studio.unicode_text import normalize

MAX_FIND = 200
MAX_REPLACE = 1000
"""Characters."""
MAX_KEPT = 20
"""Replacements in one project that can be undone."""


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
    """Number of matches, and of parts with any."""

    count: int
    parts: int
    positions: tuple[int, ...] = ()
    """Of these parts, in order."""


@dataclass(frozen=True, slots=True)
class UndoResult:
    """Number of parts restored, and of parts left as they are because they changed since."""

    parts: int
    left: int


Edit = tuple[str, str, str]
"""A part's id, its text before and after."""


class Replacements:
    """Calls block in proportion to the text: a second for the longest project. ``owner_filter`` is as in Projects."""

    def __init__(self, store: Store, trash: Trash) -> None:
        self._store = store
        self._trash = trash
        trash.put_back["replacement"] = _put_back_all

    def count(self, project_id: str, owner_filter: str | None, replacement: TextReplacement) -> Matches:
        """Raises NotFound, InvalidRequest."""
        pattern = replacement.pattern()
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            texts = _texts(db, project_id)
        counts = {position: count for _, position, text in texts if (count := len(pattern.findall(text)))}
        return Matches(sum(counts.values()), len(counts), tuple(counts))

    def replace(self, project_id: str, owner_filter: str | None, replacement: TextReplacement) -> Matches:
        """Replace every match; the changed parts become stale.

        If any part would become blank or too long, nothing changes and this raises InvalidRequest. Raises NotFound.
        """
        pattern, new_text = replacement.pattern(), _clean("replace", replacement.replace, MAX_REPLACE)
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            edits: list[Edit] = []
            total = 0
            for part_id, position, text in _texts(db, project_id):
                count = len(pattern.findall(text))
                changed_text = _replaced(pattern, new_text, text, count, position + 1) if count else text
                total += count
                if changed_text != text:
                    edits.append((part_id, text, changed_text))
            if edits:
                _keep(db, project_id, edits)
                _write(db, row, ((part_id, changed_text) for part_id, _, changed_text in edits))
        self._trash.expire()  # also the earlier texts, if the trash keeps nothing
        return Matches(total, len(edits))

    def undo(self, project_id: str, owner_filter: str | None) -> UndoResult:
        """Undo the newest replacement in the parts that nobody has changed since. Raises NotFound without one."""
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            condition = "project_id = ? and deleted > ?"
            query = f"select * from replaced_texts where {condition} order by deleted desc, rowid desc limit 1"
            for replacement in list(select(db, query, [project_id, self._trash.since])):
                return _put_back(db, row, replacement)
        raise NotFound("there is no replacement to undo in this project", "project")


def _keep(db: Database, project_id: str, edits: Sequence[Edit]) -> None:
    """Move the earlier texts to the trash, and delete the oldest beyond MAX_KEPT."""
    row = {"id": f"repl_{secrets.token_hex(12)}", "project_id": project_id, "parts": json.dumps(edits)}
    db.table("replaced_texts").insert(row | {"count": len(edits), "deleted": time.time()})
    query = "select id from replaced_texts where project_id = ? order by deleted desc, rowid desc limit -1 offset ?"
    db.execute(f"delete from replaced_texts where id in ({query})", [project_id, MAX_KEPT])


def _put_back_all(db: Database, rows: Sequence[dict[str, Any]]) -> None:
    for replacement in rows:
        _put_back(db, row_to_restore_to(db, replacement["project_id"]), replacement)


def _put_back(db: Database, row: dict[str, Any], replacement: dict[str, Any]) -> UndoResult:
    """Restore the texts of a replacement in its project ``row``."""
    texts = {part_id: text for part_id, _, text in _texts(db, row["id"])}
    edits: list[Edit] = json.loads(replacement["parts"])
    restored = [(part_id, before) for part_id, before, after in edits if texts.get(part_id) == after]
    db.table("replaced_texts").delete_where("id = ?", [replacement["id"]])
    _write(db, row, restored)
    return UndoResult(len(restored), len(edits) - len(restored))


def _clean(field: str, text: str, limit: int) -> str:
    """Check a text without trimming it. Raises InvalidRequest."""
    if len(text) > limit:
        raise InvalidRequest(f"{field} has {len(text)} characters; at most {limit} are allowed", field)
    if any(unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t" for char in text):
        raise InvalidRequest(f"{field} has control characters or is not valid Unicode", field)
    return normalize("NFC", text)


def _texts(db: Database, project_id: str) -> list[tuple[str, int, str]]:
    query = "select id, position, text from parts where project_id = ? order by position"
    return db.execute(query, [project_id]).fetchall()


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


def _write(db: Database, row: dict[str, Any], texts: Iterable[tuple[str, str]]) -> None:
    """Set the texts of parts, and the resulting states."""
    rows = [(text, part_id) for part_id, text in texts]
    db.conn.executemany("update parts set text = ? where id = ?", rows)
    ids = json.dumps([part_id for _, part_id in rows])
    condition = "id in (select value from json_each(?))"
    db.execute(
        f"update parts set state = 'new', attempts = 0, error = null where state = 'failed' and {condition}", [ids]
    )
    update_states(db, recipes_of(db, row), f"{condition} and {AT_REST}", [ids])
    touch(db, row)
