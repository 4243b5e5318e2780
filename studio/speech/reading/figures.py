"""Rules for numbers that are identifiers: phone numbers, codes, rooms, parcels, products, versions and IP addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping

from studio.speech.reading.english import TABLES
from studio.speech.reading.rules import ENDS, ENGLISH, MONEY, STARTS, YEAR, Rule, cardinal, digits, rule, year

_CODED = (
    r"(?:code|pin|passcode|password|combination|zip|zip code|postcode|extension|ext\.|area code|serial number|"
    r"(?:account|order|reference|confirmation|booking|tracking|case|ticket|invoice|card|registration|flight|train|"
    r"phone|telephone|model|licen[cs]e) number|flight|plate|registration)"
)
_PLACES = r"(?:room|suite|apartment|apt\.|flat|route|highway|interstate|bus|train|tram|hall|locker|channel|unit)"
_ROADS = r"(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Place|Court|Way|Square)"
_FORMULAS = frozenset("CO2 H2O O2 O3 N2 H2 CH4 NH3 SO2 NO2".split())  # noqa: SIM905
"""Formulas that the library spells out."""
_ISOTOPES = frozenset(TABLES["isotopes"])
"""Isotopes that the library reads by name; it would also do so with "F-16"."""
_PRODUCTS = r"(?:RTX|GTX|RX|Office|Microsoft|Xbox|Boeing|Airbus|Porsche|Ferrari|Ryzen [3579]|Nokia|Peugeot|Fiat)"
_RESOLUTIONS = r"(?:144|240|360|480|540|576|720|1080|1440|2160|4320)"
"""Lines of a video format."""
_SERVICES = r"(?:[2-9]11|112|999|988)"
"""Short phone numbers."""
_CALLING = (
    r"(?:call(?:s|ed|ing)?|dial(?:s|l?ed|l?ing)?|phon(?:es?|ed|ing)|rang|ring|text(?:s|ed|ing)?|press(?:ed|ing)?)"
)
_STATES: Mapping[str, str] = TABLES["states"]
"""Abbreviations before ZIP codes."""
_PROGRAMS = r"(?:[Vv]ersion|[Rr]elease|Python|Windows|Android|Ubuntu|iOS|macOS|Java|Linux)"


def _groups(figures: str) -> str:
    """A phone number, with a short pause between its groups."""
    plus = "plus " if figures.startswith("+") else ""
    return plus + ", ".join(map(digits, re.findall(r"\d+", figures)))


def _phone_number(match: re.Match[str]) -> str:
    """A phone number with a plus; short amounts such as '+2.5' stay."""
    return _groups(match[0]) if len(re.sub(r"\D", "", match[0])) >= 7 else match[0]


def _file(figures: str) -> str:
    """A file number: 'twenty twenty-four dash zero zero one'."""
    first, *rest = figures.split("-")
    return " dash ".join([year(first) if re.fullmatch(YEAR, first) else digits(first), *map(digits, rest)])


def _isbn(figures: str) -> str:
    """An ISBN, whose last character may be an X."""
    return _groups(figures) + (" X" if figures[-1] in "xX" else "")


def door(figures: str) -> str:
    """'six fourteen', 'twelve oh five', 'three hundred', as for rooms and houses; at most four digits."""
    high, low = divmod(int(figures), 100)
    if figures.startswith("0"):
        return digits(figures)
    if not high or (not high % 10 and not low):
        return ENGLISH.cardinal(int(figures))
    rest = "hundred" if not low else f"oh {ENGLISH.cardinal(low)}" if low < 10 else ENGLISH.cardinal(low)
    return f"{ENGLISH.cardinal(high)} {rest}"


def _lettered(match: re.Match[str]) -> str:
    """'C twenty-two', 'F sixteen', 'A three eighty', 'KL one two three four', 'MP three'."""
    letters, figures = match[1], match[2]
    if match[0] in _FORMULAS | _ISOTOPES:
        return match[0]
    if len(letters) == 1:
        return f"{letters} {door(figures)}"
    is_long = len(figures) > 2 or figures.startswith("0")
    return f"{letters} {digits(figures) if is_long else ENGLISH.cardinal(int(figures))}"


CALLED: tuple[Rule, ...] = (
    rule(r"\b(ISBN(?:-1[03])?:? )((?:97[89][ –-]?)?(?:\d[ –-]?){9}[\dXx])(?![\w-])", r"\1\2", None, _isbn,
        needs="ISBN"),
    rule(r"(?<![\w.,-])\+\d{1,3}(?:[ .-]\(?\d{1,5}\)?){1,6}(?![\w-])", _phone_number, needs="+0"),
    rule(r"(?<![\w.,-])1[ -](8\d\d|900)[ -]([A-Z]{2,10}(?:-[A-Z]{2,10})?)\b", r"one, \1, \2", cardinal,
        lambda word: word.lower().replace("-", " "), needs="0-000-|0 000 |0-000 "),
    rule(r"\b([Nn]umber |(?i:invoice|order|ticket|case|file|reference|ref\.?|claim|docket|id|contract|model|part) )"
        rf"({YEAR}-\d{{2,6}}|\d{{2,6}}-0\d{{1,5}}|\d{{2,6}}(?:-\d{{2,6}}){{2,3}}){ENDS}", r"\1\2", None, _file,
        needs="0-0"),
    rule(rf"\b({'|'.join(_STATES)}),? (\d{{5}}(?:-\d{{4}})?){ENDS}", r"\1 \2", _STATES, _groups, needs="00000"),
    rule(r"(?i)\bP\.? ?O\.? Box (\d{1,6})\b", r"P.O. Box \1",
        lambda number: door(number) if len(number) < 3 else digits(number), needs="ox "),
    rule(r"(?<![\w.,-])((?:1[ -])?(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-.]\d{4})(?![\w-])", r"\1", _groups,
        needs="0-0000|0.0000"),
    rule(rf"(?<![\w.,{MONEY}-])(\d{{3}}-\d{{4}})(?![\w-])", r"\1", _groups, needs="0-0000"),
    rule(r"(?<![\w.,-])(?<!\d )(0\d{2,5}(?:[ -]\d{3,7}){1,3})(?![\w-])", r"\1", _groups, needs="00 0|00-0"),
    rule(rf"(?i)\b({_CODED}(?: (?:is|was|number|no\.))?:? )((?:[A-Z]{{1,3}} ?)?)(\d{{3,12}}(?: \d{{3}}\b)?){ENDS}",
        r"\1\2\3", None, lambda letters: f"{letters.strip()} ", _groups, needs="000"),
    rule(rf"(?i)\b({_CALLING} )({_SERVICES})(?![\w/-]|[.,:]\d| [a-z]+s\b)", r"\1\2", None, digits, needs="000"),
    rule(rf"(?<![\w.,/:{MONEY}-])(?<!Porsche )(911)(?=[,;:!?)\"”’]|\.?$|\. |['’]s|-call| (?:calls?|operators?|"
        r"dispatch(?:ers?)?|emergency|centers?|immediately|right|now)\b)", r"\1", digits, needs="000"),
    rule(rf"(?i)\b((?:enter|dial|call) )(\d{{3,8}}){ENDS}"
        r"(?=[.,;:!?\"”’)]|$| (?:and|to|for|on|now|if|or|then|before|in|at)\b)", r"\1\2", None, digits, needs="000"),
    rule(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.]*\d)", lambda match: " dot ".join(map(digits, match[0].split("."))),
        needs=".0"),
    rule(r"\bv(?=\d{1,3}\.\d)", "version ", needs="v0"),
    rule(rf"\b({_PROGRAMS} )(\d{{1,4}}(?:\.\d{{1,4}}){{1,3}})(?!\w|\.\d)", r"\1\2", None,
        lambda version: " point ".join(map(cardinal, version.split("."))), needs="0.0"),
)  # fmt: skip
NAMED: tuple[Rule, ...] = (
    rule(rf"\b({_PRODUCTS} )(\d{{3}})-(\d{{1,3}})(?![\w-])", r"\1\2 \3", None, door, door, needs="000-0"),
    rule(r"(?<![\w.,])(\d\d)ers\b", r"\1ers", lambda number: cardinal(number).rstrip("e"), needs="0ers"),
    rule(rf"(?i)\b({_PLACES}(?: (?:number|no\.))? )(\d{{3,4}}){ENDS}", r"\1\2", None, door, needs="000"),
    rule(rf"\b({_PRODUCTS} )(\d{{3,4}})(?![\w-]|[.,:/]\d)", r"\1\2", None, door, needs="000"),
    rule(rf"(?<![\w.,])({_RESOLUTIONS})([pi])(\d\d)?\b", r"\1 \2\3", door, None, lambda rate: f" {rate}",
        needs="0p|0i"),
    rule(r"\b[Ss](\d{1,2}) ?[Ee](\d{1,3})\b", r"season \1 episode \2", cardinal, cardinal, needs="0E|0e|0 E|0 e"),
    rule(r"\b([A-Z]{1,4})-?(\d{1,4})(?!\w|[.,:/-]\d)", _lettered),
    rule(rf"{STARTS}(\d{{3,4}})(?= (?:[NSEW]\.? )?(?:[A-Z][a-z]+ ){{1,3}}{_ROADS}\b)", r"\1", door, needs="000"),
)  # fmt: skip
