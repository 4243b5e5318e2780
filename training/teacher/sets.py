"""Synthesises sets: one sentence, one melody, three timbres, so that the three differ only in their voice.

    python -m training.teacher.sets TEACHER.pt VOICES PROMPTS.npz OUT --processes 15

The teacher's style has one half for timbre and one for prosody; with the same prosody, its utterances have the same
length to the sample. Three timbres stay together for three sentences, a group, so that each has clips of other words.
Ends when OUT/enough appears or the time is over; writes OUT/done last. A shard is written by `write_sets`.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import multiprocessing

from training.data.phones import labels
from training.teacher.kokoro import SAMPLE_RATE as TEACHER_RATE
from training.teacher.kokoro import Kokoro, Spoken
from training.teacher.rooms import coloured
from training.teacher.synthesise import (
    FRAME_SAMPLES,
    LEVEL,
    MAX_SECONDS,
    SAMPLE_RATE,
    SLOT_SAMPLES,
    by_slot,
    resampled,
    speech_bounds,
)
from training.teacher.voices import DEFAULT, SPEAKERS, Speaker, Style, mixture
from training.texts.store import Prompts

TIMBRES, SENTENCES = 3, 3
"""Timbres in a set, and sets in a group."""
TIMBRE_VALUES = 128
"""Leading values of a style that are its timbre."""
USUAL_TOKENS = 80
"""The row of a style table that represents a voice."""
LEAST_SECONDS = 1.2
NAMED_SHARE, DEFAULT_SHARE = 0.6, 0.35
"""Share of the groups with a named voice, and of these with the default one."""
STRAY_SHARE, STRAY = 0.25, 0.35
"""Share of the timbres moved by noise, and its size as a share of the voices' own spread; more costs naturalness."""


@dataclass(frozen=True, eq=False, slots=True)
class SpokenSet:
    """One sentence in several timbres: audio (timbres, samples) int16, whole frames; a phone per 512 samples."""

    audio: np.ndarray
    phones: np.ndarray
    styles: np.ndarray
    """(timbres, 128) float32: the teacher's own values, NaN where unknown."""
    is_person: bool = False


class SetReader:
    """Groups of sets, synthesised by one process in timbres and melodies chosen for each group."""

    def __init__(self, teacher: Kokoro, folder: Path, prompts: Prompts, rows: Sequence[int], seed: int) -> None:
        """``rows``: of the prompts, in speaking order, then again from the start."""
        self._teacher, self._folder, self._prompts, self._rows = teacher, folder, prompts, rows
        self._rng = random.Random(seed)
        self._noise = np.random.default_rng(seed)
        self._tables: dict[str, np.ndarray] = {}
        voices = [self._table(speaker.timbre[0][0])[USUAL_TOKENS] for speaker in SPEAKERS]
        self._spread = np.std(voices, axis=0)[:TIMBRE_VALUES]
        self._next = 0

    def groups(self) -> Iterator[list[SpokenSet]]:
        """Endless: a group's sets, one per sentence."""
        while True:
            speakers = self._speakers()
            strays = [self._stray(speaker) for speaker in speakers]
            rate, pitch = self._drawn(0.5), self._drawn(0.4)
            sets: list[SpokenSet] = []
            for _ in range(SENTENCES):
                melody = self._rng.choice(speakers[:2])
                while (spoken_set := self._speak(speakers, strays, melody, rate, pitch)) is None:
                    pass
                sets.append(spoken_set)
            yield sets

    def _speakers(self) -> list[Speaker]:
        speakers = [mixture("", self._rng) for _ in range(TIMBRES)]
        if self._rng.random() < NAMED_SHARE:
            named = DEFAULT if self._rng.random() < DEFAULT_SHARE else self._rng.choice(SPEAKERS)
            speakers[self._rng.randrange(TIMBRES)] = named
        return speakers

    def _stray(self, speaker: Speaker) -> np.ndarray:
        """The change of each timbre: zero for most, and for all named ones."""
        is_moved = speaker not in SPEAKERS and self._rng.random() < STRAY_SHARE
        return is_moved * STRAY * self._spread * self._noise.standard_normal(TIMBRE_VALUES)

    def _drawn(self, share: float) -> float:
        return float(2 ** (self._rng.uniform(-3, 3) / 12)) if self._rng.random() < share else 1.0

    def _speak(
        self, speakers: list[Speaker], strays: list[np.ndarray], melody: Speaker, rate: float, pitch: float
    ) -> SpokenSet | None:
        row = self._rows[self._next % len(self._rows)]
        self._next += 1
        tokens = self._prompts.tokens(row, melody.british)
        prosody = self._style(melody.prosody, len(tokens))[TIMBRE_VALUES:]
        spoken, tones = [], []
        for speaker, stray in zip(speakers, strays, strict=True):
            timbre = self._style(speaker.timbre, len(tokens))[:TIMBRE_VALUES] + stray
            spoken.append(self._teacher.speak(tokens, np.concatenate([timbre, prosody]), 1 / rate, pitch))
            tones.append(speaker.tone)
        styles = [
            self._style(s.timbre, USUAL_TOKENS)[:TIMBRE_VALUES] + stray
            for s, stray in zip(speakers, strays, strict=True)
        ]
        return aligned(spoken, tokens, rate, tones, np.array(styles, np.float32))

    def _style(self, style: Style, tokens: int) -> np.ndarray:
        return np.sum([weight * self._table(voice)[min(tokens, 510) - 1] for voice, weight in style], axis=0)

    def _table(self, voice: str) -> np.ndarray:
        if voice not in self._tables:
            table = np.fromfile(self._folder / f"{voice}.bin", dtype=np.float32)
            self._tables[voice] = table.reshape(-1, 2 * TIMBRE_VALUES)
        return self._tables[voice]


