"""Loudness, true peaks and noise floors checked against the standards, and a limiter that no peak passes."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator

import numpy as np
import pytest

from audio.limiter import Limiter
from audio.loudness import QUIETEST, Loudness, Meter
from audio.mastering import STANDARDS, Mastering, find_mastering
from audio.tempo import Tempo
from tests.studio.sounds import tone

RATE = 44_100


def pieces(pcm: np.ndarray, size: int = 131_072) -> Iterator[np.ndarray]:
    for start in range(0, len(pcm), size):
        yield pcm[start : start + size]


def measured(pcm: np.ndarray, size: int = 131_072, rate: int = RATE) -> Loudness:
    meter = Meter(rate)
    for piece in pieces(pcm, size):
        meter.write(piece)
    return meter.finish()


def limited(pcm: np.ndarray, size: int, gain: float, ceiling: float) -> np.ndarray:
    limiter = Limiter(RATE, gain, ceiling)
    return np.concatenate([*(limiter.write(piece) for piece in pieces(pcm, size)), limiter.finish()])


def speech_like(seconds: float) -> np.ndarray:
    """Syllables with rests between them, and peaks that stand 16 dB above."""
    time = np.arange(round(seconds * RATE)) / RATE
    swell = np.clip(np.sin(2 * np.pi * 0.5 * time), 0, None)
    peaks = np.exp(-np.square((time % 0.5 - 0.2) / 0.002)) * np.cos(2 * np.pi * 900 * time)
    return (swell * (0.1 * np.sin(2 * np.pi * 220 * time) + 0.5 * peaks)).astype(np.float32)


@pytest.mark.parametrize("rate", [24_000, 44_100])
def test_loudness_matches_the_ebu_test_signals(rate: int) -> None:
    """EBU Tech 3341, the first three cases, of one channel, which counts 3 dB less than two."""
    at_23, at_33, at_36 = (tone(6, rate, 1000, 10 ** (level / 20)) for level in (-23, -33, -36))
    assert measured(at_23, rate=rate).integrated == pytest.approx(-26.0, abs=0.1)
    assert measured(at_33, rate=rate).integrated == pytest.approx(-36.0, abs=0.1)
    gated = np.concatenate([at_36[: 2 * rate], *[at_23] * 3, at_36[: 2 * rate]])
    assert measured(gated, rate=rate).integrated == pytest.approx(-26.0, abs=0.1)


def test_peaks_between_samples_are_found_and_the_noise_floor_is_the_quietest_half_second() -> None:
    """EBU Tech 3341 allows +0.2 and -0.4 dB, of a sound that fades in and out: an edge is higher between samples."""
    fades = np.clip(np.minimum(np.arange(RATE), np.arange(RATE)[::-1]) / 1000, 0, 1)
    eighth = (fades * np.sin(2 * np.pi * (np.arange(RATE) + 0.5) / 4)).astype(
        np.float32
    )  # samples at 0.71 of its height
    loudness = measured(eighth, 1000)
    assert loudness.peak == pytest.approx(-3.01, abs=0.01) and -0.4 < loudness.true_peak < 0.2
    noisy = np.concatenate([tone(2, level=0.5), tone(0.7, level=0.001), tone(2, level=0.5)])
    assert measured(noisy).noise_floor == pytest.approx(-63.0, abs=0.2)
    assert measured(np.zeros(RATE, np.float32)) == Loudness(None, QUIETEST, QUIETEST, QUIETEST, QUIETEST, 1.0)
    silence = np.zeros(round(1.5 * RATE), np.float32)
    paused = np.concatenate([tone(2, level=0.5), silence, tone(2, level=0.5), silence[:RATE], tone(2, level=0.5)])
    assert measured(paused).silence == pytest.approx(1.5, abs=0.1)
    assert measured(paused).with_gain(20).silence == measured(paused).silence
    assert measured(tone(0.3)).integrated is None
    assert measured(tone(3), 777) == measured(tone(3), 100_000)


def test_limiter_keeps_peaks_below_the_ceiling_for_any_chunking() -> None:
    pcm = speech_like(3)
    whole = limited(pcm, len(pcm), 14, -1)
    assert len(whole) == len(pcm) and measured(whole).true_peak <= -0.99
    assert np.array_equal(whole, limited(pcm, 1000, 14, -1))
    assert np.array_equal(limited(pcm, 4096, 0, 0), pcm)
    assert all(len(limited(pcm[:size], 10, 14, -1)) == size for size in (1, 99, 5000))


def found(steps: Generator[bytes, None, Mastering]) -> Mastering:
    with pytest.raises(StopIteration) as end:
        while True:
            next(steps)
    mastering: Mastering = end.value.value
    return mastering


@pytest.mark.parametrize("name", STANDARDS)
def test_audio_with_high_peaks_is_mastered_to_each_standard(name: str) -> None:
    pcm, standard = speech_like(6), STANDARDS[name]
    mastering = found(find_mastering(lambda: pieces(pcm), RATE, standard))
    assert mastering.is_limited
    assert mastering.before == measured(pcm)
    finished = np.concatenate(list(mastering.applied(pieces(pcm, 5000), RATE)))
    assert len(finished) == len(pcm)
    loudness = measured(finished)
    assert loudness.integrated == pytest.approx(mastering.after.integrated, abs=0.01)
    assert standard.level(loudness) == pytest.approx(standard.target, abs=0.3) and not standard.faults(loudness)
    assert standard.faults(mastering.before)


def test_short_or_noisy_audio_is_reported() -> None:
    short = found(find_mastering(lambda: [tone(0.2)], RATE, STANDARDS["podcast"]))
    assert short.gain == 0
    assert short.standard.faults(short.after) == ["It is too short or too quiet to be measured."]
    hum = np.concatenate([tone(2, level=0.05), tone(1, level=0.002)])
    noisy = found(find_mastering(lambda: [hum], RATE, STANDARDS["acx"]))
    assert [fault[:24] for fault in noisy.standard.faults(noisy.after)] == ["Its noise floor is -46.2"]


@pytest.mark.linux
def test_ffmpeg_filters_start_no_threads() -> None:
    before = len(os.listdir("/proc/self/task"))
    meter, tempo = Meter(RATE), Tempo(1.5, RATE)
    meter.write(tone(1))
    tempo.write(tone(1))
    assert len(os.listdir("/proc/self/task")) <= before
