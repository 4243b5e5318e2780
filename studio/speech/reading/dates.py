"""Days, years, clock times, and how long something takes."""

from __future__ import annotations

import re

from studio.speech.reading.rules import ENDS, ENGLISH, MONEY, SENTENCE, STARTS, YEAR, Rule, ends_a_sentence, rule, year

_MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905
_MONTH = "|".join(_MONTHS)
_SHORT = r"(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)"
_DAY = r"(?:3[01]|[12]\d|0?[1-9])"
_AFTER_A_YEAR = (
    r"(?=[,;:.!?)\"”’]|$|'s\b| (?:the|a|an|he|she|it|they|we|you|i|by|to|and|or|was|were|is|has|had|when|as|that|which|"
    r"with|at|in|on|for|from|his|her|their|its|our|my|until|but|because|after|before|there|this|these|did|"
    r"election|season|film|movie|novel|album|version|model|edition|report|census|crisis|war|budget|olympics|world)\b)"
)


def _month(written: str) -> str:
    return next(month for month in _MONTHS if month.startswith(written[:3]))


def _day(day: int, month: int, in_year: str, otherwise: str) -> str:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return otherwise
    return f"{_MONTHS[month - 1]} {ENGLISH.ordinal(day)}, {year(in_year)}"


def _slashed(found: re.Match[str]) -> str:
    """In American order, where that can be meant."""
    first, second = int(found[1]), int(found[2])
    day, month = (first, second) if first > 12 else (second, first)
    return _day(day, month, _whole_year(found[3]), found[0])


def _whole_year(written: str) -> str:
    """Of two figures, which century is meant as POSIX has it: from 1969 to 2068."""
    return written if len(written) == 4 else f"{19 if written >= '69' else 20}{written}"


def _british(found: re.Match[str]) -> str:
    """'the ninth of August twenty sixteen'."""
    words = f"{found[1] or 'the '}{ENGLISH.ordinal(int(found[2]))} of {found[3]}"
    return words + (f" {year(found[4])}" if found[4] else "")


def _half_of_the_day(found: re.Match[str]) -> str:
    """' PM' for 'p.m.', whose last stop ends the sentence as well where one ends there."""
    return f" {found[1].upper()}M{'.' if found[2] and ends_a_sentence(found) else ''}"


SHORT_MONTHS: tuple[Rule, ...] = (
    rule(
        rf"\b({_SHORT})(?:\. ?| )(?=(?:{_DAY}(?:st|nd|rd|th)?|{YEAR})\b)",
        lambda found: f"{_month(found[1])} ",
    ),
    rule(
        rf"(?<=\d )({_SHORT})\b\.?|(?<=(?:st|nd|rd|th) )({_SHORT})\b\.?",
        lambda found: _month(found[1] or found[2]),
    ),
)
DATES: tuple[Rule, ...] = (
    rule(rf"{STARTS}([Tt]he )?({_DAY})(?:st|nd|rd|th)? (?:of )?({_MONTH})(?:,? ({YEAR})\b)?(?![\w-])", _british),
    rule(rf"\b({_MONTH}),? ({YEAR}){ENDS}", lambda found: f"{found[1]} {year(found[2])}"),
    rule(rf"{STARTS}(\d{{1,2}})/(\d{{1,2}})/({YEAR}|\d\d){ENDS}", _slashed),
    rule(
        rf"{STARTS}(\d{{1,2}})\.(\d{{1,2}})\.({YEAR}){ENDS}",
        lambda found: _day(int(found[1]), int(found[2]), found[3], found[0]),
    ),
    rule(r"(?<![\w.:])(\d{1,2})\.(\d\d)(?= ?[AaPp]\.?[Mm]\b)", r"\1:\2"),
    # Minutes where they stand after hours or before seconds, no meters; and seconds after them or a decimal, no decade.
    rule(r"(\d ?(?:h|hrs?)) ?(\d{1,2}) ?m(?:in)?\b", r"\1 \2 min"),
    rule(r"(?<![\w.,])([1-5]?\d) ?m(?:in)? ?(\d{1,2}) ?s\b", r"\1 min \2 sec"),
    rule(r"(\d\.\d{1,9})s\b", r"\1 seconds"),
    rule(r"(?<![\w.:])(\d{1,2})h([0-5]\d)\b", r"\1:\2"),
    rule(r"(?<=\d) ?([AaPp])(?:[Mm]\b|\.[Mm]\b(\.?))", _half_of_the_day),
    rule(
        r"(?<![\w.:])(\d{1,2}):([0-5]\d):([0-5]\d)(?![\w:])",
        lambda found: " ".join(ENGLISH.cardinal(int(each)) for each in found.groups()),
    ),
)
YEARS: tuple[Rule, ...] = (
    rule(
        r"\b(in|since|until|till|by|before|after|from|of|during|circa|between|year|spring|summer|autumn|fall|winter|"
        rf"and|to|the|early|late|mid|class of) ({YEAR}){ENDS}{_AFTER_A_YEAR}",
        lambda found: f"{found[1]} {year(found[2])}",
        re.IGNORECASE,
    ),
    rule(
        rf"(?:(?<=\()|^|(?<={SENTENCE}))({YEAR})(?=\)|[,:] |\. |\.?$| (?:was|is|saw|brought|will|marked|has)\b)",
        lambda found: year(found[1]),
    ),
    rule(rf"\b(in) ({YEAR}){ENDS}", lambda found: f"{found[1]} {year(found[2])}", re.IGNORECASE),
    rule(
        rf"\b((?:it|this) (?:is|was)|it['’]s|b\.|d\.|c\.|est\.) ({YEAR})(?=[,;:.!?)]|$)",
        lambda found: f"{found[1]} {year(found[2])}",
        re.IGNORECASE,
    ),
    rule(rf"(?<![\w.,{MONEY}-])['’]?([2-9]0)s\b", lambda found: ENGLISH.decade(int(found[1]))),
)
