"""Replaces a piece of speech: cut where the pauses are quietest, at equal loudness, with crossfades."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

FADE = 0.01  # seconds of the crossfade at each joint
REACH = 0.02
"""Minimum seconds searched around the middle of a pause, which is the accuracy of word times."""
AS_QUIET = 1.5
"""Among cuts with up to this multiple of the lowest energy, the one nearest the middle is chosen."""
LOUDEST = 0.99  # the highest peak that the gain may give the piece


@dataclass(frozen=True, slots=True)
class Piece:
    """The span of a sentence in audio, in samples; None: no word before it, or after it."""

    start: int
    end: int
    before: int | None  # the end of the previous word
    after: int | None  # the start of the next word


@dataclass(frozen=True, eq=False, slots=True)
class Spliced:
    """The result of a splice: float32 (samples,)."""

    pcm: np.ndarray
    inserted_by: int
    """Samples by which the new words are later than in their own audio; below 0: earlier."""
    moved_by: int  # samples by which the following words are later than before


def splice(old: np.ndarray, old_piece: Piece, new: np.ndarray, new_piece: Piece, sample_rate: int) -> Spliced:
    """Replace the piece ``old_piece`` of ``old`` by ``new_piece`` of ``new``, both float32 (samples,) at one rate.

    Outside the piece and its crossfades the audio equals ``old``, sample for sample.
    """
    half = min(round(FADE * sample_rate / 2), len(old) // 4, len(new) // 4)
    old_from, old_to = 0, len(old)
    new_from, new_to = 0, len(new)
    if old_piece.before is not None:
        old_from = quietest(old, old_piece.before, old_piece.start, half, sample_rate)
        new_from = quietest(new, new_piece.before or 0, new_piece.start, half, sample_rate)
    if old_piece.after is not None:
        old_to = quietest(old, old_piece.end, old_piece.after, half, sample_rate)
        new_to = quietest(
            new, new_piece.end, len(new) if new_piece.after is None else new_piece.after, half, sample_rate
        )
    old_to, new_to = max(old_from, old_to), max(new_from, new_to)
    half = min(half, (new_to - new_from) // 2)
    head, tail = (0 if word is None else half for word in (old_piece.before, old_piece.after))
    new = new * _gain(old[old_piece.start : old_piece.end], new[new_piece.start : new_piece.end], new[new_from:new_to])
    pcm = np.concatenate(
        [
            old[: old_from - head],
            _crossfaded(old[old_from - head : old_from + head], new[new_from - head : new_from + head]),
            new[new_from + head : new_to - tail],
            _crossfaded(new[new_to - tail : new_to + tail], old[old_to - tail : old_to + tail]),
            old[old_to + tail :],
        ]
    )
    return Spliced(pcm.astype(np.float32), old_from - new_from, old_from - new_from + new_to - old_to)


def quietest(pcm: np.ndarray, begin: int, end: int, half: int, sample_rate: int) -> int:
    """The quietest place between two words, measured over ``half`` samples on both sides."""
    middle = (begin + end) // 2
    reach = max((end - begin) // 2, round(REACH * sample_rate))
    low = min(max(half, middle - reach), max(half, len(pcm) - half))
    high = max(low, min(len(pcm) - half, middle + reach))
    sums = np.concatenate([[0.0], np.cumsum(np.square(pcm[low - half : high + half], dtype=np.float64))])
    energy = sums[2 * half :] - sums[: len(sums) - 2 * half]
    if not len(energy):
        return low
    places = low + np.flatnonzero(energy <= AS_QUIET * energy.min() + 1e-12)
    return int(places[np.argmin(np.abs(places - middle))])


def _gain(old: np.ndarray, new: np.ndarray, inserted: np.ndarray) -> float:
    """The gain that makes the new words as loud as the old ones, as far as their peak allows."""
    old_level, new_level, peak = _rms(old), _rms(new), float(np.abs(inserted).max(initial=0.0))
    if 0.0 in (old_level, new_level, peak):
        return 1.0
    return min(old_level / new_level, max(LOUDEST / peak, 1.0))


def _rms(pcm: np.ndarray) -> float:
    return math.sqrt(float(np.square(pcm, dtype=np.float64).mean())) if len(pcm) else 0.0


def _crossfaded(out: np.ndarray, into: np.ndarray) -> np.ndarray:
    """Crossfades two pieces of the same length."""
    share = 0.5 - 0.5 * np.cos(np.pi * (np.arange(len(out)) + 0.5) / max(1, len(out)))
    return out * (1.0 - share) + into * share
