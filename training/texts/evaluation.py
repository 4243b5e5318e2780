"""The sentences for evaluating the finished model: written for it, none of them in training."""

from __future__ import annotations

from dataclasses import dataclass

from training.texts.templates import lines


@dataclass(frozen=True, slots=True)
class Judged:
    """The text as typed, the expected transcript (figures as words), and its kind: number, prose, dialogue and so
    on."""

    kind: str
    text: str
    words: str


def evaluation_sentences() -> list[Judged]:
    """All sentences of data/evaluation.txt, in order."""
    rows = [line.split(" | ") for line in lines("evaluation.txt")]
    return [Judged(kind, text, *(words or [text])) for kind, text, *words in rows]
