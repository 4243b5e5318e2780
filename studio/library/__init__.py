"""The library: voices, samples, codes, takes, projects, consents and an audit trail, in one folder with SQLite."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from studio.library.audit import Audit
from studio.library.backup import Backup
from studio.library.database import Store
from studio.library.projects.cast_repository import Cast
from studio.library.projects.covers import Covers
from studio.library.projects.part_arrangement import Arrangement
from studio.library.projects.part_queue import PartQueue
from studio.library.projects.project_repository import Projects
from studio.library.projects.proof_repository import Proofs
from studio.library.projects.replacements import Replacements
from studio.library.projects.row_mapping import settle_pronounced
from studio.library.pronunciations.pronunciation_repository import Pronunciations
from studio.library.records import AuditEntry, Consent, Cut, NewConsent, NewSample, Sample
from studio.library.sqlite import Database
from studio.library.takes.shares import Shares
from studio.library.takes.take import TakeFilter
from studio.library.takes.take_repository import Takes
from studio.library.trash import Trash
from studio.library.voices.codes import Codes
from studio.library.voices.consents import Consents
from studio.library.voices.voice import Voice, VoiceFields
from studio.library.voices.voices import Voices
from studio.supervisor import HealthCheck

__all__ = [
    "Adopted",
    "AuditEntry",
    "Backup",
    "Consent",
    "Cut",
    "Library",
    "NewConsent",
    "NewSample",
    "Sample",
    "TakeFilter",
    "Voice",
    "VoiceFields",
]

TRASH_DAYS = 7
CLEAR_SECONDS = 3600.0
"""Seconds between two removals of expired entries."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """Takes and projects made without a key that this start gave to the holder of the first key."""

    takes: int = 0
    projects: int = 0


class Library:
    """Everything in one folder: library.db and audio/. Any number of processes may open the same one."""

    def __init__(self, home: Path, trash_days: float = TRASH_DAYS) -> None:
        """Open or create the library in ``home`` and complete what a crash interrupted. Blocking: milliseconds.

        ``trash_days``: how long deleted entries can be restored.
        """
        self.store = store = Store(home)
        self.home = home
        self.backup: Backup | None = None
        """The backup of this library, if there is one, for its status."""
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
        self.pronunciations = Pronunciations(store, settle_pronounced)
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

    def hand_over(self, owner: str, to: str) -> None:
        """Transfer all takes and projects of one owner to another."""
        with self.store.writing() as db:
            _give(db, to, "= ?", owner)

    def adopt(self, owner: str) -> None:
        """Give ``owner`` the takes and projects made without a key (by an address or nobody), and set `adopted`."""
        with self.store.writing() as db:
            counts = [_give(db, owner, "like ?", "address %"), _give(db, owner, "= ?", "")]
        self.adopted = Adopted(sum(takes for takes, _ in counts), sum(projects for _, projects in counts))


def _give(db: Database, to: str, condition: str, owner: str) -> tuple[int, int]:
    """Change the owner; returns the numbers of takes and projects."""
    give = f"update takes set caller = ? where caller {condition} and part_id is"
    db.execute(f"{give} not null", [to, owner])
    takes = db.execute(f"{give} null", [to, owner]).rowcount
    projects = db.execute(f"update projects set owner = ? where owner {condition}", [to, owner]).rowcount
    return int(takes), int(projects)
