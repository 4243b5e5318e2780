"""The plan of a request: the text, its voices and its settings, all decided before the engine is called."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from engine import ModelCard, Sampling
from studio.errors import InvalidRequest, NothingToSay, UnknownVoice
from studio.library import Voice
from studio.library.records import OWN_CLIP, RANDOM
from studio.speech.dialogue import Turn, fold_speaker, read_turns
from studio.speech.reading.reader import Reader
from studio.speech.request import SpeechRequest
from studio.speech.text import Pause, Script, has_words, read_script
from studio.unicode_text import normalize
from studio.voices.resolver import FindVoice, VoiceResolver


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """The text that one voice speaks without a change: the whole text, or a turn of a dialogue."""

    text: str
    """The text as read, which may differ from the text as written."""
    script: Script
    """The same text, split into the pieces that are generated at once."""
    label: str
    """The name shown for its voice."""
    voice: Voice | None
    """None for the request's clip or the random voice."""
    sampling: Sampling
    """With the seed of the whole plan, from which each part's seed follows."""
    speaker: str | None = None
    """In a dialogue, the name as written; blank for text before the first name."""

    @property
    def voice_key(self) -> str:
        """Identifies the voice and its revision; parts with the same voice share context."""
        return self.voice.address if self.voice else self.label


@dataclass(frozen=True, slots=True)
class Plan:
    """Parts in order; a request in one voice has one part."""

    parts: tuple[PlannedPart, ...]
    gap: float
    """Seconds of silence between parts, before the speed is applied."""
    budget: int | None
    """Frames of all parts together; None: unlimited."""
    voice: Voice | None
    """The request's own voice, which speaks text without a name; None for its clip or the random voice."""
    sampling: Sampling
    """Of the request's own voice."""
    read_as: str | None = None
    """The text as read, with the names of a dialogue; None if it equals the text as written."""

    @property
    def seed(self) -> int:
        return self.sampling.seed

    @property
    def label(self) -> str:
        """The names of all its voices, without repetition."""
        return ", ".join(dict.fromkeys(part.label for part in self.parts))

    @property
    def is_dialogue(self) -> bool:
        return self.parts[0].speaker is not None


PROBE = re.compile(r"\s*[.!?…]{1,8}\s*")
"""Home Assistant sends this to check that a server works; the answer is a short silence."""


def plan_of(request: SpeechRequest, voices: VoiceResolver, card: ModelCard) -> Plan:
    """Plan a request. Blocking: milliseconds. ``card`` describes the model.

    Raises InvalidRequest for a text that cannot be spoken, UnknownVoice, InvalidUtterance for invalid sampling values.
    """
    find = cache(voices.find)
    request_voice = None if request.clips else find(request.voice)
    turns, cast = _turns(request, Reader(request, find, voices.library.pronunciations, card), card), request.cast
    named = _named(turns, cast or {}, find)
    sampling = _sampling(request, request_voice)

    def part_of(turn: Turn) -> PlannedPart:
        script = _lengthened(turn.script, request.speed)
        if turn.speaker is None:
            label = OWN_CLIP if request.clips else _label(request_voice)
            return PlannedPart(turn.text, script, label, request_voice, sampling, None if cast is None else "")
        voice = named[fold_speaker(turn.speaker)]
        own_sampling = replace(_sampling(request, voice), seed=sampling.seed)
        return PlannedPart(turn.text, script, _label(voice), voice, own_sampling, turn.speaker)

    parts = tuple(part_of(turn) for turn in turns)
    return Plan(parts, request.turn_gap * request.speed, request.max_frames, request_voice, sampling, _read_as(turns))


def _lengthened(script: Script, speed: float) -> Script:
    """The script with pauses that have their length once the audio is played at this speed."""
    return tuple(replace(step, seconds=step.seconds * speed) if isinstance(step, Pause) else step for step in script)


def reading_of(request: SpeechRequest, voices: VoiceResolver, card: ModelCard) -> str | None:
    """The text that would be read instead of the request's text; None if they are equal. Blocking: milliseconds.

    Raises InvalidRequest for a text that cannot be spoken.
    """
    return _read_as(_turns(request, Reader(request, voices.find, voices.library.pronunciations, card), card))


def _turns(request: SpeechRequest, reader: Reader, card: ModelCard) -> tuple[Turn, ...]:
    """Raises NothingToSay if no turn has a word."""
    # A model that is given numbers as words has learned sentences on one line.
    split = partial(read_script, part_bytes=request.chunk_length, apart=card.tags is not None, one_line=card.normalize)
    if request.cast is not None:
        turns = read_turns(request.text, reader.read, split)
    else:
        read = reader.read(None, request.text)
        turns = (Turn(None, request.text, read, 1, split(read)),)
    is_probe = request.cast is None and PROBE.fullmatch(request.text)
    if not is_probe and not any(has_words(turn.text, card.tags is None) for turn in turns):
        raise NothingToSay("input has no words to say, only punctuation, tags or emoji: add some words", "input")
    return turns


def _read_as(turns: Sequence[Turn]) -> str | None:
    if all(turn.text == normalize("NFC", turn.written) for turn in turns):
        return None
    return "\n".join(turn.text if turn.speaker is None else f"{turn.speaker}: {turn.text}" for turn in turns)


def _named(turns: Sequence[Turn], cast: Mapping[str, str], find: FindVoice) -> dict[str, Voice | None]:
    """The voice of each speaker, by folded name: from the cast, else a voice with the speaker's name.

    Raises InvalidRequest for a speaker without a voice, UnknownVoice for a missing voice in the cast.
    """
    cast_names = {fold_speaker(name): voice for name, voice in cast.items()}
    voices: dict[str, Voice | None] = {}
    for turn in turns:
        if turn.speaker is not None and (name := fold_speaker(turn.speaker)) not in voices:
            voices[name] = _voice_of(turn, cast_names.get(name), find)
    return voices


def _voice_of(turn: Turn, cast_name: str | None, find: FindVoice) -> Voice | None:
    if cast_name is not None:
        try:
            return find(cast_name)
        except UnknownVoice as error:
            raise UnknownVoice(f"line {turn.line}, {turn.speaker!r}: {error}", "cast") from None
    try:
        return find(turn.speaker)
    except UnknownVoice:
        raise InvalidRequest(
            f"line {turn.line}: {turn.speaker!r} has no voice; give it one in cast, or do not begin the line with "
            "a name and a colon",
            "cast",
            "unknown_speaker",
        ) from None


def _label(voice: Voice | None) -> str:
    return voice.slug if voice else RANDOM


def _sampling(request: SpeechRequest, voice: Voice | None) -> Sampling:
    return request.sampling(voice.defaults if voice else {})
