"""How loud a sound is, measured while it passes: loudness by BS.1770, true peak, RMS and the noise between words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import av
import numpy as np
from av.error import BlockingIOError as NothingYet
from av.error import EOFError as AtItsEnd

QUIETEST = -120.0
"""dB; what is quieter counts as this: digital silence is minus infinity, which JSON cannot say."""
SHORTEST = 0.4
"""Seconds that BS.1770 looks at together: it says nothing of a sound that is shorter."""
BLOCK = 0.1
BLOCKS_OF_GATE = 4
BLOCKS_OF_FLOOR = 5
"""The noise floor is the level of the quietest half second, as checkers of audiobooks have it."""
PHASES, TAPS = 4, 12
"""True peaks are looked for at four times the rate, by twelve taps a phase, as in BS.1770's Annex 2."""


@dataclass(frozen=True, slots=True)
class Loudness:
    """What was measured of a sound."""

    integrated: float | None
    """LUFS, gated; None: it is too short, or silent."""
    true_peak: float
    """dBTP."""
    peak: float
    """dB below full scale, of the samples themselves; ``rms`` and ``noise_floor`` too."""
    rms: float
    noise_floor: float

    def louder(self, gain: float) -> Loudness:
        """The same sound with so many dB of gain."""
        integrated = None if self.integrated is None else self.integrated + gain
        levels = (self.true_peak, self.peak, self.rms, self.noise_floor)
        true_peak, peak, rms, floor = (max(QUIETEST, each + gain) if each > QUIETEST else QUIETEST for each in levels)
        return Loudness(integrated, true_peak, peak, rms, floor)


