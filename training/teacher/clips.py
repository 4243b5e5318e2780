"""Synthesises the reference clips of the bundled voices with the teacher, and writes their transcripts.

    python -m training.teacher.clips TEACHER.pt VOICES assets/fry/voices

VOICES is the folder of style tables of the npm package kokoro-js. Needs the packages of training/texts/README.md.
"""

from __future__ import annotations

import argparse
import wave
from pathlib import Path

import numpy as np
import torch

from training.teacher.synthesise import SAMPLE_RATE, Synthesiser
from training.teacher.voices import SPEAKERS
from training.texts.reading import Phonemiser

TEXTS = (
    "Good evening, my name is Clara, and I read stories to anyone who has a moment to listen. Sit down, make yourself "
    "comfortable. Shall we begin?",
    "Oh, you should have seen the market this morning! There were peaches, plums, and a man who juggled eggs. "
    "I bought far too much, of course.",
    "The ferry leaves the harbour at seven, so please be on the pier a little before that. Bring something warm, "
    "because the wind is cold out there.",
    "Close your eyes for a moment and listen to the rain on the window. There is no hurry, and nothing left to do.",
    "My grandmother kept her buttons in a blue tin box, and on rainy days I was allowed to sort them by colour. "
    "I always began with the green ones.",
    "If you follow the river for an hour, you will come to a mill with a red roof. Ask there for the key, and they "
    "will show you the way across.",
    "We painted the kitchen yellow last summer, and even the cat seems to like it now. Would you like some tea, "
    "or is it too early?",
    "The old clock in the hall has been wrong for years, but nobody wants to repair it, and nobody knows why. "
    "I think we would miss it.",
    "There is a storm coming over the mountains tonight. Lock the doors, bring in the dogs, and keep the fire high. "
    "It will be over by morning.",
    "So I said to him, are you sure that it fits? And then the whole shelf came down, books and all! "
    "You should have heard the noise, it was wonderful.",
    "Every autumn the geese fly over our house, and my father goes outside and counts them out loud. "
    "Last year there were more than a hundred.",
    "The library opens at nine, and the quiet room on the second floor is free today, if you would like to work. "
    "The coffee is better next door.",
    "He wrote the number on a piece of paper, folded it twice, and gave it to the driver without a single word. "
    "Nobody ever saw him again.",
    "Up in the hills the weather turns quickly, and a warm coat is worth more than the best of maps. "
    "Remember that when you pack.",
)


def write_wave(path: Path, audio: np.ndarray) -> None:
    """Write int16 mono samples at 44.1 kHz."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes(audio.astype("<i2").tobytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("teacher", type=Path)
    parser.add_argument("voices", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    synthesiser = Synthesiser(arguments.teacher, arguments.voices, torch.device("cpu"))
    phonemiser = Phonemiser()
    for speaker, text in zip(SPEAKERS, TEXTS, strict=True):
        tokens = phonemiser.tokens(text, speaker.british)
        spoken = None if tokens is None else synthesiser.speak(speaker, text, tokens)
        if spoken is None:
            raise SystemExit(f"the teacher could not say the words of {speaker.name}")
        write_wave(arguments.out / f"{speaker.name}.wav", spoken.audio)
        (arguments.out / f"{speaker.name}.txt").write_text(text + "\n", encoding="utf-8")
        print(f"{speaker.name}: {len(spoken.audio) / SAMPLE_RATE:.1f} s")


if __name__ == "__main__":
    main()
