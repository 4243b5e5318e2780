"""A studio with speech processes: real ones, over real HTTP, with engines that a test controls."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from fleet.frontends.speech_processes import SpeechProcesses
from launch.startup import create_app
from studio.engine_host import StartEngine, engine_config
from studio.public_port import PublicPort
from studio.server import StudioServer, config_of
from studio.settings import Settings
from studio.speech.speech_service import SpeechService
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import NO_TLS
from tests.waiting import wait_until_true


@dataclass(frozen=True)
class Several:
    url: str
    service: SpeechService
    processes: SpeechProcesses
    server: StudioServer

    @contextlib.contextmanager
    def client_at(self, number: int, **options: object) -> Iterator[httpx.Client]:
        """A client with a connection to this process, which carries all sequential requests."""
        for _ in range(60):
            with httpx.Client(base_url=self.url, timeout=60, verify=NO_TLS, **options) as client:  # type: ignore[arg-type]
                mine = client.get("/sign-in").extensions["network_stream"].get_extra_info("client_addr")
                if _has_connection(self.pids[number], mine[1]):
                    yield client
                    return
        raise AssertionError("no connection came to that process")

    @property
    def pids(self) -> list[int]:
        """Ids of the running processes: an ended one has none until it is restarted."""
        return [spawned.pid for process in self.processes._processes.values() if (spawned := process._process)]

    def active_takes(self, number: int) -> set[str]:
        """The ids of a process's active takes."""
        return set(self.processes._processes[number]._takes)

    def ready(self, count: int) -> None:
        """Wait until this many accept connections."""
        wait_until_true(lambda: self.service.health.get("speech_processes", {}).get("ready", 0) == count)


def _has_connection(pid: int, port: int) -> bool:
    """Whether a process has the connection from a port of this machine."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="utf-8").splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if int(row[2].partition(":")[2], 16) == port}
    return any(
        os.readlink(descriptor) in sockets
        for descriptor in Path(f"/proc/{pid}/fd").iterdir()
        if descriptor.is_symlink()
    )


@contextlib.contextmanager
def several(
    settings: Settings,
    join: Callable[[], StartEngine],
    start_engine: StartEngine = FakeEngine.start,
    page: bool = False,
    count: int = 2,
) -> Iterator[Several]:
    """As app.py creates it: ``start_engine`` for the studio's own process, ``join`` for ``count`` speech processes."""
    settings = settings.model_copy(update={"page": page, "port": 0})
    public = PublicPort(settings)
    app = create_app(settings, start_engine)
    service = app.state.studio.speech
    patch = pytest.MonkeyPatch()
    patch.setattr("fleet.frontends.speech_processes.speech_process_count", lambda *_: count)
    processes = SpeechProcesses(settings, engine_config(settings), service, join, lambda line: None)
    config = config_of(app, settings)
    config.timeout_graceful_shutdown = 2
    server = StudioServer(config, public, threading.Event(), processes)
    port = public.first[0].getsockname()[1]
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    studio = Several(f"http://127.0.0.1:{port}", service, processes, server)
    try:
        service.host.wait(120)
        studio.ready(count)
        yield studio
    finally:
        server.should_exit = True
        thread.join(60)
        patch.undo()
        assert not thread.is_alive()
