"""What the readers of written forms share: a rule, the ends of a number, the start of a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable

from studio.speech.reading.english import DOLLAR_SIGNS, SpokenEnglish

ENGLISH = SpokenEnglish()
YEAR = r"(?:1[1-9]\d\d|20\d\d)"
MONEY = "$€£¥" + "".join(DOLLAR_SIGNS.values())
STARTS = rf"(?<![\w.,:/{MONEY}-])"
"""Before a number: it is no part of another form."""
ENDS = r"(?![\w-]|[.,:/]\d)"
"""After a number."""
SENTENCE = "\ue010"
"""Stands before a sentence that begins with figures; what they are read as then begins with a capital."""
BEGINNINGS = "He|She|It|They|We|I|You|The|A|An|In|On|At|But|And|Then|There|This|That|My|Our|His|Her|When|If|So|Please"
"""Words that have a capital because a sentence begins with them."""

Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]


def rule(pattern: str, reading: Callable[[re.Match[str]], str] | str, flags: int = 0) -> Rule:
    """What is found of a pattern, and how it is read: by a function, or a template as of `re.sub`."""
    return re.compile(pattern, flags), reading if callable(reading) else lambda found: found.expand(reading)


def digits(figures: str) -> str:
    """'five three zero six': every digit by its name, other signs left out."""
    return ENGLISH.digits(re.sub(r"\D", "", figures))


def year(figures: str) -> str:
    """'nineteen oh five'."""
    return ENGLISH.year(int(figures))


def ends_a_sentence(found: re.Match[str]) -> bool:
    """Whether a form that closes with a full stop of its own stands at the end of a sentence."""
    following = found.string[found.end() : found.end() + 2]
    return not following or (following[0] == " " and (following[1:].isupper() or following[1:] == SENTENCE))
