"""Starts the studio: one FastAPI app with API and page, served until stopped, with messages on the terminal."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import gc
import ipaddress
import json
import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from launch import COLLECTIONS, zero_gpu  # before all imports that bring torch

# Only the imports for the engine's start: importing the web layer takes as long as loading a GPU's weights. With
# them come the web layer's imports from the engine, so that two threads never import the same module.
from engine import Engine, EngineConfig, EngineInfo, SpeechEngine, freeze_heap, survey_model  # noqa: F401
from studio import __version__
from studio.engine_host import EngineHost, Reporter, StartEngine, engine_config, trim_heap_regularly
from studio.errors import SettingsError
from studio.library.disk_reserve import NO_ROOM
from studio.library.private_files import make_private_folder
from studio.models.catalogue import hub_endpoint
from studio.models.model_choice import StartingModel, starting_model
from studio.public_port import PublicPort
from studio.settings import PREFIX, Settings
from studio.unicode_text import shell_command

if TYPE_CHECKING:
    from fastapi import FastAPI

    from studio.server import FrontEnds
    from studio.services import Studio
    from studio.speech.speech_service import SpeechService

# Gradio also sets the second variable, while the engine starts. CUDA reads the environment without a lock: a variable
# that exists is changed in place, so that the list does not move meanwhile.
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "True")

STOPPING = (signal.SIGINT, signal.SIGTERM)


class Terminal:
    """Reports the engine's start on standard output, one line for each step and each tenth of a long one."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._last: tuple[str, int] = ("", -1)
        self.has_failed = False
        self.on_failure: Callable[[], None] = lambda: None  # called if the engine fails to start

    def starting(self, model: str) -> None:
        """Report the start, once the port is bound."""
        settings = self._settings
        service = "page" if settings.page else "API"
        location = f"below {settings.root_path} of the proxy" if settings.root_path else f"at {settings.address}"
        print(f"Loading {model}. The {service} will be {location}")

    def progress(self, doing: str, fraction: float) -> None:
        step = (doing, int(fraction * 10))
        if step != self._last:
            self._last = step
            print(f"{fraction:4.0%}  {doing}")

    def ready(self, info: EngineInfo) -> None:
        has_page = self._settings.page and not self._settings.root_path
        hint = f"Open {self._settings.address} or try:" if has_page else "Try:"
        print(f"Ready on {info.device} ({info.dtype}). {hint}")
        print(curl_line(self._settings.address))

    def failed(self, reason: str) -> None:
        print(f"The engine could not start: {reason}")
        if self._settings.model != Settings.model_fields["model"].default:
            print("Without STUDIO_MODEL or MODEL the bundled model starts, which needs no download.")
        self.has_failed = True
        self.on_failure()


def curl_line(address: str) -> str:
    """A curl command that generates speech: the shortest use of the API."""
    program = "curl.exe" if sys.platform == "win32" else "curl"  # PowerShell has another curl
    body = json.dumps({"input": "Hello from the studio."})
    options = ("-H", "Content-Type: application/json", "-d", body, "-o", "hello.mp3")
    return shell_command(program, f"{address}/v1/audio/speech", *options)


def create_app(
    settings: Settings,
    start_engine: StartEngine = Engine.start,
    reporter: Reporter | None = None,
    is_bare: bool = False,
) -> FastAPI:
    """The studio as one ASGI app; its lifespan starts the engine in the background and stops it.

    ``reporter`` receives the progress of ``start_engine``; ``is_bare``: without the page, and without speech generated
    in the background.
    """
    return _create_app(_engine_host(settings, starting_model(settings), start_engine, reporter), settings, is_bare)


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


