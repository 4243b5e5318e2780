"""POST /v1/audio/speech: generates speech, streamed from the first frame on; the queue and cancellation of requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from engine import EngineError
from studio.api.http import sse
from studio.api.http.body import as_model, read_json
from studio.api.http.hangup import release, until_hangup
from studio.api.http.openapi import answers, reads
from studio.api.http.sse import MEDIA_TYPE as SSE_TYPE
from studio.api.http.sse import events, late_events
from studio.api.routes.models import with_model_as_voice
from studio.api.schemas.foreign import canonical_fields
from studio.api.schemas.speech import ReadingBody, SpeechBody
from studio.audio.formats import MEDIA_TYPES
from studio.errors import InvalidRequest, StudioError
from studio.settings import Settings
from studio.speech.reading.language import guess_language
from studio.speech.request import Origin
from studio.speech.speech_service import Speech, SpeechService
from studio.speech.text import TAG

log = logging.getLogger(__name__)

Close = Callable[[], Awaitable[None]]

SPEECH_DOC = reads(SpeechBody) | answers(*MEDIA_TYPES.values(), "text/event-stream")


class SpeechResponse(StreamingResponse):
    """Streams speech as a file or as events, and always closes its source at the end."""

    def __init__(self, body: AsyncGenerator[bytes, None], media_type: str, close: Close) -> None:
        super().__init__(body, headers={"X-Accel-Buffering": "no"}, media_type=media_type)
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except (EngineError, StudioError) as error:
            # The body stays incomplete and the server closes the connection, so that the client notices.
            log.warning("request %s failed: %s", scope["state"]["request_id"], error)
        finally:
            await self._close()


def _answer(speech: Speech, body: SpeechBody) -> SpeechResponse:
    content = events(speech, len(body.input), body.timestamps) if body.wants_events else speech.body
    return speech_response(speech, content, SSE_TYPE if body.wants_events else speech.media_type)


def speech_response(speech: Speech, content: AsyncGenerator[bytes, None], media_type: str) -> SpeechResponse:
    """The response with a speech that has begun; headers have its facts."""
    answer = SpeechResponse(content, media_type, speech.aclose)
    answer.headers["X-Seed"] = str(speech.seed)
    answer.headers["X-Voice"] = speech.voice
    if speech.revision is not None:
        answer.headers["X-Voice-Revision"] = str(speech.revision)
    answer.headers["X-Queue-Ms"] = f"{speech.take.queue_ms or 0.0:.1f}"
    answer.headers["X-First-Audio-Ms"] = f"{speech.take.first_audio_ms or 0.0:.1f}"
    answer.headers["X-Sample-Rate"] = str(speech.sample_rate)
    return answer


async def respond(request: Request, work: Coroutine[Any, Any, Speech], body: SpeechBody) -> Response:
    """The response with the speech that ``work`` begins; it is cancelled if the client disconnects."""
    if not body.wants_events:
        return _answer(await until_hangup(request, work), body)
    task = asyncio.ensure_future(until_hangup(request, work))
    try:
        await asyncio.wait({task}, timeout=sse.PING_SECONDS)
    except asyncio.CancelledError:
        await release(task)
        raise
    if task.done():
        return _answer(task.result(), body)
    stream = late_events(task, len(body.input), body.timestamps)
    return SpeechResponse(stream, SSE_TYPE, partial(release, task))


def check_timestamps(body: SpeechBody, service: SpeechService) -> None:
    """Check whether timestamps are possible. Raises InvalidRequest, CannotAlign, NotReady, Unavailable."""
    if body.timestamps and not body.wants_events:
        raise InvalidRequest(
            'an audio file cannot contain timestamps: request them with stream_format "sse", or, after the take, '
            "at /v1/takes/{x-request-id}/timestamps",
            "timestamps",
        )
    if body.timestamps:
        service.check_alignment()


def speech_routes(service: SpeechService) -> APIRouter:
    routes = APIRouter(tags=["speech"])

    @routes.post("/v1/audio/speech", openapi_extra=SPEECH_DOC, response_class=Response)
    async def create_speech(request: Request) -> Response:
        """Generate speech. The response starts with the first frame; disconnecting cancels it."""
        body = as_model(canonical_fields(await read_json(request)), SpeechBody)
        body = await with_model_as_voice(service, body, request.state.caller)
        check_timestamps(body, service)
        work = service.speak(body.speech_request(), Origin(request.state.request_id, request.state.caller))
        return await respond(request, work, body)

    @routes.post("/v1/audio/speech/reading", openapi_extra=reads(ReadingBody))
    async def read_text(request: Request) -> JSONResponse:
        """The text as it would be read, with numbers, dates and abbreviations as words, and its language if it is
        certain. No speech is generated."""
        body = as_model(canonical_fields(await read_json(request)), ReadingBody)
        text = await until_hangup(request, service.reading(body.speech_request(), request.state.caller))
        language = await service.queues.texts.run(request.state.caller, guess_language, TAG.sub(" ", body.input))
        reading = {"object": "speech.reading", "text": text, "changed": text != body.input, "language": language}
        return JSONResponse(reading)

    return routes


def queue_routes(service: SpeechService, settings: Settings) -> APIRouter:
    routes = APIRouter(tags=["requests"])

    @routes.get("/v1/queue")
    async def get_queue(request: Request) -> JSONResponse:
        """The load of the engine and its queue, the limit of concurrent requests per caller (null: none), the caller's
        name from STUDIO_API_KEYS, and the caller's running requests."""
        caller = request.state.caller
        return JSONResponse(service.queue_for(caller) | {"caller": settings.caller_name(caller)})

    @routes.delete("/v1/requests/{request_id}")
    async def cancel_request(request_id: str) -> JSONResponse:
        """Cancel a waiting or running request, which ends its stream. Anyone with its id may do this."""
        service.register.cancel(request_id)
        return JSONResponse({"id": request_id, "object": "request", "cancelled": True})

    return routes
