"""Fish Audio's speech requests, and the routes that answer them from the first frame on; transcripts of recordings."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncGenerator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, BeforeValidator, Field

from audio.formats import MEDIA_TYPES
from engine import EngineError
from protocols.fish.fish_body import MESSAGE_PACK, is_true, read_fields, read_files, voice_of
from protocols.live_speech import dialogue_fields
from speechtext.word_times import Timed
from studio.api.body import as_model
from studio.api.field_types import FINITE, LOWER_CASE, NO_BOOLEAN, Seed, Temperature, TopP, Whole
from studio.api.openapi import answers, reads, reads_form
from studio.api.routes.speech_routes import SpeechResponse, speech_response
from studio.api.sending import until_hangup
from studio.api.sse import MEDIA_TYPE as SSE_TYPE
from studio.errors import REFUSALS, InvalidRequest
from studio.speech.delivery import Speech
from studio.speech.request import MAX_CLIPS, MAX_PART, MIN_PART, Origin, OwnClip, SpeechRequest
from studio.speech.speech_service import SpeechService
from studio.voices.clip_service import ClipService
from studio.voices.recordings import FORM_LIMIT, transcribed

MODEL_RATE = 44_100
"""Default rate of wav, pcm and mp3, in Hz."""
MP3_RATES = (64, 128, 192)
OPUS_RATES = (24, 32, 48, 64)
AUTOMATIC = -1000
"""Value of opus_bitrate for the encoder's default."""
OF_THE_SERVER = ("seed", "streaming", "use_memory_cache")
"""Fields that only fish-speech's own server knows; its default format is wav."""
MAX_SPEAKERS = 32
VoiceName = Annotated[str, Field(max_length=256)]
_SPEAKER = re.compile(r"<\|speaker:(\d{1,3})\|>")


class Prosody(BaseModel):
    """Speed factor and volume in dB."""

    speed: Annotated[float, FINITE, Field(ge=0.5, le=2), NO_BOOLEAN] | None = None
    volume: Annotated[float, FINITE, Field(ge=-20, le=20), NO_BOOLEAN] | None = None


class FishClip(BaseModel):
    """A reference clip (its file as bytes or base64, or its URL) and its transcript."""

    audio: bytes | str
    text: str
    speaker: int = 0
    """Set here, for clips in lists of several speakers."""

    def own_clip(self) -> OwnClip:
        """Raises InvalidRequest, InvalidClip."""
        if isinstance(self.audio, str) and not self.audio.startswith(("data:", "https:", "http:")):
            # Decoded together with other addresses.
            return OwnClip(f"data:;base64,{self.audio}", self.text, self.speaker)
        return OwnClip(self.audio, self.text, self.speaker)


def _by_speaker(value: Any) -> Any:
    """The clips in one list, each with its speaker: fish-speech also accepts a list of clips for each speaker."""
    if not isinstance(value, list) or len(value) > MAX_CLIPS:
        return value
    groups = value if value and all(isinstance(entry, list) for entry in value) else [value]
    return [
        clip | {"speaker": number} if isinstance(clip, dict) else clip
        for number, group in enumerate(groups)
        for clip in group
    ]


