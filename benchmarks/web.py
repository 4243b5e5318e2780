"""The web layer alone: first byte and CPU time of requests with an engine that takes no time. python -m benchmarks.web

Also the time to first sound through other services' routes and sockets, compared with our own, in turns; --at URL
--wyoming PORT measures only this, of a running studio.

A stub instead of the engine delivers ready chunks in real time, on the same event loop; server and client are
two processes on one machine. Prints a table for people and one line of JSON last.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from multiprocessing.synchronize import Event
from typing import Any

import httpx
import numpy as np
import ormsgpack
import uvicorn
from websockets.asyncio.client import connect

from engine import AudioChunk, EngineConfig, EngineInfo, EngineStats, Timing, Utterance
from launch.startup import create_app
from studio.settings import Settings

RATE, FRAME, CHUNK = 44_100, 2048, 4
SPEECH = "/v1/audio/speech"
LIVE = "/v1/tts/live"
TEXT_SOCKET = "/v1/audio/speech/stream"
MULTI = "/elevenlabs/v1/text-to-speech/default/multi-stream-input"
TEXT = "Hello, it is good to hear you."
PACKED = "application/msgpack"
COMPARED = 30
"""Requests per route."""
CHUNK_SECONDS = CHUNK * FRAME / RATE


class StubEngine:
    """Returns noise without work: the first chunk at once, then one of four frames every 186 ms."""

    failure = None

    def __init__(self, config: EngineConfig) -> None:
        self.info = EngineInfo("stub", "cpu", "float32", RATE, FRAME, 10, 4096, 1024, 1024, "stub", 0)
        noise = np.random.default_rng(0).uniform(-0.3, 0.3, CHUNK * FRAME).astype(np.float32)
        self._noise = noise
        self._codes = np.random.default_rng(1).integers(0, 1024, (10, CHUNK)).astype(np.int16)

    async def speak(self, utterance: Utterance) -> AsyncGenerator[AudioChunk, None]:
        began = time.perf_counter()
        for number in range(utterance.max_frames // CHUNK):
            if number:
                await asyncio.sleep(max(0.0, began + number * CHUNK_SECONDS - time.perf_counter()))
            timing = Timing(0.0, 0.0, time.perf_counter() - began)
            last = number + 1 == utterance.max_frames // CHUNK
            codes = (self._codes + number) % 1024
            yield AudioChunk(self._noise, codes, number * CHUNK, timing, "stop" if last else None)

    def stats(self) -> EngineStats:
        return EngineStats(0, 0, 0, 0, 0, 0.0)

    def stop(self) -> None:
        pass


def serve(port: int, wyoming: int, ready: Event) -> None:
    """The studio without its page, on the stub."""

    def start(config: EngineConfig, progress: Callable[[str, float], None]) -> StubEngine:
        ready.set()
        return StubEngine(config)

    with tempfile.TemporaryDirectory() as empty:
        address = f"tcp://127.0.0.1:{wyoming}"
        settings = Settings(page=False, voices=empty, home=empty, keep_takes=0, wyoming=address)
        app = create_app(settings, start)  # type: ignore[arg-type]
        uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical")


async def stream(client: httpx.AsyncClient, body: dict[str, object]) -> float:
    """Seconds to the first byte of a request that is read to its end."""
    began = time.perf_counter()
    async with client.stream("POST", SPEECH, json=body) as answer:
        assert answer.status_code == 200
        first = 0.0
        async for _ in answer.aiter_raw():
            first = first or time.perf_counter() - began
    return first


async def first_sound(client: httpx.AsyncClient, path: str, **body: Any) -> float:
    """Seconds to the first byte of a request, which is then cancelled."""
    began = time.perf_counter()
    async with client.stream("POST", path, **body) as answer:
        async for _ in answer.aiter_raw():
            break
        assert answer.status_code == 200
    return time.perf_counter() - began


async def first_live_sound(url: str, text: str) -> float:
    """The same from a start message on Fish Audio's socket, which is already open."""
    async with connect(url.replace("http", "ws") + LIVE, proxy=None) as socket:
        began = time.perf_counter()
        await socket.send(ormsgpack.packb({"event": "start", "request": {"text": text, "format": "pcm"}}))
        await socket.send(ormsgpack.packb({"event": "stop"}))
        assert ormsgpack.unpackb(await socket.recv(decode=False))["event"] == "audio"
        return time.perf_counter() - began


async def first_of_text_socket(url: str) -> float:
    """The same from a sentence on our text socket, which is already configured."""
    async with connect(url.replace("http", "ws") + TEXT_SOCKET, proxy=None) as socket:
        await socket.send(json.dumps({"type": "session.config", "response_format": "pcm", "sample_rate": RATE}))
        began = time.perf_counter()
        await socket.send(json.dumps({"type": "input.text", "text": TEXT}))
        await socket.send(json.dumps({"type": "input.flush"}))
        while isinstance(await socket.recv(), str):
            pass
        return time.perf_counter() - began


