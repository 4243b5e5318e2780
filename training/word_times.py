"""Measures the accuracy of an engine's word times, against the teacher's own durations of its phonemes.

    python -m training.word_times assets/fry TEACHER.pt VOICES --sentences 44

The teacher speaks sentences that are not in training; their audio goes through the checkpoint's codec, and the engine
computes the start of each word. For comparison, words in proportion to their letters. Writes nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from engine import Engine, EngineConfig
from training.data.phones import LENGTH_SAMPLES, TOKENS
from training.teacher.kokoro import SAMPLE_RATE, Kokoro
from training.teacher.synthesise import speech_bounds
from training.texts.evaluation import evaluation_sentences
from training.texts.reading import Phonemiser

VOICES = ("af_heart", "af_bella", "bf_emma", "am_michael", "bm_george", "am_onyx", "bf_lily", "am_fenrir")
"""Used in turn; am_onyx and bf_lily are not in the training data."""
_WORD = re.compile(r"[^\s—-][^\s—]*")
_BETWEEN = (TOKENS[" "], TOKENS["—"])


@dataclass(frozen=True, eq=False, slots=True)
class Spoken:
    """A sentence in one of the teacher's voices: mono audio at 24 kHz, and its words' first characters and times."""

    text: str
    audio: np.ndarray
    characters: np.ndarray
    seconds: np.ndarray


class Teacher:
    """Kokoro's own voices, and its durations of their words."""

    def __init__(self, teacher: Path, voices: Path) -> None:
        self._kokoro, self._voices = Kokoro(teacher, torch.device("cpu")), voices
        self._phonemiser = Phonemiser()

    def speak(self, text: str, voice: str) -> Spoken | None:
        """None if the words as read differ from those as written."""
        tokens = self._phonemiser.tokens(text, voice.startswith("b"))
        if tokens is None:
            return None
        styles = np.fromfile(self._voices / f"{voice}.bin", dtype=np.float32).reshape(-1, 256)
        speech = self._kokoro.speak(tokens, styles[len(tokens) - 1])
        bounds = speech_bounds(speech.audio, SAMPLE_RATE)
        characters = np.array([match.start() for match in _WORD.finditer(text)])
        begins = _word_begins(tokens, speech.lengths)
        if bounds is None or len(begins) != len(characters):
            return None
        seconds = np.maximum((begins * LENGTH_SAMPLES - bounds[0]) / SAMPLE_RATE, 0.0)
        return Spoken(text, speech.audio[slice(*bounds)], characters, seconds)


def _word_begins(tokens: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Times in the teacher's units. The next word already sounds during a space, as `data.phones` assumes."""
    starts = np.cumsum(lengths)[: len(tokens)]  # the first length belongs to the padding
    begins, between = [], int(starts[0])
    is_new = True
    for token, start in zip(tokens, starts, strict=True):
        if token in _BETWEEN:
            is_new, between = True, int(start)
        elif is_new:
            begins.append(between)
            is_new = False
    return np.array(begins)


def by_letters(spoken: Spoken, seconds: float) -> np.ndarray:
    """The words' start times if all letters had equal length."""
    return spoken.characters / len(spoken.text) * seconds


async def measure(engine: Engine, teacher: Teacher, sentences: int) -> dict[str, object]:
    """Errors in milliseconds, and the cost of aligning."""
    errors: dict[str, list[np.ndarray]] = {"alignment": [], "by_letters": []}
    audio_s = taken = 0.0
    texts = [sentence.words for sentence in evaluation_sentences() if sentence.kind != "short"]
    for text in texts[:: max(1, len(texts) // (sentences + sentences // 4))]:
        sentence = teacher.speak(text, VOICES[len(errors["alignment"]) % len(VOICES)])
        if sentence is None or len(errors["alignment"]) == sentences:
            continue
        reference = await engine.encode_reference(sentence.audio, SAMPLE_RATE, text)
        started = time.process_time()  # nothing else runs in this process
        times = await engine.align(text, reference.codes)
        taken += time.process_time() - started
        audio_s += times[-1]
        errors["alignment"].append(times[sentence.characters] - sentence.seconds)
        errors["by_letters"].append(by_letters(sentence, times[-1]) - sentence.seconds)
    figures: dict[str, object] = {
        "sentences": len(errors["alignment"]),
        "words": sum(map(len, errors["alignment"])),
        "seconds": audio_s,
        "alignment_ms_a_second": 1000 * taken / audio_s,
    }
    for name, values in errors.items():
        off = 1000 * np.abs(np.concatenate(values))
        figures |= {f"{name}_median_ms": float(np.median(off)), f"{name}_90th_ms": float(np.percentile(off, 90))}
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("teacher", type=Path)
    parser.add_argument("voices", type=Path)
    parser.add_argument("--sentences", type=int, default=44)
    arguments = parser.parse_args()
    engine = Engine.start(EngineConfig(str(arguments.checkpoint), device="cpu"))
    try:
        teacher = Teacher(arguments.teacher, arguments.voices)
        figures = asyncio.run(measure(engine, teacher, arguments.sentences))
    finally:
        engine.stop()
    print(json.dumps({name: round(value, 1) for name, value in figures.items()}, indent=1))  # type: ignore[call-overload]


if __name__ == "__main__":
    main()
