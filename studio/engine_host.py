"""The engine's host: starts the engine in a thread, reports progress, and provides it once it is ready."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from engine import EngineConfig, EngineError, EngineInfo, EngineStopped, SpeechEngine, release_memory, trim_heap
from studio.errors import NotReady, Unavailable
from studio.settings import Settings

log = logging.getLogger(__name__)

RELEASE_SECONDS = 60.0
"""Interval at which freed memory is returned to the system; reusing a returned page costs microseconds."""
LAST_USE_SECONDS = 5.0
"""Maximum wait for the last request to release a stopped engine, whose memory the next one needs."""
STOP_SECONDS = 20.0
"""Maximum wait, on stopping, for a running start to reach its next step."""

EXPECTED = (EngineError, OSError, RuntimeError, MemoryError)
"""Errors of a start that are logged without a traceback."""
KV_ATTENTION: dict[str, Literal["auto", "off", "required"]] = {"1": "auto", "0": "off", "required": "required"}
"""Values of STUDIO_FISH_KVCACHE_ATTN, and the engine's names for them."""
HAS_BEGUN = ContextVar("has_begun", default=False)  # whether it is of a request that the held engine still serves
StartEngine = Callable[[EngineConfig, Callable[[str, float], None]], SpeechEngine]
"""Engine.start, or a replacement with the same signature."""


class Reporter(Protocol):
    """Receives the progress of the start, in the thread that starts the engine."""

    def progress(self, doing: str, fraction: float) -> None: ...

    def ready(self, info: EngineInfo) -> None: ...

    def failed(self, reason: str) -> None: ...


@dataclass(frozen=True, slots=True)
class HostStatus:
    """State of the engine: ``doing`` is the current step, ``progress`` is 0 to 1, ``error`` is set if it failed."""

    state: Literal["starting", "ready", "failed"]
    doing: str
    progress: float
    error: str | None = None


