"""POST /v1/audio/speech/batch: up to 32 texts at once; results are streamed as they finish, or sent together."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from engine import EngineError
from studio.api.body import as_model, read_json
from studio.api.error_responses import ApiError, describe, envelope
from studio.api.foreign import canonical_fields
from studio.api.openapi import answers, reads
from studio.api.routes.models import for_loaded_model
from studio.api.sending import PIECE
from studio.api.speech_bodies import BatchBody, SpeechBody
from studio.api.sse import usage
from studio.errors import REFUSALS
from studio.speech.request import Origin
from studio.speech.speech_service import SpeechService
from studio.speech.word_times import as_json
from studio.supervisor import end_tasks

BATCH_DOC = reads(BatchBody) | answers("application/json", "application/x-ndjson")

Result = dict[str, object]


def batch_routes(service: SpeechService) -> APIRouter:
    routes = APIRouter(tags=["speech"])

    @routes.post("/v1/audio/speech/batch", openapi_extra=BATCH_DOC)
    async def create_batch(request: Request) -> Response:
        """Generate many texts. ``stream: true`` sends one line of JSON per result, in the order of completion.

        An item that fails has a result with an error; the others continue.
        """
        fields = canonical_fields(await read_json(request))
        body = as_model(fields, BatchBody)
        batch = _Batch(service, fields, request.state.request_id, request.state.caller)
        media_type = "application/x-ndjson" if body.stream else "application/json"
        return StreamingResponse(batch.written(as_lines=bool(body.stream)), media_type=media_type)

    return routes


class _Batch:
    """The items of one request; leaving the iteration cancels them."""

    def __init__(self, service: SpeechService, fields: dict[str, Any], batch_id: str, caller: str) -> None:
        """``fields``: of a BatchBody, by canonical names. Raises NotReady, Unavailable."""
        self._service = service
        self._shared = {name: value for name, value in fields.items() if name not in ("items", "stream")}
        self._items: list[dict[str, Any]] = fields["items"]
        self._id = batch_id
        self._caller = caller
        self._succeeded = 0
        self._places = asyncio.Semaphore(service.max_concurrent)

    async def written(self, as_lines: bool) -> AsyncGenerator[bytes, None]:
        """The results and the summary as JSON: as lines in the order of completion, or all as one object in the order
        of the items, each sent and forgotten as soon as possible."""
        tasks, total = [asyncio.create_task(self._result(index)) for index in range(len(self._items))], len(self._items)
        try:
            for done in asyncio.as_completed(tasks) if as_lines else ():
                for piece in _pieces(await done, b"\n"):
                    yield piece
            for number in range(0 if as_lines else total):
                await asyncio.wait([tasks[0]])
                for piece in _pieces(b", " if number else b'{"results": [', tasks.pop(0).result()):
                    yield piece
            summary: Result = {"id": self._id, "object": "audio.speech.batch", "total": total}
            end = json.dumps(summary | {"succeeded": self._succeeded, "failed": total - self._succeeded})
            yield (f"{end}\n" if as_lines else f"], {end[1:]}").encode()
        finally:
            await end_tasks(*tasks)

    async def _result(self, index: int) -> bytes:
        """As JSON."""
        head: Result = {"index": index, "id": f"{self._id}-{index}"}
        try:
            body = as_model(self._shared | canonical_fields(self._items[index]), SpeechBody)
            async with self._service.in_turn(self._places):
                body = await for_loaded_model(self._service, body, self._caller)
                if body.timestamps:
                    self._service.check_alignment()
                origin = Origin(f"{self._id}-{index}", self._caller, patient=True, live=body.live)
                speech = await self._service.speak(body.speech_request(), origin)
                async with aclosing(speech):
                    audio = b"".join([piece async for piece in speech.body])
                if body.timestamps:
                    head["timestamps"] = as_json(await speech.timestamps(body.timestamps))
        except (ApiError, *REFUSALS, EngineError) as error:
            return json.dumps(head | {"status": "error"} | envelope(describe(error))).encode()
        take = speech.take
        self._succeeded += 1
        result = head | {
            "status": "success",
            "media_type": speech.media_type,
            "sample_rate": speech.sample_rate,
            "seed": speech.seed,
            "voice": speech.voice,
            "finish_reason": take.finish_reason,
            "usage": usage(len(body.input), take.frames),
        }
        return await to_thread.run_sync(_with_audio, result, audio)


def _with_audio(result: Result, audio: bytes) -> bytes:
    """A result as JSON; base64 needs no escapes. Blocking: audio may have 100 MB."""
    return b'%s, "audio_data": "%s"}' % (json.dumps(result)[:-1].encode(), base64.b64encode(audio))


def _pieces(*contents: bytes) -> Iterator[bytes]:
    """Small enough to be sent without a pause of the event loop."""
    return (content[start : start + PIECE] for content in contents for start in range(0, len(content), PIECE))
