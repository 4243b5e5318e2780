"""The codec's own thread: drawn frames in, sound out, each take's chunks in order.

Apart from the engine's thread, so that the next frame is being drawn while this one is decoded: on another
core, another CUDA stream or another GPU.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from engine.graphs import AHEAD
from engine.row import Row
from engine.streams import Streams, own_stream
from engine.types import AudioChunk, FinishReason


@dataclass(frozen=True, eq=False, slots=True)
class Job:
    """The next frames of a row, int16 (codebooks, frames); the last job of a take carries its finish_reason."""

    row: Row
    codes: np.ndarray
    first_frame: int
    finish_reason: FinishReason | None

    @property
    def frames(self) -> int:
        return int(self.codes.shape[1])


class Vocoder:
    """Decodes what is due, all rows at once. `put`, `forget` and `stop` may be called from any thread."""

    def __init__(self, streams: Streams, device: torch.device, on_failure: Callable[[str], None]) -> None:
        self._streams, self._device = streams, device
        self._on_failure = on_failure
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="vocoder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, job: Job) -> None:
        self._jobs.put(job)

    def forget(self, row: Row) -> None:
        """Let go of a cancelled row's stream; no job of it follows."""
        self._jobs.put(Job(row, np.zeros((0, 0), np.int16), 0, None))

    def stop(self) -> None:
        """Finish what was put before and end the thread."""
        self._jobs.put(None)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()

    def work(self) -> None:
        """Decode what is due in the calling thread: in the place of `start` where no thread can live."""
        waiting = []
        while not self._jobs.empty():
            if job := self._jobs.get():
                waiting.append(job)
        for left in self._work(waiting):
            self._jobs.put(left)

    def _run(self) -> None:
        waiting: list[Job] = []
        try:
            with own_stream(self._device, AHEAD):
                while True:
                    while not waiting or not self._jobs.empty():
                        job = self._jobs.get()
                        if job is None:
                            return
                        waiting.append(job)
                    waiting = self._work(waiting)
        except Exception as error:  # noqa: BLE001  (whatever kills the thread is told to every caller)
            self._on_failure(f"the codec died: {type(error).__name__}: {error}")

    def _work(self, jobs: list[Job]) -> list[Job]:
        """Decode the first job of every row together; returns the jobs that are left for the next turn."""
        due: dict[Row, Job] = {}
        left: list[Job] = []
        for job in jobs:
            if job.row.cancelled:
                self._streams.close(job.row)
            elif job.row in due or not self._streams.open(job.row):
                left.append(job)
            else:
                due[job.row] = job
        pieces = [(row, job.codes) for row, job in due.items() if job.frames]
        sounds = dict(zip((row for row, _ in pieces), self._streams.decode(pieces), strict=True))
        for row, job in due.items():
            pcm = sounds.get(row, np.zeros(0, np.float32))
            row.sink(AudioChunk(pcm, job.codes, job.first_frame, row.timing(), job.finish_reason))
            if job.finish_reason:
                self._streams.close(row)
        return left
