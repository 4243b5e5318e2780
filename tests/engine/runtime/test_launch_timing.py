"""A frame is launched just before the previous one ends: it includes new takes, and the device never waits."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from engine.model.prompt import Prompt
from engine.runtime import loop as runtime_loop
from engine.runtime import scheduler
from engine.runtime.codec_threads import CodecJob
from engine.runtime.loop import Loop
from engine.runtime.prefix_cache import PrefixCache
from engine.runtime.row import Row, Sink
from engine.runtime.scheduler import LEAST_MARGIN, MOST_MARGIN, LaunchTiming
from engine.types import Sampling

FRAME = 0.02
"""Seconds of a frame."""


def test_launch_waits_for_the_expected_frame_time_of_its_row_count() -> None:
    timing = LaunchTiming()
    assert timing.seconds_left(5.0) == 0  # no frame times are known yet
    timing.frame_started(3, 10.0)
    assert timing.seconds_left(10.0) < 0  # nor is the duration of a frame of three rows
    timing.frame_started(3, 10.02)
    timing.frame_started(3, 10.05)  # it was delayed by a prompt
    assert timing.seconds_left(10.05) == pytest.approx(1.01 * 0.02 - LEAST_MARGIN)
    timing.frame_started(3, 10.06)
    assert timing.seconds_left(10.065) == pytest.approx(0.005 - LEAST_MARGIN)
    timing.frame_started(3, 10.07)
    timing.held_up(10.075)  # a newcomer's first frame ran before it
    assert timing.seconds_left(10.075) == pytest.approx(0.01 - LEAST_MARGIN)
    timing.frame_started(0, 10.085)
    assert timing.seconds_left(10.09) < 0
    timing.frame_started(3, 11.0)
    assert timing.seconds_left(11.0) == pytest.approx(0.01 - LEAST_MARGIN)  # its later start did not count


def test_late_launch_makes_later_launches_earlier() -> None:
    timing = LaunchTiming()
    for second in (0, 1, 2):
        timing.frame_started(1, float(second))
    margins = []
    for late in (True,) * 6 + (False,) * 400:
        timing.record_launch(late)
        margins.append(1 - timing.seconds_left(2.0))
    assert margins[0] == pytest.approx(1.5 * LEAST_MARGIN) and margins[5] == pytest.approx(MOST_MARGIN)
    assert margins[5] > margins[6] > margins[100] and margins[-1] == pytest.approx(LEAST_MARGIN)


class Clock:
    """Replaces `time` in the loop's thread: it stands still during computations."""

    now = 100.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@dataclass(frozen=True)
class SlowFrames:
    """Frames of a device that takes FRAME for each."""

    clock: Clock
    rows: tuple[Row, ...]
    ended: float

    def are_done(self) -> bool:
        return self.clock.now >= self.ended

    def read(self) -> Iterator[tuple[Row, np.ndarray, bool]]:
        self.clock.now = max(self.clock.now, self.ended)
        yield from ((row, np.zeros(1, np.int16), False) for row in self.rows)


