"""Speech as server-sent events, in OpenAI's words: speech.audio.delta … speech.audio.done, or one error."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator

from engine import EngineError
from studio.api.errors import describe, envelope
from studio.errors import StudioError
from studio.speech import Speech

MEDIA_TYPE = "text/event-stream; charset=utf-8"


async def events(speech: Speech, characters: int) -> AsyncGenerator[bytes, None]:
    """The file's bytes in base64, piece by piece; joined they are the file that stream_format=audio gives.

    ``characters``: of the text, which are what usage counts as input; frames are its output.
    An error after the first byte becomes one event, and no "done" follows.
    """
    try:
        async for piece in speech.body:
            yield event("speech.audio.delta", {"audio": base64.b64encode(piece).decode("ascii")})
    except (EngineError, StudioError) as error:
        yield event("error", envelope(describe(error)))
        return
    frames = speech.take.frames
    usage = {"input_tokens": characters, "output_tokens": frames, "total_tokens": characters + frames}
    yield event("speech.audio.done", {"usage": usage})


def event(name: str, fields: dict[str, object]) -> bytes:
    """One event: its name, one line of JSON, an empty line."""
    data = json.dumps({"type": name} | fields, separators=(",", ":"))
    return f"event: {name}\ndata: {data}\n\n".encode()
