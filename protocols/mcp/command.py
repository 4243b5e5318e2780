"""fish-voice-studio mcp: an MCP server over stdio, for a running studio or one that it starts."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import httpx

from studio.errors import SettingsError
from studio.settings import Settings

KEY_VARIABLE = "FISH_VOICE_STUDIO_KEY"
"""Holds the API key: an argument would be visible to every user of the machine."""
MISSING = "MCP needs the package mcp: pip install 'fish-voice-studio[mcp]'"
START_SECONDS = 600.0  # time for a start, which may load 10 GB
STOP_SECONDS = 15.0
WRITE_SECONDS = 1.0
"""Time for the last answer: clients wait for two seconds before they terminate a server."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until standard input ends. Nothing but the protocol is written to standard output."""
    parser = argparse.ArgumentParser("fish-voice-studio mcp", description=__doc__)
    parser.add_argument(
        "--url", help="the studio's address; default: this machine's, which is started if it is not there"
    )
    chosen = parser.parse_args(arguments)
    try:
        client = _client(chosen.url)
    except (SettingsError, ValueError, OSError, httpx.InvalidURL) as error:
        print(f"The MCP server did not start: {error}", file=sys.stderr)
        return 1
    asyncio.run(_serve(client, may_start=chosen.url is None))
    return 0


def _client(url: str | None) -> httpx.AsyncClient:
    """Calls the studio; one on this machine without a proxy, which could not reach it.

    Raises SettingsError, and what httpx raises for proxies and certificates of the environment.
    """
    if find_spec("mcp") is None:
        raise SettingsError(MISSING)
    from protocols.mcp.tools import TIMEOUT

    address = (url or Settings.load().address).rstrip("/")
    if not address.startswith(("http://", "https://")):
        raise SettingsError(f"--url {address!r} must begin with http:// or https://")
    key = os.environ.get(KEY_VARIABLE)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    is_elsewhere = httpx.URL(address).host not in ("localhost", "127.0.0.1", "::1", "0.0.0.0")
    return httpx.AsyncClient(base_url=address, headers=headers, timeout=TIMEOUT, trust_env=is_elsewhere)


async def _serve(client: httpx.AsyncClient, may_start: bool) -> None:
    """Serve until the client closes standard input or a signal comes, even if nobody reads the answers any more."""
    from protocols.mcp.tools import StudioClient, build_server

    ended = asyncio.Event()
    with contextlib.suppress(NotImplementedError):  # on Windows, where these end the process at once
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)

    @contextlib.asynccontextmanager
    async def session(_: object) -> AsyncIterator[Callable[[Any], StudioClient]]:
        """Notice the end of the input, after which the package waits until its last answer is written."""
        try:
            yield partial(StudioClient, client, str(client.base_url).rstrip("/"), True, ready)
        finally:
            ended.set()

    async with client, _LocalStudio(client) if may_start else contextlib.nullcontext() as ready:
        serving = asyncio.create_task(build_server(session).run_stdio_async())
        serving.add_done_callback(lambda _: ended.set())
        await ended.wait()
        await asyncio.wait({serving}, timeout=WRITE_SECONDS)
    if not serving.done():
        os._exit(0)  # its threads read or write, which nothing else can end
    try:
        serving.result()
    except* OSError:
        pass  # the client left without reading its answers


class _LocalStudio:
    """The studio at this machine's address. If none answers, this starts one, also in the middle of a session: a studio
    that another command started ends with that command. A studio started here ends with the context."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._looking = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._starting: asyncio.Task[str] | None = None

    async def __aenter__(self) -> Callable[[], Awaitable[str]]:
        await self._look()
        return self._ready

    async def __aexit__(self, *_: object) -> None:
        if self._starting is not None:
            self._starting.cancel()
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
            except TimeoutError:
                self._process.kill()

    async def _ready(self) -> str:
        """Wait until the studio can be called; its problem, or blank."""
        async with self._looking:
            if self._starting is None or self._starting.done():
                await self._look()
        return "" if self._starting is None else await asyncio.shield(self._starting)

    async def _look(self) -> None:
        """Start a studio unless one answers, or has been started and still runs."""
        if self._process is not None and self._process.returncode is None:
            return
        self._starting = None
        if await _status(self._client, "/health") is not None:
            return
        print(f"No studio answers at {self._client.base_url}: starting one", file=sys.stderr)
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-c", "import sys, launch; sys.exit(launch.main())"),
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)},  # of app.py
        )
        self._starting = asyncio.create_task(_until_ready(self._client, self._process))


async def _until_ready(client: httpx.AsyncClient, process: asyncio.subprocess.Process) -> str:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(START_SECONDS):
            while (status := await _status(client, "/ready")) != httpx.codes.OK:
                if process.returncode is not None and status is None:  # else another studio has its port
                    return "the studio could not start; the log of this server says why"
                await asyncio.sleep(0.2)
            return ""
    return f"the studio did not start within {START_SECONDS:g} s"


async def _status(client: httpx.AsyncClient, path: str) -> int | None:
    """The answer's status: 503 while a model is loaded, 0 from a studio too busy to answer; None without one."""
    try:
        return (await client.get(path, timeout=5)).status_code
    except httpx.ConnectError:
        return None
    except httpx.HTTPError:
        return 0
