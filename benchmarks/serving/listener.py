"""One listener of a spoken stream: a request over a bare socket, when each piece came, and how playback would go.

Asks for pcm and reads HTTP/1.1's chunks itself, so that what is timed is the server and hardly the client.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any

PCM_BYTES = 2


@dataclass
class Heard:
    """What one listener noted. Seconds count from just before the connection was opened."""

    pieces: list[tuple[float, float]] = field(default_factory=list)
    """(when it came, seconds of sound that there were with it) of every piece."""
    ended: float = 0.0
    server_first_ms: float = 0.0
    """The server's own first audio, out of X-First-Audio-Ms."""
    error: str = ""
    """Why it is no whole take; empty when it is one."""

    @property
    def first(self) -> float:
        return self.pieces[0][0]

    @property
    def seconds(self) -> float:
        """Seconds of sound that came."""
        return self.pieces[-1][1] if self.pieces else 0.0

    def playback(self) -> tuple[int, float]:
        """How often a player that starts with the first piece runs dry, and the seconds it stands still in all.

        Those seconds are also the shortest wait before the start that would have let it play through.
        """
        underruns, still = 0, 0.0
        for (_, heard), (came, _) in zip(self.pieces, self.pieces[1:], strict=False):
            late = came - (self.first + still + heard)
            if late > 0:
                underruns, still = underruns + 1, still + late
        return underruns, still


class Refused(Exception):
    """The server answered something else than sound."""


@dataclass(frozen=True)
class Address:
    """Where the server listens."""

    host: str
    port: int

    async def listen(self, request: dict[str, Any], pieces: int | None = None) -> Heard:
        """Send a speech request and hear it to its end, or hang up after so many pieces."""
        body = json.dumps(request | {"response_format": "pcm"}).encode()
        heard = Heard()
        started = time.perf_counter()
        reader, writer = await asyncio.open_connection(self.host, self.port, limit=2**20)
        try:
            writer.write(self._head(len(body)) + body)
            rate = await _read_head(reader, heard)
            size = 0
            while piece := await _read_chunk(reader):
                size += len(piece)
                heard.pieces.append((time.perf_counter() - started, size / PCM_BYTES / rate))
                if len(heard.pieces) == pieces:
                    break
        except Refused as refusal:
            heard.error = str(refusal)
        except (asyncio.IncompleteReadError, OSError) as error:
            heard.error = f"broke off after {heard.seconds:.2f} s: {type(error).__name__}"
        finally:
            writer.transport.abort()
        heard.ended = time.perf_counter() - started
        if not heard.pieces and not heard.error:
            heard.error = "no sound came"
        return heard

    def _head(self, length: int) -> bytes:
        return (
            f"POST /v1/audio/speech HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        ).encode()


async def _read_head(reader: asyncio.StreamReader, heard: Heard) -> int:
    """The stream's sample rate in Hz. Raises Refused with the server's words."""
    status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if status.split()[1] != "200":
        raise Refused(f"{status}: {(await reader.read(600)).decode(errors='replace')}")
    heard.server_first_ms = float(headers.get("x-first-audio-ms", 0))
    return int(headers["x-sample-rate"])


async def _read_chunk(reader: asyncio.StreamReader) -> bytes:
    """The next chunk of a chunked body; empty at its end. Raises IncompleteReadError when it broke off."""
    size = await reader.readuntil(b"\r\n")
    return (await reader.readexactly(int(size, 16) + 2))[:-2]
