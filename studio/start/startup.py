"""Starts the studio: one FastAPI app with API and page, served until stopped, also on a Space."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

if os.environ.get("SPACES_ZERO_GPU"):
    import spaces  # noqa: F401  (replaces CUDA there, and must be imported before torch)

# Only the imports for the engine's start: importing the web layer takes as long as loading a GPU's weights.
from engine import DirectEngine, Engine, EngineConfig, EngineError, SpeechEngine, freeze_heap
from studio import __version__
from studio.engine_host import EngineHost, Reporter, StartEngine, engine_config, trim_heap_regularly
from studio.errors import SettingsError
from studio.models.hub_files import check_endpoint
from studio.models.model_choice import StartingModel, starting_model
from studio.serving.public_port import PublicPort
from studio.settings import PREFIX, Settings, on_zero_gpu
from studio.start.terminal import Terminal

if TYPE_CHECKING:
    from fastapi import FastAPI

    from studio.serving.server import FrontEnds
    from studio.speech.speech_service import SpeechService

# Gradio also sets the second variable, while the engine starts. CUDA reads the environment without a lock: a variable
# that exists is changed in place, so that the list does not move meanwhile.
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "True")

STOPPING = (signal.SIGINT, signal.SIGTERM)


def create_app(
    settings: Settings,
    start_engine: StartEngine = Engine.start,
    reporter: Reporter | None = None,
) -> FastAPI:
    """The studio as one ASGI app; its lifespan starts the engine in the background and stops it.

    ``reporter`` receives the progress of ``start_engine``.
    On ZeroGPU the app does not contain the page: Gradio launches it.
    """
    return _create_app(_engine_host(settings, starting_model(settings), start_engine, reporter), settings)


def _engine_host(
    settings: Settings, first: StartingModel, start_engine: StartEngine, reporter: Reporter | None
) -> EngineHost:
    """The host of the chosen model, with the bundled one as fallback."""
    config = engine_config(settings)
    if not first.is_chosen:
        host = EngineHost(config, start_engine, reporter)
        host.trouble = first.problem
        return host
    return EngineHost(engine_config(settings, first.model), start_engine, reporter, config)


def _create_app(host: EngineHost, settings: Settings) -> FastAPI:
    """Like `create_app`, for an engine that may already be starting."""
    from fastapi import FastAPI

    from studio.api import install_api
    from studio.services import open_studio
    from studio.supervisor import end_tasks

    studio, worker = open_studio(settings, host)
    library, service = studio.library, studio.speech
    jobs = [(library.watch, library.clear_away)]  # on ZeroGPU, nothing is generated in the background
    jobs += [(service.warming, service.warm_voices), (worker.watch, worker.run)] if not on_zero_gpu() else []
    watches = [watch for watch, _ in jobs] + ([library.backup.watch] if library.backup else [])
    service.background += watches

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        host.start()
        if library.backup:
            library.backup.start()
        tasks = [asyncio.create_task(watch.restart_forever(job)) for watch, job in jobs]
        tasks.append(asyncio.create_task(trim_heap_regularly()))
        try:
            yield
        finally:
            await end_tasks(*tasks)
            await studio.recogniser_download.cancel()
            await studio.models.close()
            await studio.proofs.close()
            await asyncio.to_thread(host.stop)
            await asyncio.to_thread(service.close)
            await asyncio.to_thread(studio.client_files.close)
            if library.backup:
                await asyncio.to_thread(library.backup.stop)
            await asyncio.to_thread(library.store.close)

    app = FastAPI(title="Fish voice studio", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.studio = studio
    install_api(app, studio)
    if settings.page and not on_zero_gpu():
        from studio.ui.page import mount_page  # Gradio takes seconds to import, and the API does not need it

        mount_page(app, studio)
    return app


def _start_engine(settings: Settings) -> StartEngine:
    """The function that starts an engine in this process, or a fleet."""
    if not settings.has_fleet:
        return Engine.start
    from fleet.start import start_fleet  # one engine needs no Ray

    return lambda config, progress: start_fleet(config, settings.engines or None, settings.ray_address, progress)


def _front_ends(settings: Settings, service: SpeechService, terminal: Terminal) -> FrontEnds:
    """Speech processes, which use the same engines as this process."""
    from fleet.frontends.speech_processes import SpeechProcesses
    from fleet.start import fleet_joiner

    return SpeechProcesses(
        settings, engine_config(settings, service.host.model), service, fleet_joiner, terminal.print_line
    )


def _freeze_after(start_engine: StartEngine, serving: threading.Event) -> StartEngine:
    """A start that waits for the server and then freezes the heap with everything loaded so far.

    Only for this process, which creates one app: the garbage collector never frees frozen objects.
    """

    def start(config: EngineConfig, progress: Callable[[str, float], None]) -> SpeechEngine:
        engine = start_engine(config, progress)
        serving.wait()
        freeze_heap()
        return engine

    return start


def main() -> int:
    """Serve until stopped. Returns 1 if a setting is invalid or the engine cannot start."""
    names = ", ".join(PREFIX + name.upper() for name in Settings.model_fields)
    epilog = f"Settings are environment variables, or lines of a file .env; see docs/settings.md: {names}."
    about = (
        "Serves the voice studio. “voices --help”, “trash --help”, “models --help” and “check --help” show the other "
        "commands."
    )
    parser = argparse.ArgumentParser("fish-voice-studio", "%(prog)s [voices | trash | models | check …]", about, epilog)
    parser.add_argument("--version", action="version", version=__version__)
    parser.parse_args()
    try:
        settings = Settings.load()
        logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s %(name)s: %(message)s")
        terminal = Terminal(settings)
        if on_zero_gpu():
            return _serve_zero(settings, terminal)
        port = PublicPort(settings)  # before anything is loaded, so that a port in use is reported at once
        _check_home(settings)
        check_endpoint()
        first = starting_model(settings)
        terminal.starting(first.model)
    except SettingsError as error:
        return _report_failure(error)
    check_interrupt = _defer_interrupts()
    serving = threading.Event()
    host = _engine_host(settings, first, _freeze_after(_start_engine(settings), serving), terminal)
    if not settings.has_fleet:  # the fleet imports modules that the web layer imports too: not at the same time
        host.start()
    try:
        return _serve(settings, terminal, port, host, serving, check_interrupt)
    except SettingsError as error:
        return _report_failure(error)
    except KeyboardInterrupt:  # while the web layer was imported
        return 0
    finally:
        host.begin_stop()  # before its start, which waits for the server, continues
        serving.set()
        host.stop()


def _defer_interrupts() -> Callable[[], None]:
    """Defer the first SIGINT or SIGTERM; a second one raises. Returns a function that raises the deferred one.

    Raised within an import, it could be lost in a callback, or leave a lock of the import system held for all threads.
    This overrides shells that make background jobs ignore SIGINT, as the server does later.
    """
    received = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if received.is_set():
            raise KeyboardInterrupt
        received.set()

    def check() -> None:
        for number in STOPPING:
            signal.signal(number, signal.default_int_handler)
        if received.is_set():
            raise KeyboardInterrupt

    for number in STOPPING:
        signal.signal(number, interrupt)
    return check


def _check_home(settings: Settings) -> None:
    """Create the library's folder. Raises SettingsError if that fails or the folder is not writable."""
    home = Path(settings.home)
    try:
        home.mkdir(0o700, parents=True, exist_ok=True)
        if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "the studio's user may not write there")
    except OSError as error:
        reason = error.strerror or str(error)
        raise SettingsError(f"STUDIO_HOME={settings.home!r} cannot be used: {reason}") from error


