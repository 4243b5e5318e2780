"""Assigns slots to rows and plans turns: fair to owners, prefills in pieces between frames."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass

from engine.runtime.row import Row, State

FAST_RAMP = (1, 2, 4, 8)
GENTLE_RAMP = (1, 1, 1, 2, 2, 3, 3, 4)
"""Frames in a take's first, second … chunk, the last size repeating: on a GPU, and on a CPU.

The first chunk is sent after one frame; later ones are larger, which costs less per frame. Each is ready before the
previous ones have been played if the engine works at most half a second per second of audio, or three quarters with the
CPU's ramp (a CPU decodes four frames at a time nearly as cheaply as eight). LOW_LEAD is for slower engines."""
LOW_LEAD = 0.1
"""With less than this many seconds of audio buffered by a listener, all frames so far are sent at once.

Larger chunks for listeners with seconds buffered made bursts: 64 streams over HTTP fell from 210 to 169 times real
time.
"""

BATCH_WAIT_TURNS, PATIENCE = 4, 0.3
"""A chunk whose listener has PATIENCE seconds buffered waits up to BATCH_WAIT_TURNS turns, because the codec
decodes many streams together in less time than a few at a time: on an H200 eight of eight frames in 2.4 ms, 32 in
6.9."""
SOON_FRAMES = 4
"""Maximum length of all other chunks, so that they do not queue behind such a batch."""

LEAST_MARGIN, MOST_MARGIN = 1e-3, 5e-3
"""Seconds before the end of a frame at which the next is launched: the cost of launching, and the limit when other
threads are busy. Between these it adapts: half as much again after a frame that came too late, else a little less."""
SLOWER = 1.01
"""Frames become slower with every position: the expected time may grow by this factor per frame. A much longer time,
such as that of a frame after a prefill, predicts nothing about the next."""


@dataclass(frozen=True, slots=True)
class LoopTurn:
    """One turn of the loop: some prefill for the rows that still need it, then one frame for every active row.

    The frame includes rows whose prompts are read to the end in this turn.
    """

    prefill: tuple[Row, ...]
    speaking: tuple[Row, ...]
    admitted: tuple[Row, ...] = ()
    """The rows of `prefill` that have just got their slot."""


class Scheduler:
    """Rows wait in one queue and hold a slot from admission to end.

    Next is the waiting owner with the fewest slots; among equals, not the one whose row has just ended, then the first.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._free = list(reversed(range(slots)))
        self._waiting: deque[Row] = deque()
        self._running: list[Row] = []

    def submit(self, row: Row) -> None:
        self._waiting.append(row)

    def plan(self) -> LoopTurn:
        """Admit rows to free slots, then plan the turn."""
        first = len(self._running)
        while self._waiting and self._free:
            held = Counter(row.owner for row in self._running)
            row = min(self._waiting, key=lambda row: held[row.owner])
            self._waiting.remove(row)
            row.slot, row.state, row.admitted = self._free.pop(), State.PREFILL, time.perf_counter()
            self._running.append(row)
        admitted = tuple(self._running[first:])
        prefill = tuple(row for row in self._running if row.state is State.PREFILL)
        return LoopTurn(prefill, tuple(row for row in self._running if row.state is State.SPEAKING), admitted)

    def remove(self, row: Row) -> None:
        """Remove a waiting or running row and free its slot. Removing it again does nothing."""
        if row.state is State.WAITING and row in self._waiting:
            self._waiting.remove(row)
        elif row in self._running:
            self._running.remove(row)
            self._free.append(row.slot)
            self._waiting = deque(sorted(self._waiting, key=lambda waiting: waiting.owner == row.owner))
        row.state = State.ENDED

    def recount(self) -> tuple[list[int], list[int]]:
        """Return the slots counted as free and those that no row holds; corrects the count."""
        used = {row.slot for row in self._running}
        counted, free = sorted(self._free), [slot for slot in range(self._slots) if slot not in used]
        if counted != free:
            self._free = free[::-1]
        return counted, free

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def rows(self) -> list[Row]:
        """All rows, running and waiting."""
        return [*self._running, *self._waiting]


class LaunchTiming:
    """Decides when to launch the next frame: late enough to include new rows, early enough that the device never waits.

    A frame launched ahead waits on the device for the previous one, and rows that arrive after its launch join the
    frame after it; so it is launched shortly before the running one ends, by the recent duration of frames with as many
    rows. Times are seconds of one clock.
    """

    def __init__(self) -> None:
        self._durations: dict[int, float] = {}  # seconds of a frame, by rows
        self._began: float | None = None
        self._rows = 0
        self._margin = LEAST_MARGIN

    def frame_started(self, rows: int, now: float) -> None:
        """Record that the previous frame has ended and the next one, of this many rows, has started; 0: no next one."""
        if self._began is not None and self._rows:
            duration = now - self._began
            self._durations[self._rows] = min(duration, SLOWER * self._durations.get(self._rows, duration))
        self._began, self._rows = now, rows

    def held_up(self, now: float) -> None:
        """Record that the running frame has started only now, after other work."""
        self._began = now

    def seconds_left(self, now: float) -> float:
        """Seconds until the next frame should be launched; 0 if nothing is known."""
        if self._began is None:
            return 0.0
        return self._began + self._durations.get(self._rows, 0.0) - self._margin - now

    def record_launch(self, too_late: bool) -> None:
        """Record a delayed launch; too_late: the previous frame had already ended."""
        self._margin = min(1.5 * self._margin, MOST_MARGIN) if too_late else max(0.99 * self._margin, LEAST_MARGIN)


def chunk_size(chunks: int, ramp: tuple[int, ...]) -> int:
    """Frames of the chunk after this many chunks."""
    return ramp[min(chunks, len(ramp) - 1)]


def is_chunk_due(row: Row, ramp: tuple[int, ...], frame_seconds: float | None, now: float) -> bool:
    """Whether the row's frames should go to the codec now, depending on its listener's buffer.

    Without ``frame_seconds`` only the ramp counts: cutting by the clock changes rounding, in the last bit, from take to
    take.
    """
    if not row.frames:
        return False
    size = chunk_size(row.chunks, ramp)
    if frame_seconds is None:
        return len(row.frames) >= size
    buffered = row.buffered_seconds(frame_seconds, now)
    return buffered < LOW_LEAD or len(row.frames) >= (size if buffered >= PATIENCE else min(size, SOON_FRAMES))


def has_buffered(row: Row, frame_seconds: float | None, now: float, seconds: float) -> bool:
    """Whether the listener has this many seconds buffered; False without ``frame_seconds``, when nothing is known."""
    return frame_seconds is not None and row.buffered_seconds(frame_seconds, now) >= seconds
