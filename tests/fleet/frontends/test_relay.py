"""A speech process passes on requests and responses unchanged."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from fleet.frontends.relay import CALLER, ForwardedClient, Relay
from studio.server import QuietServer, config_of
from studio.settings import Settings

SOUND = "/own"


class Studio:
    """An app that returns the requests that it receives, slowly below /slow."""

    def __init__(self) -> None:
        self.may_continue, self.disconnected = asyncio.Event(), asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        if scope["path"] == "/slow":
            await self._slowly(receive, send)
            return
        request = {
            "method": scope["method"],
            "target": f"{scope['raw_path'].decode()}?{scope['query_string'].decode()}",
            "scheme": scope["scheme"],
            "client": scope["client"],
            "headers": [[name.decode(), value.decode("latin-1")] for name, value in scope["headers"]],
            "body": body.decode("latin-1"),
        }
        headers = [(b"x-own", b"1"), (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"), (b"connection", b"x-own")]
        await send({"type": "http.response.start", "status": 207, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(request).encode()})

    async def _slowly(self, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
        continuing, leaving = asyncio.ensure_future(self.may_continue.wait()), asyncio.ensure_future(receive())
        await asyncio.wait({continuing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if leaving.done():
            assert leaving.result()["type"] == "http.disconnect"
            self.disconnected.set()
            return
        await send({"type": "http.response.body", "body": b"data: 2\n\n"})


async def own(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"own"})


@contextlib.asynccontextmanager
async def serving(app: object, at: socket.socket, around: object = None) -> AsyncIterator[None]:
    config = config_of(app, Settings(), lifespan="off")  # type: ignore[arg-type]
    config.timeout_graceful_shutdown = 1
    server = QuietServer(config)
    running = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.001)
    await server.listen([at], around)  # type: ignore[arg-type]
    try:
        yield
    finally:
        server.should_exit = True
        await running


@contextlib.asynccontextmanager
async def relayed(tmp_path: Path, studio: Studio) -> AsyncIterator[httpx.AsyncClient]:
    path = str(tmp_path / "http")
    with socket.socket(socket.AF_UNIX) as private, socket.socket() as public:
        private.bind(path)
        public.bind(("127.0.0.1", 0))
        relay = Relay(own, lambda scope: scope["path"] == SOUND, path)
        async with serving(studio, private, ForwardedClient), serving(relay, public):
            address = f"http://127.0.0.1:{public.getsockname()[1]}"
            async with httpx.AsyncClient(base_url=address, timeout=30) as client:
                yield client
        await relay.aclose()


async def test_request_and_response_are_relayed_unchanged(tmp_path: Path) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    async with relayed(tmp_path, Studio()) as client:
        sent = {b"x-mine": "schön".encode("latin-1"), b"connection": b"close, x-gone", b"x-gone": b"1"}
        answer = await client.put("/a%2Fb/%C3%A9?q=%20+&q=2", headers=sent, content=body())
        plain = await client.get("/")
        assert (await client.get(SOUND)).text == "own"
        peer = client.base_url.host
    request = answer.json()
    headers = dict(request["headers"])
    assert (request["method"], request["target"], request["body"]) == ("PUT", "/a%2Fb/%C3%A9?q=%20+&q=2", "one two")
    assert request["client"][0] == peer and request["scheme"] == "http"
    assert headers["x-mine"] == "schön" and headers["host"].startswith("127.0.0.1:")
    assert not {"x-gone", CALLER.decode(), "connection"} & headers.keys()
    assert plain.json()["method"] == "GET" and "transfer-encoding" not in dict(plain.json()["headers"])
    assert answer.status_code == 207 and answer.headers.get_list("set-cookie") == ["a=1", "b=2"]
    assert "x-own" not in answer.headers, "what belongs to a connection ends with it"
    assert len(answer.headers.get_list("date")) == 1


@pytest.mark.parametrize("forged", [{CALLER.decode(): '["https", ["6.6.6.6", 1]]'}, {"X-Studio-Caller": "nonsense"}])
async def test_callers_cannot_forge_their_address(tmp_path: Path, forged: dict[str, str]) -> None:
    async with relayed(tmp_path, Studio()) as client:
        request = (await client.get("/", headers=forged)).json()
    assert request["client"][0] == "127.0.0.1" and request["scheme"] == "http"


async def test_local_proxy_may_set_the_callers_address(tmp_path: Path) -> None:
    """The same applies as in a studio of one process."""
    async with relayed(tmp_path, Studio()) as client:
        headers = {"X-Forwarded-For": "9.8.7.6", "X-Forwarded-Proto": "https"}
        request = (await client.get("/", headers=headers)).json()
    assert request["client"][0] == "9.8.7.6" and request["scheme"] == "https"


async def test_answer_is_passed_on_while_it_is_generated(tmp_path: Path) -> None:
    studio = Studio()
    async with relayed(tmp_path, studio) as client, client.stream("GET", "/slow") as answer:
        pieces = answer.aiter_raw()
        assert await anext(pieces) == b"data: 1\n\n"
        studio.may_continue.set()
        assert await anext(pieces) == b"data: 2\n\n"


async def test_disconnecting_ends_the_request(tmp_path: Path) -> None:
    studio = Studio()
    async with relayed(tmp_path, studio) as client:
        async with client.stream("GET", "/slow") as answer:
            await anext(answer.aiter_raw())
        await asyncio.wait_for(studio.disconnected.wait(), 30)


async def test_a_relay_without_its_studio_answers_503(tmp_path: Path) -> None:
    with socket.socket() as public:
        public.bind(("127.0.0.1", 0))
        relay = Relay(own, lambda scope: scope["path"] == SOUND, str(tmp_path / "gone"))
        address = f"http://127.0.0.1:{public.getsockname()[1]}"
        async with serving(relay, public), httpx.AsyncClient(base_url=address) as client:
            answer = await client.get("/health")
    assert answer.status_code == 503 and answer.headers["retry-after"] == "2"
    assert answer.json()["error"]["message"].startswith("the studio's own process does not answer")