def aligned(
    spoken: Sequence[Spoken], tokens: np.ndarray, rate: float, tones: Sequence[tuple[float, ...]], styles: np.ndarray
) -> SpokenSet | None:
    """A teacher's output in several timbres, trimmed alike and at one level; None if the lengths differ."""
    played = round(TEACHER_RATE * rate / 100) * 100
    cuts = [speech_bounds(item.audio, played) for item in spoken]
    if len({len(item.audio) for item in spoken}) > 1 or None in cuts:
        return None
    first, last = min(cut[0] for cut in cuts if cut), max(cut[1] for cut in cuts if cut)
    sounds = []
    for item, tone in zip(spoken, tones, strict=True):
        raw = item.audio[first:last]
        raw = coloured(raw, TEACHER_RATE, tone) if tone else raw
        audio = resampled(raw * (LEVEL / (np.sqrt(np.mean(raw**2)) + 1e-9)), played)
        sounds.append(audio * min(1.0, 0.95 / np.abs(audio).max()))
    samples = len(sounds[0])
    if not LEAST_SECONDS <= samples / SAMPLE_RATE <= MAX_SECONDS:
        return None
    audio = np.pad(np.array(sounds), ((0, 0), (0, -samples % FRAME_SAMPLES)))
    phones = by_slot(labels(np.array([0, *tokens, 0]), spoken[0].lengths), first, played, samples)
    slots = np.zeros(audio.shape[1] // SLOT_SAMPLES, np.int8)
    slots[: len(phones)] = phones[: len(slots)]
    return SpokenSet((audio * 32767).astype(np.int16), slots, styles)


def write_sets(out: Path, name: str, sets: Sequence[SpokenSet]) -> None:
    """Write audio_NAME.npy, every set's timbres in order, and last sets_NAME.npz with their positions."""
    np.save(out / f"audio_{name}.npy", np.concatenate([item.audio.reshape(-1) for item in sets]))
    unfinished = out / f"{name}.part"
    with unfinished.open("wb") as file:
        np.savez(
            file,
            frames=np.array([item.audio.shape[1] // FRAME_SAMPLES for item in sets], np.int64),
            phones=np.concatenate([np.tile(item.phones, TIMBRES) for item in sets]),
            styles=np.stack([item.styles for item in sets]),
            is_person=np.array([item.is_person for item in sets]),
        )
    unfinished.rename(out / f"sets_{name}.npz")


def _write_share(worker: int, arguments: argparse.Namespace) -> None:
    """One process's shards, which appear only when complete."""
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    prompts = Prompts(arguments.prompts)
    rows = range(worker, len(prompts), arguments.processes)
    reader = SetReader(
        Kokoro(arguments.teacher, device), arguments.voices, prompts, rows, 1000 * arguments.seed + worker
    )
    sets: list[SpokenSet] = []
    shard, seconds, limit = 0, 0.0, 60.0
    for group in reader.groups():
        sets += group
        seconds += sum(item.audio.size for item in group) / SAMPLE_RATE
        enough = (arguments.out / "enough").exists() or time.monotonic() > arguments.end
        if seconds >= limit or enough:
            write_sets(arguments.out, f"{worker:02d}_{shard:04d}", sets)
            sets, shard, seconds, limit = [], shard + 1, 0.0, min(2 * limit, 300.0)
        if enough:
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("teacher", type=Path)
    parser.add_argument("voices", type=Path)
    parser.add_argument("prompts", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.end = time.monotonic() + arguments.seconds
    arguments.out.mkdir(parents=True, exist_ok=True)
    multiprocessing.spawn(_write_share, (arguments,), arguments.processes)
    (arguments.out / "done").write_text("")


if __name__ == "__main__":
    main()
