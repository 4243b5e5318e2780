"""The wire format of POST /v1/audio/speech: its fields, and how they become a SpeechRequest."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from studio.api.schemas.field_types import (
    LOWER_CASE,
    Number,
    Seed,
    SelectionBody,
    Speed,
    StrictBody,
    Temperature,
    TopK,
    TopP,
    VoiceName,
    Whole,
)
from studio.errors import InvalidRequest
from studio.speech.dialogue import MAX_GAP, TURN_GAP
from studio.speech.request import DEFAULT_SAMPLING, MAX_FRAMES, MAX_INPUT, MAX_PART, MIN_PART, OwnClip, SpeechRequest
from studio.speech.text import PART_BYTES

MAX_ITEMS = 32

MODEL_ALIASES = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts", "gpt-4o-mini-tts-2025-12-15")
"""OpenAI's model names, hard-coded in many clients; each means the model that is loaded."""
RENAMED = {"max_new_tokens": "max_frames", "response_format": "format"}
OPTIONS = {"seed", "temperature", "top_p", "top_k", "speed", "chunk_length", "sample_rate", "normalize", "dictionary"}
OPTIONS |= {"store", *RENAMED}
"""Fields that a SpeechRequest has too, some by another name."""


def _voice_form(value: object) -> object:
    if value is None or isinstance(value, str | VoiceRef) or (isinstance(value, dict) and "id" in value):
        return value
    raise ValueError('must be a name or an id as a string, or {"id": …}')


ResponseFormat = Annotated[Literal["mp3", "opus", "aac", "flac", "wav", "pcm"], LOWER_CASE]
StreamFormat = Annotated[Literal["audio", "sse"], LOWER_CASE]


class VoiceRef(BaseModel):
    """OpenAI's form of a custom voice."""

    id: VoiceName


class SpeechOptions(BaseModel):
    """How to speak. Unknown fields are ignored, null means absent; what cannot be done is refused by name."""

    model: str | None = Field(
        None, max_length=256, description="An id of GET /v1/models, or one of OpenAI's TTS models."
    )
    voice: Annotated[VoiceName | VoiceRef | None, BeforeValidator(_voice_form)] = Field(
        None,
        description="A voice of GET /v1/audio/voices or one of OpenAI's; absent: the default voice.",
    )
    response_format: ResponseFormat | None = Field(
        None, description="mp3 (the default), opus in Ogg, aac (ADTS), flac, wav, or pcm (16 bit, little-endian, mono)."
    )
    sample_rate: Whole | None = Field(
        None, description="Hz; absent: 24000 for pcm, 48000 for opus, the model's own for all others."
    )
    stream_format: StreamFormat | None = Field(
        None, description="audio: the file's bytes while they are made; sse: the same in base64, as events."
    )
    stream: bool | None = Field(None, description="true without a stream_format means sse.")
    speed: Speed | None = Field(None, description="The pitch is kept (FFmpeg's atempo); default 1.")
    instructions: str | None = Field(
        None, max_length=4096, description="Ignored: the model takes none; it is never spoken."
    )
    ref_audio: str | None = Field(
        None,
        description="A clip of the voice to speak in, 1 to 30 s, with its words as ref_text: a data: URL in base64, a "
        "public https: or http: address, or a file: address in the folder that the settings allow.",
    )
    ref_text: str | None = Field(None, description="The words spoken in ref_audio.")
    seed: Seed | None = Field(
        None,
        description="The same request with the same seed gives the same speech; absent: random, see X-Seed.",
    )
    temperature: Temperature | None = Field(
        None, description=f"0 always takes the most likely; default {DEFAULT_SAMPLING.temperature}."
    )
    top_p: TopP | None = Field(None, description=f"Default {DEFAULT_SAMPLING.top_p}.")
    top_k: TopK | None = Field(None, description=f"Default {DEFAULT_SAMPLING.top_k}.")
    max_new_tokens: Annotated[Whole, Field(ge=1, le=MAX_FRAMES)] | None = Field(
        None, description="The speech is cut after this many frames (21.5 a second for S2 Pro); absent: never."
    )
    chunk_length: Annotated[Whole, Field(ge=MIN_PART, le=MAX_PART)] | None = Field(
        None,
        description="Longer text is cut at sentence ends into parts of up to this many bytes of UTF-8, spoken one "
        f"after the other in one conversation; default {PART_BYTES}.",
    )
    normalize: bool | None = Field(
        None,
        description="Whether numbers, prices, dates, times, units and abbreviations of English texts are read as words "
        "before they go to the model; absent: as the model's card.json says.",
    )
    dictionary: bool | None = Field(None, description="false: no entry of GET /v1/pronunciations counts; default true.")
    store: bool | None = Field(
        None, description="false: the take is not kept in the library, and GET /v1/takes shows only its figures."
    )

    timestamps: Literal["word", "sentence"] | None = Field(
        None,
        description="Of what the times are told: in a speech.audio.timestamps event before the last one, only with "
        "stream_format sse; in a batch and on a socket beside each sound. Absent: none.",
    )

    @property
    def wants_events(self) -> bool:
        return self.stream_format == "sse" or (self.stream_format is None and bool(self.stream))

    def request_for(self, text: str, cast: dict[str, str] | None = None) -> SpeechRequest:
        """Raises InvalidRequest."""
        voice = self.voice.id if isinstance(self.voice, VoiceRef) else self.voice
        chosen = self.model_dump(include=OPTIONS, exclude_none=True)
        return SpeechRequest(
            text=text,
            cast=cast,
            voice=None if self.ref_audio is not None else voice,
            clips=self._clips(),
            **{RENAMED.get(name, name): value for name, value in chosen.items()},
        )

    def _clips(self) -> tuple[OwnClip, ...]:
        if self.ref_audio is not None:
            return (OwnClip(self.ref_audio, self.ref_text),)
        if self.ref_text is not None:
            raise InvalidRequest("ref_text was given without ref_audio", "ref_audio")
        return ()


