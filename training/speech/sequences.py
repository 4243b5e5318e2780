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

from engine.model.prompt import build_prompt
from engine.model.tokenizer import Tokenizer
from engine.types import Reference, Utterance
from training.data.phones import UNKNOWN
from training.sizes import MODEL
from training.speech.vocabulary import build_tokenizer
from training.teacher.voices import DEFAULT, NAMED

LENGTHS = (256, 384, 576, 896, 1472)
"""Sequences are padded to the next of these, so that compiled steps have few shapes."""
REFERENCE_FRAMES = (40, 330)
LONGEST_TARGET = 450
REFERENCE_WEIGHT = 0.3
"""Weight of the loss on a reference's own frames, whose text precedes them; the target's is 1."""


WITHOUT_REFERENCE, NAMED_SHARE = 0.5, 0.5
"""Shares of the sequences: the default voice without a reference; of the others, those in a named voice.

The default voice has two thirds of the hours if its fast teacher speaks too; with a share far below that, the model
memorises the rest first.
"""


@dataclass(frozen=True, eq=False, slots=True)
class Sequence:
    """tokens (steps,), codes (codebooks, steps), and the weight of predicting each step's *next* token.

    phones (2, steps): the phone of the frame that a step predicts, and the phone that follows it; UNKNOWN elsewhere.
    """

    tokens: np.ndarray
    codes: np.ndarray
    weights: np.ndarray
    phones: np.ndarray

    def __len__(self) -> int:
        return len(self.tokens)


class Speech:
    """The encoded corpus: one utterance = (voice, text, codes); one text in a hundred is kept for validation."""

    def __init__(self, folder: Path) -> None:
        codes, phones, rows = [], [], []
        for path in sorted(folder.glob("*.json")):
            with np.load(path.with_suffix(".npz")) as arrays:
                codes.append(arrays["codes"])  # (frames, codebooks) int16
                phones.append(arrays["phones"])
            rows += json.loads(path.read_text())
        self.codes, self._phones = np.concatenate(codes), np.concatenate(phones)
        self.voices = [str(row[0]) for row in rows]
        self.frames = [int(row[1]) for row in rows]
        self.texts = [str(row[2]) for row in rows]
        self.is_rough = [bool(row[3]) for row in rows]
        self.starts = np.concatenate([[0], np.cumsum(self.frames)]).tolist()

    def phones_of(self, index: int) -> np.ndarray:
        """(2, frames) int8: each frame's phone, and the next different one."""
        now = self._phones[self.starts[index] : self.starts[index + 1]]
        changes = np.flatnonzero(now[1:] != now[:-1]) + 1
        following = np.searchsorted(changes, np.arange(len(now)), side="right")
        coming = np.append(now[changes], np.int8(UNKNOWN))[following]
        return np.stack([now, coming])

    def codes_of(self, index: int) -> np.ndarray:
        """(codebooks, frames) int16."""
        return self.codes[self.starts[index] : self.starts[index + 1]].T

    def split(self) -> tuple[list[int], list[int]]:
        """Indices for training and for validation: by text without tags, so that no sentence is in both."""
        validation = [_is_for_validation(text) for text in self.texts]
        return [i for i, h in enumerate(validation) if not h], [i for i, h in enumerate(validation) if h]


def _is_for_validation(text: str) -> bool:
    words = re.sub(r"\[[^]]*\] ?", "", text)
    return int(hashlib.md5(words.encode(), usedforsecurity=False).hexdigest(), 16) % 100 == 7


