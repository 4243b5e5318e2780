"""Speech as server-sent events in OpenAI's form: speech.audio.delta … speech.audio.done, or one error.

On request, the extension speech.audio.timestamps is sent before the last event.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator

from starlette.requests import ClientDisconnect

from engine import EngineError
from studio.api.error_responses import describe, envelope
from studio.errors import REFUSALS
from studio.speech.delivery import Speech
from studio.speech.word_times import Unit, as_json

MEDIA_TYPE = "text/event-stream; charset=utf-8"

PING_SECONDS = 15.0
"""The answer to a request that waits longer starts with pings, so that no proxy closes an idle connection."""
PING = b": waiting\n\n"
"""A comment, which clients ignore."""


async def events(
    task: asyncio.Future[Speech], characters: int, unit: Unit | None = None
) -> AsyncGenerator[bytes, None]:
    """Pings until the speech begins, then the pieces of the file in base64; joined, they are the file that
    stream_format=audio sends. An error is an event too, because it is too late for a status, and there is no "done".

    ``characters``: length of the text, the input of the usage; its output is the number of frames. ``unit``: of the
    timestamps. The caller must release ``task`` afterwards: an iteration that never started does not end it.
    """
    try:
        while not task.done():
            yield PING
            await asyncio.wait({task}, timeout=PING_SECONDS)
        speech = task.result()
        async for piece in speech.body:
            yield event("speech.audio.delta", {"audio": base64.b64encode(piece).decode("ascii")})
        if unit:
            yield event("speech.audio.timestamps", {"of": unit, "timestamps": as_json(await speech.timestamps(unit))})
        yield event("speech.audio.done", {"usage": usage(characters, speech.take.frames)})
    except (EngineError, *REFUSALS) as error:
        yield event("error", envelope(describe(error)))
    except ClientDisconnect:
        return


def usage(characters: int, frames: int) -> dict[str, int]:
    """The cost of a request, for OpenAI's clients."""
    return {"input_tokens": characters, "output_tokens": frames, "total_tokens": characters + frames}


def event(name: str, fields: dict[str, object]) -> bytes:
    data = json.dumps({"type": name} | fields, separators=(",", ":"))
    return f"event: {name}\ndata: {data}\n\n".encode()
