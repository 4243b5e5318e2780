"""Figures that are no plain numbers: to call, to type in, on doors and on the net, from and to, parts and prices."""

from __future__ import annotations

import re

from studio.speech.reading.english import DOLLAR_SIGNS
from studio.speech.reading.rules import (
    BEGINNINGS,
    ENDS,
    ENGLISH,
    MONEY,
    SENTENCE,
    STARTS,
    YEAR,
    Rule,
    digits,
    rule,
    year,
)

_CODED = (
    r"(?:code|pin|passcode|password|combination|zip|zip code|postcode|extension|ext\.|area code|serial number|"
    r"(?:account|order|reference|confirmation|booking|tracking|case|ticket|invoice|card|registration|flight|train|"
    r"phone|telephone|model|licen[cs]e) number|flight|plate|registration)"
)
_PLACES = r"(?:room|suite|apartment|apt\.|flat|route|highway|interstate|bus|train|tram|hall|locker|channel|unit)"
_ROADS = r"(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Place|Court|Way|Square)"
_FORMULAS = frozenset("CO2 H2O O2 O3 N2 H2 CH4 NH3 SO2 NO2".split())  # noqa: SIM905
"""Which the library spells."""
_ISOTOPES = frozenset((
    "H-2", "H-3", "C-12", "C-13", "C-14", "N-13", "N-15", "O-15", "O-16", "O-17", "O-18", "P-31", "P-32", "P-33",
    "S-35", "K-40", "K-42", "Y-90", "I-123", "I-124", "I-125", "I-129", "I-131", "U-232", "U-233", "U-234", "U-235",
    "U-236", "U-238",
))  # fmt: skip
"""Which the library names; it would take every "F-16" for one."""
_PARTS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 32, 64, 100)
"""Into which things are divided."""
_SCALES = {"k": "thousand", "m": "million", "mn": "million", "b": "billion", "bn": "billion", "t": "trillion"}
_PROGRAMS = r"(?:[Vv]ersion|[Rr]elease|Python|Windows|Android|Ubuntu|iOS|macOS|Java|Linux)"


def _groups(figures: str) -> str:
    """A number to call: a short stop between its groups."""
    plus = "plus " if figures.startswith("+") else ""
    return plus + ", ".join(map(digits, re.findall(r"\d+", figures)))


def _book(found: re.Match[str]) -> str:
    """An ISBN, whose last sign may be an X for ten."""
    return f"{found[1]}{_groups(found[2])}{' X' if found[2][-1] in 'xX' else ''}"


def _code(found: re.Match[str]) -> str:
    letters = found[2].strip()
    return f"{found[1]}{letters} {_groups(found[3])}" if letters else found[1] + _groups(found[3])


def _door(figures: str) -> str:
    """'six fourteen', 'twelve oh five', 'three hundred', as rooms and houses are named; at most four figures."""
    high, low = divmod(int(figures), 100)
    if figures.startswith("0"):
        return digits(figures)
    if not high or (not high % 10 and not low):
        return ENGLISH.cardinal(int(figures))
    rest = "hundred" if not low else f"oh {ENGLISH.cardinal(low)}" if low < 10 else ENGLISH.cardinal(low)
    return f"{ENGLISH.cardinal(high)} {rest}"


def _lettered(found: re.Match[str]) -> str:
    """'C twenty-two', 'F sixteen', 'A three eighty', 'KL one two three four', 'MP three'."""
    letters, figures = found[1], found[2]
    if found[0] in _FORMULAS | _ISOTOPES:
        return found[0]
    if len(letters) == 1:
        return f"{letters} {_door(figures)}"
    is_long = len(figures) > 2 or figures.startswith("0")
    return f"{letters} {digits(figures) if is_long else ENGLISH.cardinal(int(figures))}"


