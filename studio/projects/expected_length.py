"""Estimates the spoken duration of a text from its length."""

from __future__ import annotations

CHARACTERS_A_SECOND = 16.0
"""Of languages with letters, at normal speed; the page's own estimate is the same."""
DENSE_CHARACTERS_A_SECOND = 4.5
"""Of Chinese and Japanese."""
MAX_WORD = 15
"""Characters a word, on average, above which a text has no blanks between words."""


def expected_seconds(characters: int, words: int, speed: float = 1.0) -> float:
    """Seconds of speech without pauses. ``words``: pieces between blanks."""
    is_dense = characters > MAX_WORD * words
    return characters / (DENSE_CHARACTERS_A_SECOND if is_dense else CHARACTERS_A_SECOND) / speed
