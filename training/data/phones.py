"""Phone labels of the corpus, from the durations that the teacher gave its tokens."""

from __future__ import annotations

import numpy as np

TOKENS = {
    ";": 1, ":": 2, ",": 3, ".": 4, "!": 5, "?": 6, "—": 9, "…": 10, '"': 11, "(": 12, ")": 13, "“": 14, "”": 15,
    " ": 16, "\u0303": 17, "ʣ": 18, "ʥ": 19, "ʦ": 20, "ʨ": 21, "ᵝ": 22, "\uab67": 23,
    "A": 24, "I": 25, "O": 31, "Q": 33,
    "S": 35, "T": 36, "W": 39, "Y": 41, "ᵊ": 42, "a": 43, "b": 44, "c": 45, "d": 46, "e": 47, "f": 48, "h": 50, "i": 51,
    "j": 52, "k": 53, "l": 54, "m": 55, "n": 56, "o": 57, "p": 58, "q": 59, "r": 60, "s": 61, "t": 62, "u": 63, "v": 64,
    "w": 65, "x": 66, "y": 67, "z": 68, "ɑ": 69, "ɐ": 70, "ɒ": 71, "æ": 72, "β": 75, "ɔ": 76, "ɕ": 77, "ç": 78, "ɖ": 80,
    "ð": 81, "ʤ": 82, "ə": 83, "ɚ": 85, "ɛ": 86, "ɜ": 87, "ɟ": 90, "ɡ": 92, "ɥ": 99, "ɨ": 101, "ɪ": 102, "ʝ": 103,
    "ɯ": 110, "ɰ": 111, "ŋ": 112, "ɳ": 113, "ɲ": 114, "ɴ": 115, "ø": 116, "ɸ": 118, "θ": 119, "œ": 120, "ɹ": 123,
    "ɾ": 125, "ɻ": 126, "ʁ": 128, "ɽ": 129, "ʂ": 130, "ʃ": 131, "ʈ": 132, "ʧ": 133, "ʊ": 135, "ʋ": 136, "ʌ": 138,
    "ɣ": 139, "ɤ": 140, "χ": 142, "ʎ": 143, "ʒ": 147, "ʔ": 148, "ˈ": 156, "ˌ": 157, "ː": 158, "ʰ": 162, "ʲ": 164,
    "↓": 169, "→": 171, "↗": 172, "↘": 173, "ᵻ": 177,
}  # fmt: skip
"""Kokoro's vocabulary; 0 pads both ends of a sentence."""

PHONES = ("", *"AIOQSTWYabdefhijklmnopstuvwzæðŋɐɑɒɔəɚɛɜɡɪɹɾʃʊʌʒʔʤʧθᵊᵻ")
"""The symbols of English phonemes, classes of the phone labels; the first is silence."""
UNKNOWN = -1
SILENCES = ';:,.!?—…"()“”'
MARKS = {"ˈ": 1, "ˌ": 1, "ː": -1, " ": 1}
"""Tokens that have a duration but no sound of their own, and the neighbour whose sound is heard instead."""

LENGTH_SAMPLES = 600
"""Samples at 24 kHz per unit of a token's duration."""


def _classes() -> np.ndarray:
    table = np.full(256, UNKNOWN, np.int8)
    table[0] = 0
    for sign, token in TOKENS.items():
        if sign in PHONES[1:]:
            table[token] = PHONES.index(sign)
        elif sign in SILENCES:
            table[token] = 0
    return table


_CLASSES = _classes()
_NEIGHBOURS = {TOKENS[sign]: step for sign, step in MARKS.items()}


def labels(tokens: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """A phone (int8) for each unit of 600 samples, from tokens (n,) and their lengths (n,) in units."""
    classes = _CLASSES[tokens]
    for index in (*range(len(tokens) - 2, 0, -1), *range(1, len(tokens) - 1)):
        step = _NEIGHBOURS.get(int(tokens[index]))
        if step is not None:
            classes[index] = classes[index + step]
    return np.repeat(classes, lengths)
