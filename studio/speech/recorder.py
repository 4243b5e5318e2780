"""Stores takes in the library on a separate thread, so that the disk never slows speech."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from studio.errors import LibraryBusy, LibraryFull
from studio.library import Library
from studio.library.audio_files import Piece
from studio.library.take import NewTake
from studio.library.trash import REMOVED_AT_ONCE
from studio.settings import Settings
from studio.supervisor import HealthCheck

log = logging.getLogger(__name__)

MAX_HELD = 256 * 2**20
"""Maximum bytes of audio in memory, recording or waiting for the disk; takes beyond this are stored without audio."""
SPILL = 2 * 2**20
"""Bytes of a take's audio in memory from which it is moved to a temporary file: else four takes of the longest text
would need all the memory that there is for everybody's."""
SPILL_SPARES = 2**30
"""Free bytes that such a file leaves on the disk: a full one has no room for it and for the takes that still fit."""
MAX_FILES = 100  # takes that wait in such files, each of which holds one of the process's descriptors
MAX_WAITING = 1000
"""Maximum takes waiting for the disk; further takes are not stored."""
BATCH = 32
"""Maximum takes per transaction."""
PATIENCE = 5.0
"""Seconds for which a request for a take waits for the disk."""
RETRY_SECONDS = 5.0
"""Seconds until takes are written again for which the library was busy or full."""

Outcome = Literal["kept", "soundless", "lost"]
NOT_WHOLE: tuple[Outcome, ...] = ("soundless", "lost")
"""Outcomes to report to the owner: the disk was too slow, or full."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Limits on the takes that are not starred; starred takes are always kept, and the oldest others removed first."""

    takes: int
    """Number of takes of each kind; 0 keeps none."""
    bytes: int
    """Total size of their audio."""
    by_owner: bool = False
    """Whether each owner has these limits, which needs keys: without them, visitors have only addresses."""

    @staticmethod
    def of(settings: Settings) -> Retention | None:
        """The retention that the settings ask for; None stores no takes."""
        if not settings.keep_takes:
            return None
        return Retention(settings.keep_takes, settings.take_bytes, bool(settings.api_keys))

    def owner(self, caller: str | None) -> str | None:
        """The owner whose takes are counted with those of this caller; None: all are counted together."""
        return caller if self.by_owner else None


def in_memory(pieces: Sequence[Piece]) -> int:
    """The bytes of those pieces that are in memory."""
    return sum(len(piece) for piece in pieces if isinstance(piece, bytes))


