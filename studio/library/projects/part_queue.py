"""The queue of parts to generate, as workers use it: claim the next part, store its take, note its failure."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Collection

from studio.errors import EditConflict, NotFound
from studio.library.projects.project_records import DIRECTED, ClaimedPart, Direction
from studio.library.projects.proof_records import OPEN_NOTE
from studio.library.projects.row_mapping import AT_REST, recipes_of, row_of, settings_of, touch, update_states
from studio.library.sqlite import Database, select
from studio.library.store import Store, once_more_with_room
from studio.library.takes.take import NewTake
from studio.library.takes.take_rows import insert_take

MAX_TAKES = 8
"""Number of newest takes kept for each part, besides the chosen one and takes with an open note."""
MAX_ATTEMPTS = 2
LEASE_SECONDS = 30.0
"""Seconds for which a claim lasts after its last renewal: longer than a busy disk delays one."""
_READY = (
    "paused = 0 and deleted is null"
    " and exists (select 1 from parts where project_id = projects.id and state = 'queued')"
)
_LOST = (
    "select 1 from parts where state = 'speaking' and (leased_until is null or leased_until <= ? or leased_until > ?)"
)
_MINE = "id = ? and state = 'speaking' and lease = ?"
"""The part of a claim, unless it was cancelled or another worker has taken it over."""


class PartQueue:
    """The parts to generate. Any number of workers, in any processes, may share it: each part being generated has a
    lease, which its worker renews. Calls block for milliseconds."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def recover(self, abandoned: Collection[str] = ()) -> int:
        """Queue parts again that are no longer being generated; returns their number.

        These have a lease in ``abandoned``, or one that was not renewed in time, because its process has ended. A lease
        of more than the maximum dates from before the clock was set back; it lasts for LEASE_SECONDS from now unless
        its worker renews it.
        """
        now = time.time()
        with self._store.reading() as db:  # usually there is nothing to do, which can be checked without the lock
            if not abandoned and not db.execute(f"select exists ({_LOST})", [now, now + LEASE_SECONDS]).fetchone()[0]:
                return 0
        with self._store.writing() as db:
            update = "update parts set leased_until = ?1 where state = 'speaking' and leased_until > ?1"
            db.execute(update, [now + LEASE_SECONDS])
            query = (
                "update parts set state = 'queued' where state = 'speaking' and (leased_until is null "
                "or leased_until <= ? or lease in (select value from json_each(?)))"
            )
            return int(db.execute(query, [now, json.dumps(list(abandoned))]).rowcount)

    def renew(self, leases: Collection[str]) -> set[str]:
        """Extend these leases by LEASE_SECONDS from now; returns those that are still valid.

        For all others, the part was cancelled or deleted, or another worker has taken it over.
        """
        condition = "state = 'speaking' and lease in (select value from json_each(?))"
        values = json.dumps(list(leases))
        with self._store.writing() as db:
            db.execute(f"update parts set leased_until = ? where {condition}", [time.time() + LEASE_SECONDS, values])
            return {row[0] for row in db.execute(f"select lease from parts where {condition}", [values]).fetchall()}

    def claim(self) -> ClaimedPart | None:
        """Claim the next queued part; projects take turns. None: nothing is queued."""
        queued_query = f"select * from projects where {_READY} order by served, n limit 1"
        with self._store.reading() as db:
            if not db.execute(queued_query).fetchone():
                return None
        with self._store.writing() as db:
            for row in select(db, queued_query):
                condition = "project_id = ? and state = 'queued'"
                [part] = db.table("parts").rows_where(condition, [row["id"]], order_by="position", limit=1)
                lease, now = secrets.token_hex(12), time.time()
                query = "update parts set state = 'speaking', lease = ?, leased_until = ? where n = ?"
                db.execute(query, [lease, now + LEASE_SECONDS, part["n"]])
                db.execute("update projects set served = ? where n = ?", [now, row["n"]])
                direction = Direction(*(part[name] for name in DIRECTED))
                settings = direction.over(settings_of(db, row))
                recipe = settings.recipe(part["text"], part["voice"])
                existing = list(
                    select(db, "select 1 from takes where part_id = ? and recipe = ?", [part["id"], recipe])
                )
                needs_new_seed = existing or part["attempts"]  # the same seed would give the same take
                return ClaimedPart(
                    project_id=row["id"],
                    part_id=part["id"],
                    owner=row["owner"],
                    text=part["text"],
                    voice=part["voice"],
                    settings=settings,
                    attempts=part["attempts"],
                    seed=secrets.randbelow(2**31) if needs_new_seed else settings.seed,
                    lease=lease,
                )
        return None

    @once_more_with_room
    def done(self, part: ClaimedPart, new_take: NewTake) -> None:
        """Store a take and choose it; if the part has changed meanwhile, the part is stale. Ignores a deleted part."""
        dropped: list[str] = []
        with self._store.writing() as db:
            row = next(iter(db.table("projects").rows_where("id = ?", [part.project_id])), None)
            claim = [part.part_id, part.lease]
            if row is None or not db.execute(f"select 1 from parts where {_MINE}", claim).fetchone():
                return
            self._insert(db, new_take, len(part.text))
            update = "update parts set chosen = ?, attempts = attempts + 1 where id = ?"
            db.execute(update, [new_take.take.id, part.part_id])
            update_states(db, recipes_of(db, row), "id = ?", [part.part_id])
            dropped = _prune(db, part.part_id)
        self._store.drop_unreferred(dropped)

    @once_more_with_room
    def add_regenerated(self, new_take: NewTake, old_take_id: str, characters: int, text: str) -> None:
        """Keep a take of which ``characters`` were regenerated, and choose it if ``old_take_id`` is still chosen.

        If the take's text differs from ``text``, the part's, the part gets it too. Raises NotFound if the part or the
        previous take is gone, and EditConflict if the part got another text meanwhile.
        """
        take = new_take.take
        part_id = str(take.part_id)
        with self._store.writing() as db:
            query = "select project_id from parts join takes on part_id = parts.id where takes.id = ? and parts.id = ?"
            project_row = db.execute(query, [old_take_id, part_id]).fetchone()
            if project_row is None:
                raise NotFound("the part, or its take, was deleted meanwhile", "part")
            if take.text != text:
                update = "update parts set text = ?, chosen = ? where id = ? and text = ?"
                if not db.execute(update, [take.text, old_take_id, part_id, text]).rowcount:
                    raise EditConflict("the text of this part was changed meanwhile; reload it", "text")
            self._insert(db, new_take, characters)
            db.execute("update parts set chosen = ? where id = ? and chosen = ?", [take.id, part_id, old_take_id])
            row = row_of(db, project_row[0], None)
            update_states(db, recipes_of(db, row), f"id = ? and {AT_REST}", [part_id])
            dropped = _prune(db, part_id)
            touch(db, row)
        self._store.drop_unreferred(dropped)

    def _insert(self, db: Database, new_take: NewTake, characters: int) -> None:
        insert_take(db, new_take, self._store.files.put(b"".join(new_take.audio)))
        update = "update parts set work_s = work_s + ?, worked = worked + ? where id = ?"
        db.execute(update, [new_take.take.work_s, characters, new_take.take.part_id])

    def fail(self, part: ClaimedPart, reason: str) -> None:
        """Store the reason; after the first failure, queue the part again."""
        attempts = part.attempts + 1
        state = "queued" if attempts < MAX_ATTEMPTS else "failed"
        with self._store.writing() as db:
            update = "update parts set state = ?, attempts = ?, error = ? where"
            db.execute(f"{update} {_MINE}", [state, attempts, reason[:1000], part.part_id, part.lease])

    def release(self, part: ClaimedPart, reason: str | None = None) -> None:
        """Queue a part again without counting a failure, because the part is not the cause. ``reason`` is stored with
        it."""
        with self._store.writing() as db:
            update = "update parts set state = 'queued', error = coalesce(?, error) where"
            db.execute(f"{update} {_MINE}", [reason and reason[:1000], part.part_id, part.lease])

    def drop(self, part: ClaimedPart) -> None:
        """Remove a part from the queue after its request or the project was cancelled."""
        with self._store.writing() as db:
            for row in db.table("projects").rows_where("id = ?", [part.project_id]):
                update_states(db, recipes_of(db, row), _MINE, [part.part_id, part.lease])


def _prune(db: Database, part_id: str) -> list[str]:
    """Delete the oldest takes of a part that has too many, unless they are kept; returns their audio files."""
    newest = "select n from takes where part_id = ?1 order by n desc limit ?2"
    chosen = "select chosen from parts where id = ?1"
    open_notes = f"select 1 from findings where findings.take = takes.n and {OPEN_NOTE}"
    where = f"part_id = ?1 and n not in ({newest}) and id is not ({chosen}) and not exists ({open_notes})"
    rows = db.execute(f"select n, audio from takes where {where}", [part_id, MAX_TAKES]).fetchall()
    for number, _ in rows:
        db.execute("delete from takes where n = ?", [number])
    return [audio for _, audio in rows]
