"""The wire format of POST /v1/audio/speech: its fields, and how they become a SpeechRequest."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from studio.audio.read import MAX_BYTES
from studio.errors import InvalidClip, InvalidRequest
from studio.speech import DEFAULT_FRAMES, DEFAULT_SAMPLING, MAX_FRAMES, MAX_INPUT, SpeechRequest

MAX_SEED = 2**63 - 1

MODEL_ALIASES = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts", "gpt-4o-mini-tts-2025-12-15")
"""OpenAI's model names, hard-coded in many clients; each means the model that is loaded."""


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number, not a boolean")
    return value


Number = Annotated[float, BeforeValidator(_no_boolean), Field(allow_inf_nan=False)]
Whole = Annotated[int, BeforeValidator(_no_boolean)]


class VoiceRef(BaseModel):
    """OpenAI's form of a custom voice."""

    id: str = Field(max_length=256)


class SpeechBody(BaseModel):
    """Unknown fields are ignored, null means absent; what is known but not supported is refused by name."""

    model_config = ConfigDict(extra="ignore")

    model: str | None = Field(
        None, max_length=256, description="An id of GET /v1/models, or one of OpenAI's TTS models."
    )
    input: str = Field(description=f"The text to speak, at most {MAX_INPUT} characters.")
    voice: str | VoiceRef | None = Field(
        None,
        description="A voice of GET /v1/audio/voices or one of OpenAI's; absent: the default voice.",
    )
    response_format: Literal["mp3", "opus", "aac", "flac", "wav", "pcm"] | None = Field(
        None, description="mp3 (the default), opus in Ogg, aac (ADTS), flac, wav, or pcm (16 bit, little-endian, mono)."
    )
    sample_rate: Whole | None = Field(
        None, description="Hz; absent: 24000 for pcm, 48000 for opus, the model's own for all others."
    )
    stream_format: Literal["audio", "sse"] | None = Field(
        None, description="audio: the file's bytes while they are made; sse: the same in base64, as events."
    )
    stream: bool | None = Field(None, description="true without a stream_format means sse.")
    speed: Annotated[Number, Field(ge=1, le=1)] | None = Field(None, description="Only 1 is supported.")
    instructions: str | None = Field(
        None, max_length=4096, description="Ignored: the model takes none; it is never spoken."
    )
    ref_audio: str | None = Field(
        None,
        description="A clip of the voice to speak in, 1 to 30 s, as a data: URL in base64; needs ref_text.",
    )
    ref_text: str | None = Field(None, description="The words spoken in ref_audio.")
    seed: Annotated[Whole, Field(ge=0, le=MAX_SEED)] | None = Field(
        None,
        description="The same request with the same seed gives the same speech; absent: drawn, see X-Seed.",
    )
    temperature: Annotated[Number, Field(ge=0, le=2)] | None = Field(
        None, description=f"0 always takes the likeliest; default {DEFAULT_SAMPLING.temperature}."
    )
    top_p: Annotated[Number, Field(ge=0, le=1)] | None = Field(None, description=f"Default {DEFAULT_SAMPLING.top_p}.")
    top_k: Annotated[Whole, Field(ge=1, le=1024)] | None = Field(None, description=f"Default {DEFAULT_SAMPLING.top_k}.")
    max_new_tokens: Annotated[Whole, Field(ge=1, le=MAX_FRAMES)] | None = Field(
        None, description=f"At most this many frames (21.5 a second for S2 Pro); default {DEFAULT_FRAMES}."
    )

    @property
    def wants_events(self) -> bool:
        return self.stream_format == "sse" or (self.stream_format is None and bool(self.stream))

    def speech_request(self) -> SpeechRequest:
        """Raises InvalidRequest, InvalidClip."""
        voice = self.voice.id if isinstance(self.voice, VoiceRef) else self.voice
        clip = None if self.ref_audio is None else clip_bytes(self.ref_audio)
        chosen = {
            "seed": self.seed,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "max_frames": self.max_new_tokens,
            "format": self.response_format,
            "sample_rate": self.sample_rate,
        }
        return SpeechRequest(
            text=self.input,
            voice=None if clip is not None else voice,
            clip=clip,
            clip_text=self.ref_text,
            **{name: value for name, value in chosen.items() if value is not None},  # type: ignore[arg-type]
        )


UNSUPPORTED = (
    "references",
    "speaker_embedding",
    "x_vector_only_mode",
    "ref_audio_2",
    "ambient_sound",
    "duration_seconds",
    "word_timestamps",
    "repetition_penalty",
    "stage_params",
)
"""Fields of this and other servers' speech APIs that would change the result, and that are not supported."""


def refuse_unsupported(body: dict[str, Any]) -> None:
    """Raises InvalidRequest for a field that asks for something that this server cannot do."""
    for name in UNSUPPORTED:
        if body.get(name) not in (None, False, "", [], {}):
            raise InvalidRequest(f"{name} is not supported by this server", name, "unsupported_parameter")


def clip_bytes(url: str) -> bytes:
    """The bytes of a base64 data: URL. Raises InvalidClip."""
    scheme, _, rest = url.partition(":")
    if scheme.strip().lower() != "data":
        raise InvalidClip("ref_audio must be a data: URL with the clip in base64", "ref_audio")
    kind, comma, payload = rest.partition(",")
    if not comma or not kind.lower().endswith(";base64"):
        raise InvalidClip("ref_audio must be written as data:audio/…;base64,…", "ref_audio")
    if len(payload) > MAX_BYTES * 4 // 3 + 4:
        raise InvalidClip(f"the clip is larger than {MAX_BYTES} bytes", "ref_audio")
    try:
        return base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidClip("ref_audio is no valid base64", "ref_audio") from None
