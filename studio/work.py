"""Long work: a bounded queue for each kind, fair to callers, in threads or in processes that can be killed.

Work ends when its caller leaves. What reads strangers' files runs in a separate Python process with limits of time and
memory: a malicious file may crash the libraries that read it, but not the studio.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import math
import os
import pickle
import signal
import struct
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator
from contextlib import aclosing, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from anyio import CancelScope, CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from speechtext.errors import CHECK
from studio.errors import REFUSALS, Cancelled, InvalidRequest, QueueFull, TooCostly, TooManyRequests

if sys.platform != "win32":  # where only the time is limited
    import resource

log = logging.getLogger(__name__)

Piece = TypeVar("Piece")
Result = TypeVar("Result")

LENGTH = struct.Struct("<Q")
"""Precedes a call to a child process: its size in bytes."""


@dataclass(frozen=True, slots=True)
class QueueKind:
    """The purpose of a queue, and its limits."""

    name: str
    """The name in `/health`."""
    singular: str
    plural: str
    """The singular and plural nouns of its work."""
    done: str
    """The past participle in messages: "read", "encoded"."""
    at_once: int
    waiting: int
    """Maximum waiting, of all callers together; one caller may have half of all places."""
    seconds: float
    """Maximum seconds of one piece of work, without waiting."""
    remedy: str
    """The remedy for work that takes longer."""

    @property
    def per_caller(self) -> int:
        return max(1, (self.at_once + self.waiting) // 2)


@dataclass(frozen=True, slots=True)
class ThreadTurn:
    """The right to a thread of the queue."""

    job: Job
    threads: CapacityLimiter

    async def run(self, function: Callable[..., Result], *values: object) -> Result:
        """Run a blocking function; cancelling ends it at its next `check_job`, and waits for that.

        Raises TooCostly, and the errors of the function.
        """
        return await run_uninterrupted(
            self.job.run, function, *values, limiter=self.threads, on_cancel=self.job.abandon
        )


class WorkQueue:
    """Used from one event loop. Next is the waiting caller with the least work running; among equals, not the one
    whose work has just ended, then the first.

    When a caller leaves, its waiting work is dropped, and its running work ends at its next step.
    """

    def __init__(self, kind: QueueKind, most: int | None = None) -> None:
        """``most``: the maximum turns of a caller at a time; None: all."""
        self._kind, self._most = kind, most or kind.at_once
        self._threads = CapacityLimiter(kind.at_once)  # used only by work with a turn, so that it never waits
        self._places: Counter[str] = Counter()
        self._running: Counter[str] = Counter()
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()
        self._shares = WeakValueDictionary[str, asyncio.Semaphore]()

    @property
    def name(self) -> str:
        return self._kind.name

    @property
    def figures(self) -> dict[str, int]:
        """The numbers of running and waiting work; work that currently needs no turn counts as neither."""
        return {
            "running": self._running.total(),
            "waiting": len(self._waiting),
            "max_running": self._kind.at_once,
            "max_waiting": self._kind.waiting,
        }

    async def run(self, caller: str, function: Callable[..., Result], *values: object) -> Result:
        """Run a blocking function when its turn comes. Cancelling ends it at its next `check_job`.

        Raises QueueFull, TooManyRequests, TooCostly, and the errors of the function.
        """
        async with self.turn(caller) as turn:
            return await turn.run(function, *values)

    async def run_in_child(
        self, caller: str, memory: int, allowed: tuple[type, ...], function: Callable[..., Result], *values: object
    ) -> Result:
        """Like `run`, in a separate process that may use ``memory`` bytes; cancelling kills it. It may take minutes, so
        that a caller leaves one turn to others.

        ``allowed``: the classes allowed in its result. Raises the errors of `run`; TooCostly for memory too.
        """
        async with self.turn(caller, most=max(1, self._kind.at_once - 1)) as turn:
            return await in_child(turn.job, memory, allowed, function, *values, threads=turn.threads)

    async def last_of(self, caller: str, steps: Generator[Piece, None, None]) -> Piece | None:
        """The last item of a generator that blocks at each step; None without any. Each step has its own turn, as there
        may be hours of them; a caller begins no more than run at once: each may keep a file. Raises `run`'s errors."""
        last: Piece | None = None
        async for item in self._items(caller, steps, self._kind.at_once):
            last = item
        return last

    async def stream(self, caller: str, pieces: Generator[bytes, None, None]) -> AsyncGenerator[bytes, None]:
        """Yield the pieces of a file as they are generated; the first is ready, so that refusals come before it.

        The file keeps its place to the end, but takes a turn for each piece: a slow listener blocks no other caller.
        Raises the errors of `run`.
        """
        stream = self._items(caller, pieces)
        first = await anext(stream, b"")

        async def whole() -> AsyncGenerator[bytes, None]:
            async with aclosing(stream):
                yield first
                async for piece in stream:
                    yield piece

        return whole()

    @asynccontextmanager
    async def turn(self, caller: str, patient: bool = False, most: int | None = None) -> AsyncIterator[ThreadTurn]:
        """Wait for a place in the queue, then for a turn. ``patient``: takes no place, as it has another limit;
        ``most``: the maximum turns of a caller at a time, None: any number. Raises QueueFull, TooManyRequests."""
        with contextlib.nullcontext() if patient else self.place(caller):
            async with self._share(caller, most), self._turn(caller):
                yield ThreadTurn(self._job(), self._threads)

    def _share(self, caller: str, most: int | None) -> contextlib.AbstractAsyncContextManager[None]:
        """Held by a caller's work from its beginning to its end; a queue has one ``most``."""
        return contextlib.nullcontext() if most is None else self._shares.setdefault(caller, asyncio.Semaphore(most))

    @contextlib.contextmanager
    def place(self, caller: str) -> Generator[None, None, None]:
        """Hold a place, for several patient turns. Raises QueueFull, TooManyRequests."""
        kind, count, total = self._kind, self._places[caller], self._places.total()
        if total >= kind.at_once + kind.waiting:
            counts = f"{kind.at_once} {kind.plural} are being {kind.done} and {kind.waiting} are waiting"
            raise QueueFull(f"{counts}, the maximum; try again in a moment", 5)
        if count >= kind.per_caller:
            own = f"{count} of your {kind.plural} are being {kind.done} or waiting"
            raise TooManyRequests(f"{own}; at most {kind.per_caller} are allowed at a time: wait for one of them", 5)
        self._places[caller] += 1
        try:
            yield
        finally:
            self._places -= Counter([caller])

    @asynccontextmanager
    async def _turn(self, caller: str) -> AsyncIterator[None]:
        if self._running.total() < self._kind.at_once and self._running[caller] < self._most:
            self._running[caller] += 1
        else:
            grant: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(entry := (caller, grant))
            try:
                await grant
            except asyncio.CancelledError:
                if grant.cancelled():
                    with contextlib.suppress(ValueError):
                        self._waiting.remove(entry)
                else:
                    self._give_back(caller)
                raise
        try:
            yield
        finally:
            self._give_back(caller)

    def _give_back(self, caller: str) -> None:
        """End a turn, and begin the next one."""
        self._running -= Counter([caller])
        self._waiting = deque(sorted(self._waiting, key=lambda entry: entry[0] == caller))
        while self._waiting:
            chosen = min(self._waiting, key=lambda entry: self._running[entry[0]])
            if self._running[chosen[0]] >= self._most:
                return
            self._waiting.remove(chosen)
            if not chosen[1].cancelled():  # its caller has left, and has had no turn of the loop since
                self._running[chosen[0]] += 1
                chosen[1].set_result(None)
                return

    def _job(self) -> Job:
        kind = self._kind
        too_long = f"{kind.singular} took longer than {kind.seconds:g} s to be {kind.done}; {kind.remedy}"
        return Job(kind.seconds, too_long, f"{kind.singular} takes too much memory to be {kind.done}; {kind.remedy}")

    async def _items(
        self, caller: str, steps: Generator[Piece, None, None], most: int | None = None
    ) -> AsyncGenerator[Piece, None]:
        """The items of a blocking generator that are not empty, each in a turn of its own; closed after them."""
        turn = ThreadTurn(self._job(), self._threads)
        try:
            with self.place(caller):
                async with self._share(caller, most):
                    while True:
                        async with self._turn(caller):
                            item = await turn.run(next, steps, None)
                        if item is None:
                            return
                        if item:
                            yield item
        finally:
            await run_uninterrupted(steps.close)


