"""ElevenLabs' requests for speech and dialogues; answers are a file, or JSON with the times of the characters."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import astuple, dataclass
from itertools import chain, groupby
from operator import itemgetter
from typing import Annotated, Any, Literal, NamedTuple

from anyio import to_thread
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, BeforeValidator, Field

from audio.formats import MEDIA_TYPES
from engine import EngineError
from protocols.elevenlabs.eleven_names import FORMATS, PREFIX, file_of, temperature_of, voice_of
from protocols.live_speech import dialogue_fields
from speechtext.script import is_blank
from speechtext.turns import read_turns
from speechtext.word_times import Timed, places_of
from studio.api.body import JsonBody
from studio.api.field_types import FINITE, NO_BOOLEAN, Seed, Speed, VoiceName
from studio.api.openapi import answers
from studio.api.routes.speech_routes import speech_response
from studio.api.sending import until_hangup
from studio.errors import REFUSALS, InvalidRequest
from studio.speech.delivery import Speech
from studio.speech.request import Origin, SpeechRequest
from studio.speech.speech_service import SpeechService
from studio.speech.word_times import Spoken, without_names

MAX_TURNS = 100
_BREAK = re.compile(r"<break\s{1,9}time=[\"'](\d{1,3}(?:\.\d{1,3})?)(m?)s[\"']\s{0,9}/?>")
"""SSML's pause, which ElevenLabs accepts in every text."""
_AFTER_A_WORD = re.compile(r"[^\w\s\[({<«“‘¿¡]*\s*")
"""What belongs to the word before it: closing punctuation and spaces."""
Normalization = Literal["auto", "on", "off"]


def _refuse(value: object) -> None:
    if value:
        raise ValueError("this does not exist here; leave it out. For pronunciations there is POST /v1/pronunciations")


Lacking = Annotated[None, BeforeValidator(_refuse, json_schema_input_type=list[Any] | None)]
"""A field that would change the sound in a way that does not exist here."""


class Character(NamedTuple):
    """A character and its times in seconds."""

    sign: str
    start: float
    end: float


class Alignments:
    """The characters of a text, in the order in which they are spoken. Use one for each take."""

    def __init__(self, text: str) -> None:
        self._text, self._written_to, self._read_to = text, 0.0, 0.0

    def add(self, spoken: Spoken) -> tuple[list[Character], list[Character]]:
        """The characters of a passage as written, and as read. Blocking: time grows with the text that follows."""
        places = places_of(self._text, [word.text for word in spoken.words])
        size = 0
        if spoken.words:
            size = min(places[-1] + len(spoken.words[-1].text), len(self._text))
            size += len(_AFTER_A_WORD.match(self._text, size)[0])  # type: ignore[index]  # it matches any text
        written = spread(self._text[:size], spoken.words, places, self._written_to, spoken.end)
        self._text = self._text[size:]
        self._written_to = spoken.end if written else self._written_to
        read: list[Character] = []
        for number, (part, words) in enumerate(spoken.read, 1):
            end = spoken.end if number == len(spoken.read) else words[-1].end if words else self._read_to
            text = f" {part}" if self._read_to else part  # separates it from the part before in the joined text
            read += spread(text, words, places_of(text, [word.text for word in words]), self._read_to, end)
            self._read_to = end
        return written, read

    def rest(self) -> list[Character]:
        """The characters that no word reached, such as a closing bracket, at the end."""
        rest, self._text = self._text, ""
        return [Character(sign, self._written_to, self._written_to) for sign in rest]


class VoiceSegments:
    """The turns of a dialogue, as ranges of the characters of each passage."""

    def __init__(self, turns: Sequence[tuple[str, int, str]]) -> None:
        """``turns``: the voice, the index of the input and the text of each."""
        # The turn of each character; the line end after a turn belongs to none.
        owners = ([*[(voice_id, index)] * len(text), None] for voice_id, index, text in turns)
        self._owners = chain.from_iterable(owners)

    def add(self, written: Sequence[Character]) -> list[dict[str, Any]]:
        """The segments of the next characters."""
        places = groupby(zip(range(len(written)), self._owners, strict=False), key=itemgetter(1))
        spans = [(owner, [at for at, _ in group]) for owner, group in places if owner is not None]
        return [
            {
                "voice_id": voice_id,
                "start_time_seconds": round(written[span[0]].start, 3),
                "end_time_seconds": round(written[span[-1]].end, 3),
                "character_start_index": span[0],
                "character_end_index": span[-1] + 1,
                "dialogue_input_index": index,
            }
            for (voice_id, index), span in spans
        ]


