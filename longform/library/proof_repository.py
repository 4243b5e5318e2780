"""Stores the checks of a project's audio with each checked take, so that no take is checked twice."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

from longform.library.part_order import BEYOND, positions_of
from longform.library.proof_records import MAX_NOTE, Checked, Kind, ProofFigures, ProofFinding, Spot, ToCheck
from longform.library.row_mapping import changing, decision_time, row_of
from longform.library.usual_sound import DRIFTS, TakeSound, UsualSound
from studio.errors import EditConflict, InvalidRequest, NotFound
from studio.library.checks import clean_text
from studio.library.schema import Database, select
from studio.library.store import Store, once_more_with_room
from studio.library.take_repository import take_of

MAX_PAGE = 500
NOTE_WEIGHT = 95  # weight of a listener's note, high because somebody has heard the fault
LATE = 0.125
"""Seconds by which a subtitle may begin late: viewers notice more between sound and picture (ITU-R BT.1359)."""
LATE_WEIGHT = 30
"""Weight of a late subtitle, a judgement: below every doubt about words, because nothing is missing or wrong."""
_CHOSEN = "parts join takes on takes.id = parts.chosen"
_CHECKED = f"{_CHOSEN} join checked_takes on checked_takes.take = takes.n"
_FOUND = "findings cross join takes on takes.n = findings.take cross join parts on parts.id = takes.part_id"
"""Joined in this order: for each part, SQLite would look through all findings."""
_CURRENT = "project_id = ?1 and parts.state = 'done'"
_OF_CHOSEN = f"select findings.n from {_CHOSEN} join findings on findings.take = takes.n where {_CURRENT}"
_NOTES = "select n from findings where kind = 'note'"
_SHOWN = f"project_id = ?1 and findings.n in ({_OF_CHOSEN} union {_NOTES})"
"""A note stays when its part gets another take or another text."""
_NUMBER = "select count(*) from takes as older where older.part_id = parts.id and older.n <= takes.n"
_SPOT = (
    "findings.*, place, parts.id as part_id, takes.id as take_id, takes.text as text, parts.state as state,"
    f" ({_NUMBER}) as take_number, takes.id = parts.chosen as is_chosen"
)
_SOUND = "coalesce(voice_id, takes.voice), takes.voice, takes.seconds, level, pace, print"
_COLUMNS = ("kind", "weight", "start", "end", "first", "last", "heard")
_ADD_DRIFT = (
    'insert into findings (id, take, kind, weight, start, "end", first, last, heard)'
    " select :id, take, :kind, :weight, :start, :end, :first, :last, :heard from checked_takes"
    " where take = :take and checked = :checked"
    " and not exists (select 1 from findings where take = :take and kind = :kind)"
)
"""Adds a finding to a take whose check is still the one that was compared, unless another call has added it."""


class Proofs:
    """Calls block for milliseconds; ``owner_filter`` as in Projects."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def next_unchecked(
        self, project_id: str, owner_filter: str | None, version: int, after: int | None, has_recogniser: bool
    ) -> ToCheck | None:
        """The first part after the place ``after`` (None: of all) with unchecked audio of its text. Raises NotFound.

        ``has_recogniser``: those that were checked by their sound alone are unchecked too.
        """
        checked = "take = takes.n and version = ?2 and (recogniser != '' or not ?4)"
        unchecked = f"not exists (select 1 from checked_takes where {checked})"
        query = f"select takes.*, place from {_CHOSEN} where {_CURRENT} and (?3 is null or place > ?3) and {unchecked}"
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            for row in select(db, f"{query} order by place limit 1", [project_id, version, after, has_recogniser]):
                place = row.pop("place")
                [position] = positions_of(db, project_id, [place])
                return ToCheck(str(row["part_id"]), place, position, take_of(row))
        return None

    def forget(self, project_id: str, owner_filter: str | None, has_recogniser: bool) -> None:
        """Mark all parts as unchecked; accepted spots stay accepted if they are found again. Raises NotFound.

        Without a recogniser, parts whose words were compared keep their result.
        """
        with self._store.writing() as db:
            row_of(db, project_id, owner_filter)
            takes = "select takes.n from takes join parts on parts.id = part_id where project_id = ?"
            condition = f"take in ({takes}) and (recogniser = '' or ?)"
            db.execute(f"delete from checked_takes where {condition}", [project_id, has_recogniser])

    @once_more_with_room
    def keep(self, take_id: str, checked: Checked) -> None:
        """Store the result of a check with its take; does nothing if that is gone.

        It also does nothing if only the sound was checked, but the same version has compared the words.
        """
        compared_query = "select 1 from checked_takes where take = takes.n and version = ? and recogniser != ''"
        query = f"select n, text from takes where id = ? and not (? and exists ({compared_query}))"
        with self._store.writing() as db:
            for number, text in db.execute(query, [take_id, not checked.recogniser, checked.version]).fetchall():
                figures = {name: getattr(checked, name) for name in ("version", "recogniser", "words", "wrong")}
                figures |= {name: getattr(checked, name) for name in ("speech_s", "level", "pace", "print")}
                row = {"take": number, "checked": time.time()} | figures
                db.table("checked_takes").insert(row, replace=True)
                accepted = {
                    (kind, text[first:last], heard): acceptance
                    for kind, first, last, heard, acceptance in db.execute(
                        "select kind, first, last, heard, accepted from findings where take = ? and accepted", [number]
                    ).fetchall()
                }
                kept = ("note", *DRIFTS)  # by `settle_drift`, with a person's decision about them
                db.execute(f"delete from findings where take = ? and kind not in {kept}", [number])
                for finding in checked.findings:
                    same = finding.kind, text[finding.first : finding.last], finding.heard
                    _add(db, number, finding, accepted.get(same, 0))

    def settle_drift(self, project_id: str, delays: Mapping[str, float]) -> None:
        """Find the takes that differ from what is now usual, and those that begin late.

        ``delays``: by the ids of parts, the seconds by which they begin after their own start.
        """
        query = f"select takes.n, checked, part_id, length(takes.text), {_SOUND} from {_CHECKED} where {_CURRENT}"
        with self._store.reading() as db:
            rows = db.execute(query, [project_id]).fetchall()
            query = f"select take, kind, id, heard from findings where kind in {DRIFTS} and take in"
            numbers = json.dumps([row[0] for row in rows])
            found = db.execute(f"{query} (select value from json_each(?))", [numbers]).fetchall()
        takes = [TakeSound(*row[4:]) for row in rows]
        former = {(take, kind): spot for take, kind, *spot in found}
        added, changed = [], []
        drifts = UsualSound(takes).findings(takes)
        for (number, checked, part_id, length, *_), sound, findings in zip(rows, takes, drifts, strict=True):
            if (delay := delays.get(part_id, 0.0)) > LATE:
                findings.append(ProofFinding("late", LATE_WEIGHT, 0.0, sound.seconds, heard=f"+{delay:.1f} s"))
            for finding in findings:
                spot, heard = former.pop((number, finding.kind), (None, None))
                if spot is None:
                    added.append(_row(number, _whole(finding, length)) | {"checked": checked})
                elif heard != finding.heard:
                    changed.append((finding.heard, spot))
        gone = [(spot,) for spot, _ in former.values()]
        if not (added or changed or gone):
            return
        with self._store.writing() as db:  # all is known by now, as it takes seconds in a long book
            db.conn.executemany("update findings set heard = ? where id = ?", changed)
            db.conn.executemany("delete from findings where id = ?", gone)
            db.conn.executemany(_ADD_DRIFT, added)

    def usual_sound(self, project_id: str) -> UsualSound:
        """The usual level, pace and sound in a project, from its checked takes."""
        with self._store.reading() as db:
            rows = db.execute(f"select {_SOUND} from {_CHECKED} where {_CURRENT}", [project_id]).fetchall()
        return UsualSound([TakeSound(*row) for row in rows])

    def is_timed(self, project_id: str) -> bool:
        """Whether any of its parts has its own start."""
        query = "select 1 from parts where project_id = ? and start is not null limit 1"
        with self._store.reading() as db:
            return db.execute(query, [project_id]).fetchone() is not None

    def checked(self, take_id: str, version: int, has_recogniser: bool) -> Checked | None:
        """The stored result of a take, without notes and accepted findings; None if it was not checked.

        ``has_recogniser``: whether its words were compared, as only results of one kind can be compared by weight.
        """
        query = (
            "select checked_takes.* from checked_takes join takes on n = take"
            " where id = ? and version = ? and (recogniser != '') = ?"
        )
        with self._store.reading() as db:
            for row in select(db, query, [take_id, version, has_recogniser]):
                number = row.pop("take")
                del row["checked"]
                condition = "take = ? and kind != 'note' and not accepted"
                findings = [
                    _finding(finding_row) for finding_row in db.table("findings").rows_where(condition, [number])
                ]
                return Checked(**row, findings=tuple(findings))
        return None

    def figures(self, project_id: str, owner_filter: str | None, version: int) -> ProofFigures:
        """Raises NotFound."""
        sums = "count(*), count(take), count(nullif(recogniser, ''))"
        sums += "".join(
            f", coalesce(sum(case when recogniser != '' then {column} end), 0)" for column in ("words", "wrong")
        )
        seconds = "coalesce(sum(case when take is not null then seconds end), 0.0)"
        source = f"{_CHOSEN} left join checked_takes on take = takes.n and version = ?2 where {_CURRENT}"
        outdated = f"{_CHECKED} where project_id = ?1 and parts.state != 'done' and version = ?2"
        kinds = f"select findings.kind, count(*) from {_FOUND} where {_SHOWN} and not accepted"
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            [figures] = db.execute(f"select {sums}, {seconds} from {source}", [project_id, version]).fetchall()
            [changed] = db.execute(f"select count(*) from {outdated}", [project_id, version]).fetchone()
            counts = db.execute(f"{kinds} group by findings.kind", [project_id]).fetchall()
        parts, checked, compared, words, wrong, audio_s = figures
        return ProofFigures(parts, checked, compared, words, wrong, audio_s, changed, dict(counts))

    def spots(
        self,
        project_id: str,
        owner_filter: str | None,
        chapter: int | None = None,
        kind: Kind | None = None,
        accepted: bool = False,
        offset: int = 0,
        limit: int = 50,
    ) -> tuple[list[Spot], int]:
        """Doubtful spots of the chosen takes and all notes, the most severe first; and their total number. Raises
        NotFound.

        ``chapter``: the number of a chapter, from 1 on, as in the exported files. ``accepted``: whether to list the
        accepted spots or the others.
        """
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            low, high = _span_of(db, project_id, chapter)
            where = f"{_FOUND} where {_SHOWN} and (accepted != 0) = ?2 and place >= ?3 and place < ?4"
            where += " and (?5 is null or findings.kind = ?5)"
            values = [project_id, int(accepted), low, high, kind]
            [total] = db.execute(f"select count(*) from {where}", values).fetchone()
            order = "order by weight desc, place, start limit ?6 offset ?7"
            rows = select(db, f"select {_SPOT} from {where} {order}", [*values, min(limit, MAX_PAGE), offset])
            return _spots(db, project_id, list(rows)), int(total)

    def accept(
        self, project_id: str, owner_filter: str | None, spot_id: str, accepted: bool, before: int | None = None
    ) -> Spot:
        """Accept a spot, which removes it from the list, or reopen it.

        ``before``: the acceptance that the caller has read; None skips the check. Raises NotFound, EditConflict.
        """
        with changing(self._store.writing(), project_id, owner_filter) as (db, _):
            spot = _spot_of(db, project_id, spot_id)
            if before not in (None, spot.acceptance):
                raise EditConflict("this spot was accepted or listed again meanwhile; reload it", "acceptance_before")
            db.execute("update findings set accepted = ? where id = ?", [decision_time() if accepted else 0, spot.id])
            return _spot_of(db, project_id, spot_id)

    @once_more_with_room
    def add_note(self, project_id: str, owner_filter: str | None, take_id: str, at: float, note: str) -> Spot:
        """Mark a second of a part's take, with a note. Raises NotFound, InvalidRequest."""
        note = clean_text("note", note, MAX_NOTE)
        with changing(self._store.writing(), project_id, owner_filter) as (db, _):
            condition = "takes.id = ? and part_id in (select id from parts where project_id = ?)"
            query = f"select n, seconds, text from takes where {condition}"
            for number, seconds, text in db.execute(query, [take_id, project_id]).fetchall():
                if not 0 <= at <= seconds:
                    raise InvalidRequest(f"at must be from 0 to {seconds:.3f}, the seconds of the take", "at")
                first, last = _word_at(db, number, text, at)
                spot_id = _add(db, number, ProofFinding("note", NOTE_WEIGHT, at, at, first, last, note))
                return _spot_of(db, project_id, spot_id)
        raise NotFound(f"the project has no take {take_id[:80]!r}", "take")


