"""Lists voices: filtered, sorted, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from studio.errors import InvalidRequest, NotFound
from studio.library.checks import GENDERS, MAX_TAGS, clean_accent, clean_gender, clean_language, readable
from studio.library.names import fold
from studio.library.schema import Database
from studio.library.voice_rows import Row, is_favourite

MAX_WORDS = 32
"""Maximum words in a query; SQLite refuses an expression of a thousand terms."""

Order = Literal["name", "favourites", "recent"]
"""By name; favourites first, then by name; most recently changed first."""

_ORDER_BY = {
    "name": "folded",
    "favourites": "favourite desc, folded",
    "recent": "changed desc, id",
    "deleted": "deleted desc, id",
}
_BEHIND = {
    "name": "folded > :folded",
    "favourites": "(favourite < :favourite or (favourite = :favourite and folded > :folded))",
    "recent": "(changed < :changed or (changed = :changed and id > :id))",
    "deleted": "(deleted < :deleted or (deleted = :deleted and id > :id))",
}


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions for listed voices; None and empty values match every voice."""

    query: str = ""
    """Every word must be in name, slug, tags, accent, language or description, or be the gender."""
    tags: Sequence[str] = ()
    gender: str = ""
    accent: str = ""
    """Compared without case."""
    language: str = ""
    """In any region unless it names one: "en" also matches "en-GB"."""
    favourite: bool | None = None
    bundled: bool | None = None
    deleted_since: float | None = None
    """Unix time: lists voices deleted after it instead of existing ones."""


def rows_of(
    db: Database, filters: Filter, order: Order, limit: int, after: str | None, viewer: str | None
) -> list[Row]:
    """Rows of `voices` after the id ``after`` in this order; of the viewer's deleted voices, the last deleted first.

    Raises NotFound if ``after`` is not in the list, InvalidRequest.
    """
    visible = f"deleted is null and {readable(':viewer')}"
    if filters.deleted_since is not None:
        visible = "deleted > :deleted_since and (:viewer is null or owner = :viewer)"
    # Takes the place of a column, so that it can be compared and sorted.
    columns = f"*, {is_favourite(':viewer')} as favourite"
    conditions, values = [visible], dict[str, Any](deleted_since=filters.deleted_since, viewer=viewer)
    words, tags = dict.fromkeys(fold(filters.query).split()), dict.fromkeys(filters.tags)
    if len(words) > MAX_WORDS:
        raise InvalidRequest(f"the query has {len(words)} words; at most {MAX_WORDS} are allowed", "q")
    if len(tags) > MAX_TAGS:
        raise InvalidRequest(f"the query has {len(tags)} tags; at most {MAX_TAGS} are allowed", "tag")
    for number, word in enumerate(words):
        # "female" contains "male", so a known gender must equal the word.
        gender_condition = f"case when gender = '' then instr(haystack, :word{number}) else gender = :word{number} end"
        conditions.append(gender_condition if word in GENDERS else f"instr(haystack, :word{number})")
        values[f"word{number}"] = word
    for number, tag in enumerate(tags):
        conditions.append(f"exists (select 1 from json_each(tags) where value = :tag{number})")
        values[f"tag{number}"] = tag
    if gender := clean_gender(filters.gender):
        conditions.append("gender = :gender")
        values["gender"] = gender
    if accent := clean_accent(filters.accent):
        conditions.append("accent = :accent collate nocase")
        values["accent"] = accent
    if language := clean_language(filters.language):
        conditions.append("(language = :language collate nocase or language like :language || '-%')")
        values["language"] = language
    for column in ("favourite", "bundled"):
        value = getattr(filters, column)
        if value is not None:
            conditions.append(f"{column} = :is_{column}")
            values[f"is_{column}"] = int(value)
    order_key = order if filters.deleted_since is None else "deleted"
    if after is not None:
        cursor = f"id = :after and {visible}"
        last_row = next(db.table("voices").rows_where(cursor, values | {"after": after}, select=columns), None)
        if last_row is None:
            message = f"no voice {after[:80]!r} in this list; start from its first page"
            raise NotFound(message, "after", "voice_not_found")
        conditions.append(_BEHIND[order_key])
        values |= {name: last_row[name] for name in ("folded", "favourite", "changed", "deleted", "id")}
    where, order_by = " and ".join(conditions), _ORDER_BY[order_key]
    return list(db.table("voices").rows_where(where, values, order_by=order_by, limit=limit, select=columns))


def offered(db: Database, viewer: str | None) -> dict[str, list[str]]:
    """Every tag, gender, accent and language of voices that the viewer may see."""
    visible = f"deleted is null and {readable(':viewer')}"
    queries = {"tags": f"select distinct value from voices, json_each(tags) where {visible} order by value"}
    for column in ("gender", "accent", "language"):
        without_case = f"{column} collate nocase"
        where = f"where {visible} and {column} != '' group by {without_case} order by {without_case}"
        queries[f"{column}s"] = f"select min({column}) from voices {where}"
    values = {"viewer": viewer}
    return {name: [row[0] for row in db.execute(query, values).fetchall()] for name, query in queries.items()}
