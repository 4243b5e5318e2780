"""Request bodies for speech, and their conversion to a SpeechRequest."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, PrivateAttr

from speechtext.characters import normalize
from speechtext.script import PART_BYTES, has_words
from speechtext.turns import MAX_GAP, TURN_GAP
from studio.api.field_types import (
    FINITE,
    LOWER_CASE,
    NO_BOOLEAN,
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
from studio.speech.request import DEFAULT_SAMPLING, MAX_FRAMES, MAX_INPUT, MAX_PART, MIN_PART, OwnClip, SpeechRequest

MAX_ITEMS = 32
MAX_REPLACEMENT = 4000
"""Maximum characters, the same as of a part of a project."""

MODEL_ALIASES = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts", "gpt-4o-mini-tts-2025-12-15")
"""OpenAI's model names, hard-coded in many clients; each means the loaded model."""
RENAMED = {"max_new_tokens": "max_frames", "response_format": "format"}
MAX_MANNER = 100
"""Characters of instructions that become a tag. Models with free tags learned short phrases; a longer description would
probably be read aloud."""
SENT_UNASKED = ("none", "you will receive partial sentences. do not complete the sentence, just read out the text.")
"""Instructions that Home Assistant and OpenAI's Agents SDK send by default."""
_NOT_IN_TAGS = re.compile(r"[\[\]\\<>|]")
OPTIONS = {"seed", "temperature", "top_p", "top_k", "speed", "chunk_length", "sample_rate", "normalize", "dictionary"}
OPTIONS |= {"store", "language", *RENAMED}
"""Fields that a SpeechRequest also has, some under another name."""


def _voice_form(value: object) -> object:
    if value is None or isinstance(value, str | VoiceRef) or (isinstance(value, dict) and "id" in value):
        return value
    raise ValueError('must be a name or an id as a string, or {"id": …}')


ResponseFormat = Annotated[Literal["mp3", "opus", "aac", "flac", "wav", "pcm", "ulaw", "alaw"], LOWER_CASE]
StreamFormat = Annotated[Literal["audio", "sse"], LOWER_CASE]


class VoiceRef(BaseModel):
    """OpenAI's form of a custom voice."""

    id: VoiceName


class SpeechOptions(BaseModel):
    """The options of speech. Unknown fields are ignored, null means absent; unsupported fields are refused."""

    model: str | None = Field(None, max_length=256, description="Any name means the loaded model, which X-Model names.")
    voice: Annotated[VoiceName | VoiceRef | None, BeforeValidator(_voice_form)] = Field(
        None, description="A voice of GET /v1/audio/voices or one of OpenAI's; absent: the default voice."
    )
    response_format: ResponseFormat | None = Field(
        None,
        description="mp3 (the default), opus in Ogg, aac (ADTS), flac, wav, pcm (16 bit, little-endian, mono), or raw "
        "G.711 of 8 kHz as ulaw or alaw.",
    )
    sample_rate: Whole | None = Field(
        None, description="Hz; absent: 24000 for pcm, 48000 for opus, the model's own for all others."
    )
    stream_format: StreamFormat | None = Field(
        None, description="audio: the file's bytes as they are generated; sse: the same in base64, as events."
    )
    speed: Speed | None = Field(None, description="The pitch is kept (FFmpeg's atempo); default 1.")
    instructions: str | None = Field(
        None,
        max_length=4096,
        description=f"How to speak. A model whose tags are free takes up to {MAX_MANNER} characters as a tag before "
        "the text, except in a dialogue; Qwen3-TTS CustomVoice of 1.7B takes them as they are, VoiceDesign as the "
        "voice's description; otherwise ignored, never spoken.",
    )
    task_type: str | None = Field(
        None,
        max_length=64,
        description="VoiceDesign, as in vLLM-Omni: the voice is the one that `instructions` describe, and a model that "
        "cannot make one up is refused; other values are ignored.",
    )
    language: str | None = Field(
        None,
        max_length=35,
        description="The text's language, BCP 47 such as en or zh-CN, for models that are told it, as Qwen3-TTS is; "
        "absent: recognised in the whole text. Others recognise it themselves.",
    )
    ref_audio: str | None = Field(
        None,
        description="A clip of the voice, 1 to 30 s, with its transcript as ref_text: a data: URL in base64, a "
        "public https: or http: address, or a file: address in the allowed folder.",
    )
    ref_text: str | None = Field(None, description="The words spoken in ref_audio.")
    seed: Seed | None = Field(
        None, description="The same request with the same seed gives the same speech; absent: random, see X-Seed."
    )
    temperature: Temperature | None = Field(
        None,
        description=f"0 always selects the most likely; default {DEFAULT_SAMPLING.temperature}, with Qwen3-TTS 0.9.",
    )
    top_p: TopP | None = Field(None, description=f"Default {DEFAULT_SAMPLING.top_p}, with Qwen3-TTS 1.")
    top_k: TopK | None = Field(None, description=f"Default {DEFAULT_SAMPLING.top_k}, with Qwen3-TTS 50.")
    max_new_tokens: Annotated[int, Field(ge=1, le=MAX_FRAMES), NO_BOOLEAN] | None = Field(
        None, description="Maximum number of frames (21.5 a second for S2 Pro, 12.5 for Qwen3-TTS); absent: unlimited."
    )
    chunk_length: Annotated[int, Field(ge=MIN_PART, le=MAX_PART), NO_BOOLEAN] | None = Field(
        None,
        description="Longer text is split at sentence ends into parts of up to this number of bytes of UTF-8, "
        f"generated in order in one conversation; default {PART_BYTES}.",
    )
    normalize: bool | None = Field(
        None,
        description="Whether numbers, prices, dates, times, units and abbreviations in English texts are converted to "
        "words for the model; absent: as set in the model's card.json.",
    )
    dictionary: bool | None = Field(
        None, description="false: ignore all entries of GET /v1/pronunciations; default true."
    )
    store: bool | None = Field(
        None, description="false: the take is not stored in the library, and GET /v1/takes shows only its figures."
    )

    timestamps: Literal["word", "sentence"] | None = Field(
        None,
        description="Send the times of words or sentences: in a speech.audio.timestamps event before the last one, "
        "only with stream_format sse; in a batch and on a socket with each result. Absent: none.",
    )

    _is_instructed: bool = PrivateAttr(False)

    def instructing(self) -> Self:
        """The same, for a model that takes instructions beside the text."""
        options = self.model_copy()
        options._is_instructed = True
        return options

    @property
    def manner(self) -> str:
        """The instructions as a tag; blank if they cannot be one."""
        words = "" if self._is_instructed else " ".join(_NOT_IN_TAGS.sub(" ", self.instructions or "").split())
        is_manner = has_words(words) and len(words) <= MAX_MANNER and words.casefold() not in SENT_UNASKED
        return f"[{words}] " if is_manner else ""

    def request_for(self, text: str, cast: dict[str, str] | None = None) -> SpeechRequest:
        """Raises InvalidRequest."""
        voice = self.voice.id if isinstance(self.voice, VoiceRef) else self.voice
        chosen = self.model_dump(include=OPTIONS, exclude_none=True)
        return SpeechRequest(
            text=self.manner + text if self.manner and cast is None and has_words(text, True) else text,
            cast=cast,
            voice=None if self.ref_audio is not None else voice,
            clips=self._clips(),
            instructions=self._instructions(),
            **{RENAMED.get(name, name): value for name, value in chosen.items()},
        )

    def _instructions(self) -> str:
        words = (self.instructions or "").strip() if self._is_instructed else ""
        return "" if words.casefold() in SENT_UNASKED else words

    def _clips(self) -> tuple[OwnClip, ...]:
        if self.ref_audio is not None:
            return (OwnClip(self.ref_audio, self.ref_text),)
        if self.ref_text is not None:
            raise InvalidRequest("ref_text was given without ref_audio", "ref_audio")
        return ()


