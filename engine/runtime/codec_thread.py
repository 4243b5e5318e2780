"""The codec's own thread: drawn frames in, sound out, each take's chunks in order.

Apart from the engine's thread, so that the next frame is being drawn while this one is decoded: on another
core, another CUDA stream or another GPU.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from engine.runtime.codec_streams import CodecStreams, own_stream
from engine.runtime.graphs import HIGH_PRIORITY
from engine.runtime.row import Row
from engine.types import AudioChunk, FinishReason

log = logging.getLogger(__name__)

AWAITED_FRAMES = 7
"""A third of a second: of the first three chunks on a GPU."""


@dataclass(frozen=True, eq=False, slots=True)
class CodecJob:
    """The next frames of a row, int16 (codebooks, frames); the last job of a take carries its finish_reason."""

    row: Row
    codes: np.ndarray
    first_frame: int
    finish_reason: FinishReason | None

    @property
    def frames(self) -> int:
        return int(self.codes.shape[1])

    @property
    def is_awaited(self) -> bool:
        """Whether its listener has at most the first frames of the take to play until it comes."""
        return self.first_frame < self.row.prompt.heard + AWAITED_FRAMES

    def new_chunk(self, pcm: np.ndarray) -> AudioChunk | None:
        """What of this sound was not heard before the take was taken up again; None where that is all of it.

        Frames that were heard are decoded for the stream's state alone.
        """
        row, heard = self.row, min(max(self.row.prompt.heard - self.first_frame, 0), self.frames)
        if heard and heard == self.frames and not self.finish_reason:
            return None
        pcm = pcm[heard * (len(pcm) // self.frames) :] if heard else pcm
        first, resumed_at = self.first_frame + heard, row.prompt.heard or None
        return AudioChunk(pcm, self.codes[:, heard:], first, row.timing(), self.finish_reason, resumed_at)


Command = CodecJob | Literal["check", "stop"]


class CodecThread:
    """Decodes what is due, all rows at once. `put`, `forget`, `check` and `stop` may be called from any thread."""

    def __init__(self, streams: CodecStreams, device: torch.device, on_failure: Callable[[str], None]) -> None:
        self._streams, self._device = streams, device
        self._on_failure = on_failure
        self._jobs: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._stopped = False
        self.book_errors = 0
        self._thread = threading.Thread(target=self._run, name="codec", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, job: CodecJob) -> None:
        self._jobs.put(job)

    def forget(self, row: Row) -> None:
        """Close a cancelled row's stream; no job of it follows."""
        self._jobs.put(CodecJob(row, np.zeros((0, 0), np.int16), 0, None))

    def check(self) -> None:
        """No row lives: once all that was put before is decoded, a stream that is still open is one too many."""
        self._jobs.put("check")

    @property
    def open_streams(self) -> int:
        return len(self._streams.names())

    def stop(self) -> None:
        """Finish what was put before and end the thread."""
        self._jobs.put("stop")
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()

    def work(self) -> None:
        """Decode what is due in the calling thread: in the place of `start` where no thread can live."""
        waiting: list[CodecJob] = []
        while not self._jobs.empty():
            waiting = self._obey(self._jobs.get(), waiting)
        for left in self._work_off(waiting):
            self._jobs.put(left)

    def _run(self) -> None:
        waiting: list[CodecJob] = []
        try:
            with own_stream(self._device, HIGH_PRIORITY):
                while not self._stopped:
                    waiting = self._obey(self._jobs.get(), waiting)
                    while waiting and self._jobs.empty() and not self._stopped:
                        waiting = self._work(waiting)
        except Exception as error:  # noqa: BLE001  (whatever kills the thread is told to every caller)
            self._on_failure(f"the codec died: {type(error).__name__}: {error}")

    def _obey(self, order: Command, waiting: list[CodecJob]) -> list[CodecJob]:
        """The jobs that wait, with this one, or after what else was ordered."""
        if isinstance(order, CodecJob):
            return [*waiting, order]
        waiting = self._work_off(waiting)
        if order == "stop":
            self._stopped = True
        else:
            self._close_all_but({job.row for job in waiting})
        return waiting

    def _work_off(self, waiting: list[CodecJob]) -> list[CodecJob]:
        """Decode all that can be decoded; returns the jobs for whose streams there is no room."""
        while waiting and len(left := self._work(waiting)) < len(waiting):
            waiting = left
        return waiting

    def _close_all_but(self, rows: set[Row]) -> None:
        if stale := [name for name in self._streams.names() if name not in rows]:
            log.error("codec streams: %d open though nobody speaks; they are closed", len(stale))
            for name in stale:
                self._streams.close(name)
            self.book_errors += 1  # once they are: whoever sees the count finds it put right

    def _work(self, jobs: list[CodecJob]) -> list[CodecJob]:
        """Decode the first job of every row together, where some are awaited, these; returns the jobs that are left."""
        due: dict[Row, CodecJob] = {}
        for job in jobs:
            if job.row.cancelled:
                self._streams.close(job.row)
            elif job.row not in due and self._streams.open(job.row):
                due[job.row] = job
        due = {row: job for row, job in due.items() if job.is_awaited} or due
        left = [job for job in jobs if not job.row.cancelled and due.get(job.row) is not job]
        pieces = [(row, job.codes) for row, job in due.items() if job.frames]
        sounds = dict(zip((row for row, _ in pieces), self._streams.decode(pieces), strict=True))
        for row, job in due.items():
            if new := job.new_chunk(sounds.get(row, np.zeros(0, np.float32))):
                row.sink(new)
            if job.finish_reason:
                self._streams.close(row)
        return left
