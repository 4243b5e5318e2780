"""Synthesises the corpus with the teacher: shards of 44.1 kHz audio, phone labels and texts, in many processes.

    python -m training.teacher.synthesise TEACHER.pt VOICES PROMPTS.npz OUT --processes 14 --students 12

VOICES is the folder of style tables of the npm package kokoro-js, PROMPTS the output of training.texts.prompts.
Students are processes in which the default voice's fast teacher speaks every prompt, on one CPU core each. Ends when
every prompt is spoken or OUT/enough appears; writes OUT/done.PART last. With several GPUs, one command for each, with
its part and the number of parts.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import multiprocessing

from training.data.phones import LENGTH_SAMPLES, labels
from training.teacher.hibari import Hibari
from training.teacher.kokoro import SAMPLE_RATE as TEACHER_RATE
from training.teacher.kokoro import Kokoro, Spoken
from training.teacher.rooms import coloured, roughened
from training.teacher.voices import (
    DEFAULT,
    DEFAULT_SHARE,
    MANNERS,
    NAMED_SHARE,
    PAUSE_SECONDS,
    PAUSE_SHARE,
    PAUSE_TAG,
    PLAIN,
    SPEAKERS,
    UNKNOWN_SHARE,
    UNKNOWN_TAGS,
    WHISPERING,
    Manner,
    Speaker,
    Style,
    mixture,
)
from training.teacher.whisper import whispered
from training.texts.store import Prompts

SAMPLE_RATE = 44100
FRAME_SAMPLES = 2048
SLOT_SAMPLES = 512
"""Samples per phone label: a quarter of a frame."""
LEAD_SECONDS, TAIL_SECONDS = 0.05, 0.12
LEVEL = 0.09
"""Root mean square of every utterance; full scale is 1."""
MIN_SECONDS, MAX_SECONDS = 0.35, 16.0
IN_A_ROW = 4
"""Consecutive sentences of one speaker, so that every mixture has references."""
ROUGH_SHARE = 0.15
"""Share of the sentences, except the default voice's, with a poor room and microphone, like references."""


@dataclass(frozen=True, eq=False, slots=True)
class Utterance:
    """One spoken sentence: audio int16 at 44.1 kHz, whole frames long, and a phone per 512 samples."""

    text: str
    audio: np.ndarray
    phones: np.ndarray
    is_rough: bool = False


class Synthesiser:
    """The teacher with its style tables."""

    def __init__(self, teacher: Path, voices: Path, device: torch.device) -> None:
        self._teacher = Kokoro(teacher, device)
        self._folder = voices

    @cache  # noqa: B019  (lives as long as the process)
    def _table(self, voice: str) -> np.ndarray:
        """(510, 256): the row for n tokens is n − 1."""
        return np.fromfile(self._folder / f"{voice}.bin", dtype=np.float32).reshape(-1, 256)

    def _style(self, style: Style, tokens: int) -> np.ndarray:
        rows = [weight * self._table(voice)[min(tokens, 510) - 1] for voice, weight in style]
        return np.sum(rows, axis=0)

    def speak(self, speaker: Speaker, text: str, tokens: np.ndarray, manner: Manner = PLAIN) -> Utterance | None:
        """Speak tokens, the reading of a text without tags; None without a usable result."""
        prosody = WHISPERING if manner.whispered else speaker.prosody
        style = np.concatenate(
            [self._style(speaker.timbre, len(tokens))[:128], self._style(prosody, len(tokens))[128:]]
        )
        rate = speaker.rate * manner.rate
        spoken = self._teacher.speak(tokens, style, 1 / (manner.duration * rate), speaker.pitch)
        return finished(spoken, text, tokens, rate, manner.whispered, speaker.tone)


class Student:
    """The default voice's fast teacher, in place of a synthesiser; it has no other voice and no manner."""

    def __init__(self, seed: int) -> None:
        self._teacher = Hibari(seed)

    def speak(self, speaker: Speaker, text: str, tokens: np.ndarray, manner: Manner = PLAIN) -> Utterance | None:
        """Speak tokens; None without a usable result."""
        assert speaker is DEFAULT and manner is PLAIN
        return finished(self._teacher.speak(tokens), text, tokens)


