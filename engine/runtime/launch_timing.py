"""When the next frame is launched: so late that who comes meanwhile is in it, so early that the device never waits.

A frame that is launched ahead waits on the device for the one before. Whoever comes after its launch is in the frame
after it, and waits a whole frame more; so it is launched shortly before the running one ends, by what frames of as
many rows took of late.
"""

from __future__ import annotations

LEAST_MARGIN, MOST_MARGIN = 1e-3, 5e-3
"""Seconds before the end at which the next frame is launched: what launching takes, and when other threads are busy.
Within these, it follows what happens: half as much again after a frame that came too late, else a little less."""
SLOWER = 1.01
"""Frames become slower with every position: by so much may the expected time grow at each. What takes much longer,
such as a frame behind a prompt's positions, says nothing of the next."""


class LaunchTiming:
    """Expects when the frame that runs will end. Times are seconds of one clock."""

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

    def left(self, now: float) -> float:
        """Seconds until the next frame should be launched; none is left where nothing is known."""
        if self._began is None:
            return 0.0
        return self._began + self._taken.get(self._rows, 0.0) - self._margin - now

    def launched(self, too_late: bool) -> None:
        """A launch was waited with; too late: the frame before had ended by then."""
        self._margin = min(1.5 * self._margin, MOST_MARGIN) if too_late else max(0.99 * self._margin, LEAST_MARGIN)
