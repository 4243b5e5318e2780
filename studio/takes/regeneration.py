"""Regenerates sentences of a take, optionally with other words, as a new take; the other audio is copied."""

from __future__ import annotations

import secrets
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from audio.encode import WAV_HEADER, floats, pcm16, wav_header
from audio.splice import Piece, splice
from speechtext.sentence_selection import Selection, check_span, no_sentence, select
from speechtext.turns import Turn, fold_speaker, read_turns
from speechtext.word_times import Timed, are_all, places_of
from studio.errors import (
    BAD_INPUT,
    CannotRegenerate,
    DegenerateSpeech,
    EditConflict,
    InvalidRequest,
    NotFound,
    UnknownVoice,
)
from studio.library import Library
from studio.library.records import OWN_CLIP, RANDOM
from studio.library.take import NewTake, Take, TurnTime
from studio.speech.recorder import Recorder
from studio.speech.request import Origin, SpeechRequest
from studio.speech.resume import made_by, other_model
from studio.speech.speech_service import SpeechService
from studio.speech.word_times import TakeWordTimes, without_names
from studio.takes.history import History, TakeJson
from studio.takes.take_json import current_address, request_again
from studio.work import read, write

AROUND = 0.5
"""Seconds of audio examined on both sides of the pauses; everything further away is copied unchanged."""

RequestOf = Callable[[str, int], SpeechRequest]
"""Builds the request for a text and a seed, with WAV as its format."""


@dataclass(frozen=True, eq=False, slots=True)
class RegenerationResult:
    new_take: NewTake
    speech_take: Take  # only the newly generated sentences
    work_s: float
    """Seconds taken to generate them."""


@dataclass(frozen=True, eq=False, slots=True)
class _Replacement:
    """The audio with the new sentences."""

    wav: bytes = field(repr=False)
    samples: int
    words: Sequence[Timed]
    start: float
    """Seconds: audio after this time has moved by ``shift`` seconds, which may be negative."""
    shift: float


