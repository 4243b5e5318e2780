"""The library itself: opens one folder with all its contents, and gives what is in it an owner."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import asdict, astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from studio.errors import NotFound
from studio.library.backup import Backup
from studio.library.checks import check_right, readable
from studio.library.consents import Audit, Consents, note
from studio.library.pronunciation_repository import Pronunciations
from studio.library.records import GLOBAL, DictionaryScope
from studio.library.schema import Database, select
from studio.library.shares import Shares
from studio.library.store import Store
from studio.library.take_repository import Takes
from studio.library.trash import Trash
from studio.library.voices import Voices
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
    """A folder with library.db and audio/. Any number of processes may open the same one.

    A subclass adds repositories; its module registers their tables beforehand, in `studio.library.schema`.
    """

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
        self.takes = Takes(store, trash)
        self.voices = Voices(store, trash)
        self.codes = Codes(store)
        self.shares = Shares(store)
        self.consents = Consents(store)
        self.pronunciations = self._dictionaries(None)
        trash.kinds["dictionary"] = self.pronunciations.trashed
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
        check = partial(self._check_dictionary, viewer=caller)
        return Pronunciations(self.store, self.trash, check, self._prepare_respelling)

    @staticmethod
    def _check_dictionary(db: Database, dictionary: DictionaryScope, viewer: str | None) -> None:
        """Raises NotFound, NotAllowed unless ``viewer`` has the right to a dictionary that the transaction needs;
        everybody has it to the global one."""
        if dictionary.scope == "voice":
            voices = list(db.table("voices").rows_where(f"id = ?1 and {readable('?2')}", [dictionary.subject, viewer]))
            if not voices:
                raise NotFound("there is no voice with this dictionary", "voice", "voice_not_found")
            check_right(db, f"the voice {voices[0]['name']!r}", voices[0], viewer, None)
        elif dictionary != GLOBAL:
            raise NotFound(f"there is no {dictionary.scope} {dictionary.subject[:80]!r}", dictionary.scope)

    @staticmethod
    def _prepare_respelling(*change: Any, **_: Any) -> Callable[[Database], None]:
        """Called before each change of a dictionary; returns what to do in its transaction afterwards."""
        return lambda db: None

    def assign_owners(self, owners: Mapping[str, str], first_owner: str) -> None:
        """Give the items of each owner in ``owners`` to the owner it maps to, and those made without a key to
        ``first_owner``, which is noted in the audit trail and in `adopted`. All or nothing."""
        self.trash.first_owner = first_owner
        with self.store.writing() as db:
            for old_owner, new_owner in owners.items():
                if old_owner != new_owner:
                    self._change_owner(db, new_owner, "= ?", old_owner)
            counts = [
                self._change_owner(db, first_owner, "like ?", "address %"),
                self._change_owner(db, first_owner, "= ?", ""),
            ]
            db.execute("update voices set owner = ? where bundled and owner != ?", [first_owner, first_owner])
            adopted = Adopted(*map(sum, zip(*map(astuple, counts), strict=True)))
            if adopted != Adopted():
                note(db, "library.adopt", first_owner, **asdict(adopted))
        self.adopted = adopted

    def _change_owner(self, db: Database, new_owner: str, condition: str, old_owner: str) -> Adopted:
        """Change the owner; returns the numbers of items, without takes of parts and bundled voices."""
        update = f"update takes set caller = ? where caller {condition} and part_id is"
        db.execute(f"{update} not null", [new_owner, old_owner])
        takes = db.execute(f"{update} null", [new_owner, old_owner]).rowcount
        db.execute(f"update or replace favourites set owner = ? where owner {condition}", [new_owner, old_owner])
        db.execute(f"update consents set owner = ? where owner {condition}", [new_owner, old_owner])
        voices = f"update voices set owner = ? where owner {condition} and not bundled"
        return Adopted(takes=takes, voices=db.execute(voices, [new_owner, old_owner]).rowcount)


Encoded: TypeAlias = tuple[np.ndarray, np.ndarray | None]
"""A clip's codes and its voice's vector, as a `Reference` has them."""


class Codes:
    """Reads and stores codes, int16 (codebooks, frames), and vectors of voices, float32 (values,)."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, cut: str, codec: str) -> Encoded | None:
        """The codes of a cut by a codec's fingerprint and its vector if any; None if it has not been encoded yet."""
        with self._store.reading() as db:
            rows = list(select(db, "select * from codes where cut = ? and codec = ?", [cut, codec]))
        if not rows:
            return None
        flat, vector = np.frombuffer(rows[0]["codes"], "<i2").astype(np.int16), rows[0]["vector"]
        codes = flat.reshape(rows[0]["codebooks"], rows[0]["frames"])
        return codes, None if vector is None else np.frombuffer(vector, "<f4").astype(np.float32)

    def put(self, cut: str, codec: str, codes: np.ndarray, vector: np.ndarray | None = None) -> None:
        """Store codes and vector; existing ones stay, since the same cut gives the same codes."""
        row = {"cut": cut, "codec": codec, "codebooks": codes.shape[0], "frames": codes.shape[1]}
        row |= {"codes": np.ascontiguousarray(codes, "<i2").tobytes(), "created": time.time()}
        row["vector"] = None if vector is None else np.ascontiguousarray(vector, "<f4").tobytes()
        with self._store.writing() as db:
            db.table("codes").insert(row, ignore=True)
