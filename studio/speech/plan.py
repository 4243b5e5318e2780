"""The plan of a request: the text, its voices and its settings, all decided before the engine is called."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from engine import EngineInfo, InvalidUtterance, ModelCard, Sampling, refuse_control_tokens
from speechtext import NothingToSay
from speechtext.characters import clean_signs, normalize
from speechtext.dictionary import dictionary_of
from speechtext.language import guess_language
from speechtext.reading import as_said
from speechtext.script import Pause, Script, has_words, read_script
from speechtext.turns import Turn, fold_speaker, read_turns
from studio.errors import InvalidRequest, LibraryUnavailable, UnknownVoice
from studio.library import Voice
from studio.library.pronunciation_repository import Pronunciations
from studio.library.records import GLOBAL, OWN_CLIP, RANDOM, DictionaryScope, Pronunciation
from studio.speech.request import Origin, SpeechRequest
from studio.voices.resolver import FindVoice, VoiceResolver
from studio.work import WorkQueue

SHORT = 500
"""Characters of a text that is planned in the event loop: a millisecond's work, or three with numbers to read. A
thread exchanges the interpreter's lock with the loop at every access to the library; when 64 requests arrive at once,
they would wait longer for that than for everything else."""
FEW = 4
"""Line ends of such a text: each line of a dialogue may have a voice, whose dictionary takes up to 0.03 seconds."""
QUICK_SECONDS = 0.01
"""Seconds of CPU time, not of wall time: under load some plans wait, and would then be sent to the threads. If a plan
takes more, as with a dictionary of thousands of entries …"""
SLOW_SECONDS = 10.0
"""… all plans are made in threads for this many seconds."""


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
    """Its seed is the plan's; each part's seed is derived from it."""
    language: str | None = None
    """The language that the model is told."""
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
    """Sampling of the request's voice."""
    instructions: str = ""
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


class Planner:
    """Plans requests with the library's voices. Used from one event loop."""

    def __init__(self, voices: VoiceResolver, queue: WorkQueue) -> None:
        """``queue``: where longer texts are planned."""
        self._voices = voices
        self._queue = queue
        self._warm_for: set[bool] = set()
        """The values of ``normalize`` planned before: the rules for numbers are compiled at their first use."""
        self._slow_until = 0.0

    async def plan(self, request: SpeechRequest, info: EngineInfo, origin: Origin) -> Plan:
        """Plan a request with the voices that its caller may use.

        Raises the errors of `plan_of`, and unless another limit bounds it QueueFull and TooManyRequests.
        """
        voices, card = self._voices.seen_by(origin.caller), info.card
        normalizes = card.normalize if request.normalize is None else request.normalize
        is_short = len(request.text) <= SHORT and request.text.count("\n") <= FEW and normalizes in self._warm_for
        if is_short and time.monotonic() >= self._slow_until:
            start = time.thread_time()
            try:
                with voices.library.store.one_view():
                    return plan_of(request, voices, info)
            except LibraryUnavailable:
                pass  # planned in a thread, which can wait
            finally:
                if time.thread_time() - start > QUICK_SECONDS:
                    self._slow_until = time.monotonic() + SLOW_SECONDS
        async with self._queue.turn(origin.caller, origin.is_bounded) as turn:
            plan = await turn.run(plan_of, request, voices, info)
        self._warm_for.add(normalizes)
        return plan


PROBE = re.compile(r"\s*[.!?…]{1,8}\s*")
"""Home Assistant sends this to check that a server works; the answer is a short silence."""


def plan_of(request: SpeechRequest, voices: VoiceResolver, info: EngineInfo) -> Plan:
    """Plan a request. Blocking: milliseconds. ``info`` describes the model.

    Raises InvalidRequest for what the model cannot do and for a text that cannot be spoken, UnknownVoice,
    InvalidUtterance for invalid sampling values.
    """
    find, card = cache(voices.find), info.card
    request_voice = None if request.clips else find(request.voice)
    turns, cast = _turns(request, _Reader(request, find, voices.library.pronunciations, card), card), request.cast
    named = _named(turns, cast or {}, find)
    sampling, speed = _sampling(request, request_voice, info), request.speed

    def part_of(turn: Turn) -> PlannedPart:
        # Pauses have their length once the audio is played at the request's speed.
        steps = (replace(it, seconds=it.seconds * speed) if isinstance(it, Pause) else it for it in turn.script)
        script = tuple(steps)
        if turn.speaker is None:
            label = OWN_CLIP if request.clips else _label(request_voice)
            told = _language(request, turn.text, request_voice, info)
            return PlannedPart(turn.text, script, label, request_voice, sampling, told, None if cast is None else "")
        voice = named[fold_speaker(turn.speaker)]
        own_sampling = replace(_sampling(request, voice, info), seed=sampling.seed)
        told = _language(request, turn.text, voice, info)
        return PlannedPart(turn.text, script, _label(voice), voice, own_sampling, told, turn.speaker)

    parts = tuple(part_of(turn) for turn in turns)
    for part in parts:
        _refuse_unable(part, info)
    gap, how = request.turn_gap * request.speed, request.instructions
    return Plan(parts, gap, request.max_frames, request_voice, sampling, how, _read_as(turns))