class Regeneration:
    """Regenerates sentences of the library's takes. Used from one event loop."""

    def __init__(self, history: History, times: TakeWordTimes, library: Library, service: SpeechService) -> None:
        self._history, self._times, self._library, self._service = history, times, library, service

    async def add_take(
        self,
        take_id: str,
        start: int,
        end: int,
        owner_filter: str | None,
        origin: Origin,
        replacement: str | None = None,
    ) -> TakeJson:
        """Derive a new take from a stored one. ``start`` and ``end``: the range of its text that ``replacement``
        replaces.

        Raises NotFound, InProgress, InvalidRequest, CannotRegenerate, LibraryFull, and the errors of `regenerate`.
        """
        take, _ = await self._history.sound(take_id, owner_filter)
        recorder = self._check(take)
        choose = partial(self._choose, take, start, end, replacement)
        try:
            result = await self.regenerate(take, origin, choose)
        except UnknownVoice as error:
            why = "the take's voice is no longer in the library; restore it, or generate the take in another one"
            raise CannotRegenerate(why, "take_id") from error
        take = replace(result.new_take.take, id=origin.request_id, part_id=None, recipe=None, work_s=None)
        await write(recorder.keep, replace(result.new_take, take=take), patient=True)
        return await self._history.get(take.id, owner_filter)

    async def regenerate(
        self, take: Take, origin: Origin, choose: Callable[[Sequence[str]], tuple[Selection, RequestOf]]
    ) -> RegenerationResult:
        """Regenerate sentences of a take without storing it. ``choose`` selects the sentences from all spoken words.

        Raises InvalidRequest for a replacement that cannot be spoken, CannotRegenerate, NotFound if the audio is gone,
        EditConflict if another model is loaded now, DegenerateSpeech, and the errors of TakeWordTimes.words,
        SpeechService.speak and Speech.timestamps.
        """
        await read(self._check_model, take)
        words = await self._times.words(take, origin.caller)
        spoken = [word.text for word in words]
        if not await read(lambda: are_all(without_names(take.text, "cast" in take.parameters), spoken)):
            raise CannotRegenerate("this take has no word times; regenerate all of it", "take_id")
        selection, request_of = await read(choose, spoken)
        started = time.perf_counter()
        seed = secrets.randbelow(2**31)  # the voice's own seed would give the same audio
        record = await self._with_text(take, selection.new_text, request_of, origin.caller)
        speech = await self._service.speak(request_of(f"{selection.lead}{selection.text}", seed), origin)
        async with aclosing(speech):
            if speech.sample_rate != take.sample_rate:
                rate = f"{take.sample_rate} Hz"
                raise EditConflict(f"this take was made at {rate}, with another model; regenerate all of it")
            wav = b"".join([piece async for piece in speech.body])
            times = await speech.timestamps("word")
        work_s = time.perf_counter() - started
        path = self._library.files.path(take.audio)
        result = await read(_replace_sentences, path, take.sample_rate, words, selection, wav, times, patient=True)
        info = self._service.host.engine().info
        new_record = replace(_record(record, result, info.frame_samples), made_by=made_by(info))
        return RegenerationResult(NewTake(new_record, [result.wav], words=result.words), speech.record, work_s)

    async def _with_text(self, take: Take, text: str, request_of: RequestOf, caller: str) -> Take:
        """The record of the take with this text, and how it is read. Raises InvalidRequest, QueueFull, UnknownVoice."""
        if text == take.text:
            return take
        try:
            request = request_of(text, 0)
            if "cast" in take.parameters:
                request = replace(request, **await read(self._cast_of, take))
            reading = await self._service.reading(request, caller)
        except BAD_INPUT as error:
            raise InvalidRequest(error.message, "replacement") from None
        return replace(take, text=text, parameters=take.parameters | {"read_as": None if reading == text else reading})

    def _cast_of(self, take: Take) -> dict[str, Any]:
        """The voices of a dialogue under their present names. Blocking."""
        request = request_again(take, self._library) or {}
        return {"cast": request["cast"], "voice": request.get("voice")}

    def _check(self, take: Take) -> Recorder:
        """Raises CannotRegenerate if the take cannot be regenerated, or no takes are stored."""
        if self._service.recorder is None:
            why = "nothing can be stored here (STUDIO_KEEP_TAKES is 0)"
            raise CannotRegenerate(f"{why}, so a regenerated take would be lost")
        if take.state != "finished" or take.finish_reason != "stop":
            raise CannotRegenerate("this take is incomplete; continue it or regenerate all of it", "take_id")
        return self._service.recorder

    def _check_model(self, take: Take) -> None:
        """Check that the same model is loaded, since another would change the voice. Blocking.

        Raises CannotRegenerate, NotReady, Unavailable.
        """
        codes, info = self._library.takes.codes(take.id), self._service.host.engine().info
        if why := other_model(take, codes.made_by if codes else take.made_by or made_by(info), info):
            raise CannotRegenerate(f"{why}; regenerate all of it", "take_id")

    def _choose(
        self, take: Take, start: int, end: int, replacement: str | None, words: Sequence[str]
    ) -> tuple[Selection, RequestOf]:
        """Blocking. Raises InvalidRequest without a sentence, CannotRegenerate for a voice that is not stored."""
        cast = take.parameters.get("cast")
        if cast is None:
            sentences, voice = select(take.text, start, end, words, replacement), take.voice
        else:
            turn, sentences = _turn_of(take.text, start, end, words, replacement)
            voice = _voice_of(turn, cast, take.parameters)
        if voice == OWN_CLIP:
            why = "this take was made with an uploaded clip, which is not stored"
            raise CannotRegenerate(f"{why}; make a voice of the clip, and generate the take with that", "take_id")
        if voice == RANDOM:
            why = "the voice of this take was chosen by its seed; another seed has another one"
            raise CannotRegenerate(why, "take_id")
        return sentences, partial(_request, take, current_address(take, voice, self._library.seen_by(take.caller)))


def _turn_of(text: str, start: int, end: int, words: Sequence[str], replacement: str | None) -> tuple[Turn, Selection]:
    """The selected turn of a dialogue, and its sentences. Raises InvalidRequest."""
    check_span(text, start, end)
    positions = places_of(without_names(text, True), words)
    offset, turns = 0, list[tuple[Turn, int, int]]()
    for turn in read_turns(text):
        turn_start, turn_end = turn.begins, turn.begins + len(turn.written)
        first, offset = bisect_left(positions, offset), offset + len(turn.written) + 1  # as joined by without_names
        if (turn_start < end and start < turn_end) or turn_start <= start == end <= turn_end:
            turns.append((turn, first, bisect_left(positions, offset)))
    if not turns:
        raise no_sentence()
    if len(turns) > 1:
        raise CannotRegenerate("several speakers are selected: select words of one of them", "start")
    turn, first, last = turns[0]
    turn_end = turn.begins + len(turn.written)
    if replacement is not None and not turn.begins <= start <= end <= turn_end:
        raise InvalidRequest("only the words of a turn can be replaced, not the speaker's name", "start")
    start, end = (min(max(0, position - turn.begins), len(turn.written)) for position in (start, end))
    selection = select(turn.written, start, end, words[first:last], replacement)
    new_text = text[: turn.begins] + selection.new_text + text[turn_end:]
    if replacement is not None and _speakers(new_text) != _speakers(text):
        raise InvalidRequest("a line that begins with a name would be another turn: leave the name out", "replacement")
    return turn, replace(selection, first=selection.first + first, last=selection.last + first, new_text=new_text)