def _add(db: Database, take: int, finding: ProofFinding, acceptance: int = 0) -> str:
    row = _row(take, finding, acceptance)
    db.table("findings").insert(row)
    return str(row["id"])


def _row(take: int, finding: ProofFinding, acceptance: int = 0) -> dict[str, Any]:
    figures = {name: getattr(finding, name) for name in _COLUMNS}
    return {"id": f"spot_{secrets.token_hex(12)}", "take": take, "accepted": acceptance} | figures


def _finding(row: dict[str, Any]) -> ProofFinding:
    return ProofFinding(**{name: row[name] for name in _COLUMNS})


def _whole(finding: ProofFinding, length: int) -> ProofFinding:
    """A finding that concerns all words of a take."""
    return ProofFinding(finding.kind, finding.weight, finding.start, finding.end, 0, length, finding.heard)


def _spots(db: Database, project_id: str, rows: Sequence[dict[str, Any]]) -> list[Spot]:
    places = sorted({row["place"] for row in rows})
    positions = dict(zip(places, positions_of(db, project_id, places), strict=True))
    return [
        Spot(
            *(row["id"], _finding(row), row["accepted"], row["part_id"], positions[row["place"]]),
            *(row["take_id"], row["take_number"], bool(row["is_chosen"]), row["text"], row["state"]),
        )
        for row in rows
    ]


