"""The codec's threads: frames in, audio out, each take's chunks in order.

Separate from the engine's thread, so that the next frame is generated while this one is decoded: on another core,
another CUDA stream or another GPU. If streams can be decoded at the same time, a second thread handles chunks that a
listener waits for, so that they need not wait for large batches of others.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from engine.runtime.codec_streams import CodecStreams, own_stream
from engine.runtime.graphs import HIGH_PRIORITY
from engine.runtime.row import Row
from engine.types import AudioChunk, FinishReason

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, slots=True)
class CodecJob:
    """The next frames of a row, int16 (codebooks, frames); the last job of a take carries its finish_reason."""

    row: Row
    codes: np.ndarray
    first_frame: int
    finish_reason: FinishReason | None
    is_awaited: bool = True
    """Whether a listener waits for it, instead of having audio buffered."""

    @property
    def frames(self) -> int:
        return int(self.codes.shape[1])

    def new_chunk(self, pcm: np.ndarray) -> AudioChunk | None:
        """The part of this audio that was not delivered before the take was resumed; None if there is none.

        Frames that were delivered are decoded only for the stream's state.
        """
        row, delivered_frames = self.row, min(max(self.row.prompt.delivered - self.first_frame, 0), self.frames)
        if delivered_frames and delivered_frames == self.frames and not self.finish_reason:
            return None
        pcm = pcm[delivered_frames * (len(pcm) // self.frames) :] if delivered_frames else pcm
        first, resumed_at = self.first_frame + delivered_frames, row.prompt.delivered or None
        return AudioChunk(pcm, self.codes[:, delivered_frames:], first, row.timing(), self.finish_reason, resumed_at)


class CodecThreads:
    """Decodes the due jobs of all rows together. All public methods may be called from any thread."""

    def __init__(self, streams: CodecStreams, device: torch.device, on_failure: Callable[[str], None]) -> None:
        self._streams, self._device = streams, device
        self._on_failure = on_failure
        self._jobs: list[CodecJob] = []  # in order; guarded by _changed, as is all state below
        self._busy: set[Row] = set()  # rows that a thread is decoding
        self._check_requested = self._stopped = False
        self._changed = threading.Condition()
        self.accounting_errors = 0
        kinds = {"codec": False, "codec, awaited": True} if streams.is_concurrent else {"codec": None}
        self._threads = [
            threading.Thread(target=self._run, args=(is_awaited,), name=name, daemon=True)
            for name, is_awaited in kinds.items()
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def put(self, *jobs: CodecJob) -> None:
        with self._changed:
            self._jobs += jobs
            self._check_requested = False
            self._changed.notify_all()

    def forget(self, row: Row) -> None:
        """Close a cancelled row's stream; no more jobs of it follow."""
        self.put(CodecJob(row, np.zeros((0, 0), np.int16), 0, None))

    def check(self) -> None:
        """Call this when no rows are left: any stream still open after all queued jobs are decoded is an error.

        Skipped when a new job arrives before that.
        """
        with self._changed:
            self._check_requested = True
            self._changed.notify_all()

    @property
    def open_streams(self) -> int:
        return len(self._streams.names())

    def stop(self) -> None:
        """Finish the jobs queued so far, then end the threads."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread.is_alive() and threading.current_thread() is not thread:
                thread.join()

    def work(self) -> None:
        """Decode the due jobs in the calling thread; replaces `start` where threads are not possible."""
        while jobs := self._take(None):
            self._decode(jobs)
        with self._changed:
            self._run_requested_check()

    def _run(self, is_awaited: bool | None) -> None:
        try:
            with own_stream(self._device, HIGH_PRIORITY):
                while jobs := self._wait_for(is_awaited):
                    self._decode(jobs)
        except Exception as error:  # noqa: BLE001  (every error goes to all callers)
            self._on_failure(f"the codec died: {type(error).__name__}: {error}")

    def _wait_for(self, is_awaited: bool | None) -> dict[Row, CodecJob]:
        """The next jobs, by row; none once all jobs before a stop are done."""
        with self._changed:
            while not (jobs := self._take(None if self._stopped else is_awaited)):
                if self._stopped and not self._busy:
                    return jobs
                self._run_requested_check()
                self._changed.wait()
            return jobs

    def _take(self, is_awaited: bool | None) -> dict[Row, CodecJob]:
        """Take the first job of every row whose stream has room, by whether it is awaited (None: either).

        Rows that another thread is decoding are skipped. Cancelled ones are dropped.
        """
        with self._changed:
            jobs: dict[Row, CodecJob] = {}
            remaining, blocked = [], set(self._busy)
            for job in self._jobs:
                if job.row not in blocked and job.row.cancelled:
                    self._streams.close(job.row)
                    continue
                if job.row not in blocked and is_awaited in (None, job.is_awaited) and self._streams.open(job.row):
                    jobs[job.row] = job
                else:
                    remaining.append(job)
                blocked.add(job.row)
            self._jobs = remaining
            self._busy |= jobs.keys()
            return jobs

    def _decode(self, jobs: dict[Row, CodecJob]) -> None:
        """Decode these rows' jobs together and deliver their audio."""
        try:
            pieces = [(row, job.codes) for row, job in jobs.items() if job.frames]
            sounds = dict(zip((row for row, _ in pieces), self._streams.decode(pieces), strict=True))
            for row, job in jobs.items():
                if chunk := job.new_chunk(sounds.get(row, np.zeros(0, np.float32))):
                    row.sink(chunk)
        finally:
            with self._changed:
                for row, job in jobs.items():
                    if job.finish_reason:
                        self._streams.close(row)
                self._busy -= jobs.keys()
                self._changed.notify_all()

    def _run_requested_check(self) -> None:
        """Close streams without jobs, if `check` was called and no jobs are left."""
        if not self._check_requested or self._busy:
            return
        self._check_requested = False
        rows = {job.row for job in self._jobs}
        if stale := [name for name in self._streams.names() if name not in rows]:
            log.error("closed %d codec streams that were open without a take", len(stale))
            for name in stale:
                self._streams.close(name)
            self.accounting_errors += 1  # only now, when the streams are corrected
            self._changed.notify_all()
