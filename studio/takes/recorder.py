"""Stores takes in the library on a separate thread, so that the disk never slows speech."""

from __future__ import annotations

import asyncio
import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from studio.audio.encode import pcm16, wav_header
from studio.library import Library
from studio.library.records import OWN_CLIP
from studio.library.takes.take import NewTake, SpokenPart, Take, TakeCodes
from studio.supervisor import HealthCheck

log = logging.getLogger(__name__)

MAX_HELD = 256 * 2**20
"""Maximum bytes of audio in memory, recording or waiting for the disk; takes beyond this are stored without audio."""
MAX_WAITING = 1000
"""Maximum takes waiting for the disk; further takes are not stored."""
BATCH = 32
"""Maximum takes per transaction."""
PATIENCE = 5.0
"""Seconds for which a request for a take waits for the disk."""

Outcome = Literal["kept", "soundless", "lost"]
NOT_WHOLE: tuple[Outcome, ...] = ("soundless", "lost")
"""Outcomes to report to the owner: the disk was too slow, or full."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Limits on the takes that are not starred; starred takes are always kept, and the oldest others removed first."""

    takes: int
    """0 keeps none."""
    bytes: int
    """Total size of their audio."""


class Recorder:
    """Writes takes into a library, in the order in which they end. Any thread may use it."""

    def __init__(self, library: Library, retention: Retention, report: Callable[[str, Outcome | None], None]) -> None:
        """``report`` gets a take's id with None when it has ended, then with its outcome; on any thread."""
        self._takes = library.takes
        self.retention = retention
        self._report = report
        self.watch = HealthCheck("recorder")
        self._open: weakref.WeakSet[Recording] = weakref.WeakSet()
        self._waiting: deque[Recording] = deque()
        self._is_stopping = False
        self._pending: dict[str, Future[None]] = {}
        """Takes that have ended and are not written yet, here or in another process."""
        self._audio_bytes = 0
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._thread: threading.Thread | None = None

    def open(self, draft: Take, made_by: str) -> Recording:
        """Start recording a take; close the recording when it ends. ``draft`` is the take so far.

        ``made_by`` identifies the model, as in TakeCodes.
        """
        recording = Recording(self, draft, made_by)
        with self._lock:
            self._open.add(recording)
        return recording

    def expect(self, take_id: str) -> None:
        """Another process writes this take; `wait_until_written` waits for it too, until `mark_written`."""
        with self._lock:
            self._pending[take_id] = Future()

    def mark_written(self, take_id: str) -> None:
        """End the wait for a take whose outcome is known, written or not."""
        with self._lock:
            future = self._pending.pop(take_id, None)
        if future is not None:
            future.set_result(None)

    async def wait_until_written(self, take_id: str | None = None) -> None:
        """Wait until one ended take, or all of them, are written, for at most PATIENCE."""
        with self._lock:
            pending = [future for name, future in self._pending.items() if take_id in (None, name)]
        if pending:
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
        """Reserve memory, in bytes; False when none is left."""
        with self._lock:
            if self._audio_bytes + size > MAX_HELD:
                return False
            self._audio_bytes += size
            return True

    def release(self, size: int) -> None:
        """Give back reserved memory, in bytes."""
        with self._lock:
            self._audio_bytes -= size

    def put(self, recording: Recording) -> None:
        """Queue a take for writing; never blocks."""
        self._report(recording.take.id, None)
        with self._changed:
            self._open.discard(recording)
            is_full = len(self._pending) >= MAX_WAITING
            if not is_full:
                self._pending[recording.take.id] = Future()
                self._waiting.append(recording)
                self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
                self._thread.start()
        if is_full:
            self._end(recording, "lost")
            self.watch.report_failure(
                f"takes are not kept: the disk is too slow, and {MAX_WAITING} wait for it already"
            )

    def keep(self, new_take: NewTake) -> None:
        """Write a take that is already complete, and return when it is saved. Blocking.

        Raises LibraryUnavailable, LibraryFull.
        """
        self._takes.add_all([new_take])
        self._report(new_take.take.id, "kept")
        self._remove_old()

    def forget(self, recording: Recording) -> None:
        """Remove a recording that has ended."""
        with self._lock:
            self._open.discard(recording)

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
        while recordings := self._next_batch():
            failures = self.watch.status.failures
            self._write(recordings)
            self._remove_old()
            if self.watch.status.failures == failures:
                self.watch.report_success()
            for recording in recordings:
                self.mark_written(recording.take.id)
            self.check()

    def _next_batch(self) -> list[Recording]:
        """Wait for takes to write, at most BATCH; empty when stopping."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_stopping)
                if not self._waiting:
                    return []
                superseded = [self._waiting.popleft() for _ in range(self._superseded_count())]
                recordings = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            for recording in superseded:
                self._end(recording, "kept")  # as if written, then removed for the newer ones
                self.mark_written(recording.take.id)
            if recordings:
                return recordings

    def _superseded_count(self) -> int:
        """Number of waiting takes that need not be written, because newer waiting ones already fill the retention."""
        size = 0
        for newer, recording in enumerate(reversed(self._waiting)):
            size += recording.size
            if newer >= self.retention.takes or size > self.retention.bytes:
                return len(self._waiting) - newer
        return 0

    def _write(self, recordings: Sequence[Recording]) -> None:
        """Write these takes in one transaction; if that fails, one by one."""
        is_stored = False
        with self.watch.guarded("a take could not be kept"):
            self._takes.add_all([recording.new for recording in recordings])
            is_stored = True
        if not is_stored and len(recordings) > 1:
            for recording in recordings:
                self._write([recording])
            return
        for recording in recordings:
            is_whole = recording.size or not recording.take.frames
            self._end(recording, "lost" if not is_stored else "kept" if is_whole else "soundless")

    def _end(self, recording: Recording, outcome: Outcome) -> None:
        self._report(recording.take.id, outcome)
        recording.free()

    def _remove_old(self) -> None:
        """Remove the oldest takes beyond the retention."""
        with self.watch.guarded("old takes could not be removed"):
            self._takes.keep_newest(self.retention.takes, self.retention.bytes)


class Recording:
    """The audio of one take while it is generated, as 16-bit mono. `close` it once, when the take has ended."""

    def __init__(self, recorder: Recorder, draft: Take, made_by: str) -> None:
        self.take = draft
        self.size = 0
        """Bytes of audio."""
        self._recorder = recorder
        self._made_by = made_by
        self._parts: list[SpokenPart] = []
        self._is_unfinished = False
        self._sound: list[bytes] = []
        self._is_whole = True

    @property
    def new(self) -> NewTake:
        """The take to write; its codes only if it has audio."""
        if not self._sound:
            return NewTake(self.take)
        codes = TakeCodes(self._made_by, tuple(self._parts)) if self._parts else None
        return NewTake(self.take, [wav_header(self.take.sample_rate, self.size // 2), *self._sound], codes)

    def write(self, pcm: np.ndarray) -> None:
        """Add (samples,) float32."""
        piece = pcm16(pcm) if self._is_whole else b""
        if not piece:
            return
        if self._recorder.reserve(len(piece)):
            self._sound.append(piece)
            self.size += len(piece)
        else:  # half a take would sound like a fault of the model, so drop the audio
            self.free()
            self._is_whole = False

    def keep(self, parts: Sequence[SpokenPart], is_unfinished: bool) -> None:
        """Add parts that have ended, and whether a limit cut off text after them."""
        self._parts += parts
        self._is_unfinished |= is_unfinished

    def close(self, take: Take, sample_rate: int) -> None:
        """Pass the take to the library; its audio, if any, has ``sample_rate`` Hz.

        Takes at another tempo, or with an uploaded clip, cannot be continued.
        """
        self.take = take = take.with_words_of(self.take)
        if self._sound:
            is_resumable = take.parameters.get("speed", 1) == 1 and take.voice != OWN_CLIP
            self.take = replace(
                take,
                media_type="audio/wav",
                sample_rate=sample_rate,
                seconds=self.size / 2 / sample_rate,
                can_continue=self._is_unfinished and bool(self._parts) and take.state == "finished" and is_resumable,
            )
        self._recorder.put(self)

    def drop(self) -> None:
        """Discard the recording."""
        self.free()
        self._recorder.forget(self)

    def free(self) -> None:
        """Discard the audio and release its memory."""
        self._recorder.release(self.size)
        self._sound.clear()
        self.size = 0
