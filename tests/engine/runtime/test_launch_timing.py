"""A frame is launched shortly before the one before ends: who comes meanwhile is in it, and the device never waits."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from engine.model.prompt import Prompt
from engine.runtime.loop import Loop
from engine.runtime.prefix_cache import PrefixCache
from engine.runtime.row import Row, Sink
from engine.runtime.scheduler import LEAST_MARGIN, MOST_MARGIN, LaunchTiming
from engine.types import Sampling

FRAME = 0.4
"""Seconds of a frame: long beside what threads of a busy machine wait for one another."""


def test_a_launch_waits_for_as_long_as_frames_of_so_many_rows_take() -> None:
    timing = LaunchTiming()
    assert timing.seconds_left(5.0) == 0  # nothing is known
    timing.frame_started(3, 10.0)
    assert timing.seconds_left(10.0) < 0  # nor how long a frame of three takes
    timing.frame_started(3, 10.02)
    timing.frame_started(3, 10.05)  # it stood behind a prompt
    assert timing.seconds_left(10.05) == pytest.approx(1.01 * 0.02 - LEAST_MARGIN)
    timing.frame_started(3, 10.06)
    assert timing.seconds_left(10.065) == pytest.approx(0.005 - LEAST_MARGIN)
    timing.frame_started(3, 10.07)
    timing.held_up(10.075)  # a newcomer's first frame went before
    assert timing.seconds_left(10.075) == pytest.approx(0.01 - LEAST_MARGIN)
    timing.frame_started(0, 10.085)
    assert timing.seconds_left(10.09) < 0
    timing.frame_started(3, 11.0)
    assert timing.seconds_left(11.0) == pytest.approx(
        0.01 - LEAST_MARGIN
    )  # that it began later was not held against it


def test_a_launch_that_came_too_late_makes_the_next_ones_earlier() -> None:
    timing = LaunchTiming()
    for second in (0, 1, 2):
        timing.frame_started(1, float(second))
    margins = []
    for late in (True,) * 6 + (False,) * 400:
        timing.record_launch(late)
        margins.append(1 - timing.seconds_left(2.0))
    assert margins[0] == pytest.approx(1.5 * LEAST_MARGIN) and margins[5] == pytest.approx(MOST_MARGIN)
    assert margins[5] > margins[6] > margins[100] and margins[-1] == pytest.approx(LEAST_MARGIN)


@dataclass(frozen=True)
class SlowFrames:
    """Frames of a device that takes FRAME for each."""

    rows: tuple[Row, ...]
    ended: float

    def are_done(self) -> bool:
        return time.perf_counter() >= self.ended

    def read(self) -> Iterator[tuple[Row, np.ndarray, bool]]:
        time.sleep(max(0.0, self.ended - time.perf_counter()))
        yield from ((row, np.zeros(1, np.int16), False) for row in self.rows)


@dataclass
class SlowDevice:
    """A runner in whose frames nothing is drawn, one after the other; remembers when each began, and who was in it."""

    apart: float = 0.0
    """Seconds of a newcomer's first frame; 0: it is in the frame of all."""
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
        return frames

    def _launched(self, rows: tuple[Row, ...], seconds: float) -> SlowFrames:
        self.free = max(self.free, time.perf_counter()) + seconds
        return SlowFrames(rows, self.free)


class NoSound:
    """Codec streams that decode nothing."""

    is_concurrent = False

    def decode(self, pieces: Sequence[tuple[Hashable, np.ndarray]]) -> list[np.ndarray]:
        return [np.zeros(codes.shape[1], np.float32) for _, codes in pieces]

    def close(self, name: Hashable) -> None:
        """There is nothing to forget."""

    def open(self, name: Hashable, timbre: np.ndarray | None = None) -> bool:
        return True

    def names(self) -> list[Hashable]:
        return []


def new_row(frames: int = 1000, sink: Sink = lambda item: None) -> Row:
    return Row(Prompt(np.zeros(2, np.int64), np.zeros((1, 2), np.int64), 0), Sampling(), frames, sink)


@pytest.mark.parametrize("apart", [0.0, FRAME / 4], ids=["in it", "before it"])
def test_who_comes_while_a_frame_runs_is_heard_in_the_next_one_or_before_it(apart: float) -> None:
    heard: list[float] = []
    device, speaking = SlowDevice(apart), new_row()
    newcomer = new_row(sink=lambda item: heard.append(time.perf_counter()))
    loop = Loop(device, NoSound(), torch.device("cpu"), 4, 4, None)  # type: ignore[arg-type]
    loop.start()
    loop.submit(speaking)
    poll = threading.Event()
    while len(device.launched) < 5 or device.launched[-1][0] > time.perf_counter():  # until the last one runs
        assert loop.stop_reason is None and len(device.launched) < 20
        poll.wait(FRAME / 40)
    running = len(device.launched) - 1
    loop.submit(newcomer)
    while len(device.launched) < running + 3 or not heard:
        assert loop.stop_reason is None
        poll.wait(FRAME / 40)
    loop.stop()
    assert newcomer not in device.launched[running][1] and newcomer in device.launched[running + 1][1]
    began = [moment for moment, _ in device.launched]
    assert max(b - a for a, b in itertools.pairwise(began)) < 1.5 * FRAME
    waited = heard[0] - began[running + 1]  # since the frame of all began, which ends after FRAME
    assert waited < FRAME / 2 if apart else waited > FRAME / 2


def test_a_launch_waits_no_longer_than_the_frame_runs_whatever_is_expected_of_it() -> None:
    device = SlowDevice()
    loop = Loop(device, NoSound(), torch.device("cpu"), 4, 4, None)  # type: ignore[arg-type]
    loop._timing.frame_started(1, time.perf_counter() - 3600)
    loop._timing.frame_started(0, time.perf_counter())  # an hour in which nobody came is taken for a frame
    for row in (new_row(), new_row(2)):  # the second goes, and leaves the first one alone
        loop.submit(row)
    loop.start()
    poll = threading.Event()
    for _ in range(100):
        if len(device.launched) >= 6:
            break
        poll.wait(FRAME / 4)
    assert len(device.launched) >= 6
    loop.stop()
