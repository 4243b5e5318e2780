"""Keeps takes: what was spoken goes into the library on a thread of its own, so that no disk ever slows speech."""

from __future__ import annotations

import asyncio
import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from studio.audio.encode import pcm16, wav_header
from studio.library import Library, StoredTake
from studio.library.records import OWN_CLIP, SpokenPart, TakeCodes, WordTime
from studio.library.takes import NewTake
from studio.supervisor import HealthCheck
from studio.takes.record import Take, ended

log = logging.getLogger(__name__)

MAX_HELD = 256 * 2**20
"""Bytes of sound, under way and waiting for the disk; takes beyond it are kept without their sound."""
MAX_WAITING = 1000
"""Takes that wait for the disk; those beyond it are not kept."""
BATCH = 32
"""Takes that one transaction writes at most."""
PATIENCE = 5.0
"""Seconds that somebody who asks for a take waits for the disk."""

Outcome = Literal["kept", "soundless", "lost"]
NOT_WHOLE: tuple[Outcome, ...] = ("soundless", "lost")
"""What somebody ought to know of: the disk was too slow, or full."""


@dataclass(frozen=True, slots=True)
class Retention:
    """What stays: all starred takes, and the newest others."""

    takes: int
    """0 keeps none."""
    bytes: int
    """Of the audio of those that are not starred."""


