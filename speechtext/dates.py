"""Rules for dates, years, clock times, time zones and durations."""

from __future__ import annotations

import re

from speechtext.rules import (
    ENDS,
    ENGLISH,
    MONEY,
    SENTENCE,
    SIDES,
    STARTS,
    TABLES,
    YEAR,
    Rule,
    cardinal,
    ends_a_sentence,
    ordinal,
    rule,
    year,
)

_MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905
_MONTH = "|".join(_MONTHS)
_SHORT = r"(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)"
_CLOCK = r"(?:1[0-2]|0?[1-9])(?:[:.][0-5]\d)?"
_DAY = r"(?:3[01]|[12]\d|0?[1-9])"
_AFTER_A_YEAR = (
    r"(?=[,;:.!?)\"”’]|$|'s\b| (?:the|a|an|he|she|it|they|we|you|i|by|to|and|or|was|were|is|has|had|when|as|that|which|"
    r"with|at|in|on|for|from|his|her|their|its|our|my|until|but|because|after|before|there|this|these|did|"
    r"election|season|film|movie|novel|album|version|model|edition|report|census|crisis|war|budget|olympics|world)\b)"
)

_COUNTED = frozenset(TABLES["counted_nouns"])
"""Singular nouns after a number that is not a year, as in "a 1500 word essay"."""
_MEASURED = "|".join(sorted({f"{noun}s?" for noun in _COUNTED if noun.isalpha()}))
_EVENTS = frozenset(TABLES["events"])  # nouns after a year that end like a plural
_DAYS = {"Mon": "Monday", "Tue": "Tuesday", "Tues": "Tuesday", "Wed": "Wednesday", "Thu": "Thursday",
         "Thur": "Thursday", "Thurs": "Thursday", "Fri": "Friday", "Sat": "Saturday", "Sun": "Sunday"}  # fmt: skip
_SHORT_DAYS = "|".join(_DAYS)
_DAYS |= {day: day for day in _DAYS.values()}
_DAY_NAMES = "|".join(_DAYS)


def _month_name(number: str) -> str:
    return _MONTHS[int(number) - 1]


def _month(name: str) -> str:
    return next(month for month in _MONTHS if month.startswith(name[:3]))


def _day(day: int, month: int, in_year: str, default: str) -> str:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return default
    return f"{_MONTHS[month - 1]} {ENGLISH.ordinal(day)}, {year(in_year)}"


def _slashed(match: re.Match[str]) -> str:
    """Month first, as in American English, if that is possible; two digits mean the years 1969 to 2068, as in POSIX."""
    first, second, in_year = int(match[1]), int(match[2]), match[3]
    day, month = (first, second) if first > 12 else (second, first)
    century = "" if len(in_year) == 4 else "19" if in_year >= "69" else "20"
    return _day(day, month, f"{century}{in_year}", match[0])


def _year_first(match: re.Match[str]) -> str:
    """A date that begins with the year."""
    return _day(int(match[3]), int(match[2]), match[1], match[0])


def _hours(match: re.Match[str]) -> str:
    """'5 to 7pm': AM or PM is read once if it is the same."""
    is_same = match[2] and match[2].lower() == match[4].lower()
    return f"{match[1]}{'' if is_same or not match[2] else f' {match[2].upper()}M'} to {match[3]} {match[4]}.m"


def _of_the_clock(match: re.Match[str]) -> str:
    """'oh six hundred hours', 'twenty-three thirty hours'."""
    hour, minute = int(match[2]), int(match[3])
    hours = f"{'oh ' if hour < 10 else ''}{ENGLISH.cardinal(hour)}"
    minutes = "hundred" if not minute else f"{'oh ' if minute < 10 else ''}{ENGLISH.cardinal(minute)}"
    return f"{match[1] or ''}{hours} {minutes} hours"


def _in_era(match: re.Match[str]) -> str:
    """'ten sixty-six', 'seven fifty-three', 'five hundred'."""
    high, low = divmod(int(match[1]), 100)
    words = year(match[1]) if high > 9 else ENGLISH.cardinal(high * 100 + low)
    if 0 < high < 10 and low:
        words = f"{ENGLISH.cardinal(high)} {'oh ' if low < 10 else ''}{ENGLISH.cardinal(low)}"
    return f"{words} {match[2].replace('.', '')}" + ("." if match[2].endswith(".") and ends_a_sentence(match) else "")


def _seasons(match: re.Match[str]) -> str:
    """Two consecutive years: 'nineteen ninety-nine to two thousand', 'twenty twenty-three to twenty-four'."""
    first, second = match[1], match[2]
    if len(second) == 2 and (int(first[2:]) + 1) % 100 != int(second):
        return match[0]
    return f"{year(first)} to {year(second)}"