def _range(found: re.Match[str]) -> str:
    low, high = found[1], found[2]
    if low == high:
        return f"{ENGLISH.cardinal(int(low))}-{ENGLISH.cardinal(int(low))}"
    if re.fullmatch(YEAR, low) and re.fullmatch(YEAR, high):
        return f"{year(low)} to {year(high)}"
    if re.fullmatch(YEAR, low) and len(high) == 2 and int(low[2:]) < int(high):
        return f"{year(low)} to {ENGLISH.cardinal(int(high))}"
    return f"{low} to {high}"


def _fraction(found: re.Match[str]) -> str:
    """Only what people write as one; '8/10' is a mark."""
    top, bottom = int(found[1]), int(found[2])
    of_something = found.string.startswith((" of ", " cup", " inch", " mile"), found.end())
    if bottom in (10, 100, top) and not of_something:
        return f"{top} out of {bottom}"
    return found[0] if top < bottom and bottom in _PARTS else f"{top} over {bottom}"


def _version(figures: str) -> str:
    """'two point seven point eleven'."""
    return " point ".join(ENGLISH.cardinal(int(each)) for each in figures.split("."))


def _scaled(found: re.Match[str]) -> str:
    return f"{found[1]} {_SCALES[found[2].lower()]}"


def _hexadecimal(found: re.Match[str]) -> str:
    """'zero x one F'."""
    return f"0 x {' '.join(digits(sign) or sign.upper() for sign in found[1])}"


def _cents(found: re.Match[str]) -> str:
    one, many = ("penny", "pence") if found[2] == "p" else ("cent", "cents")
    return f"{found[1]} {one if found[1] == '1' else many}"


