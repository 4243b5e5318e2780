"""POST /v1/audio/speech/batch: up to 32 texts at once; results are streamed as they finish, or sent together."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from engine import EngineError
from studio.api.body import as_model, read_json
from studio.api.error_responses import ApiError, describe, envelope
from studio.api.foreign import canonical_fields
from studio.api.openapi import answers, reads
from studio.api.routes.models import for_loaded_model
from studio.api.sending import until_hangup
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
        if body.stream:
            return StreamingResponse(batch.lines(), media_type="application/x-ndjson")
        return JSONResponse(await until_hangup(request, batch.whole()))

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
        self._places = asyncio.Semaphore(service.max_concurrent)

    async def results(self) -> AsyncGenerator[Result, None]:
        """The result of each item, in the order of completion."""
        tasks = [asyncio.create_task(self._result(index)) for index in range(len(self._items))]
        try:
            for done in asyncio.as_completed(tasks):
                yield await done
        finally:
            await end_tasks(*tasks)

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """The results and the summary as lines of JSON."""
        succeeded = 0
        async with aclosing(self.results()) as results:
            async for result in results:
                succeeded += result["status"] == "success"
                yield json.dumps(result).encode() + b"\n"
        yield json.dumps(self._summary(succeeded)).encode() + b"\n"

    async def whole(self) -> Result:
        """The results in the order of the items, and the summary."""
        async with aclosing(self.results()) as results:
            ordered = [result async for result in results]
        ordered.sort(key=lambda result: int(str(result["index"])))
        return self._summary(sum(result["status"] == "success" for result in ordered)) | {"results": ordered}

    def _summary(self, succeeded: int) -> Result:
        total = len(self._items)
        return {
            "id": self._id,
            "object": "audio.speech.batch",
            "total": total,
            "succeeded": succeeded,
            "failed": total - succeeded,
        }

    async def _result(self, index: int) -> Result:
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
            return head | {"status": "error"} | envelope(describe(error))
        take = speech.take
        return head | {
            "status": "success",
            "audio_data": base64.b64encode(audio).decode("ascii"),
            "media_type": speech.media_type,
            "sample_rate": speech.sample_rate,
            "seed": speech.seed,
            "voice": speech.voice,
            "finish_reason": take.finish_reason,
            "usage": usage(len(body.input), take.frames),
        }