def spread(text: str, words: Sequence[Timed], places: Sequence[int], start: float, end: float) -> list[Character]:
    """Each word's time divided equally over its characters, and each gap's over those between the words.

    ``places``: the start of each word in the text; ``start``, ``end``: times of the whole text.
    """
    spoken = zip(words, places, strict=True)
    marks = [mark for word, at in spoken for mark in ((at, word.start), (at + len(word.text), word.end))]
    characters, at, time = list[Character](), 0, start
    for mark, mark_time in [*marks, (len(text), end)]:
        stop, until = max(at, min(mark, len(text))), max(time, mark_time)
        step = (until - time) / max(stop - at, 1)
        signs = enumerate(text[at:stop])
        characters += [Character(sign, time + step * number, time + step * (number + 1)) for number, sign in signs]
        at, time = stop, until
    return characters


def in_seconds(characters: Sequence[Character]) -> dict[str, Any] | None:
    """The form of responses; None without characters."""
    times = {
        "characters": [character.sign for character in characters],
        "character_start_times_seconds": [round(character.start, 3) for character in characters],
        "character_end_times_seconds": [round(character.end, 3) for character in characters],
    }
    return times if characters else None


def in_milliseconds(characters: Sequence[Character], offset: float) -> dict[str, Any] | None:
    """The form of sockets, with times later by ``offset`` seconds; None without characters."""
    starts = [round((character.start + offset) * 1000) for character in characters]
    ends = [round((character.end + offset) * 1000) for character in characters]
    times = {
        "chars": [character.sign for character in characters],
        "charStartTimesMs": starts,
        "charDurationsMs": [end - start for start, end in zip(starts, ends, strict=True)],
    }
    return times if characters else None


class VoiceSettings(BaseModel):
    """How a voice speaks. Unknown fields are ignored, null means absent."""

    stability: Annotated[float, FINITE, Field(ge=0, le=1), NO_BOOLEAN] | None = Field(
        default=None, description="As a temperature: 1.1 - 0.6 · stability."
    )
    speed: Speed | None = None


class SpeechFields(BaseModel):
    """What all requests for speech have. Unknown fields are ignored, null means absent."""

    voice_settings: VoiceSettings | None = None
    seed: Seed | None = None
    apply_text_normalization: Normalization | None = None
    pronunciation_dictionary_locators: Lacking = None

    def speech_request(self, spoken: dict[str, Any], output_format: str | None, store: bool) -> SpeechRequest:
        """``spoken``: the text and its voices. Raises InvalidRequest."""
        settings = self.voice_settings or VoiceSettings()
        return SpeechRequest(
            **spoken | {"text": with_pauses(spoken["text"])},
            **file_of(output_format),
            seed=self.seed,
            temperature=None if settings.stability is None else temperature_of(settings.stability),
            speed=1.0 if settings.speed is None else settings.speed,
            normalize={"on": True, "off": False}.get(self.apply_text_normalization or "auto"),
            store=store,
        )


class ElevenSpeech(SpeechFields):
    """A text and the options of its speech."""

    text: str
    audio_effects: Lacking = None

    def request_in(self, voice_id: str, output_format: str | None, store: bool) -> SpeechRequest:
        """Raises InvalidRequest."""
        return self.speech_request({"text": self.text, "voice": voice_of(voice_id)}, output_format, store)


class DialogueInput(BaseModel):
    """A turn of a dialogue."""

    text: str
    voice_id: VoiceName