@dataclass(frozen=True, eq=False, slots=True)
class _Ended:
    take: StoredTake
    sound: list[bytes] = field(repr=False)
    size: int
    """Bytes of the sound."""
    codes: TakeCodes | None
    done: Future[None] = field(default_factory=Future)

    @property
    def file(self) -> list[bytes]:
        """A WAV in pieces; none where there is no sound."""
        return [wav_header(self.take.sample_rate, self.size // 2), *self.sound] if self.sound else []


class Recorder:
    """Writes takes into a library, in the order in which they end. Any thread may use it."""

    def __init__(self, library: Library, retention: Retention, told: Callable[[str, Outcome | None], None]) -> None:
        """``told`` hears of each take by its id: None once it is handed over, then what became of it, on any thread."""
        self._takes = library.takes
        self.retention = retention
        self._told = told
        self.watch = HealthCheck("recorder")
        self._open: weakref.WeakSet[Recording] = weakref.WeakSet()
        self._waiting: deque[_Ended] = deque()
        self._is_stopping = False
        self._pending: dict[str, Future[None]] = {}
        self._elsewhere: dict[str, Future[None]] = {}
        self._held = 0
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._thread: threading.Thread | None = None

    def open(self, draft: StoredTake, made_by: str) -> Recording:
        """A recording of one take, to be closed when it ends; ``draft`` is what is known of it by now.

        ``made_by`` is what TakeCodes says of the model.
        """
        recording = Recording(self, draft, made_by)
        with self._lock:
            self._open.add(recording)
        return recording

    def expect(self, take_id: str) -> None:
        """Another process writes this take; `settle` waits for it too, until it `was_written`."""
        with self._lock:
            self._elsewhere[take_id] = Future()

    def was_written(self, take_id: str) -> None:
        """Whatever became of it."""
        with self._lock:
            written = self._elsewhere.pop(take_id, None)
        if written is not None:
            written.set_result(None)

    async def settle(self, take_id: str | None = None) -> None:
        """Wait until a take that has ended, or each that has, is written; PATIENCE at most."""
        with self._lock:
            all_of_them = [*self._pending.items(), *self._elsewhere.items()]
            pending = [done for each, done in all_of_them if take_id in (None, each)]
        if pending:
            await asyncio.wait([asyncio.wrap_future(done) for done in pending], timeout=PATIENCE)

    def stop(self, seconds: float = 10.0) -> None:
        """Write what waits and end. Blocking, ``seconds`` at most."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(seconds)
            if left := len(self._pending):
                log.error("%d takes were not kept: the disk was too slow at the end", left)

    def hold(self, size: int) -> bool:
        """Ask for room in memory; False when there is none. A negative size gives room back."""
        with self._lock:
            if size > 0 and self._held + size > MAX_HELD:
                return False
            self._held += size
            return True

    def put(self, take: StoredTake, sound: list[bytes], size: int, codes: TakeCodes | None) -> None:
        """Have a take written; never blocks."""
        job = _Ended(take, sound, size, codes)
        self._told(take.id, None)
        with self._changed:
            is_full = len(self._pending) >= MAX_WAITING
            if not is_full:
                self._pending[take.id] = job.done
                self._waiting.append(job)
                self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
                self._thread.start()
        if is_full:
            self._end(job, "lost")
            self.watch.report_failure(
                f"takes are not kept: the disk is too slow, and {MAX_WAITING} wait for it already"
            )

    def keep(self, take: StoredTake, wav: bytes, words: Sequence[WordTime]) -> None:
        """Keep a take whose sound is there already, for somebody who waits for it. Blocking.

        Raises LibraryUnavailable, LibraryFull.
        """
        self._takes.add(take, wav, words=words)
        self._told(take.id, "kept")
        self._let_go()

    def forget(self, recording: Recording) -> None:
        """A recording that has ended, whatever became of it."""
        with self._lock:
            self._open.discard(recording)

    def check(self) -> tuple[int, int]:
        """Bytes of sound as they were counted, and as they are held when nothing is recorded or waits for the disk.

        From then on the count is right: else a mistake in it would some day leave no take its sound.
        """
        with self._lock:
            counted = self._held
            if self._open or self._pending:
                return counted, counted
            self._held = 0
        if counted:
            log.error("%d bytes of sound were counted and none are held; the count has been corrected", counted)
        return counted, 0

    def _run(self) -> None:
        while jobs := self._next():
            failures = self.watch.status.failures
            self._write(jobs)
            self._let_go()
            if self.watch.status.failures == failures:
                self.watch.report_success()
            self._settled(jobs)
            self.check()

    def _next(self) -> list[_Ended]:
        """Wait for takes to write, BATCH at most; none when it is time to end."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_stopping)
                if not self._waiting:
                    return []
                outlived = [self._waiting.popleft() for _ in range(self._outlived())]
                jobs = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            for job in outlived:
                self._end(job, "kept")
            self._settled(outlived)
            if jobs:
                return jobs

    def _outlived(self) -> int:
        """How many of the takes that wait need not be written: newer ones that wait too leave them no room."""
        size = 0
        for newer, job in enumerate(reversed(self._waiting)):
            size += job.size
            if newer >= self.retention.takes or size > self.retention.bytes:
                return len(self._waiting) - newer
        return 0

    def _settled(self, jobs: Sequence[_Ended]) -> None:
        """End the wait of everyone who asked for these takes."""
        for job in jobs:
            with self._changed:
                self._pending.pop(job.take.id, None)
            job.done.set_result(None)

    def _write(self, jobs: Sequence[_Ended]) -> None:
        """Keep these takes; those of which one cannot be kept one by one."""
        is_kept = False
        with self.watch.guarded("a take could not be kept"):
            self._takes.add_all([NewTake(job.take, job.file, job.codes) for job in jobs])
            is_kept = True
        if not is_kept and len(jobs) > 1:
            for job in jobs:
                self._write([job])
            return
        for job in jobs:
            self._end(job, "lost" if not is_kept else "kept" if job.sound or not job.take.frames else "soundless")

    def _end(self, job: _Ended, outcome: Outcome) -> None:
        self._told(job.take.id, outcome)
        job.sound.clear()
        self.hold(-job.size)

    def _let_go(self) -> None:
        """Of takes that were deleted, and of those that the newer ones leave no room."""
        with self.watch.guarded("old takes could not be removed"):
            self._takes.purge()
            self._takes.keep_newest(self.retention.takes, self.retention.bytes)


class Recording:
    """The sound of one take while it is made, as 16-bit mono. `close` it once, when the take has ended."""

    def __init__(self, recorder: Recorder, draft: StoredTake, made_by: str) -> None:
        self._recorder = recorder
        self._draft = draft
        self._made_by = made_by
        self._parts: list[SpokenPart] = []
        self._is_unfinished = False
        self._sound: list[bytes] = []
        self._size = 0
        self._is_whole = True

    def write(self, pcm: np.ndarray) -> None:
        """Add (samples,) float32."""
        piece = pcm16(pcm) if self._is_whole else b""
        if not piece:
            return
        if self._recorder.hold(len(piece)):
            self._sound.append(piece)
            self._size += len(piece)
        else:  # half of a take would sound like a fault of the model: rather none of it
            self._drop()
            self._is_whole = False

    def keep(self, parts: Sequence[SpokenPart], is_unfinished: bool) -> None:
        """Add parts that have ended, and whether a limit left something unsaid after them."""
        self._parts += parts
        self._is_unfinished |= is_unfinished

    def close(self, take: Take, sample_rate: int) -> None:
        """Hand the take over to the library; its sound, if there is any, has ``sample_rate`` Hz.

        Codes are of no use without the sound. It cannot be gone on with where its tempo was changed, nor without the
        clip.
        """
        stored, codes = ended(self._draft, take), None
        if self._sound:
            seconds = self._size / 2 / sample_rate
            stored = replace(stored, media_type="audio/wav", sample_rate=sample_rate, seconds=seconds)
            plain = stored.parameters.get("speed", 1) == 1 and stored.voice != OWN_CLIP
            codes = TakeCodes(self._made_by, tuple(self._parts)) if self._parts else None
            if codes and self._is_unfinished and take.state == "finished" and plain:
                stored = replace(stored, timings=stored.timings | {"can_continue": True})
        self._recorder.put(stored, self._sound, self._size, codes)
        self._recorder.forget(self)

    def drop(self) -> None:
        """Keep nothing of it."""
        self._drop()
        self._recorder.forget(self)

    def _drop(self) -> None:
        self._recorder.hold(-self._size)
        self._sound.clear()
        self._size = 0
