"""Speak the corpus with flite and espeak-ng: shards of 44.1 kHz audio, phone labels and texts, from many processes.

python -m training.synthesise OUT --hours 24 --processes 14 --root UNPACKED_DEBIAN_PACKAGES
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import random
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from training.text import Sentences
from training.voices import (
    MANNERS,
    PAUSE_SECONDS,
    PAUSE_SHARE,
    PAUSE_TAG,
    PHONES,
    PLAIN,
    SLOT_SAMPLES,
    UNKNOWN_PHONE,
    UNKNOWN_SHARE,
    UNKNOWN_TAGS,
    VOICES,
    Manner,
    Voice,
)
from training.whisper import whispered

SAMPLE_RATE = 44100
FRAME_SAMPLES = 2048
LEAD_SECONDS, TAIL_SECONDS = 0.05, 0.12
LEVEL = 0.09
"""Root mean square of every utterance, full scale being 1."""
MIN_SECONDS, MAX_SECONDS = 0.35, 12.0
_NATIVE_RATE = {"flite": 16000, "espeak-ng": 22050}


@dataclass(frozen=True, eq=False, slots=True)
class Utterance:
    """One spoken sentence: audio int16 at 44.1 kHz, whole frames long, and a phone for each 512 samples."""

    text: str
    audio: np.ndarray
    phones: np.ndarray
    """int8; UNKNOWN_PHONE where the synthesiser does not say."""


class Synthesiser:
    """Runs the command-line synthesisers of an unpacked package tree."""

    def __init__(self, root: Path, scratch: Path) -> None:
        libraries = root / "usr/lib/x86_64-linux-gnu"
        paths = (libraries, root / "lib/x86_64-linux-gnu", libraries / "pulseaudio")
        self._environment = dict(
            os.environ,
            LD_LIBRARY_PATH=":".join(map(str, paths)),
            ESPEAK_DATA_PATH=str(libraries / "espeak-ng-data"),
        )
        self._root, self._scratch = root, scratch

    def speak(self, voice: Voice, text: str, manner: Manner = PLAIN) -> Utterance | None:
        """Say text without any tag in it; None when the synthesiser says nothing usable."""
        playback = _NATIVE_RATE[voice.synthesiser] * voice.rate * manner.rate
        rate = round(playback / 100) * 100
        stretch = manner.duration * voice.rate * manner.rate
        raw, ends = self._run(voice, text, stretch)
        cut = _speech_bounds(raw, rate)
        if cut is None:
            return None
        raw = raw[cut[0] : cut[1]]
        if manner.whispered:
            raw = whispered(raw, rate)
        audio = resampled(raw * (LEVEL / (np.sqrt(np.mean(raw**2)) + 1e-9)), rate)
        if not MIN_SECONDS <= len(audio) / SAMPLE_RATE <= MAX_SECONDS:
            return None
        audio = audio * min(1.0, 0.95 / np.abs(audio).max())
        audio = np.pad(audio, (0, -len(audio) % FRAME_SAMPLES))
        scale = _NATIVE_RATE[voice.synthesiser] / rate
        phones = _labels(ends, scale, cut[0] / rate, len(audio) // SLOT_SAMPLES)
        return Utterance(text, (audio * 32767).astype(np.int16), phones)

    def _run(self, voice: Voice, text: str, stretch: float) -> tuple[np.ndarray, list[tuple[str, float]]]:
        """Native-rate samples and, from flite, each phone with its end in seconds at the native rate."""
        binary = str(self._root / "usr/bin" / voice.synthesiser)
        if voice.synthesiser == "flite":
            command = [binary, "-voice", voice.source, "--setf", f"duration_stretch={stretch:.3f}"]
            command += ["-psdur", "-t", text, "-o", str(self._scratch)]
        else:
            words_a_minute = str(round(165 / stretch))
            command = [binary, "-v", voice.source, "-p", str(voice.pitch), "-s", words_a_minute]
            command += ["-w", str(self._scratch), text]
        done = subprocess.run(command, env=self._environment, capture_output=True, timeout=30, check=True)
        data = self._scratch.read_bytes()
        start = data.find(b"data") + 8
        samples = np.frombuffer(data[start : start + (len(data) - start) // 2 * 2], dtype="<i2")
        ends = [(p, float(t)) for p, _, t in (item.partition(":") for item in done.stdout.decode().split()) if t]
        return samples.astype(np.float32) / 32768, ends


def resampled(audio: np.ndarray, rate: int) -> np.ndarray:
    """To 44.1 kHz, band-limited, through the spectrum of the whole clip; rate is a multiple of 50 Hz."""
    divisor = math.gcd(SAMPLE_RATE, rate)
    up, down = SAMPLE_RATE // divisor, rate // divisor
    padded = len(audio) + 400 + -(len(audio) + 400) % (2 * down)
    spectrum = np.fft.rfft(audio, padded)
    target = padded // down * up
    wide = np.zeros(target // 2 + 1, dtype=spectrum.dtype)
    shared = min(len(wide), len(spectrum))
    wide[:shared] = spectrum[:shared]
    return (np.fft.irfft(wide, target) * (target / padded))[: len(audio) * up // down].astype(np.float32)


def joined(first: Utterance, second: Utterance) -> Utterance:
    """Two utterances of one voice with the silence of [pause] between."""
    frames = round(PAUSE_SECONDS * SAMPLE_RATE / FRAME_SAMPLES)
    gap = np.zeros(frames * FRAME_SAMPLES, np.int16)
    slots = np.zeros(len(gap) // SLOT_SAMPLES, np.int8)
    return Utterance(
        f"{first.text} {PAUSE_TAG} {second.text}",
        np.concatenate([first.audio, gap, second.audio]),
        np.concatenate([first.phones, slots, second.phones]),
    )


def draw(synthesiser: Synthesiser, sentences: Sentences, rng: random.Random) -> tuple[int, Utterance] | None:
    """One random utterance of one random voice, its text as a user would write it, tags included."""
    index = rng.choices(range(len(VOICES)), [v.share for v in VOICES])[0]
    voice, text = VOICES[index], sentences.draw(rng)
    kind = rng.random()
    if kind < PAUSE_SHARE:
        first, second = synthesiser.speak(voice, text), synthesiser.speak(voice, sentences.draw(rng))
        return (index, joined(first, second)) if first and second else None
    manner = rng.choices(MANNERS, [m.share for m in MANNERS])[0]
    spoken = synthesiser.speak(voice, text, manner)
    if spoken is None:
        return None
    tag = manner.tag
    if not tag and kind > 1 - UNKNOWN_SHARE:
        tag = rng.choice(UNKNOWN_TAGS)
    return index, Utterance(f"{tag} {text}" if tag else text, spoken.audio, spoken.phones)


def write_share(out: Path, root: Path, hours: float, seed: int, worker: int) -> float:
    """One process's share of the corpus, in shards that appear whole; returns seconds of audio."""
    rng = random.Random(1000 * seed + worker)
    synthesiser = Synthesiser(root, Path(f"/dev/shm/speech_{os.getpid()}_{worker}.wav"))
    sentences = Sentences(root)
    total, shard, limit = 0.0, 0, 30.0
    while total < hours * 3600:
        items: list[tuple[int, Utterance]] = []
        seconds = 0.0
        while seconds < limit and total + seconds < hours * 3600:
            try:
                item = draw(synthesiser, sentences, rng)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
                continue
            if item is not None:
                items.append(item)
                seconds += len(item[1].audio) / SAMPLE_RATE
        _write_shard(out, f"{worker:02d}_{shard:03d}", items)
        total, shard, limit = total + seconds, shard + 1, min(2 * limit, 600.0)
    return total


