"""The engine's thread: handles commands, plans, runs the model, sends frames to the codec."""

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
    BATCH_WAIT_TURNS,
    FAST_RAMP,
    GENTLE_RAMP,
    LEAST_MARGIN,
    PATIENCE,
    LaunchTiming,
    LoopTurn,
    Scheduler,
    chunk_size,
    has_buffered,
    is_chunk_due,
)
from engine.types import EngineStats, FinishReason

log = logging.getLogger(__name__)

LET_IN_ROWS = 16
"""Maximum number of rows with which a launch waits for new ones."""
GAP_LEAD = 1.0
"""Seconds of audio that every listener must have buffered for a step of gap work, which takes 0.03 to 0.3."""


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
        """``frame_seconds``: duration of a frame, to schedule by listeners' buffers; None: chunks do not depend on
        time."""
        self._runner = runner
        self._codec = CodecThreads(streams, codec_device, self._end)
        self._scheduler = Scheduler(slots)
        self._ramp = GENTLE_RAMP if codec_device.type == "cpu" else FAST_RAMP
        self._slots, self._max_waiting, self._frame_seconds = slots, max_waiting, frame_seconds
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._open: set[Row] = set()  # rows whose caller is still listening, guarded by the lock
        self._stop_reason: str | None = None  # why no more work is accepted, guarded by the lock
        self._launched: Frames | None = None
        self._has_read = False  # whether the last turn read prompts
        self._timing = LaunchTiming()
        self._due: list[CodecJob] = []  # jobs for the codec at the end of the turn …
        self._gathered: list[CodecJob] = []  # … and jobs that wait to be batched
        self._turns = 0
        self._finished = self._cancelled = self._frames = self._accounting_errors = 0
        self._busy = 0.0
        self._gap_work: Iterator[int] = iter(())
        self._steps_left = 0  # of the gap work
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        self._codec.start()
        self._thread.start()

    def check_room(self, owner: str) -> None:
        """Check that `submit` would accept an owner's row now, before one is built. Raises its errors."""
        with self._lock:
            self._check_accepting(owner)

    def submit(self, row: Row) -> None:
        """Queue a row. Raises EngineFull, EngineStopped."""
        with self._lock:
            self._check_accepting(row.owner)
            self._open.add(row)
        self._commands.put(lambda: self._scheduler.submit(row))

    def close(self, row: Row) -> None:
        """Cancel an unfinished take whose caller no longer listens; its row is free within one frame."""
        with self._lock:
            self._open.discard(row)
        self._commands.put(lambda: self._cancel(row))

    def run_in_gaps(self, work: Iterator[int]) -> None:
        """Do this work, one step per turn in which no request waits; it yields the steps left before each step."""

        def begin() -> None:
            self._gap_work, self._steps_left = work, next(work, 0)

        self._commands.put(begin)

    def stats(self) -> EngineStats:
        running, waiting = self._scheduler.running, self._scheduler.waiting
        kernel_frames = self._frames if self._runner.kernel_attention else 0
        return EngineStats(
            running=running,
            waiting=waiting,
            finished=self._finished,
            cancelled=self._cancelled,
            frames=self._frames,
            busy_seconds=self._busy,
            kv_attention_hits=kernel_frames,
            kv_attention_fallbacks=self._frames - kernel_frames,
            prefix_hits=self._runner.prefixes.hits,
            prefix_misses=self._runner.prefixes.misses,
            prefix_bytes=self._runner.prefixes.nbytes,
            codec_streams=self._codec.open_streams,
            book_errors=self._accounting_errors + self._codec.accounting_errors,
            graphs_left=self._steps_left,
        )

    @property
    def is_idle(self) -> bool:
        return not (self._scheduler.running or self._scheduler.waiting)

    @property
    def stop_reason(self) -> str | None:
        """Why the loop accepts no more work; None while it runs."""
        with self._lock:
            return self._stop_reason

    def stop(self) -> None:
        """Fail every row with EngineStopped and end the loop and the codec's threads."""
        self._end(STOPPED)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()
        self._codec.stop()

    def work(self) -> None:
        """Run one turn, including the codec's part, in the calling thread; replaces `start` where threads are not
        possible."""
        self._handle_commands(wait=False)
        self._turn(self._scheduler.plan())
        self._codec.work()

    def _run(self) -> None:
        try:
            with own_stream(self._runner.device, HIGH_PRIORITY):
                while self.stop_reason is None:
                    self._admit()
                    self._handle_commands(wait=not self._steps_left)
                    start = time.perf_counter()
                    self._turn(self._scheduler.plan())
                    self._busy += time.perf_counter() - start
                    self._advance_gap_work()
        except Exception as error:  # noqa: BLE001  (every error goes to all callers)
            self._end(f"the engine died: {type(error).__name__}: {error}")
        for row in self._scheduler.rows():
            self._scheduler.remove(row)

    def _check_accepting(self, owner: str) -> None:
        """Raises EngineFull, EngineStopped if no more rows are accepted; called with the lock held.

        A queue filled by others has as many places again for the first row of each owner who has none.
        """
        if self._stop_reason is not None:
            raise EngineStopped(self._stop_reason)
        owners = [row.owner for row in self._open if row.state is not State.ENDED]
        places = self._slots + self._max_waiting * (1 if owner in owners else 2)
        if len(owners) >= places:
            raise EngineFull(
                f"all {self._slots} rows are busy and {self._max_waiting} utterances are waiting; try again later"
            )

    def _end(self, reason: str) -> None:
        """Accept no more work and report the reason to every listener; the first reason stays."""
        with self._lock:
            self._stop_reason = self._stop_reason or reason
            rows, self._open = self._open, set()
        for row in rows:
            row.cancelled = True
            row.sink(EngineStopped(self._stop_reason))
        self._commands.put(lambda: None)  # wake the thread if it waits for work

    def _handle_commands(self, wait: bool = True) -> None:
        """Run all pending commands; with ``wait``, block for one if there is nothing to do."""
        is_idle = self.is_idle
        if is_idle:
            self._put(gathered=True)
            self._check_accounting()
        while (is_idle and wait) or not self._commands.empty():
            self._commands.get()()
            is_idle = False

    def _admit(self) -> None:
        """While a frame runs, let commands accumulate until it is time to launch the next one.

        Skipped with many rows: other threads are then so busy that this one would not return in time.
        """
        if self._launched is None or self._has_read or len(self._launched.rows) > LET_IN_ROWS:
            return
        has_waited = False
        # Not woken by each command: that would take the interpreter's lock from the caller. Never waits longer than the
        # frame runs, whatever the estimate.
        while (remaining := self._timing.seconds_left(time.perf_counter())) > 0 and not self._launched.are_done():
            has_waited = True
            time.sleep(min(remaining, LEAST_MARGIN))
        if has_waited:
            self._timing.record_launch(too_late=self._launched.are_done())

    def _advance_gap_work(self) -> None:
        """Do a step of gap work if no rows are active, or all listeners have enough audio buffered."""
        if not self._steps_left or not self._commands.empty():
            return
        now, rows = time.perf_counter(), self._scheduler.rows()
        if all(has_buffered(row, self._frame_seconds, now, GAP_LEAD) for row in rows):
            self._steps_left = next(self._gap_work, 0)
            self._timing.held_up(time.perf_counter())

    def _check_accounting(self) -> None:
        """While no rows are active, compare counts with the actual state; log and correct differences."""
        counts: tuple[tuple[str, tuple[object, object]], ...] = (
            ("bytes of known voices", self._runner.prefixes.recount()),
            ("free slots", self._scheduler.recount()),
        )
        for name, (counted, actual) in counts:
            if counted != actual:
                self._accounting_errors += 1
                log.error("%s: %s counted, %s held; the count has been corrected", name, counted, actual)
        self._codec.check()

    def _turn(self, turn: LoopTurn) -> None:
        for row in turn.admitted:
            self._replay_resumed(row)
        new_rows = tuple(self._runner.prefill(turn.prefill)) if turn.prefill else ()
        for row in new_rows:
            row.state = State.SPEAKING
        speaking = turn.speaking + new_rows
        first_frames = self._runner.launch_first() if new_rows else None
        frames = self._runner.launch(speaking) if speaking else None
        if self._runner.ahead:  # read the previous frame while the device computes this one
            frames, self._launched = self._launched, frames
        results = list(frames.read()) if frames else []
        if self._runner.ahead:
            self._timing.frame_started(len(self._launched.rows) if self._launched else 0, time.perf_counter())
        self._has_read = bool(turn.prefill) and first_frames is None
        self._settle_all(results)
        self._turns += 1
        self._put(self._turns % BATCH_WAIT_TURNS == 0)
        if first_frames:  # computed before the common frame, which has started only now
            results = list(first_frames.read())
            self._timing.held_up(time.perf_counter())
            self._settle_all(results)
            self._put(gathered=False)

    def _settle_all(self, results: list[tuple[Row, np.ndarray, bool]]) -> None:
        for row, codes, has_ended in results:
            if row.state is State.SPEAKING:  # a row that has ended got one frame too many
                self._settle(row, codes, has_ended)

    def _settle(self, row: Row, frame: np.ndarray, has_ended: bool) -> None:
        """Store a row's new frame, send a chunk when one is due, release the row when its take is over."""
        if row.to_repeat:
            row.to_repeat -= 1
            self._frames += 1
            return
        if not has_ended:
            row.first_frame = row.first_frame or time.perf_counter()
            row.frames.append(frame)
            self._frames += 1
        reason: FinishReason | None = "stop" if has_ended else "length" if row.frame_count == row.max_frames else None
        if reason:  # before the last chunk is sent, so that its receiver finds the row free
            self._finished += 1
            self._scheduler.remove(row)
        if reason or is_chunk_due(row, self._ramp, self._frame_seconds, time.perf_counter()):
            self._send(row, reason)

    def _replay_resumed(self, row: Row) -> None:
        """Bring the codec's stream to where the take stopped, in the same chunks as an uninterrupted take.

        The remainder is decoded with the first new frames, so that rounding is the same.
        """
        row.frames.extend(row.prompt.codes[:, row.prompt.delivered_from :].astype(np.int16).T)
        while len(row.frames) >= (size := chunk_size(row.chunks, self._ramp)):
            self._codec.put(CodecJob(row, np.stack(row.frames[:size], 1), row.frames_sent, None))
            del row.frames[:size]
            row.frames_sent, row.chunks = row.frames_sent + size, row.chunks + 1

    def _send(self, row: Row, reason: FinishReason | None) -> None:
        """Send the row's frames to the codec; there are none when a take stops just after a chunk."""
        now = time.perf_counter()
        row.note_chunk(self._frame_seconds, now)
        shape = (self._runner.config.num_codebooks, 0)
        codes = np.stack(row.frames, 1) if row.frames else np.zeros(shape, np.int16)
        is_awaited = not has_buffered(row, self._frame_seconds, now, PATIENCE)
        job = CodecJob(row, codes, row.frames_sent, reason, is_awaited)
        (self._due if is_awaited or reason else self._gathered).append(job)
        row.frames_sent, row.chunks = row.frame_count, row.chunks + 1
        row.frames.clear()

    def _put(self, gathered: bool) -> None:
        """Send the codec the due jobs, and the gathered ones if ``gathered`` or if one of their takes has a due job."""
        due_jobs, waiting_jobs = self._due, self._gathered
        if gathered or {job.row for job in due_jobs} & {job.row for job in waiting_jobs}:
            due_jobs, self._gathered = waiting_jobs + due_jobs, []
        if due_jobs:
            self._codec.put(*due_jobs)
        self._due = []

    def _cancel(self, row: Row) -> None:
        if row.state is not State.ENDED:
            self._cancelled += 1
            self._scheduler.remove(row)
        row.cancelled = True
        self._codec.forget(row)
