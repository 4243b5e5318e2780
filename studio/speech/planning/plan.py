"""The plan of a request: what is said, by whom and how, all of it decided before the engine is asked."""

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
from studio.speech.text import Script, has_words, read_script
from studio.unicode_text import normalize
from studio.voices.resolver import FindVoice, VoiceResolver


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """What one voice says before another does: the whole text, or a turn of a dialogue."""

    text: str
    """As it is read, which may not be as it is written."""
    script: Script
    """The same text, cut into what is said in one breath."""
    label: str
    """What its voice is called."""
    voice: Voice | None
    """None is the request's clip, or the random voice."""
    sampling: Sampling
    """With the seed of the whole plan: each part's own follows from it."""
    speaker: str | None = None
    """In a dialogue: as written, blank for what stands before the first name."""

    @property
    def who(self) -> str:
        """Tells one voice from another, a revision from the next too; parts of the same one hear each other."""
        return self.voice.address if self.voice else self.label


@dataclass(frozen=True, slots=True)
class Plan:
    """One part after the other; a single voice is a plan of one part."""

    parts: tuple[PlannedPart, ...]
    gap: float
    """Seconds of silence between two parts."""
    budget: int | None
    """Frames of all parts together; None: no end."""
    voice: Voice | None
    """The request's own one, which speaks what nobody is named for; None is its clip, or the random voice."""
    sampling: Sampling
    """Of the request's own voice."""
    read_as: str | None = None
    """What is read where that is not what is written; a dialogue with its names."""

    @property
    def seed(self) -> int:
        return self.sampling.seed

    @property
    def label(self) -> str:
        """All its voices, each once."""
        return ", ".join(dict.fromkeys(part.label for part in self.parts))

    @property
    def is_dialogue(self) -> bool:
        return self.parts[0].speaker is not None


PROBE = re.compile(r"\s*[.!?…]+\s*")
"""What Home Assistant sends to see whether a server speaks: it is answered with a short silence."""


def plan_of(request: SpeechRequest, voices: VoiceResolver, card: ModelCard) -> Plan:
    """Blocking: milliseconds. ``card`` is what the model says of itself.

    Raises InvalidRequest for a text that cannot be spoken, UnknownVoice, InvalidUtterance for odd sampling.
    """
    find = cache(voices.find)
    own = None if request.clips else find(request.voice)
    turns, cast = _turns(request, Reader(request, find, voices.library.pronunciations, card), card), request.cast
    named = _named(turns, cast or {}, find)
    sampling = _sampling(request, own)

    def part_of(turn: Turn) -> PlannedPart:
        if turn.speaker is None:
            label = OWN_CLIP if request.clips else _label(own)
            return PlannedPart(turn.text, turn.script, label, own, sampling, None if cast is None else "")
        voice = named[fold_speaker(turn.speaker)]
        wanted = replace(_sampling(request, voice), seed=sampling.seed)
        return PlannedPart(turn.text, turn.script, _label(voice), voice, wanted, turn.speaker)

    parts = tuple(part_of(turn) for turn in turns)
    return Plan(parts, request.turn_gap, request.max_frames, own, sampling, _read_as(turns))


def reading_of(request: SpeechRequest, voices: VoiceResolver, card: ModelCard) -> str | None:
    """What would be read in the place of the request's text; None where that is the text. Blocking: milliseconds.

    Raises InvalidRequest for a text that cannot be spoken.
    """
    return _read_as(_turns(request, Reader(request, voices.find, voices.library.pronunciations, card), card))


def _turns(request: SpeechRequest, reader: Reader, card: ModelCard) -> tuple[Turn, ...]:
    """Raises NothingToSay where not one of them has a word."""
    cut = partial(read_script, part_bytes=request.chunk_length, apart=card.tags is not None)
    if request.cast is not None:
        turns = read_turns(request.text, reader.read, cut)
    else:
        read = reader.read(None, request.text)
        turns = (Turn(None, request.text, read, 1, cut(read)),)
    is_probe = request.cast is None and PROBE.fullmatch(request.text)
    if not is_probe and not any(has_words(turn.text, card.tags is None) for turn in turns):
        raise NothingToSay("input has no words to say, only signs, tags or emoji: write what is to be said", "input")
    return turns


def _read_as(turns: Sequence[Turn]) -> str | None:
    if all(turn.text == normalize("NFC", turn.written) for turn in turns):
        return None
    return "\n".join(turn.text if turn.speaker is None else f"{turn.speaker}: {turn.text}" for turn in turns)


def _named(turns: Sequence[Turn], cast: Mapping[str, str], find: FindVoice) -> dict[str, Voice | None]:
    """The voice of each speaker, by the folded name: the cast's, else a voice of the speaker's own name.

    Raises InvalidRequest for a speaker who has no voice, UnknownVoice for a voice of the cast that there is not.
    """
    wanted = {fold_speaker(name): voice for name, voice in cast.items()}
    voices: dict[str, Voice | None] = {}
    for turn in turns:
        if turn.speaker is not None and (name := fold_speaker(turn.speaker)) not in voices:
            voices[name] = _voice_of(turn, wanted.get(name), find)
    return voices


def _voice_of(turn: Turn, wanted: str | None, find: FindVoice) -> Voice | None:
    if wanted is not None:
        return find(wanted)
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
