"""A real uvicorn on a free loopback port, serving the real app, for tests that need real connections."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import socket
import ssl
import tempfile
import threading
import types
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn.server
from fastapi import FastAPI

from launch.startup import create_app
from studio.api.text_socket import SocketConnection
from studio.engine_host import StartEngine
from studio.errors import SettingsError
from studio.library.disk_reserve import RESERVED
from studio.library.private_files import FILE_MODE, make_private_folder
from studio.library.store import Store
from studio.public_port import PublicPort
from studio.server import StudioServer, config_of
from studio.settings import Settings
from tests import quick_disk, quick_hearing, quick_routes
from tests.waiting import wait_until

quick_disk.hasten()
quick_hearing.hasten()
quick_routes.hasten()


def _sleep_briefly(seconds: float) -> Coroutine[Any, Any, None]:
    return asyncio.sleep(seconds / 20)


# A stopping uvicorn checks only every 0.1 s whether its connections are closed: most of a short test's time.
vars(uvicorn.server)["asyncio"] = types.SimpleNamespace(**vars(asyncio) | {"sleep": _sleep_briefly})

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Spares each client loading root certificates, as these servers use plain HTTP."""


@dataclass(frozen=True)
class Served:
    url: str
    app: FastAPI
    loop: asyncio.AbstractEventLoop | None = None
    """The server's event loop, in its own thread; None for a server in another process."""

    def client(self, **options: object) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60, verify=NO_TLS, **options)  # type: ignore[arg-type]

    def load(self) -> dict[str, int]:
        """The engine's counters, as reported by the health check."""
        with self.client() as client:
            return client.get("/health").json()["load"]

    def until(self, **wanted: int) -> None:
        """Wait until the engine's counters have these values; fails after a minute."""
        with self.client() as client:
            wait_until(lambda load: load | wanted == load, lambda: client.get("/health").json()["load"])

    def until_left(self, **options: object) -> None:
        """Wait until no request is running: then all rows are free, and all callers' shares released.

        The engine's counters change a moment earlier. ``options`` are the client's. Fails after a minute.
        """
        with self.client(**options) as client:
            wait_until(lambda open_requests: not open_requests, lambda: client.get("/v1/queue").json()["requests"])

    def hang_up(self, path: str, body: dict[str, object], read: int = 0, **wanted: int) -> None:
        """Post a request on a bare socket and break the connection.

        Waits until ``read`` bytes of the response are read and the engine's counters are as wanted.
        """
        payload = json.dumps(body).encode()
        host, port = self.url.removeprefix("http://").split(":")
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(payload)}\r\n\r\n"
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(head.encode() + payload)
            while read > 0:
                piece = connection.recv(4096)
                assert piece, "the answer ended before so many bytes"
                read -= len(piece)
            self.until(**wanted)


@functools.cache
def _empty_library() -> bytes:
    """A library.db as created by a first start, cached because its migrations take half the time of a start."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder, "home"))
        store.close()
        return store.path.read_bytes()


def prepared(home: Path) -> Path:
    """The folder, created with an empty library unless it exists already."""
    if not home.exists():
        make_private_folder(home)
        (home / "library.db").touch(FILE_MODE)
        (home / "library.db").write_bytes(_empty_library())
        if hasattr(os, "posix_fallocate"):  # the same size, without writing two megabytes for each studio
            (home / "reserve").touch(FILE_MODE)
            with open(home / "reserve", "wb") as file:
                os.posix_fallocate(file.fileno(), 0, RESERVED)
    return home


@contextlib.contextmanager
def serve(
    settings: Settings, start_engine: StartEngine, wait: bool = True, grace: int = 2, page: bool = False, port: int = 0
) -> Iterator[Served]:
    """Serve the studio, by default without its page; ``wait`` until the engine is ready.

    Uses ``port`` if it is still free, else any free port.
    """
    prepared(Path(settings.home))
    app = create_app(settings.model_copy(update={"page": page}), start_engine)
    here = settings.model_copy(update={"host": "127.0.0.1", "port": port})
    try:
        public = PublicPort(here)
    except SettingsError:
        public = PublicPort(here.model_copy(update={"port": 0}))
    (listener,) = public.first
    started = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []
    stopped = asyncio.Event()

    class Server(StudioServer):
        async def startup(self, sockets: object = None) -> None:
            loops.append(asyncio.get_running_loop())
            await super().startup()

        async def main_loop(self) -> None:
            """Like uvicorn's main loop, which checks only every 0.1 s whether to stop."""
            seconds = 0
            while not await self.on_tick(10 * seconds):  # every tenth tick updates the date
                seconds += 1
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stopped.wait(), 1)

    config = config_of(app, here.model_copy(update={"log_level": "critical"}), ws=SocketConnection)
    config.timeout_graceful_shutdown = grace
    server = Server(config, public, started)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert started.wait(30)
    try:
        if wait:
            app.state.studio.speech.host.wait(120)
        yield Served(f"http://127.0.0.1:{listener.getsockname()[1]}", app, loops[0])
    finally:
        server.should_exit = True
        with contextlib.suppress(RuntimeError):  # it has already ended
            loops[0].call_soon_threadsafe(stopped.set)
        thread.join(30)
        public.close()
        assert not thread.is_alive()
