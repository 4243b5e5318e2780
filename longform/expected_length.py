"""Estimates the spoken duration of a text from its length."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

CHARACTERS_A_SECOND = 16.0
"""Rate of languages with letters, at normal speed; the page uses the same estimate."""
DENSE_CHARACTERS_A_SECOND = 4.5  # rate of Chinese and Japanese
MAX_WORD = 15  # average characters per word above which a text has no spaces between words
EDGES = 0.3
"""Seconds that a text takes in addition to its letters: a single word is spoken slowly, and its last sound fades."""
LETTER = 1 / 15
"""Seconds of speech without silence for a letter of a script with vowels; the bundled voices take 1 / 11 to 1 / 21."""
SECONDS_A_LETTER = (
    *((0x0000, LETTER), (0x0590, 0.1), (0x1000, LETTER), (0x1100, 0.07), (0x1200, LETTER)),
    *((0x3040, 0.14), (0x3100, LETTER), (0x3130, 0.07), (0x3400, 0.22), (0xA000, LETTER)),
    *((0xAC00, 0.2), (0xD7B0, LETTER), (0xF900, 0.22), (0xFB00, LETTER), (0x20000, 0.22)),
)
"""Seconds per character from a code point on: a letter takes longer in scripts without vowel letters, a character that
is a syllable even longer."""
SPELLED = 0.3  # seconds for a letter that is read by its name
FIGURE = (0.1, 0.4)  # seconds for a figure, from "2000" in a short language to "97" in a long one
LONGEST_CAPITALS = 5  # maximum letters of a word in capitals that may be spelled out
SLACK = (0.1, 0.3)
"""Seconds by which speech may be shorter or longer than SHARES of the expected length."""
SHARES = (0.55, 2.0)
"""Multiples of the expected length between which speech is plausible. Measured with benchmarks/proof.py."""


def expected_seconds(characters: int, words: int, speed: float = 1.0) -> float:
    """Seconds of speech without pauses. ``words``: number of pieces between spaces."""
    is_dense = characters > MAX_WORD * words
    return characters / (DENSE_CHARACTERS_A_SECOND if is_dense else CHARACTERS_A_SECOND) / speed


def plausible_seconds(words: Iterable[str]) -> tuple[float, float]:
    """The shortest and the longest plausible speech of these words, in seconds without silence, at normal speed."""
    shortest, longest = 0.0, EDGES
    for word in words:
        minimum, maximum = _seconds_of(word)
        shortest, longest = shortest + minimum, longest + maximum
    return shortest * SHARES[0] - SLACK[0], longest * SHARES[1] + SLACK[1]


def _seconds_of(word: str) -> tuple[float, float]:
    """Seconds of a word read as a word, and read letter by letter and figure by figure."""
    letters = [letter for letter in word if letter.isalnum()]
    is_spelled = len(letters) == 1 or (word.isupper() and len(letters) <= LONGEST_CAPITALS)
    minimum = maximum = 0.0
    for letter in letters:
        seconds = _STEPS[bisect_right(_STARTS, ord(letter)) - 1]
        minimum += FIGURE[0] if letter.isdigit() else seconds
        maximum += FIGURE[1] if letter.isdigit() else max(seconds, SPELLED) if is_spelled else seconds
    return minimum, maximum


_STARTS, _STEPS = zip(*SECONDS_A_LETTER, strict=True)
