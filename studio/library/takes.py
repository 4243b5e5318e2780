"""Takes: what was spoken, by whom and how, with its audio; searched by any part of its text."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from studio.errors import NotFound
from studio.library.database import Store
from studio.library.records import StoredTake

MAX_PAGE = 500
_TRIGRAM = 3
_LOOKED_UP = 16
"""Characters of a query that the index is asked for; the rest is looked for in the texts that it finds.
100,000 takes of 20 common words, 2 cores: a query of 120 characters takes 120 ms by index alone, 30 ms so."""


class Takes:
    """The history of a library."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, take: StoredTake, audio: bytes | None = None) -> StoredTake:
        """Keep a take, and its audio file if there is one; returns it as kept."""
        row = asdict(take) | {
            "parameters": json.dumps(take.parameters, sort_keys=True),
            "timings": json.dumps(take.timings, sort_keys=True),
        }
        with self._store.writing() as db:
            if audio:
                row |= {"audio": self._store.files.put(audio), "size": len(audio)}
            db.table("takes").insert(row)
        return _take(row)

    def get(self, take_id: str) -> StoredTake:
        """Raises NotFound."""
        with self._store.reading() as db:
            for row in db.table("takes").rows_where("id = ?", [take_id]):
                return _take(row)
        raise NotFound(f"there is no take {take_id[:80]!r}", "take")

    def page(
        self, query: str = "", *, voice_id: str | None = None, limit: int = 50, after: str | None = None
    ) -> list[StoredTake]:
        """Takes, newest first, whose text contains the query, whatever its case.

        ``after`` is the id of the last take of the page before. Raises NotFound when it is gone.
        """
        source, where, values = "takes", ["1"], list[Any]()
        query = query.strip()
        if len(query) >= _TRIGRAM:  # the index walks backwards, so a word in every take costs no more than a rare one
            source = "takes_text join takes on takes.n = takes_text.rowid"
            where.append("takes_text match ?")
            values.append('"' + query[:_LOOKED_UP].replace('"', '""') + '"')
            if len(query) > _LOOKED_UP:
                where.append("holds_query(takes.text)")
        elif query:
            where.append("takes.text like ? escape '!'")
            values.append("%" + query.replace("!", "!!").replace("%", "!%").replace("_", "!_") + "%")
        order = "takes_text.rowid" if len(query) >= _TRIGRAM else "takes.n"
        if voice_id is not None:
            where.append("voice_id = ?")
            values.append(voice_id)
        sought = query.lower()
        with self._store.reading() as db:
            db.register_function(lambda text: sought in text.lower(), name="holds_query")
            if after is not None:
                found = db.execute("select n from takes where id = ?", [after]).fetchone()
                if found is None:
                    raise NotFound(f"there is no take {after[:80]!r}", "after")
                where.append(f"{order} < ?")
                values.append(found[0])
            values.append(min(max(limit, 1), MAX_PAGE))
            query = f"select takes.* from {source} where {' and '.join(where)} order by {order} desc limit ?"
            return [_take(row) for row in db.query(query, values)]

    def delete(self, take_id: str) -> None:
        """Remove a take and its audio. Raises NotFound."""
        take = self.get(take_id)
        with self._store.writing() as db:
            db.table("takes").delete_where("id = ?", [take_id])
        if take.audio:
            self._store.drop_unreferred([take.audio])

    def keep_newest(self, count: int) -> int:
        """Remove all takes but the newest ``count``; how many went."""
        with self._store.writing() as db:
            edge = db.execute("select n from takes order by n desc limit 1 offset ?", [count]).fetchone()
            if edge is None:
                return 0
            old = list(db.query("select audio from takes where n <= ?", [edge[0]]))
            db.table("takes").delete_where("n <= ?", [edge[0]])
        self._store.drop_unreferred({row["audio"] for row in old if row["audio"]})
        return len(old)


def _take(row: dict[str, Any]) -> StoredTake:
    fields = {name: value for name, value in row.items() if name != "n"}
    parsed = {name: json.loads(row[name]) for name in ("parameters", "timings")}
    return StoredTake(**fields | parsed)
