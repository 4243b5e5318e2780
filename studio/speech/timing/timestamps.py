"""When the words of a text are heard: those that were read, found by the engine, at the places of those written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from anyio import to_thread

from engine import SpeechEngine
from studio.errors import NoTimestamps
from studio.library.takes.take import SpokenPart, Timed
from studio.speech.dialogue import read_turns
from studio.speech.timing.words import as_written, sentences, words_in

Unit = Literal["word", "sentence"]


async def word_times(
    engine: SpeechEngine, text: str, is_dialogue: bool, parts: Sequence[SpokenPart], speed: float
) -> list[Timed]:
    """The words of a text as it was typed, in seconds of the sound that was delivered at this speed.

    Those that were not said any more are left out. Raises NoTimestamps, CannotAlign, EngineStopped.
    """
    if any(not part.text or part.end is None for part in parts):
        raise NoTimestamps("it was spoken by a version of the studio that did not keep its words' frames")
    read: list[Timed] = []
    for part in parts:
        read += _said(part, await engine.align(part.text, part.codes), speed)
    written = await to_thread.run_sync(without_names, text, is_dialogue)
    return await to_thread.run_sync(as_written, written, read, engine.info.card.tags)


def in_units(unit: Unit, text: str, is_dialogue: bool, words: list[Timed]) -> list[Timed]:
    """The words themselves, or the sentences that they make. Blocking: milliseconds."""
    return words if unit == "word" else sentences(without_names(text, is_dialogue), words)


def without_names(text: str, is_dialogue: bool) -> str:
    """What is said of a text: in a dialogue nobody says the speakers' names. Blocking: milliseconds."""
    return "\n".join(turn.written for turn in read_turns(text)) if is_dialogue else text


def as_json(times: Sequence[Timed]) -> list[dict[str, object]]:
    """To the millisecond."""
    return [{"text": each.text, "start": round(each.start, 3), "end": round(each.end, 3)} for each in times]


def _said(part: SpokenPart, times: np.ndarray, speed: float) -> list[Timed]:
    """The words of a part; of one that was cut, those that were begun."""
    assert part.end is not None, "it was heard"
    begins, over = part.end - times[-1] / speed, times[-1]
    spans = [(start, end) for start, end in words_in(part.text) if part.is_whole or times[start] < over]
    return [
        Timed(part.text[start:end], float(begins + times[start] / speed), float(begins + times[end] / speed))
        for start, end in spans
    ]
