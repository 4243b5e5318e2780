"""POST /v1/tts and its stream with timestamps, which answer from the first frame on, and POST /v1/asr."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from audio.formats import MEDIA_TYPES
from engine import EngineError
from protocols.fish.fish_body import MESSAGE_PACK, is_true, read_fields, read_files
from protocols.fish.fish_speech import FishSpeech, default_format
from speechtext.word_times import Timed
from studio.api.body import as_model
from studio.api.openapi import answers, reads, reads_form
from studio.api.routes.speech_routes import SpeechResponse, speech_response
from studio.api.sending import until_hangup
from studio.api.sse import MEDIA_TYPE as SSE_TYPE
from studio.api.upload import Form
from studio.errors import REFUSALS
from studio.speech.delivery import Speech
from studio.speech.request import Origin
from studio.speech.speech_service import SpeechService
from studio.voices.clip_service import ClipService
from studio.voices.recordings import FORM_LIMIT, transcribed

READS = reads(FishSpeech, MESSAGE_PACK)
DOC = READS | answers(*(MEDIA_TYPES[name] for name in ("mp3", "wav", "pcm", "opus")))
TIMED_DOC = READS | answers("text/event-stream")


def tts_routes(service: SpeechService) -> APIRouter:
    routes = APIRouter(tags=["fish audio"])

    async def begin(request: Request) -> tuple[Speech, FishSpeech]:
        fields = await read_fields(request)
        body = as_model(fields, FishSpeech)
        speech = body.speech_request(audio_format=default_format(fields, "format" in request.query_params))
        work = service.speak(speech, Origin(request.state.request_id, request.state.caller, live=True))
        return await until_hangup(request, work), body

    @routes.post("//v1/tts", include_in_schema=False)  # for base URLs with a trailing slash
    @routes.post("/v1/tts", openapi_extra=DOC, response_class=Response)
    async def create_tts(request: Request) -> SpeechResponse:
        """Generate speech. The answer starts with the first frame; disconnecting cancels it."""
        speech, _ = await begin(request)
        return speech_response(speech, speech.body, speech.media_type.partition(";")[0])

    @routes.post("//v1/tts/stream/with-timestamp", include_in_schema=False)
    @routes.post("/v1/tts/stream/with-timestamp", openapi_extra=TIMED_DOC, response_class=Response)
    async def stream_timed(request: Request) -> SpeechResponse:
        """Generate speech as events with base64 audio; the last one has the word times."""
        service.check_alignment()
        speech, body = await begin(request)
        return speech_response(speech, _events(speech, body.text), SSE_TYPE)

    return routes


async def _events(speech: Speech, text: str) -> AsyncGenerator[bytes, None]:
    """Unnamed events; their audio forms one file. After an error the stream ends without its last event."""
    async for piece in speech.body:
        yield _event(piece, text, None)
    try:
        alignment = alignment_of(await speech.timestamps("word"), speech.take.audio_s / speech.request.speed)
    except (EngineError, *REFUSALS):
        alignment = None  # the audio is complete, but its words could not be aligned
    yield _event(b"", text, alignment)


def alignment_of(words: list[Timed], seconds: float) -> dict[str, Any]:
    """Word times in Fish Audio's form, in seconds from the start of the audio."""
    segments = [{"text": word.text, "start": round(word.start, 3), "end": round(word.end, 3)} for word in words]
    return {"segments": segments, "audio_duration": round(seconds, 3)}


def _event(audio: bytes, text: str, alignment: dict[str, Any] | None) -> bytes:
    event = {
        "audio_base64": base64.b64encode(audio).decode("ascii"),
        "content": text,
        "alignment": alignment,
        "chunk_seq": 0,
        "chunk_audio_offset_sec": 0.0,
    }
    return f"data: {json.dumps(event, separators=(',', ':'))}\n\n".encode()


RECORDING = reads_form("audio", "language", "ignore_timestamps", required=("audio",), more_types=(MESSAGE_PACK,))


def asr_routes(clips: ClipService) -> APIRouter:
    """The route, on this service's recogniser."""
    routes = APIRouter(tags=["fish audio"])

    @routes.post("/v1/asr", openapi_extra=RECORDING)
    async def transcribe(request: Request) -> JSONResponse:
        """Transcribe ``audio`` (1 s to 5 minutes), with word times unless ``ignore_timestamps`` is true."""
        form = await read_files(request, FORM_LIMIT, "audio", 1)
        return JSONResponse(await until_hangup(request, _transcribe(form, clips, request.state.caller)))

    return routes


async def _transcribe(form: Form, clips: ClipService, caller: str) -> dict[str, Any]:
    recording = await transcribed(clips, caller, form.file("audio"), form.text("language"), "audio")
    heard = recording.transcription
    words = () if is_true(form, "ignore_timestamps") else heard.words
    return {
        "text": heard.text,
        "duration": round(recording.seconds, 3),
        "segments": [{"text": word.word, "start": round(word.start, 3), "end": round(word.end, 3)} for word in words],
        "language": heard.language,
        "language_code": heard.language.partition("-")[0],
    }