class SpeechBody(SpeechOptions):
    """One text and how to speak it."""

    cast: dict[str, VoiceName] | None = Field(
        None,
        description="Makes the input a dialogue: a line that begins with a name and a colon is spoken in the voice "
        "that the cast gives the name, or in the voice of that name; {} is a cast too. What stands before the first "
        "name is spoken in `voice`.",
    )
    turn_gap: Annotated[Number, Field(ge=0, le=MAX_GAP)] | None = Field(
        None, description=f"Seconds of silence between the turns of a dialogue; default {TURN_GAP}."
    )

    input: str = Field(
        description=f"The text to speak, at most {MAX_INPUT} characters; [pause:1.5s] is that much silence."
    )

    def speech_request(self) -> SpeechRequest:
        """Raises InvalidRequest, InvalidClip."""
        request = self.request_for(self.input, self.cast)
        return request if self.turn_gap is None else replace(request, turn_gap=self.turn_gap)


class ReadingBody(BaseModel):
    """A text, to see how it would be read."""

    input: str = Field(description=f"At most {MAX_INPUT} characters.")
    cast: dict[str, VoiceName] | None = Field(None, description="Cast of the request that will speak it.")
    voice: VoiceName | None = Field(None, description="Voice of that request; it may have its own dictionary.")
    normalize: bool | None = Field(None, description="As in that request; absent: as the model needs it.")
    dictionary: bool | None = Field(None, description="As in that request; default true.")

    def speech_request(self) -> SpeechRequest:
        """Raises InvalidRequest."""
        return SpeechRequest(
            text=self.input,
            cast=self.cast,
            voice=self.voice,
            normalize=self.normalize,
            dictionary=self.dictionary is not False,
        )


class ContinueBody(StrictBody):
    """How to continue a take; absent fields stay as they were, except for its limit."""

    max_new_tokens: Annotated[Whole, Field(ge=1, le=MAX_FRAMES)] | None = Field(
        None, description="Frames of the whole take, including those already generated; absent: until the text ends."
    )
    response_format: ResponseFormat | None = None
    sample_rate: Whole | None = None
    stream_format: StreamFormat | None = None
    store: bool | None = None

    def speech_body(self, take: dict[str, Any]) -> SpeechBody:
        """``take``: the body that says the take again."""
        as_it_was = {name: value for name, value in take.items() if name != "max_new_tokens"}
        if self.response_format is not None:  # the rate was that of another format
            as_it_was.pop("sample_rate", None)
        return SpeechBody.model_validate(as_it_was | self.model_dump(exclude_none=True))


class RegenerateBody(SelectionBody):
    """Which sentences of a take are regenerated."""


class BatchBody(SpeechOptions):
    """Up to 32 texts; what is not said in an item is taken from the batch."""

    items: list[dict[str, Any]] = Field(
        min_length=1,
        max_length=MAX_ITEMS,
        description="Each with an input, and any field that differs from the batch.",
    )
