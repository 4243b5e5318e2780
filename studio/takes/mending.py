"""Sentences of a kept take spoken anew, in the same voice: a take of its own, and the one before stays as it is."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anyio import to_thread

from studio.errors import CannotMend, UnknownVoice
from studio.library import Library, StoredTake
from studio.library.records import OWN_CLIP, RANDOM
from studio.speech.continuing import made_by
from studio.speech.dialogue import Turn, fold_speaker, read_turns
from studio.speech.mending.mend import KeptSound, Mended, SpokenAnew, mend
from studio.speech.mending.selection import Selection, check_span, no_sentence, select
from studio.speech.request import Origin, SpeechRequest
from studio.speech.speech_service import SpeechService
from studio.speech.timing.timestamps import without_names
from studio.speech.timing.words import are_all, places_of
from studio.takes.as_json import address_now
from studio.takes.history import History, TakeJson
from studio.takes.recorder import Recorder
from studio.takes.timestamps import TakeTimes


@dataclass(frozen=True, slots=True)
class Chosen:
    """Sentences of a take, and the voice that says them."""

    sentences: Selection
    voice: str


class TakeMender:
    """Of the takes of this history. Used from one event loop."""

    def __init__(self, history: History, times: TakeTimes, library: Library, service: SpeechService) -> None:
        self._history, self._times, self._library, self._service = history, times, library, service

    async def mend(self, take_id: str, start: int, end: int, sees: str | None, origin: Origin) -> TakeJson:
        """The new take, whose id is the origin's. ``start`` and ``end``: characters of the take's text.

        Raises NotFound, UnderWay, InvalidRequest, CannotMend, LibraryFull, what TakeTimes.get raises and what
        studio.speech.mending.mend raises.
        """
        take, wav = await self._history.sound(take_id, sees)
        recorder = self._check(take)
        await to_thread.run_sync(self._check_model, take)
        _, words = await self._times.get(take_id, "word", sees, origin.caller)
        chosen = await to_thread.run_sync(self._chosen, take, start, end, [word.text for word in words])
        heard = KeptSound(wav, take.sample_rate, [(word.text, word.start, word.end) for word in words])

        def request(text: str, seed: int) -> SpeechRequest:
            return _request(take, chosen.voice, text, seed)

        try:
            made = await mend(self._service, heard, chosen.sentences, request, origin)
        except UnknownVoice as error:
            raise CannotMend(
                "the voice in which it was spoken is no longer in the library; bring the voice back, or speak all of "
                "it again in another one",
                "take_id",
            ) from error
        info = self._service.host.engine().info
        mended = _mended(take, origin.request_id, made, made_by(info), info.frame_samples)
        await to_thread.run_sync(recorder.keep, mended, made.result.wav, made.result.words)
        return await self._history.get(mended.id, sees)

    def _check(self, take: StoredTake) -> Recorder:
        """Raises CannotMend for a take of which no sentence can be, and where no takes are kept."""
        if self._service.recorder is None:
            raise CannotMend("this studio keeps no takes (KEEP_TAKES is 0), so there is nowhere to keep the new one")
        if take.state != "finished" or take.finish_reason != "stop":
            raise CannotMend("it was not spoken to its end; continue it, or speak all of it again", "take_id")
        if take.media_type != "audio/wav":
            raise CannotMend(f"it is kept as {take.media_type}, by an older version; speak all of it again", "take_id")
        return self._service.recorder

    def _check_model(self, take: StoredTake) -> None:
        """Another model would be another voice. Blocking. Raises CannotMend, NotReady, Unavailable."""
        codes, now = self._library.takes.codes(take.id), made_by(self._service.host.engine().info)
        before = codes.made_by if codes else take.timings.get("made_by", now)
        if before != now:
            raise CannotMend(
                f"it was spoken by another model or codec than the one that is loaded ({before}, not {now}); "
                "speak all of it again",
                "take_id",
            )

    def _chosen(self, take: StoredTake, start: int, end: int, words: Sequence[str]) -> Chosen:
        """Blocking. Raises InvalidRequest where no sentence is, CannotMend for a voice that cannot be asked again."""
        cast = take.parameters.get("cast")
        if not are_all(without_names(take.text, cast is not None), words):
            raise CannotMend("nothing tells when these words are heard; speak all of it again", "take_id")
        if cast is None:
            sentences, voice = select(take.text, start, end, words), take.voice
        else:
            turn, sentences = _turn_of(take.text, start, end, words)
            voice = _voice_of(turn, cast, take.parameters)
        if voice == OWN_CLIP:
            raise CannotMend(
                "it was spoken in a clip of its request's own, which is not kept; make a voice of the clip, and speak "
                "all of it again in that",
                "take_id",
            )
        if voice == RANDOM:
            raise CannotMend("its voice came of its seed, and another seed has another voice", "take_id")
        return Chosen(sentences, address_now(take, voice, self._library))


def _turn_of(text: str, start: int, end: int, words: Sequence[str]) -> tuple[Turn, Selection]:
    """The one turn of a dialogue that is selected, and its sentences. Raises InvalidRequest."""
    check_span(text, start, end)
    places = places_of(without_names(text, True), words)
    at, found = 0, list[tuple[Turn, int, int]]()
    for turn in read_turns(text):
        begins, ends = turn.begins, turn.begins + len(turn.written)
        first, at = bisect_left(places, at), at + len(turn.written) + 1  # as without_names puts them together
        if (begins < end and start < ends) or begins <= start == end <= ends:
            found.append((turn, first, bisect_left(places, at)))
    if not found:
        raise no_sentence()
    if len(found) > 1:
        raise CannotMend("several speakers are selected: select words of one of them", "start")
    turn, first, last = found[0]
    start, end = (min(max(0, each - turn.begins), len(turn.written)) for each in (start, end))
    said = select(turn.written, start, end, words[first:last])
    return turn, replace(said, first=said.first + first, last=said.last + first)


def _voice_of(turn: Turn, cast: Mapping[str, str], parameters: Mapping[str, Any]) -> str:
    if turn.speaker is None:
        return str(parameters["voice"])
    return {fold_speaker(name): voice for name, voice in cast.items()}[fold_speaker(turn.speaker)]


def _request(take: StoredTake, voice: str, text: str, seed: int) -> SpeechRequest:
    """As the take was asked for, and read as words are read today: maybe that is what was wrong with it."""
    kept = take.parameters
    names = ("temperature", "top_p", "top_k", "speed", "chunk_length", "normalize", "dictionary")
    as_it_was = {name: kept[name] for name in names if kept.get(name) is not None}
    return SpeechRequest(text=text, voice=voice, format="wav", seed=seed, store=False, **as_it_was)


def _mended(take: StoredTake, new_id: str, made: SpokenAnew, model: str, frame_samples: int) -> StoredTake:
    """The record of the take that it became; figures of the old one's making do not hold for it."""
    result = made.result
    seconds = result.samples / take.sample_rate
    timings: dict[str, Any] = {"audio_s": seconds, "mends": take.id, "made_by": model}
    if "turns" in take.timings:
        timings["turns"] = [_moved(turn, result) for turn in take.timings["turns"]]
    return replace(
        take,
        id=new_id,
        created=time.time(),
        timings=timings,
        frames=round(result.samples * float(take.parameters.get("speed") or 1.0) / frame_samples),
        seconds=seconds,
        audio=None,
        size=0,
        starred=False,
    )


def _moved(turn: Mapping[str, Any], result: Mended) -> dict[str, Any]:
    times = {name: turn[name] + (result.later if turn[name] > result.begins else 0.0) for name in ("start_s", "end_s")}
    return {**turn, **times}
