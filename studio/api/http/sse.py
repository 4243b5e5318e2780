"""Speech as server-sent events, in OpenAI's words: speech.audio.delta … speech.audio.done, or one error.

Of our own is speech.audio.timestamps, for those who ask for it.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator

from starlette.requests import ClientDisconnect

from engine import EngineError
from studio.api.http.error_responses import describe, envelope
from studio.errors import StudioError
from studio.speech.speech_service import Speech
from studio.speech.timing.timestamps import Unit, as_json

MEDIA_TYPE = "text/event-stream; charset=utf-8"

PING_SECONDS = 15.0
"""A request that waits longer gets its answer begun, so that no proxy on the way takes silence for an end."""
PING = b": waiting\n\n"
"""A comment, which clients leave out."""


async def events(speech: Speech, characters: int, unit: Unit | None = None) -> AsyncGenerator[bytes, None]:
    """The file's bytes in base64, piece by piece; joined they are the file that stream_format=audio gives.

    ``characters``: of the text, which are what usage counts as input; frames are its output. ``unit``: of what to tell
    the times, in an event of their own before the last.
    An error after the first byte becomes one event, and no "done" follows.
    """
    try:
        async for piece in speech.body:
            yield event("speech.audio.delta", {"audio": base64.b64encode(piece).decode("ascii")})
        if unit:
            yield event("speech.audio.timestamps", {"of": unit, "timestamps": as_json(await speech.timestamps(unit))})
    except (EngineError, StudioError) as error:
        yield event("error", envelope(describe(error)))
        return
    yield event("speech.audio.done", {"usage": usage(characters, speech.take.frames)})


async def late_events(
    speaking: asyncio.Future[Speech], characters: int, unit: Unit | None = None
) -> AsyncGenerator[bytes, None]:
    """Pings until the speech begins, then its events; a refusal, too late for a status, is an event as well.

    Whoever iterates lets go of ``speaking`` afterwards: an iteration that never began has no end either.
    """
    try:
        while not speaking.done():
            yield PING
            await asyncio.wait({speaking}, timeout=PING_SECONDS)
        async for line in events(speaking.result(), characters, unit):
            yield line
    except (EngineError, StudioError) as error:
        yield event("error", envelope(describe(error)))
    except ClientDisconnect:
        return


def usage(characters: int, frames: int) -> dict[str, int]:
    """What OpenAI's clients read as the cost of a request."""
    return {"input_tokens": characters, "output_tokens": frames, "total_tokens": characters + frames}


def event(name: str, fields: dict[str, object]) -> bytes:
    """One event: its name, one line of JSON, an empty line."""
    data = json.dumps({"type": name} | fields, separators=(",", ":"))
    return f"event: {name}\ndata: {data}\n\n".encode()
