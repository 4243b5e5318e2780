"""The loads that `benchmarks.serve` puts on a server, and the measurements of each."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx

from benchmarks.common.material import clip, data_url, sentence
from benchmarks.common.report import percentile
from benchmarks.serving.crowd import Crowd, Load, evenly
from benchmarks.serving.listener import Address, Listener

CLIP_WORDS = sentence(1, 150)
"""Roughly the text spoken in ten seconds."""
VOICE = "bench"
CANCEL_AFTER = 3
"""Pieces received before a caller hangs up."""


@dataclass
class Service:
    """A server under load, and the texts for it, none used twice, with seeds in order."""

    address: Address
    http: httpx.AsyncClient
    frame_rate: float
    _numbers: Iterator[int] = field(default_factory=lambda: count(100))

    def request(self, frames: int, **fields: Any) -> dict[str, Any]:
        """A speech request of a new text of about 100 characters."""
        number = next(self._numbers)
        return {"input": sentence(number), "seed": number, "max_new_tokens": frames} | fields

    def frames(self, seconds: float) -> int:
        return round(seconds * self.frame_rate)

    async def load(self) -> dict[str, int]:
        """The engine's counters."""
        answer = await self.http.get("/health")
        if answer.status_code != 200:
            raise RuntimeError(f"the server is not well: {answer.text}")
        return answer.json()["load"]

    async def idle(self) -> None:
        """Wait until no takes are active or waiting."""
        while (load := await self.load())["running"] or load["waiting"]:
            await asyncio.sleep(0.005)

    async def all_graphs(self) -> float:
        """Wait until every graph is captured, which starts when the server is ready; returns the seconds it took."""
        started = time.perf_counter()
        while (await self.load())["graphs_left"]:
            await asyncio.sleep(0.05)
        return time.perf_counter() - started

    async def upload_voice(self) -> float:
        """Create the voice that is cached from then on, from a ten-second clip; returns the seconds it took."""
        started = time.perf_counter()
        form = {"name": VOICE, "ref_text": CLIP_WORDS, "consent": "A synthetic sound: nobody's voice."}
        answer = await self.http.post("/v1/audio/voices", data=form, files={"audio_sample": ("clip.wav", clip(0))})
        answer.raise_for_status()
        return time.perf_counter() - started


def summary(load: Load) -> dict[str, Any]:
    """The measurements of a crowd, in one row."""
    listeners = load.listeners
    whole = [listener for listener in listeners if not listener.error]
    first = [listener.first * 1e3 for listener in whole]
    plays = [listener.playback() for listener in whole]
    still = [seconds * 1e3 for _, seconds in plays]
    return {
        "requests": len(listeners),
        "failed": len(listeners) - len(whole),
        "first_ms_p50": percentile(first, 0.5),
        "first_ms_p95": percentile(first, 0.95),
        "first_ms_p99": percentile(first, 0.99),
        "server_queue_ms_p50": _median(listener.server_queue_ms for listener in whole),
        "server_first_ms_p50": _median(listener.server_first_ms for listener in whole),
        "underruns": sum(underruns for underruns, _ in plays),
        "starved": sum(underruns > 0 for underruns, _ in plays),
        "prebuffer_ms": round(max(still, default=0.0), 1),
        "prebuffer_ms_p95": percentile(still, 0.95),
        "xrt": round(sum(listener.seconds for listener in whole) / load.seconds, 2),
        "client_core_%": round(load.core_percent, 1),
        "client_late_ms": round(load.late_ms, 1),
    }


def _median(reported: Iterable[float | None]) -> float | None:
    """The median of the values that were reported."""
    return percentile((value for value in reported if value is not None), 0.5)


def failures(listeners: list[Listener]) -> list[str]:
    """The distinct reasons for failed takes, at most a few."""
    return sorted({listener.error for listener in listeners if listener.error})[:5]


