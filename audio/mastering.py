"""Masters audio to a loudness standard: finds the gain by measuring, and applies it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass

import numpy as np

from audio import AudioError
from audio.limiter import Limiter
from audio.loudness import Loudness, Meter, amplitude

NONE = "none"  # no standard: audio as generated
MOST_GAIN = 30.0
"""Maximum gain in dB; audio that needs more is close to silence, and its noise would become audible."""
CLOSE = 0.25  # inaudible deviation from the target in dB, which needs no further pass
PASSES = 4  # a judgement: each costs as much as encoding the file, and the last ones change little


@dataclass(frozen=True, slots=True)
class Standard:
    """The requirements for a finished file."""

    name: str
    by_rms: bool  # whether its level is RMS in dB instead of loudness in LUFS
    target: float
    lowest: float
    highest: float  # the level must be between these
    ceiling: float  # maximum peak in dB
    limit: float
    """The limiter's ceiling in dBTP: lossy formats and resampling raise peaks by a few tenths."""
    noise_floor: float | None = None  # maximum dB of the quietest half second
    bit_rate: int | None = None  # bit rate of its MP3 files, in bits per second
    head: float = 0.0
    tail: float = 0.0  # seconds of silence before and after each chapter's file

    def level(self, loudness: Loudness) -> float | None:
        return loudness.rms if self.by_rms and loudness.integrated is not None else loudness.integrated

    def faults(self, loudness: Loudness) -> list[str]:
        """The requirements that a finished file with these measurements fails, as sentences."""
        level, unit = self.level(loudness), "dB RMS" if self.by_rms else "LUFS"
        if level is None:
            return ["It is too short or too quiet to be measured."]
        faults = []
        if not self.lowest <= level <= self.highest:
            faults.append(f"Its level is {level:.1f} {unit}, not {self.lowest:g} to {self.highest:g}.")
        peak = loudness.peak if self.by_rms else loudness.true_peak
        if peak > self.ceiling + 0.05:
            faults.append(f"Its highest peak is {peak:.1f} dB, above {self.ceiling:g}.")
        if self.noise_floor is not None and loudness.noise_floor > self.noise_floor:
            faults.append(f"Its noise floor is {loudness.noise_floor:.1f} dB, above {self.noise_floor:g}.")
        return faults


STANDARDS = {
    # Apple Podcasts and the AES (TD1008): -16 LUFS within 1 LU, true peaks of at most -1 dBTP.
    "podcast": Standard("podcast", False, -16.0, -17.0, -15.0, -1.0, -1.6),
    # ACX: each file -23 to -18 dB RMS, peaks of at most -3 dB, noise floor of at most -60; MP3 of 192 kbit/s or more,
    # 0.5 to 1 s of silence before the words and 1 to 5 s after them.
    "acx": Standard("acx", True, -20.0, -23.0, -18.0, -3.0, -3.6, -60.0, 192_000, 0.75, 2.0),
}
LOUDNESSES = (NONE, *STANDARDS)


def standard_of(name: str) -> Standard | None:
    """The standard of this name; None for audio as generated. Raises AudioError for an unknown name."""
    if name not in LOUDNESSES:
        raise AudioError(f"{name[:20]!r} is not a loudness; use one of {', '.join(LOUDNESSES)}", "loudness")
    return STANDARDS.get(name)


@dataclass(frozen=True, slots=True)
class Mastering:
    """The processing of a piece of audio for a standard, and its measurements before and after."""

    standard: Standard
    gain: float  # dB
    is_limited: bool
    before: Loudness
    after: Loudness

    def applied(self, pieces: Iterable[np.ndarray], sample_rate: int) -> Generator[np.ndarray, None, None]:
        """The processed audio, float32 mono, with the same number of samples."""
        if not self.is_limited:
            yield from (pcm * np.float32(amplitude(self.gain)) for pcm in pieces)
            return
        yield from _limited(pieces, sample_rate, self.gain, self.standard.limit)


def find_mastering(
    sound: Callable[[], Iterable[np.ndarray]], sample_rate: int, standard: Standard
) -> Generator[bytes, None, Mastering]:
    """Measures ``sound`` repeatedly until a gain meets the standard. Yields only b"", so that the caller can stop."""
    before = yield from _measured(sound(), sample_rate)
    level = standard.level(before)
    if level is None:
        return Mastering(standard, 0.0, False, before, before)
    gain = min(MOST_GAIN, standard.target - level)
    if before.true_peak + gain <= standard.limit:
        return Mastering(standard, gain, False, before, before.with_gain(gain))
    previous = 0.0, level
    for _ in range(PASSES):  # the limiter removes part of the gain, and more of a higher one
        after = yield from _measured(_limited(sound(), sample_rate, gain, standard.limit), sample_rate)
        mastering = Mastering(standard, gain, True, before, after)
        new_level = standard.level(after)
        if new_level is None or abs(standard.target - new_level) <= CLOSE:
            break
        slope = (new_level - previous[1]) / (gain - previous[0]) if gain != previous[0] else 1.0
        previous = gain, new_level
        gain = min(MOST_GAIN, gain + (standard.target - new_level) / min(1.0, max(0.25, slope)))
    return mastering


def _measured(pieces: Iterable[np.ndarray], sample_rate: int) -> Generator[bytes, None, Loudness]:
    meter = Meter(sample_rate)
    for pcm in pieces:
        meter.write(pcm)
        yield b""
    return meter.finish()


def _limited(
    pieces: Iterable[np.ndarray], sample_rate: int, gain: float, ceiling: float
) -> Generator[np.ndarray, None, None]:
    limiter = Limiter(sample_rate, gain, ceiling)
    for pcm in pieces:
        yield limiter.write(pcm)
    yield limiter.finish()