PLACE: ContextVar[tuple[WorkQueues, str] | None] = ContextVar("PLACE", default=None)
"""The queues, and the caller of the request that is answered or has begun this work; None for the studio's own work."""
_WRITERS = RunVar[CapacityLimiter]("_WRITERS")
_WRITERS_AT_ONCE = 4
"""Only one writes at a time; the others have their work prepared."""

# For each: name; singular, plural and participle of its work; maximum running, maximum waiting; seconds; remedy.
CLIPS = QueueKind(
    "clips", "the clip", "clips", "decoded", 2, 30, 30, "send it as a WAV or FLAC file, or a shorter span of it"
)
DENOISING = QueueKind(
    "denoising", "the clip", "clips", "cleaned of noise", 1, 7, 120, "send a shorter span of it, or leave denoise out"
)
TRANSCRIBING = QueueKind(
    "transcribing", "the clip", "clips", "transcribed", 1, 7, 300, "send a shorter span of it, or type the transcript"
)
PACKS = QueueKind("packs", "the voice pack", "voice packs", "read or written", 1, 15, 120, "use fewer or shorter clips")
EXPORTS = QueueKind("exports", "the file", "files", "made", 2, 62, 7200, "request fewer takes or chapters at a time")
ALIGNMENTS = QueueKind(
    "alignments", "the take", "takes", "searched for word times", 1, 31, 600, "request the words of a shorter take"
)
MODELS = QueueKind("models", "the model", "models", "checked", 1, 31, 120, "copy it to a faster disk of this machine")
READS = QueueKind("reads", "the project", "projects", "read", 2, 126, 300, "split it into smaller projects")
CHANGES = QueueKind("changes", "the project", "projects", "changed", 3, 126, 300, "change fewer parts at a time")
WRITES = QueueKind("writes", "the entry", "entries", "changed", 4, 252, 300, "change fewer entries at a time")
LOOKUPS = QueueKind("lookups", "the answer", "answers", "looked up", 4, 508, 300, "request shorter pages")
LISTS = QueueKind("lists", "the list", "lists", "read", 2, 254, 60, "request shorter pages")
TEXTS = QueueKind("texts", "the text", "texts", "prepared", 2, 254, 60, "send a shorter text")