SIGNS: tuple[Rule, ...] = (
    rule(r"(?<=\d)\u2009(?=\d{3}(?!\d))", "\u202f"),  # between thousands, as the library knows it
    rule(r"(?<=\d) ?\$(?![\d\w])", " dollars"),
    rule(rf"(?<![\w.])({'|'.join(map(re.escape, DOLLAR_SIGNS))})\$ ?(?=\d)", lambda found: DOLLAR_SIGNS[found[1]]),
    rule(rf"(?<=[{MONEY}])(\d{{1,6}}),(\d\d)(?!\d|,\d)", r"\1.\2"),
    rule(r"(?<![\w.,/])(\d{1,2})(p)\b", _cents),
    rule(r"(?<![\w.])(\d{1,4})( ?¢)", _cents),
    rule(r"(?<![\w.])\.(?=\d)", "0."),
    rule(rf"~ ?(?=[\d{MONEY}])", "about "),
    rule(r"± ?(?=\d)", "plus or minus "),
    rule(r"(\d) ?÷ ?(?=\d)", r"\1 divided by "),
    rule(r"(\d) ?× ?(?=\d[\d.,]{0,12} ?=)", r"\1 times "),
    rule(r"(?<![\w.,])0[xX]([\dA-Fa-f]{1,16})\b", _hexadecimal),
    rule(r"(\d) ?[x×] ?(?=\d)", r"\1 by "),
    rule(r"(\d)x\b", r"\1 times"),
)
CALLED: tuple[Rule, ...] = (
    rule(r"\b(ISBN(?:-1[03])?:? )((?:97[89][ –-]?)?(?:\d[ –-]?){9}[\dXx])(?![\w-])", _book),
    rule(r"(?<![\w.,-])\+\d{1,3}(?:[ .-]\(?\d{1,5}\)?){1,6}(?![\w-])", lambda found: _groups(found[0])),
    rule(
        r"(?<![\w.,-])(?:1[ -])?(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-.]\d{4}(?![\w-])",
        lambda found: _groups(found[0]),
    ),
    rule(rf"(?<![\w.,{MONEY}-])\d{{3}}-\d{{4}}(?![\w-])", lambda found: _groups(found[0])),
    rule(r"(?<![\w.,-])(?<!\d )0\d{2,5}(?:[ -]\d{3,7}){1,3}(?![\w-])", lambda found: _groups(found[0])),
    rule(
        rf"\b({_CODED}(?: (?:is|was|number|no\.))?:? )((?:[A-Z]{{1,3}} ?)?)(\d{{3,12}}(?: \d{{3}}\b)?){ENDS}",
        _code,
        re.IGNORECASE,
    ),
    rule(
        rf"\b((?:enter|dial|call) )(\d{{3,8}}){ENDS}"
        r"(?=[.,;:!?\"”’)]|$| (?:and|to|for|on|now|if|or|then|before|in|at)\b)",
        lambda found: found[1] + digits(found[2]),
        re.IGNORECASE,
    ),
    rule(
        r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.]*\d)", lambda found: " dot ".join(map(digits, found[0].split(".")))
    ),
    rule(r"\bv(?=\d{1,3}\.\d)", "version "),
    rule(rf"\b({_PROGRAMS} )(\d{{1,4}}(?:\.\d{{1,4}}){{1,3}})(?!\w|\.\d)", lambda found: found[1] + _version(found[2])),
)
NAMED: tuple[Rule, ...] = (
    rule(
        rf"\b({_PLACES}(?: (?:number|no\.))? )(\d{{3,4}}){ENDS}",
        lambda found: found[1] + _door(found[2]),
        re.IGNORECASE,
    ),
    rule(r"\b(Boeing |Airbus )(\d{3})\b", lambda found: found[1] + _door(found[2])),
    rule(r"\b([A-Z]{1,4})-?(\d{1,4})(?!\w|[.,:/-]\d)", _lettered),
    rule(
        rf"{STARTS}(\d{{3,4}})(?= (?:[NSEW]\.? )?(?:[A-Z][a-z]+ ){{1,3}}{_ROADS}\b)",
        lambda found: _door(found[1]),
    ),
)
AMOUNTS: tuple[Rule, ...] = (
    rule(rf"(?<=[{MONEY}])(\d[\d,]{{0,12}}(?:\.\d{{1,4}})?) ?(bn|mn|[kKmMbBtT])\b", _scaled),
    rule(rf"([{MONEY}])(\d[\d.,]{{0,12}})[-–]\1?(?=\d)", r"\2 to \1"),
    rule(r"(?<![\w.])(\d{1,3}(?:\.\d{1,3})?)(k)\b", _scaled),
    rule(
        r"(?<![\w.,/-])(\d{1,3}) ([1-7])/([2-8])(?![\w/])",
        lambda found: ENGLISH.mixed_fraction(int(found[1]), int(found[2]), int(found[3])),
    ),
    rule(r"\b24/7\b", "twenty-four seven"),
    rule(r"\b9/11\b", "nine eleven"),
    rule(rf"{STARTS}(\d{{1,6}})[-–](\d{{1,6}})(?![\w/-]|[.,:]\d)", _range),
    rule(r"(?<![\w.,/:-])(\d[\d,.]{0,12})[-–](?=\d[\d,.]{0,12}(?: ?%|°| ?[a-zA-Z]{1,4}\b))", r"\1 to "),
    # Where a name stands before them, they may be a chapter and its verse.
    rule(
        rf"(\b(?!(?:{BEGINNINGS})\b)[A-Z]\w{{0,30}}\.? {SENTENCE}?)?(?<![\w.,:/-])"
        r"(\d{1,6}(?:\.\d{1,3})?):(\d(?:\.\d{1,3})?|\d{3,6})(?![\w:]|[.,/-]\d)",
        lambda found: found[0] if found[1] else f"{found[2]} to {found[3]}",
    ),
    rule(r"(?<![\w./])(\d{1,3})/(\d{1,3})(?![\w/]|\.\d)", _fraction),
    rule(r"(?<![\w.])(\d) ?['′] ?(\d{1,2})(?:\"|″|['′]{2})?(?![\w'’])", r"\1 foot \2"),
    rule(r"(\d (?:ft|foot|feet)) (\d{1,2}) in\b", r"\1 \2 inches"),
    rule(r"(?<=\d) ?″", " inches"),
)
