"""Voices and their revisions: created, found, listed, changed, deleted and restored."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from itertools import chain, count
from typing import Any

from studio.errors import DamagedAudio, EditConflict, InvalidRequest, NameTaken, NotFound
from studio.library.checks import Right, check_right, check_samples, readable
from studio.library.consents import check_consent, note, recordings_of, write_consent
from studio.library.listing import Filter, Order, offered, rows_of
from studio.library.names import MAX_REFERENCE, KnownVoices, clean_name, fold, meanings, slug_of, split_revision
from studio.library.records import NewConsent, NewSample, Sample
from studio.library.schema import VOICE_NAMES, Database, select
from studio.library.store import Store, once_more_with_room
from studio.library.trash import REMOVED_AT_ONCE, Prepared, Trash, Trashed, mark
from studio.library.voice import Voice, VoiceFields
from studio.library.voice_rows import Row, as_sample, columns_of, haystack, sample_of, voices_of, write_samples

MAX_PAGE = 1000
MAX_REVISIONS = 100
"""Revisions kept of each voice, besides older ones with a recording that no later one has, or that a take or a project
names. Each edit of a sample makes one, and they can be compared and restored one by one only."""

Revise = Callable[[tuple[Sample, ...]], Sequence[Sample | NewSample]]


class _ChangedMeanwhile(Exception):
    """A voice was changed between reading it and writing its new revision, which then begins again."""


class Voices:
    """The voices of a library. Calls block for milliseconds; any thread and any process may make them.

    `seen_by` limits all of them to the rights of an owner, who owns the voices created there. Calls then raise
    NotAllowed if the right is missing, and NotFound for voices that the owner cannot see.
    """

    def __init__(self, store: Store, trash: Trash) -> None:
        self._store = store
        self._trash = trash
        self._viewer: str | None = None
        self._sharing = "private"
        listed = "select id, name, owner, null, deleted, null, null, rowid from voices where deleted > 0"
        trash.kinds["voice"] = Trashed("voices", listed, _remove_deleted, self._put_back)

    def seen_by(self, viewer: str) -> Voices:
        """The same voices with the rights of an owner."""
        voices = copy(self)
        voices._viewer = viewer
        return voices

    def for_all(self) -> Voices:
        """The same voices; new ones, which do not belong to a key yet, are shared for editing."""
        voices = copy(self)
        voices._sharing = "edit"
        return voices

    @once_more_with_room
    def create(
        self,
        new: VoiceFields,
        samples: Sequence[NewSample],
        event: str = "voice.create",
        source: str = "",
        *,
        bundled: bool = False,
        created: float | None = None,
        consent: NewConsent | None = None,
    ) -> Voice:
        """Add a voice with its first revision; its slug is derived from its name. Raises InvalidRequest, NameTaken.

        ``event`` and ``source`` go into the audit trail if a person did not create the voice by hand. ``created``: the
        Unix time from a pack; ``consent``: a consent to record with the voice, instead of the one it names.
        """
        clean_name(new.name)
        check_samples(samples)
        now = time.time()
        row = columns_of(new, only_set=False) | {
            "id": f"voice_{secrets.token_hex(12)}",
            "bundled": int(bundled),
            "created": created or now,
            "changed": now,
            "revision": 1,
            "version": 1,
            "owner": self._viewer or "",
            "sharing": new.sharing if "sharing" in new.model_fields_set else self._sharing,
        }
        contents = [*([sample.data] for sample in samples), *recordings_of(consent)]
        with self._store.adding(contents) as (db, digests):
            self._claim(db, row, slug_of(row["name"]))
            if consent:
                row["consent_id"] = write_consent(db, consent, digests[len(samples) :], self._viewer).id
            check_consent(db, row["consent_id"], self._viewer)
            db.table("voices").insert(row)
            if new.favourite:
                self._set_favourite(db, row, True)
            self._write_revision(db, row, _stored(samples, digests))
            note(db, event, row["id"], name=row["name"], clips=len(samples), **{"source": source} if source else {})
            return self._load(db, row["id"])

    def get(self, reference: str) -> Voice:
        """The voice with an id, slug or name, in its newest revision or a given one: "anna", "anna@2".

        Raises NotFound.
        """
        with self._store.reading() as db:
            return self._load(db, reference)

    def exists(self, reference: str) -> bool:
        with self._store.reading() as db:
            return self._find(db, split_revision(reference)[0]) is not None

    def known_voices(self) -> KnownVoices:
        """The voices as of now, for callers that ask often."""
        with self._store.reading() as db:
            query = f"select id, slug, folded from voices where deleted is null and {readable('?1')}"
            rows = db.execute(query, [self._viewer]).fetchall()
        ids, slugs = (frozenset(row[column] for row in rows) for column in range(2))
        return KnownVoices(ids, slugs, {folded: slug for _, slug, folded in rows})

    def page(
        self,
        query: str = "",
        *,
        tags: Sequence[str] = (),
        gender: str = "",
        accent: str = "",
        language: str = "",
        favourite: bool | None = None,
        bundled: bool | None = None,
        deleted: bool = False,
        order: Order = "name",
        limit: int = MAX_PAGE,
        after: str | None = None,
    ) -> list[Voice]:
        """Voices with every word of the query, every tag, and all other given properties; see `Filter`.

        With ``deleted``, voices in the trash, always the last deleted first. ``after`` is the id of the last voice on
        the previous page. Raises NotFound if it is gone, InvalidRequest for a query of too many words
        or tags, and for an invalid gender or language.
        """
        since = self._trash.since if deleted else None
        filters = Filter(query, tags, gender, accent, language, favourite, bundled, since)
        with self._store.reading() as db:
            rows = rows_of(db, filters, order, min(max(limit, 1), MAX_PAGE), after, self._viewer)
            return voices_of(db, rows, self._viewer)

    def all(self, **filters: Any) -> list[Voice]:
        """All voices that match the filters of `page`, in the order of its pages."""
        voices: list[Voice] = []
        while more := self.page(after=voices[-1].id if voices else None, **filters):
            voices += more
        return voices

    def offered(self) -> dict[str, list[str]]:
        """The values for filtering voices: every tag, gender, accent and language in use, sorted."""
        with self._store.reading() as db:
            return offered(db, self._viewer)

    def count(self) -> int:
        """Return the number of voices that the viewer can read."""
        with self._store.reading() as db:
            query = f"select count(*) from voices where deleted is null and {readable('?1')}"
            return int(db.execute(query, [self._viewer]).fetchone()[0])

    def edit(
        self,
        reference: str,
        changes: VoiceFields,
        version: int | None = None,
        event: str = "voice.edit",
        source: str = "",
    ) -> Voice:
        """Change the fields that are set; the voice's samples and revision stay. Only its owner may share it.

        The slug stays when the name changes: projects, default voices and other programs name the voice by it.
        A viewer's favourites are its own: with a right to read, and without changing the voice for others.
        ``event`` and ``source`` are as in `create`.
        Raises NotFound, InvalidRequest, NameTaken, and EditConflict if ``version`` is given and no longer current.
        """
        with self._store.writing() as db:
            fields = changes.model_fields_set
            is_own = self._viewer is not None and fields == {"favourite"}
            row = self._row(db, reference, version, "own" if "sharing" in fields else "read" if is_own else None)
            if "favourite" in fields:
                self._set_favourite(db, row, changes.favourite)
            if is_own:
                return voices_of(db, [row], self._viewer)[0]
            changed = row | columns_of(changes, only_set=True)
            if changed["folded"] != row["folded"]:
                self._claim(db, changed, changed["slug"])
            if slug := changes.slug:
                if _is_taken(db, slug, row["id"]):
                    raise NameTaken(f"another voice already has the API name {slug!r}; choose another", "slug")
                changed["slug"] = slug
            for name, field in (("folded", "name"), ("slug", "slug")):
                if row[name] not in (changed[name], changed["slug"]) and _planned(db, [row[name]], "%"):
                    whose = "projects, perhaps deleted ones or another person's"
                    raise InvalidRequest(f"{whose}, name this voice {row[field]!r}: it keeps this name", field)
            if changed["consent_id"] != row["consent_id"]:
                check_consent(db, changed["consent_id"], self._viewer)
            self._touch(db, changed)
            note(db, event, row["id"], fields=", ".join(sorted(fields)), **({"source": source} if source else {}))
            return self._load(db, row["id"])

    @once_more_with_room
    def revise(
        self, reference: str, change: Revise, version: int | None = None, event: str = "voice.revise", source: str = ""
    ) -> Voice:
        """Give a voice a new revision, with the samples that ``change`` returns for the present ones.

        Equal samples create no new revision. ``event`` and ``source`` are as in `create`.
        Raises NotFound, InvalidRequest, the errors of ``change``, and EditConflict if ``version`` is given and no
        longer current.
        """
        while True:
            with self._store.reading() as db:
                row = self._row(db, reference, version, "edit")
                current = self._load(db, row["id"]).samples
            samples = change(current)
            check_samples(samples)
            contents = [[sample.data] for sample in samples if isinstance(sample, NewSample)]
            try:
                with self._store.adding(contents) as (db, digests):  # which writes the files before it takes the lock
                    read_version, row = row["version"], self._row(db, row["id"], version)
                    if row["version"] != read_version:
                        raise _ChangedMeanwhile  # not `continue`, which would commit the files of unused samples
                    stored = _stored(samples, digests)
                    if stored != current:
                        row["revision"] += 1
                        self._touch(db, row)
                        self._write_revision(db, row, stored)
                        details = {"name": row["name"], "revision": row["revision"], "clips": len(stored)}
                        note(db, event, row["id"], **details, **({"source": source} if source else {}))
                    return self._load(db, row["id"])
            except _ChangedMeanwhile:
                continue

    def revisions(self, reference: str, limit: int = MAX_REVISIONS, after: int | None = None) -> list[Voice]:
        """Revisions of a voice, newest first; ``after`` is the last one on the previous page. Raises NotFound."""
        with self._store.reading() as db:
            row = self._row(db, reference)
            query = "select number from revisions where voice_id = ? and number < ? order by number desc limit ?"
            values = [row["id"], row["revision"] + 1 if after is None else after, limit]
            numbers = [number for [number] in db.execute(query, values).fetchall()]
            return voices_of(db, [row] * len(numbers), self._viewer, numbers)

    def samples_ever(self, reference: str) -> dict[str, Sample]:
        """The samples of all revisions of a voice by id, each in its latest version. Raises NotFound."""
        with self._store.reading() as db:
            query = "select * from samples where voice_id = ? order by revision"
            rows = select(db, query, [self._row(db, reference)["id"]])
            return {row["id"]: sample_of(row) for row in rows}

    def delete(self, reference: str, version: int | None = None) -> Voice:
        """Move a voice to the trash, which frees its name. Raises NotFound, EditConflict."""
        with self._trash.deleting() as db:
            row = self._row(db, reference, version, "own")
            self._touch(db, row)
            mark(db, "voices", [row["id"]])
            note(db, "voice.delete", row["id"], name=row["name"])
            return voices_of(db, [row], self._viewer)[0]

    def restore(self, reference: str) -> Voice:
        """Restore a voice by its id, or the last one deleted with this slug or name; with a number after its name if
        another voice has that now. Raises NotFound if it is not in the trash.
        """
        query = (
            "select id from voices where (id = ?1 or slug = ?2 or folded = ?3) and deleted > ?4"
            " and (?5 is null or owner = ?5) order by deleted desc"
        )
        with self._store.reading() as db:
            row = db.execute(query, [*meanings(reference), self._trash.since, self._viewer]).fetchone()
        voice_id = row[0] if row else reference
        self._trash.restore_one("voice", voice_id, self._viewer, "voice", "voice_not_found")
        return self.get(voice_id)

    def _put_back(self, db: Database, rows: Sequence[Row], _: Prepared) -> None:
        numbers = defaultdict[object, Iterator[int]](lambda: count(2))  # thousands may have the same name
        for row in rows:
            row.update(_free_name(db, row, numbers[row["folded"]]))
            self._claim(db, row, row["slug"], numbers["slug", row["slug"]])
            self._touch(db, row | {"deleted": None})  # so that the next one cannot claim its name
            note(db, "voice.restore", row["id"], name=row["name"])

    def clip(self, sample: Sample) -> bytes:
        """The recording from which a sample is cut. Raises DamagedAudio, which names the voice."""
        try:
            return self._store.files.read(sample.clip)
        except DamagedAudio as error:
            query = "select name from voices join samples on voice_id = voices.id where clip = ? and deleted is null"
            with self._store.reading() as db:
                names = {row[0] for row in db.execute(query, [sample.clip]).fetchall()}
            owner = f"the voice {' or '.join(sorted(names))}" if names else "a deleted voice"
            message = f"a recording of {owner} cannot be used: {error}; record it again, or restore a backup"
            raise DamagedAudio(message, "voice") from error

    def mend(self, clip: bytes) -> bool:
        """Rewrite a recording whose file is missing or damaged; returns whether it was rewritten. Ignores unused
        recordings."""
        digest = hashlib.sha256(clip).hexdigest()
        try:
            self._store.files.read(digest)
            return False
        except DamagedAudio:
            with self._store.reading() as db:
                if not db.execute("select 1 from samples where clip = ?", [digest]).fetchone():
                    return False
            with self._store.adding([[clip]]):
                return True

    def note_export(self, voice: Voice) -> None:
        """Record in the audit trail that a voice was exported as a pack."""
        with self._store.writing() as db:
            note(db, "voice.export", voice.id, name=voice.name, revision=voice.revision)

    def _write_revision(self, db: Database, row: Row, samples: Sequence[Sample]) -> None:
        revision = {"voice_id": row["id"], "number": row["revision"], "created": row["changed"]}
        db.table("revisions").insert(revision)
        write_samples(db, row["id"], row["revision"], samples)
        _remove_oldest(db, row)

    def _load(self, db: Database, reference: str) -> Voice:
        name, revision = split_revision(reference)
        row = self._row(db, name)
        if revision is None or revision == row["revision"]:
            return voices_of(db, [row], self._viewer)[0]
        query = "select 1 from revisions where voice_id = ? and number = ?"
        if not db.execute(query, [row["id"], revision]).fetchone():
            reason = f"; the last {MAX_REVISIONS} are kept" if 1 <= revision < row["revision"] else ""
            message = f"the voice {row['name']!r} has no revision {revision}; its newest is {row['revision']}{reason}"
            raise NotFound(message, "voice", "voice_not_found")
        return voices_of(db, [row], self._viewer, [revision])[0]

    def _row(self, db: Database, reference: str, version: int | None = None, needed: Right | None = None) -> Row:
        """The row of a voice to which the viewer has a right: ``needed``, as in `check_right`.

        Every access to a voice uses this. Raises NotFound, NotAllowed, EditConflict.
        """
        row = self._find(db, reference)
        if row is None:
            raise NotFound(f"there is no voice {reference[:80]!r}", "voice", "voice_not_found")
        check_right(db, f"the voice {row['name']!r}", row, self._viewer, needed)
        if version is not None and row["version"] != version:
            raise EditConflict(f"the voice {row['name']!r} was changed meanwhile; reload it", "voice")
        return row

    def _claim(self, db: Database, row: Row, slug: str, numbers: Iterator[int] | None = None) -> None:
        """Check that the row's name is free, and give it a free slug: this one, or with one of these ``numbers``."""
        if _is_taken(db, row["folded"], row["id"]):
            message = f"a voice named {row['name']!r} already exists, or has this API name; choose another name"
            raise NameTaken(message, "name")
        slugs = chain([slug], (f"{slug}-{number}" for number in numbers or count(2)))
        query = "select 1 from voices where deleted is null and id != ? and slug = ?"
        row["slug"] = next(one for one in slugs if not db.execute(query, [row["id"], one]).fetchall())
        row["haystack"] = haystack(row)

    def _set_favourite(self, db: Database, row: Row, is_favourite: bool) -> None:
        """Set it for the viewer; without a viewer, removing it removes the favourites of all."""
        if is_favourite:
            db.execute("insert or ignore into favourites values (?, ?)", [row["id"], self._viewer or ""])
        else:
            condition = "voice_id = ?1 and (?2 is null or owner = ?2)"
            db.execute(f"delete from favourites where {condition}", [row["id"], self._viewer])

    def _touch(self, db: Database, row: Row) -> None:
        row["version"] += 1
        row["changed"] = time.time()
        row["haystack"] = haystack(row)
        columns = ", ".join(f"{column} = :{column}" for column in row)
        db.execute(f"update voices set {columns} where id = :id", row)

    def _find(self, db: Database, reference: str) -> Row | None:
        """Find by slug, id, then name: a name can look like another voice's slug; an id looks like neither."""
        if len(reference) > MAX_REFERENCE:
            return None
        as_id, as_slug, as_name = meanings(reference)
        for column, value in (("slug", as_slug), ("id", as_id), ("folded", as_name)):
            # Not through `table`, which looks up the schema each time: every request for speech calls this.
            query = f"select * from voices where deleted is null and {column} = ?1 and {readable('?2')} limit 1"
            for row in select(db, query, [value, self._viewer]):
                return row
        return None