class Composer:
    """Picks utterances and arranges them as sequences."""

    def __init__(self, speech: Speech, indices: list[int], seed: int) -> None:
        self.speech, self.rng = speech, random.Random(seed)
        # The engine's tokenizer wraps the object that is written to tokenizer.json.
        self.tokenizer = Tokenizer(build_tokenizer(), MODEL, "tokenizer.json")
        self.targets: dict[str, list[int]] = {}
        self.references: dict[str, list[int]] = {}
        for index in indices:
            voice = speech.voices[index]
            if not speech.is_rough[index]:
                self.targets.setdefault(voice, []).append(index)
            if "[" not in speech.texts[index]:
                self.references.setdefault(voice, []).append(index)
        known = {voice.name for voice in NAMED}
        spoken = sorted(voice for voice in self.targets if len(self.references.get(voice, ())) > 1)
        named, others = [v for v in spoken if v in known], [v for v in spoken if v not in known]
        self._named, self._others = named or others, others or named

    def draw(self) -> Sequence:
        """The default voice without a reference, or some voice with one."""
        if self.rng.random() < WITHOUT_REFERENCE:
            return self.sequence(self._target(DEFAULT.name), ())
        voice = self.rng.choice(self._named if self.rng.random() < NAMED_SHARE else self._others)
        target = self._target(voice)
        return self.sequence(target, self._references(voice, target))

    def sequence(self, target: list[int], references: tuple[Reference, ...]) -> Sequence:
        """The engine's prompt for the target's text, then its frames and the stop token."""
        text = " ".join(self.speech.texts[i] for i in target)
        prompt = build_prompt(Utterance(text, references), self.tokenizer, MODEL)
        codes = np.concatenate([self.speech.codes_of(i) for i in target], axis=1).astype(np.int64)
        phones = np.full((2, len(prompt.ids) + codes.shape[1] + 1), UNKNOWN, np.int64)
        phones[:, len(prompt.ids) - 1 : -2] = np.concatenate([self.speech.phones_of(i) for i in target], axis=1)
        stop = np.zeros((MODEL.num_codebooks, 1), np.int64)
        tokens = np.concatenate([prompt.ids, codes[0] + MODEL.semantic_start, [MODEL.eos_token]])
        weights = np.zeros(len(tokens), np.float32)
        spoken = (prompt.ids >= MODEL.semantic_start).nonzero()[0]
        weights[spoken - 1] = REFERENCE_WEIGHT
        weights[len(prompt.ids) - 1 : -1] = 1.0
        return Sequence(tokens, np.concatenate([prompt.codes, codes, stop], axis=1), weights, phones)

    def _target(self, voice: str) -> list[int]:
        """One utterance, or in one of six cases two or three consecutive ones."""
        chosen = [self.rng.choice(self.targets[voice])]
        if self.rng.random() < 0.17 and len(self.targets[voice]) > 50:
            for _ in range(self.rng.randint(1, 2)):
                more = self.rng.choice(self.targets[voice])
                if (
                    "[" not in self.speech.texts[more]
                    and sum(self.speech.frames[i] for i in (*chosen, more)) <= LONGEST_TARGET
                ):
                    chosen.append(more)
        return chosen

    def _references(self, voice: str, target: list[int]) -> tuple[Reference, ...]:
        """One clip of 2–15 s, sometimes of two sentences; one time in sixteen two clips."""
        first = self._reference(voice, target, longest=REFERENCE_FRAMES[1])
        if self.rng.random() < 1 / 16:
            return first, self._reference(voice, target, longest=120)
        return (first,)

    def _reference(self, voice: str, target: list[int], longest: int) -> Reference:
        free = (
            [index for index in self.references[voice] if index not in target]
            if len(self.references[voice]) < 50
            else []
        )
        pool = free or self.references[voice]
        members = [self.rng.choice(pool)]
        frames = self.speech.frames[members[0]]
        for _ in range(12):
            enough = REFERENCE_FRAMES[0] if self.rng.random() < 0.6 else 120
            if frames >= enough:
                break
            more = self.rng.choice(pool)
            if more not in (*target, *members) and frames + self.speech.frames[more] <= longest:
                members.append(more)
                frames += self.speech.frames[more]
        codes = np.concatenate([self.speech.codes_of(i) for i in members], axis=1)
        return Reference(np.ascontiguousarray(codes), " ".join(self.speech.texts[i] for i in members))


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """tokens (rows, steps) int64, codes (rows, codebooks, steps) int64, weights (rows, steps) float32.

    phones (rows, 2, steps) int64, as in a sequence;
    chosen (n,) int64 indexes the flattened rows × steps: positions whose next frame trains the fast AR.
    """

    tokens: Tensor
    codes: Tensor
    weights: Tensor
    phones: Tensor
    chosen: Tensor

    def to(self, device: torch.device) -> Batch:
        return Batch(*(part.to(device, non_blocking=True) for part in self._parts()))

    def pin_memory(self) -> Batch:
        return Batch(*(part.pin_memory() for part in self._parts()))

    def _parts(self) -> tuple[Tensor, ...]:
        return self.tokens, self.codes, self.weights, self.phones, self.chosen


def collate(sequences: list[Sequence], length: int, fast_frames: int, rng: np.random.Generator) -> Batch:
    """Right-pad to length; a causal model never sees the padding."""
    tokens = np.full((len(sequences), length), MODEL.eos_token, np.int64)
    codes = np.zeros((len(sequences), MODEL.num_codebooks, length), np.int64)
    weights = np.zeros((len(sequences), length), np.float32)
    phones = np.full((len(sequences), 2, length), UNKNOWN, np.int64)
    for row, sequence in enumerate(sequences):
        tokens[row, : len(sequence)] = sequence.tokens
        codes[row, :, : len(sequence)] = sequence.codes
        weights[row, : len(sequence)] = sequence.weights
        phones[row, :, : len(sequence)] = sequence.phones
    following = np.roll(tokens, -1, axis=1) >= MODEL.semantic_start
    candidates = ((weights > 0) & following).reshape(-1).nonzero()[0]
    chosen = rng.choice(candidates, fast_frames, replace=len(candidates) < fast_frames)
    return Batch(*(torch.from_numpy(part) for part in (tokens, codes, weights, phones, chosen)))


class Batches(IterableDataset[Batch]):
    """Endless batches of about `positions` positions, each of one length, from as many workers as the loader has."""

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