class Recorder:
    """Writes takes into a library, in the order in which they end; on a full disk, those that still fit first. Any
    thread may use it."""

    def __init__(self, library: Library, retention: Retention, report: Callable[[str, Outcome | None], None]) -> None:
        """``report`` gets a take's id with None when it has ended, then with its outcome; on any thread."""
        self._takes, self.folder = library.takes, library.home
        self.retention = retention
        self._report = report
        self.watch = HealthCheck("recorder")
        self._open: set[object] = set()
        self._waiting: dict[str, NewTake] = {}
        """By id, oldest first."""
        self._writing: set[str] = set()
        self._attempt: Future[set[str]] = Future()
        """The current attempt to write; its result: the takes that need not wait any longer."""
        self._withdrawn: set[str] = set()
        """Takes that are not written again if this attempt fails."""
        self._is_stopping = False
        self._obstacle: type[LibraryBusy | LibraryFull] | None = None
        """Why takes must wait."""
        self._pending: dict[str, Future[None]] = {}
        self._audio_bytes = 0
        self._checked = set[str | None]()
        """The owners whose takes are within the retention, which can only be lowered before a start."""
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._thread: threading.Thread | None = None

    def open(self, source: object) -> None:
        """Expect audio from a take that is being generated, until `close`."""
        with self._lock:
            self._open.add(source)

    def expect(self, take_id: str) -> None:
        """A take has ended: `wait_until_written` waits for it until `mark_written`, whoever writes it."""
        with self._lock:
            self._pending[take_id] = Future()

    def mark_written(self, take_id: str) -> None:
        """End the wait for a take whose outcome is known, written or not."""
        with self._lock:
            future = self._pending.pop(take_id, None)
        if future is not None:
            future.set_result(None)

    async def wait_until_written(self, take_id: str | None = None) -> None:
        """Wait until one ended take, or all, are written: for at most PATIENCE, and not while the library is busy or
        full."""
        with self._lock:
            pending = [future for name, future in self._pending.items() if take_id in (None, name)]
        if pending and self._obstacle is None:
            await asyncio.wait([asyncio.wrap_future(future) for future in pending], timeout=PATIENCE)

    def stop(self, seconds: float = 10.0) -> None:
        """Write the waiting takes and stop. Blocks for at most ``seconds``."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(seconds)
            if unwritten := len(self._pending):
                log.error("%d takes were not saved: the disk was too slow at shutdown", unwritten)

    def reserve(self, size: int) -> bool:
        """Reserve memory for audio, in bytes; False when none is left."""
        with self._lock:
            if self._audio_bytes + size > MAX_HELD:
                return False
            self._audio_bytes += size
            return True

    def release(self, size: int) -> None:
        """Give back reserved memory, in bytes."""
        with self._lock:
            self._audio_bytes -= size

    def close(self, source: object, new_take: NewTake | None) -> None:
        """Queue a take that has ended for writing; None stores nothing. Never blocks.

        The memory of its audio is released once it is written.
        """
        with self._lock:
            self._open.discard(source)
        if new_take is None:
            return
        self._report(new_take.take.id, None)
        with self._changed:
            is_full = len(self._pending) >= MAX_WAITING
            if not is_full:
                self.expect(new_take.take.id)
                self._waiting[new_take.take.id] = new_take
                self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
                self._thread.start()
        if is_full:
            self._end(new_take, "lost")
            self.watch.report_failure(
                f"takes are not kept: the disk is too slow, and {MAX_WAITING} wait for it already"
            )

    def waiting(self) -> list[NewTake]:
        """The takes that are not written yet, oldest first."""
        with self._lock:
            return list(self._waiting.values())

    async def withdraw(self, take_ids: Iterable[str]) -> list[str]:
        """Do not write these takes; returns those that are not stored, after waiting for any that are being written."""
        with self._lock:
            waiting = [take_id for take_id in take_ids if take_id in self._waiting]
            writing, attempt = self._writing.intersection(waiting), self._attempt
            self._withdrawn |= writing
            for take_id in writing.symmetric_difference(waiting):
                self._drop(take_id)
        stored = await asyncio.wrap_future(attempt) if writing else set()
        return [take_id for take_id in waiting if take_id not in stored]

    def _drop(self, take_id: str) -> None:
        self.release(in_memory(self._waiting.pop(take_id).audio[1:]))
        self.mark_written(take_id)

    def keep(self, new_take: NewTake) -> None:
        """Write a take that is already complete, and return when it is saved. Blocking.

        Raises LibraryUnavailable, LibraryFull.
        """
        self._takes.add_all([new_take])
        self._report(new_take.take.id, "kept")
        self._remove_old([new_take])

    def check(self) -> tuple[int, int]:
        """Return the bytes of audio counted, and those held if nothing is being recorded or waiting for the disk.

        Corrects the count, because an error in it would eventually leave every take without audio.
        """
        with self._lock:
            counted = self._audio_bytes
            if self._open or self._pending:
                return counted, counted
            self._audio_bytes = 0
        if counted:
            log.error("%d bytes of audio were counted but none are held; the count has been corrected", counted)
        return counted, 0

    def _run(self) -> None:
        while batch := self._next_batch():
            failures = self.watch.status.failures
            ended = self._write(batch)
            self._remove_old(ended)
            if self.watch.status.failures == failures:
                self.watch.report_success()
            with self._changed:
                stored = {new_take.take.id for new_take in ended}
                for take_id in stored:
                    del self._waiting[take_id]
                    self.mark_written(take_id)
                for take_id in self._withdrawn - stored:
                    self._drop(take_id)
                self._writing, self._withdrawn = set(), set()
                self._attempt.set_result(stored)
                must_wait = len(ended) < len(batch)
                if not must_wait and (self._obstacle is LibraryBusy or not self._waiting):
                    self._obstacle = None
                del batch, ended  # their audio, which would stay until the next batch
                if must_wait:
                    for take_id, future in self._pending.items():  # end `wait_until_written` for them
                        self._pending[take_id] = Future()
                        future.set_result(None)
                    self._changed.wait(RETRY_SECONDS)  # or until the next take
            self.check()

    def _next_batch(self) -> list[NewTake]:
        """Wait for takes to write; empty when stopping. At most BATCH, and only one to try whether a library that was
        busy or full can be written again: on a full disk the smallest, since one too large must not hold up others."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_stopping)
            batch = list(self._waiting.values())
            if self._obstacle is LibraryFull:
                batch.sort(key=lambda new_take: sum(map(len, new_take.audio)))
            batch = batch[: BATCH if self._obstacle is None else 1]
            self._writing, self._attempt = {new_take.take.id for new_take in batch}, Future()
            return batch

    def _write(self, takes: Sequence[NewTake]) -> Sequence[NewTake]:
        """Write these takes in one transaction; if they cannot be stored, one by one. Returns those that need not wait:
        all, unless the library is busy or full. As their memory is limited, they may wait for that."""
        is_stored = must_wait = False
        with self.watch.guarded("a take could not be kept"):
            try:
                self._takes.add_all(takes)
                is_stored = True
            except (LibraryBusy, LibraryFull) as error:
                self.watch.report_failure("takes wait to be kept", error)
                must_wait, self._obstacle = True, LibraryFull if isinstance(error, LibraryFull) else LibraryBusy
        if must_wait and not self._is_stopping:
            return []
        if not is_stored and not must_wait and len(takes) > 1:
            return list(takewhile(lambda new_take: self._write([new_take]), takes))
        for new_take in takes:
            self._end(new_take, "lost" if not is_stored else "kept" if new_take.audio else "soundless")
        return takes

    def _end(self, new_take: NewTake, outcome: Outcome) -> None:
        self._report(new_take.take.id, outcome)
        self.release(in_memory(new_take.audio[1:]))

    def _remove_old(self, added: Sequence[NewTake]) -> None:
        """Remove the oldest takes beyond the retention of the callers of new ones."""
        with self.watch.guarded("old takes could not be removed"):
            for owner, count in Counter(self.retention.owner(one.take.caller) for one in added).items():
                most = REMOVED_AT_ONCE if owner in self._checked else count
                self._takes.keep_newest(self.retention.takes, self.retention.bytes, owner, most)
                self._checked.add(owner)
