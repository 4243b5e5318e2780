"""Written forms whose reading depends on what stands beside them, one after the other in the order they need."""

from __future__ import annotations

from studio.speech.reading.abbreviations import ABBREVIATIONS
from studio.speech.reading.addresses import ADDRESSES
from studio.speech.reading.amounts import AMOUNTS, SIGNS
from studio.speech.reading.dates import DATES, SHORT_MONTHS, YEARS
from studio.speech.reading.figures import CALLED, NAMED
from studio.speech.reading.rules import SENTENCE, Rule, apply_rules, rule

_BEGINNINGS: tuple[Rule, ...] = (
    # Not after an initial: the stop of an abbreviation that is not known ends no sentence.
    rule(
        r"(?:^|(?<=[^\W\d_]{2}[.!?] )|(?<=[\d)\"”’%][.!?] )|(?<=[.!?][\"'”’)] ))(?=[\"'“‘]?[^\w\s\"'“‘(]{0,2}\d)",
        SENTENCE,
    ),
)
_RULES = (
    *ADDRESSES, *SIGNS, *SHORT_MONTHS, *ABBREVIATIONS, *_BEGINNINGS, *DATES, *CALLED, *NAMED, *AMOUNTS, *YEARS
)  # fmt: skip


def in_plain_forms(text: str) -> str:
    """The text with these forms in words, or written in the one way that leaves no doubt how they are read.

    SENTENCE stands before each sentence that begins with figures.
    """
    return apply_rules(_RULES, text)