# As many of these wait as `WorkQueues` is told: as requests in the engine's queue.
_BY_ADDRESS = "send the clip itself in the request, or an address that answers faster"
DOWNLOADS = QueueKind("downloads", "the clip", "requests with a clip's address", "downloaded", 8, 0, 30, _BY_ADDRESS)
ENCODINGS = QueueKind("encodings", "the clip", "requests with a clip", "encoded", 8, 0, 30, CLIPS.remedy)
"""Clips of speech requests, decoded and encoded before these get a place in the engine's queue: as many at once as it
encodes together."""


class WorkQueues:
    """The queues of one process, used from its event loop; none takes the threads of another."""

    def __init__(self, encodings_waiting: int) -> None:
        self.clips = WorkQueue(CLIPS)
        self.denoising = WorkQueue(DENOISING)
        self.transcribing = WorkQueue(TRANSCRIBING)
        self.packs = WorkQueue(PACKS)
        self.exports = WorkQueue(EXPORTS)
        """Files that are sent while they are written."""
        self.alignments = WorkQueue(ALIGNMENTS)
        self.models = WorkQueue(MODELS)
        self.reads = WorkQueue(READS)
        """Lookups in projects, which may have many thousands of parts."""
        self.changes = WorkQueue(CHANGES, most=CHANGES.at_once - 1)
        """Changes of projects; few at once, because each holds the library's write lock while it is stored."""
        self.writes = WorkQueue(WRITES, most=WRITES.at_once - 1)
        """All other changes in the library: they wait for its lock, so `lookups` must not share their threads. Those of
        a long project's dictionary take seconds, so a caller leaves one thread to others."""
        self.lookups = WorkQueue(LOOKUPS)
        """What else is looked up in the library: short, but one caller may ask for hundreds of answers at once."""
        self.lists = WorkQueue(LISTS)
        """Lists of all voices, which takes tenths of a second of thousands."""
        self.texts = WorkQueue(TEXTS)
        self.downloads = WorkQueue(replace(DOWNLOADS, waiting=encodings_waiting))
        self.encodings = WorkQueue(replace(ENCODINGS, waiting=encodings_waiting))
        self._all: list[WorkQueue] = [*vars(self).values()]

    def add(self, kind: QueueKind) -> WorkQueue:
        """A queue for what adds itself to the studio."""
        self._all.append(WorkQueue(kind))
        return self._all[-1]

    @property
    def figures(self) -> dict[str, dict[str, int]]:
        """The running and waiting work of each queue, by its name."""
        return {queue.name: queue.figures for queue in self._all}