class EngineHost:
    """One engine through its states: starting, ready, failed, and starting again with another model.

    All methods are thread-safe, except that `hold`, `resume` and `switch` are for one caller.
    """

    def __init__(
        self,
        config: EngineConfig,
        start_engine: StartEngine,
        reporter: Reporter | None = None,
        fallback: EngineConfig | None = None,
    ) -> None:
        """``fallback``: started if an engine with ``config`` does not start."""
        self.trouble: str | None = None
        """Why the model requested last is not loaded."""
        self._config = config
        self._start_engine = start_engine
        self._reporter = reporter
        self._status = HostStatus("starting", "waiting to start", 0.0)
        self._engine: Future[SpeechEngine] = Future()
        self._held_engine: Future[SpeechEngine] | None = None
        self._was_ready = False
        self._stopping = threading.Event()
        configs = (config,) if fallback is None else (config, fallback)
        self._thread = threading.Thread(target=self._run, args=configs, name="engine-start", daemon=True)

    @property
    def model(self) -> str:
        """The path or hub id of the model that is loaded or being loaded."""
        return self._config.model

    @property
    def model_id(self) -> str:
        """The model's name in the API: a folder's name, or the hub id."""
        return _model_id(self._config.model)

    @property
    def max_waiting(self) -> int:
        """Capacity of the engine's queue, in utterances."""
        return self._config.max_waiting

    @property
    def status(self) -> HostStatus:
        status, engine = self._status, self._engine
        if status.state == "failed" or not engine.done():
            return status
        cause = engine.result(0).failure
        return HostStatus("failed", "stopped", 0.0, cause) if cause else HostStatus("ready", "ready", 1.0)

    def start(self) -> None:
        """Start the engine in the background, once; returns immediately."""
        if self._thread.ident is None:
            self._thread.start()

    def engine(self) -> SpeechEngine:
        """The ready engine, or the held one for requests that have begun. Raises NotReady while it starts, Unavailable
        if it failed or has stopped."""
        if (held := self._held_engine) is not None and HAS_BEGUN.get():
            return held.result(timeout=0)
        status = self.status
        if status.state == "failed":
            raise Unavailable(f"the engine is not running: {status.error}")
        if status.state == "starting":
            doing = f"{status.doing} ({status.progress:.0%})"
            raise NotReady(f"the engine is starting: {doing}; try again in a moment", retry_after=2)
        return self._engine.result(timeout=0)

    @property
    def info(self) -> EngineInfo | None:
        """The loaded model's; None while none is loaded."""
        try:
            return self.engine().info
        except (NotReady, Unavailable):
            return None

    async def ready(self) -> SpeechEngine:
        """Wait for the engine. Raises EngineError if it cannot start."""
        return await asyncio.shield(asyncio.wrap_future(self._engine))

    async def wait_until_ready(self) -> bool:
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
        for engine in (self._engine, self._held_engine):
            if engine is not None and engine.done() and engine.exception() is None:
                engine.result().stop()

    def hold(self, doing: str) -> None:
        """Refuse work from now on, as during a start; running takes continue.

        ``doing`` is shown to callers, and may be changed.
        """
        if self._held_engine is None:
            self._held_engine, self._engine = self._engine, Future()
        self._status = HostStatus("starting", doing, 0.0)

    def resume(self) -> None:
        """Accept work again, with the engine that was held."""
        future, self._held_engine = self._held_engine, None
        assert future is not None, "resume comes after hold"
        if (problem := future.exception()) is not None:
            self._fail(problem, str(problem))
        else:
            self._engine.set_result(future.result())

    def switch(self, model: str, last_resort: str) -> None:
        """Stop the held engine and start one with another model in the background; `wait_until_ready` waits for it.

        If that does not start, the previous model is loaded again, and `trouble` has the reason; if not even that
        starts, as its files are gone, the last resort. No two are in memory at the same time.
        """
        models = dict.fromkeys((model, self._config.model, last_resort))
        configs = [replace(self._config, model=name) for name in models]
        self._thread = threading.Thread(target=self._replace, args=configs, name="engine-start", daemon=True)
        self._thread.start()

    def _replace(self, *configs: EngineConfig) -> None:
        future, self._held_engine = self._held_engine, None
        assert future is not None, "switch comes after hold"
        old_engine: weakref.ref[SpeechEngine] | None = None
        if future.exception() is None:
            future.result().stop()
            old_engine = weakref.ref(future.result())
        del future
        self._config, self.trouble = configs[0], None
        deadline = time.monotonic() + LAST_USE_SECONDS
        while old_engine is not None and old_engine() is not None and time.monotonic() < deadline:
            release_memory()
            time.sleep(0.02)
        release_memory()  # again after its last use, which may have ended only now
        self._run(*configs)

    def _run(self, *configs: EngineConfig) -> None:
        """Start the first of these engines that can start."""
        for config in configs:
            self._config = config
            try:
                engine = self._start_engine(config, self._progress)
            except Exception as error:  # noqa: BLE001  (whatever a file does to a reader, the previous model is loaded)
                if self._stopping.is_set() or config is configs[-1]:
                    return self._start_failed(error)
                self.trouble = self._troubles(error) or f"{self.model_id} could not be loaded: {self._told(error)}"
                log.warning("%s; loading another model", self.trouble)
            else:
                return self._use(engine)
            release_memory()  # only after the error, which refers to the loaded tensors, is gone
        return None

    def _use(self, engine: SpeechEngine) -> None:
        if self._stopping.is_set():
            engine.stop()
        self._was_ready = True
        self._engine.set_result(engine)
        if self._reporter and not self._stopping.is_set():
            self._reporter.ready(engine.info)

    def _start_failed(self, error: Exception) -> None:
        """Report a failed start, which ends the program, except after a switch: then another model can be chosen."""
        self._fail(error, self._troubles(error) or self._told(error))
        if not isinstance(error, EXPECTED):
            log.error("the engine could not start", exc_info=error)
        if self._reporter and not self._stopping.is_set() and not self._was_ready:
            self._reporter.failed(_reason(error))

    def _troubles(self, error: Exception) -> str | None:
        """Why neither the requested model nor this one could be loaded; None if this is the requested one."""
        return f"{self.trouble}; nor could {self.model_id}: {self._told(error)}" if self.trouble else None

    def _told(self, error: Exception) -> str:
        """The reason as callers read it: the model by its name, as its folder is the owner's to know."""
        is_path = Path(self.model).is_absolute()
        return _reason(error).replace(self.model, self.model_id) if is_path else _reason(error)

    def _fail(self, error: BaseException, reason: str) -> None:
        self._status = HostStatus("failed", self._status.doing, self._status.progress, reason)
        self._engine.set_exception(error)

    def _progress(self, doing: str, fraction: float) -> None:
        if self._stopping.is_set():
            raise EngineStopped("the studio is stopping")
        self._status = HostStatus("starting", doing, min(max(fraction, 0.0), 1.0))
        if self._reporter:
            self._reporter.progress(doing, fraction)


def engine_config(settings: Settings, model: str | None = None) -> EngineConfig:
    """The engine's configuration from the settings, and the model; None: that of STUDIO_MODEL."""
    weights = settings.weights
    return EngineConfig(
        model=model or settings.model,
        device=settings.device,
        codec_device=settings.codec_device,
        dtype=weights if weights == "float32" or weights == "bfloat16" else None,
        codec_dtype="float32" if weights == "float32" else None,
        max_rows=settings.max_rows,
        max_waiting=settings.max_waiting,
        max_context=settings.max_context,
        threads=settings.threads,
        memory_bytes=None if settings.memory_budget is None else round(settings.memory_budget * 2**30),
        kv_attention=KV_ATTENTION[settings.fish_kvcache_attn],
        weights="bf16" if weights == "float32" or weights == "bfloat16" else weights,
        reproducible=settings.reproducible,
    )


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, EXPECTED) and str(error) else f"{type(error).__name__}: {error}"


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