def _is_taken(db: Database, name: str, voice_id: str) -> bool:
    """Whether another voice has this folded name, slug or id: requests may name it by any of these."""
    columns = ("folded", "slug", "id")  # one by one, as SQLite uses no index for any of them
    those = " union all ".join(f"select id from voices where deleted is null and {one} = ?2" for one in columns)
    return bool(db.execute(f"select 1 from ({those}) where id != ?1 limit 1", [voice_id, name]).fetchall())


def _free_name(db: Database, row: Row, numbers: Iterator[int]) -> Row:
    """The columns of the name with which a voice returns from the trash: a number follows it if another voice, perhaps
    one that the owner cannot see, has it now. Nobody can rename a voice in the trash."""
    numbered = (f"{row['name'][:94].rstrip()} {number}" for number in numbers)  # at most MAX_NAME characters
    name = next(name for name in chain([row["name"]], numbered) if not _is_taken(db, fold(name), row["id"]))
    return {"name": name, "folded": fold(name)}


def _remove_deleted(db: Database, until: float) -> set[str]:
    clips = set[str]()
    query = f"select id, name from voices where deleted <= ? limit {REMOVED_AT_ONCE}"
    for voice_id, name in db.execute(query, [until]).fetchall():
        clips |= {row[0] for row in db.execute("select clip from samples where voice_id = ?", [voice_id])}
        keys = {"samples": "voice_id", "revisions": "voice_id", "voices": "id", "replaced_entries": "subject"}
        for table, key in keys.items():
            db.execute(f"delete from {table} where {key} = ?", [voice_id])
        note(db, "voice.purge", voice_id, name=name)
    db.execute("delete from codes where cut not in (select cut from samples)")
    return clips


