"""Speech of texts in progress for ElevenLabs' clients: one text for each socket, or several contexts on one socket.

WS /v1/text-to-speech/{voice_id}/stream-input
  From the client:  {text: " ", voice_settings, generation_config, xi-api-key}  first
                    {text, flush}     any number of times; a sentence is generated once it is complete
                    {text: ""}        no more text
  From the server:  {audio, alignment, normalizedAlignment, isFinal: null}, then {audio: null, isFinal: true}
WS /v1/text-to-speech/{voice_id}/multi-stream-input
  From the client:  the same with context_id. An empty text keeps a context, or all of them, from ending;
                    {context_id, close_context: true} ends the text of one, {close_socket: true} that of all
  From the server:  the same with contextId
"""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, WebSocket
from pydantic import BaseModel, Field

from engine import EngineError
from protocols.elevenlabs.eleven_names import PREFIX, for_eleven_client, voice_of
from protocols.elevenlabs.eleven_speech import Alignments, Character, ElevenSpeech, in_milliseconds, with_pauses
from protocols.live_speech import LivePiece, LiveSpeech
from speechtext.script import PART_BYTES
from studio.api.body import as_model, parse_object
from studio.api.error_responses import ApiError, describe
from studio.api.field_types import FINITE, NO_BOOLEAN
from studio.api.text_socket import TextSocket
from studio.errors import REFUSALS, InvalidRequest
from studio.speech.request import MAX_PART, MIN_PART, SpeechRequest
from studio.speech.speech_service import SpeechService

MAX_CONTEXTS = 16
"""Contexts of a socket that have not ended; ElevenLabs allows 5, and clients need one for each turn still playing."""
MAX_NAME = 256  # characters of a context's id
ONLY = "default"  # the context of messages without one
KEYS = ("xi-api-key", "xi_api_key", "authorization")  # where a first message may have its key
IN_A_FIRST_MESSAGE = ("voice_settings", "generation_config", "pronunciation_dictionary_locators")


class Schedule(BaseModel):
    """When text is generated: only the last step counts."""

    chunk_length_schedule: list[Annotated[float, FINITE, NO_BOOLEAN]] | None = Field(None, max_length=100)


class SocketOptions(ElevenSpeech):
    """Fields of the address's query, and of the first message of a context. Others are ignored."""

    text: str = ""
    output_format: str | None = None
    enable_logging: bool = True
    auto_mode: bool = False
    sync_alignment: bool = False
    inactivity_timeout: Annotated[float, FINITE, Field(ge=1, le=180)] = 20.0
    generation_config: Schedule | None = None

    def request_for(self, voice_id: str, sentence: str) -> SpeechRequest:
        """Raises InvalidRequest."""
        spoken = {"text": sentence, "voice": voice_of(voice_id)}
        return self.speech_request(spoken, self.output_format, self.enable_logging)

    @property
    def limit(self) -> int:
        """Characters after which an incomplete sentence is generated."""
        steps = self.generation_config.chunk_length_schedule if self.generation_config else None
        return round(min(max(steps[-1], MIN_PART), MAX_PART)) if steps else PART_BYTES


class _ContextRefused(InvalidRequest):
    """A context cannot be opened; the others continue."""


class _Context:
    """A text in progress. It ends by itself after ``seconds`` without a message."""

    def __init__(self, name: str, speech: LiveSpeech, seconds: float) -> None:
        self.name, self.speech, self.text, self._seconds = name, speech, speech.text, seconds
        self._timer = asyncio.get_running_loop().call_later(seconds, self.complete)

    def keep(self) -> None:
        if not self.text.is_complete:
            self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self.complete)

    def complete(self) -> None:
        if not self.text.is_complete:
            self.text.complete()
            self.release()

    def release(self) -> None:
        self._timer.cancel()


def eleven_sockets(service: SpeechService) -> APIRouter:
    routes = APIRouter(prefix=PREFIX)

    @routes.websocket("/v1/text-to-speech/{voice_id}/stream-input")
    @routes.websocket("/v1/text-to-speech/{voice_id}/multi-stream-input")
    async def stream_input(websocket: WebSocket, voice_id: str) -> None:
        await _Session(websocket, service, voice_id).serve()

    return routes