def _language(request: SpeechRequest, text: str, voice: Voice | None, info: EngineInfo) -> str | None:
    """The language to tell the model: the requested one, the whole text's, or the voice's."""
    if not info.languages or request.language is not None:
        return request.language
    guesses = guess_language(text), voice and voice.language.partition("-")[0].lower()
    return next((guess for guess in guesses if guess in info.languages), None)


def _refuse_unable(part: PlannedPart, info: EngineInfo) -> None:
    """Raises InvalidRequest for a voice that the model cannot speak in, or cannot keep."""
    is_clip, is_own = part.label == OWN_CLIP or part.voice is not None, part.voice is not None and part.voice.speaker
    if is_clip and not is_own and not info.clones:
        names = f" {', '.join(map(str.casefold, info.speakers))}" if info.speakers else " random, with a description"
        why = f"the loaded model cannot speak in the voice of a clip, only in its own:{names}"
        param = "ref_audio" if part.label == OWN_CLIP else "voice"
        message = f"{why}; choose one of these, or load a model that clones"
        raise InvalidRequest(message, param, "model_does_not_clone")
    count = sum(not isinstance(step, Pause) for step in part.script)
    if not is_clip and not info.remembers and count > 1:
        why = f"the loaded model makes up another voice for each part of a text, and this one has {count}"
        raise InvalidRequest(f"{why}; choose a voice, shorten the text, or raise chunk_length", "voice")


class _Reader:
    """Applies the dictionaries of the project, of each turn's voice and of all voices, in this order."""

    def __init__(
        self, request: SpeechRequest, find: FindVoice, pronunciations: Pronunciations, card: ModelCard
    ) -> None:
        self._request, self._find, self._pronunciations = request, find, pronunciations
        self._tags = card.tags
        self._normalizes = card.normalize if request.normalize is None else request.normalize
        self._cast = {fold_speaker(name): voice for name, voice in (request.cast or {}).items()}
        self._cache: dict[str | None, tuple[Pronunciation, ...]] = {}

    def read(self, speaker: str | None, text: str) -> str:
        """The text for the model, with brackets only around tags. Blocking.

        ``speaker`` is the name as written; None is the request's own voice. Raises InvalidRequest for a control token
        that was hidden by other characters.
        """
        clean = clean_signs(text)
        if clean != text:
            try:
                refuse_control_tokens(clean, "input")
            except InvalidUtterance as error:
                raise InvalidRequest(str(error), "input") from None
        dictionary = dictionary_of(self._entries(speaker)) if self._request.dictionary else None
        return as_said(clean, self._tags, dictionary, self._normalizes)

    def _entries(self, speaker: str | None) -> tuple[Pronunciation, ...]:
        name = None if speaker is None else fold_speaker(speaker)
        if name not in self._cache:
            voice = self._voice(self._cast.get(name, speaker) if name else self._request.voice)
            scopes = (*([DictionaryScope("voice", voice.id)] if voice else []), GLOBAL)
            self._cache[name] = (*self._request.pronunciations, *self._pronunciations.entries(*scopes))
        return self._cache[name]

    def _voice(self, name: str | None) -> Voice | None:
        """None for a clip, and for an unknown voice, which is refused elsewhere."""
        if self._request.clips and name is None:
            return None
        try:
            return self._find(name)
        except UnknownVoice:
            return None


def reading_of(request: SpeechRequest, voices: VoiceResolver, card: ModelCard) -> str | None:
    """The text that would be read instead of the request's text; None if they are equal. Blocking: milliseconds.

    Raises InvalidRequest for a text that cannot be spoken.
    """
    return _read_as(_turns(request, _Reader(request, voices.find, voices.library.pronunciations, card), card))


def _turns(request: SpeechRequest, reader: _Reader, card: ModelCard) -> tuple[Turn, ...]:
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
        why = f"line {turn.line}: {turn.speaker!r} has no voice"
        message = f"{why}; give it one in cast, or do not begin the line with a name and a colon"
        raise InvalidRequest(message, "cast", "unknown_speaker") from None


def _label(voice: Voice | None) -> str:
    return voice.slug if voice else RANDOM


def _sampling(request: SpeechRequest, voice: Voice | None, info: EngineInfo) -> Sampling:
    usual = {name: getattr(info.sampling, name) for name in ("temperature", "top_p", "top_k")}
    return request.sampling(usual | (voice.defaults if voice else {}))