def _days_of_a_month(match: re.Match[str]) -> str:
    """'May fifth to seventh'."""
    first, last = int(match[2]), int(match[3])
    return f"{match[1]} {ENGLISH.ordinal(first)} to {ENGLISH.ordinal(last)}" if first < last else match[0]


def _month_of_a_year(match: re.Match[str]) -> str:
    """'2024-06' as 'June twenty twenty-four'; '2004-05' is a range of years."""
    is_range = int(match[1][2:]) < int(match[2])
    return match[0] if is_range else f"{_MONTHS[int(match[2]) - 1]} {year(match[1])}"


def _year_of_thing(match: re.Match[str]) -> str:
    """'the nineteen oh six earthquake', but not of a count or a measure: 'the 1900 block', 'a 1500 word essay'."""
    noun = match[3].lower()
    is_counted = noun in _COUNTED or (noun.endswith(("s", "ing", "ed", "est")) and noun not in _EVENTS)
    return match[0] if is_counted else f"{match[1]} {year(match[2])} {match[3]}"


def _british(match: re.Match[str]) -> str:
    """'the ninth of August twenty sixteen'."""
    words = f"{match[1] or 'the '}{ENGLISH.ordinal(int(match[2]))} of {match[3]}"
    return words + (f" {year(match[4])}" if match[4] else "")


def _half_of_the_day(match: re.Match[str]) -> str:
    """' PM' for 'p.m.', with a full stop if the sentence ends there."""
    return f" {match[1].upper()}M{'.' if match[2] and ends_a_sentence(match) else ''}"


def _days_before_their_month(match: re.Match[str]) -> str:
    """'the third to the fifth of March twenty twenty'."""
    first, last = int(match[2]), int(match[3])
    if first >= last:
        return match[0]
    days = f"{match[1] or 'the '}{ENGLISH.ordinal(first)} to the {ENGLISH.ordinal(last)} of {match[4]}"
    return days + (f" {year(match[5])}" if match[5] else "")


