"""ElevenLabs' speech requests: their fields, and their conversion to a SpeechRequest."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from protocols.elevenlabs.characters import VoiceSegments
from protocols.elevenlabs.eleven_names import file_of, temperature_of, voice_of
from protocols.live_speech import dialogue_fields
from speechtext.turns import read_turns
from studio.api.field_types import FINITE, NO_BOOLEAN, Seed, Speed, VoiceName
from studio.errors import InvalidRequest
from studio.speech.request import SpeechRequest

MAX_TURNS = 100
_BREAK = re.compile(r"<break\s{1,9}time=[\"'](\d{1,3}(?:\.\d{1,3})?)(m?)s[\"']\s{0,9}/?>")
"""SSML's pause, which ElevenLabs accepts in every text."""
Normalization = Literal["auto", "on", "off"]


def _refuse(value: object) -> None:
    if value:
        raise ValueError("this does not exist here; leave it out. For pronunciations there is POST /v1/pronunciations")


Lacking = Annotated[None, BeforeValidator(_refuse, json_schema_input_type=list[Any] | None)]
"""A field that would change the sound in a way that does not exist here."""


class VoiceSettings(BaseModel):
    """How a voice speaks. Unknown fields are ignored, null means absent."""

    stability: Annotated[float, FINITE, Field(ge=0, le=1), NO_BOOLEAN] | None = Field(
        None, description="As a temperature: 1.1 - 0.6 · stability."
    )
    speed: Speed | None = None


class SpeechFields(BaseModel):
    """What all requests for speech have. Unknown fields are ignored, null means absent."""

    seed: Seed | None = None
    apply_text_normalization: Normalization | None = None
    pronunciation_dictionary_locators: Lacking = None

    def speech_request(
        self, spoken: dict[str, Any], settings: VoiceSettings | None, output_format: str | None, store: bool
    ) -> SpeechRequest:
        """``spoken``: the text and its voices. Raises InvalidRequest."""
        audio_format, sample_rate, bit_rate = file_of(output_format)
        stability, speed = (settings.stability, settings.speed) if settings else (None, None)
        return SpeechRequest(
            **spoken | {"text": with_pauses(spoken["text"])},
            format=audio_format,
            sample_rate=sample_rate,
            bit_rate=bit_rate,
            seed=self.seed,
            temperature=None if stability is None else temperature_of(stability),
            speed=1.0 if speed is None else speed,
            normalize={"on": True, "off": False}.get(self.apply_text_normalization or "auto"),
            store=store,
        )


class ElevenSpeech(SpeechFields):
    """A text and the options of its speech."""

    text: str
    voice_settings: VoiceSettings | None = None
    audio_effects: Lacking = None

    def request_in(self, voice_id: str, output_format: str | None, store: bool) -> SpeechRequest:
        """Raises InvalidRequest."""
        spoken = {"text": self.text, "voice": voice_of(voice_id)}
        return self.speech_request(spoken, self.voice_settings, output_format, store)


class DialogueInput(BaseModel):
    """A turn of a dialogue."""

    text: str
    voice_id: VoiceName


class ElevenDialogue(SpeechFields):
    """The turns of a dialogue, and the options of its speech."""

    inputs: list[DialogueInput] = Field(min_length=1, max_length=MAX_TURNS)
    settings: VoiceSettings | None = None

    def request_in(self, output_format: str | None, store: bool) -> SpeechRequest:
        """Raises InvalidRequest."""
        voices = list(dict.fromkeys(entry.voice_id for entry in self.inputs))
        turns = [(voices.index(entry.voice_id), entry.text) for entry in self.inputs]
        spoken = dialogue_fields(turns, [voice_of(voice_id) for voice_id in voices])
        if not spoken["cast"]:
            raise InvalidRequest("the text of every input is blank; send a text to speak", "inputs")
        return self.speech_request(spoken, self.settings, output_format, store)

    @property
    def size(self) -> int:
        """Characters."""
        return sum(len(entry.text) for entry in self.inputs)

    def segments(self, request: SpeechRequest) -> VoiceSegments:
        """The turns of its request. Blocking: milliseconds."""
        inputs = [(entry.voice_id, index) for index, entry in enumerate(self.inputs) if entry.text.strip()]
        turns = zip(inputs, read_turns(request.text), strict=True)
        return VoiceSegments([(voice_id, index, turn.written) for (voice_id, index), turn in turns])


def with_pauses(text: str) -> str:
    """The text with the studio's mark for each pause."""

    def mark(pause: re.Match[str]) -> str:
        return f"[pause:{float(pause[1]) / (1000 if pause[2] else 1):g}s]"

    return _BREAK.sub(mark, text)
