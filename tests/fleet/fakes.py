"""A fleet without Ray: engines that count frames, and a transport that can inject faults."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from typing import Any

import numpy as np

from engine import (
    AudioChunk,
    EngineFull,
    EngineInfo,
    EngineStats,
    EngineStopped,
    Reference,
    Sampling,
    Timing,
    Utterance,
)
from engine.types import FinishReason
from fleet.membership import ReplicaLost
from fleet.replica import Replica

INFO = EngineInfo(
    model="fake",
    device="cpu",
    dtype="float32",
    sample_rate=44_100,
    frame_samples=4,
    num_codebooks=2,
    max_context=4096,
    max_rows=4,
    max_waiting=2,
    codec_fingerprint="codec",
    parameters=0,
    fingerprint="weights",
)


def codes_of(seed: int, first: int, frames: int) -> np.ndarray:
    """The codes of a take with this seed in these frames."""
    numbers = np.arange(first, first + frames, dtype=np.int16)
    return np.stack([numbers, numbers + seed]).astype(np.int16)


class CountingEngine:
    """Generates ``max_frames`` frames in chunks of two, continuing after ``so_far``, which must be its own."""

    def __init__(self, info: EngineInfo = INFO) -> None:
        self.info = info
        self.full_times = 0
        self.utterances: list[Utterance] = []
        self.running = self.finished = self.cancelled = self.frames = 0
        self.busy_seconds = 0.0
        self.failure: str | None = None
        self.gate = asyncio.Event()
        """Cleared: no frame is drawn."""
        self.gate.set()

    async def speak(self, utterance: Utterance) -> AsyncGenerator[AudioChunk, None]:
        if self.full_times:
            self.full_times -= 1
            raise EngineFull("no place")
        self.utterances.append(utterance)
        seed, start = utterance.sampling.seed, utterance.frames_so_far
        if utterance.so_far is not None:
            assert np.array_equal(utterance.so_far, codes_of(seed, 0, start))
        self.running += 1
        ended = False
        try:
            for first in range(start, utterance.max_frames, 2):
                await self.gate.wait()
                await asyncio.sleep(0.001)
                frames = min(2, utterance.max_frames - first)
                self.frames += frames
                codes = codes_of(seed, first, frames)
                ended = first + frames == utterance.max_frames
                pcm = np.repeat(codes[0].astype(np.float32), 4)
                reason: FinishReason | None = "length" if ended else None
                yield AudioChunk(pcm, codes, first, Timing(0.1, 0.2, 0.3), reason, start or None)
        finally:
            self.running -= 1
            self.finished += ended
            self.cancelled += not ended

    async def encode_reference(self, pcm: np.ndarray, sample_rate: int, text: str) -> Reference:
        return Reference(np.full((2, len(pcm)), 7, np.int16), text)

    async def align(self, text: str, codes: np.ndarray) -> np.ndarray:
        return np.linspace(0, codes.shape[1], len(text) + 1)

    def stats(self) -> EngineStats:
        return EngineStats(self.running, 0, self.finished, self.cancelled, self.frames, self.busy_seconds)

    def stop(self) -> None:
        self.failure = "stopped"


class FakeTransport:
    """A transport to replicas a, b, … ``faults`` says how a replica's streams fail, and after how many frames."""

    def __init__(self, count: int = 2, **infos: dict[str, Any]) -> None:
        names = "abcdefgh"[:count]
        self.engines = {name: CountingEngine(replace(INFO, **infos.get(name, {}))) for name in names}
        self.replicas = {name: Replica(name, engine) for name, engine in self.engines.items()}
        self.up = set(names)
        self.faults: dict[str, tuple[str, int]] = {}
        """Faults: dies, stalls, pauses, closes or skips."""
        self.deaf: set[str] = set()
        """Replicas that answer no queries."""
        self.late_seconds = 0.0
        """Delay of every answer."""
        self.gone: set[str] = set()
        """Gone replicas: their queries reach another one, which says so."""
        self.opened: list[FakeStream] = []
        self.calls: Counter[str] = Counter()
        self.is_closed = False

    def names(self) -> set[str]:
        return set(self.up)

    def open(self, replica: str, utterance: Utterance, may_wait: bool) -> FakeStream:
        self.opened.append(FakeStream(self, replica, utterance, may_wait))
        return self.opened[-1]

    async def call(self, replica: str, method: str, *arguments: Any) -> Any:
        self.calls[f"{replica} {method}"] += 1
        if replica in self.deaf:
            await asyncio.Event().wait()
        await asyncio.sleep(self.late_seconds)
        if replica in self.gone:
            raise EngineStopped(f"replica {replica} has gone")
        if replica not in self.up:
            raise ReplicaLost("gone")
        return await getattr(self.replicas[replica], method)(*arguments, replica=replica)

    async def close(self) -> None:
        self.is_closed = True


class FakeStream:
    """A take from one replica, with the replica's fault."""

    def __init__(self, transport: FakeTransport, replica: str, utterance: Utterance, may_wait: bool) -> None:
        self.replica = replica
        self.cancels = 0
        self._transport = transport
        self._items = transport.replicas[replica].speak(utterance, replica, may_wait)
        self._fault, self._left = transport.faults.get(replica, ("", 0))

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        item = await anext(self._items)
        if not isinstance(item, tuple):
            return item
        if self._fault and self._left <= 0:
            if self._fault == "dies":
                self._transport.up.discard(self.replica)
                raise ReplicaLost("the process is gone")
            if self._fault == "stalls":
                self._transport.deaf.add(self.replica)
                await asyncio.Event().wait()
            if self._fault == "pauses":
                self._fault = ""
                await asyncio.sleep(5.0)
            if self._fault == "closes":
                raise StopAsyncIteration
            if self._fault == "skips":
                item = await anext(self._items)
                assert isinstance(item, tuple)
        self._left -= item[1].shape[1]
        return item

    def cancel(self) -> None:
        self.cancels += 1
        self._ending = asyncio.ensure_future(self._items.aclose())


def utterance(seed: int = 5, frames: int = 10, voice: int | None = None) -> Utterance:
    """An utterance; ``voice`` has its own reference."""
    references = () if voice is None else (Reference(np.full((2, 3), voice, np.int16), "words"),)
    return Utterance("text", references, Sampling(seed=seed), max_frames=frames)
