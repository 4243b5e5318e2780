"""Rules of text normalisation: a pattern and how it is read; patterns, words and English numbers that they share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from normt2s.langs.en import English

TABLES: dict[str, Any] = json.loads(Path(__file__).with_name("english.json").read_text("utf-8"))
"""Words of all rules here, by the names under which these modules read them."""
DOLLARS: Mapping[str, str] = TABLES["dollars"]  # nationality by the letters before the dollar sign
DOLLAR_SIGNS = {before: chr(0xE011 + number) for number, before in enumerate(DOLLARS)}
"""Private characters in place of these, because the library knows only single characters before an amount."""
CURRENCIES: Mapping[str, Sequence[str]] = TABLES["currencies"]
"""Currencies that the library lacks: singular and plural, then those of the smaller coin."""
PLURALS = {sign: names[1] for sign, names in CURRENCIES.items()} | TABLES["plurals"]
"""All currencies except those in DOLLARS."""


class SpokenEnglish(English):
    """English with "and" after hundreds and with AM and PM; years only where one of our rules found one."""

    year_prepositions = ()

    def cardinal(self, n: int, gender: str | None = None) -> str:
        """'one thousand two hundred and five', 'minus three'."""
        if n < 0:
            return f"{self.minus} {self.cardinal(-n)}"
        if n < 100:
            return super().cardinal(n)
        if n < 1000:
            rest = f" and {self.cardinal(n % 100)}" if n % 100 else ""
            return f"{super().cardinal(n // 100)} hundred{rest}"
        size = 1000 ** ((len(str(n)) - 1) // 3)
        head = f"{self.cardinal(n // size)} {super().cardinal(size).partition(' ')[2]}"
        rest = n % size
        return head + (f"{' and ' if rest < 100 else ' '}{self.cardinal(rest)}" if rest else "")

    def year(self, n: int) -> str:
        """'nineteen oh five', 'two thousand and nine', 'twenty twenty-four'."""
        return super().year(n) if n % 1000 >= 10 else self.cardinal(n)

    def time(self, hour: int, minute: int, suffix: str | None) -> str:
        """'seven forty', "nine o'clock", 'eight twenty PM'; midnight is twelve."""
        if hour == 0 and minute and not suffix:
            return f"twelve {super().time(1, minute, None).partition(' ')[2]}"
        words = super().time(hour, minute, suffix)
        return f"{words[: -len(' a m')]} {suffix[0].upper()}M" if suffix else words


ENGLISH = SpokenEnglish()
YEAR = r"(?:1[1-9]\d\d|20\d\d)"
MONEY = "".join(sign for sign in PLURALS if len(sign) == 1) + "".join(DOLLAR_SIGNS.values())
STARTS = rf"(?<![\w.,:/{MONEY}-])"  # before a number that is not part of another form
SIDES = {"+": "plus ", "-": "minus ", "–": "minus ", "−": "minus "}
ENDS = r"(?![\w-]|[.,:/]\d)"  # after a number
SENTENCE = "\ue010"  # marks a sentence that begins with digits, so that their words get a capital
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