def _speakers(text: str) -> list[str | None]:
    return [turn.speaker for turn in read_turns(text)]


def _voice_of(turn: Turn, cast: Mapping[str, str], parameters: Mapping[str, Any]) -> str:
    if turn.speaker is None:
        return str(parameters["voice"])
    return {fold_speaker(name): voice for name, voice in cast.items()}[fold_speaker(turn.speaker)]


def _request(take: Take, voice: str, text: str, seed: int) -> SpeechRequest:
    """The original's settings, but with today's reading of the text: the old reading may have been the problem."""
    parameters = take.parameters
    names = ["temperature", "top_p", "top_k", "speed", "chunk_length", "normalize", "dictionary"]
    names += ["language", "instructions"]
    settings = {name: parameters[name] for name in names if parameters.get(name) is not None}
    return SpeechRequest(text=text, voice=voice, format="wav", seed=seed, store=False, **settings)


def _record(take: Take, result: _Replacement, frame_samples: int) -> Take:
    """The record of the new take, without the original's performance figures."""
    seconds = result.samples / take.sample_rate
    return replace(
        take,
        created=time.time(),
        frames=round(result.samples * float(take.parameters.get("speed") or 1.0) / frame_samples),
        seconds=seconds,
        audio_s=seconds,
        turns=tuple(_shifted(turn, result) for turn in take.turns),
        regenerated_from=take.id,
        starred=False,
        live=False,
        queue_ms=None,
        first_audio_ms=None,
        generation_s=None,
        resumed_at=None,
        continues=None,
    )


def _shifted(turn: TurnTime, result: _Replacement) -> TurnTime:
    start, end = (seconds + (result.shift if seconds > result.start else 0.0) for seconds in (turn.start_s, turn.end_s))
    return replace(turn, start_s=start, end_s=end)


def _replace_sentences(
    path: Path, rate: int, words: Sequence[Timed], selection: Selection, wav: bytes, times: Sequence[Timed]
) -> _Replacement:
    """Replace sentences in a stored 16-bit mono WAV at ``rate`` Hz, whose ``words`` have these times.

    ``wav`` and ``times`` belong to the new audio: the lead, and then the sentences. Only their surroundings are
    examined, however long the audio is. Blocking. Raises DegenerateSpeech if words are missing, NotFound if the
    stored file is gone.
    """
    text, spoken_words = f"{selection.lead}{selection.text}", [word.text for word in times]
    lead_words = bisect_left(places_of(text, spoken_words), len(selection.lead))
    if not are_all(text, spoken_words):
        raise DegenerateSpeech("the generated sentence is incomplete; try again")
    try:
        old_pcm = path.read_bytes()[WAV_HEADER:]
    except FileNotFoundError:
        raise NotFound("the audio file of this take is missing from the library", "take") from None
    piece = _piece(words, selection.first, selection.last, rate)
    low = 0 if piece.before is None else max(0, piece.before - round(AROUND * rate))
    high = len(old_pcm) // 2 if piece.after is None else min(len(old_pcm) // 2, piece.after + round(AROUND * rate))
    context, new_audio = floats(old_pcm[2 * low : 2 * high]), floats(wav[WAV_HEADER:])
    result = splice(context, _relative_to(piece, low), new_audio, _piece(times, lead_words, len(times), rate), rate)
    pcm = b"".join([old_pcm[: 2 * low], pcm16(result.pcm), old_pcm[2 * high :]])
    shift = result.moved_by / rate
    new_times = [
        *words[: selection.first],
        *_words_later(times[lead_words:], (low + result.inserted_by) / rate),
        *_words_later(words[selection.last :], shift),
    ]
    samples, start = len(pcm) // 2, words[selection.first].start
    return _Replacement(wav_header(rate, samples) + pcm, samples, new_times, start, shift)


def _piece(words: Sequence[Timed], first: int, last: int, rate: int) -> Piece:
    start, end = round(words[first].start * rate), round(words[last - 1].end * rate)
    before = round(words[first - 1].end * rate) if first else None
    return Piece(start, end, before, round(words[last].start * rate) if last < len(words) else None)


def _relative_to(piece: Piece, offset: int) -> Piece:
    before, after = (None if position is None else position - offset for position in (piece.before, piece.after))
    return Piece(piece.start - offset, piece.end - offset, before, after)


def _words_later(words: Sequence[Timed], shift: float) -> list[Timed]:
    return [Timed(word.text, word.start + shift, word.end + shift) for word in words]
