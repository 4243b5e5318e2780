"""POST /v1/audio/speech: generates speech, streamed from the first frame on; the queue and cancellation of requests."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from audio.formats import MEDIA_TYPES
from engine import EngineError
from speechtext.language import guess_language
from speechtext.script import TAG
from studio.api import sse
from studio.api.access import is_owner
from studio.api.body import BodyReader
from studio.api.foreign import NAMES, canonical_fields
from studio.api.openapi import answers
from studio.api.routes.models import for_loaded_model
from studio.api.sending import release, until_hangup
from studio.api.speech_bodies import CaptionedBody, ReadingBody, SpeechBody
from studio.errors import REFUSALS, InvalidRequest, NotFound
from studio.jobs import JobCaller, JobSource
from studio.settings import Settings
from studio.speech.delivery import Speech
from studio.speech.request import Origin
from studio.speech.speech_service import SpeechService

log = logging.getLogger(__name__)

Close = Callable[[], Awaitable[None]]

SpeechJson = Annotated[SpeechBody, Depends(BodyReader(SpeechBody, canonical_fields))]
CaptionedJson = Annotated[CaptionedBody, Depends(BodyReader(CaptionedBody, canonical_fields))]
ReadingJson = Annotated[ReadingBody, Depends(BodyReader(ReadingBody, canonical_fields))]
SSE = "text/event-stream"
SPEECH_DOC = answers(*MEDIA_TYPES.values(), SSE)


class SpeechResponse(StreamingResponse):
    """Streams speech as a file or as events, and always closes its source at the end."""

    def __init__(self, body: AsyncGenerator[bytes, None], media_type: str, close: Close) -> None:
        super().__init__(body, headers={"X-Accel-Buffering": "no"}, media_type=media_type)
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except (EngineError, *REFUSALS) as error:
            # The body stays incomplete and the server closes the connection, so that the client notices.
            log.warning("request %s failed: %s", scope["state"]["request_id"], error)
        finally:
            await self._close()


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
    if body.stream_format != "sse":
        speech = await until_hangup(request, work)
        return speech_response(speech, speech.body, speech.media_type)
    task = asyncio.ensure_future(until_hangup(request, work))
    try:
        await asyncio.wait({task}, timeout=sse.PING_SECONDS)
    except asyncio.CancelledError:
        await release(task)
        raise
    stream = sse.events(task, len(body.input), body.timestamps)
    if task.done():
        return speech_response(task.result(), stream, sse.MEDIA_TYPE)
    return SpeechResponse(stream, sse.MEDIA_TYPE, partial(release, task))


async def _captions(speech: Speech, is_streamed: bool) -> AsyncGenerator[bytes, None]:
    """Lines with audio, then one with the words; or all in one object, whose audio is sent as it is generated."""
    media_type, rest = speech.media_type.partition(";")[0], b""
    head, tail = b'{"audio":"', f'","audio_format":"{media_type}","timestamps":'.encode()
    if not is_streamed:
        yield head
    async for piece in speech.body:
        if is_streamed:
            yield head + base64.b64encode(piece) + tail + b"[]}\n"
        else:
            rest += piece
            size = len(rest) - len(rest) % 3  # so that the pieces can be joined
            yield base64.b64encode(rest[:size])
            rest = rest[size:]
    times = await speech.timestamps("word")
    words = [{"word": word, "start_time": start, "end_time": end} for word, start, end in times]
    yield (head if is_streamed else b"") + base64.b64encode(rest) + tail + json.dumps(words).encode() + b"}\n"


def check_timestamps(body: SpeechBody, service: SpeechService) -> None:
    """Check whether timestamps are possible. Raises InvalidRequest, CannotAlign, NotReady, Unavailable."""
    if body.timestamps and body.stream_format != "sse":
        how = 'request them with stream_format "sse", or, after the take, at /v1/takes/{x-request-id}/timestamps'
        raise InvalidRequest(f"an audio file cannot contain timestamps: {how}", "timestamps")
    if body.timestamps:
        service.check_alignment()


def speech_routes(service: SpeechService) -> APIRouter:
    routes = APIRouter(tags=["speech"])

    @routes.post(f"{NAMES}/audio/speech", include_in_schema=False)
    @routes.post("/v1/audio/speech", openapi_extra=SPEECH_DOC, response_class=Response)
    async def create_speech(body: SpeechJson, request: Request) -> Response:
        """Generate speech. The response starts with the first frame; disconnecting cancels it."""
        if body.stream_format is None and SSE in request.headers.get("accept", "").lower():
            body = body.model_copy(update={"stream_format": "sse"})
        has_instructions = bool(body.instructions)
        body = await for_loaded_model(service, body, request.state.caller)
        check_timestamps(body, service)
        origin = Origin(request.state.request_id, request.state.caller, live=body.live)
        work = service.speak(body.speech_request(), origin)
        answer = await respond(request, work, body)
        answer.headers["X-Model"] = service.host.model_id
        if has_instructions and not body.instructions:
            answer.headers["X-Instructions"] = "ignored: the loaded model takes none"
        return answer

    @routes.post("/dev/captioned_speech", openapi_extra=answers("application/json"), response_class=Response)
    async def create_captioned_speech(body: CaptionedJson, request: Request) -> Response:
        """Generate speech with the times of its words, for clients of Kokoro-FastAPI: lines of JSON, of which the last
        has all times, or one object."""
        service.check_alignment()
        body = await for_loaded_model(service, body, request.state.caller)
        origin = Origin(request.state.request_id, request.state.caller, live=True)
        speech = await until_hangup(request, service.speak(body.speech_request(), origin))
        return speech_response(speech, _captions(speech, body.stream), "application/json")

    @routes.post("/v1/audio/speech/reading")
    async def read_text(body: ReadingJson, request: Request) -> JSONResponse:
        """The text as it would be read, with numbers, dates and abbreviations as words, and its language if it is
        certain. No speech is generated."""
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
        name from STUDIO_API_KEYS, and the caller's requests: active ones, and the last that have ended."""
        caller = request.state.caller
        return JSONResponse(service.queue_for(caller) | {"caller": settings.caller_name(caller)})

    @routes.delete("/v1/requests/{request_id}")
    async def cancel_request(request_id: str) -> JSONResponse:
        """Cancel a waiting or running request, which ends its stream. Anyone with its id may do this."""
        service.register.cancel(request_id)
        return JSONResponse({"id": request_id, "object": "request", "cancelled": True})

    return routes


