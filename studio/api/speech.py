"""POST /v1/audio/speech: text in, a file out from its first frame on."""

from __future__ import annotations

import logging

import anyio
from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from engine import EngineError
from studio.api.body import as_model, read_json
from studio.api.document import body_doc
from studio.api.fields import in_our_words
from studio.api.hangup import until_hangup
from studio.api.listing import with_model_as_voice
from studio.api.schemas import SpeechBody
from studio.api.sse import MEDIA_TYPE as SSE_TYPE
from studio.api.sse import events
from studio.audio.formats import MEDIA_TYPES
from studio.errors import StudioError
from studio.request import Origin
from studio.settings import Settings
from studio.speech import Speech, SpeechService

log = logging.getLogger(__name__)

SPEECH_DOC = body_doc(SpeechBody, *MEDIA_TYPES.values(), "text/event-stream")


class SpeechResponse(StreamingResponse):
    """Streams a Speech, as a file or as events; however the exchange ends, the take is closed with it."""

    def __init__(self, speech: Speech, as_events: bool, characters: int, send_timeout: float) -> None:
        headers = {
            "X-Seed": str(speech.seed),
            "X-Voice": speech.voice,
            "X-Queue-Ms": f"{speech.queue_ms:.1f}",
            "X-First-Audio-Ms": f"{speech.first_audio_ms:.1f}",
            "X-Sample-Rate": str(speech.sample_rate),
            "X-Accel-Buffering": "no",
        }
        if speech.revision is not None:
            headers["X-Voice-Revision"] = str(speech.revision)
        if as_events:
            super().__init__(events(speech, characters), headers=headers, media_type=SSE_TYPE)
        else:
            super().__init__(speech.body, headers=headers, media_type=speech.media_type)
        self._speech = speech
        self._send_timeout = send_timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            """A listener who takes nothing any more would hold what is made for it for ever."""
            with anyio.fail_after(self._send_timeout):
                await send(message)

        try:
            await super().__call__(scope, receive, send_in_time)
        except (EngineError, StudioError, TimeoutError) as error:
            # The body is left without its end, and the server closes the connection: so the listener can tell.
            log.warning("request %s broke off: %s", self._speech.request_id, str(error) or "the listener took nothing")
        finally:
            await self._speech.aclose()


def speech_routes(service: SpeechService, settings: Settings) -> APIRouter:
    """The routes that speak, on this service."""
    routes = APIRouter(tags=["speech"])

    @routes.post("/v1/audio/speech", openapi_extra=SPEECH_DOC, response_class=Response)
    async def create_speech(request: Request) -> Response:
        """Speak a text. The answer starts with the first frame; leaving it stops the work."""
        body = as_model(in_our_words(await read_json(request)), SpeechBody)
        body = with_model_as_voice(service, body)
        work = service.speak(body.speech_request(), Origin(request.state.request_id, request.state.caller))
        speech = await until_hangup(request, work)
        return SpeechResponse(speech, body.wants_events, len(body.input), settings.send_timeout)

    return routes
