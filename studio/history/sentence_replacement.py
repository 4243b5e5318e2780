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
class ReplacementResult:
    """The audio with the new sentences."""

    wav: bytes = field(repr=False)
    samples: int
    words: Sequence[Timed]
    start: float
    """Seconds: audio after this time has moved by ``shift`` seconds, which may be negative."""
    shift: float


def replace_sentences(
    path: Path, rate: int, words: Sequence[Timed], selection: Selection, wav: bytes, times: Sequence[Timed]
) -> ReplacementResult:
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
        *_shifted(times[lead_words:], (low + result.inserted_by) / rate),
        *_shifted(words[selection.last :], shift),
    ]
    return ReplacementResult(
        wav_header(rate, len(pcm) // 2) + pcm, len(pcm) // 2, new_times, words[selection.first].start, shift
    )


def _piece(words: Sequence[Timed], first: int, last: int, rate: int) -> Piece:
    start, end = round(words[first].start * rate), round(words[last - 1].end * rate)
    before = round(words[first - 1].end * rate) if first else None
    return Piece(start, end, before, round(words[last].start * rate) if last < len(words) else None)


def _relative_to(piece: Piece, offset: int) -> Piece:
    before, after = (None if position is None else position - offset for position in (piece.before, piece.after))
    return Piece(piece.start - offset, piece.end - offset, before, after)


def _shifted(words: Sequence[Timed], shift: float) -> list[Timed]:
    return [Timed(word.text, word.start + shift, word.end + shift) for word in words]
