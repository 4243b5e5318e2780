"""POST /v1/takes/{take_id}/mend: one sentence of a take is spoken anew, and the take with it is a new one."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from studio.api.http.body import as_model, read_json
from studio.api.http.hangup import until_hangup
from studio.api.http.openapi import reads
from studio.api.schemas.speech import MendTakeBody
from studio.speech.request import Origin
from studio.takes.mending import TakeMender


def mending_routes(mender: TakeMender) -> APIRouter:
    """The route that mends takes."""
    routes = APIRouter(tags=["takes"])

    @routes.post("/v1/takes/{take_id}/mend", status_code=201, openapi_extra=reads(MendTakeBody))
    async def mend_take(take_id: str, request: Request) -> JSONResponse:
        """Speak one sentence of a take anew, in the same voice, and join it without a step.

        The answer, once that is spoken, is the record of the new take, which ``mends`` the one before; that stays.
        """
        body = as_model(await read_json(request), MendTakeBody)
        origin = Origin(request.state.request_id, request.state.caller)
        work = mender.mend(take_id, body.start, body.end, request.state.sees, origin)
        return JSONResponse(await until_hangup(request, work), 201)

    return routes
