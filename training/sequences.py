"""Training sequences of the autoregressive model: the engine's own prompt, the target's frames, the stop token."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import IterableDataset, get_worker_info

from engine.prompt import build_prompt
from engine.tokenizer import Tokenizer
from engine.types import Reference, Utterance
from training.sizes import MODEL
from training.vocabulary import build_tokenizer
from training.voices import DEFAULT_VOICE

LENGTHS = (256, 384, 576, 896, 1472)
"""Sequences are padded to the next of these, so that compiled steps see few shapes."""
REFERENCE_FRAMES = (40, 330)
LONGEST_TARGET = 450
REFERENCE_WEIGHT = 0.3
"""Of the loss on a reference's own frames, whose text stands before them; the target's is 1."""


@dataclass(frozen=True, eq=False, slots=True)
class Sequence:
    """tokens (steps,), codes (codebooks, steps), and the weight of predicting each step's *next* token."""

    tokens: np.ndarray
    codes: np.ndarray
    weights: np.ndarray

    def __len__(self) -> int:
        return len(self.tokens)


class Speech:
    """The encoded corpus: one utterance = (voice, text, codes); one text in a hundred is kept for validation."""

    def __init__(self, folder: Path) -> None:
        self.codes = np.load(folder / "speech.npz")["codes"]  # (frames, codebooks) int16
        rows = json.loads((folder / "speech.json").read_text())
        self.voices = [int(v) for v, _, _ in rows]
        self.frames = [int(n) for _, n, _ in rows]
        self.texts = [str(t) for _, _, t in rows]
        self.starts = np.concatenate([[0], np.cumsum(self.frames)]).tolist()

    def codes_of(self, index: int) -> np.ndarray:
        """(codebooks, frames) int16."""
        return self.codes[self.starts[index] : self.starts[index + 1]].T

    def split(self) -> tuple[list[int], list[int]]:
        """Indices for training and for validation: by text without tags, so that no voice gives a sentence away."""
        held = [_is_for_validation(text) for text in self.texts]
        return [i for i, h in enumerate(held) if not h], [i for i, h in enumerate(held) if h]


def _is_for_validation(text: str) -> bool:
    words = re.sub(r"\[[^]]*\] ?", "", text)
    return int(hashlib.md5(words.encode(), usedforsecurity=False).hexdigest(), 16) % 100 == 7


