"""Measures a reference clip (level, noise, bandwidth, silence, clipping, hum, voicing), and levels it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from audio.loudness import amplitude
from audio.read import Clip

FRAME_SECONDS = 0.02
_FLOOR_DB = -100.0
_SPEECH_BELOW_PEAK_DB = 30.0  # a frame this far below the loudest is not speech
_LOWEST_PITCH, _HIGHEST_PITCH = 60, 400  # Hz
_PERIODIC = 0.5  # minimum normalised autocorrelation of a frame with a pitch
_PITCH_FRAMES = 100  # number of frames examined for a pitch, evenly spread

SPEECH_DB = -22.0  # RMS level to which quiet speech is raised, and which the advisor suggests
QUIET_DB = -34.0
"""Speech below this level is quiet. Codecs handle such levels badly: at -58 dB a take is half as long again as it
should be, at -70 dB a quarter of its words are wrong."""
PEAK_DB = -1.0  # the highest peak allowed after raising


@dataclass(frozen=True, slots=True)
class Figures:
    """Measurements of a clip in seconds, Hz, and decibels below full scale."""

    seconds: float
    peak_db: float
    speech_db: float  # RMS level of the speech
    noise_db: float  # RMS level of the quietest tenth
    clipped: float  # share of clipped samples, 0 to 1
    bandwidth: float  # Hz, above which the clip has nothing audible
    head: float  # seconds before the speech begins
    tail: float  # seconds after the speech ends
    hum: int  # 50 or 60 with audible mains hum, else 0
    voiced: float
    """Share of the speech that has a pitch, 0 to 1: 0.46 or more of 189 people, 0.1 to 0.4 of whispers."""

    @property
    def snr_db(self) -> float:
        return self.speech_db - self.noise_db

    def as_dict(self) -> dict[str, float]:
        """The figures rounded to a meaningful precision, for the library and for display."""
        names = ("seconds", "peak_db", "speech_db", "noise_db", "snr_db", "bandwidth", "head", "tail", "hum")
        rounded = {name: round(float(getattr(self, name)), 2) for name in (*names, "voiced")}
        return rounded | {"clipped": round(self.clipped, 6)}


def measure(pcm: np.ndarray, rate: int) -> Figures:
    """Measure float32 mono samples (samples,) of at least a second."""
    levels = frame_levels(pcm, rate)
    is_speech, loud_db = speaking_frames(levels)
    indices = np.flatnonzero(is_speech)
    quiet_levels = np.sort(levels)[: max(1, len(levels) // 10)]
    return Figures(
        seconds=len(pcm) / rate,
        peak_db=to_decibels(float(np.abs(pcm).max())),
        speech_db=_mean_db(levels[is_speech]),
        noise_db=_mean_db(quiet_levels),
        clipped=_clipped(pcm),
        bandwidth=_bandwidth(pcm, rate, is_speech),
        head=float(indices[0]) * FRAME_SECONDS,
        tail=max(len(pcm) / rate - float(indices[-1] + 1) * FRAME_SECONDS, 0.0),
        hum=_hum(pcm, rate, loud_db),
        voiced=_voiced(pcm, rate, is_speech),
    )


def speech_level(pcm: np.ndarray, rate: int) -> float:
    """RMS in dB of the speech in float32 mono samples (samples,)."""
    levels = frame_levels(pcm, rate)
    return _mean_db(levels[speaking_frames(levels)[0]])


def frame_levels(pcm: np.ndarray, rate: int) -> np.ndarray:
    """RMS in dB of every FRAME_SECONDS, (frames,). A shorter remainder is dropped, unless it is all there is."""
    size = round(FRAME_SECONDS * rate)
    count = max(len(pcm) // size, 1)
    frames = pcm[: count * size].reshape(count, -1).astype(np.float64)
    return np.maximum(10 * np.log10(np.square(frames).mean(axis=1) + 1e-20), _FLOOR_DB)


def speaking_frames(levels: np.ndarray) -> tuple[np.ndarray, float]:
    """Which frames are speech, bool (frames,), and the level of the loudest twentieth in dB."""
    loud = float(np.sort(levels)[-max(1, len(levels) // 20) :].mean())
    return levels > loud - _SPEECH_BELOW_PEAK_DB, loud


def to_decibels(level: float) -> float:
    return max(20 * float(np.log10(level + 1e-20)), _FLOOR_DB)


def _mean_db(levels: np.ndarray) -> float:
    return float(10 * np.log10(np.mean(10 ** (levels / 10))))


def _clipped(pcm: np.ndarray) -> float:
    """Samples in runs of three or more within 0.1 % of the clip's own extreme."""
    top = float(np.abs(pcm).max())
    flat = (np.abs(pcm) >= 0.999 * top).astype(np.int8)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flat, [0]])))
    runs = edges[1::2] - edges[::2]
    return float(runs[runs >= 3].sum()) / len(pcm)


