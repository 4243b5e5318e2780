"""A fake engine for cases that the real one cannot reproduce: a full queue, a slow start, a crash.

It implements the interface of engine.Engine and generates a tone whose pitch depends on the seed.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from engine import (
    AudioChunk,
    CannotAlign,
    EngineConfig,
    EngineFull,
    EngineInfo,
    EngineStats,
    EngineStopped,
    Gpu,
    InvalidReference,
    ModelCard,
    Reference,
    Timing,
    Utterance,
)

RATE = 44_100
FRAME = 2048


class FakeEngine:
    """Controlled by its public attributes, from any thread, while it runs."""

    def __init__(self, config: EngineConfig, rows: int = 2) -> None:
        self.config = config
        self.rows = config.max_rows or rows
        self.info = EngineInfo(
            model=config.model,
            device="cpu",
            dtype="float32",
            sample_rate=RATE,
            frame_samples=FRAME,
            num_codebooks=10,
            max_context=4096,
            max_rows=self.rows,
            max_waiting=config.max_waiting,
            codec_fingerprint="fake",
            parameters=0,
        )
        self.first_frame_gate = threading.Event()
        """While cleared, takes wait for their first frame."""
        self.first_frame_gate.set()
        self.later_frames_gate = threading.Event()
        """While cleared, takes wait after their first frame."""
        self.later_frames_gate.set()
        self.frames_a_word = 6
        """Tests that need only words can use fewer, if `quality.LETTERS_A_SECOND` allows it."""
        self.dead: str | None = None
        self.spoilt: list[str] = []
        """Faults of the next takes, one entry per take: short, silent, nan, loop, late nan, mute (no frames), or
        "" for none."""
        self.full_times = 0
        """How many more takes with a history find the queue full."""
        self.utterances: list[Utterance] = []
        self.aligned: list[str] = []
        self.encoded: list[tuple[int, int, str]] = []
        self.clips: list[tuple[np.ndarray, str]] = []
        self.running = self.waiting = self.finished = self.cancelled = 0
        self.stopped = False

    @classmethod
    def start(cls, config: EngineConfig, progress: Callable[[str, float], None] | None = None) -> FakeEngine:
        if progress:
            progress("tuning the fork", 0.5)
        return cls(config)

    async def speak(self, utterance: Utterance) -> AsyncGenerator[AudioChunk, None]:
        self._check()
        handed_over = time.perf_counter()
        if utterance.history and self.full_times:
            self.full_times -= 1
            raise EngineFull("no place")
        if self.running >= self.rows:
            if self.waiting >= self.config.max_waiting:
                raise EngineFull(f"all {self.rows} rows are busy and {self.waiting} utterances are waiting")
            self.waiting += 1
            try:
                await self._until(lambda: self.running < self.rows)
            finally:
                self.waiting -= 1
        self.running += 1
        self.utterances.append(utterance)
        fault = self.spoilt.pop(0) if self.spoilt else ""
        ended = False
        try:
            admitted = time.perf_counter() - handed_over
            await self._until(self.first_frame_gate.is_set)
            first = time.perf_counter() - handed_over
            wanted = {"mute": 0, "short": 1}.get(fault, self.frames_a_word * len(utterance.text.split()))
            frames = min(wanted, utterance.max_frames)
            if not frames:
                now = time.perf_counter() - handed_over
                nothing = np.zeros(0, np.float32), np.zeros((10, 0), np.int16)
                yield AudioChunk(*nothing, first_frame=0, timing=Timing(admitted, now, now), finish_reason="stop")
            heard = utterance.frames_so_far
            for frame in range(heard, frames):
                if frame > heard:
                    await self._until(self.later_frames_gate.is_set)
                self._check()
                reason: Literal["stop", "length"] | None = (
                    None if frame + 1 < frames else "stop" if frames == wanted else "length"
                )
                yield AudioChunk(
                    pcm=_faulty(tone(utterance.sampling.seed, frame), fault, frame),
                    codes=np.full((10, 1), 0 if fault == "loop" else frame % 1024, np.int16),
                    first_frame=frame,
                    timing=Timing(admitted, first, time.perf_counter() - handed_over),
                    finish_reason=reason,
                    resumed_at=heard or None,
                )
            ended = True
        finally:
            self.running -= 1
            self.finished += ended
            self.cancelled += not ended

    async def encode_reference(self, pcm: np.ndarray, sample_rate: int, text: str) -> Reference:
        self._check()
        if not len(pcm):
            raise InvalidReference("the clip is empty")
        self.encoded.append((pcm.shape[-1], sample_rate, text))
        self.clips.append((pcm, text))
        await asyncio.sleep(0)
        return Reference(np.zeros((10, 5), np.int16), text)

    async def align(self, text: str, codes: np.ndarray) -> np.ndarray:
        """Give every character the same duration; characters beyond the frames are placed at their end."""
        self._check()
        if self.info.cannot_align:
            raise CannotAlign(self.info.cannot_align)
        self.aligned.append(text)
        await asyncio.sleep(0)
        whole, heard = self.frames_a_word * len(text.split()) * FRAME / RATE, codes.shape[1] * FRAME / RATE
        return np.minimum(np.linspace(0.0, whole, len(text) + 1), heard)

    def stats(self) -> EngineStats:
        return EngineStats(self.running, self.waiting, self.finished, self.cancelled, 0, 0.0)

    @property
    def failure(self) -> str | None:
        return "the engine is shut down" if self.stopped else self.dead

    def stop(self) -> None:
        self.stopped = True

    def _check(self) -> None:
        if self.failure:
            raise EngineStopped(self.failure)

    async def _until(self, true: Callable[[], bool]) -> None:
        await asyncio.sleep(0)  # a real engine never has all frames at once
        while not true():
            self._check()
            await asyncio.sleep(0.002)


def with_card(card: ModelCard, gpu: Gpu | None = None) -> Callable[[EngineConfig], FakeEngine]:
    """Starts engines whose model has this card, on a machine with this GPU."""

    def start(config: EngineConfig) -> FakeEngine:
        engine = FakeEngine(config)
        engine.info = replace(engine.info, card=card, gpu=gpu)
        return engine

    return start


def _faulty(pcm: np.ndarray, fault: str, frame: int) -> np.ndarray:
    if fault == "silent":
        return np.zeros_like(pcm)
    if fault == "nan" or (fault == "late nan" and frame == 3):
        return np.full_like(pcm, np.nan)
    return pcm


def tone(seed: int, frame: int) -> np.ndarray:
    """One frame of a tone at 200 to 999 Hz, with a phase continuous across frames."""
    time_axis = np.arange(frame * FRAME, (frame + 1) * FRAME) / RATE
    return (0.5 * np.sin(2 * np.pi * (200 + seed % 800 + seed // 800 % 997 / 997) * time_axis)).astype(np.float32)
