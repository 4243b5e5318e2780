"""The engine's one thread: commands in, plan, run, settle, chunks out."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch

from engine.engine_errors import STOPPED, EngineFull, EngineStopped
from engine.runtime.codec_streams import CodecStreams, own_stream
from engine.runtime.codec_threads import CodecJob, CodecThreads
from engine.runtime.graphs import HIGH_PRIORITY
from engine.runtime.row import Row, State
from engine.runtime.runner import Frames, Runner
from engine.runtime.scheduler import (
    GATHERING_TURNS,
    LEAST_MARGIN,
    PATIENCE,
    LaunchTiming,
    Plan,
    Scheduler,
    chunk_size,
    is_ahead,
    is_chunk_due,
    ramp_of,
)
from engine.types import EngineStats, FinishReason

log = logging.getLogger(__name__)

LET_IN_ROWS = 16
"""Up to so many rows a launch waits for newcomers."""
ASIDE_IN_HAND = 1.0
"""Seconds of sound that everyone has in hand when something is done aside: it takes 0.03 to 0.3."""


class Loop:
    """Owns every Row between `submit` and its last chunk. All public methods may be called from any thread."""

    def __init__(
        self,
        runner: Runner,
        streams: CodecStreams,
        codec_device: torch.device,
        slots: int,
        max_waiting: int,
        frame_seconds: float | None,
    ) -> None:
        """``frame_seconds``: of sound, for listeners who run dry; None: a take's samples are the same each time."""
        self._runner = runner
        self._codec = CodecThreads(streams, codec_device, self._die)
        self._scheduler = Scheduler(slots)
        self._ramp = ramp_of(codec_device.type)
        self._slots, self._max_waiting, self._frame_seconds = slots, max_waiting, frame_seconds
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._open: set[Row] = set()  # rows whose caller still listens, guarded by the lock
        self._death: str | None = None  # why nothing is accepted any more, guarded by the lock
        self._launched: Frames | None = None
        self._has_read = False  # prompts, in the last turn
        self._timing = LaunchTiming()
        self._due: list[CodecJob] = []  # what goes to the codec at the end of the turn …
        self._gathered: list[CodecJob] = []  # … and what waits for company
        self._turns = 0
        self._finished = self._cancelled = self._frames = self._book_errors = 0
        self._busy = 0.0
        self._aside: Iterator[int] = iter(())
        self._steps_left = 0  # of what is done aside
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        self._codec.start()
        self._thread.start()

    def look_for_room(self) -> None:
        """Whether `submit` would take a row now, before one is made. Raises EngineFull, EngineStopped."""
        with self._lock:
            self._refuse()

    def submit(self, row: Row) -> None:
        """Put a row in line. Raises EngineFull, EngineStopped."""
        with self._lock:
            self._refuse()
            self._open.add(row)
        self._commands.put(lambda: self._scheduler.submit(row))

    def close(self, row: Row) -> None:
        """The caller no longer listens: an unfinished take is cancelled, its row free within one frame."""
        with self._lock:
            self._open.discard(row)
        self._commands.put(lambda: self._cancel(row))

    def run_in_gaps(self, work: Iterator[int]) -> None:
        """Do this, a step at a time, in turns in which nobody waits; it says before each step how many are left."""

        def begin() -> None:
            self._aside, self._steps_left = work, next(work, 0)

        self._commands.put(begin)

    def stats(self) -> EngineStats:
        running, waiting = self._scheduler.running, self._scheduler.waiting
        with_kernel = self._frames if self._runner.kernel_attention else 0
        return EngineStats(
            running=running,
            waiting=waiting,
            finished=self._finished,
            cancelled=self._cancelled,
            frames=self._frames,
            busy_seconds=self._busy,
            kv_attention_hits=with_kernel,
            kv_attention_fallbacks=self._frames - with_kernel,
            prefix_hits=self._runner.prefixes.hits,
            prefix_misses=self._runner.prefixes.misses,
            prefix_bytes=self._runner.prefixes.nbytes,
            codec_streams=self._codec.open_streams,
            book_errors=self._book_errors + self._codec.book_errors,
            graphs_left=self._steps_left,
        )

    @property
    def death(self) -> str | None:
        """Why the loop accepts nothing any more; None while it runs."""
        with self._lock:
            return self._death

    def stop(self) -> None:
        """Fail every row with EngineStopped and end both threads."""
        self._die(STOPPED)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()
        self._codec.stop()

    def work(self) -> None:
        """One turn, the codec's part too, in the calling thread: in the place of `start` where no thread can live."""
        self._handle_commands(wait=False)
        self._turn(self._scheduler.plan())
        self._codec.work()

    def _run(self) -> None:
        try:
            with own_stream(self._runner.device, HIGH_PRIORITY):
                while self.death is None:
                    self._admit()
                    self._handle_commands(wait=not self._steps_left)
                    started = time.perf_counter()
                    self._turn(self._scheduler.plan())
                    self._busy += time.perf_counter() - started
                    self._advance_gap_work()
        except Exception as error:  # noqa: BLE001  (whatever kills the loop is told to every caller)
            self._die(f"the engine died: {type(error).__name__}: {error}")
        for row in self._scheduler.rows():
            self._scheduler.remove(row)

    def _refuse(self) -> None:
        """Raises EngineFull, EngineStopped where no further row is taken; called with the lock held."""
        if self._death is not None:
            raise EngineStopped(self._death)
        if sum(row.state is not State.ENDED for row in self._open) >= self._slots + self._max_waiting:
            raise EngineFull(
                f"all {self._slots} rows are speaking and {self._max_waiting} utterances are waiting; try again later"
            )

    def _die(self, why: str) -> None:
        """Accept nothing more and tell everyone who listens; the first reason stands."""
        with self._lock:
            self._death = self._death or why
            rows, self._open = self._open, set()
        for row in rows:
            row.cancelled = True
            row.sink(EngineStopped(self._death))
        self._commands.put(lambda: None)  # wake a thread that waits for work

    def _handle_commands(self, wait: bool = True) -> None:
        """Carry out every command there is; ``wait`` for one when there is nothing to do."""
        idle = not (self._scheduler.running or self._scheduler.waiting)
        if idle:
            self._put(gathered=True)
            self._check_accounting()
        while (idle and wait) or not self._commands.empty():
            self._commands.get()()
            idle = False

    def _admit(self) -> None:
        """While a frame runs, let commands come together until it is time to launch the next one.

        Not in a crowd: there other threads are so busy that this one would not be back in time.
        """
        if self._launched is None or self._has_read or len(self._launched.rows) > LET_IN_ROWS:
            return
        waited = False
        # Not woken by each command: that would take the interpreter's lock from who sends them. Never longer than the
        # frame runs, whatever is expected of it.
        while (left := self._timing.left(time.perf_counter())) > 0 and not self._launched.are_done():
            waited = True
            time.sleep(min(left, LEAST_MARGIN))
        if waited:
            self._timing.launched(too_late=self._launched.are_done())

    def _advance_gap_work(self) -> None:
        """Take a step of what is done aside where nobody speaks, or all who do have sound enough in hand."""
        if not self._steps_left or not self._commands.empty():
            return
        now, rows = time.perf_counter(), self._scheduler.rows()
        if all(is_ahead(row, self._frame_seconds, now, ASIDE_IN_HAND) for row in rows):
            self._steps_left = next(self._aside, 0)
            self._timing.held_up(time.perf_counter())

    def _check_accounting(self) -> None:
        """While nobody speaks, what is counted must be what is held; a difference is logged, corrected and survived."""
        books: tuple[tuple[str, tuple[object, object]], ...] = (
            ("bytes of known voices", self._runner.prefixes.recount()),
            ("free slots", self._scheduler.recount()),
        )
        for what, (counted, found) in books:
            if counted != found:
                self._book_errors += 1
                log.error("%s: %s counted, %s found; the count has been corrected", what, counted, found)
        self._codec.check()

    def _turn(self, plan: Plan) -> None:
        for row in plan.admitted:
            self._replay_resumed(row)
        joining = tuple(self._runner.prefill(plan.prefill)) if plan.prefill else ()
        for row in joining:
            row.state = State.SPEAKING
        speaking = plan.speaking + joining
        first = self._runner.launch_first() if joining else None
        frames = self._runner.launch(speaking) if speaking else None
        if self._runner.ahead:  # read the frame before while the device draws this one
            frames, self._launched = self._launched, frames
        drawn = list(frames.read()) if frames else []
        if self._runner.ahead:
            self._timing.begun(len(self._launched.rows) if self._launched else 0, time.perf_counter())
        self._has_read = bool(plan.prefill) and first is None
        self._settle_all(drawn)
        self._turns += 1
        self._put(self._turns % GATHERING_TURNS == 0)
        if first:  # drawn before the frame of all, which has begun only now
            drawn = list(first.read())
            self._timing.held_up(time.perf_counter())
            self._settle_all(drawn)
            self._put(gathered=False)

    def _settle_all(self, drawn: list[tuple[Row, np.ndarray, bool]]) -> None:
        for row, codes, over in drawn:
            if row.state is State.SPEAKING:  # one that ended or left meanwhile was drawn a frame too many
                self._settle(row, codes, over)

    def _settle(self, row: Row, frame: np.ndarray, over: bool) -> None:
        """Keep a row's new frame, send a chunk when one is due, let the row go when its take is over."""
        if row.to_repeat:
            row.to_repeat -= 1
            self._frames += 1
            return
        if not over:
            row.first_frame = row.first_frame or time.perf_counter()
            row.frames.append(frame)
            self._frames += 1
        reason: FinishReason | None = "stop" if over else "length" if row.drawn == row.max_frames else None
        if reason:  # before the last chunk is sent: a caller who has heard it finds the row free
            self._finished += 1
            self._scheduler.remove(row)
        if reason or is_chunk_due(row, self._ramp, self._frame_seconds, time.perf_counter()):
            self._send(row, reason)

    def _replay_resumed(self, row: Row) -> None:
        """Bring the codec's stream to where the take was broken off, in the chunks in which it is heard unbroken.

        What is left of the last one is decoded with the first new frames, so that all is rounded as it was.
        """
        row.frames.extend(row.prompt.codes[:, row.prompt.asked :].astype(np.int16).T)
        while len(row.frames) >= (size := chunk_size(row.chunks, self._ramp)):
            self._codec.put(CodecJob(row, np.stack(row.frames[:size], 1), row.sent, None))
            del row.frames[:size]
            row.sent, row.chunks = row.sent + size, row.chunks + 1

    def _send(self, row: Row, reason: FinishReason | None) -> None:
        """Hand the row's frames to the codec; none are left when a take stops just after a chunk."""
        row.first_frame = row.first_frame or time.perf_counter()
        row.first_chunk = row.first_chunk or time.perf_counter()
        shape = (self._runner.config.num_codebooks, 0)
        codes = np.stack(row.frames, 1) if row.frames else np.zeros(shape, np.int16)
        is_awaited = not is_ahead(row, self._frame_seconds, time.perf_counter(), PATIENCE)
        job = CodecJob(row, codes, row.sent, reason, is_awaited)
        (self._due if is_awaited or reason else self._gathered).append(job)
        row.sent, row.chunks = row.drawn, row.chunks + 1
        row.frames.clear()

    def _put(self, gathered: bool) -> None:
        """Hand the codec what is due, and what has gathered where that is said or one of its takes goes on."""
        due, waiting = self._due, self._gathered
        if gathered or {job.row for job in due} & {job.row for job in waiting}:
            due, self._gathered = waiting + due, []
        if due:
            self._codec.put(*due)
        self._due = []

    def _cancel(self, row: Row) -> None:
        if row.state is not State.ENDED:
            self._cancelled += 1
            self._scheduler.remove(row)
        row.cancelled = True
        self._codec.forget(row)
