"""The queue of parts to generate, as workers use it: claim the next part, store its take, note its failure."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Collection

from longform.library.project_records import ClaimedPart
from longform.library.proof_records import OPEN_NOTE
from longform.library.row_mapping import AT_REST, parts_of, recipes_of, row_of, settings_of, touch, update_states
from studio.errors import EditConflict, NotFound
from studio.library.schema import Database, select
from studio.library.store import Store, once_more_with_room
from studio.library.take import NewTake
from studio.library.take_repository import insert_take

MAX_TAKES = 8
"""Number of newest takes kept for each part, besides the chosen one, those that were chosen last (one fewer, so that
new takes alone keep no more), takes with an open note, and those that undoing a merge needs."""
MAX_ATTEMPTS = 2
"""A part that fails is tried once more, since the first failure may have been chance."""
LEASE_SECONDS = 30.0
"""Seconds for which a claim lasts after its last renewal: longer than a busy disk delays one."""
_READY = (
    "paused = 0 and deleted is null"
    " and exists (select 1 from parts where project_id = projects.id and state = 'queued')"
)
_NEXT = (
    f"with ready as materialized (select n, owner, served from projects where {_READY}), owners as materialized"
    " (select owner, max(served) as latest from projects where owner in (select owner from ready) group by owner)"
    " select * from projects where n = (select n from ready join owners using (owner) order by latest, served, n)"
)
"""The project of the next part: owners take turns, and so do the projects of each."""
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
            update = "update all_parts set leased_until = ?1 where state = 'speaking' and leased_until > ?1"
            db.execute(update, [now + LEASE_SECONDS])
            query = (
                "update all_parts set state = 'queued' where state = 'speaking' and (leased_until is null "
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
            db.execute(
                f"update all_parts set leased_until = ? where {condition}", [time.time() + LEASE_SECONDS, values]
            )
            return {row[0] for row in db.execute(f"select lease from parts where {condition}", [values]).fetchall()}

    def claim(self) -> ClaimedPart | None:
        """Claim the next queued part; owners take turns, then projects. None: nothing is queued."""
        with self._store.reading() as db:
            if not db.execute(_NEXT).fetchone():
                return None
        with self._store.writing() as db:
            for row in select(db, _NEXT):
                condition = "project_id = ? and state = 'queued'"
                [part] = parts_of(db, condition, [row["id"]], limit=1)
                lease = secrets.token_hex(12)
                query = "update all_parts set state = 'speaking', lease = ?, leased_until = ? where id = ?"
                db.execute(query, [lease, time.time() + LEASE_SECONDS, part.id])
                # No time: after one ahead of the clock, a project would get no more turns until then.
                query = "update projects set served = (select max(served) from projects) + 1 where n = ?"
                db.execute(query, [row["n"]])
                settings = part.direction.over(settings_of(db, row))
                recipe = settings.recipe(part.text, part.voice)
                # The same seed would give the same take.
                needs_new_seed = part.attempts or any(take.recipe == recipe for take in part.takes)
                seed = secrets.randbelow(2**31) if needs_new_seed else settings.seed
                return ClaimedPart(part, row["owner"], settings, seed, lease)
        return None

    @once_more_with_room
    def done(self, claim: ClaimedPart, new_take: NewTake) -> None:
        """Store a take and choose it; if the part has changed meanwhile, the part is stale. Ignores a deleted part."""
        with self._store.adding([new_take.audio]) as (db, [digest]):
            row = next(iter(db.table("projects").rows_where("id = ?", [claim.part.project_id])), None)
            if row is None or not db.execute(f"select 1 from parts where {_MINE}", _key(claim)).fetchone():
                dropped = [digest]
            else:
                _insert(db, new_take, digest, len(claim.part.text))
                update = "update all_parts set chosen = ?, attempts = attempts + 1, error = null where id = ?"
                db.execute(update, [new_take.take.id, claim.part.id])
                update_states(db, recipes_of(db, row), "id = ?", [claim.part.id])
                dropped = _prune(db, claim.part.id)
        self._store.drop_unreferred(dropped)

    @once_more_with_room
    def add_regenerated(self, new_take: NewTake, old_take_id: str, characters: int, text: str) -> None:
        """Keep a take of which ``characters`` were regenerated, and choose it if ``old_take_id`` is still chosen.

        If the take's text differs from ``text``, the part's, the part gets it too. Raises NotFound if the part or the
        previous take is gone, and EditConflict if the part got another text meanwhile.
        """
        take = new_take.take
        part_id = str(take.part_id)
        with self._store.adding([new_take.audio]) as (db, [digest]):
            query = "select project_id from parts join takes on part_id = parts.id where takes.id = ? and parts.id = ?"
            project_row = db.execute(query, [old_take_id, part_id]).fetchone()
            if project_row is None:
                raise NotFound("the part, or its take, was deleted meanwhile", "part")
            if take.text != text:
                update = "update all_parts set text = ?, chosen = ? where id = ? and text = ?"
                if not db.execute(update, [take.text, old_take_id, part_id, text]).rowcount:
                    raise EditConflict("the text of this part was changed meanwhile; reload it", "text")
            _insert(db, new_take, digest, characters)
            update = "update all_parts set chosen = ?, error = null where id = ? and chosen = ?"
            db.execute(update, [take.id, part_id, old_take_id])
            row = row_of(db, project_row[0], None)
            update_states(db, recipes_of(db, row), f"id = ? and {AT_REST}", [part_id])
            dropped = _prune(db, part_id)
            touch(db, row)
        self._store.drop_unreferred(dropped)

    def fail(self, claim: ClaimedPart, reason: str) -> None:
        """Store the reason; after the first failure, queue the part again. After the last one, a part whose chosen take
        matches it is done as before."""
        attempts = claim.part.attempts + 1
        state = "queued" if attempts < MAX_ATTEMPTS else "failed"
        with self._store.writing() as db:
            update = "update all_parts set state = ?, attempts = ?, error = ? where"
            db.execute(f"{update} {_MINE}", [state, attempts, reason[:1000], *_key(claim)])
            for row in db.table("projects").rows_where("id = ?", [claim.part.project_id]):
                update_states(db, recipes_of(db, row), f"id = ? and {AT_REST}", [claim.part.id])

    def release(self, claim: ClaimedPart, reason: str | None = None) -> None:
        """Queue a part again without counting a failure, because the part is not the cause. ``reason`` is stored with
        it."""
        with self._store.writing() as db:
            update = "update all_parts set state = 'queued', error = coalesce(?, error) where"
            db.execute(f"{update} {_MINE}", [reason and reason[:1000], *_key(claim)])

    def drop(self, claim: ClaimedPart) -> None:
        """Remove a part from the queue after its request or the project was cancelled."""
        with self._store.writing() as db:
            for row in db.table("projects").rows_where("id = ?", [claim.part.project_id]):
                update_states(db, recipes_of(db, row), _MINE, _key(claim))


def _key(claim: ClaimedPart) -> list[str]:
    """The values of `_MINE`."""
    return [claim.part.id, claim.lease]


def _insert(db: Database, new_take: NewTake, digest: str, characters: int) -> None:
    """``digest``: of its audio; ``characters``: of the text that were generated for it."""
    insert_take(db, new_take, digest)
    update = "update all_parts set work_s = work_s + ?, worked = worked + ? where id = ?"
    db.execute(update, [new_take.take.work_s, characters, new_take.take.part_id])


def _prune(db: Database, part_id: str) -> list[str]:
    """Delete the oldest takes of a part that has too many, unless they are kept; returns their audio files."""
    newest = "select n from takes where part_id = ?1 order by n desc limit ?2"
    chosen = "select chosen from parts where id = ?1"
    former = "select n from takes join former_takes on take = n where part_id = ?1 order by replaced desc limit ?2 - 1"
    open_notes = f"select 1 from findings where findings.take = takes.n and {OPEN_NOTE}"
    # Of the parts that were merged into it and can still be restored from the trash, and its own one before that.
    takes = "json_insert(merge, '$.takes[#]', json_extract(merge, '$.before.chosen'))"
    merged = (
        f"from all_parts as gone, json_each({takes}, '$.takes')"
        " where gone.project_id = (select project_id from all_parts where id = ?1) and deleted > 0 and merged_into = ?1"
    )
    where = f"part_id = ?1 and n not in ({newest}) and id is not ({chosen}) and not exists ({open_notes})"
    where += f" and n not in ({former}) and not exists (select 1 {merged} and json_each.value = takes.id)"
    rows = db.execute(f"select n, audio from takes where {where}", [part_id, MAX_TAKES]).fetchall()
    for number, _ in rows:
        db.execute("delete from takes where n = ?", [number])
    return [audio for _, audio in rows]
