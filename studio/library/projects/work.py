"""Projects as their worker handles them: the next part claimed, its take kept, its failure noted."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict

from studio.errors import NotFound
from studio.library.database import Store
from studio.library.projects.records import ClaimedPart, PartTake
from studio.library.projects.rows import part_of, parts_of, row_of, settings_of, settle, touch
from studio.library.records import WordTime
from studio.library.sqlite import Database, select

MAX_TAKES = 8
"""Takes that a part keeps: the newest, and the chosen one."""
MAX_ATTEMPTS = 2


class ProjectWork:
    """What there is to speak. One worker a library; calls block for milliseconds."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def recover(self, spoken: Collection[str] = ()) -> int:
        """Put back in line what is said to be spoken and is not, ``spoken`` being what is; how many parts.

        So it is with what was under way when a process ended, or when a note of its end could not be written.
        """
        with self._store.writing() as db:
            query = (
                "update parts set state = 'queued' "
                "where state = 'speaking' and id not in (select value from json_each(?))"
            )
            return int(db.execute(query, [json.dumps(list(spoken))]).rowcount)

    def claim(self) -> ClaimedPart | None:
        """The next part in line, now being spoken; projects take turns. None: nothing is asked for."""
        with self._store.writing() as db:
            waiting = "select 1 from parts where project_id = projects.id and state = 'queued'"
            ready = f"paused = 0 and deleted is null and exists ({waiting})"
            query = f"select * from projects where {ready} order by served, n limit 1"
            for row in select(db, query):
                first = "project_id = ? and state = 'queued'"
                [part] = db.table("parts").rows_where(first, [row["id"]], order_by="position", limit=1)
                db.execute("update parts set state = 'speaking' where n = ?", [part["n"]])
                db.execute("update projects set served = ? where n = ?", [time.time(), row["n"]])
                settings = settings_of(db, row)
                recipe = settings.recipe(part["text"], part["voice"])
                again = list(
                    select(db, "select 1 from part_takes where part_id = ? and recipe = ?", [part["id"], recipe])
                )
                drawn = again or part["attempts"]  # the same seed would say the same again
                seed = secrets.randbelow(2**31) if drawn else settings.seed
                return ClaimedPart(
                    row["id"], part["id"], row["owner"], part["text"], part["voice"], settings, part["attempts"], seed
                )
        return None

    def done(self, claimed: ClaimedPart, take: PartTake, wav: bytes, words: Sequence[WordTime] | None = None) -> None:
        """Keep a take and choose it; when the part was changed meanwhile, it is stale. A part that is gone is none.

        ``words``: when they are heard; None: nobody can tell.
        """
        dropped: list[str] = []
        with self._store.writing() as db:
            row = next(iter(db.table("projects").rows_where("id = ?", [claimed.project_id])), None)
            if row is None or not list(
                db.table("parts").rows_where("id = ? and state = 'speaking'", [claimed.part_id])
            ):
                return
            self._insert(db, take, wav, claimed.text, words)
            db.execute("update parts set chosen = ?, attempts = attempts + 1 where id = ?", [take.id, claimed.part_id])
            settle(db, part_of(db, claimed.project_id, claimed.part_id), settings_of(db, row), at_rest=True)
            dropped = _prune(db, claimed.part_id)
        self._store.drop_unreferred(dropped)

    def mended(self, base: PartTake, text: str, take: PartTake, wav: bytes, words: Sequence[WordTime]) -> None:
        """Keep a take that was made of ``base``, and choose it if that is still the chosen one.

        Raises NotFound where the part, or that take of it, is gone.
        """
        with self._store.writing() as db:
            found = list(db.table("part_takes").rows_where("id = ? and part_id = ?", [base.id, base.part_id]))
            rows = select(db, "select project_id from parts where id = ?", [base.part_id])
            project_id = next((row["project_id"] for row in rows), None)
            if not found or project_id is None:
                raise NotFound("the part, or its take, was deleted meanwhile", "part")
            self._insert(db, take, wav, text, words)
            db.execute("update parts set chosen = ? where id = ? and chosen = ?", [take.id, take.part_id, base.id])
            row = row_of(db, project_id, None)
            settle(db, part_of(db, project_id, take.part_id), settings_of(db, row))
            dropped = _prune(db, take.part_id)
            touch(db, row)
        self._store.drop_unreferred(dropped)

    def _insert(self, db: Database, take: PartTake, wav: bytes, text: str, words: Sequence[WordTime] | None) -> None:
        db.table("part_takes").insert(asdict(take) | {"audio": self._store.files.put(wav)})
        if words is not None:
            db.table("part_take_times").insert({"take": take.id, "text": text, "words": json.dumps(words)})

    def failed(self, claimed: ClaimedPart, reason: str) -> None:
        """Note why; the first time, the part goes back in line."""
        attempts = claimed.attempts + 1
        state = "queued" if attempts < MAX_ATTEMPTS else "failed"
        with self._store.writing() as db:
            change = "update parts set state = ?, attempts = ?, error = ? where id = ? and state = 'speaking'"
            db.execute(change, [state, attempts, reason[:1000], claimed.part_id])

    def release(self, claimed: ClaimedPart, reason: str | None = None) -> None:
        """Put a part back in line: that it was not spoken was none of its fault. ``reason`` is told with it."""
        with self._store.writing() as db:
            change = "update parts set state = 'queued', error = coalesce(?, error) where id = ? and state = 'speaking'"
            db.execute(change, [reason and reason[:1000], claimed.part_id])

    def dropped(self, claimed: ClaimedPart) -> None:
        """Forget that a part was asked for: somebody ended its request, or the project was cancelled."""
        with self._store.writing() as db:
            for row in db.table("projects").rows_where("id = ?", [claimed.project_id]):
                for part in parts_of(db, "id = ? and state = 'speaking'", [claimed.part_id]):
                    settle(db, part, settings_of(db, row), at_rest=True)


def _prune(db: Database, part_id: str) -> list[str]:
    """Forget the oldest takes of a part that has too many, never the chosen one; the audio that they had."""
    old = list(
        db.table("part_takes").rows_where("part_id = ?", [part_id], order_by="n desc", offset=MAX_TAKES, limit=100)
    )
    [chosen] = db.execute("select chosen from parts where id = ?", [part_id]).fetchone()
    old = [each for each in old if each["id"] != chosen]
    for each in old:
        db.table("part_takes").delete_where("id = ?", [each["id"]])
    return [each["audio"] for each in old]