_AT = r"(?:[Aa]t|[Bb]y|[Uu]ntil|[Ff]rom|[Tt]o|[Ss]ince|[Bb]efore|[Aa]fter|[Aa]round)"
_LASTING = (
    r"(?:wait(?:s|ed|ing)?|last(?:s|ed|ing)?|takes?|took|taking|paus(?:es?|ed|ing)|held|ran|runs?|for|after|within|every|"
    r"than|only|about|another)"
)
"""Words before an amount of time, not before a decade."""
_SPANS = r"(?:pause|delay|timer|timeout|clip|break|gap|wait|limit|silence|countdown|interval)"
SHORT_MONTHS: tuple[Rule, ...] = (
    rule(rf"\b({_SHORT_DAYS})(?:\.(?=,| [a-z])"
        rf"|\.?(?=,? (?:(?:{_MONTH}|{_SHORT})\b|\d{{1,2}}(?:/\d|(?:st|nd|rd|th)\b| (?:{_MONTH}|{_SHORT})\b))))", r"\1",
        _DAYS, needs="Mon|Tue|Wed|Thu|Fri|Sat|Sun"),
    rule(rf"\b({_MONTH}|{_SHORT})\.?[-–]({_MONTH}|{_SHORT})\b\.?", r"\1 to \2", _month, _month, needs="-|–"),
    rule(rf"\b({_DAY_NAMES})\.?[-–]({_DAY_NAMES})\b\.?", r"\1 to \2", _DAYS, _DAYS, needs="-|–"),
    rule(rf"\b({_SHORT})(?:\. ?| )(?=(?:{_DAY}(?:st|nd|rd|th)?|{YEAR})\b)", r"\1 ", _month),
    rule(rf"(?<=\d )({_SHORT})\b\.?|(?<=(?:st|nd|rd|th) )({_SHORT})\b\.?", r"\1\2", _month, _month),
)  # fmt: skip
DATES: tuple[Rule, ...] = (
    # A leading zero, or a word before it, tells a time of day from an amount of hours.
    rule(rf"(?:(?<![\w.,:/-])(?=0)|(\b{_AT} ))([01]\d|2[0-3])([0-5]\d) ?(?:h|hrs|hours)\b(?! of\b)", _of_the_clock,
        needs="0000h|0000 h"),
    rule(rf"\b({_LASTING} )(\d{{1,3}})s\b", r"\1\2 seconds", needs="0s"),
    rule(rf"(?<![\w.,])([Aa]n? )(\d{{1,3}})s (?={_SPANS}s?\b)", r"\1\2-second ", None, cardinal, needs="0s"),
    rule(r"(?<![\w.,])(1\d|[1-9])s\b(?! of\b)", r"\1 seconds", needs="0s"),
    rule(rf"{STARTS}([Tt]he )?({_DAY})[-–]({_DAY}) ({_MONTH})(?:,? ({YEAR})\b)?(?![\w-])", _days_before_their_month,
        needs="0-0|0–0"),
    rule(r"(?<![\w.:])(\d{1,2}:[0-5]\d) ?h(?:rs?)?\b", r"\1", needs="00h|00 h"),
    rule(r"\b((?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day,? )(1[0-2]|0?[1-9])/(3[01]|[12]\d|0?[1-9])(?![\w/]|\.\d)",
        r"\1\2 \3", None, _month_name, ordinal, needs="0/0"),
    rule(rf"\bFY ?['’]?({YEAR}|\d\d)\b(?![-/.,]\d)", r"fiscal year \1", year, needs="FY"),
    rule(r"(?<![\w.,/-])(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?:(:\d\d)(?:[.,]\d{1,9})?)?"
        r"(?:Z|([+-]\d\d):?(\d\d))?(?![\w:])", r"\1 at \2\3\4\5", None, None,
        lambda seconds: seconds.replace(":00", ""), lambda hours: f" UTC{hours}:", needs="00-00"),
    rule(r"\b(GMT|UTC) ?([+−–-]) ?(\d{1,2})(?::?([0-5]\d))?(?![\w:]|\.\d)", r"\1 \2\3\4", None, SIDES, cardinal,
        lambda minutes: "" if minutes == "00" else f" {cardinal(minutes)}", needs="GMT|UTC"),
    rule(rf"\b((?:{_MONTH}) {_DAY}) ?[-–] ?(?=(?:{_MONTH}) {_DAY}\b)", r"\1 to ", needs="0-|0–|0 -|0 –"),
    rule(rf"\b({_MONTH}) ({_DAY}) ?[-–] ?({_DAY})(?![\w:/-]|\.\d)", _days_of_a_month, needs="0-|0–|0 -|0 –"),
    rule(rf"{STARTS}([Tt]he )?({_DAY})(?:st|nd|rd|th)? (?:of )?({_MONTH})(?:,? ({YEAR})\b)?(?![\w-])", _british),
    rule(rf"\b({_MONTH}),? ({YEAR}){ENDS}", r"\1 \2", None, year),
    rule(rf"{STARTS}(\d{{1,2}})/(\d{{1,2}})/({YEAR}|\d\d){ENDS}", _slashed, needs="0/0"),
    rule(r"(?:(?<=\b[Oo]n )|(?<=\b[Bb]y )|(?<=due ))(1[0-2]|0?[1-9])/(1[3-9]|2\d|3[01]|11?|0[1-9])(?![\w/]|\.\d)",
        r"\1 \2", _month_name, ordinal, needs="0/0"),
    rule(rf"{STARTS}(\d{{1,2}})-(\d{{1,2}})-({YEAR}){ENDS}", _slashed, needs="0-0"),
    rule(rf"{STARTS}({YEAR})/(\d{{1,2}})/(\d{{1,2}}){ENDS}", _year_first, needs="0/0"),
    rule(rf"(?<![Vv]ersion |[Rr]elease ){STARTS}({YEAR})\.(0\d|1[0-2])\.([0-3]\d){ENDS}", _year_first, needs="0.0"),
    rule(rf"{STARTS}(0?[1-9]|1[0-2])/(20\d\d|19\d\d){ENDS}", r"\1 \2", _month_name, year, needs="0/0000"),
    rule(rf"{STARTS}(20[1-9]\d|19\d\d)-(0[1-9]){ENDS}", _month_of_a_year, needs="0000-00"),
    rule(rf"{STARTS}({YEAR})/({YEAR}|\d\d){ENDS}", _seasons, needs="0/0"),
    rule(rf"{STARTS}(\d{{1,2}})\.(\d{{1,2}})\.({YEAR}){ENDS}",
        lambda match: _day(int(match[1]), int(match[2]), match[3], match[0]), needs="0.0"),
    rule(r"(?<![\w.:])(\d{1,2})\.(\d\d)(?= ?[AaPp]\.?[Mm]\b)", r"\1:\2", needs="0.00"),
    # "m" after hours or before seconds means minutes, not meters; "s" after them or a decimal means seconds.
    rule(r"(\d ?(?:h|hrs?)) ?(\d{1,2}) ?m(?:in)?\b", r"\1 \2 min", needs="0h|0 h"),
    rule(r"(?<![\w.,])([1-5]?\d) ?m(?:in)? ?(\d{1,2}) ?s\b", r"\1 min \2 sec", needs="0m|0 m"),
    rule(r"(\d\.\d{1,9})s\b", r"\1 seconds", needs="0s"),
    rule(r"(?<![\w.:])(\d{1,2})h([0-5]\d)\b", r"\1:\2", needs="0h0"),
    rule(rf"(?<![\w.,:/-])({_CLOCK})(?: ?([AaPp])\.?[Mm]\b\.?)? ?[-–—] ?({_CLOCK}) ?([AaPp](?=\.?[Mm]\b))\.?[Mm]\b",
        _hours, needs="-|–|—"),
    rule(r"(?<![\w.,:/-])(\d{1,2}:[0-5]\d) ?[-–—] ?(?=\d{1,2}(?::[0-5]\d(?![\w:])|(?![\w:,.]?\d)))", r"\1 to ",
        needs="-|–|—"),
    rule(r"(?<=\d) ?([AaPp])(?:[Mm]\b|\.[Mm]\b(\.?))", _half_of_the_day, needs="0a|0p|0A|0P|0 a|0 p|0 A|0 P"),
    rule(r"(?<![\w.:])(\d{1,2}):([0-5]\d):([0-5]\d)(?![\w:])", r"\1 \2 \3", cardinal, cardinal, cardinal,
        needs="0:00:0"),
)  # fmt: skip
YEARS: tuple[Rule, ...] = (
    rule(rf"((?:\bet al\.?|\b[A-Z][\w’'-]{{1,30}})(?:, | \())({YEAR})(?=[a-z]?[;)])", r"\1\2", None, year,
        needs="0000"),
    rule(r"(?<![\w'’])['’]0(\d)(?!\w)", r"oh \1", cardinal, needs="'0|’0"),
    rule(r"\b(\d{1,2}(?:st|nd|rd|th)|[a-z]{3,12}th|first|second|third) [cC]\.(?= ?(?:A\.?D|B\.?C|[;,)]))",
        r"\1 century", needs=" c.| C."),
    rule(rf"\b((?:[QH] ?|[Qq]uarter )[1-4]|[Qq] (?:one|two|three|four)|H (?:one|two)),? (?:of )?({YEAR}){ENDS}",
        r"\1 \2", None, year, needs="0000"),
    rule(r"(?<![\w.,:/-])(\d{1,4}) (B\.?C\.?E?\.?|C\.?E\b\.?|A\.?D\b\.?)(?![\w/&])", _in_era, needs="0 B|0 C|0 A"),
    rule(r"(?<![\w.,])(1[1-9]|20)(\d0)['’]?s\b", r"\1\2s", needs="00's|00’s|00s"),
    rule(rf"(?<![\w.,{MONEY}-])({YEAR})(?=['’]s\b)", r"\1", year, needs="0'|0’"),
    rule(rf"(?i)((?:\b(?:born|died|founded|established|copyright|circa|ca\.|c\.|dated)|©)"
        rf" ?(?:in )?)(10[1-9]\d|{YEAR}){ENDS}(?! (?:{_MEASURED})\b)", r"\1\2", None, year, needs="0000"),
    rule(r"(?i)\b(in|of|by|since|until|till|before|after|year) (10[1-9]\d)"
        r"(?=[,.;:!?)]|$| (?:the|and|by|to|he|she|it|they|when)\b)", r"\1 \2", None, year, needs="0000"),
    rule(rf"(?i)\b(the|an?|this|that|his|her|its|their|our|my|\w{{2,20}}['’]s) ({YEAR}) ([A-Za-z]\w{{0,30}})(?![\w'’])",
        _year_of_thing, needs="0000"),
    rule(r"(?i)\b(in|since|until|till|by|before|after|from|of|during|circa|between|year|spring|summer|autumn|fall|winter|"
        rf"and|to|the|early|late|mid|class of) ({YEAR}){ENDS}{_AFTER_A_YEAR}", r"\1 \2", None, year, needs="0000"),
    rule(rf"(?:(?<=\()|^|(?<={SENTENCE}))({YEAR})(?=\)|[,:] |\. |\.?$| (?:was|is|saw|brought|will|marked|has)\b)",
        r"\1", year, needs="0000"),
    rule(rf"(?i)\b(in) ({YEAR}){ENDS}", r"\1 \2", None, year, needs="0000"),
    rule(rf"(?i)\b((?:it|this) (?:is|was)|it['’]s|b\.|d\.|c\.|est\.) ({YEAR})(?=[,;:.!?)]|$)", r"\1 \2", None, year,
        needs="0000"),
    rule(rf"(?<![\w.,{MONEY}-])['’]?([2-9]0)['’]?s\b", r"\1", lambda decade: ENGLISH.decade(int(decade)),
        needs="0s|0's|0’s"),
)  # fmt: skip