def _stored(samples: Sequence[Sample | NewSample], digests: Iterable[str]) -> tuple[Sample, ...]:
    """The samples in the form in which they are read; ``digests``: of the clips of the new ones, which are stored."""
    clips = iter(digests)
    return tuple(
        as_sample(sample, f"sample_{secrets.token_hex(8)}", next(clips)) if isinstance(sample, NewSample) else sample
        for sample in samples
    )


def _remove_oldest(db: Database, row: Row) -> None:
    """Remove revisions beyond MAX_REVISIONS, but none with the last use of a recording, none that a stored take names,
    because the take's sentences are regenerated in the revision that spoke it, and none that something yet to be spoken
    names."""
    last_uses = "select max(revision) from samples where voice_id = ?1 group by clip"
    old = (
        f"select number from revisions where voice_id = ?1 and number <= ?2 and number not in ({last_uses})"
        " and not exists (select 1 from take_voices where name = ?1 || '@' || number)"
    )
    values = [row["id"], row["revision"] - MAX_REVISIONS]
    unused = [number for [number] in db.execute(old, values).fetchall()]
    if unused:
        planned = _planned(db, [row["id"], row["slug"], row["folded"]], "%@%")
        unused = [number for number in unused if number not in planned]
    if not unused:
        return
    numbers = json.dumps(unused)
    where = "voice_id = ?1 and {} in (select value from json_each(?2))"
    query = f"select cut from samples where {where.format('revision')}"
    cuts = [[cut] for [cut] in db.execute(query, [row["id"], numbers])]
    for table, column in (("samples", "revision"), ("revisions", "number")):
        db.execute(f"delete from {table} where {where.format(column)}", [row["id"], numbers])
    db.conn.executemany("delete from codes where cut = ?1 and not exists (select 1 from samples where cut = ?1)", cuts)


def _planned(db: Database, own: Sequence[str], pattern: str) -> set[int | None]:
    """The revisions, None for the newest one, of a voice that something yet to be spoken names by one of its ``own``
    names, in references that match an SQL pattern."""
    if not VOICE_NAMES:
        return set()
    query = f"select voice from ({' union '.join(VOICE_NAMES)}) where voice like ?"
    references = (split_revision(reference) for [reference] in db.execute(query, [pattern]).fetchall())
    return {number for name, number in references if any(meaning in own for meaning in meanings(name))}
