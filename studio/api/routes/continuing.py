"""POST /v1/takes/{take_id}/continue: a take that a limit cut is gone on with, and comes whole."""

from __future__ import annotations

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import Response

from studio.api.http.body import as_model, read_json
from studio.api.http.openapi import answers, reads
from studio.api.routes.speech_routes import spoken
from studio.api.schemas.speech import ContinueBody
from studio.audio.formats import MEDIA_TYPES
from studio.errors import CannotContinue
from studio.speech.continuing import begun_take
from studio.speech.request import Origin
from studio.speech.speech_service import SpeechService
from studio.takes.as_json import request_again
from studio.takes.history import History

CONTINUE_DOC = reads(ContinueBody) | answers(*MEDIA_TYPES.values(), "text/event-stream")


def continuing_routes(service: SpeechService, history: History) -> APIRouter:
    """The route that goes on with takes of this history."""
    routes = APIRouter(tags=["takes"])

    @routes.post("/v1/takes/{take_id}/continue", openapi_extra=CONTINUE_DOC, response_class=Response)
    async def continue_take(take_id: str, request: Request) -> Response:
        """Go on with a take whose ``can_continue`` is true; the answer is the whole take, as of a speech request.

        It is a take of its own, with a record of its own; the one that it goes on with stays as it is.
        """
        body = as_model(await read_json(request), ContinueBody)
        take, sound = await history.sound(take_id, request.state.sees)
        library, info = service.voices.library, service.host.engine().info
        begun = await to_thread.run_sync(begun_take, take, sound, library, info, body.max_new_tokens)
        again = await to_thread.run_sync(request_again, take, library)
        if again is None:
            raise CannotContinue(f"the clip in which the take {take_id} was spoken is not kept", "take_id")
        wanted = body.speech_body(again)
        origin = Origin(request.state.request_id, request.state.caller)
        work = service.speak(wanted.speech_request(), origin, begun=begun)
        return await spoken(request, work, wanted)

    return routes
