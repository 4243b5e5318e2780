"""POST /v1/audio/speech: text in, a file out from its first frame on. GET /v1/takes/{id}: what became of it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from studio.api.body import as_model, read_json
from studio.api.hangup import until_hangup
from studio.api.listing import check_model
from studio.api.schemas import SpeechBody, refuse_unsupported
from studio.api.sse import MEDIA_TYPE as SSE_TYPE
from studio.api.sse import events
from studio.audio.formats import MEDIA_TYPES
from studio.speech import Speech, SpeechService

SPEECH_DOC = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": SpeechBody.model_json_schema()}},
    },
    "responses": {
        "200": {
            "description": "The speech, chunked while it is made.",
            "content": {media_type: {} for media_type in (*MEDIA_TYPES.values(), "text/event-stream")},
        }
    },
}


class SpeechResponse(StreamingResponse):
    """Streams a Speech, as a file or as events; however the exchange ends, the take is closed with it."""

    def __init__(self, speech: Speech, as_events: bool, characters: int) -> None:
        headers = {
            "X-Seed": str(speech.seed),
            "X-Voice": speech.voice,
            "X-Queue-Ms": f"{speech.queue_ms:.1f}",
            "X-First-Audio-Ms": f"{speech.first_audio_ms:.1f}",
            "X-Sample-Rate": str(speech.sample_rate),
            "X-Accel-Buffering": "no",
        }
        if as_events:
            super().__init__(events(speech, characters), headers=headers, media_type=SSE_TYPE)
        else:
            super().__init__(speech.body, headers=headers, media_type=speech.media_type)
        self._speech = speech

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._speech.aclose()


def speech_routes(service: SpeechService) -> APIRouter:
    """The routes that speak, on this service."""
    routes = APIRouter(tags=["speech"])

    @routes.post("/v1/audio/speech", openapi_extra=SPEECH_DOC, response_class=Response)
    async def create_speech(request: Request) -> Response:
        """Speak a text. The answer starts with the first frame; leaving it stops the work."""
        fields = await read_json(request)
        refuse_unsupported(fields)
        body = as_model(fields, SpeechBody)
        check_model(service, body.model)
        work = service.speak(body.speech_request(), request.state.request_id)
        speech = await until_hangup(request, work)
        return SpeechResponse(speech, body.wants_events, len(body.input))

    @routes.get("/v1/takes/{request_id}")
    async def get_take(request_id: str) -> JSONResponse:
        """What became of a recent request, by the x-request-id of its answer."""
        return JSONResponse(service.takes.get(request_id).as_json())

    return routes