class FishSpeech(BaseModel):
    """A text and the options of its speech. Other fields are ignored, also those known to have no effect here; null
    means absent."""

    text: str = ""
    format: Annotated[Literal["wav", "pcm", "mp3", "opus", "flac"], LOWER_CASE] | None = None
    sample_rate: Whole | None = None
    mp3_bitrate: Whole | None = None
    opus_bitrate: Whole | None = None
    chunk_length: Annotated[int, Field(ge=MIN_PART, le=MAX_PART), NO_BOOLEAN] | None = None
    references: Annotated[list[FishClip] | None, BeforeValidator(_by_speaker)] = Field(None, max_length=MAX_CLIPS)
    reference_id: VoiceName | Annotated[list[VoiceName], Field(max_length=MAX_SPEAKERS)] | None = None
    normalize: bool | None = None
    prosody: Prosody | None = None
    temperature: Temperature | None = None
    top_p: TopP | None = None
    seed: Seed | None = None

    def speech_request(self, text: str | None = None, audio_format: str = "mp3") -> SpeechRequest:
        """``text`` replaces the request's own; ``audio_format`` is the default. Raises InvalidRequest."""
        chosen = self.format or audio_format
        sampling = {
            "seed": self.seed,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "chunk_length": self.chunk_length,
            # Every client sends true, but the model's card knows better which texts the model can read itself.
            "normalize": False if self.normalize is False else None,
        }
        prosody = self.prosody or Prosody()
        return SpeechRequest(
            **self._spoken_by(self.text if text is None else text),
            format=chosen,
            sample_rate=self.sample_rate or (None if chosen == "opus" else MODEL_RATE),
            bit_rate=self._bit_rate(chosen),
            speed=1.0 if prosody.speed is None else prosody.speed,
            volume=prosody.volume or 0.0,
            **{name: value for name, value in sampling.items() if value is not None},  # type: ignore[arg-type]
        )

    def _spoken_by(self, text: str) -> dict[str, Any]:
        """The text with its voice, its cast, or the request's clips. A reference_id takes precedence over clips."""
        if isinstance(self.reference_id, list) and len(self.reference_id) > 1:
            return _dialogue(text, [voice_of(name) for name in self.reference_id])
        name = self.reference_id[0] if isinstance(self.reference_id, list) and self.reference_id else self.reference_id
        if name:
            return {"text": text, "voice": voice_of(str(name))}
        clips = tuple(clip.own_clip() for clip in self.references or ())
        last = max((clip.speaker for clip in clips), default=0)
        if last and (spoken := max(map(int, _SPEAKER.findall(text)), default=0)) > last:
            raise InvalidRequest(f"speaker {spoken} has no clips: references has {last + 1} speakers", "references")
        return {"text": text, "clips": clips}

    def _bit_rate(self, audio_format: str) -> int | None:
        """Bits per second. Opus rates up to 1000 are kbit/s, as the SDKs send them. Raises InvalidRequest."""
        if audio_format == "mp3" and self.mp3_bitrate is not None:
            return _one_of("mp3_bitrate", self.mp3_bitrate, MP3_RATES)
        if audio_format == "opus" and self.opus_bitrate not in (None, AUTOMATIC):
            assert self.opus_bitrate is not None
            rate = self.opus_bitrate if self.opus_bitrate <= 1000 else self.opus_bitrate / 1000
            return _one_of("opus_bitrate", rate, OPUS_RATES)
        return None


class Speakers:
    """Tracks the speaker of a text that arrives in pieces: a tag applies to all sentences of its turn."""

    def __init__(self) -> None:
        self._tag = ""

    def continued(self, text: str) -> str:
        """The piece, with the current speaker's tag if it does not begin with one."""
        tagged = text if _SPEAKER.match(text.lstrip()) else self._tag + text
        tags = list(_SPEAKER.finditer(tagged))
        self._tag = tags[-1][0] if tags else ""
        return tagged


def default_format(fields: dict[str, Any], has_format_query: bool) -> str:
    """The default format: wav for requests of fish-speech's own clients, otherwise mp3."""
    return "wav" if has_format_query or any(name in fields for name in OF_THE_SERVER) else "mp3"


def _one_of(name: str, rate: float, allowed: tuple[int, ...]) -> int:
    if rate not in allowed:
        raise InvalidRequest(f"{name} must be one of {', '.join(map(str, allowed))} kbit/s, not {rate:g}", name)
    return int(rate) * 1000


def _dialogue(text: str, voices: list[str]) -> dict[str, Any]:
    """Convert a text with <|speaker:N|> before each turn to a dialogue; N is an index of ``voices``.

    Raises InvalidRequest.
    """
    before, *rest = _SPEAKER.split(text)
    turns = [(0, before), *zip(map(int, rest[::2]), rest[1::2], strict=True)]
    if (number := max(number for number, _ in turns)) >= len(voices):
        raise InvalidRequest(f"speaker {number} has no voice: reference_id names {len(voices)}", "reference_id")
    return dialogue_fields(turns, voices) | {"turn_gap": 0.0}


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
        work = transcribed(clips, request.state.caller, form.file("audio"), form.text("language"), "audio")
        recording = await until_hangup(request, work)
        heard = recording.transcription
        words = () if is_true(form, "ignore_timestamps") else heard.words
        segments = [{"text": word.word, "start": round(word.start, 3), "end": round(word.end, 3)} for word in words]
        languages = {"language": heard.language, "language_code": heard.language.partition("-")[0]}
        times = {"duration": round(recording.seconds, 3), "segments": segments}
        return JSONResponse({"text": heard.text} | times | languages)

    return routes