async def first_of_multi_socket(url: str) -> float:
    """The same from a sentence on ElevenLabs' socket, whose context is already open."""
    async with connect(f"{url.replace('http', 'ws')}{MULTI}?output_format=pcm_44100", proxy=None) as socket:
        await socket.send(json.dumps({"text": " ", "context_id": "a"}))
        began = time.perf_counter()
        await socket.send(json.dumps({"text": TEXT + " ", "context_id": "a", "flush": True}))
        while not json.loads(await socket.recv()).get("audio"):
            pass
        return time.perf_counter() - began


async def first_of_wyoming(port: int) -> float:
    """The same from a sentence on a connection of Wyoming, whose text has already begun."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b'{"type": "synthesize-start"}\n')
        began = time.perf_counter()
        chunk = {"type": "synthesize-chunk", "data": {"text": TEXT}}
        writer.write(json.dumps(chunk).encode() + b'\n{"type": "synthesize-stop"}\n')
        while (event := json.loads(await reader.readline()))["type"] != "audio-chunk":
            await reader.readexactly(event.get("data_length", 0))
        await reader.readexactly(event["data_length"] + event["payload_length"])
        return time.perf_counter() - began
    finally:
        writer.close()


async def compare(url: str, wyoming: int) -> dict[str, float]:
    """Median milliseconds to the first sound by each route, in turns, each while nothing else runs."""
    text = TEXT
    packed = {"content": ormsgpack.packb({"text": text, "format": "pcm"}), "headers": {"Content-Type": PACKED}}
    ours = {"input": text, "response_format": "pcm", "sample_rate": RATE}
    firsts: dict[str, list[float]] = {}
    async with httpx.AsyncClient(base_url=url, timeout=120) as client:
        for _ in range(COMPARED):
            ways = {
                SPEECH: first_sound(client, SPEECH, json=ours),
                "/v1/tts, JSON": first_sound(client, "/v1/tts", json={"text": text, "format": "pcm"}),
                "/v1/tts, MessagePack": first_sound(client, "/v1/tts", **packed),
                LIVE: first_live_sound(url, text),
                TEXT_SOCKET: first_of_text_socket(url),
                "multi-stream-input": first_of_multi_socket(url),
                "Wyoming": first_of_wyoming(wyoming),
            }
            for way, asking in ways.items():
                firsts.setdefault(way, []).append(await asking)
                while (await client.get("/health")).json()["load"]["running"]:
                    pass  # the cancelled take still holds its row
    return {way: round(1000 * statistics.median(seconds), 2) for way, seconds in firsts.items()}


async def measure(url: str, server: int, streams: int, format_name: str, seconds: float) -> dict[str, object]:
    """``streams`` listeners, who arrive one after another within a second."""
    frames = int(seconds / CHUNK_SECONDS) * CHUNK
    body: dict[str, object] = {"input": "a", "response_format": format_name, "max_new_tokens": frames}
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as client:
        await stream(client, body | {"max_new_tokens": CHUNK})
        before, began = cpu_seconds(server), time.perf_counter()

        async def later(number: int) -> float:
            await asyncio.sleep(number / streams)
            return await stream(client, body)

        firsts = sorted(await asyncio.gather(*(later(number) for number in range(streams))))
        spent, wall = cpu_seconds(server) - before, time.perf_counter() - began
    return {
        "streams": streams,
        "format": format_name,
        "first_byte_ms_p50": round(statistics.median(firsts) * 1000, 2),
        "first_byte_ms_p95": round(firsts[int(0.95 * (len(firsts) - 1))] * 1000, 2),
        "core_percent_a_stream": round(100 * spent / (streams * seconds), 2),
        "server_core_percent": round(100 * spent / wall, 1),
    }


def cpu_seconds(process: int) -> float:
    """CPU seconds that a process has used, over all its threads."""
    with open(f"/proc/{process}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 64, 256])
    parser.add_argument("--formats", nargs="+", default=["pcm", "wav", "mp3", "opus"])
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--at")
    parser.add_argument("--wyoming", type=int, default=10_200)
    options = parser.parse_args()
    if options.at:
        print(json.dumps({"first_sound_ms": asyncio.run(compare(options.at, options.wyoming))}))
        return
    with socket.socket() as probe, socket.socket() as other:
        probe.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        port, wyoming = probe.getsockname()[1], other.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    server = context.Process(target=serve, args=(port, wyoming, ready), daemon=True)
    server.start()
    assert server.pid and ready.wait(60)
    url = f"http://127.0.0.1:{port}"
    rows = []
    print(f"{'format':>6} {'streams':>7} {'first byte p50':>14} {'p95':>9} {'core a stream':>13} {'server':>7}")
    for format_name in options.formats:
        for streams in options.streams:
            row = asyncio.run(measure(url, server.pid, streams, format_name, options.seconds))
            rows.append(row)
            print(
                f"{format_name:>6} {streams:>7} {row['first_byte_ms_p50']:>11} ms {row['first_byte_ms_p95']:>6} ms"
                f" {row['core_percent_a_stream']:>11} % {row['server_core_percent']:>5} %"
            )
    ways = asyncio.run(compare(url, wyoming))
    for way, milliseconds in ways.items():
        print(f"{way:>22} {milliseconds:>7} ms to the first sound")
    server.terminate()
    server.join(20)
    print(json.dumps({"web": rows, "first_sound_ms": ways, "cores": os.cpu_count()}))


if __name__ == "__main__":
    main()