class Composer:
    """Draws utterances and lays them out as sequences."""

    def __init__(self, speech: Speech, indices: list[int], seed: int) -> None:
        self.speech, self.rng = speech, random.Random(seed)
        # The engine's tokenizer wraps the same object that is written to tokenizer.json.
        self.tokenizer = Tokenizer(build_tokenizer(), Path("tokenizer.json"))
        self.by_voice: dict[int, list[int]] = {}
        for index in indices:
            self.by_voice.setdefault(speech.voices[index], []).append(index)
        self.plain_by_voice = {
            voice: [i for i in members if "[" not in speech.texts[i]] for voice, members in self.by_voice.items()
        }
        self._voices = sorted(v for v, members in self.plain_by_voice.items() if len(members) > 3)
        self._weights = [len(self.by_voice[v]) ** 0.5 for v in self._voices]

    def draw(self) -> Sequence:
        """Half of them the default voice without a reference, half some voice with one."""
        if self.rng.random() < 0.5 and DEFAULT_VOICE in self.by_voice:
            return self.sequence(self._target(DEFAULT_VOICE), ())
        voice = self.rng.choices(self._voices, self._weights)[0]
        target = self._target(voice)
        return self.sequence(target, self._references(voice, target))

    def sequence(self, target: list[int], references: tuple[Reference, ...]) -> Sequence:
        """The engine's prompt for the target's text, then its frames and the stop token."""
        text = " ".join(self.speech.texts[i] for i in target)
        prompt = build_prompt(Utterance(text, references), self.tokenizer, MODEL)
        codes = np.concatenate([self.speech.codes_of(i) for i in target], axis=1).astype(np.int64)
        stop = np.zeros((MODEL.num_codebooks, 1), np.int64)
        tokens = np.concatenate([prompt.ids, codes[0] + MODEL.semantic_start, [MODEL.eos_token]])
        weights = np.zeros(len(tokens), np.float32)
        spoken = (prompt.ids >= MODEL.semantic_start).nonzero()[0]
        weights[spoken - 1] = REFERENCE_WEIGHT
        weights[len(prompt.ids) - 1 : -1] = 1.0
        return Sequence(tokens, np.concatenate([prompt.codes, codes, stop], axis=1), weights)

    def _target(self, voice: int) -> list[int]:
        """One utterance, or in one of six cases two or three in a row."""
        chosen = [self.rng.choice(self.by_voice[voice])]
        if self.rng.random() < 0.17 and self.plain_by_voice[voice]:
            for _ in range(self.rng.randint(1, 2)):
                more = self.rng.choice(self.plain_by_voice[voice])
                if sum(self.speech.frames[i] for i in (*chosen, more)) <= LONGEST_TARGET:
                    chosen.append(more)
        return chosen

    def _references(self, voice: int, target: list[int]) -> tuple[Reference, ...]:
        """One clip of 2–15 s, sometimes of two sentences; one time in sixteen two clips."""
        first = self._reference(voice, target, longest=REFERENCE_FRAMES[1])
        if self.rng.random() < 1 / 16:
            return first, self._reference(voice, target, longest=120)
        return (first,)

    def _reference(self, voice: int, target: list[int], longest: int) -> Reference:
        members = [self.rng.choice(self.plain_by_voice[voice])]
        frames = self.speech.frames[members[0]]
        for _ in range(12):
            enough = REFERENCE_FRAMES[0] if self.rng.random() < 0.6 else 120
            if frames >= enough:
                break
            more = self.rng.choice(self.plain_by_voice[voice])
            if more not in target and frames + self.speech.frames[more] <= longest:
                members.append(more)
                frames += self.speech.frames[more]
        codes = np.concatenate([self.speech.codes_of(i) for i in members], axis=1)
        return Reference(np.ascontiguousarray(codes), " ".join(self.speech.texts[i] for i in members))


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """tokens (rows, steps) int64, codes (rows, codebooks, steps) int64, weights (rows, steps) float32.

    chosen (n,) int64 indexes the flattened rows × steps: positions whose next frame trains the fast AR.
    """

    tokens: Tensor
    codes: Tensor
    weights: Tensor
    chosen: Tensor

    def to(self, device: torch.device) -> Batch:
        parts = (self.tokens, self.codes, self.weights, self.chosen)
        return Batch(*(part.to(device, non_blocking=True) for part in parts))

    def pin_memory(self) -> Batch:
        return Batch(*(part.pin_memory() for part in (self.tokens, self.codes, self.weights, self.chosen)))


def collate(sequences: list[Sequence], length: int, fast_frames: int, rng: np.random.Generator) -> Batch:
    """Right-pad to length; a causal model never sees the padding."""
    tokens = np.full((len(sequences), length), MODEL.eos_token, np.int64)
    codes = np.zeros((len(sequences), MODEL.num_codebooks, length), np.int64)
    weights = np.zeros((len(sequences), length), np.float32)
    for row, sequence in enumerate(sequences):
        tokens[row, : len(sequence)] = sequence.tokens
        codes[row, :, : len(sequence)] = sequence.codes
        weights[row, : len(sequence)] = sequence.weights
    following = np.roll(tokens, -1, axis=1) >= MODEL.semantic_start
    candidates = ((weights > 0) & following).reshape(-1).nonzero()[0]
    chosen = rng.choice(candidates, fast_frames, replace=len(candidates) < fast_frames)
    return Batch(*(torch.from_numpy(part) for part in (tokens, codes, weights, chosen)))


class Batches(IterableDataset[Batch]):
    """Endless batches of about `positions` positions, one length each, from as many workers as the loader has."""

    def __init__(self, speech: Speech, indices: list[int], positions: int, fast_frames: int, seed: int = 0) -> None:
        self.speech, self.indices = speech, indices
        self.positions, self.fast_frames, self.seed = positions, fast_frames, seed

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        seed = self.seed * 1000 + (worker.id if worker else 0)
        composer, rng = Composer(self.speech, self.indices, seed), np.random.default_rng(seed)
        waiting: dict[int, list[Sequence]] = {length: [] for length in LENGTHS}
        while True:
            sequence = composer.draw()
            length = next((n for n in LENGTHS if n >= len(sequence)), None)
            if length is None:
                continue
            waiting[length].append(sequence)
            if len(waiting[length]) == max(1, self.positions // length):
                yield collate(waiting[length], length, self.fast_frames, rng)
                waiting[length] = []
