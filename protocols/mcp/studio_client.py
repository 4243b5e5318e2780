"""The HTTP API as the tools call it: of a running studio, or of the app in this process with a request's own rights."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import httpx
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from studio.supervisor import end_tasks

MAX_FILE = 32 * 2**20
"""Bytes of the largest file that the API accepts, a document."""
TICK_SECONDS = 1.0
TIMEOUT = httpx.Timeout(None, connect=10.0)
"""Speech may wait in a queue for minutes; cancelling a call closes its connection, which frees the row."""


@dataclass(frozen=True, slots=True)
class StudioClient:
    """Calls the API; its refusals become errors of the tool, in the API's words."""

    client: httpx.AsyncClient = field(repr=False)
    address: str
    """The beginning of the links in answers."""
    is_local: bool
    """Whether the caller is this machine's user, so that tools may read and write its files."""
    ready: asyncio.Task[str] | None = None
    """Ends when the studio has started, with its problem or blank."""
    context: Context | None = None
    """The call's."""
    until_left: Callable[[Coroutine[Any, Any, httpx.Response]], Awaitable[httpx.Response]] | None = None
    """Ends work whose client hangs up, because it cannot fetch the answer any more."""

    async def get(self, path: str, **query: Any) -> dict[str, Any]:
        return await self.call("GET", path, params={name: v for name, v in query.items() if v is not None})

    async def call(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        """``request``: json, or data and files, as httpx takes them."""
        answer: dict[str, Any] = (await self.send(method, path, **request)).json()
        return answer

    async def send(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Raises ToolError for a refusal and for a studio that does not answer."""
        if self.ready is not None and (problem := await asyncio.shield(self.ready)):
            raise ToolError(problem)
        try:
            calling = self.client.request(method, path, **request)
            answer = await (self.until_left(calling) if self.until_left is not None else calling)
        except httpx.HTTPError as error:
            raise ToolError(f"the studio at {self.address} does not answer: {error or type(error).__name__}") from error
        if answer.is_error:
            raise ToolError(_message(answer))
        return answer

    @asynccontextmanager
    async def reporting(self, message: str) -> AsyncIterator[None]:
        """Report the seconds that work takes, if the client asked for progress; this also keeps its time limit away."""
        assert self.context is not None
        report = self.context.report_progress

        async def tick() -> None:
            for seconds in count(0.0, TICK_SECONDS):
                await report(seconds, None, message)
                await asyncio.sleep(TICK_SECONDS)

        ticking = asyncio.create_task(tick())
        try:
            yield
        finally:
            await end_tasks(ticking)

    async def file_of(self, path: str | None, encoded: str | None, field_name: str) -> bytes:
        """The contents of a file, given by its path or in base64. Raises ToolError."""
        if (path is None) == (encoded is None):
            raise ToolError(f"send either path or {field_name}")
        if encoded is not None:
            try:
                return base64.b64decode(encoded.partition("base64,")[2] or encoded, validate=True)
            except ValueError as error:
                raise ToolError(f"{field_name} must be base64: {error}") from error
        assert path is not None
        local = self.local_path(path, field_name)
        try:
            data = await anyio.to_thread.run_sync(_read, Path(local), MAX_FILE + 1)
        except (OSError, ValueError) as error:
            raise ToolError(f"{path[:200]} cannot be read: {_reason(error)}") from error
        if len(data) > MAX_FILE:
            raise ToolError(f"{path} has more than {MAX_FILE} bytes, the most that are allowed")
        return data

    async def new_file(self, path: str) -> anyio.Path:
        """A file to be written later. Raises ToolError if it exists already."""
        local = self.local_path(path, "the link")
        if await local.exists():
            raise ToolError(f"{path} exists already; choose another name")
        return local

    async def save(self, file: anyio.Path, data: bytes) -> str:
        """Write a new file; returns its path. Raises ToolError."""
        try:
            async with await file.open("xb") as output:
                try:
                    await output.write(data)
                    await output.flush()
                except OSError:
                    await file.unlink()
                    raise
        except (OSError, ValueError) as error:
            raise ToolError(f"{str(file)[:200]} cannot be written: {_reason(error)}") from error
        return str(file)

    def local_path(self, path: str, instead: str) -> anyio.Path:
        """Raises ToolError unless the path is one of the caller's own machine."""
        if not self.is_local:
            raise ToolError(f"a path would be one of the server's disk, which is not used over HTTP: use {instead}")
        try:
            return anyio.Path(Path(path).expanduser())
        except RuntimeError as error:
            raise ToolError(f"{path[:200]} begins with an unknown user's name") from error


def _read(path: Path, most: int) -> bytes:
    from engine import open_regular  # only for files, as it takes as long as half of a start

    with open_regular(path) as file:
        return file.read(most)


def _reason(error: OSError | ValueError) -> str:
    """Why a file cannot be used; a ValueError is a name that no file can have."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _message(answer: httpx.Response) -> str:
    """The API's own words."""
    try:
        error = answer.json()["error"]
        message, param = str(error["message"]), error.get("param")
    except (ValueError, KeyError, TypeError):
        return f"the studio answered {answer.status_code}: {answer.text[:200]}"
    return f"{message} ({param})" if param and param not in message else message
