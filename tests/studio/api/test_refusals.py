"""Careless or hostile requests: refused in the envelope, naming the field, without calling the engine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import select
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.requests import Request
from starlette.types import Message

from studio.api.body import MAX_BODY, read_body, release
from studio.api.error_responses import ApiError
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.server import Served
from tests.studio.sounds import data_url, tone, wav
from tests.waiting import wait_until

SPEECH = "/v1/audio/speech"
Steer = Callable[..., Steered]
SCOPE: dict[str, Any] = {"type": "http", "method": "POST", "headers": [], "state": {"caller": "somebody"}}


BAD_BODIES: dict[str, tuple[object, int, str | None]] = {
    "no input": ({}, 400, "input"),
    "blank input": ({"input": " \n\t"}, 400, "input"),
    "input of another type": ({"input": 5}, 400, "input"),
    "input too long": ({"input": "a" * 16_385}, 400, "input"),
    "a NUL": ({"input": "a\0b"}, 400, "input"),
    "unknown voice": ({"input": "a", "voice": "nobody"}, 400, "voice"),
    "a voice that is a path": ({"input": "a", "voice": "../../etc/passwd"}, 400, "voice"),
    "a voice of another type": ({"input": "a", "voice": 3}, 400, "voice"),
    "a model of another type": ({"input": "a", "model": 3}, 400, "model"),
    "unknown format": ({"input": "a", "response_format": "midi"}, 400, "response_format"),
    "a rate that opus has not": ({"input": "a", "response_format": "opus", "sample_rate": 44_100}, 400, "sample_rate"),
    "a rate that nothing has": ({"input": "a", "sample_rate": 12_345}, 400, "sample_rate"),
    "a stream format": ({"input": "a", "stream_format": "ogg"}, 400, "stream_format"),
    "instructions too long": ({"input": "a", "instructions": "a" * 4097}, 400, "instructions"),
    "too fast": ({"input": "a", "speed": 4.1}, 400, "speed"),
    "too slow": ({"input": "a", "speed": 0.2}, 400, "speed"),
    "a pause without end": ({"input": "a [pause:99s] b"}, 400, "input"),
    "nothing but pauses": ({"input": "[pause:1s] [pause:300ms]"}, 400, "input"),
    "chunk_length": ({"input": "a", "chunk_length": 50}, 400, "chunk_length"),
    "a boolean for a number": ({"input": "a", "temperature": True}, 400, "temperature"),
    "temperature": ({"input": "a", "temperature": 2.1}, 400, "temperature"),
    "top_p": ({"input": "a", "top_p": -0.1}, 400, "top_p"),
    "top_k": ({"input": "a", "top_k": 0}, 400, "top_k"),
    "a seed below zero": ({"input": "a", "seed": -1}, 400, "seed"),
    "a huge seed": ({"input": "a", "seed": 2**63}, 400, "seed"),
    "max_new_tokens": ({"input": "a", "max_new_tokens": 0}, 400, "max_new_tokens"),
    "a clip without words": ({"input": "a", "ref_audio": data_url(wav(tone(2)))}, 400, "ref_text"),
    "a clip with blank words": ({"input": "a", "ref_audio": data_url(wav(tone(2))), "ref_text": " "}, 400, "ref_text"),
    "words without a clip": ({"input": "a", "ref_text": "b"}, 400, "ref_audio"),
    "a clip by file name": ({"input": "a", "ref_audio": "file:///etc/passwd", "ref_text": "b"}, 400, "ref_audio"),
    "a clip that is no base64": (
        {"input": "a", "ref_audio": "data:audio/wav;base64,§", "ref_text": "b"},
        400,
        "ref_audio",
    ),
    "a clip that is no audio": ({"input": "a", "ref_audio": data_url(b"abc"), "ref_text": "b"}, 400, "ref_audio"),
    "an unsupported field": ({"input": "a", "word_timestamps": True}, 400, "word_timestamps"),
    "a huge cast": ({"input": "a", "cast": {f"N{number}": "anna" for number in range(1001)}}, 400, "cast"),
    "a huge object": ({"input": "a", "unknown": {str(number): 1 for number in range(1001)}}, 400, "unknown"),
    "an array": ([], 400, None),
    "a string": ("a", 400, None),
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_invalid_field_is_refused_by_name_without_calling_the_engine(untouched: Steered, name: str) -> None:
    body, status, param = BAD_BODIES[name]
    served, engine = untouched
    with served.client() as client:
        answer = client.post(SPEECH, json=body)
    assert_envelope(answer, status, param)
    assert not engine.utterances


BAD_JSON = {
    "empty": b"",
    "malformed": b'{"input": "a"',
    "not a number": b'{"input": "a", "temperature": NaN}',
    "infinity": b'{"input": "a", "temperature": Infinity}',
    "deeply nested": b'{"input": "a", "x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "not UTF-8": b'{"input": "\xff\xfe"}',
    "half a surrogate pair": b'{"input": "a \\ud800 b"}',
    "half a pair before a huge object": json.dumps({"\ud800": {str(number): 1 for number in range(1001)}}).encode(),
    "a number without end": b'{"input": "a", "seed": ' + b"9" * 5000 + b"}",
    "1e999": b'{"input": "a", "temperature": 1e999}',
}


@pytest.mark.parametrize("name", BAD_JSON)
def test_invalid_json_bytes_are_refused(untouched: Steered, name: str) -> None:
    served, engine = untouched
    with served.client() as client:
        answer = client.post(SPEECH, content=BAD_JSON[name], headers={"Content-Type": "application/json"})
    assert_envelope(answer, 400)
    assert not engine.utterances


def test_wrong_addresses_methods_types_and_sizes_return_the_error_envelope(untouched: Steered) -> None:
    served, _ = untouched
    with served.client() as client:
        assert_envelope(client.get("/v1/"), 404)
        assert_envelope(client.post("/v1/nothing/here"), 404)
        assert_envelope(client.get("/v1/takes/req_none"), 404)
        assert_envelope(client.post(SPEECH, content=b"input=a"), 415)
        assert_envelope(client.post(SPEECH, data={"input": "a"}), 415)
        assert_envelope(client.post(SPEECH, json={"input": "a" * 17_000_000}), 413)
        wrong = client.get(SPEECH)
        assert_envelope(wrong, 405)
        assert wrong.headers["allow"] == "POST"
        assert client.put("/v1/models/some/model").headers["allow"] == "GET"


def test_invalid_query_and_path_values_are_refused_by_name(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        words, project = list(map(str, range(1100))), client.post("/v1/projects", json={"input": "Hi."}).json()["id"]
        assert_envelope(client.get("/v1/voices", params={"q": " ".join(words)}), 400, "q")
        assert client.get("/v1/voices", params={"q": "anna " * 1100}).json()["data"][0]["slug"] == "anna"
        assert_envelope(client.get("/v1/voices", params={"tag": words}), 400, "tag")
        assert client.get("/v1/voices", params={"tag": ["a"] * 1100}).json()["data"] == []
        assert_envelope(client.get(f"/v1/projects/{project}/parts", params={"offset": 2**63}), 400, "offset")
        voice = client.get("/v1/voices/anna").json()["id"]
        tag = {"If-Match": f'"{voice}.{"9" * 5000}.1"'}
        assert_envelope(client.patch("/v1/voices/anna", json={}, headers=tag), 400, "If-Match")
        assert_envelope(client.delete("/v1/voices/anna", headers=tag), 400, "If-Match")


@pytest.mark.parametrize("charset", ["undefined", "punycode", "utf-16", "none"])
def test_form_in_an_unsupported_charset_is_refused_before_decoding(untouched: Steered, charset: str) -> None:
    """Some charsets take quadratic time to decode, and fields are decoded in the event loop."""
    served, _ = untouched
    body = b'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\n' + b"a" * 60_000 + b"\r\n--x--\r\n"
    with served.client() as client:
        for encoding, status in ((charset, 415), ("utf-8", 400)):
            form = {"Content-Type": f"multipart/form-data; boundary=x; charset={encoding}"}
            assert_envelope(client.post("/v1/audio/voices", content=body, headers=form), status)


@contextlib.contextmanager
def posting(served: Served, length: str) -> Iterator[socket.socket]:
    """A connection over which a request for speech has been sent, up to its body; ``length``: the header about it."""
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        lines = f"POST {SPEECH} HTTP/1.1", "Host: localhost", "Content-Type: application/json", length, "", ""
        connection.sendall("\r\n".join(lines).encode())
        yield connection


def test_body_without_a_length_is_refused_at_the_limit(untouched: Steered) -> None:
    served, _ = untouched
    with posting(served, "Transfer-Encoding: chunked") as connection:
        for data in (b'{"input": "', b"a" * MAX_BODY):  # and no end
            connection.sendall(b"%x\r\n%s\r\n" % (len(data), data))
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_large_bodies_of_one_caller_are_bounded_together(steered: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.api.body.MAX_HELD", 4 * 2**20)
    served, _ = steered()
    with contextlib.ExitStack() as open_ones, served.client() as client:
        connections = [open_ones.enter_context(posting(served, "Content-Length: 2000000")) for _ in range(2)]
        for connection in connections:
            connection.sendall(b'{"input": "' + b"a" * 1_500_000)
        [refused] = select.select(connections, [], [], 60)[0]
        assert refused.recv(4096).startswith(b"HTTP/1.1 429 ")
        assert client.post(SPEECH, json={"input": "Hi."}).status_code == 200, "small ones are not bounded"
        for connection in connections:
            connection.close()
        large = {"input": "a" * 1_500_000}
        wait_until(lambda status: status != 429, lambda: client.post(SPEECH, json=large).status_code)


def test_incomplete_body_times_out(steered: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.api.body.BODY_SECONDS", 0.2)
    served, _ = steered()
    with posting(served, "Content-Length: 50") as connection:
        connection.sendall(b'{"input": ')
        assert connection.recv(4096).startswith(b"HTTP/1.1 408 ")


class ClockedLoop(asyncio.SelectorEventLoop):
    """Its time passes only as told."""

    now = 0.0

    def time(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("seconds", "size", "arrives"),
    [(50, 820_000, True), (61, 2**20, False), (30, 1, False), (50, 90_000, False)],
    ids=["steadily", "with a pause", "byte by byte", "below the rate"],
)
def test_body_may_be_slow_while_it_makes_progress(seconds: float, size: int, arrives: bool) -> None:
    async def read() -> int:
        pieces = iter([True] * 17 + [False])

        async def receive() -> Message:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, ClockedLoop)
            loop.now += seconds
            for _ in range(2):  # an expired timer runs first
                await asyncio.sleep(0)
            return {"type": "http.request", "body": b"a" * size, "more_body": next(pieces)}

        try:
            return len(await read_body(Request(SCOPE, receive), 20 * 2**20))
        finally:
            release(SCOPE["state"])

    with asyncio.Runner(loop_factory=ClockedLoop) as runner:
        if arrives:
            assert runner.run(read()) == 18 * size
        else:
            with pytest.raises(ApiError, match="smaller file") as refused:
                runner.run(read())
            assert refused.value.status == 408