def _create_app(host: EngineHost, settings: Settings, is_bare: bool = False) -> FastAPI:
    """Like `create_app`, for an engine that may already be starting."""
    from fastapi import FastAPI

    from longform import extension as longform
    from longform.library.project_repository import ProjectLibrary
    from studio.api import install_api
    from protocols import elevenlabs, fish, wyoming
    from protocols.mcp import endpoint
    from studio.services import open_studio
    from studio.supervisor import end_tasks

    extensions = (*(longform.register, fish.register, elevenlabs.register), *(wyoming.register, endpoint.register))
    studio = open_studio(settings, host, extensions, ProjectLibrary)
    library, service = studio.library, studio.speech
    jobs = [(library.watch, library.clear_away)]
    if not is_bare:
        jobs += [(service.warming, service.warm_voices), *studio.additions.jobs]
    watches = [watch for watch, _ in jobs] + ([library.backup.watch] if library.backup else [])
    service.background += watches

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        host.start()
        if library.backup:
            library.backup.start()
        tasks = [asyncio.create_task(watch.restart_forever(job)) for watch, job in jobs]
        tasks.append(asyncio.create_task(trim_heap_regularly()))
        tasks.append(asyncio.create_task(studio.update_notice.watch(print)))
        try:
            yield
        finally:
            await end_tasks(*tasks)
            await studio.recogniser_download.cancel()
            await studio.models.close()
            for close in studio.additions.closers:
                await close()
            await asyncio.to_thread(host.stop)
            await asyncio.to_thread(service.close)
            await asyncio.to_thread(studio.client_files.close)
            if library.backup:
                await asyncio.to_thread(library.backup.stop)
            await asyncio.to_thread(library.store.close)
            if studio.temporary:
                await asyncio.to_thread(studio.temporary.cleanup)

    app = FastAPI(title="Fish voice studio", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.studio, app.state.queues = studio, studio.speech.queues
    install_api(app, studio)
    if settings.page and not is_bare:
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

    return SpeechProcesses(settings, engine_config(settings, service.host.model), service, fleet_joiner, print)


def _freeze_after(start_engine: StartEngine, serving: threading.Event) -> StartEngine:
    """A start that waits for the server and then freezes the heap with everything loaded so far.

    Only for this process, which creates one app: the garbage collector never frees frozen objects.
    """

    def start(config: EngineConfig, progress: Callable[[str, float], None]) -> SpeechEngine:
        engine = start_engine(config, progress)
        serving.wait()
        freeze_heap()
        gc.set_threshold(*COLLECTIONS)
        return engine

    return start


def main() -> int:
    """Serve until stopped. Returns 1 if a setting is invalid or the engine cannot start."""
    names = ", ".join(PREFIX + name.upper() for name in Settings.model_fields)
    epilog = f"Settings are environment variables, or lines of a file .env; see docs/settings.md: {names}."
    about = (
        "Serves the voice studio. “voices --help”, “trash --help”, “models --help”, “check --help” and “mcp --help” "
        "show the other commands."
    )
    usage = "%(prog)s [voices | trash | models | check | mcp …]"
    parser = argparse.ArgumentParser("fish-voice-studio", usage, about, epilog)
    parser.add_argument("--version", action="version", version=__version__)
    if unknown := parser.parse_known_args()[1]:
        parser.error(f"unknown: {' '.join(unknown)}; settings are variables, such as STUDIO_PORT=7861: see --help")
    try:
        settings = Settings.load()
        if settings.has_fleet and sys.platform == "win32":
            raise SettingsError("several engines need Linux or WSL 2: remove STUDIO_ENGINES and STUDIO_RAY_ADDRESS")
        logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s %(name)s: %(message)s")
        if zero_gpu.is_here():
            zero_gpu.check(settings)
            terminal = Terminal(settings)
            terminal.starting(settings.model)
            return zero_gpu.serve(settings, terminal, create_app, STOPPING)
        port = PublicPort(settings)  # before anything is loaded, so that a port in use is reported at once
        settings = settings.model_copy(update={"port": port.number})
        terminal = Terminal(settings)
        _check_home(settings)
        _choose_temporary_folder(settings)
        _check_trusted_proxies()
        if os.environ.get("HF_ENDPOINT"):
            hub_endpoint()  # with another address the hub's library cannot be imported
        first = starting_model(settings)
        terminal.starting(first.model)
        if not (settings.update_notice or Path(settings.home, "library.db").exists()):
            print("STUDIO_UPDATE_NOTICE=1 lets the studio say when a newer version is published.")
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
    """Create the library's folder. Raises SettingsError if that fails or the folder is not writable, but not if its
    disk is full: then the studio speaks without it."""
    home = Path(settings.home)
    try:
        make_private_folder(home)
        if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "the studio's user may not write there")
    except OSError as error:
        if error.errno in NO_ROOM:
            return
        reason = error.strerror or str(error)
        raise SettingsError(f"STUDIO_HOME={settings.home!r} cannot be used: {reason}") from error


def _choose_temporary_folder(settings: Settings) -> None:
    """If no usual folder for temporary files can be written, as on a full disk, take the library's or memory: Gradio's
    import needs one. Raises SettingsError if these cannot be written either."""
    for other in (settings.home, "/dev/shm", ""):  # noqa: S108 - only this user can read what tempfile makes in it
        with contextlib.suppress(FileNotFoundError):
            tempfile.gettempdir()
            return
        os.environ["TMPDIR"] = other
    raise SettingsError("no folder for temporary files can be written: free some room, or set TMPDIR to a folder")


def _check_trusted_proxies() -> None:
    """Raises SettingsError for what uvicorn would ignore without a word; all callers would then share the address and
    the limits of their proxy."""
    trusted = os.environ.get("FORWARDED_ALLOW_IPS", "").strip()
    for name in [name.strip() for name in trusted.split(",") if name.strip() and trusted != "*"]:
        try:
            ipaddress.ip_network(name) if "/" in name else ipaddress.ip_address(name)
        except ValueError as error:
            wanted = "addresses and networks such as 10.0.0.0/8, separated by commas, or * for all"
            raise SettingsError(f"FORWARDED_ALLOW_IPS takes {wanted}: {error}") from error


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
    from studio.api.text_socket import SocketConnection
    from studio.server import StudioServer, config_of

    app = _create_app(host, settings)
    gc.freeze()  # the web layer: `freeze_heap` need not visit it while the studio could already answer
    studio: Studio = app.state.studio
    front_ends = _front_ends(studio.settings, studio.speech, terminal) if settings.has_fleet else None
    server = StudioServer(config_of(app, settings, ws=SocketConnection), port, serving, front_ends)

    def leave() -> None:
        server.should_exit = True

    terminal.on_failure = leave
    if terminal.has_failed:
        return 1
    check_interrupt()
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # which nohup ignores
        signal.signal(signal.SIGHUP, server.handle_exit)  # a terminal that is closed ends takes as Ctrl-C does
    try:
        server.run()
    except KeyboardInterrupt:
        return 0
    return 1 if terminal.has_failed or not server.started else 0