class _Session(TextSocket):
    """Contexts are spoken at the same time, as an interrupted one must not delay its successor."""

    def __init__(self, websocket: WebSocket, service: SpeechService, voice_id: str) -> None:
        super().__init__(websocket, service)
        self._voice_id, self._is_multi = voice_id, websocket.url.path.endswith("/multi-stream-input")
        in_the_query = SocketOptions.model_fields.keys() - {"text", *IN_A_FIRST_MESSAGE}
        self._query = {name: value for name, value in websocket.query_params.items() if name in in_the_query and value}
        self._options = SocketOptions()
        self._is_aligned = True
        self._contexts: dict[str, _Context] = {}  # those that have not ended
        self._opened: asyncio.Queue[_Context | None] = asyncio.Queue()
        """Contexts to speak; None after the last."""
        self._is_closing = False  # whether no other context may follow
        self._count = 0

    async def _refuse(self, error: ApiError, name: str | None = None) -> None:
        """``name``: of the context that is refused; None: the whole socket is."""
        words = for_eleven_client(error.message)
        code = 1008 if error.status < 500 else 1011
        await self._send_json({"message": words, "error": words, "code": code}, name)

    def _close_reason(self, error: ApiError) -> str:
        """The SDK raises it if it was still sending."""
        return for_eleven_client(error.message).encode()[:123].decode(errors="ignore")

    async def _finish(self) -> None:
        if not self._is_multi:
            await self._send_json({"audio": None, "isFinal": True})
        await super()._finish()

    async def _read(self) -> None:
        message = await self._next()
        keys = (message.get(name) for name in KEYS)
        self._sign_in(next((key.removeprefix("Bearer ") for key in keys if isinstance(key, str)), ""))
        self._options = as_model(self._query, SocketOptions)
        # Reports invalid options before there is text.
        probe = self._options.request_for(self._voice_id, "a")
        await self._service.check(probe, self._caller)
        self._is_aligned = not self._service.host.engine().info.cannot_align
        while True:
            try:
                self._handle(message)
            except _ContextRefused as error:
                await self._refuse(describe(error), self._name_in(message))
            message = await self._next()

    async def _next(self) -> dict[str, Any]:
        text: str = await self._receive("text", "JSON text, not binary", "text")
        return parse_object(text.encode("utf-8", "surrogatepass"))

    def _name_in(self, message: dict[str, Any]) -> str | None:
        """The context of a message; None if it has none. Raises InvalidRequest."""
        name = message.get("context_id") if self._is_multi else ONLY
        if name is not None and (not isinstance(name, str) or len(name) > MAX_NAME):
            raise InvalidRequest(f"context_id must be a string of at most {MAX_NAME} characters", "context_id")
        return name

    def _handle(self, message: dict[str, Any]) -> None:
        """Raises InvalidRequest, also for a context that is refused."""
        text, name = message.get("text"), self._name_in(message)
        if not isinstance(text, str | None):
            raise InvalidRequest("text must be a string", "text")
        if text is None and not any(name in message for name in ("flush", "close_context", "close_socket")):
            raise InvalidRequest("a message needs text, flush, close_context or close_socket", "text")
        if self._is_multi and message.get("close_socket") is True:
            self._close()
        elif self._is_multi and name is None and not text:
            for kept in self._contexts.values():
                kept.keep()
        else:
            self._write(name or ONLY, message, text or "")

    def _write(self, name: str, message: dict[str, Any], words: str) -> None:
        context = self._contexts.get(name)
        if words and context is not None and context.text.is_complete:
            raise _ContextRefused(f"the text of {name!r} has ended; more of it may follow only after isFinal", "text")
        if context is None and (words or not self._is_multi):
            context = self._open(name, message)
        if context is None or context.text.is_complete:
            return
        context.keep()
        # A blank alone opens a context, or keeps it.
        if words and (context.text.is_holding or not words.isspace()):
            context.text.add(words)
        if message.get("flush") is True or self._options.auto_mode:
            context.text.flush()
        if message.get("close_context") is True if self._is_multi else message.get("text") == "":
            context.complete()

    def _open(self, name: str, message: dict[str, Any]) -> _Context:
        """Raises InvalidRequest, also for a context that is refused."""
        if self._is_closing:
            raise _ContextRefused("no context can be opened after the end of the text", "text")
        if len(self._contexts) >= MAX_CONTEXTS:
            problem = f"{MAX_CONTEXTS} contexts of this socket have not ended; close one with close_context"
            raise _ContextRefused(problem, "context_id")
        given = {field: message[field] for field in IN_A_FIRST_MESSAGE if field in message}
        options = as_model(self._query | given, SocketOptions)
        self._count += 1
        request_for = partial(options.request_for, self._voice_id)
        request_id = f"{self._id}-{self._count}"
        speech = LiveSpeech(self._service, request_for, options.limit, request_id, self._caller, self._is_aligned)
        context = self._contexts[name] = _Context(name, speech, options.inactivity_timeout)
        self._opened.put_nowait(context)
        if not self._is_multi:
            self._is_closing = True
            self._opened.put_nowait(None)
        return context

    def _close(self) -> None:
        for context in self._contexts.values():
            context.complete()
        if not self._is_closing:
            self._is_closing = True
            self._opened.put_nowait(None)

    async def _speak(self) -> None:
        try:
            async with asyncio.TaskGroup() as speakers:
                while (context := await self._opened.get()) is not None:
                    speakers.create_task(self._speak_context(context))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            for context in self._contexts.values():
                context.release()

    async def _speak_context(self, context: _Context) -> None:
        try:
            async with aclosing(context.speech.pieces()) as pieces:
                async for piece in pieces:
                    await self._send_piece(context.name, piece)
        except (*REFUSALS, EngineError) as error:
            if not self._is_multi:
                raise
            await self._refuse(describe(error), context.name)
        finally:
            context.release()
            del self._contexts[context.name]
        if self._is_multi:
            await self._send_json({"isFinal": True}, context.name)

    async def _send_piece(self, name: str, piece: LivePiece) -> None:
        written, read = list[Character](), list[Character]()
        if piece.spoken is not None:
            alignments = Alignments(with_pauses(piece.sentence))
            written, read = alignments.add(piece.spoken)
            # The space separates the sentence from the next one.
            end = [Character(" ", piece.spoken.end, piece.spoken.end)]
            written, read = [*written, *alignments.rest(), *end], read + end
        offset = piece.start if self._options.sync_alignment else 0.0
        message = {
            "audio": base64.b64encode(piece.audio).decode("ascii"),
            "isFinal": None,
            "alignment": in_milliseconds(written, offset),
            "normalizedAlignment": in_milliseconds(read, offset),
        }
        await self._send_json(message, name)

    async def _send_json(self, message: dict[str, Any], name: str | None = None) -> None:
        """``name``: of the context that the message is about."""
        await self._send(json.dumps(message | ({"contextId": name} if self._is_multi and name is not None else {})))
