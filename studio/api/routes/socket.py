"""WS /v1/audio/speech/stream: receives text while it is written, sends audio sentence by sentence.

From the client:  {"type": "session.config", voice, response_format (pcm), … as in POST /v1/audio/speech}, once, first
                  {"type": "input.text", "text": …}    any number of times; a sentence is generated once it is complete
                  {"type": "input.flush"}              generate the held text, complete or not
                  {"type": "input.cancel"}             cancel the current sentence and discard the held text
                  {"type": "input.done"}               no more text; the session ends when all is sent
From the server:  {"type": "audio.start", sentence_index, sentence_text, format, media_type, sample_rate, seed, voice}
                  binary messages, the bytes of the sentence's file
                  {"type": "audio.done", sentence_index, finish_reason} or {"type": "audio.cancelled", sentence_index}
                  {"type": "session.done", total_sentences} or {"type": "error", error}, and the end
"""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, WebSocket

from speechtext import NothingToSay
from studio.api.body import as_model, parse_object
from studio.api.error_responses import ApiError, envelope
from studio.api.foreign import canonical_fields
from studio.api.routes.models import for_loaded_model
from studio.api.speech_bodies import SpeechOptions
from studio.api.text_socket import TextSocket, WrittenText
from studio.errors import Cancelled, InvalidRequest
from studio.speech.conversation import ConversationHistory
from studio.speech.delivery import Speech
from studio.speech.request import Origin
from studio.speech.speech_service import SpeechService
from studio.speech.word_times import as_json

DEFAULTS: dict[str, Any] = {"response_format": "pcm"}


def socket_routes(service: SpeechService) -> APIRouter:
    routes = APIRouter()

    @routes.websocket("/v1/audio/speech/stream")
    async def stream_speech(websocket: WebSocket) -> None:
        await _Session(websocket, service).serve()

    return routes


class _Session(TextSocket):
    """The sentences of one text, each as a separate file."""

    def __init__(self, websocket: WebSocket, service: SpeechService) -> None:
        super().__init__(websocket, service)
        self._options = as_model(DEFAULTS, SpeechOptions)
        self._configurable = True
        self._text = WrittenText()
        self._history = ConversationHistory()
        self._sentences = 0
        self._cancels = 0

    async def _refuse(self, error: ApiError) -> None:
        await self._send_json({"type": "error"} | envelope(error))

    async def _finish(self) -> None:
        await self._send_json({"type": "session.done", "total_sentences": self._sentences})
        await super()._finish()

    async def _read(self) -> None:
        """Read messages to the end: input.cancel may follow input.done, and the client may disconnect at any time."""
        while True:
            text: str = await self._receive("text", "JSON text, not binary", "type")
            message = parse_object(text.encode("utf-8", "surrogatepass"))
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
                raise InvalidRequest(f"unknown message type {str(kind)[:80]!r}", "type")

    async def _configure(self, message: dict[str, Any]) -> None:
        if not self._configurable:
            raise InvalidRequest("session.config may be sent only once, before any text", "type")
        self._configurable = False
        fields = canonical_fields(message)
        if fields.get("cast") is not None:
            why = "a session speaks sentence by sentence in one voice, so it has no cast"
            raise InvalidRequest(f"{why}; send the dialogue to POST /v1/audio/speech", "cast")
        options = as_model(DEFAULTS | fields, SpeechOptions)
        if options.stream_format == "sse":
            raise InvalidRequest("a session sends audio as binary messages; leave stream_format out", "stream_format")
        options = await for_loaded_model(self._service, options, self._caller)
        # Reports invalid options before there is text.
        await self._service.check(options.request_for("a"), self._caller)
        if options.timestamps:
            self._service.check_alignment()
        self._options = options

    def _drop(self) -> None:
        self._text.drop()
        self._cancels += 1
        self._service.register.cancel_all(f"{self._id}-")

    async def _speak(self) -> None:
        while (sentence := await self._text.next()) is not None:
            index, self._sentences = self._sentences, self._sentences + 1
            cancels = self._cancels
            try:
                request = self._options.request_for(sentence)
                origin = Origin(f"{self._id}-{index}", self._caller, patient=True, live=True)
                speech = await self._service.speak(request, origin, self._history)
                async with aclosing(speech):
                    if cancels != self._cancels:  # cancelled before the request was registered
                        raise Cancelled("the sentence was cancelled")
                    await self._send_json(_start(speech, index, sentence, request.format))
                    async for piece in speech.body:
                        await self._send(piece)
                reason = speech.take.finish_reason
                done: dict[str, object] = {"type": "audio.done", "sentence_index": index, "finish_reason": reason}
                if unit := self._options.timestamps:
                    done["timestamps"] = as_json(await speech.timestamps(unit))
                await self._send_json(done)
            except NothingToSay:
                self._sentences -= 1  # only punctuation or tags: not counted
            except Cancelled:
                await self._send_json({"type": "audio.cancelled", "sentence_index": index})

    async def _send_json(self, message: dict[str, object]) -> None:
        await self._send(json.dumps(message))


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