def _bandwidth(pcm: np.ndarray, rate: int, is_speech: np.ndarray) -> float:
    """The highest frequency at which the mean spectrum of speech is within 60 dB of its top and above its noise."""
    size = 2 * round(FRAME_SECONDS * rate)
    starts = np.flatnonzero(is_speech) * (size // 2)
    starts = starts[starts + size <= len(pcm)][:500]
    if not len(starts):
        return rate / 2
    frames = sliding_window_view(pcm, size)[starts] * np.hanning(size).astype(np.float32)
    power = np.square(np.abs(np.fft.rfft(frames, axis=1))).mean(axis=0)
    smoothed = np.convolve(power, np.ones(9) / 9, mode="same")
    decibels = 10 * np.log10(smoothed + 1e-20)
    floor = float(np.percentile(decibels, 5)) + 6
    audible = np.flatnonzero(decibels > max(float(decibels.max()) - 60, floor))
    return float(audible[-1]) * rate / size if len(audible) else rate / 2  # a flat spectrum, as of noise


def _hum(pcm: np.ndarray, rate: int, loud_db: float) -> int:
    """50 or 60 if that frequency or its double is prominent throughout, as mains hum is and voices are not."""
    size = rate // 2
    hop = size // 2
    if len(pcm) < 3 * size:
        return 0
    starts = np.arange(0, len(pcm) - size + 1, hop)
    frames = sliding_window_view(pcm, size)[starts] * (np.hanning(size) * 2 / size * 2).astype(np.float32)
    spectra = 20 * np.log10(np.abs(np.fft.rfft(frames, axis=1)[:, :75]) + 1e-10)  # one bin for 2 Hz
    for base in (50, 60):
        for harmonic in (base, 2 * base):
            levels = spectra[:, harmonic // 2 + np.array([0, -6, -5, 5, 6])]  # (frames, 5), the sidebands last
            tone = levels[:, 0]
            is_steady = float(np.percentile(tone, 80) - np.percentile(tone, 20)) < 3
            is_prominent = float(np.median(tone - levels[:, 1:].max(axis=1))) > 10
            if is_steady and is_prominent and float(np.median(tone)) > loud_db - 45:
                return base
    return 0


def _voiced(pcm: np.ndarray, rate: int, is_speech: np.ndarray) -> float:
    size = 2 * round(FRAME_SECONDS * rate)
    starts = np.flatnonzero(is_speech) * (size // 2)
    starts = starts[starts + size <= len(pcm)]
    if not len(starts):
        return 1.0
    starts = starts[np.linspace(0, len(starts) - 1, min(_PITCH_FRAMES, len(starts))).astype(int)]
    frames = sliding_window_view(pcm, size)[starts]
    spectra = np.fft.rfft(frames - frames.mean(axis=1, keepdims=True), 2 * size, axis=1)
    correlation = np.fft.irfft(np.square(np.abs(spectra)), axis=1)
    lags = np.arange(rate // _HIGHEST_PITCH, rate // _LOWEST_PITCH)
    periodic = correlation[:, lags] / (correlation[:, :1] + 1e-12) * (size / (size - lags))
    return float((periodic.max(axis=1) > _PERIODIC).mean())


def gain_to_usual(speech_db: float, peak_db: float) -> float:
    """The gain in decibels that raises speech to SPEECH_DB without a peak over PEAK_DB."""
    return min(SPEECH_DB - speech_db, PEAK_DB - peak_db)


def levelled(clip: Clip) -> Clip:
    """The clip as it is encoded: raised if its speech is quiet, else unchanged. Blocking."""
    speech_db = speech_level(clip.pcm, clip.sample_rate)
    gain = gain_to_usual(speech_db, to_decibels(float(np.abs(clip.pcm).max())))
    if speech_db >= QUIET_DB or gain <= 0:
        return clip
    return replace(clip, pcm=clip.pcm * np.float32(amplitude(gain)))


def is_levelled(figures: Mapping[str, float]) -> bool:
    """Whether `levelled` raises a clip with these measurements. A library can hold codes from before clips were
    raised."""
    return figures.get("speech_db", SPEECH_DB) < QUIET_DB
