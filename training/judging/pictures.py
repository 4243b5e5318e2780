"""Draws spectrograms of takes of one sentence, one above the other, for visual comparison."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot

from training.codec.spectra import SAMPLE_RATE


def draw(path: Path, title: str, sounds: dict[str, np.ndarray]) -> None:
    """Write a PNG with one spectrogram (0–8 kHz) per sound (samples,) float32 at 44.1 kHz."""
    figure, axes = pyplot.subplots(len(sounds), 1, figsize=(12, 3 * len(sounds)), squeeze=False)
    for axis, (name, audio) in zip(axes[:, 0], sounds.items(), strict=True):
        noise = np.random.default_rng(0).standard_normal(len(audio)) * 1e-6
        axis.specgram(audio + noise, NFFT=1024, noverlap=768, Fs=SAMPLE_RATE, vmin=-130, vmax=-40)
        axis.set_ylim(0, 8000)
        axis.set_ylabel(f"{name} (Hz)")
    axes[0, 0].set_title(title, parse_math=False)  # a price is not a formula
    figure.tight_layout()
    figure.savefig(path, dpi=60)
    pyplot.close(figure)