def _spot_of(db: Database, project_id: str, spot_id: str) -> Spot:
    query = f"select {_SPOT} from {_FOUND} where project_id = ? and findings.id = ?"
    for spot in _spots(db, project_id, list(select(db, query, [project_id, spot_id]))):
        return spot
    raise NotFound(f"the project has no doubtful spot {spot_id[:80]!r}", "spot")


def _span_of(db: Database, project_id: str, chapter: int | None) -> tuple[int, int]:
    """First and last place; parts before the first heading belong to its chapter. Raises NotFound."""
    if chapter is None:
        return -BEYOND, BEYOND
    query = "select place from parts where project_id = ? and chapter != '' order by place"
    starts = [row[0] for row in db.execute(query, [project_id]).fetchall()] or [0]
    if not 1 <= chapter <= len(starts):
        raise NotFound(f"the project has {len(starts)} chapters, so there is no chapter {chapter}", "chapter")
    return -BEYOND if chapter == 1 else starts[chapter - 1], [*starts, BEYOND][chapter]


def _word_at(db: Database, take: int, text: str, at: float) -> tuple[int, int]:
    """The range of the word spoken at this second; empty if no word times are stored."""
    words = db.execute("select words from take_times where take = ?", [take]).fetchone()
    position = 0
    for word, start, end in json.loads(words[0]) if words else ():
        first = text.find(word, position)
        if first < 0:
            break
        if end >= at or start >= at:
            return first, first + len(word)
        position = first + len(word)
    return position, position
