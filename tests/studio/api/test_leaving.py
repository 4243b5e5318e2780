"""Callers who disconnect at the worst moment: their work is cancelled and their place released."""

from __future__ import annotations

import asyncio
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, cast

import pytest
from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket
from websockets.sync.client import connect

import studio.server
from longform.render import CHUNK_BYTES, Concatenation
from studio.api.sending import until_hangup
from studio.public_port import PublicPort
from studio.server import StudioServer, config_of
from studio.settings import Settings
from studio.speech.delivery import Speech
from tests.longform.test_projects import create_project, until
from tests.studio.conftest import Steered
from tests.waiting import wait_until_true


class Held(Speech):
    """A speech whose resources are held until it is closed."""

    is_made = is_closed = False

    def __init__(self) -> None:
        """Needs nothing."""

    async def aclose(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("ticks", range(6))
@pytest.mark.parametrize("how", ["cancelled", "hung up"])
async def test_speech_ready_as_its_caller_disconnects_is_closed_or_delivered(how: str, ticks: int) -> None:
    held, is_ready, has_left = Held(), asyncio.Event(), asyncio.Event()

    async def work() -> Speech:
        await is_ready.wait()
        held.is_made = True
        return held

    async def receive() -> Message:
        await has_left.wait()
        return {"type": "http.disconnect"}

    begun = asyncio.create_task(until_hangup(Request({"type": "http"}, receive), work()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    is_ready.set()
    for _ in range(ticks):
        await asyncio.sleep(0)
    if how == "cancelled":
        begun.cancel()
    else:
        has_left.set()
    try:
        await begun
    except (asyncio.CancelledError, ClientDisconnect):
        assert held.is_closed == held.is_made, "it was there and nobody closed it"
    else:
        assert not held.is_closed


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[BinaryIO]]:
    """Make projects' audio last as long as the test; the temporary files opened during it."""
    is_over, opened, whole = threading.Event(), [], tempfile.TemporaryFile

    def read(sound: Concatenation) -> Iterator[bytes]:
        while not is_over.is_set():
            yield bytes(CHUNK_BYTES)

    def watched(dir: Path) -> BinaryIO:
        opened.append(cast(BinaryIO, whole(dir=dir)))
        return opened[-1]

    monkeypatch.setattr(Concatenation, "read", read)
    monkeypatch.setattr(tempfile, "TemporaryFile", watched)
    yield opened
    is_over.set()


def test_audiobook_exports_leave_room_for_speech_and_stop_on_disconnect(
    steered: Callable[..., Steered], endless: list[BinaryIO]
) -> None:
    served, _ = steered()
    project = create_project(served, input="Hi.", start=True)
    until(served, project, "done")
    address = served.url.removeprefix("http://")
    host, port = address.split(":")
    request = f"GET /v1/projects/{project['id']}/audio?format=m4b HTTP/1.1\r\nHost: {address}\r\n\r\n".encode()
    callers = [socket.create_connection((host, int(port))) for _ in range(45)]  # more than there are worker threads
    for caller in callers:
        caller.sendall(request)
    wait_until_true(lambda: len(endless) == 2)
    with served.client() as client:
        speech = {"input": "Two words", "response_format": "wav"}
        assert client.post("/v1/audio/speech", json=speech).status_code == 200
    assert len(endless) == 2 and not any(book.closed for book in endless)
    for caller in callers:
        caller.close()
    wait_until_true(lambda: all(book.closed for book in endless))
    assert len(endless) <= 4, "those who waited for the first two have left too"


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int, float], tuple[str, int]]]:
    """Starts a studio's server for a number of connections, each with so many seconds for its first request."""
    with ExitStack() as stack:

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            is_socket = scope["type"] == "websocket"
            await (
                WebSocket(scope, receive, send).accept()
                if is_socket
                else PlainTextResponse("Hello." if scope["path"] == "/" else bytes(2**24))(scope, receive, send)
            )

        def listen(most: int, seconds: float) -> tuple[str, int]:
            monkeypatch.setattr(studio.server, "most_connections", lambda: most)
            monkeypatch.setattr(studio.server, "HEAD_SECONDS", seconds)
            monkeypatch.setattr(studio.server, "SEND_SECONDS", seconds)
            settings = Settings(host="127.0.0.1", port=0)
            port = PublicPort(settings)
            serving = threading.Event()
            server = StudioServer(config_of(answer, settings, lifespan="off"), port, serving)
            thread = threading.Thread(target=server.run, daemon=True)
            stack.callback(port.close)
            stack.callback(thread.join, 30)
            stack.callback(setattr, server, "should_exit", True)
            thread.start()
            assert serving.wait(30)
            return port.first[0].getsockname()[:2]

        yield listen


def test_connections_that_never_send_make_room_for_others(listening: Callable[[int, float], tuple[str, int]]) -> None:
    address = listening(3, 60.0)
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(address)) for _ in range(3)]
        with socket.create_connection(address) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.recv(12) == b"HTTP/1.1 200"
            silent[0].settimeout(30)
            assert not silent[0].recv(1)
    with connect(f"ws://{address[0]}:{address[1]}/") as client:
        assert not client.protocol.extensions, "compressed messages could unfold to gigabytes"


def test_a_connection_without_a_request_ends_in_time(listening: Callable[[int, float], tuple[str, int]]) -> None:
    address = listening(3, 0.1)
    for answered in (
        b"",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
    ):
        with socket.create_connection(address, 30) as client:
            client.sendall(answered)
            while answered and not client.recv(4096).endswith(b"Hello."):
                pass
            client.sendall(b"G")  # of the next head, or of the body of what has been answered
            assert not client.recv(1)


def test_an_answer_in_one_piece_that_nobody_reads_is_dropped(
    listening: Callable[[int, float], tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, lost = threading.Event(), studio.server.Connection.connection_lost

    def noted(connection: studio.server.Connection, error: Exception | None) -> None:
        lost(connection, error)
        ended.set()

    monkeypatch.setattr(studio.server.Connection, "connection_lost", noted)
    with socket.create_connection(listening(3, 0.2), 30) as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.1 200"
        assert ended.wait(30)


@pytest.mark.posix
def test_tiny_pieces_are_read_in_short_turns(
    listening: Callable[[int, float], tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[int] = []
    receive = studio.server.Connection.data_received

    def record(connection: studio.server.Connection, data: bytes) -> None:
        turns.append(len(data))
        receive(connection, data)

    monkeypatch.setattr(studio.server.Connection, "data_received", record)
    with socket.create_connection(listening(3, 60.0), 30) as client:

        def turns_of(chunks: bytes) -> list[int]:
            turns.clear()
            head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            client.sendall(head + chunks + b"0\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n")
            answers = b""
            while answers.count(b"200 OK") < 2 or not answers.endswith(b"Hello."):
                answers += client.recv(4096)
                assert b" 400 " not in answers
            return [*turns]

        first, *others = turns_of(b"1\r\n \r\n" * 6000)
        assert first <= 8192 and max(others) <= 512
        assert 512 < max(turns_of(b"100000\r\n" + bytes(2**20) + b"\r\n")) <= 8192