def job_routes(sources: Sequence[JobSource], settings: Settings) -> APIRouter:
    """/v1/jobs, the one list of the long work that is under way."""
    routes = APIRouter(tags=["requests"])

    def caller_of(request: Request) -> JobCaller:
        return JobCaller(request.state.caller, request.state.owner_filter, is_owner(settings, request))

    @routes.get("/v1/jobs")
    async def list_jobs(request: Request) -> JSONResponse:
        """The caller's long work that is under way: ``parts`` of projects in the queue; ``file`` and ``measure``, files
        that are being made of projects; ``check`` of their audio; and, for the owner, the downloads ``model`` and
        ``recogniser``. A ``total`` of 0 and an ``eta_s`` of null are unknown."""
        caller = caller_of(request)
        listed = [await until_hangup(request, source.jobs(caller)) for source in sources]
        return JSONResponse({"object": "list", "data": [job.as_json for jobs in listed for job in jobs]})

    @routes.delete("/v1/jobs/{job_id:path}")
    async def cancel_job(job_id: str, request: Request) -> JSONResponse:
        """Cancel work of the list: queued parts leave the queue, a file or a check ends, a download is removed."""
        kind, _, key = job_id.partition(":")
        for source in sources:
            if kind in source.kinds:
                await until_hangup(request, source.cancel(kind, key, caller_of(request)))
                return JSONResponse({"id": job_id, "object": "job", "cancelled": True})
        raise NotFound(f"{kind[:20]!r} is not a kind of job; send an id from GET /v1/jobs", "job")

    return routes
