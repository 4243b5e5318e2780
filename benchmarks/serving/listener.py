"""One listener of a stream: a request over a bare socket, the time of each piece, and how playback would proceed.

Requests pcm and reads HTTP/1.1 itself, so that mostly the server is timed and hardly the client.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

PCM_BYTES = 2
OPENAI_RATE = 24_000
"""Hz, of pcm from a server that does not state its rate."""
MOST_AT_ONCE = 2**16
"""Bytes taken as one piece of a body without chunks."""


@dataclass
class Heard:
    """The measurements of one listener. Seconds count from just before the connection was opened."""

    pieces: list[tuple[float, float]] = field(default_factory=list)
    """(time of arrival, total seconds of audio by then) of every piece."""
    ended: float = 0.0
    server_queue_ms: float | None = None
    server_first_ms: float | None = None
    """By the server's own clock, if reported: until the engine had accepted the take, and until its first audio."""
    error: str = ""
    """Why the take is incomplete; empty when it is complete."""

    @property
    def first(self) -> float:
        return self.pieces[0][0]

    @property
    def seconds(self) -> float:
        """Seconds of audio received."""
        return self.pieces[-1][1] if self.pieces else 0.0

    def playback(self) -> tuple[int, float]:
        """How often a player that starts with the first piece runs dry, and the total seconds of these gaps.

        Those seconds are also the shortest delay of the start with which it would have played without gaps.
        """
        underruns, still = 0, 0.0
        for (_, heard), (came, _) in zip(self.pieces, self.pieces[1:], strict=False):
            late = came - (self.first + still + heard)
            if late > 0:
                underruns, still = underruns + 1, still + late
        return underruns, still


class Refused(Exception):
    """The server did not answer with audio."""


@dataclass(frozen=True)
class Address:
    """The server's address."""

    host: str
    port: int
    path: str = "/v1/audio/speech"
    key: str = field(default="", repr=False)
    """Sent as a bearer token; blank for none."""
    is_secure: bool = False

    @classmethod
    def of(cls, url: str, key: str = "") -> Address:
        """The address in a server's URL, with or without its /v1. Raises ValueError."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not a server's URL; write it like http://127.0.0.1:7860")
        is_secure = parts.scheme == "https"
        base = parts.path.rstrip("/").removesuffix("/v1")
        return cls(parts.hostname, parts.port or (443 if is_secure else 80), f"{base}/v1/audio/speech", key, is_secure)

    async def listen(self, request: dict[str, Any], pieces: int | None = None) -> Heard:
        """Send a speech request and hear it to its end, or hang up after this many pieces."""
        body = json.dumps(request | {"response_format": "pcm"}).encode()
        heard = Heard()
        started = time.perf_counter()
        try:
            opening = asyncio.open_connection(self.host, self.port, limit=2**20, ssl=self.is_secure or None)
            reader, writer = await opening
        except OSError as error:
            heard.error = f"no connection: {error}"
            return heard
        try:
            writer.write(self._head(len(body)) + body)
            rate, sound = await _read_head(reader, heard)
            size = 0
            async for piece in sound:
                size += len(piece)
                heard.pieces.append((time.perf_counter() - started, size / PCM_BYTES / rate))
                if len(heard.pieces) == pieces:
                    break
        except Refused as refusal:
            heard.error = str(refusal)
        except (asyncio.IncompleteReadError, OSError) as error:
            heard.error = f"ended early after {heard.seconds:.2f} s: {type(error).__name__}"
        finally:
            writer.transport.abort()
        heard.ended = time.perf_counter() - started
        if not heard.pieces and not heard.error:
            heard.error = "no audio arrived"
        return heard

    def _head(self, length: int) -> bytes:
        token = f"Authorization: Bearer {self.key}\r\n" if self.key else ""
        return (
            f"POST {self.path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n{token}"
            f"Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        ).encode()


async def _read_head(reader: asyncio.StreamReader, heard: Heard) -> tuple[int, AsyncIterator[bytes]]:
    """The stream's sample rate in Hz, and its pieces as they arrive. Raises Refused with the server's message."""
    status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if status.split()[1] != "200":
        raise Refused(f"{status}: {(await reader.read(600)).decode(errors='replace')}")
    if "event-stream" in headers.get("content-type", ""):  # base64, which would count as a third more audio
        raise Refused('the server sent events, not audio; "stream_format": "audio" asks for audio')
    heard.server_queue_ms, heard.server_first_ms = (
        float(headers[name]) if name in headers else None for name in ("x-queue-ms", "x-first-audio-ms")
    )
    match = re.search(r"rate=(\d+)", headers.get("content-type", ""))
    rate = int(
        headers.get("x-sample-rate") or headers.get("x-audio-sample-rate") or (match[1] if match else OPENAI_RATE)
    )  # ours, vLLM-Omni's; others give it in the content type
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return rate, _chunks(reader)
    return rate, _plain(reader, int(headers["content-length"]) if "content-length" in headers else None)


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """A chunked body. Raises IncompleteReadError when it ended early."""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        yield (await reader.readexactly(size + 2))[:-2]


async def _plain(reader: asyncio.StreamReader, left: int | None) -> AsyncIterator[bytes]:
    """A body of this many bytes, or up to the connection's end. Raises IncompleteReadError when it ended early."""
    while left != 0:
        piece = await reader.read(min(MOST_AT_ONCE, left or MOST_AT_ONCE))
        if not piece and left:
            raise asyncio.IncompleteReadError(b"", left)
        if not piece:
            return
        yield piece
        left = left and left - len(piece)
