"""Replaces a piece of speech: cut where the pauses are quietest, at equal loudness, and crossfaded."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

FADE = 0.01
"""Seconds of the crossfade at each joint."""
REACH = 0.02
"""Seconds around the middle of a pause that are looked through at least: the times of words are no more exact."""
AS_QUIET = 1.5
"""Among cuts with up to this multiple of the least energy, the one nearest the middle is chosen."""
LOUDEST = 0.99
"""What a gain may raise the piece's peak to."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Where a sentence is in a sound, in samples; None: there are no words before it, or after it."""

    start: int
    end: int
    before: int | None
    """Where the word before it ends."""
    after: int | None
    """Where the word after it begins."""


@dataclass(frozen=True, eq=False, slots=True)
class Spliced:
    """What came of it: float32 (samples,)."""

    pcm: np.ndarray
    inserted_by: int
    """By how many samples the new words are later than in their own sound; below 0: earlier."""
    moved_by: int
    """By how many samples the words behind them are later than before."""


def splice(old: np.ndarray, there: Piece, new: np.ndarray, here: Piece, sample_rate: int) -> Spliced:
    """Put the piece ``here`` of ``new`` in the place of that ``there`` in ``old``, both float32 (samples,) at one rate.

    Outside of it and its crossfades the sound is that of ``old``, sample for sample.
    """
    half = min(round(FADE * sample_rate / 2), len(old) // 4, len(new) // 4)
    old_from, old_to = 0, len(old)
    new_from, new_to = 0, len(new)
    if there.before is not None:
        old_from = _quietest(old, there.before, there.start, half, sample_rate)
        new_from = _quietest(new, here.before or 0, here.start, half, sample_rate)
    if there.after is not None:
        old_to = _quietest(old, there.end, there.after, half, sample_rate)
        new_to = _quietest(new, here.end, len(new) if here.after is None else here.after, half, sample_rate)
    old_to, new_to = max(old_from, old_to), max(new_from, new_to)
    half = min(half, (new_to - new_from) // 2)
    first, last = (0 if word is None else half for word in (there.before, there.after))
    new = new * _gain(old[there.start : there.end], new[here.start : here.end], new[new_from:new_to])
    pcm = np.concatenate(
        [
            old[: old_from - first],
            _crossfaded(old[old_from - first : old_from + first], new[new_from - first : new_from + first]),
            new[new_from + first : new_to - last],
            _crossfaded(new[new_to - last : new_to + last], old[old_to - last : old_to + last]),
            old[old_to + last :],
        ]
    )
    return Spliced(pcm.astype(np.float32), old_from - new_from, old_from - new_from + new_to - old_to)


def _quietest(pcm: np.ndarray, begin: int, end: int, half: int, sample_rate: int) -> int:
    """Where between two words the least is heard around a place, ``half`` samples on both sides."""
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


def _gain(old: np.ndarray, new: np.ndarray, whole: np.ndarray) -> float:
    """What makes the new words as loud as the old ones, as far as their peak has room for it."""
    wanted, there, peak = _rms(old), _rms(new), float(np.abs(whole).max(initial=0.0))
    if 0.0 in (wanted, there, peak):
        return 1.0
    return min(wanted / there, max(LOUDEST / peak, 1.0))


def _rms(pcm: np.ndarray) -> float:
    return math.sqrt(float(np.square(pcm, dtype=np.float64).mean())) if len(pcm) else 0.0


def _crossfaded(out: np.ndarray, into: np.ndarray) -> np.ndarray:
    """One sound fades out while the other, as long, fades in."""
    share = 0.5 - 0.5 * np.cos(np.pi * (np.arange(len(out)) + 0.5) / max(1, len(out)))
    return out * (1.0 - share) + into * share
