"""Every regular expression of the product takes linear time on hostile strings derived from it."""

from __future__ import annotations

import inspect
import re
import sys
import time
from collections import defaultdict, deque
from pathlib import Path
from typing import Any

import pytest

from manuscript.headings import MAX_HEADING
from tests.patterns import hostile_strings
from tests.patterns.hostile_strings import Hostile, Make
from tests.patterns.product_patterns import METHODS, Product, Use
from tests.records import Record, digest

RECORD = Record(Path(__file__).with_name("linear.json"))
"""The patterns that are linear, by the module that has them. Measuring them takes a minute and its result does not
change, so it is repeated only for modules with other patterns, and written here, to be committed with them."""

ANCHORED = {"match", "fullmatch"}
"""Methods that try one start only; one of the others stands for all of them."""
SLOWEST = "finditer", "fullmatch"
"""What they do takes as long with every other method, or longer."""
LARGE = 1000
SIZES = (16, 20, 24, 100)
"""The first are small enough for exponential growth to end."""
SUSPICIOUS = 8
"""Times the cost for four times the characters: linear is 4, quadratic 16."""
CERTAIN = {4: 14, 16: 64}
"""Times the characters, and times the cost for these: linear is 4 and 16, quadratic 16 and 256. The first decides only
what takes longer than ENDLESS, as noise does not; the second is far from noise, and takes long. The fewer characters
are measured as often as there are times more, beside the others, so that a busy machine slows down both."""
LEAST = 0.000025
"""Seconds for LARGE characters below which quadratic growth is harmless: 10 ms for 20,000, 1 s for 200,000."""
ENDLESS = 0.025
"""Seconds for fewer characters than LARGE: linear growth takes a tenth of it on a slow machine."""
TRIES = 3
MORE_TRIES = 9
"""Among these one falls between two interruptions of a busy machine."""
BOUNDED = {
    "_DECORATED": MAX_HEADING,
    "_WANTED": 255,  # names of files
}
"""Patterns that only meet short strings, by name, with the most characters of these."""
QUICK = 0.002
"""Seconds that these may take for one string."""


def _cost(pattern: re.Pattern[Any], method: str, text: str | bytes) -> float:
    started = time.thread_time()
    if method in ANCHORED:
        getattr(pattern, method)(text)
    else:
        deque(pattern.finditer(text), maxlen=0)
    return time.thread_time() - started


def _growth(pattern: re.Pattern[Any], method: str, make: Make) -> str:
    """A description of growth that is faster than linear; blank if it is not."""

    def cost(size: int) -> float:
        text = make(size)
        return _cost(pattern, method, text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text)

    for size in SIZES:
        small = cost(size)
        if small > ENDLESS and min(cost(size) for _ in range(TRIES)) > ENDLESS:
            return f"{size} characters: {1000 * small:.1f} ms"
    large = cost(LARGE)
    if large < LEAST or large < SUSPICIOUS * cost(LARGE // 4):
        return ""
    for times, certain in CERTAIN.items():
        least = ENDLESS if times < max(CERTAIN) else 0
        for _ in range(MORE_TRIES):
            large = max(sum(cost(LARGE) for _ in range(times)) / times, LEAST)
            if (larger := cost(times * LARGE)) < max(certain * large, least):
                break
        else:
            return f"{LARGE} characters: {1000 * large:.3f} ms; {times * LARGE}: {1000 * larger:.1f} ms"
    return ""


def _is_quick(pattern: re.Pattern[Any], bound: int) -> bool:
    texts = [make(bound) for make in Hostile(pattern)]
    return all(any(_cost(pattern, method, text) < QUICK for _ in range(TRIES)) for text in texts for method in SLOWEST)


def _slow(pattern: re.Pattern[Any], methods: set[str]) -> str:
    tried = (methods & {"fullmatch"}) | ({"finditer"} if methods - ANCHORED else methods)
    for make in Hostile(pattern):
        for method in sorted(tried):
            if growth := _growth(pattern, method, make):
                return f"{method} of {make(60)[:200]!r}, {growth}"
    return ""


def _digest(uses: list[Use]) -> str:
    """Of the patterns and of everything that decides how they are measured."""
    measures = (inspect.getsource(module) for module in (hostile_strings, sys.modules[__name__]))
    patterns = (repr((use.pattern.pattern, use.pattern.flags, sorted(use.methods), use.place)) for use in uses)
    return digest(repr(sys.version_info[:2]), *measures, *patterns)


def test_no_pattern_takes_more_than_linear_time() -> None:
    by_module, slow = defaultdict[str, list[Use]](list), list[str]()
    for use in Product().patterns():
        by_module[use.place.rpartition(".")[0]].append(use)
    for module, uses in by_module.items():
        if RECORD.has(module, _digest(uses)):
            continue
        before = len(slow)
        for use in uses:
            bound = BOUNDED.get(use.place.rpartition(".")[2])
            if bound is None and (found := _slow(use.pattern, use.methods)):
                slow.append(f"{use.place}: {found}\n    {use.pattern.pattern[:200]!r}")
            assert bound is None or _is_quick(use.pattern, bound), use.place
        if len(slow) == before:
            RECORD.add(**{module: _digest(uses)})
    assert not slow, "\n".join(slow)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?m)^[ \t]*(?:`{3,}|~{3,})[ \t]*[\w+-]*[ \t]*$",
        r"\s+$",
        r"(a|ab)*c",
        r"(?:\w+\s?)*!",
        r"<[^>]*>",
        r"x*y",
        r"(?s)\{.*\}",
        r"(?s)(.)\1*\d",
        rb"\s*<meta",
    ],
)
def test_patterns_that_are_not_linear_are_found(pattern: str | bytes) -> None:
    assert _slow(re.compile(pattern), set(METHODS))


@pytest.mark.parametrize("pattern", [r"\s++(?!x)", r"(?<!\s)\s+$", r"<[^<>]*>", r"(?<!b)(?:ab)*+c", r"[a-z]*\d?"])
def test_linear_patterns_are_not_suspected(pattern: str) -> None:
    assert not _slow(re.compile(pattern), set(METHODS))
