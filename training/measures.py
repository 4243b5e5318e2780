"""What evaluation measures on audio: word errors by a recogniser, warped mel distance, pitch, long-term spectrum."""

from __future__ import annotations

import re

import numpy as np
import torch
from pocketsphinx import Decoder

from engine.resample import resample
from training.spectra import SAMPLE_RATE, log_mel

RECOGNISER_RATE = 16000


class Recogniser:
    """pocketsphinx with the English model that its package carries: weak, so its figures are only relative."""

    def __init__(self) -> None:
        self._decoder = Decoder(samprate=RECOGNISER_RATE, loglevel="FATAL")

    def words(self, audio: np.ndarray) -> list[str]:
        """Lower-case words heard in audio (samples,) float32 at 44.1 kHz."""
        narrow = resample(torch.from_numpy(audio), SAMPLE_RATE, RECOGNISER_RATE).numpy()
        narrow = np.pad(narrow, RECOGNISER_RATE // 5)
        self._decoder.start_utt()
        self._decoder.process_raw((np.clip(narrow, -1, 1) * 32767).astype("<i2").tobytes(), full_utt=True)
        self._decoder.end_utt()
        heard = self._decoder.hyp()
        return spelled(heard.hypstr) if heard else []


def spelled(text: str) -> list[str]:
    """Words in lower case without punctuation and tags."""
    return re.sub(r"[^a-z' ]", " ", re.sub(r"\[[^]]*\]", " ", text.lower())).split()


def word_errors(said: list[str], heard: list[str]) -> int:
    """Substitutions, insertions and deletions between two word lists."""
    row = list(range(len(heard) + 1))
    for i, word in enumerate(said, 1):
        previous, row[0] = row[0], i
        for j, other in enumerate(heard, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (word != other))
    return row[-1]


def mel_frames(audio: np.ndarray) -> np.ndarray:
    """Log-mel frames (steps, 80), 11.6 ms each, of audio (samples,) float32."""
    return log_mel(torch.from_numpy(audio)[None, None])[0].t()[::2].numpy()


def warped_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Mean log10-mel distance along the best time warping of two takes' frames."""
    cost = np.abs(first[:, None] - second[None]).mean(-1)
    total = np.full(cost.shape, np.inf)
    steps = np.zeros(cost.shape)
    for i in range(cost.shape[0]):
        for j in range(cost.shape[1]):
            before = [(total[a, b], steps[a, b]) for a, b in ((i - 1, j - 1), (i - 1, j), (i, j - 1)) if min(a, b) >= 0]
            best, count = min(before) if before else (0.0, 0.0)
            total[i, j], steps[i, j] = best + cost[i, j], count + 1
    return float(total[-1, -1] / steps[-1, -1])


def pitches(audio: np.ndarray) -> np.ndarray:
    """Pitch in Hz of every loud frame (frames,), by normalised autocorrelation; 0 where it has none."""
    size, hop = 2048, 1024
    low, high = SAMPLE_RATE // 420, SAMPLE_RATE // 60
    pieces = np.lib.stride_tricks.sliding_window_view(audio, size)[::hop]
    pieces = pieces[np.sqrt((pieces**2).mean(1)) > 0.02]
    spectrum = np.fft.rfft(pieces - pieces.mean(1, keepdims=True), 2 * size)
    correlation = np.fft.irfft(np.abs(spectrum) ** 2)[:, :size]
    correlation = correlation / (correlation[:, :1] + 1e-9) * (size / (size - np.arange(size)))
    found = np.zeros(len(pieces))
    for index, lags in enumerate(correlation[:, low:high]):
        if lags.max() > 0.5:
            # The first lag that is nearly as good: a multiple of the period fits as well as the period does.
            early = int(np.flatnonzero(lags > 0.85 * lags.max())[0])
            found[index] = SAMPLE_RATE / (early + int(lags[early : early + 40].argmax()) + low)
    return found


def median_pitch(audio: np.ndarray) -> float:
    """Median pitch in Hz of the voiced frames; 0 when nothing is voiced."""
    voiced = [p for p in pitches(audio).tolist() if p]
    return float(np.median(voiced)) if voiced else 0.0


def voiced_share(audio: np.ndarray) -> float:
    """Of the loud frames, those with a pitch."""
    found = pitches(audio)
    return float((found > 0).mean()) if len(found) else 0.0


def voice_print(audio: np.ndarray) -> np.ndarray:
    """What a voice is told by: log2 of the pitch (weighted), and the mean log-mel spectrum without its level."""
    mel = mel_frames(audio)
    loud = mel[mel.mean(1) > mel.mean()]
    spectrum = loud.mean(0) - loud.mean()
    return np.concatenate([[4.0 * np.log2(max(median_pitch(audio), 50.0))], 3.0 * spectrum])
