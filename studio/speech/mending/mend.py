"""Sentences spoken anew: after the one before them, cut out of what was said, and put into the sound that there is."""

from __future__ import annotations

import secrets
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

from anyio import to_thread

from studio.audio.encode import WAV_HEADER, floats, pcm16, wav_header
from studio.audio.splice import Piece, splice
from studio.errors import Changed, DegenerateSpeech, NotFound
from studio.library.records import WordTime
from studio.speech.mending.selection import Selection
from studio.speech.request import Origin, SpeechRequest
from studio.speech.speech_service import Speech, SpeechService
from studio.speech.timing.words import places_of

AROUND = 0.5
"""Seconds of the sound on both sides of the pauses that are looked at; what is further away is copied as it is."""


@dataclass(frozen=True, slots=True)
class KeptSound:
    """A sound as it is kept: a mono WAV of 16 bits, and when each word of its text is heard."""

    wav: Path
    sample_rate: int
    words: Sequence[WordTime]


@dataclass(frozen=True, eq=False, slots=True)
class Mended:
    """The sound with the sentences in it."""

    wav: bytes = field(repr=False)
    samples: int
    words: Sequence[WordTime]
    begins: float
    """Seconds: what comes after this is heard ``later`` by so many, which may be below 0."""
    later: float


@dataclass(frozen=True, eq=False, slots=True)
class SpokenAnew:
    """What was spoken, and the sound that came of it."""

    speech: Speech
    work_s: float
    """Seconds that it took to speak."""
    result: Mended


async def mend(
    service: SpeechService,
    heard: KeptSound,
    chosen: Selection,
    request_of: Callable[[str, int], SpeechRequest],
    origin: Origin,
) -> SpokenAnew:
    """Have these sentences of a sound spoken anew. ``request_of`` makes the request, a WAV, of a text and a seed.

    Raises Changed where another model speaks now, DegenerateSpeech, NotFound where the sound is gone, and what
    SpeechService.speak and Speech.timestamps raise.
    """
    begun = time.perf_counter()
    text = f"{chosen.lead}{chosen.text}"
    seed = secrets.randbelow(2**31)  # the voice's own would say the same again
    speech = await service.speak(request_of(text, seed), origin)
    async with aclosing(speech):
        if speech.sample_rate != heard.sample_rate:
            raise Changed(f"it was spoken at {heard.sample_rate} Hz, by another model; speak all of it again")
        wav = b"".join([piece async for piece in speech.body])
        times = [(word.text, word.start, word.end) for word in await speech.timestamps("word")]
    work_s = time.perf_counter() - begun
    return SpokenAnew(speech, work_s, await to_thread.run_sync(_joined, heard, chosen, wav, times))


def _joined(heard: KeptSound, chosen: Selection, wav: bytes, times: Sequence[WordTime]) -> Mended:
    """Blocking. Only what is near to the sentences is looked at, however long the sound is."""
    places = places_of(f"{chosen.lead}{chosen.text}", [word for word, _, _ in times])
    skipped, rate = bisect_left(places, len(chosen.lead)), heard.sample_rate
    if len(times) - skipped != chosen.last - chosen.first:
        raise DegenerateSpeech("the sentence was not spoken to its end; try it again")
    try:
        old = heard.wav.read_bytes()[WAV_HEADER:]
    except FileNotFoundError:
        raise NotFound("the audio file of this take is missing from the library", "take") from None
    there = _piece(heard.words, chosen.first, chosen.last, rate)
    low = 0 if there.before is None else max(0, there.before - round(AROUND * rate))
    high = len(old) // 2 if there.after is None else min(len(old) // 2, there.after + round(AROUND * rate))
    near, new = floats(old[2 * low : 2 * high]), floats(wav[WAV_HEADER:])
    made = splice(near, _earlier(there, low), new, _piece(times, skipped, len(times), rate), rate)
    pcm = b"".join([old[: 2 * low], pcm16(made.pcm), old[2 * high :]])
    begins, later = heard.words[chosen.first][1], made.moved_by / rate
    words = [
        *heard.words[: chosen.first],
        *_later(times[skipped:], (low + made.inserted_by) / rate),
        *_later(heard.words[chosen.last :], later),
    ]
    return Mended(wav_header(rate, len(pcm) // 2) + pcm, len(pcm) // 2, words, begins, later)


def _piece(words: Sequence[WordTime], first: int, last: int, rate: int) -> Piece:
    start, end = round(words[first][1] * rate), round(words[last - 1][2] * rate)
    before = round(words[first - 1][2] * rate) if first else None
    return Piece(start, end, before, round(words[last][1] * rate) if last < len(words) else None)


def _earlier(piece: Piece, samples: int) -> Piece:
    before, after = (None if each is None else each - samples for each in (piece.before, piece.after))
    return Piece(piece.start - samples, piece.end - samples, before, after)


def _later(words: Sequence[WordTime], seconds: float) -> list[WordTime]:
    return [(word, start + seconds, end + seconds) for word, start, end in words]
