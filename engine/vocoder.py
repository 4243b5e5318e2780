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

from engine.codec import Codec, StreamState
from engine.row import Row
from engine.types import AudioChunk, FinishReason


@dataclass(frozen=True, eq=False, slots=True)
class Job:
    """The next frames of a row, int16 (codebooks, frames); the last job of a take carries its finish_reason."""

    row: Row
    codes: np.ndarray
    first_frame: int
    finish_reason: FinishReason | None


class Vocoder:
    """Decodes jobs one after the other. `put` and `stop` may be called from any thread."""

    def __init__(self, codec: Codec, on_failure: Callable[[str], None]) -> None:
        self._codec = codec
        self._device = next(codec.parameters()).device
        self._on_failure = on_failure
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._streams: dict[Row, StreamState] = {}
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

    def _run(self) -> None:
        try:
            while job := self._jobs.get():
                self._work(job)
        except Exception as error:  # noqa: BLE001  (whatever kills the thread is told to every caller)
            self._on_failure(f"the codec died: {type(error).__name__}: {error}")

    def _work(self, job: Job) -> None:
        row = job.row
        if not row.cancelled:
            stream = self._streams.setdefault(row, StreamState(1))
            pcm = self._decode(job.codes, stream)
            row.sink(AudioChunk(pcm, job.codes, job.first_frame, row.timing(), job.finish_reason))
        if job.finish_reason or row.cancelled:
            self._streams.pop(row, None)

    @torch.inference_mode()
    def _decode(self, codes: np.ndarray, stream: StreamState) -> np.ndarray:
        """Codes (codebooks, frames) → float32 (samples,)."""
        if codes.shape[1] == 0:
            return np.zeros(0, np.float32)
        frames = torch.from_numpy(codes.astype(np.int64)).to(self._device)
        return self._codec.decode(frames[None], stream)[0, 0].float().cpu().numpy()