class Meter:
    """Takes a mono float32 sound piece by piece; keeps ten numbers a second of it."""

    def __init__(self, sample_rate: int) -> None:
        self._rate = sample_rate
        self._gated = _Gated(sample_rate)
        self._blocks = _Blocks(sample_rate)
        self._samples, self._squares = 0, 0.0
        self._peak = self._true_peak = 0.0
        self._before = np.zeros(TAPS, np.float32)

    def write(self, pcm: np.ndarray) -> None:
        if not len(pcm):
            return
        self._gated.write(pcm)
        self._samples += len(pcm)
        self._squares += float(np.square(pcm, dtype=np.float64).sum())
        self._measure_peak(pcm)
        self._blocks.write(pcm)

    def finish(self) -> Loudness:
        """What was measured; the meter is used up."""
        self._measure_peak(np.zeros(TAPS, np.float32))  # what rings on after the last sample
        integrated = self._gated.finish()
        if self._samples < SHORTEST * self._rate or integrated <= -70.0:
            return Loudness(None, *self._levels())
        return Loudness(integrated, *self._levels())

    def _levels(self) -> tuple[float, float, float, float]:
        rms = math.sqrt(self._squares / max(1, self._samples))
        windows = self._blocks.energies(BLOCKS_OF_FLOOR)
        floor = math.sqrt(float(windows.min())) if len(windows) else rms
        return decibels(max(self._true_peak, self._peak)), decibels(self._peak), decibels(rms), decibels(floor)

    def _measure_peak(self, pcm: np.ndarray) -> None:
        """Over all but the last taps, which wait for what comes after them."""
        sound = np.concatenate([self._before, pcm])
        highest = float(np.abs(sound).max())
        self._peak = max(self._peak, highest)
        if highest > self._true_peak / 2:  # a wave's height between samples is never twice theirs
            self._true_peak = max(self._true_peak, float(between(sound)[TAPS // 2 : -TAPS // 2].max()))
        self._before = sound[-TAPS:]


class _Blocks:
    """The energies of blocks that follow each other, each BLOCK seconds, of a sound that comes in pieces."""

    def __init__(self, sample_rate: int) -> None:
        self._size = round(BLOCK * sample_rate)
        self._rest = np.zeros(0, np.float32)
        self._energies = [np.zeros(0)]

    def write(self, pcm: np.ndarray) -> None:
        sound = np.concatenate([self._rest, pcm])
        whole = len(sound) - len(sound) % self._size
        self._energies.append(np.square(sound[:whole].reshape(-1, self._size)).mean(axis=1))
        self._rest = sound[whole:]

    def energies(self, count: int) -> np.ndarray:
        """The mean energy of every ``count`` blocks in a row; none of a sound that is shorter."""
        each = np.concatenate(self._energies)
        if len(each) < count:
            return np.zeros(0)
        return np.asarray(np.lib.stride_tricks.sliding_window_view(each, count).mean(axis=1))


class _Gated:
    """Integrated loudness by BS.1770-4: FFmpeg's filters weight the sound, its gates are here.

    FFmpeg has a filter for the whole, whose answer PyAV shows from version 18 on, which Python 3.10 does not get.
    """

    def __init__(self, sample_rate: int) -> None:
        self._rate, self._at = sample_rate, 0
        self._blocks = _Blocks(sample_rate)
        self._graph = av.filter.Graph()
        source = self._graph.add_abuffer(
            sample_rate=sample_rate, format="flt", layout="mono", time_base=Fraction(1, sample_rate)
        )
        weights = [self._graph.add("biquad", each) for each in k_weighting(sample_rate)]
        sink = self._graph.add("abuffersink")
        for before, after in pairwise([source, *weights, sink]):
            before.link_to(after)
        self._graph.configure()

    def write(self, pcm: np.ndarray) -> None:
        frame = av.AudioFrame.from_ndarray(pcm.astype(np.float32, copy=False)[None], format="flt", layout="mono")
        frame.sample_rate, frame.pts = self._rate, self._at
        self._at += len(pcm)
        self._graph.push(frame)
        self._listen()

    def finish(self) -> float:
        """LUFS, to thousandths; minus infinity where nothing is loud enough to count."""
        self._graph.push(None)
        self._listen()
        blocks = self._blocks.energies(BLOCKS_OF_GATE)
        loud = blocks[blocks > _energy(-70.0)]
        if not len(loud):
            return -math.inf
        counted = loud[loud > loud.mean() / 10]  # what is at most 10 LU below the mean
        return round(_loudness(float(counted.mean())), 3)

    def _listen(self) -> None:
        try:
            while True:
                self._blocks.write(self._graph.pull().to_ndarray().reshape(-1))
        except (NothingYet, AtItsEnd):
            return


def k_weighting(sample_rate: int) -> tuple[str, str]:
    """BS.1770's two filters at any rate, as FFmpeg's biquad takes them: a shelf for the head, a high-pass.

    Its tables are for 48 kHz alone; the poles behind them are those that libebur128 and FFmpeg use.
    """
    k, q, high = math.tan(math.pi * 1681.974450955533 / sample_rate), 0.7071752369554196, 10 ** (3.999843853973347 / 20)
    band = high**0.4996667741545416
    shelf = _biquad(
        (high + band * k / q + k * k, 2 * (k * k - high), high - band * k / q + k * k),
        (1 + k / q + k * k, 2 * (k * k - 1), 1 - k / q + k * k),
    )
    k, q = math.tan(math.pi * 38.13547087602444 / sample_rate), 0.5003270373238773
    whole = 1 + k / q + k * k
    return shelf, _biquad((whole, -2 * whole, whole), (whole, 2 * (k * k - 1), 1 - k / q + k * k))


def _biquad(b: tuple[float, float, float], a: tuple[float, float, float]) -> str:
    named = {f"b{i}": each for i, each in enumerate(b)} | {f"a{i}": each for i, each in enumerate(a)}
    return ":".join([*(f"{name}={value / a[0]!r}" for name, value in named.items()), "precision=f64"])


def _loudness(energy: float) -> float:
    return -0.691 + 10 * math.log10(energy)


def _energy(loudness: float) -> float:
    return float(10 ** ((loudness + 0.691) / 10))


def between(pcm: np.ndarray) -> np.ndarray:
    """The highest magnitude (samples,) at each sample or right before it, at PHASES times the rate."""
    highest = np.abs(pcm)
    for taps in _INTERPOLATION:
        np.maximum(highest, np.abs(np.convolve(pcm, taps, "same")), out=highest)
    return highest


def decibels(amplitude: float) -> float:
    return max(QUIETEST, 20 * math.log10(amplitude)) if amplitude > 0 else QUIETEST


def amplitude(level: float) -> float:
    """Of a level in dB."""
    return float(10 ** (level / 20))


def _interpolation() -> list[np.ndarray]:
    """Windowed sinc filters for the places a quarter, a half and three quarters of the way to the sample before."""
    found = []
    for phase in range(1, PHASES):
        x = np.arange(TAPS) - (TAPS - 1) // 2 - phase / PHASES
        taps = np.sinc(x) * np.cos(np.pi * x / (TAPS + 1)) ** 2
        found.append((taps / taps.sum()).astype(np.float32))
    return found


_INTERPOLATION = _interpolation()