def finished(
    spoken: Spoken,
    text: str,
    tokens: np.ndarray,
    rate: float = 1.0,
    is_whispered: bool = False,
    tone: tuple[float, ...] = (),
) -> Utterance | None:
    """A teacher's output, trimmed, coloured, at the level and rate of the corpus; None if it is not usable."""
    played = round(TEACHER_RATE * rate / 100) * 100
    cut = speech_bounds(spoken.audio, played)
    if cut is None:
        return None
    raw = spoken.audio[cut[0] : cut[1]]
    if is_whispered:
        raw = whispered(raw, TEACHER_RATE)
    if tone:
        raw = coloured(raw, TEACHER_RATE, tone)
    audio = resampled(raw * (LEVEL / (np.sqrt(np.mean(raw**2)) + 1e-9)), played)
    if not MIN_SECONDS <= len(audio) / SAMPLE_RATE <= MAX_SECONDS:
        return None
    phones = labels(np.array([0, *tokens, 0]), spoken.lengths)
    return _framed(text, audio, by_slot(phones, cut[0], played, len(audio)))


def _framed(text: str, audio: np.ndarray, phones: np.ndarray) -> Utterance:
    """The audio padded to whole frames with silence, and limited to full scale."""
    audio = audio * min(1.0, 0.95 / np.abs(audio).max())
    audio = np.pad(audio, (0, -len(audio) % FRAME_SAMPLES))
    slots = np.zeros(len(audio) // SLOT_SAMPLES, np.int8)
    slots[: len(phones)] = phones[: len(slots)]
    return Utterance(text, (audio * 32767).astype(np.int16), slots)


def by_slot(phones: np.ndarray, first: int, rate: int, samples: int) -> np.ndarray:
    """The phone at the middle of every 512 samples of the played audio, which begins at the teacher's sample
    `first`."""
    middles = (np.arange(-(-samples // SLOT_SAMPLES)) + 0.5) * SLOT_SAMPLES / SAMPLE_RATE
    units = ((first + middles * rate) / LENGTH_SAMPLES).astype(np.int64)
    return np.where(units < len(phones), phones[np.minimum(units, len(phones) - 1)], 0).astype(np.int8)


def resampled(audio: np.ndarray, rate: int) -> np.ndarray:
    """Resample to 44.1 kHz, band-limited, through the spectrum of the whole clip; rate is a multiple of 50 Hz."""
    divisor = math.gcd(SAMPLE_RATE, rate)
    up, down = SAMPLE_RATE // divisor, rate // divisor
    padded = len(audio) + 400 + -(len(audio) + 400) % (2 * down)
    spectrum = np.fft.rfft(audio, padded)
    target = padded // down * up
    wide = np.zeros(target // 2 + 1, dtype=spectrum.dtype)
    shared = min(len(wide), len(spectrum))
    wide[:shared] = spectrum[:shared]
    return (np.fft.irfft(wide, target) * (target / padded))[: len(audio) * up // down].astype(np.float32)


def speech_bounds(raw: np.ndarray, rate: int) -> tuple[int, int] | None:
    """First and last sample to keep: the speech with a short lead and tail; None for silence."""
    hop = rate // 100
    frames = len(raw) // hop
    if frames < 20 or not np.isfinite(raw).all():
        return None
    energy = np.sqrt((raw[: frames * hop].reshape(frames, hop) ** 2).mean(1))
    loud = np.flatnonzero(energy > 0.02 * energy.max())
    if energy.max() < 1e-3:
        return None
    start = max(0, int(loud[0] * hop - LEAD_SECONDS * rate))
    return start, min(len(raw), int((loud[-1] + 1) * hop + TAIL_SECONDS * rate))


def joined(first: Utterance, second: Utterance) -> Utterance:
    """Two utterances of one voice with the silence of [pause] between."""
    frames = round(PAUSE_SECONDS * SAMPLE_RATE / FRAME_SAMPLES)
    gap = np.zeros(frames * FRAME_SAMPLES, np.int16)
    return Utterance(
        f"{first.text} {PAUSE_TAG} {second.text}",
        np.concatenate([first.audio, gap, second.audio]),
        np.concatenate([first.phones, np.zeros(len(gap) // SLOT_SAMPLES, np.int8), second.phones]),
    )


class Reader:
    """One process's share of the prompts, each spoken once, by speakers chosen for a few sentences at a time."""

    def __init__(
        self, synthesiser: Synthesiser | Student, prompts: Prompts, rows: range, number: int, seed: int
    ) -> None:
        """``rows``: of the prompts, in speaking order. ``number``: of the process, over all parts."""
        self.synthesiser, self.prompts = synthesiser, prompts
        self.rng = random.Random(1000 * seed + number)
        self._only_default = isinstance(synthesiser, Student)
        self._left = iter(rows)
        self._mixture = f"mixture {seed}.{number}"
        self._mixtures = 0

    def _speaker(self) -> Speaker:
        kind = self.rng.random()
        if self._only_default or kind < DEFAULT_SHARE:
            return DEFAULT
        if kind < DEFAULT_SHARE + NAMED_SHARE:
            return self.rng.choice(SPEAKERS[1:])
        self._mixtures += 1
        return mixture(f"{self._mixture}.{self._mixtures}", self.rng)

    def utterances(self) -> Iterator[tuple[str, Utterance]]:
        """(speaker's name, utterance) until no prompts are left."""
        while True:
            speaker = self._speaker()
            for _ in range(IN_A_ROW):
                try:
                    spoken = self._draw(speaker)
                except StopIteration:
                    return
                if spoken is not None:
                    yield speaker.name, spoken

    def _say(self, speaker: Speaker, manner: Manner = PLAIN) -> Utterance | None:
        index = next(self._left)
        text, tokens = self.prompts.text(index), self.prompts.tokens(index, speaker.british)
        return self.synthesiser.speak(speaker, text, tokens, manner)

    def _draw(self, speaker: Speaker) -> Utterance | None:
        """One utterance, with its text as a user would write it, including tags."""
        kind = self.rng.random()
        if kind < PAUSE_SHARE:
            first, second = self._say(speaker), self._say(speaker)
            return joined(first, second) if first and second else None
        manner = PLAIN if self._only_default else self.rng.choices(MANNERS, [option.share for option in MANNERS])[0]
        spoken = self._say(speaker, manner)
        if spoken is None:
            return None
        if manner is PLAIN and speaker is not DEFAULT and kind > 1 - ROUGH_SHARE:
            audio = roughened(spoken.audio.astype(np.float32) / 32768, SAMPLE_RATE, self.rng)
            return Utterance(spoken.text, (audio * 32767).astype(np.int16), spoken.phones, is_rough=True)
        tag = manner.tag
        if not tag and self.rng.random() < UNKNOWN_SHARE:
            tag = self.rng.choice(UNKNOWN_TAGS)
        return Utterance(f"{tag} {spoken.text}" if tag else spoken.text, spoken.audio, spoken.phones)


def write_share(worker: int, arguments: argparse.Namespace) -> None:
    """One process's shards, which appear only when complete."""
    torch.set_num_threads(1)
    number = worker + arguments.part * (arguments.processes + arguments.students)  # over all parts
    reader = _reader(worker, number, arguments)
    items: list[tuple[str, Utterance]] = []
    shard, seconds, limit = 0, 0.0, 30.0
    for item in reader.utterances():
        items.append(item)
        seconds += len(item[1].audio) / SAMPLE_RATE
        enough = (arguments.out / "enough").exists()
        if seconds >= limit or enough:
            write_shard(arguments.out, f"{number:02d}_{shard:04d}", items)
            items, shard, seconds, limit = [], shard + 1, 0.0, min(2 * limit, 300.0)
        if enough:
            return
    if items:
        write_shard(arguments.out, f"{number:02d}_{shard:04d}", items)


def _reader(worker: int, number: int, arguments: argparse.Namespace) -> Reader:
    """The first processes of a part use the teacher, the others the student, which starts at the end of the prompts.

    Each kind divides all prompts, and the time ends before both have spoken all: most are spoken by one of them.
    """
    prompts = Prompts(arguments.prompts)
    is_student = worker >= arguments.processes
    count = arguments.students if is_student else arguments.processes
    place = worker - arguments.processes if is_student else worker
    if is_student:
        speaking: Synthesiser | Student = Student(1000 * arguments.seed + number)
    else:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        speaking = Synthesiser(arguments.teacher, arguments.voices, device)
    place += arguments.part * count
    rows = range(place, len(prompts), arguments.parts * count)
    return Reader(speaking, prompts, rows[::-1] if is_student else rows, number, arguments.seed)


def write_shard(out: Path, name: str, items: list[tuple[str, Utterance]]) -> None:
    """Write audio_NAME.npy and phones_NAME.npy, one signal each, and last meta_NAME.json: one row per utterance."""
    np.save(out / f"audio_{name}.npy", np.concatenate([u.audio for _, u in items]))
    np.save(out / f"phones_{name}.npy", np.concatenate([u.phones for _, u in items]))
    rows = [[speaker, len(u.audio) // FRAME_SAMPLES, u.text, int(u.is_rough)] for speaker, u in items]
    unfinished = out / f"{name}.tmp"
    unfinished.write_text(json.dumps(rows))
    unfinished.rename(out / f"meta_{name}.json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("teacher", type=Path)
    parser.add_argument("voices", type=Path)
    parser.add_argument("prompts", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--students", type=int, default=0, help="additional processes of the fast teacher")
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    started = time.monotonic()
    arguments.out.mkdir(parents=True, exist_ok=True)
    multiprocessing.spawn(write_share, (arguments,), arguments.processes + arguments.students)
    (arguments.out / f"done.{arguments.part}").write_text("")
    print(f"spoken in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
