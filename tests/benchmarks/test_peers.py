"""Comparison of speech servers: our own, and one that supports only OpenAI's HTTP API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from benchmarks.peers import arguments, main
from benchmarks.serving.listener import Address
from tests.studio.server import Served

FEW = ["--streams", "2", "--frames", "8", "--repeat", "1"]


@asynccontextmanager
async def plain_server(seconds: float = 0.5, sent: float = 1.0) -> AsyncIterator[str]:
    """Sends the given share of its Content-Length, at OpenAI's sample rate; supports no clips and no uploads."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        request = json.loads(body) if b"/audio/speech" in head else {}
        if head.startswith(b"POST /v1/audio/speech") and request["voice"] == "alloy" and "ref_audio" not in request:
            assert "max_new_tokens" not in request
            sound = bytes(round(seconds * 24_000) * 2)
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(sound) + sound[: round(sent * len(sound))]
            )
        else:
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 7\r\nConnection: close\r\n\r\nunknown")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_events_do_not_count_as_audio(studio: Served) -> None:
    listener = await Address.of(studio.url).listen({"input": "Hello.", "stream_format": "sse"})
    assert not listener.pieces and '"stream_format": "audio"' in listener.error


async def test_both_servers_are_measured_the_same_way(studio: Served, tmp_path: Path) -> None:
    out = tmp_path / "peers.json"
    async with plain_server() as other:
        ours, theirs = '{"voice": "random"}', '{"voice": "alloy", "max_new_tokens": null}'
        results = await main(
            arguments([studio.url, f"{other}/v1", "--fields", ours, "--fields", theirs, "--out", str(out), *FEW])
        )
    assert json.loads(out.read_text()) == results
    mine, another = results.values()
    assert [(row["take"], row["failed"]) for row in mine["alone"]] == [
        ("short", 0), ("long", 0), ("clip of 10 s, new", 0), ("clip of 10 s, known", 0), ("uploaded voice", 0),
    ]  # fmt: skip
    assert [(row["voice"], row["failed"]) for row in mine["crowds"]] == [("-", 0), ("benchmarks-peers", 0)]
    assert [row["failed"] for row in another["alone"]] == [0, 0, 1, 1]
    assert "unknown" in another["alone"][2]["why_failed"] and "400" in another["upload_refused"]
    assert another["alone"][0]["seconds"] == 0.5
    assert [(row["failed"], row["shortest_s"], row["longest_s"]) for row in another["crowds"]] == [(0, 0.5, 0.5)]


async def test_results_so_far_are_saved_if_the_program_is_cancelled(tmp_path: Path) -> None:
    out = tmp_path / "peers.json"
    fields = '{"voice": "alloy", "max_new_tokens": null}'
    async with plain_server() as other:
        measuring = asyncio.create_task(main(arguments([other, "--fields", fields, "--out", str(out), *FEW])))
        while not out.exists() or "alone" not in json.loads(out.read_text())[other]:
            assert not measuring.done()
            await asyncio.sleep(0.01)
        measuring.cancel()
        with pytest.raises(asyncio.CancelledError):
            await measuring
    figures = json.loads(out.read_text())[other]
    assert (figures["alone"][0]["take"], figures["alone"][0]["failed"]) == ("short", 0)


async def test_interrupted_answer_does_not_count_as_a_take() -> None:
    async with plain_server(sent=0.5) as other:
        listener = await Address.of(other).listen({"input": "Hello.", "voice": "alloy"})
    assert listener.error.startswith("ended early after 0.25 s")
    gone = await main(arguments([other, *FEW]))
    assert "no connection" in gone[other]["why_failed"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["127.0.0.1:7860"], "not a server's URL"),
        (["http://"], "not a server's URL"),
        (["http://127.0.0.1:1", "--fields", "voice"], "not JSON"),
        (["http://127.0.0.1:1", "--fields", "[]"], "not a JSON object"),
        (["http://127.0.0.1:1", "--fields", "{}", "--fields", "{}"], "more --fields than URLs"),
    ],
)
def test_invalid_arguments_are_refused(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments(words)
    assert message in capsys.readouterr().err