class ElevenDialogue(SpeechFields):
    """The turns of a dialogue, and the options of its speech."""

    inputs: list[DialogueInput] = Field(min_length=1, max_length=MAX_TURNS)
    voice_settings: VoiceSettings | None = Field(None, alias="settings")

    def request_in(self, output_format: str | None, store: bool) -> SpeechRequest:
        """Raises InvalidRequest."""
        voices = list(dict.fromkeys(entry.voice_id for entry in self.inputs))
        turns = [(voices.index(entry.voice_id), entry.text) for entry in self.inputs]
        spoken = dialogue_fields(turns, [voice_of(voice_id) for voice_id in voices])
        if not spoken["cast"]:
            raise InvalidRequest("the text of every input is blank; send a text to speak", "inputs")
        return self.speech_request(spoken, output_format, store)

    def segments(self, request: SpeechRequest) -> VoiceSegments:
        """The turns of its request. Blocking: milliseconds."""
        inputs = [(entry.voice_id, index) for index, entry in enumerate(self.inputs) if not is_blank(entry.text)]
        turns = zip(inputs, read_turns(request.text), strict=True)
        return VoiceSegments([(voice_id, index, turn.written) for (voice_id, index), turn in turns])


def with_pauses(text: str) -> str:
    """The text with the studio's mark for each pause."""
    return _BREAK.sub(lambda pause: f"[pause:{float(pause[1]) / (1000 if pause[2] else 1):g}s]", text)


TIMED = "/with-timestamps"
SOUND = answers(*sorted({MEDIA_TYPES[name] for name, _, _ in FORMATS.values()}))
TIMES = answers("application/json")
OutputFormat = Annotated[str | None, Query(description=f"{', '.join(FORMATS)}; absent: mp3_44100_128")]


@dataclass(frozen=True, slots=True)
class Delivery:
    """The query of every route."""

    output_format: OutputFormat = None
    enable_logging: Annotated[bool, Query(description="false: the take is not stored in the library.")] = True


Delivered = Annotated[Delivery, Depends()]


def eleven_speech_routes(service: SpeechService) -> APIRouter:
    """The routes that send speech. Answers start with the first frame; disconnecting cancels them."""
    routes = APIRouter(prefix=PREFIX, tags=["elevenlabs"])

    async def convert(voice_id: str, body: JsonBody[ElevenSpeech], request: Request, delivery: Delivered) -> Response:
        """Generate speech; ``with-timestamps`` with the times of all characters: one JSON object with the file in
        base64, or, for a ``stream``, lines of JSON, in which the times of a passage come once it is generated."""
        return await send(request, body.request_in(voice_id, *astuple(delivery)), len(body.text))

    async def converse(body: JsonBody[ElevenDialogue], request: Request, delivery: Delivered) -> Response:
        """Generate a dialogue; ``with-timestamps`` as for speech, and with the times of its turns as
        ``voice_segments``."""
        characters = sum(len(entry.text) for entry in body.inputs)
        return await send(request, body.request_in(*astuple(delivery)), characters, body.segments)

    async def send(
        request: Request,
        wanted: SpeechRequest,
        characters: int,
        segments_of: Callable[[SpeechRequest], VoiceSegments | None] = lambda _: None,
    ) -> Response:
        is_timed = request.url.path.endswith(TIMED)
        if is_timed:
            service.check_alignment()
        segments = await to_thread.run_sync(segments_of, wanted) if is_timed else None
        origin = Origin(request.state.request_id, request.state.caller, live=True)
        speech = await until_hangup(request, service.speak(wanted, origin))
        if is_timed:
            pieces = _lines if "/stream/" in request.url.path else _object
            answer = speech_response(speech, pieces(speech, segments), "application/json")
        else:
            answer = speech_response(speech, speech.body, speech.media_type.partition(";")[0])
        answer.headers["request-id"] = answer.headers["history-item-id"] = speech.request_id
        answer.headers["character-cost"] = answer.headers["x-character-count"] = str(characters)
        return answer

    for path, handler in (("text-to-speech/{voice_id}", convert), ("text-to-dialogue", converse)):
        for end, content in (("", SOUND), ("/stream", SOUND), (TIMED, TIMES), (f"/stream{TIMED}", TIMES)):
            routes.post(f"/v1/{path}{end}", openapi_extra=content, response_class=Response)(handler)
    return routes


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