def _write_shard(out: Path, name: str, items: list[tuple[int, Utterance]]) -> None:
    np.save(out / f"audio_{name}.npy", np.concatenate([u.audio for _, u in items]))
    np.save(out / f"phones_{name}.npy", np.concatenate([u.phones for _, u in items]))
    rows = [[voice, len(u.audio) // FRAME_SAMPLES, u.text] for voice, u in items]
    unfinished = out / f"{name}.tmp"
    unfinished.write_text(json.dumps(rows))
    unfinished.rename(out / f"meta_{name}.json")


def _speech_bounds(raw: np.ndarray, rate: int) -> tuple[int, int] | None:
    """First and last sample to keep: the speech with a short lead and tail; None for silence."""
    hop = rate // 100
    frames = len(raw) // hop
    if frames < 20:
        return None
    energy = np.sqrt((raw[: frames * hop].reshape(frames, hop) ** 2).mean(1))
    loud = np.flatnonzero(energy > 0.02 * energy.max())
    if energy.max() < 1e-3:
        return None
    start = max(0, int(loud[0] * hop - LEAD_SECONDS * rate))
    return start, min(len(raw), int((loud[-1] + 1) * hop + TAIL_SECONDS * rate))


def _labels(ends: list[tuple[str, float]], scale: float, offset: float, slots: int) -> np.ndarray:
    """The phone at the middle of each slot; times are scaled to playback and shifted by the cut."""
    if not ends:
        return np.full(slots, UNKNOWN_PHONE, np.int8)
    times = np.array([t for _, t in ends]) * scale - offset
    names = np.array([PHONES.index(p) if p in PHONES else UNKNOWN_PHONE for p, _ in ends] + [0], np.int8)
    middles = (np.arange(slots) + 0.5) * SLOT_SAMPLES / SAMPLE_RATE
    return names[np.searchsorted(times, middles)]


def main() -> None:
    """Write OUT/{audio,phones,meta}_* shards, OUT/held_out.json and, last, OUT/done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--root", type=Path, default=Path("/"))
    parser.add_argument("--seed", type=int, default=1, help="another seed speaks another corpus")
    arguments = parser.parse_args()
    started = time.monotonic()
    arguments.out.mkdir(parents=True, exist_ok=True)
    sentences = Sentences(arguments.root)
    (arguments.out / "held_out.json").write_text(json.dumps(sentences.held_out, indent=0))
    (arguments.out / "voices.json").write_text(json.dumps([asdict(v) for v in VOICES], indent=1))
    share = arguments.hours / arguments.processes
    jobs = [(arguments.out, arguments.root, share, arguments.seed, worker) for worker in range(arguments.processes)]
    with multiprocessing.Pool(arguments.processes) as pool:
        seconds = sum(pool.starmap(write_share, jobs, chunksize=1))
    (arguments.out / "done").write_text("")
    print(f"{seconds / 3600:.2f} h of speech in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
