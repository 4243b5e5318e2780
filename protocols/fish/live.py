"""WS /v1/tts/live: receives text while it is written, sends one continuous file per start. Messages are MessagePack.

From the client:  {event: "start", request: {format, reference_id, … as in POST /v1/tts}}
                  {event: "text", text}   any number of times; a sentence is generated once it is complete
                  {event: "flush"}        generate the held text, complete or not
                  {event: "stop"}         no more text; another start may follow on the same socket
From the server:  {event: "audio", audio}  with …/with-timestamp also content, alignment, chunk_seq and
                                          chunk_audio_offset_sec: one chunk for each sentence
                  {event: "finish", reason: "stop"} after each start, or {event: "finish", reason: "error", message}
                  and the end
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import anyio
from fastapi import APIRouter, WebSocket

from protocols.fish.fish_body import for_fish_client, unpacked
from protocols.fish.fish_speech import FishSpeech, Speakers, alignment_of
from protocols.fish.message_pack import pack
from protocols.live_speech import LivePiece, LiveSpeech
from speechtext.script import PART_BYTES
from studio.api.body import as_model
from studio.api.error_responses import ApiError
from studio.api.text_socket import TextSocket
from studio.errors import InvalidRequest
from studio.speech.request import SpeechRequest
from studio.speech.speech_service import SpeechService

TIMED = "/with-timestamp"
MAX_AUDIO = 60 * 1024
"""Bytes of audio in a message: clients refuse messages of a megabyte, and Fish Audio's have at most 64 KiB."""
MAX_STARTS = 4
"""Maximum number of queued starts."""
IDLE_SECONDS = 60.0
"""The socket is closed if no other start follows a finish for this long: some clients wait for the close."""


def live_routes(service: SpeechService) -> APIRouter:
    routes = APIRouter()

    async def live(websocket: WebSocket) -> None:
        await _Session(websocket, service).serve()

    for path in ("/v1/tts/live", "//v1/tts/live"):  # the second for base URLs with a trailing slash
        for end in ("", TIMED):
            routes.websocket(path + end)(live)
    return routes


class _Session(TextSocket):
    """Processes starts in order; ends after IDLE_SECONDS without one."""

    def __init__(self, websocket: WebSocket, service: SpeechService) -> None:
        super().__init__(websocket, service)
        self._is_timed = websocket.url.path.endswith(TIMED)
        self._writing: LiveSpeech | None = None
        """The start whose text is being received."""
        self._starts: asyncio.Queue[LiveSpeech] = asyncio.Queue()
        self._count = 0

    async def _refuse(self, error: ApiError) -> None:
        message = for_fish_client(error.message, error.param)
        await self._send(pack({"event": "finish", "reason": "error", "message": message}))

    async def _read(self) -> None:
        while True:
            message = unpacked(await self._receive("bytes", "binary MessagePack, not text", "event"))
            event = message.get("event")
            if event == "start":
                await self._start(message.get("request"))
            elif event not in ("text", "flush", "stop"):
                raise InvalidRequest(f"unknown event {str(event)[:80]!r}", "event")
            elif self._writing is None:
                raise InvalidRequest(f"the event {event} came before start", "event")
            elif event == "text":
                self._writing.text.add(message.get("text"))
            elif event == "flush":
                self._writing.text.flush()
            else:
                self._writing.text.complete()
                self._writing = None

    async def _start(self, request: object) -> None:
        if self._writing is not None:
            raise InvalidRequest("start came before the stop of the previous one", "event")
        if self._starts.qsize() >= MAX_STARTS:
            raise InvalidRequest(f"more than {MAX_STARTS} starts are queued", "event")
        if not isinstance(request, dict):
            raise InvalidRequest("start needs a request, as in POST /v1/tts", "request")
        options = as_model(request, FishSpeech)
        # Reports invalid options before there is text.
        await self._service.check(options.speech_request("a"), self._caller)
        if self._is_timed:
            self._service.check_alignment()
        self._count += 1
        speakers, limit, name = Speakers(), options.chunk_length or PART_BYTES, f"{self._id}-{self._count}"

        def request_for(sentence: str) -> SpeechRequest:
            return options.speech_request(speakers.continued(sentence))

        self._writing = LiveSpeech(self._service, request_for, limit, name, self._caller, self._is_timed)
        self._starts.put_nowait(self._writing)
        self._writing.text.add(options.text)

    async def _speak(self) -> None:
        speech = await self._starts.get()
        while True:
            async with aclosing(speech.pieces()) as pieces:
                async for piece in pieces:
                    await self._send_piece(piece)
            await self._send(pack({"event": "finish", "reason": "stop"}))
            with anyio.move_on_after(IDLE_SECONDS) as idle:
                speech = await self._starts.get()
            if idle.cancelled_caught:
                return

    async def _send_piece(self, piece: LivePiece) -> None:
        about: dict[str, Any] = {"event": "audio"}
        if self._is_timed and piece.sentence:
            alignment = alignment_of(piece.spoken.words, piece.spoken.end) if piece.spoken else None
            about |= {"content": piece.sentence, "alignment": alignment}
            about |= {"chunk_seq": piece.number, "chunk_audio_offset_sec": round(piece.start, 3)}
        for start in range(0, len(piece.audio) or 1, MAX_AUDIO):
            await self._send(pack(about | {"audio": piece.audio[start : start + MAX_AUDIO]}))
