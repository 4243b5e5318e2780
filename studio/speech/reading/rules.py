"""Rules of text normalisation: a pattern and how it is read; patterns and number words that they share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from studio.speech.reading.english import DOLLAR_SIGNS, PLURALS, SpokenEnglish

ENGLISH = SpokenEnglish()
YEAR = r"(?:1[1-9]\d\d|20\d\d)"
MONEY = "".join(sign for sign in PLURALS if len(sign) == 1) + "".join(DOLLAR_SIGNS.values())
STARTS = rf"(?<![\w.,:/{MONEY}-])"
"""Before a number that is not part of another form."""
SIDES = {"+": "plus ", "-": "minus ", "–": "minus ", "−": "minus "}
ENDS = r"(?![\w-]|[.,:/]\d)"
"""After a number."""
SENTENCE = "\ue010"
"""Marks a sentence that begins with digits, so that their words get a capital."""
_ROMAN = re.compile(r"(?=.)M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_ROMAN_SIGNS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
BEGINNINGS = "He|She|It|They|We|I|You|The|A|An|In|On|At|But|And|Then|There|This|That|My|Our|His|Her|When|If|So|Please"
"""Words that are capitalised because they begin a sentence."""
_ALWAYS_CAPITALISED = re.compile(
    r" (?:[ECMPA][SD]?T|GMT|UTC|BST|CES?T|IST|JST|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|January|February|March|"
    r"April|June|July|August|September|October|November|December)\b"
)
"""Words after times and measures that are capitalised anywhere."""
MatchReader = Callable[[re.Match[str]], str]
GroupReader = Callable[[str], str | None] | Mapping[str, str] | None
_PLACE = re.compile(r"\\([\d.])")


class Rule(NamedTuple):
    """A pattern and how its matches are read."""

    pattern: re.Pattern[str]
    reading: MatchReader
    needs: tuple[str, ...]
    """The pattern is tried only if the text contains one of these strings, with every digit as 0; always if empty.

    Searching for strings is many times faster than for patterns."""


def rule(pattern: str, reading: MatchReader | str, *readers: GroupReader, needs: str = "") -> Rule:
    """A rule with a function or a template: \\1 is the first group, \\. the full stop of a sentence that ends here.

    ``readers`` convert the groups in order; a group without one stays as it is. If a reader returns None, the match is
    not changed. ``needs`` lists the strings of Rule.needs, separated by bars.
    """
    read = reading if callable(reading) else _template(reading, readers)
    return Rule(re.compile(pattern), read, tuple(filter(None, needs.split("|"))))


def _template(template: str, readers: Sequence[GroupReader]) -> MatchReader:
    def read(match: re.Match[str]) -> str:
        groups = [match[0], *match.groups("")]
        for number, reader in enumerate(readers, start=1):
            if reader is not None and groups[number]:
                words = reader(groups[number]) if callable(reader) else reader.get(groups[number])
                if words is None:
                    return match[0]
                groups[number] = words
        stop = "." if "\\." in template and ends_a_sentence(match) else ""
        return _PLACE.sub(lambda place: stop if place[1] == "." else groups[int(place[1])], template)

    return read


_ZEROS = str.maketrans("123456789", "000000000")


def apply_rules(rules: Iterable[Rule], text: str) -> str:
    """Apply the rules to the text, one after the other."""
    shape = text.translate(_ZEROS)
    for pattern, reading, needs in rules:
        if not needs or any(signs in shape for signs in needs):
            text, count = pattern.subn(reading, text)
            if count:
                shape = text.translate(_ZEROS)
    return text


def words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


def digits(figures: str) -> str:
    """'five three zero six': digit by digit, without other characters."""
    return ENGLISH.digits(re.sub(r"\D", "", figures))


def cardinal(figures: str) -> str:
    """'forty-two'."""
    return ENGLISH.cardinal(int(figures))


def ordinal(figures: str) -> str:
    """'forty-second'."""
    return ENGLISH.ordinal(int(figures))


def year(figures: str) -> str:
    """'nineteen oh five'; 'twenty-four' for two digits."""
    return cardinal(figures) if len(figures) == 2 else ENGLISH.year(int(figures))


def roman(figures: str) -> int | None:
    """The value of a Roman numeral in upper or lower case; None if it is not a valid one."""
    if not _ROMAN.fullmatch(figures.upper()):
        return None
    values = [_ROMAN_SIGNS[sign] for sign in figures.upper()]
    return sum(-low if low < high else low for low, high in zip(values, [*values[1:], 0], strict=True))


def ends_a_sentence(match: re.Match[str]) -> bool:
    """Whether an abbreviation that ends with a full stop also ends a sentence."""
    following = match.string[match.end() : match.end() + 2]
    if _ALWAYS_CAPITALISED.match(match.string, match.end()):
        return False
    return not following or (following[0] == " " and (following[1:].isupper() or following[1:] == SENTENCE))
