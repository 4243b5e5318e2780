"""Abbreviations that mean something only beside a name or a number, and Roman figures."""

from __future__ import annotations

import re

from studio.speech.reading.rules import BEGINNINGS, ENGLISH, Rule, ends_a_sentence, rule

_STREET = {"St": "Street", "Ave": "Avenue", "Rd": "Road", "Blvd": "Boulevard", "Ln": "Lane", "Sq": "Square",
           "Hwy": "Highway", "Pl": "Place", "Ct": "Court", "Pkwy": "Parkway"}  # fmt: skip
_PLACE = {"St": "Saint", "Mt": "Mount", "Ft": "Fort"}
_NUMBERED = {"p": "page", "pp": "pages", "No": "number", "Nos": "numbers", "vol": "volume", "ch": "chapter",
             "fig": "figure", "sec": "section", "eq": "equation", "art": "article", "para": "paragraph",
             "approx": "approximately", "ca": "about", "Vol": "Volume", "Ch": "Chapter", "Fig": "Figure",
             "Sec": "Section", "Eq": "Equation", "Art": "Article", "Para": "Paragraph",
             "Approx": "Approximately"}  # fmt: skip
_TITLES = {"Dr": "Doctor", "Prof": "Professor", "Gen": "General", "Col": "Colonel", "Capt": "Captain",
           "Lt": "Lieutenant", "Sgt": "Sergeant", "Rev": "Reverend", "Hon": "Honorable", "Sen": "Senator",
           "Gov": "Governor", "Rep": "Representative", "Pres": "President", "Adm": "Admiral"}  # fmt: skip
_FIRMS = {"Bros": "Brothers", "Co": "Company", "Corp": "Corporation", "Inc": "Incorporated", "Ltd": "Limited"}
_KINGS = (
    "Alexander|Alfonso|Benedict|Carl|Catherine|Charles|Christian|Clement|Constantine|Edward|Elizabeth|Ferdinand|"
    "Francis|Frederick|George|Gregory|Gustav|Harald|Henry|Innocent|Ivan|James|John|Joseph|Leo|Leopold|Louis|Margaret|"
    "Mary|Mehmed|Napoleon|Nicholas|Olaf|Otto|Paul|Peter|Philip|Pius|Ramses|Richard|Robert|Selim|Stephen|Umberto|"
    "Urban|Victor|Wilhelm|William"
)
_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50}
_NAMED = rf"\b([A-Z][a-z]+|\d+(?:st|nd|rd|th)) ({'|'.join(_STREET)})\."


def _street(found: re.Match[str]) -> str:
    return f"{found[1]} {_STREET[found[2]]}{'.' if ends_a_sentence(found) else ''}"


def _roman(figures: str) -> int:
    values = [_ROMAN[sign] for sign in figures]
    return sum(-low if low < high else low for low, high in zip(values, [*values[1:], 0], strict=True))


def _king(found: re.Match[str]) -> str:
    return f"{found[1]} the {ENGLISH.ordinal(_roman(found[2]))}"


def _counted(found: re.Match[str]) -> str:
    return f"{found[1]} {ENGLISH.cardinal(_roman(found[2]))}"


ABBREVIATIONS: tuple[Rule, ...] = (
    rule(r"(?<=\d )((?:[A-Z][a-z]+ ){1,3})Dr\.", r"\1Drive"),
    rule(rf"\b({'|'.join(_TITLES)})\. ?(?=[A-Z])", lambda found: f"{_TITLES[found[1]]} "),
    rule(
        rf"(?<=[\w&,] )({'|'.join(_FIRMS)})\.", lambda found: _FIRMS[found[1]] + ("." if ends_a_sentence(found) else "")
    ),
    rule(r"\bvs\b\.?", "versus"),
    # A street where a name stands before it and none after it; else a saint.
    rule(rf"{_NAMED}(?! ?[A-Z]|\w)", _street),
    rule(rf"{_NAMED}(?= (?:{BEGINNINGS}) )", _street),
    rule(rf"(?<=\d ){_NAMED}(?= [A-Z])", _street),
    rule(rf"\b({'|'.join(_PLACE)})\. ?(?=[A-Z])", lambda found: f"{_PLACE[found[1]]} "),
    rule(rf"\b({'|'.join(_NUMBERED)})\. ?(?=\d)", lambda found: f"{_NUMBERED[found[1]]} "),
    rule(r"[#№] ?(?=\d)", "number "),
    rule(r"§§? ?(?=\d)", "section "),
    rule(rf"\b({_KINGS}) ([IVX]{{2,5}}|V|X)(?![\w-])", _king),
    rule(
        r"\b((?i:chapter|part|volume|act|scene|book|section|article|phase|level|type|appendix)|World War|Super Bowl) "
        r"([IVXL]{1,7})(?![\w'’-])",
        _counted,
    ),
    rule(r"\b([A-Z][a-z]+) (I{2,3}|IV|VI{1,3}|IX|XI{1,3}|XIV|XV)(?![\w.'’-])", _counted),
)