@dataclass
class SlowDevice:
    """A runner whose frames draw nothing and run one after another; records each one's start and rows."""

    clock: Clock
    apart: float = 0.0
    """Seconds of a newcomer's first frame; 0: it is part of the common frame."""
    on_launch: Callable[[int], None] = lambda count: None
    """Called after each launch with the number of launches, when the common frame is the last one launched."""
    launched: list[tuple[float, tuple[Row, ...]]] = field(default_factory=list)
    newcomers: tuple[Row, ...] = ()
    device = torch.device("cpu")
    config = SimpleNamespace(num_codebooks=1)
    kernel_attention = True
    ahead = True
    prefixes = PrefixCache(None, 0)  # type: ignore[arg-type]
    free = 0.0

    def prefill(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        self.newcomers = rows
        return rows

    def launch_first(self) -> SlowFrames | None:
        return self._launched(self.newcomers, self.apart) if self.apart else None

    def launch(self, rows: tuple[Row, ...]) -> SlowFrames:
        frames = self._launched(rows, FRAME)
        self.launched.append((frames.ended - FRAME, rows))
        self.on_launch(len(self.launched))
        return frames

    def began(self) -> list[float]:
        return [second for second, _ in self.launched]

    def _launched(self, rows: tuple[Row, ...], seconds: float) -> SlowFrames:
        self.free = max(self.free, self.clock.now) + seconds
        return SlowFrames(self.clock, rows, self.free)


class NoSound:
    """Codec streams that return silence."""

    is_concurrent = False

    def decode(self, pieces: Sequence[tuple[Hashable, np.ndarray]]) -> list[np.ndarray]:
        return [np.zeros(codes.shape[1], np.float32) for _, codes in pieces]

    def close(self, name: Hashable) -> None:
        """Nothing to release."""

    def open(self, name: Hashable) -> bool:
        return True

    def names(self) -> list[Hashable]:
        return []


def new_row(frames: int = 1000, sink: Sink = lambda item: None) -> Row:
    return Row(Prompt(np.zeros(2, np.int64), np.zeros((1, 2), np.int64), 0), Sampling(), frames, sink)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (runtime_loop, scheduler):
        monkeypatch.setattr(module, "time", clock)
    return clock


def loop_of(device: SlowDevice) -> Loop:
    return Loop(device, NoSound(), torch.device("cpu"), 4, 4, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("apart", [0.0, FRAME / 4], ids=["in it", "before it"])
def test_take_arriving_during_a_frame_is_drawn_in_or_before_the_next_one(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, apart: float
) -> None:
    """The newcomer arrives half a frame after a launch, while the loop waits to launch the next one."""
    device, speaking, newcomer = SlowDevice(clock, apart), new_row(), new_row()
    loop, is_done = loop_of(device), threading.Event()
    jobs: list[tuple[float, Row]] = []
    put, sleep = loop._codec.put, clock.sleep
    comes_at = math.inf

    def record_jobs(*new: CodecJob) -> None:
        jobs.extend((clock.now, job.row) for job in new)
        put(*new)

    def sleep_then_submit(seconds: float) -> None:
        nonlocal comes_at
        sleep(seconds)
        if clock.now >= comes_at:
            comes_at = math.inf
            loop.submit(newcomer)

    def launched(count: int) -> None:
        nonlocal comes_at
        if count == 6:  # while the fifth runs and the sixth is queued behind it
            comes_at = device.began()[5] + FRAME / 2
        if count == 10:
            is_done.set()

    monkeypatch.setattr(loop._codec, "put", record_jobs)
    monkeypatch.setattr(clock, "sleep", sleep_then_submit)
    device.on_launch = launched
    loop.submit(speaking)
    loop.start()
    assert is_done.wait(60), loop.stop_reason
    loop.stop()
    began = device.began()
    assert newcomer not in device.launched[5][1] and newcomer in device.launched[6][1]
    assert max(b - a for a, b in itertools.pairwise(began)) == pytest.approx(FRAME + apart)
    heard_at = next(second for second, row in jobs if row is newcomer)
    assert heard_at == pytest.approx(began[6] if apart else began[7])  # each frame ends as the next one begins


def test_a_launch_never_waits_longer_than_the_frame_runs(clock: Clock) -> None:
    device, is_done = SlowDevice(clock), threading.Event()
    loop = loop_of(device)
    loop._timing.frame_started(1, clock.now - 3600)
    loop._timing.frame_started(0, clock.now)  # an hour without takes counts as a frame
    device.on_launch = lambda count: is_done.set() if count == 6 else None
    for row in (new_row(), new_row(2)):  # the second one ends first
        loop.submit(row)
    loop.start()
    assert is_done.wait(60), loop.stop_reason
    loop.stop()
    assert max(b - a for a, b in itertools.pairwise(device.began())) < 1.5 * FRAME
