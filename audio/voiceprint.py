"""Identifies speakers by Resemblyzer's speaker encoder (Apache-2.0), in a short implementation of the studio's own.

https://github.com/resemble-ai/Resemblyzer reads mel spectra by an LSTM; `training.voiceprint` writes its weights in six
bits. All of 40 people of LibriSpeech are identified by another recording. A clip takes 40 ms of a core.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from audio.measure import FRAME_SECONDS, frame_levels, speaking_frames
from audio.read import Clip
from audio.resampler import resampled

if TYPE_CHECKING:
    import torch

RATE = 16_000  # Hz: the encoder's sample rate
SHORTEST = 1.0  # minimum seconds of speech to identify a voice
_OF_CLIP = 8  # number of spans of a clip: enough to detect two speakers
_BANDS, _WINDOW, _HOP = 40, 400, 160
_FRAMES, _APART = 160, 50  # frames of one span, 1.6 s, and the minimum distance between spans
_LEVEL = 10 ** (-30 / 20)  # quieter audio is raised to this, as the encoder's training did
_LAYERS, _WIDTH = 3, 256
NO_SPANS = np.zeros((0, _WIDTH), np.float32)  # the prints of audio without any
_OTHER, _SAME = 0.56, 0.89
"""Mean cosine of two people, and of two recordings of one person (LibriSpeech test, 40 people)."""
_ONE_PERSON = 0.69
"""Cosine of the two groups of a clip's spans: 0.70 or more for each of 40 people, 0.60 for most pairs of them."""


class Voiceprints:
    """Reads voiceprints. Blocking; its methods may be called from several threads."""

    def __init__(self, path: Path) -> None:
        """``path``: the weights. Without them no audio has a print."""
        self.is_there = path.is_file()
        self._path = path
        self._lstm: torch.nn.LSTM | None = None
        self._linear: torch.nn.Linear | None = None

    def of_clip(self, clip: Clip) -> np.ndarray:
        """Prints (spans, 256) of a reference clip; see `spans`. Blocking."""
        return self.spans(clip.pcm, clip.sample_rate, _OF_CLIP)

    def spans(self, pcm: np.ndarray, rate: int, limit: int = 4) -> np.ndarray:
        """Prints (spans, 256), each of length one, for spans of 1.6 s of the speech in float32 mono samples (samples,).

        Blocking. Empty for less than SHORTEST seconds of speech.
        """
        speech = _speech(pcm, rate) if self.is_there else NO_SPANS
        if len(speech) < SHORTEST * RATE:
            return NO_SPANS
        import torch

        lstm, linear = self._networks()
        with torch.inference_mode():
            _, (hidden, _) = lstm(torch.from_numpy(_mels_of_spans(speech, limit)))
            prints = linear(hidden[-1]).relu()
            return torch.nn.functional.normalize(prints, dim=1).numpy()

    def _networks(self) -> tuple[torch.nn.LSTM, torch.nn.Linear]:
        if self._lstm is None or self._linear is None:
            import torch

            state = {name: torch.from_numpy(value) for name, value in read_weights(self._path).items()}
            lstm = torch.nn.LSTM(_BANDS, _WIDTH, _LAYERS, batch_first=True)
            linear = torch.nn.Linear(_WIDTH, _WIDTH)
            for module, prefix in ((lstm, "lstm."), (linear, "linear.")):
                weights = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
                module.load_state_dict(weights)
            self._lstm, self._linear = lstm.requires_grad_(False), linear.requires_grad_(False)
        return self._lstm, self._linear


def mean_print(spans: np.ndarray) -> np.ndarray:
    """Spans (spans, 256) → the print (256,) of all of them, of length one."""
    mean = spans.mean(0)
    return mean / max(float(np.linalg.norm(mean)), 1e-9)


def percent_alike(one: np.ndarray, other: np.ndarray) -> int:
    """Likeness of two prints (256,): 0 as for two people on average, 100 as for two recordings of one person."""
    share = (float(one @ other) - _OTHER) / (_SAME - _OTHER)
    return round(100 * min(1.0, max(0.0, share)))


def is_one_person(spans: np.ndarray) -> bool:
    """Whether all spans (spans, 256) are one person's: False if they form two different groups of two or more."""
    cosines = spans @ spans.T
    for first in range(len(spans)):
        for second in range(first):
            mask = cosines[first] > cosines[second]
            if 2 <= mask.sum() <= len(mask) - 2 and mean_print(spans[mask]) @ mean_print(spans[~mask]) < _ONE_PERSON:
                return False
    return True


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """Float32 weights by their names in Resemblyzer; matrices are small integers with a scale for each group."""
    weights: dict[str, np.ndarray] = {}
    with np.load(path) as file:
        for name in file.files:
            if name.endswith(".scale"):
                continue
            values = file[name].astype(np.float32)
            if f"{name}.scale" in file.files:
                scale = file[f"{name}.scale"].astype(np.float32)
                values = (values.reshape(*scale.shape, -1) * scale[..., None]).reshape(values.shape)
            weights[name] = values
    return weights


def _speech(pcm: np.ndarray, rate: int) -> np.ndarray:
    """The audio at RATE, from the first to the last speech, raised to the level of the encoder's training."""
    if not len(pcm):
        return pcm
    speech_frames = np.flatnonzero(speaking_frames(frame_levels(pcm, rate))[0])
    frame = round(FRAME_SECONDS * rate)
    pcm = pcm[speech_frames[0] * frame : (speech_frames[-1] + 1) * frame]
    speech = resampled(pcm, rate, RATE)
    level = float(np.sqrt(np.square(speech, dtype=np.float64).mean()))
    return speech * np.float32(max(1.0, _LEVEL / max(level, 1e-6)))


def _mels_of_spans(speech: np.ndarray, limit: int) -> np.ndarray:
    """Mel powers (spans, frames, bands) of up to ``limit`` spans, evenly spread; short speech is repeated."""
    padded = np.pad(speech, _WINDOW // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[::_HOP]
    count = max(1, min(limit, 1 + (len(frames) - _FRAMES) // _APART))
    starts = np.linspace(0, max(0, len(frames) - _FRAMES), count).astype(int)
    chosen = frames[(starts[:, None] + np.arange(_FRAMES)) % len(frames)]  # (spans, frames, window)
    powers = np.square(np.abs(np.fft.rfft(chosen * np.hanning(_WINDOW + 1)[:-1])))
    return np.stack([span @ _FILTERS for span in powers]).astype(np.float32)


def _filters() -> np.ndarray:
    """Slaney's triangles (bins, bands), evenly spaced below 1 kHz and logarithmically above, of equal area."""
    octave = np.log(6.4) / 27
    top = 15 + np.log(RATE / 2 / 1000) / octave
    mels = np.linspace(0, top, _BANDS + 2)
    edges = np.where(mels < 15, 200 / 3 * mels, 1000 * np.exp(octave * (mels - 15)))
    bins = np.linspace(0, RATE / 2, _WINDOW // 2 + 1)
    rise = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    triangles = np.maximum(0, np.minimum(rise, fall)) * (2 / (edges[2:] - edges[:-2]))[:, None]
    return np.ascontiguousarray(triangles.T)


_FILTERS = _filters()