class _Unpickler(pickle.Unpickler):  # noqa: S301  (it restricts what may be named)
    """Creates only plain values, the errors of the studio and its libraries, and allowed classes."""

    def __init__(self, data: bytes, allowed: tuple[type, ...]) -> None:
        super().__init__(io.BytesIO(data))
        self._allowed = {(kind.__module__, kind.__qualname__): kind for kind in (*allowed, *_errors(*REFUSALS))}

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self._allowed[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed") from None


def _errors(*kinds: type[Exception]) -> list[type]:
    """These errors and all that derive from them."""
    return [error for kind in kinds for error in (kind, *_errors(*kind.__subclasses__()))]


async def in_child(
    job: Job,
    memory: int,
    allowed: tuple[type, ...],
    function: Callable[..., Result],
    *values: object,
    threads: CapacityLimiter | None = None,
) -> Result:
    """Call a function of a module in a separate process and return its result; cancelling kills the process.

    ``threads``: those in which its arguments and its result, which may be large, are packed and unpacked.
    Raises the error that the function raises, and TooCostly for more than the job's seconds or ``memory`` bytes. An
    error that is not among REFUSALS is an InvalidRequest, because the file made a library fail; the log has its stack.
    """
    payload = await run_uninterrupted(pickle.dumps, (function, values), limiter=threads)
    command = [sys.executable, "-m", "studio.work", str(memory), str(math.ceil(job.seconds))]
    child = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=_environment(),
        start_new_session=True,  # Ctrl-C reaches only the studio; its own children are killed with it
    )
    try:
        answer = await asyncio.wait_for(_call(child, payload), job.seconds)
    except TimeoutError:
        raise TooCostly(job.too_long) from None
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                _kill(child)
        await child.wait()
    if not answer:
        is_late = sys.platform != "win32" and child.returncode == -signal.SIGXCPU
        log.warning("a process ended without a result: its status is %s", child.returncode)
        raise TooCostly(job.too_long if is_late else job.too_large)
    is_result, result = await run_uninterrupted(lambda: _Unpickler(answer, allowed).load(), limiter=threads)
    if is_result:
        return result
    if notes := getattr(result, "__notes__", None):  # an error that nobody foresaw
        log.error("a process failed: %s", "\n".join(map(str, notes))[-_MOST_LOGGED:])
    raise result


def _kill(child: asyncio.subprocess.Process) -> None:
    if sys.platform == "win32":
        child.kill()
    else:  # with the processes that it has started
        os.killpg(child.pid, signal.SIGKILL)


async def _call(child: asyncio.subprocess.Process, payload: bytes) -> bytes:
    """The answer to a call; empty without one. The input stays open, because the child ends with it."""
    assert child.stdin is not None and child.stdout is not None
    with contextlib.suppress(ConnectionError):
        child.stdin.write(LENGTH.pack(len(payload)) + payload)
        await child.stdin.drain()
    return await child.stdout.read()


_MOST_LOGGED = 8000  # characters of a failed process's stack
_PASSED_ON = frozenset(
    {"PATH", "PYTHONHOME", "PYTHONUTF8", "LD_LIBRARY_PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP"}
    | {"SYSTEMROOT", "WINDIR", "SYSTEMDRIVE", "COMSPEC", "PATHEXT"}  # Windows starts no Python without the first
)


def _environment() -> dict[str, str]:
    """What a Python process needs, and none of the rest, which has keys and passwords. One thread per library, because
    each thread reserves memory."""
    passed_on = {name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith("LC_")}
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return passed_on | threads | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}


@dataclass(eq=False, slots=True)
class Job:
    """Runs in one thread at a time; `abandon` may be called from another."""

    seconds: float
    """Maximum total seconds of running, without waiting."""
    too_long: str
    """The refusal once they are over; ``too_large``: for a process without memory left."""
    too_large: str
    is_abandoned: bool = False
    _elapsed: float = 0.0
    _started_at: float | None = None

    def abandon(self) -> None:
        """End the job at its next check, because its caller has left."""
        self.is_abandoned = True

    def run(self, function: Callable[..., Result], *values: object) -> Result:
        """Run the function, or its next step, within the remaining time. Blocking.

        Raises TooCostly, Cancelled, and the errors of the function.
        """
        token = CHECK.set(self.check)
        self._started_at = time.monotonic()
        try:
            self.check()
            return function(*values)
        finally:
            self._elapsed += time.monotonic() - self._started_at
            self._started_at = None
            CHECK.reset(token)

    def check(self) -> None:
        """Raises TooCostly, Cancelled."""
        if self.is_abandoned:
            raise Cancelled("the caller has left")
        running = 0.0 if self._started_at is None else time.monotonic() - self._started_at
        if self._elapsed + running > self.seconds:
            raise TooCostly(self.too_long)


