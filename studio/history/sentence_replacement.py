"""Replaces sentences in audio seamlessly, and computes the new word times."""

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
from studio.speech.timing.words import are_all, places_of

AROUND = 0.5
"""Seconds of audio examined on both sides of the pauses; everything further away is copied unchanged."""


@dataclass(frozen=True, eq=False, slots=True)
class Replaced:
    """The audio with the new sentences."""

    wav: bytes = field(repr=False)
    samples: int
    words: Sequence[Timed]
    begins: float
    """Seconds: audio after this time is ``later`` by this much, which may be negative."""
    later: float


def replace_sentences(
    kept: Path, rate: int, words: Sequence[Timed], chosen: Selection, wav: bytes, times: Sequence[Timed]
) -> Replaced:
    """Replace sentences in a stored 16-bit mono WAV at ``rate`` Hz, whose ``words`` have these times.

    ``wav`` and ``times`` belong to the new audio: the lead, and then the sentences. Only their surroundings are
    examined, however long the audio is. Blocking. Raises DegenerateSpeech if words are missing, NotFound if the
    stored file is gone.
    """
    text, spoken = f"{chosen.lead}{chosen.text}", [word.text for word in times]
    skipped = bisect_left(places_of(text, spoken), len(chosen.lead))
    if not are_all(text, spoken):
        raise DegenerateSpeech("the generated sentence is incomplete; try again")
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
    timed = [
        *words[: chosen.first],
        *_later(times[skipped:], (low + joined.inserted_by) / rate),
        *_later(words[chosen.last :], later),
    ]
    return Replaced(wav_header(rate, len(pcm) // 2) + pcm, len(pcm) // 2, timed, words[chosen.first].start, later)


def _piece(words: Sequence[Timed], first: int, last: int, rate: int) -> Piece:
    start, end = round(words[first].start * rate), round(words[last - 1].end * rate)
    before = round(words[first - 1].end * rate) if first else None
    return Piece(start, end, before, round(words[last].start * rate) if last < len(words) else None)


def _earlier(piece: Piece, samples: int) -> Piece:
    before, after = (None if place is None else place - samples for place in (piece.before, piece.after))
    return Piece(piece.start - samples, piece.end - samples, before, after)


def _later(words: Sequence[Timed], seconds: float) -> list[Timed]:
    return [Timed(word.text, word.start + seconds, word.end + seconds) for word in words]
