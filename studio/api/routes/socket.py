"""WS /v1/audio/speech/stream: text in as it is written, sentence after sentence out as sound; `input.cancel` stops it.

From the client:  {"type": "session.config", voice, response_format (pcm), … as in POST /v1/audio/speech}, once, first
                  {"type": "input.text", "text": …}    any number of times; a sentence is spoken once it is complete
                  {"type": "input.flush"}              what is held is spoken, complete or not
                  {"type": "input.cancel"}             what is spoken and what is held is dropped at once
                  {"type": "input.done"}               no more text; the session ends when all is spoken
From the server:  {"type": "audio.start", sentence_index, sentence_text, format, media_type, sample_rate, seed, voice}
                  binary messages, the bytes of the sentence's file
                  {"type": "audio.done", sentence_index, finish_reason} or {"type": "audio.cancelled", sentence_index}
                  {"type": "session.done", total_sentences} or {"type": "error", error}, and the end
"""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import anyio
from anyio import to_thread
from fastapi import APIRouter, WebSocket
from starlette.websockets import WebSocketDisconnect

from engine import EngineError, Reference
from studio.api.http.body import as_model, parse_object
from studio.api.http.error_responses import ApiError, describe, envelope
from studio.api.http.middleware import SEND_SECONDS
from studio.api.routes.models import with_model_as_voice
from studio.api.schemas.foreign import in_our_words
from studio.api.schemas.speech import SpeechOptions
from studio.api.written_text import WrittenText
from studio.errors import Cancelled, InvalidRequest, NothingToSay, StudioError
from studio.speech.request import Origin, new_request_id
from studio.speech.speech_service import Speech, SpeechService
from studio.speech.timing.timestamps import as_json

DEFAULTS: dict[str, Any] = {"response_format": "pcm"}


def socket_routes(service: SpeechService) -> APIRouter:
    """The route of the socket, on this service."""
    routes = APIRouter()

    @routes.websocket("/v1/audio/speech/stream")
    async def stream_speech(websocket: WebSocket) -> None:
        await websocket.accept()
        session = _Session(websocket, service)
        try:
            await session.run()
        except (WebSocketDisconnect, TimeoutError):
            return  # who left needs no answer

    return routes


class _Session:
    """One connection: a reader of messages and a speaker of sentences side by side."""

    def __init__(self, websocket: WebSocket, service: SpeechService) -> None:
        self._websocket = websocket
        self._service = service
        self._id = new_request_id()
        self._caller = websocket.scope["state"]["caller"]
        self._options = as_model(DEFAULTS, SpeechOptions)
        self._configurable = True
        self._text = WrittenText()
        self._history: list[Reference] = []
        self._spoken = 0
        self._cancels = 0

    async def run(self) -> None:
        """Until the session is done, refused or left. Raises WebSocketDisconnect, TimeoutError."""
        speaking = asyncio.create_task(self._speak())
        reading = asyncio.create_task(self._read())
        try:
            await asyncio.wait({speaking, reading}, return_when=asyncio.FIRST_COMPLETED)
            for task in (speaking, reading):
                if task.done():
                    task.result()
        except (ApiError, StudioError, EngineError) as error:
            told = describe(error)
            await self._send({"type": "error"} | envelope(told))
            await self._websocket.close(1008 if told.status < 500 else 1011)
        else:
            await self._send({"type": "session.done", "total_sentences": self._spoken})
            await self._websocket.close()
        finally:
            for task in (speaking, reading):
                task.cancel()
            await asyncio.gather(speaking, reading, return_exceptions=True)

    async def _read(self) -> None:
        """Messages as they come, to the last: a cancel may come after the text is done, and a hang-up at any time."""
        while True:
            message = await self._receive()
            kind = message.get("type")
            if kind == "input.cancel":
                self._drop()
            elif self._text.is_complete:
                raise InvalidRequest(f"{str(kind)[:80]!r} came after input.done", "type")
            elif kind == "session.config":
                await self._configure(message)
            elif kind == "input.text":
                self._configurable = False
                self._text.add(message.get("text"))
            elif kind == "input.flush":
                self._text.flush()
            elif kind == "input.done":
                self._text.complete()
            else:
                raise InvalidRequest(f"there is no message of type {str(kind)[:80]!r}", "type")

    async def _receive(self) -> dict[str, Any]:
        await asyncio.sleep(0)  # many small messages may be here already: between them others have their turn
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code") or 1005)
        if message.get("text") is None:
            raise InvalidRequest("messages must be JSON text, not binary", "type")
        return parse_object(message["text"].encode("utf-8", "surrogatepass"))

    async def _configure(self, message: dict[str, Any]) -> None:
        if not self._configurable:
            raise InvalidRequest("session.config may be sent only once, before any text", "type")
        self._configurable = False
        options = as_model(DEFAULTS | in_our_words(message), SpeechOptions)
        options = await with_model_as_voice(self._service, options)
        # Refuses what makes no sense before there is text.
        await to_thread.run_sync(self._service.check, options.request_for("a"))
        if options.timestamps:
            self._service.check_alignment()
        self._options = options

    def _drop(self) -> None:
        self._text.drop()
        self._cancels += 1
        self._service.register.cancel_all(f"{self._id}-")

    async def _speak(self) -> None:
        while (sentence := await self._text.next()) is not None:
            index, self._spoken = self._spoken, self._spoken + 1
            cancels = self._cancels
            try:
                request = self._options.request_for(sentence)
                origin = Origin(f"{self._id}-{index}", self._caller, patient=True)
                speech = await self._service.speak(request, origin, self._history)
                async with aclosing(speech):
                    if cancels != self._cancels:  # it came before the request was under way
                        raise Cancelled("the sentence was cancelled")
                    await self._send(_start(speech, index, sentence, request.format))
                    async for piece in speech.body:
                        await self._send(piece)
                reason = speech.take.finish_reason
                done: dict[str, object] = {"type": "audio.done", "sentence_index": index, "finish_reason": reason}
                if unit := self._options.timestamps:
                    done["timestamps"] = as_json(await speech.timestamps(unit))
                await self._send(done)
            except NothingToSay:
                self._spoken -= 1  # signs or tags alone: skipped, and not counted
            except Cancelled:
                await self._send({"type": "audio.cancelled", "sentence_index": index})

    async def _send(self, message: dict[str, object] | bytes) -> None:
        with anyio.fail_after(SEND_SECONDS):
            if isinstance(message, bytes):
                await self._websocket.send_bytes(message)
            else:
                await self._websocket.send_text(json.dumps(message))


def _start(speech: Speech, index: int, sentence: str, format_name: str) -> dict[str, object]:
    return {
        "type": "audio.start",
        "request_id": speech.request_id,
        "sentence_index": index,
        "sentence_text": sentence,
        "format": format_name,
        "media_type": speech.media_type,
        "sample_rate": speech.sample_rate,
        "seed": speech.seed,
        "voice": speech.voice,
    }