async def in_threads(pieces: Generator[Piece, None, None]) -> AsyncGenerator[Piece, None]:
    """The pieces of a blocking generator. It is closed with the iteration, in a thread too: it may write a file."""
    try:
        while (piece := await run_uninterrupted(next, pieces, None)) is not None:
            yield piece
    finally:
        await run_uninterrupted(pieces.close)


async def read(function: Callable[..., Result], *values: Any, patient: bool = False) -> Result:
    """Call a blocking function that looks something up, in a queue; ``patient`` as in `write`. Raises as it does."""
    if (place := PLACE.get()) is None:
        return await to_thread.run_sync(function, *values)
    async with place[0].lookups.turn(place[1], patient) as turn:
        return await turn.run(function, *values)


async def write(function: Callable[..., Result], *values: Any, patient: bool = False) -> Result:
    """Call a blocking function that writes into the library, in threads of its own, as it may wait for a lock; in the
    queue of writes unless ``patient``, because a refusal would lose earlier work. Raises QueueFull, TooManyRequests."""
    if (place := PLACE.get()) is not None and not patient:
        return await place[0].writes.run(place[1], function, *values)
    try:
        threads = _WRITERS.get()
    except LookupError:
        _WRITERS.set(threads := CapacityLimiter(_WRITERS_AT_ONCE))
    return await to_thread.run_sync(function, *values, limiter=threads)


async def run_uninterrupted(
    function: Callable[..., Result],
    *values: Any,
    limiter: CapacityLimiter | None = None,
    on_cancel: Callable[[], None] = lambda: None,
) -> Result:
    """Run a call in a thread and return its result. Waits for the end of the call even if cancelled.

    A running generator cannot be closed, and a file must not be written to after its end.
    ``on_cancel`` is called immediately on cancellation; it may make the function end sooner.
    """
    task = asyncio.ensure_future(to_thread.run_sync(function, *values, limiter=limiter))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        on_cancel()
        with CancelScope(shield=True):
            await asyncio.gather(task, return_exceptions=True)
        raise


class CancelToken:
    """Cancels what is awaited through `run` by cancelling the awaiting task, as `asyncio.timeout` does.

    A task for the work would cost more than generating a piece of audio. Used from one event loop, by one task at a
    time.
    """

    def __init__(self, error: Callable[[], Exception]) -> None:
        """``error`` creates the exception raised in the awaiting task."""
        self._error = error
        self._is_cancelled = False
        self._task: asyncio.Task[Any] | None = None

    def cancel(self) -> None:
        """Cancel the work awaited now and any awaited later."""
        if self._task is not None and not self._is_cancelled:
            self._task.cancel()
        self._is_cancelled = True

    def check(self) -> None:
        """Raise the error after `cancel`."""
        if self._is_cancelled:
            raise self._error()

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of ``work``; if `cancel` is called first, the work is cancelled and the error raised."""
        if self._is_cancelled:
            work.close()
            raise self._error()
        self._task = task = asyncio.current_task()
        assert task is not None, "only a task can await it"
        cancel_count = task.cancelling()
        try:
            return await work
        except asyncio.CancelledError:
            if not self._is_cancelled:
                raise
            if task.uncancel() > cancel_count:
                raise  # the task was also cancelled by someone else
            raise self._error() from None
        finally:
            self._task = None


def main() -> None:
    """The process of `in_child`: python -m studio.work MEMORY SECONDS answers one call and exits.

    Reads the pickled call from standard input, and writes the pickled (True, result) or (False, error); no answer means
    too much memory or time. The process ends at the end of its input, so also when the studio is killed, together with
    the processes that it has started.
    """
    memory, seconds = int(sys.argv[1]), int(sys.argv[2])
    if sys.platform != "win32":
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))  # SIGXCPU shows the reason
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # printed output must not mix with the answers
    (length,) = LENGTH.unpack(sys.stdin.buffer.read(LENGTH.size))
    call = sys.stdin.buffer.read(length)
    threading.Thread(target=_end_with_input, daemon=True).start()
    function, values = pickle.loads(call)  # noqa: S301  (sent by the studio itself)
    del call
    try:
        answer: tuple[bool, object] = True, function(*values)
    except REFUSALS as error:
        answer = False, error
    except Exception as error:
        if not isinstance(error, MemoryError):
            failure = InvalidRequest(f"this file cannot be read: it is damaged ({type(error).__name__})")
            failure.add_note(traceback.format_exc())
            with answers:
                answers.write(pickle.dumps((False, failure)))
        raise
    answers.write(pickle.dumps(answer))
    answers.flush()


def _end_with_input() -> None:
    os.read(sys.stdin.fileno(), 1)
    if sys.platform == "win32":
        os._exit(1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
