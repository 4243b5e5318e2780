"""Engines that only simulate timing: a fleet of any size in one process, on a simulated clock."""

from __future__ import annotations

import asyncio
import selectors
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine import EngineFull, EngineInfo, EngineStats, Utterance
from fleet.membership import ReplicaLost
from fleet.replica import HEARTBEAT_SECONDS, Item
from fleet.routed_utterance import voice_of

CODEBOOKS = 10
FRAME_SECONDS = 2048 / 44100
CHUNK = 8
"""Frames of a chunk, except for the first, which has one."""


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop in which only sleeping takes time, and no real time: its clock jumps to the next wake-up."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Jumps(self))

    def time(self) -> float:
        return self._now

    monotonic = perf_counter = time  # the clock functions that fleet/ uses

    def jump(self, seconds: float) -> None:
        self._now += seconds


class _Jumps(selectors.DefaultSelector):
    def __init__(self, loop: JumpingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everybody waits for somebody else"
        self._loop.jump(max(0.0, timeout))
        return super().select(0)


@dataclass(frozen=True)
class Pace:
    """Measurements of one GPU. Times in seconds."""

    frame: tuple[tuple[int, float], ...]
    """(rows, time of a frame with this many rows), ascending."""
    codec: float
    """Additional time for the audio of each row's frame."""
    hit: float
    """To read a text after a cached voice."""
    miss: float
    """To read it with the voice's clip before it."""
    voices: int
    """Number of cached voices."""
    rows: int
    waiting: int

    def turn(self, rows: int) -> float:
        counts, times = zip(*self.frame, strict=True)
        return float(np.interp(rows, counts, times)) + rows * self.codec


@dataclass(eq=False)
class TimedTake:
    voice: bytes | None
    frames: int
    """Seconds in total."""
    done: int
    items: asyncio.Queue[Item | BaseException] = field(default_factory=asyncio.Queue)
    sent: int = 0
    is_left: bool = False


class TimedEngine:
    """Rows, a queue, cached voices and their times; its takes have their maximum length, and are all zeros."""

    def __init__(self, name: str, pace: Pace) -> None:
        self.name, self.pace = name, pace
        self.rows: list[TimedTake] = []
        self.line: deque[TimedTake] = deque()
        self.known: OrderedDict[bytes, None] = OrderedDict()
        self.hits = self.misses = self.frames = self.takes = 0
        self._work = asyncio.Event()
        self._turns = asyncio.create_task(self._run())

    def begin(self, utterance: Utterance, may_wait: bool) -> TimedTake:
        """A take, or one that fails with EngineFull."""
        take = TimedTake(voice_of(utterance), utterance.max_frames, utterance.frames_so_far)
        take.sent = take.done
        if len(self.rows) + len(self.line) >= self.pace.rows + may_wait * self.pace.waiting:
            take.items.put_nowait(EngineFull("the line is full"))
            return take
        take.items.put_nowait(self.name)
        self.line.append(take)
        self.takes += 1
        self._work.set()
        return take

    def kill(self) -> None:
        self._turns.cancel()
        for take in [*self.rows, *self.line]:
            take.items.put_nowait(ReplicaLost("it was killed"))

    def stats(self) -> EngineStats:
        return EngineStats(len(self.rows), len(self.line), self.takes, 0, self.frames, 0.0)

    async def _run(self) -> None:
        while True:
            self.line = deque(take for take in self.line if not take.is_left)
            self.rows = [take for take in self.rows if not take.is_left]
            if not self.rows and not self.line:
                self._work.clear()
                await self._work.wait()
                continue
            reading = self._admit()
            await asyncio.sleep(reading + self.pace.turn(len(self.rows)))
            for take in self.rows:
                take.done += 1
                self._send(take)
            self.frames += len(self.rows)
            self.rows = [take for take in self.rows if take.done < take.frames]

    def _admit(self) -> float:
        """Admit waiting takes to free rows; returns the time to read their prompts."""
        seconds = 0.0
        while self.line and len(self.rows) < self.pace.rows:
            take = self.line.popleft()
            self.rows.append(take)
            is_known = take.voice is None or take.voice in self.known
            self.hits, self.misses = self.hits + is_known, self.misses + (not is_known)
            seconds += self.pace.hit if is_known else self.pace.miss
            if take.voice is not None:
                self.known[take.voice] = None
                self.known.move_to_end(take.voice)
                if len(self.known) > self.pace.voices:
                    self.known.popitem(last=False)
        return seconds

    def _send(self, take: TimedTake) -> None:
        is_last, new = take.done == take.frames, take.done - take.sent
        if is_last or new == CHUNK or take.sent == 0:
            codes = np.zeros((CODEBOOKS, new), np.int16)
            take.items.put_nowait((NOTHING, codes, take.sent, (0.0, 0.0, 0.0), "length" if is_last else None, None))
            take.sent = take.done


NOTHING = np.zeros(0, np.float32)


class TimedStream:
    def __init__(self, take: TimedTake) -> None:
        self._take = take

    def __aiter__(self) -> AsyncIterator[Item]:
        return self

    async def __anext__(self) -> Any:
        try:
            item = await asyncio.wait_for(self._take.items.get(), HEARTBEAT_SECONDS)
        except TimeoutError:
            return None
        if isinstance(item, BaseException):
            raise item
        return item

    def cancel(self) -> None:
        self._take.is_left = True


class TimedLine:
    """The connection to engines of this process, in place of fleet/ray_transport.py for those placed by Ray."""

    def __init__(self, replicas: int, pace: Pace, info: EngineInfo) -> None:
        self._pace, self._info = pace, info
        self.engines = {f"replica-{i}": TimedEngine(f"replica-{i}", pace) for i in range(replicas)}
        self.gone: list[TimedEngine] = []

    def names(self) -> Collection[str]:
        return self.engines.keys()

    def open(self, replica: str, utterance: Utterance, may_wait: bool) -> TimedStream:
        return TimedStream(self._engine(replica).begin(utterance, may_wait))

    async def call(self, replica: str, method: str, *arguments: object) -> Any:
        engine = self._engine(replica)
        return self._info if method == "info" else engine.stats()

    async def close(self) -> None:
        for engine in self.engines.values():
            engine.kill()

    def kill(self, replica: str) -> None:
        engine = self.engines.pop(replica)
        engine.kill()
        self.gone.append(engine)

    def bring_back(self, replica: str) -> None:
        self.engines[replica] = TimedEngine(replica, self._pace)

    @property
    def all(self) -> list[TimedEngine]:
        """All engines, including killed ones."""
        return [*self.engines.values(), *self.gone]

    def _engine(self, replica: str) -> TimedEngine:
        if replica not in self.engines:
            raise ReplicaLost("it is gone")
        return self.engines[replica]
