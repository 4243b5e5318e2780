"""The inline engine: without its own threads, it generates one utterance at a time in the process that calls it.

Made for hosts that give a fork of this process a GPU for the duration of one call. Model, sampling and codec are the
same as in `Engine`, without graphs and without generating several utterances at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from typing import Any

import numpy as np

from engine.checkpoint import Checkpoint
from engine.config import EngineConfig
from engine.engine import Engine
from engine.engine_errors import STOPPED, EngineError, EngineFull, EngineStopped
from engine.runtime.clip_encoder import ClipEncoder
from engine.runtime.loop import Loop
from engine.runtime.setup import Progress, assemble
from engine.types import AudioChunk, EngineInfo, EngineStats, Utterance

OnGpu = Callable[[Callable[..., Any], Callable[..., float]], Callable[..., Any]]
"""Wraps a task so that it runs where the GPU is. Called with the task and a function that
estimates the task's seconds from its arguments."""

Chunks = Generator[AudioChunk, None, None]

ENCODING_SECONDS = 20.0
ALIGNING_SECONDS = 10.0


def speaking_seconds(utterance: Utterance) -> float:
    """Seconds of GPU time to request: generous for the text, and never more than two minutes."""
    return min(120.0, 8.0 + 0.05 * len(utterance.text))


class DirectEngine(Engine):
    """An `Engine` whose work is done by `speak_now` and `ClipEncoder.now`, wherever they run."""

    def __init__(self, checkpoint: Checkpoint, info: EngineInfo, loop: Loop, clip_encoder: ClipEncoder) -> None:
        super().__init__(checkpoint, info, loop, clip_encoder)
        self._speak_on_gpu: Callable[[Utterance], Chunks] = self.speak_now
        self._encode_on_gpu: Callable[[np.ndarray, int], np.ndarray] = clip_encoder.now
        self._align_on_gpu: Callable[[str, np.ndarray], np.ndarray] = self._aligner.now
        self._turn = threading.Lock()
        self._pullers = ThreadPoolExecutor(1 + info.max_waiting, thread_name_prefix="take")
        self._open = self._finished = self._cancelled = self._frames = 0
        self._abandoned: set[Future[AudioChunk | None]] = set()  # pulls without a caller, still running in a thread

    @classmethod
    def start(cls, config: EngineConfig, progress: Progress | None = None, on_gpu: OnGpu | None = None) -> DirectEngine:
        """Load the checkpoint in the calling thread. Raises CheckpointError, ConfigError.

        ``on_gpu`` runs tasks on a GPU; without it they run in this process.
        """
        report = progress or (lambda doing, done: None)
        checkpoint, info, loop, clip_encoder, _ = assemble(replace(config, max_rows=1, graphs=False), report)
        engine = cls(checkpoint, info, loop, clip_encoder)
        if on_gpu:
            engine._speak_on_gpu = on_gpu(engine.speak_now, speaking_seconds)
            engine._encode_on_gpu = on_gpu(engine._clip_encoder.now, lambda audio, rate: ENCODING_SECONDS)
            engine._align_on_gpu = on_gpu(engine._aligner.now, lambda text, codes: ALIGNING_SECONDS)
        report("ready", 1.0)
        return engine

    def speak_now(self, utterance: Utterance) -> Chunks:
        """Generate the take chunk by chunk in the calling thread, during the iteration.

        One at a time: others wait. Raises the errors of `speak`.
        """
        with self._turn:
            chunks: deque[AudioChunk | EngineError] = deque()
            row = self._row(utterance, chunks.append)
            self._loop.submit(row)
            try:
                while True:
                    self._loop.work()
                    while chunks:
                        item = chunks.popleft()
                        if isinstance(item, EngineError):
                            raise item
                        yield item
                        if item.finish_reason:
                            return
            finally:
                self._loop.close(row)

    async def speak(self, utterance: Utterance) -> AsyncGenerator[AudioChunk, None]:
        """Like `Engine.speak`; leaving the iteration ends the take after the current chunk."""
        if self._loop.stop_reason is not None:
            raise EngineStopped(self._loop.stop_reason)
        if self._open + len(self._abandoned) > self.info.max_waiting:  # else an active take might get no thread
            raise EngineFull(
                f"one utterance is spoken at a time and {self.info.max_waiting} are waiting; try again later"
            )
        self._row(utterance, lambda item: None)  # refuse an invalid utterance before requesting a GPU
        self._open += 1
        take, is_finished = self._speak_on_gpu(utterance), False
        pull = self._pull(take)
        try:
            while chunk := await self._await_pull(pull):
                self._frames += chunk.codes.shape[1]
                is_finished = chunk.finish_reason is not None
                pull = self._pull(take)
                yield chunk
        finally:
            self._open -= 1
            self._finished += is_finished
            self._cancelled += not is_finished
            self._abandoned.add(pull)
            pull.add_done_callback(lambda _: self._close(take, pull))

    async def _align(self, text: str, codes: np.ndarray) -> np.ndarray:
        return await asyncio.to_thread(self._align_on_gpu, text, codes)

    async def _encode(self, audio: np.ndarray, sample_rate: int) -> np.ndarray:
        return await asyncio.to_thread(self._encode_on_gpu, audio, sample_rate)

    def _close(self, take: Chunks, pull: Future[AudioChunk | None]) -> None:
        """Close a take that no thread is running."""
        try:
            take.close()
        finally:
            self._abandoned.discard(pull)

    def _pull(self, take: Chunks) -> Future[AudioChunk | None]:
        """The next chunk, or None after the last, from a thread with the request's context."""
        context = copy_context()
        try:
            return self._pullers.submit(lambda: context.run(lambda: next(take, None)))
        except RuntimeError:  # the threads have been shut down
            cancelled: Future[AudioChunk | None] = Future()
            cancelled.cancel()
            return cancelled

    async def _await_pull(self, pull: Future[AudioChunk | None]) -> AudioChunk | None:
        """The result of a pull. If the pull was cancelled but its waiter was not, the engine has stopped."""
        future = asyncio.wrap_future(pull)
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError:
            future.cancel()
            raise
        if future.cancelled():
            raise EngineStopped(self._loop.stop_reason or STOPPED)
        return future.result()

    def stop(self) -> None:
        self._loop.stop()
        self._pullers.shutdown(wait=False, cancel_futures=True)
        super().stop()

    def stats(self) -> EngineStats:
        running = min(self._open, 1)
        return EngineStats(running, self._open - running, self._finished, self._cancelled, self._frames, 0.0)