def _report_failure(error: SettingsError) -> int:
    print(f"The studio did not start: {error}", file=sys.stderr)
    return 1


def _serve(
    settings: Settings,
    terminal: Terminal,
    port: PublicPort,
    host: EngineHost,
    serving: threading.Event,
    check_interrupt: Callable[[], None],
) -> int:
    """Serve until stopped; returns the exit code. ``serving`` is set once the server listens.

    Raises KeyboardInterrupt for an interrupt during the import of the web layer.
    """
    from studio.serving.server import StudioServer, config_of

    app = _create_app(host, settings)
    front_ends = _front_ends(settings, app.state.studio.speech, terminal) if settings.has_fleet else None
    server = StudioServer(config_of(app, settings), port, serving, front_ends)

    def leave() -> None:
        server.should_exit = True

    terminal.on_failure = leave
    if terminal.has_failed:
        return 1
    check_interrupt()
    try:
        server.run()
    except KeyboardInterrupt:
        return 0
    return 1 if terminal.has_failed or not server.started else 0


def _serve_zero(settings: Settings, terminal: Terminal) -> int:
    """Serve on ZeroGPU, where each of Gradio's requests gets a GPU for one call and Gradio launches the page."""
    import spaces

    def lend(task: Callable[..., Any], seconds: Callable[..., float]) -> Callable[..., Any]:
        return spaces.GPU(duration=seconds)(task)

    terminal.starting(settings.model)
    try:
        # In this thread: the replacement of CUDA works only in the thread that imported it.
        engine = DirectEngine.start(engine_config(settings), terminal.progress, lend)
    except (EngineError, OSError, RuntimeError, MemoryError) as error:
        terminal.failed(str(error))
        return 1
    app = create_app(settings, lambda config, progress: engine, terminal)
    asyncio.run(_launch_until_stopped(app))
    return 0


async def _launch_until_stopped(app: FastAPI) -> None:
    from studio.ui.zerogpu import launch_page  # Gradio takes seconds to import

    stopped = asyncio.Event()
    for number in STOPPING:
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with app.router.lifespan_context(app):
        await app.state.studio.speech.host.ready()
        page = launch_page(app, app.state.studio)
        await stopped.wait()
        page.close(verbose=False)
