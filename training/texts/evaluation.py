"""The sentences that the finished model is judged by: written for it, none of them ever in training."""

from __future__ import annotations

from dataclasses import dataclass

from training.texts.templates import lines


@dataclass(frozen=True, slots=True)
class Judged:
    """What is typed, what should be heard (figures as words), and its kind: number, prose, dialogue and so on."""

    kind: str
    text: str
    words: str


def evaluation_sentences() -> list[Judged]:
    """All of data/evaluation.txt, in its order."""
    rows = [line.split(" | ") for line in lines("evaluation.txt")]
    return [Judged(kind, text, *(words or [text])) for kind, text, *words in rows]
