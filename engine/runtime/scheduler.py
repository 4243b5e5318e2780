"""Who is in which slot, what happens next, and when: first come first served, prefills in pieces between frames."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass

from engine.runtime.row import Row, State

FAST_RAMP = (1, 2, 4, 8)
GENTLE_RAMP = (1, 1, 1, 2, 2, 3, 3, 4)
"""Frames in a take's first, second … chunk, the last size repeating: on a GPU, and on a CPU.

Sound after one frame, then ever cheaper chunks, each ready before those before it have played: as long as an engine
works half a second for one of sound, and with the gentle ramp as long as it works three quarters (a CPU decodes four
frames at a time nearly as cheaply as eight) …"""
LOW_LEAD = 0.1
"""… and when it is not, or a listener has played nearly all of it: with less than this many seconds in hand, what there
is goes out at once. (Larger chunks for listeners with seconds in hand made bursts: 64 streams over HTTP fell from 210
to 169 times real time.)"""

GATHERING_TURNS, PATIENCE = 4, 0.3
"""A chunk whose listener has so many seconds in hand waits until so many turns have passed, for the codec decodes many
streams together for less than a few at a time: on an H200 eight of eight frames in 2.4 ms, 32 in 6.9 …"""
SOON_FRAMES = 4
"""… and others are no longer than this, so that they are not behind such a batch."""

LEAST_MARGIN, MOST_MARGIN = 1e-3, 5e-3
"""Seconds before the end at which the next frame is launched: what launching takes, and when other threads are busy.
Within these, it follows what happens: half as much again after a frame that came too late, else a little less."""
SLOWER = 1.01
"""Frames become slower with every position: by so much may the expected time grow at each. What takes much longer,
such as a frame behind a prompt's positions, says nothing of the next."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One turn of the loop: some prefill for the rows that still need it, then one frame for every row that speaks.

    Those whose prompts are read to the end by then are among them.
    """

    prefill: tuple[Row, ...]
    speaking: tuple[Row, ...]
    admitted: tuple[Row, ...] = ()
    """Those of `prefill` that have just got their slot."""


class Scheduler:
    """Rows wait in one line and hold a slot from admission to end."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._free = list(reversed(range(slots)))
        self._waiting: deque[Row] = deque()
        self._running: list[Row] = []

    def submit(self, row: Row) -> None:
        self._waiting.append(row)

    def plan(self) -> Plan:
        """Admit whom a slot is free for, then say what to run."""
        first = len(self._running)
        while self._waiting and self._free:
            row = self._waiting.popleft()
            row.slot, row.state, row.admitted = self._free.pop(), State.PREFILL, time.perf_counter()
            self._running.append(row)
        admitted = tuple(self._running[first:])
        prefill = tuple(row for row in self._running if row.state is State.PREFILL)
        return Plan(prefill, tuple(row for row in self._running if row.state is State.SPEAKING), admitted)

    def remove(self, row: Row) -> None:
        """Take a row out, wherever it is, and free its slot. Removing it again does nothing."""
        if row.state is State.WAITING and row in self._waiting:
            self._waiting.remove(row)
        elif row in self._running:
            self._running.remove(row)
            self._free.append(row.slot)
        row.state = State.ENDED

    def recount(self) -> tuple[list[int], list[int]]:
        """Slots that are counted as free, and those that no row holds; from now on it is these."""
        taken = {row.slot for row in self._running}
        counted, free = sorted(self._free), [slot for slot in range(self._slots) if slot not in taken]
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
        """Everyone, for telling them that the engine has ended."""
        return [*self._running, *self._waiting]


class LaunchTiming:
    """When the next frame is launched: so late that who comes meanwhile is in it, so early that the device never waits.

    A frame that is launched ahead waits on the device for the one before, and whoever comes after its launch is in the
    frame after it; so it is launched shortly before the running one ends, by what frames of as many rows took of late.
    Times are seconds of one clock.
    """

    def __init__(self) -> None:
        self._taken: dict[int, float] = {}  # by a frame of so many rows
        self._began: float | None = None
        self._rows = 0
        self._margin = LEAST_MARGIN

    def begun(self, rows: int, now: float) -> None:
        """The frame before has ended, and with that the next one has begun, of so many rows; 0: there is none."""
        if self._began is not None and self._rows:
            taken = now - self._began
            self._taken[self._rows] = min(taken, SLOWER * self._taken.get(self._rows, taken))
        self._began, self._rows = now, rows

    def held_up(self, now: float) -> None:
        """What was taken to be the running frame has begun only now, behind something else."""
        self._began = now

    def left(self, now: float) -> float:
        """Seconds until the next frame should be launched; none is left where nothing is known."""
        if self._began is None:
            return 0.0
        return self._began + self._taken.get(self._rows, 0.0) - self._margin - now

    def launched(self, too_late: bool) -> None:
        """A launch was waited with; too late: the frame before had ended by then."""
        self._margin = min(1.5 * self._margin, MOST_MARGIN) if too_late else max(0.99 * self._margin, LEAST_MARGIN)


def ramp_of(device: str) -> tuple[int, ...]:
    """Of an engine on a device of this type, ``"cpu"`` or ``"cuda"``."""
    return GENTLE_RAMP if device == "cpu" else FAST_RAMP


def chunk_size(chunks: int, ramp: tuple[int, ...]) -> int:
    """Frames of the chunk after so many."""
    return ramp[min(chunks, len(ramp) - 1)]


def is_chunk_due(row: Row, ramp: tuple[int, ...], frame_seconds: float | None, now: float) -> bool:
    """Whether the row's frames should go to the codec now, by what its listener has in hand.

    Without ``frame_seconds`` by the ramp alone: what the clock cuts is rounded otherwise each time, in its last bit.
    """
    if not row.frames:
        return False
    size = chunk_size(row.chunks, ramp)
    if frame_seconds is None:
        return len(row.frames) >= size
    in_hand = row.in_hand(frame_seconds, now)
    return in_hand < LOW_LEAD or len(row.frames) >= (size if in_hand >= PATIENCE else min(size, SOON_FRAMES))


def is_ahead(row: Row, frame_seconds: float | None, now: float, seconds: float) -> bool:
    """Whether so many seconds are in hand; without ``frame_seconds`` nothing is known of a listener."""
    return frame_seconds is not None and row.in_hand(frame_seconds, now) >= seconds
