"""Helpers of the engine's tests: start an engine, collect a whole take, wait for a state."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine import AudioChunk, Engine, EngineConfig, Sampling, SpeechEngine, Utterance


@dataclass(frozen=True, eq=False)
class Take:
    """A whole take."""

    chunks: list[AudioChunk]

    @property
    def codes(self) -> np.ndarray:
        return np.concatenate([chunk.codes for chunk in self.chunks], axis=1)

    @property
    def pcm(self) -> np.ndarray:
        return np.concatenate([chunk.pcm for chunk in self.chunks])

    @property
    def reason(self) -> str | None:
        return self.chunks[-1].finish_reason


@contextmanager
def running_engine(folder: Path, **settings: Any) -> Iterator[Engine]:
    """An engine on the CPU, stopped at the end."""
    engine = Engine.start(EngineConfig(str(folder), device="cpu", **settings))
    try:
        yield engine
    finally:
        engine.stop()


@contextmanager
def paused_loop(engine: Engine) -> Iterator[None]:
    """Pause the engine's loop, so that all takes submitted in the block start in one turn."""
    is_paused, may_resume = threading.Event(), threading.Event()

    def pause() -> None:
        is_paused.set()
        may_resume.wait(60)

    engine._loop._commands.put(pause)
    assert is_paused.wait(60)
    try:
        yield
    finally:
        may_resume.set()


async def hear(engine: SpeechEngine, utterance: Utterance) -> Take:
    return Take([chunk async for chunk in engine.speak(utterance)])


async def first_chunk(
    engine: SpeechEngine, utterance: Utterance
) -> tuple[AsyncGenerator[AudioChunk, None], AudioChunk]:
    """Start a take; return its chunks and the first of them."""
    chunks = engine.speak(utterance)
    return chunks, await anext(chunks)


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Return as soon as the condition holds; fail at the deadline."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "the awaited state never came"
        await asyncio.sleep(0.001)


def greedy(text: str = "Hello there.", frames: int = 12, **more: Any) -> Utterance:
    return Utterance(text, sampling=Sampling(temperature=0.0), max_frames=frames, **more)


def seeded(text: str, seed: int, frames: int = 12, references: tuple[Any, ...] = (), **how: Any) -> Utterance:
    return Utterance(text, references, Sampling(seed=seed, **how), max_frames=frames)
