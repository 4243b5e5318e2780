"""Text to speech and dialogues for ElevenLabs' clients: as a file, or as JSON with the times of the characters."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator
from dataclasses import astuple, dataclass
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from audio.formats import MEDIA_TYPES
from engine import EngineError
from protocols.elevenlabs.characters import Alignments, Character, VoiceSegments, in_seconds
from protocols.elevenlabs.eleven_names import FORMATS, PREFIX
from protocols.elevenlabs.eleven_speech import ElevenDialogue, ElevenSpeech
from studio.api.body import JsonBody
from studio.api.openapi import answers
from studio.api.routes.speech_routes import SpeechResponse, speech_response
from studio.api.sending import until_hangup
from studio.errors import REFUSALS
from studio.speech.delivery import Speech
from studio.speech.request import Origin, SpeechRequest
from studio.speech.speech_service import SpeechService
from studio.speech.word_times import without_names

VOICE = "/v1/text-to-speech/{voice_id}"
SOUND = answers(*sorted({MEDIA_TYPES[name] for name, _, _ in FORMATS.values()}))
TIMED = answers("application/json")


@dataclass(frozen=True, slots=True)
class Delivery:
    """The query of every route."""

    output_format: Annotated[str | None, Query(description=f"{', '.join(FORMATS)}; absent: mp3_44100_128")] = None
    enable_logging: Annotated[bool, Query(description="false: the take is not stored in the library.")] = True


Delivered = Annotated[Delivery, Depends()]


class ElevenSpeechRoutes:
    """The routes that send speech. Answers start with the first frame; disconnecting cancels them."""

    def __init__(self, service: SpeechService) -> None:
        self._service = service

    def router(self) -> APIRouter:
        routes = APIRouter(prefix=PREFIX, tags=["elevenlabs"])
        dialogue = "/v1/text-to-dialogue"
        for stream in ("", "/stream"):
            routes.post(f"{VOICE}{stream}", openapi_extra=SOUND, response_class=Response)(self.convert)
            routes.post(f"{dialogue}{stream}", openapi_extra=SOUND, response_class=Response)(self.converse)
            timed = f"{stream}/with-timestamps"
            routes.post(f"{VOICE}{timed}", openapi_extra=TIMED, response_class=Response)(self.convert_timed)
            routes.post(f"{dialogue}{timed}", openapi_extra=TIMED, response_class=Response)(self.converse_timed)
        return routes

    async def convert(
        self, voice_id: str, body: JsonBody[ElevenSpeech], request: Request, delivery: Delivered
    ) -> Response:
        """Generate speech."""
        return await self._send(request, body.request_in(voice_id, *astuple(delivery)), len(body.text))

    async def convert_timed(
        self, voice_id: str, body: JsonBody[ElevenSpeech], request: Request, delivery: Delivered
    ) -> Response:
        """Generate speech with the times of all characters: one JSON object with the file in base64; or lines of JSON,
        in which the times of a passage come once it is generated."""
        return await self._send(request, body.request_in(voice_id, *astuple(delivery)), len(body.text), is_timed=True)

    async def converse(self, body: JsonBody[ElevenDialogue], request: Request, delivery: Delivered) -> Response:
        """Generate a dialogue."""
        return await self._send(request, body.request_in(*astuple(delivery)), body.size)

    async def converse_timed(self, body: JsonBody[ElevenDialogue], request: Request, delivery: Delivered) -> Response:
        """Generate a dialogue with the times of all characters, and of its turns as ``voice_segments``: one JSON
        object, or lines of JSON."""
        dialogue = body.request_in(*astuple(delivery))
        segments = await to_thread.run_sync(body.segments, dialogue)
        return await self._send(request, dialogue, body.size, True, segments)

    async def _send(
        self,
        request: Request,
        wanted: SpeechRequest,
        characters: int,
        is_timed: bool = False,
        segments: VoiceSegments | None = None,
    ) -> Response:
        if is_timed:
            self._service.check_alignment()
        origin = Origin(request.state.request_id, request.state.caller, live=True)
        speech = await until_hangup(request, self._service.speak(wanted, origin))
        if not is_timed:
            return _answer(speech, speech.body, speech.media_type.partition(";")[0], characters)
        send = _lines if "/stream/" in request.url.path else _object
        return _answer(speech, send(speech, segments), "application/json", characters)


def _answer(speech: Speech, content: AsyncGenerator[bytes, None], media_type: str, characters: int) -> SpeechResponse:
    answer = speech_response(speech, content, media_type)
    answer.headers["request-id"] = answer.headers["history-item-id"] = speech.request_id
    answer.headers["character-cost"] = answer.headers["x-character-count"] = str(characters)
    return answer


async def _timed(speech: Speech) -> AsyncGenerator[tuple[bytes, list[Character], list[Character]], None]:
    """Pieces of the file, and the characters as written and as read whose times are known with them.

    If words cannot be aligned, the audio is complete without their times.
    """
    is_dialogue = speech.request.cast is not None
    alignments = Alignments(await to_thread.run_sync(without_names, speech.request.text, is_dialogue))
    is_aligned = True

    async def known() -> tuple[list[Character], list[Character]]:
        nonlocal is_aligned
        try:
            if is_aligned and (spoken := await speech.spoken()) is not None:
                return await to_thread.run_sync(alignments.add, spoken)
        except (EngineError, *REFUSALS):
            is_aligned = False
        return [], []

    async for piece in speech.body:
        yield piece, *await known()
    written, read = await known()
    yield b"", [*written, *(alignments.rest() if is_aligned else ())], read


async def _lines(speech: Speech, segments: VoiceSegments | None) -> AsyncGenerator[bytes, None]:
    async for audio, written, read in _timed(speech):
        if audio or written or read:
            line = {"audio_base64": base64.b64encode(audio).decode("ascii")} | _times(written, read, segments)
            yield _compact(line) + b"\n"


async def _object(speech: Speech, segments: VoiceSegments | None) -> AsyncGenerator[bytes, None]:
    """The object piece by piece: the audio of a long text is never in memory as a whole."""
    all_written, all_read, rest = list[Character](), list[Character](), b""
    yield b'{"audio_base64":"'
    async for audio, written, read in _timed(speech):
        all_written += written
        all_read += read
        rest += audio
        size = len(rest) - len(rest) % 3  # so that the pieces can be joined
        yield base64.b64encode(rest[:size])
        rest = rest[size:]
    yield base64.b64encode(rest) + b'",' + _compact(_times(all_written, all_read, segments))[1:]


def _times(written: list[Character], read: list[Character], segments: VoiceSegments | None) -> dict[str, Any]:
    times: dict[str, Any] = {"alignment": in_seconds(written), "normalized_alignment": in_seconds(read)}
    return times | ({"voice_segments": segments.add(written)} if segments else {})


def _compact(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
