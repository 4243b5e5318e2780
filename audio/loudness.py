"""Measures audio as a stream: loudness by BS.1770, true peak, RMS, noise floor and the longest silence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import av
import numpy as np
from av.error import BlockingIOError as NothingYet
from av.error import EOFError as AtItsEnd

QUIETEST = -120.0
"""dB; the lower bound of all levels: digital silence is minus infinity, which JSON cannot express."""
SHORTEST = 0.4  # seconds of a BS.1770 block: shorter audio has no loudness
LEAST_LOUD = -70.0  # LUFS: the absolute gate of BS.1770, below which a block does not count
BLOCK = 0.1  # seconds
BLOCKS_OF_FLOOR = 5
"""The noise floor is the level of the quietest half second, as audiobook checkers define it."""
SILENT = -60.0
"""dB: a quieter block counts as silence; the highest noise floor that audiobook shops accept."""


@dataclass(frozen=True, slots=True)
class Loudness:
    """Measurements of a piece of audio."""

    integrated: float | None  # LUFS, gated; None for silence and audio that is too short
    true_peak: float  # dBTP
    peak: float
    """dB below full scale, of the samples themselves; so are ``rms`` and ``noise_floor``."""
    rms: float
    noise_floor: float
    silence: float  # seconds of the longest silence

    def with_gain(self, gain: float) -> Loudness:
        """The audio with a gain in dB applied."""
        integrated = None if self.integrated is None else self.integrated + gain
        levels = (self.true_peak, self.peak, self.rms, self.noise_floor)
        true_peak, peak, rms, floor = (
            max(QUIETEST, level + gain) if level > QUIETEST else QUIETEST for level in levels
        )
        return Loudness(integrated, true_peak, peak, rms, floor, self.silence)


class Meter:
    """Takes mono float32 audio piece by piece; stores ten numbers per second of it.

    FFmpeg's ``ebur128`` measures loudness and true peak, a block of 0.1 s at a time.
    """

    def __init__(self, sample_rate: int) -> None:
        self._rate, self._samples = sample_rate, 0
        self._size = round(BLOCK * sample_rate)
        self._tail = np.zeros(0, np.float32)
        self._energies = [np.zeros(0)]
        self._squares = self._peak = 0.0
        self._measured: dict[str, str] = {}
        self._graph = av.filter.Graph()
        self._graph.threads = 1  # by default FFmpeg starts one per core for each graph
        source = self._graph.add_abuffer(
            sample_rate=sample_rate, format="flt", layout="mono", time_base=Fraction(1, sample_rate)
        )
        meter = self._graph.add("ebur128", "metadata=1:peak=true:framelog=quiet")
        sink = self._graph.add("abuffersink")
        source.link_to(meter)
        meter.link_to(sink)
        self._graph.configure()

    def write(self, pcm: np.ndarray) -> None:
        if not len(pcm):
            return
        pcm = pcm.astype(np.float32, copy=False)
        self._measure(pcm, self._samples)
        self._samples += len(pcm)
        self._squares += float(np.square(pcm, dtype=np.float64).sum())
        self._peak = max(self._peak, float(np.abs(pcm).max()))
        sound = np.concatenate([self._tail, pcm])
        end = len(sound) - len(sound) % self._size
        self._energies.append(np.square(sound[:end].reshape(-1, self._size)).mean(axis=1))
        self._tail = sound[end:]

    def finish(self) -> Loudness:
        """The measurements; the meter cannot be used afterwards."""
        loudness = float(self._measured.get("lavfi.r128.I", "-inf"))
        is_measured = self._samples >= SHORTEST * self._rate and loudness > LEAST_LOUD
        self._measure(np.zeros(2 * self._size - len(self._tail), np.float32), self._samples)  # completes the last block
        true_peak = max(self._peak, float(self._measured.get("lavfi.r128.true_peak", 0.0)))
        rms = math.sqrt(self._squares / max(1, self._samples))
        blocks = np.concatenate(self._energies)
        floor = rms
        if len(blocks) >= BLOCKS_OF_FLOOR:
            windows = np.lib.stride_tricks.sliding_window_view(blocks, BLOCKS_OF_FLOOR)
            floor = math.sqrt(float(windows.mean(axis=1).min()))
        peaks = decibels(true_peak), decibels(self._peak)
        is_silent = np.pad(blocks < amplitude(SILENT) ** 2, 1)
        begins_and_ends = np.flatnonzero(np.diff(is_silent.astype(np.int8)))
        silence = BLOCK * float((begins_and_ends[1::2] - begins_and_ends[::2]).max(initial=0))
        return Loudness(loudness if is_measured else None, *peaks, decibels(rms), decibels(floor), silence)

    def _measure(self, pcm: np.ndarray, position: int) -> None:
        frame = av.AudioFrame.from_ndarray(pcm[None], format="flt", layout="mono")
        frame.sample_rate, frame.pts = self._rate, position
        self._graph.push(frame)
        try:
            while True:
                self._measured = dict(self._graph.pull().metadata) or self._measured
        except (NothingYet, AtItsEnd):
            return


def decibels(amplitude: float) -> float:
    return max(QUIETEST, 20 * math.log10(amplitude)) if amplitude > 0 else QUIETEST


def amplitude(level: float) -> float:
    """The amplitude of a level in dB."""
    return float(10 ** (level / 20))
