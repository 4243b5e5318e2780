"""Checks that work costs at most three times as much for twice the input."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable

from studio.errors import REFUSALS

Work = Callable[[str], object]

TIMES = 3
"""Greatest cost ratio for twice the input: half more than twice allows for the machine's variations."""
LEAST = 0.002
"""Seconds below which nothing can be measured."""
LARGEST = 1 << 17
"""Characters; anything too fast to measure even then is fast enough."""
TRIES = 4
"""Quadratic growth fails each of them."""

PIECES = {
    "sentences": "This is one sentence, and it has some words. ",
    "lines": "A line of a text without a blank line anywhere,\n",
    "words without an end": "word ",
    "letters": "a",
    "letters of three bytes": "好",
    "marks without a letter": "\u0301",
    "marks out of order": "\u0301\u0323",
    "stops": ".",
    "stops and spaces": ". ",
    "exclamations": "!)",
    "blanks": " ",
    "blank lines": "\n ",
    "opened tags": "[",
    "tags": "[a tag] ",
    "control tags": "<|",
    "pauses": "[pause:1s]a ",
    "pauses alone": "[pause:1ms]\n",
    "opened pauses": "[pause:",
    "initials": "A. ",
    "names": "Anna: Hi. ",
}


def cost(work: Work, text: str) -> float:
    """CPU seconds of this thread."""
    gc.disable()
    begun = time.thread_time()
    try:
        with contextlib.suppress(*REFUSALS):  # a refusal must not cost more either
            work(text)
        return time.thread_time() - begun
    finally:
        gc.enable()


def check(work: Work, make: Callable[[int], str], size: int) -> None:
    """Makes the input larger until there is something to measure."""
    while (once := cost(work, make(size))) < LEAST and size < LARGEST:
        size *= 2
    measurements = []
    for length in (size, 2 * size):  # a jump, as when memory no longer fits a cache, affects only one of them
        for attempt in range(TRIES):
            if attempt or length != size:
                once = cost(work, make(length))
            twice = cost(work, make(2 * length))
            measurements.append(f"{length}: {1000 * once:.1f} ms, twice that {1000 * twice:.1f} ms")
            if twice <= TIMES * max(once, LEAST):
                return
    raise AssertionError(f"characters, {'; '.join(measurements)}")


def pieces(piece: str) -> Callable[[int], str]:
    return lambda size: "x" + piece * (size // len(piece))


def end_of(words: str) -> Callable[[int], str]:
    return lambda size: words[-size:]


def least(work: Callable[[], object], tries: int = TRIES) -> float:
    return min(cost(lambda _: work(), "") for _ in range(tries))
