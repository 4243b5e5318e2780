"""A reference clip with its words for every voice of the corpus, spoken by the synthesisers.

python -m training.clips assets/fry/voices --root UNPACKED_DEBIAN_PACKAGES
"""

from __future__ import annotations

import argparse
import tempfile
import wave
from pathlib import Path

import numpy as np

from training.synthesise import SAMPLE_RATE, Synthesiser
from training.voices import VOICES

TEXTS = (
    "Good evening, my name is Clara, and I read stories to anyone who has a moment to listen.",
    "The ferry leaves the harbour at seven, so please be on the pier a little before that.",
    "Up in the hills the weather turns quickly, and a warm coat is worth more than a map.",
    "My grandmother kept her buttons in a blue tin box, and I was allowed to sort them.",
    "If you follow the river for an hour, you will come to a mill with a red roof.",
    "The old clock in the hall has been wrong for years, but nobody wants to repair it.",
    "We painted the kitchen yellow last summer, and even the cat seems to like it now.",
    "There is a bakery around the corner where they sell bread that is still warm.",
    "Every autumn the geese fly over our house, and my father counts them out loud.",
    "The library opens at nine, and the quiet room on the second floor is free today.",
    "He wrote the number on a piece of paper, folded it twice, and gave it to the driver.",
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
    parser.add_argument("out", type=Path)
    parser.add_argument("--root", type=Path, default=Path("/"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        synthesiser = Synthesiser(arguments.root, Path(scratch) / "clip.wav")
        for voice, text in zip(VOICES, TEXTS, strict=True):
            spoken = synthesiser.speak(voice, text)
            if spoken is None:
                raise RuntimeError(f"the synthesiser said nothing for {voice.name}")
            write_wave(arguments.out / f"{voice.name}.wav", spoken.audio)
            (arguments.out / f"{voice.name}.txt").write_text(text + "\n", encoding="utf-8")
            print(f"{voice.name}: {len(spoken.audio) / SAMPLE_RATE:.1f} s")


if __name__ == "__main__":
    main()
