"""POST /v1/audio/speech/batch: up to 32 texts at once; results are streamed as they finish, or sent together."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, aclosing, suppress
from tempfile import SpooledTemporaryFile
from typing import Any

from anyio import CancelScope, to_thread
from fastapi import APIRouter, Request
from fastapi.responses import Response

from engine import EngineError
from studio.api.body import as_model, read_json
from studio.api.error_responses import ApiError, describe, envelope, unexpected
from studio.api.foreign import canonical_fields
from studio.api.openapi import answers, reads
from studio.api.routes.models import for_loaded_model
from studio.api.routes.speech_routes import SpeechResponse
from studio.api.sending import PIECE
from studio.api.speech_bodies import BatchBody, SpeechBody
from studio.api.sse import usage
from studio.errors import REFUSALS, LibraryUnavailable, TooManyRequests
from studio.library.disk_reserve import check_spare
from studio.speech.delivery import Speech
from studio.speech.request import Origin, SpeechRequest
from studio.speech.speech_service import SpeechService
from studio.speech.word_times import as_json
from studio.supervisor import end_tasks
from studio.work import in_threads, run_uninterrupted

log = logging.getLogger(__name__)
BATCH_DOC = reads(BatchBody) | answers("application/json", "application/x-ndjson")

Result = dict[str, Any]
File = SpooledTemporaryFile[bytes]


def batch_routes(service: SpeechService) -> APIRouter:
    routes = APIRouter(tags=["speech"])

    @routes.post("/v1/audio/speech/batch", openapi_extra=BATCH_DOC)
    async def create_batch(request: Request) -> Response:
        """Generate many texts; one that fails has a result with an error. ``stream: true`` sends one line of JSON per
        result, in the order of completion."""
        fields = await read_json(request, canonical_fields)
        body = as_model(fields, BatchBody)
        batch = _Batch(service, fields, request.state.request_id, request.state.caller)
        media_type = "application/x-ndjson" if body.stream else "application/json"
        return SpeechResponse(batch.pieces(bool(body.stream)), media_type, batch.close)

    return routes


class _Batch:
    """The items of one request; always `close` it. Audio waits in temporary files on the library's disk and is sent
    piece by piece: it would fill the memory, and its JSON as a whole would hold up the event loop."""

    def __init__(self, service: SpeechService, fields: dict[str, Any], batch_id: str, caller: str) -> None:
        """``fields``: of a BatchBody, by canonical names. Raises NotReady, Unavailable."""
        self._service = service
        self._shared = {name: value for name, value in fields.items() if name not in ("items", "stream")}
        self._items: list[dict[str, Any]] = fields["items"]
        self._id = batch_id
        self._caller = caller
        self._places = asyncio.Semaphore(service.max_concurrent)
        self._files = ExitStack()
        self._tasks = [asyncio.create_task(self._result(index)) for index in range(len(self._items))]

    async def pieces(self, is_streamed: bool) -> AsyncGenerator[bytes, None]:
        """Results in the order of completion and the summary as lines; or one object, in the order of the items."""
        total, succeeded = len(self._tasks), 0
        yield b"" if is_streamed else b'{"results": ['
        results = asyncio.as_completed(self._tasks) if is_streamed else map(asyncio.shield, self._tasks)
        for number, done in enumerate(results, 1):
            result, audio = await done
            succeeded += audio is not None
            async for piece in in_threads(_json(result, audio)):
                yield piece
            yield b"\n" if is_streamed else b", " if number < total else b"], "
        numbers = {"total": total, "succeeded": succeeded, "failed": total - succeeded}
        summary = json.dumps({"id": self._id, "object": "audio.speech.batch"} | numbers).encode()
        yield summary + b"\n" if is_streamed else summary[1:]

    async def close(self) -> None:
        """Cancel what is not finished, and remove the files."""
        with CancelScope(shield=True), suppress(OSError):  # of a file that a full disk did not take
            await end_tasks(*self._tasks)
            await to_thread.run_sync(self._files.close)

    async def _begun(self, request: SpeechRequest, origin: Origin) -> Speech:
        """An item that the caller's limits refuse waits until his other requests leave room: the batch has begun."""
        while True:
            try:
                return await self._service.speak(request, origin)
            except TooManyRequests as error:
                await asyncio.sleep(error.retry_after)

    async def _kept(self, body: AsyncGenerator[bytes, None]) -> File:
        """The audio in a file. Raises LibraryUnavailable, also if the disk would have no room for others' work."""
        home = self._service.voices.library.home
        file = SpooledTemporaryFile(PIECE, dir=str(home))  # noqa: SIM115
        self._files.callback(file.close)

        def write(piece: bytes) -> None:
            if file.tell() + len(piece) > PIECE:
                check_spare(home)
            file.write(piece)

        try:
            async for piece in body:
                await run_uninterrupted(write, piece)
        except OSError as error:
            raise LibraryUnavailable(f"the audio cannot be written to the library's disk: {error.strerror}") from error
        return file

    async def _result(self, index: int) -> tuple[Result, File | None]:
        head: Result = {"index": index, "id": f"{self._id}-{index}"}
        try:
            body = as_model(self._shared | canonical_fields(self._items[index]), SpeechBody)
            async with self._service.in_turn(self._places):
                body = await for_loaded_model(self._service, body, self._caller)
                if body.timestamps:
                    self._service.check_alignment()
                origin = Origin(head["id"], self._caller, patient=True, live=body.live)
                speech = await self._begun(body.speech_request(), origin)
                async with aclosing(speech):
                    audio = await self._kept(speech.body)
                if body.timestamps:
                    head["timestamps"] = as_json(await speech.timestamps(body.timestamps))
        except (ApiError, *REFUSALS, EngineError) as error:
            return head | {"status": "error"} | envelope(describe(error)), None
        except Exception:
            log.exception("request %s failed", head["id"])
            return head | {"status": "error"} | envelope(unexpected(head["id"])), None
        return head | {
            "status": "success",
            "media_type": speech.media_type,
            "sample_rate": speech.sample_rate,
            "seed": speech.seed,
            "voice": speech.voice,
            "finish_reason": speech.take.finish_reason,
            "usage": usage(len(body.input), speech.take.frames),
        }, audio


def _json(result: Result, audio: File | None) -> Generator[bytes, None, None]:
    """A result as JSON, in pieces. Blocking; the audio's file is closed."""
    yield json.dumps(result).encode()[:-1]
    if audio is not None:
        yield b', "audio_data": "'
        with audio:
            audio.seek(0)
            while piece := audio.read(PIECE // 3 * 3):  # so that the pieces can be joined
                yield base64.b64encode(piece)
        yield b'"'
    yield b"}"
