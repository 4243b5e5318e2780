"""Sentences put in the place of others in a sound, without a step, and when all words are heard then."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from studio.audio.encode import WAV_HEADER, floats, pcm16, wav_header
from studio.audio.splice import Piece, splice
from studio.errors import DegenerateSpeech, NotFound
from studio.history.sentence_selection import Selection
from studio.library.takes.take import Timed
from studio.speech.timing.words import places_of

AROUND = 0.5
"""Seconds of the sound on both sides of the pauses that are looked at; what is further away is copied as it is."""


@dataclass(frozen=True, eq=False, slots=True)
class Replaced:
    """The sound with the sentences in it."""

    wav: bytes = field(repr=False)
    samples: int
    words: Sequence[Timed]
    begins: float
    """Seconds: what comes after this is heard ``later`` by so many, which may be below 0."""
    later: float


def replace_sentences(
    kept: Path, rate: int, words: Sequence[Timed], chosen: Selection, wav: bytes, times: Sequence[Timed]
) -> Replaced:
    """Put sentences into a kept mono WAV of 16 bits at ``rate`` Hz, whose ``words`` are heard at these times.

    ``wav`` and ``times`` are of what was spoken now: the lead, and then the sentences. Only what is near to them is
    looked at, however long the sound is. Blocking. Raises DegenerateSpeech where words are missing, NotFound where the
    kept file is gone.
    """
    places = places_of(f"{chosen.lead}{chosen.text}", [word.text for word in times])
    skipped = bisect_left(places, len(chosen.lead))
    if len(times) - skipped != chosen.last - chosen.first:
        raise DegenerateSpeech("the sentence was not spoken to its end; try it again")
    try:
        old = kept.read_bytes()[WAV_HEADER:]
    except FileNotFoundError:
        raise NotFound("the audio file of this take is missing from the library", "take") from None
    there = _piece(words, chosen.first, chosen.last, rate)
    low = 0 if there.before is None else max(0, there.before - round(AROUND * rate))
    high = len(old) // 2 if there.after is None else min(len(old) // 2, there.after + round(AROUND * rate))
    near, new = floats(old[2 * low : 2 * high]), floats(wav[WAV_HEADER:])
    joined = splice(near, _earlier(there, low), new, _piece(times, skipped, len(times), rate), rate)
    pcm = b"".join([old[: 2 * low], pcm16(joined.pcm), old[2 * high :]])
    later = joined.moved_by / rate
    heard = [
        *words[: chosen.first],
        *_later(times[skipped:], (low + joined.inserted_by) / rate),
        *_later(words[chosen.last :], later),
    ]
    return Replaced(wav_header(rate, len(pcm) // 2) + pcm, len(pcm) // 2, heard, words[chosen.first].start, later)


def _piece(words: Sequence[Timed], first: int, last: int, rate: int) -> Piece:
    start, end = round(words[first].start * rate), round(words[last - 1].end * rate)
    before = round(words[first - 1].end * rate) if first else None
    return Piece(start, end, before, round(words[last].start * rate) if last < len(words) else None)


def _earlier(piece: Piece, samples: int) -> Piece:
    before, after = (None if place is None else place - samples for place in (piece.before, piece.after))
    return Piece(piece.start - samples, piece.end - samples, before, after)


def _later(words: Sequence[Timed], seconds: float) -> list[Timed]:
    return [Timed(word.text, word.start + seconds, word.end + seconds) for word in words]
