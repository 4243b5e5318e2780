"""Texts and clips for the benchmarks: a different text per request, clips that no server has cached."""

from __future__ import annotations

import base64
import io
import random
import wave

import numpy as np

COMMON = (
    "the of and to in that was it for on with as at his they be this from had by not but some what there can were "
    "all your when use word how said each she which their time will way about many then them would write like these "
    "long make thing see him two has look more day could come did sound most number who over know water than call "
    "first people may down side been now find new work part take place live where after back little only round man "
    "year came show every good give under name very through form great think help low line before turn cause same "
    "mean differ move right boy old too does tell sentence set three want air well also play small end put home read "
    "hand port large spell add even land here must big high such follow act why ask men change went light kind off "
    "need house picture try again animal point mother world near build earth father stand own page should country "
    "found answer school grow study still learn plant cover food sun four thought let keep eye never last door "
    "between city tree cross since hard start might story saw far sea draw left late run while press close night"
)
WORDS = COMMON.split()
CLIP_RATE = 44_100


def sentence(seed: int, characters: int = 100) -> str:
    """About this many characters of plain words, different for every seed."""
    choose = random.Random(seed)
    words: list[str] = []
    while sum(map(len, words)) + len(words) < characters:
        words.append(choose.choice(WORDS))
    return " ".join(words).capitalize() + "."


def clip(seed: int, seconds: float = 10.0) -> bytes:
    """A WAV file of a humming voice: harmonics of a wandering pitch in syllables, different for every seed."""
    rng = np.random.default_rng(seed)
    samples = round(seconds * CLIP_RATE)
    time = np.arange(samples) / CLIP_RATE
    turns = np.interp(time, np.arange(seconds * 3 + 1) / 3, rng.uniform(90, 240, int(seconds * 3 + 1)))
    phase = 2 * np.pi * np.cumsum(turns) / CLIP_RATE
    loudness = rng.uniform(0.2, 1.0, 12) / np.arange(1, 13)
    voice = sum(level * np.sin(order * phase) for order, level in enumerate(loudness, 1))
    syllables = 0.55 + 0.45 * np.sin(2 * np.pi * rng.uniform(3, 5) * time)
    sound = voice * syllables + 0.01 * rng.standard_normal(samples)
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setparams((1, 2, CLIP_RATE, samples, "NONE", ""))
        writer.writeframes((0.5 * 32767 * sound / np.abs(sound).max()).astype("<i2").tobytes())
    return file.getvalue()


def noise(seconds: int, rate: int) -> np.ndarray:
    """Noise float32 (samples,) for tests that need only a clip's length; always the same."""
    return np.random.default_rng(0).standard_normal(seconds * rate).astype(np.float32) * 0.1


def data_url(wav: bytes) -> str:
    """A clip in the form of `ref_audio`."""
    return "data:audio/wav;base64," + base64.b64encode(wav).decode()