class SpeechBody(SpeechOptions):
    """One text and its options."""

    cast: dict[str, VoiceName] | None = Field(
        None,
        description="Makes the input a dialogue: a line that begins with a name and a colon is spoken in the voice "
        "that the cast gives the name, or in the voice of that name; the cast may be {}. Text before the first name is "
        "spoken in `voice`.",
    )
    turn_gap: Annotated[float, FINITE, Field(ge=0, le=MAX_GAP), NO_BOOLEAN] | None = Field(
        None, description=f"Seconds of silence between the turns of a dialogue; default {TURN_GAP}."
    )
    live: bool = Field(
        False, description="true: the take is stored among those of agents, which cannot push out others' takes."
    )

    input: str = Field(description=f"The text to speak, at most {MAX_INPUT} characters; [pause:1.5s] inserts silence.")

    def speech_request(self) -> SpeechRequest:
        """Raises InvalidRequest, InvalidClip."""
        request = self.request_for(self.input, self.cast)
        return request if self.turn_gap is None else replace(request, turn_gap=self.turn_gap)


class CaptionedBody(SpeechBody):
    """A request for the words' times with the speech."""

    stream: bool = Field(True, description="false: one object instead of lines.")


class ReadingBody(BaseModel):
    """A text to convert as it would be read."""

    input: str = Field(description=f"At most {MAX_INPUT} characters.")
    cast: dict[str, VoiceName] | None = Field(None, description="Cast of the speech request.")
    voice: VoiceName | None = Field(None, description="Voice of that request; it may have its own dictionary.")
    normalize: bool | None = Field(None, description="As in that request; absent: as the model needs it.")
    dictionary: bool | None = Field(None, description="As in that request; default true.")

    def speech_request(self) -> SpeechRequest:
        """Raises InvalidRequest."""
        applies = self.dictionary is not False
        return SpeechRequest(self.input, self.voice, cast=self.cast, normalize=self.normalize, dictionary=applies)


class ContinueBody(StrictBody):
    """The continuation of a take; absent fields keep their values, except for the limit."""

    max_new_tokens: Annotated[int, Field(ge=1, le=MAX_FRAMES), NO_BOOLEAN] | None = Field(
        None, description="Frames of the whole take, including those already generated; absent: until the text ends."
    )
    response_format: ResponseFormat | None = None
    sample_rate: Whole | None = None
    stream_format: StreamFormat | None = None
    store: bool | None = None

    def speech_body(self, take: dict[str, Any]) -> SpeechBody:
        """``take``: the body that repeats the take."""
        fields = {name: value for name, value in take.items() if name != "max_new_tokens"}
        if self.response_format is not None:  # the rate belonged to another format
            fields.pop("sample_rate", None)
        return SpeechBody.model_validate(fields | self.model_dump(exclude_none=True))


class RegenerateBody(SelectionBody):
    """The sentences of a take to regenerate."""

    replacement: Annotated[str, AfterValidator(partial(normalize, "NFC"))] | None = Field(
        None,
        max_length=MAX_REPLACEMENT,
        description="The words in place of the characters from start to end; absent: the same words again.",
    )


class BatchBody(SpeechOptions):
    """Up to 32 texts; items inherit absent fields from the batch."""

    items: list[dict[str, Any]] = Field(
        min_length=1, max_length=MAX_ITEMS, description="Each with an input, and any field that differs from the batch."
    )
    stream: bool | None = Field(None, description="true: one line of JSON for each result, as it is finished.")
