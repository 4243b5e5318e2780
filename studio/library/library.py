"""The library itself: opens one folder with all its contents, and gives takes, voices and projects an owner."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from copy import copy
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from studio.errors import NotFound
from studio.library.audit import Audit, note
from studio.library.backup import Backup
from studio.library.projects.cast_repository import Cast
from studio.library.projects.covers import Covers
from studio.library.projects.part_arrangement import Arrangement
from studio.library.projects.part_queue import PartQueue
from studio.library.projects.project_repository import Projects
from studio.library.projects.proof_repository import Proofs
from studio.library.projects.replacements import Replacements
from studio.library.projects.row_mapping import row_of, settle_pronounced
from studio.library.pronunciations.entries import DictionaryScope
from studio.library.pronunciations.pronunciation_repository import Pronunciations
from studio.library.sharing import check_right, readable
from studio.library.sqlite import Database
from studio.library.store import Store
from studio.library.takes.shares import Shares
from studio.library.takes.take_repository import Takes
from studio.library.trash import Trash
from studio.library.voices.codes import Codes
from studio.library.voices.consents import Consents
from studio.library.voices.voices import Voices
from studio.supervisor import HealthCheck

TRASH_DAYS = 7
CLEAR_SECONDS = 3600.0
"""Seconds between two removals of expired entries."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """Items made without a key that this start gave to the holder of the first key."""

    takes: int = 0
    projects: int = 0
    voices: int = 0


class Library:
    """A folder with library.db and audio/. Any number of processes may open the same one."""

    def __init__(self, home: Path, trash_days: float = TRASH_DAYS, has_keys: bool = False) -> None:
        """Open or create the library in ``home`` and complete work interrupted by a crash. Blocking: milliseconds.

        ``trash_days``: how long deleted entries can be restored; ``has_keys``: whether callers have keys, and see only
        their own and shared items.
        """
        self._has_keys = has_keys
        self.store = store = Store(home)
        self.home = home
        self.backup: Backup | None = None
        """The backup of this library, so that its status can be shown; None without one."""
        self.adopted = Adopted()
        self.files = store.files
        self.trash = trash = Trash(store, trash_days)
        self.voices = Voices(store, trash)
        self.codes = Codes(store)
        self.takes = Takes(store, trash)
        self.shares = Shares(store)
        self.consents = Consents(store)
        self.projects = Projects(store, trash)
        self.arrangement = Arrangement(store, trash)
        self.replacements = Replacements(store, trash)
        self.cast = Cast(store, trash)
        self.covers = Covers(store)
        self.pronunciations = self._dictionaries(None)
        self.part_queue = PartQueue(store)
        self.proofs = Proofs(store)
        self.audit = Audit(store)
        self.watch = HealthCheck("clearing")
        """The health of `clear_away`."""

    async def clear_away(self) -> None:
        """Remove expired entries every hour, even if nobody uses the library."""
        while True:
            await asyncio.to_thread(self.trash.expire)
            self.watch.report_success()
            await asyncio.sleep(CLEAR_SECONDS)

    def seen_by(self, caller: str | None) -> Library:
        """The library with the rights of a caller to voices, consents and dictionaries; None has all rights.

        Without keys, everybody has all rights.
        """
        if caller is None or not self._has_keys:
            return self
        view = copy(self)
        view.voices = self.voices.seen_by(caller)
        view.consents = Consents(self.store, caller)
        view.pronunciations = self._dictionaries(caller)
        return view

    def _dictionaries(self, caller: str | None) -> Pronunciations:
        return Pronunciations(self.store, partial(_check_dictionary, viewer=caller), settle_pronounced)

    def assign_owners(self, owners: Mapping[str, str], first_owner: str) -> None:
        """Give the items of each owner in ``owners`` to the owner it maps to, and those made without a key to
        ``first_owner``, which is noted in the audit trail and in `adopted`. All or nothing."""
        with self.store.writing() as db:
            for old_owner, new_owner in owners.items():
                _change_owner(db, new_owner, "= ?", old_owner)
            counts = [_change_owner(db, first_owner, "like ?", "address %"), _change_owner(db, first_owner, "= ?", "")]
            db.execute("update voices set owner = ? where bundled and owner != ?", [first_owner, first_owner])
            adopted = Adopted(*map(sum, zip(*counts, strict=True)))
            if adopted != Adopted():
                note(db, "library.adopt", first_owner, **asdict(adopted))
        self.adopted = adopted


def _check_dictionary(db: Database, dictionary: DictionaryScope, viewer: str | None) -> None:
    """Raises NotFound, NotAllowed unless ``viewer`` may change a dictionary: anyone may change the global one."""
    if dictionary.scope == "project":
        row_of(db, dictionary.subject, viewer)
    elif dictionary.scope == "voice":
        voices = list(db.table("voices").rows_where(f"id = ?1 and {readable('?2')}", [dictionary.subject, viewer]))
        if not voices:
            raise NotFound("there is no voice with this dictionary", "voice", "voice_not_found")
        check_right(db, f"the voice {voices[0]['name']!r}", voices[0], viewer, None)


def _change_owner(db: Database, new_owner: str, condition: str, old_owner: str) -> tuple[int, int, int]:
    """Change the owner; returns the numbers of takes, projects, and voices that are not bundled."""
    update = f"update takes set caller = ? where caller {condition} and part_id is"
    db.execute(f"{update} not null", [new_owner, old_owner])
    takes = db.execute(f"{update} null", [new_owner, old_owner]).rowcount
    projects = db.execute(f"update projects set owner = ? where owner {condition}", [new_owner, old_owner]).rowcount
    db.execute(f"update or replace favourites set owner = ? where owner {condition}", [new_owner, old_owner])
    db.execute(f"update consents set owner = ? where owner {condition}", [new_owner, old_owner])
    voices = db.execute(
        f"update voices set owner = ? where owner {condition} and not bundled", [new_owner, old_owner]
    ).rowcount
    return int(takes), int(projects), int(voices)
