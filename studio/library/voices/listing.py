"""Lists of voices: which ones, in which order, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from sqlite_utils import Database

from studio.errors import InvalidRequest
from studio.library.checks import MAX_TAGS
from studio.library.voices.names import fold
from studio.library.voices.rows import Row

MAX_WORDS = 32
"""Of a query; SQLite refuses an expression of a thousand."""

Order = Literal["name", "favourites", "recent"]
ORDERS: tuple[str, ...] = get_args(Order)
"""By name; favourites first, then by name; the last changed first."""

_ORDER_BY = {"name": "folded", "favourites": "favourite desc, folded", "recent": "changed desc, id"}
_BEHIND = {
    "name": "folded > :folded",
    "favourites": "(favourite < :favourite or (favourite = :favourite and folded > :folded))",
    "recent": "(changed < :changed or (changed = :changed and id > :id))",
}


@dataclass(frozen=True, slots=True)
class Filter:
    """What a voice must have to be listed; None and nothing ask for nothing."""

    query: str = ""
    """Every word of it is in name, slug, tags, language or description."""
    tags: Sequence[str] = ()
    favourite: bool | None = None
    bundled: bool | None = None


def rows_of(db: Database, wanted: Filter, order: Order, limit: int, after: Row | None) -> list[Row]:
    """Rows of `voices` that are not deleted, those behind the row ``after`` in this order. Raises InvalidRequest."""
    where, values = ["deleted is null"], dict[str, Any]()
    words, tags = dict.fromkeys(fold(wanted.query).split()), dict.fromkeys(wanted.tags)
    if len(words) > MAX_WORDS:
        raise InvalidRequest(f"the query has {len(words)} words; at most {MAX_WORDS} are allowed", "q")
    if len(tags) > MAX_TAGS:
        raise InvalidRequest(f"the query has {len(tags)} tags; at most {MAX_TAGS} are allowed", "tag")
    for number, word in enumerate(words):
        where.append(f"instr(haystack, :word{number})")
        values[f"word{number}"] = word
    for number, tag in enumerate(tags):
        where.append(f"exists (select 1 from json_each(tags) where value = :tag{number})")
        values[f"tag{number}"] = tag
    for column in ("favourite", "bundled"):
        is_wanted = getattr(wanted, column)
        if is_wanted is not None:
            where.append(f"{column} = :is_{column}")
            values[f"is_{column}"] = int(is_wanted)
    if after is not None:
        where.append(_BEHIND[order])
        values |= {name: after[name] for name in ("folded", "favourite", "changed", "id")}
    return list(db.table("voices").rows_where(" and ".join(where), values, order_by=_ORDER_BY[order], limit=limit))


def tags_of(db: Database) -> list[str]:
    """Every tag that some voice has."""
    query = "select distinct value from voices, json_each(tags) where deleted is null order by value"
    return [row[0] for row in db.execute(query).fetchall()]
