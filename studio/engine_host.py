"""The engine's host: starts the engine in a thread, reports progress, and provides it once it is ready."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from engine import EngineConfig, EngineError, EngineInfo, EngineStopped, SpeechEngine, trim_heap
from studio.errors import NotReady, Unavailable

RELEASE_SECONDS = 60.0
"""Interval at which freed memory is returned to the system; using a returned page again costs microseconds."""
STOP_SECONDS = 20.0
"""Maximum wait, on stopping, for a running start to reach its next step."""

StartEngine = Callable[[EngineConfig, Callable[[str, float], None]], SpeechEngine]
"""Engine.start, or a replacement with the same signature."""


class Reporter(Protocol):
    """Receives the progress of the start, in the thread that starts the engine."""

    def progress(self, doing: str, fraction: float) -> None: ...

    def ready(self, info: EngineInfo) -> None: ...

    def failed(self, reason: str) -> None: ...


@dataclass(frozen=True, slots=True)
class HostStatus:
    """State of the engine: ``doing`` in plain words, ``progress`` from 0 to 1, ``error`` if it failed."""

    state: Literal["starting", "ready", "failed"]
    doing: str
    progress: float
    error: str | None = None


class EngineHost:
    """One engine through its states: starting, ready, failed. All methods are thread-safe."""

    def __init__(self, config: EngineConfig, start_engine: StartEngine, reporter: Reporter | None = None) -> None:
        self.model_id = _model_id(config.model)
        """The model's name in the API: a folder's name, or the hub id."""
        self._config = config
        self._start_engine = start_engine
        self._reporter = reporter
        self._status = HostStatus("starting", "waiting to start", 0.0)
        self._engine: Future[SpeechEngine] = Future()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="engine-start", daemon=True)

    @property
    def max_waiting(self) -> int:
        """Capacity of the engine's queue, in utterances."""
        return self._config.max_waiting

    @property
    def status(self) -> HostStatus:
        status = self._status
        if status.state == "failed" or not self._engine.done():
            return status
        cause = self._engine.result(0).failure
        return HostStatus("failed", "stopped", 0.0, cause) if cause else HostStatus("ready", "ready", 1.0)

    def start(self) -> None:
        """Start the engine in the background, once; returns immediately."""
        if self._thread.ident is None:
            self._thread.start()

    def engine(self) -> SpeechEngine:
        """The ready engine. Raises NotReady while it starts, Unavailable if it failed or has stopped."""
        status = self.status
        if status.state == "failed":
            raise Unavailable(f"the engine is not running: {status.error}")
        if status.state == "starting":
            raise NotReady(
                f"the engine is starting: {status.doing} ({status.progress:.0%}); try again in a moment",
                retry_after=2,
            )
        return self._engine.result(timeout=0)

    async def ready(self) -> SpeechEngine:
        """Wait for the engine. Raises EngineError if it cannot start."""
        return await asyncio.shield(asyncio.wrap_future(self._engine))

    async def comes_up(self) -> bool:
        """Wait for the engine; False if it cannot start (`status` has the reason)."""
        engine = asyncio.wrap_future(self._engine)
        await asyncio.wait({engine})
        return engine.exception() is None

    def wait(self, timeout: float | None = None) -> SpeechEngine:
        """Blocking form of `ready`. Raises TimeoutError after ``timeout`` seconds."""
        return self._engine.result(timeout)

    def begin_stop(self) -> None:
        """Make a running start end at its next step, without reporting that the engine is ready."""
        self._stopping.set()

    def stop(self) -> None:
        """Stop the engine, or a running start at its next step. Blocking, for at most STOP_SECONDS.

        A process that exits while one of its threads is still loading aborts.
        """
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)
        if self._engine.done() and self._engine.exception() is None:
            self._engine.result().stop()

    def _run(self) -> None:
        try:
            engine = self._start_engine(self._config, self._progress)
        except (EngineError, OSError, RuntimeError, MemoryError) as error:
            self._failed(error, str(error))
            return
        except Exception as error:
            self._failed(error, f"{type(error).__name__}: {error}")
            raise
        if self._stopping.is_set():
            engine.stop()
        self._engine.set_result(engine)
        if self._stopping.is_set():
            return
        if self._reporter:
            self._reporter.ready(engine.info)

    def _failed(self, error: Exception, reason: str) -> None:
        self._status = HostStatus("failed", self._status.doing, self._status.progress, reason)
        self._engine.set_exception(error)
        if self._reporter and not self._stopping.is_set():
            self._reporter.failed(reason)

    def _progress(self, doing: str, fraction: float) -> None:
        if self._stopping.is_set():
            raise EngineStopped("the studio is stopping")
        self._status = HostStatus("starting", doing, min(max(fraction, 0.0), 1.0))
        if self._reporter:
            self._reporter.progress(doing, fraction)


def _model_id(model: str) -> str:
    """A folder's name; for a folder in the hub's cache (models--OWNER--NAME/snapshots/HASH), the hub id."""
    folder = Path(model)
    if not (folder.is_absolute() or folder.is_dir()):
        return model
    folder = folder.resolve() if folder.name in ("", "..") else folder
    kind, *names = folder.parent.parent.name.split("--")
    if folder.parent.name == "snapshots" and kind == "models" and names:
        return "/".join(names)
    return folder.name


async def trim_heap_regularly() -> None:
    """Return freed memory to the system until cancelled; over many threads it adds up to hundreds of MiB."""
    while True:
        await asyncio.sleep(RELEASE_SECONDS)
        await asyncio.to_thread(trim_heap)