async def one_caller(service: Service, repeat: int, frames: int) -> list[dict[str, Any]]:
    """One caller at a time, a row per way to give the voice."""
    known = {"ref_audio": data_url(clip(1)), "ref_text": CLIP_WORDS}
    kinds: dict[str, list[dict[str, Any]]] = {
        "saved voice": [{"voice": VOICE}] * (repeat + 1),
        "inline clip, known": [known] * (repeat + 1),
        "inline clip, new": [{"ref_audio": data_url(clip(2 + i)), "ref_text": CLIP_WORDS} for i in range(repeat + 1)],
        "no reference": [{"voice": "random"}] * (repeat + 1),
    }
    rows = []
    for kind, fields in kinds.items():
        listeners = []
        for body in fields:
            await service.idle()
            listeners.append(await service.address.listen(service.request(frames, **body)))
        whole = [listener for listener in listeners[1:] if not listener.error]  # the first one cached the voice
        rows.append(
            {
                "voice": kind,
                "requests": repeat,
                "failed": repeat - len(whole),
                "first_ms_p50": percentile((listener.first * 1e3 for listener in whole), 0.5),
                "first_ms_p95": percentile((listener.first * 1e3 for listener in whole), 0.95),
                "server_first_ms_p50": _median(listener.server_first_ms for listener in whole),
                "end_to_end_s": percentile((listener.ended for listener in whole), 0.5, 3),
                "rtf": percentile((listener.ended / listener.seconds for listener in whole), 0.5, 4),
                "underruns": sum(listener.playback()[0] for listener in whole),
                "why_failed": "; ".join(failures(listeners)) or "-",
            }
        )
    return rows


async def poisson(service: Service, crowd: Crowd, rate: float, seconds: float) -> tuple[dict[str, Any], list[str]]:
    """Requests at random, ``rate`` a second, in a cached voice; takes of 2 to 6 s."""
    chance = random.Random(0)
    moments: list[float] = []
    lengths: list[float] = []
    moment = chance.expovariate(rate)
    while moment < seconds or not moments:
        moments.append(moment)
        lengths.append(chance.uniform(2, 6))
        moment += chance.expovariate(rate)
    await service.address.listen(service.request(8, voice=VOICE))
    requests = [service.request(service.frames(length), voice=VOICE) for length in lengths]
    load = await crowd.listen(service.address, requests, moments)
    return summary(load), failures(load.listeners)


async def together(
    service: Service, crowd: Crowd, streams: int, seconds: float, spread: float
) -> tuple[dict[str, Any], list[str]]:
    """This many streams in a cached voice, started evenly within ``spread`` seconds."""
    await service.idle()
    await service.address.listen(service.request(8, voice=VOICE))
    requests = [service.request(service.frames(seconds), voice=VOICE) for _ in range(streams)]
    load = await crowd.listen(service.address, requests, evenly(streams, spread))
    return {"streams": streams, "spread_s": spread} | summary(load), failures(load.listeners)


async def cancel(service: Service, times: int) -> dict[str, Any]:
    """A caller hangs up during a stream: milliseconds until the engine's row is free."""
    freed, looks = [], []
    before = (await service.load())["cancelled"]
    for _ in range(times):
        await service.idle()
        listener = await service.address.listen(service.request(service.frames(15), voice=VOICE), CANCEL_AFTER)
        left = time.perf_counter()
        while True:
            started = time.perf_counter()
            load = await service.load()
            looks.append((time.perf_counter() - started) * 1e3)
            if not load["running"]:
                break
        freed.append((time.perf_counter() - left) * 1e3)
        if listener.error:
            raise RuntimeError(f"a take to be cancelled failed: {listener.error}")
    return {
        "cancels": times,
        "counted_as_cancelled": (await service.load())["cancelled"] - before,
        "cancel_ms_p50": percentile(freed, 0.5),
        "cancel_ms_worst": round(max(freed), 1),
        "a_look_takes_ms": round(statistics.median(looks), 1),
    }


async def bare_client(crowd: Crowd, times: int = 50) -> dict[str, float | None]:
    """An upper bound of the client's own share: ms to the first byte of a server of three lines in this process."""
    sound = bytes(2048)
    head = b"HTTP/1.1 200 OK\r\nX-Sample-Rate: 24000\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        length = int(request.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        writer.write(head + (b"%x\r\n" % len(sound) + sound + b"\r\n") * 8 + b"0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
        request = {"input": sentence(0)}
        alone = [(await address.listen(request)).first * 1e3 for _ in range(times)]
        load = await crowd.listen(address, [request] * 64)
    return {
        "client_ms": percentile(alone, 0.5, 2),
        "client_ms_64_at_once": percentile((listener.first * 1e3 for listener in load.listeners), 0.95, 2),
    }
