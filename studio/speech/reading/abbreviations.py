"""Abbreviations that mean something only beside a name or a number, and Roman figures."""

from __future__ import annotations

import re

from studio.speech.reading.rules import BEGINNINGS, ENGLISH, Rule, ends_a_sentence, roman, rule

_STREET = {"St": "Street", "Ave": "Avenue", "Rd": "Road", "Blvd": "Boulevard", "Ln": "Lane", "Sq": "Square",
           "Hwy": "Highway", "Pl": "Place", "Ct": "Court", "Pkwy": "Parkway"}  # fmt: skip
_PLACE = {"St": "Saint", "Mt": "Mount", "Ft": "Fort"}
_NUMBERED = {"p": "page", "pp": "pages", "vol": "volume", "ch": "chapter", "fig": "figure", "sec": "section",
             "eq": "equation", "art": "article", "para": "paragraph", "ca": "about", "ext": "extension",
             "apt": "apartment", "ste": "suite", "est": "estimated", "max": "maximum", "min": "minimum",
             "temp": "temperature"}  # fmt: skip
"""Only before a number, also with a capital."""
_PLAIN = {"approx": "approximately", "incl": "including", "excl": "excluding", "max": "maximum", "avg": "average",
          "dept": "department", "govt": "government", "misc": "miscellaneous", "tel": "telephone",
          "min": "minimum"}  # fmt: skip
"""Anywhere, with their stop; with a capital only those that no name is."""
_UNITS = "ft|in|lbs?|oz|yds?|hrs?|mins?|secs?|yrs?|tbsp|tsp|gal|km|cm|mm|kg|mi|mph|sq ft"
_BOOKS = {"Gen": "Genesis", "Ex": "Exodus", "Exod": "Exodus", "Lev": "Leviticus", "Num": "Numbers",
          "Deut": "Deuteronomy", "Josh": "Joshua", "Judg": "Judges", "Sam": "Samuel", "Chron": "Chronicles",
          "Neh": "Nehemiah", "Ps": "Psalm", "Prov": "Proverbs", "Eccl": "Ecclesiastes", "Isa": "Isaiah",
          "Jer": "Jeremiah", "Ezek": "Ezekiel", "Dan": "Daniel", "Hos": "Hosea", "Mic": "Micah", "Hab": "Habakkuk",
          "Zech": "Zechariah", "Mal": "Malachi", "Matt": "Matthew", "Rom": "Romans", "Cor": "Corinthians",
          "Gal": "Galatians", "Eph": "Ephesians", "Phil": "Philippians", "Col": "Colossians",
          "Thess": "Thessalonians", "Tim": "Timothy", "Heb": "Hebrews", "Jas": "James", "Pet": "Peter",
          "Rev": "Revelation"}  # fmt: skip
_WHOLE_BOOKS = "|".join(sorted({*_BOOKS.values(), "Ruth", "Kings", "Ezra", "Esther", "Job", "Psalms", "Lamentations",
                                "Joel", "Amos", "Obadiah", "Jonah", "Nahum", "Zephaniah", "Haggai", "Mark", "Luke",
                                "John", "Acts", "Titus", "Philemon", "Jude", "Surah", "Sura"}))  # fmt: skip
_TITLES = {"Dr": "Doctor", "Prof": "Professor", "Gen": "General", "Col": "Colonel", "Capt": "Captain",
           "Lt": "Lieutenant", "Sgt": "Sergeant", "Rev": "Reverend", "Hon": "Honorable", "Sen": "Senator",
           "Gov": "Governor", "Rep": "Representative", "Pres": "President", "Adm": "Admiral"}  # fmt: skip
_FIRMS = {"Bros": "Brothers", "Co": "Company", "Corp": "Corporation", "Inc": "Incorporated", "Ltd": "Limited"}
KINGS = (
    "Alexander|Alfonso|Benedict|Carl|Catherine|Charles|Christian|Clement|Constantine|Edward|Elizabeth|Ferdinand|"
    "Francis|Frederick|George|Gregory|Gustav|Harald|Henry|Innocent|Ivan|James|John|Joseph|Leo|Leopold|Louis|Margaret|"
    "Mary|Mehmed|Napoleon|Nicholas|Olaf|Otto|Paul|Peter|Philip|Pius|Ramses|Richard|Robert|Selim|Stephen|Umberto|"
    "Urban|Victor|Wilhelm|William"
)
_NAMED = rf"\b([A-Z][a-z]+|\d+(?:st|nd|rd|th)) ({'|'.join(_STREET)})\."


def _street(found: re.Match[str]) -> str:
    return f"{found[1]} {_STREET[found[2]]}{'.' if ends_a_sentence(found) else ''}"


def _king(found: re.Match[str]) -> str:
    number = roman(found[2])
    return f"{found[1]} the {ENGLISH.ordinal(number)}" if number else found[0]


def _counted(found: re.Match[str]) -> str:
    number = roman(found[2])
    return f"{found[1]} {ENGLISH.cardinal(number)}" if number else found[0]


def _pages(found: re.Match[str]) -> str:
    low, high = roman(found[2]), roman(found[3])
    return f"{found[1]} {ENGLISH.cardinal(low)} to {ENGLISH.cardinal(high)}" if low and high else found[0]


def _century(found: re.Match[str]) -> str:
    number = roman(found[1])
    return f"{ENGLISH.ordinal(number)}{found[2]}" if number else found[0]


def _roman_year(found: re.Match[str]) -> str:
    """As below films: 'twenty twenty-four'."""
    number = roman(found[0])
    return ENGLISH.year(number) if number else found[0]


def _cased(written: str, words: dict[str, str]) -> str:
    read = words[written.lower()]
    return read.capitalize() if written[0].isupper() else read


def _unit(found: re.Match[str]) -> str:
    """Without its stop, unless a sentence ends with it."""
    unit = "inches" if found[1] == "in" else found[1]
    return unit + ("." if ends_a_sentence(found) else "")


def _verse(found: re.Match[str]) -> str:
    """'First Corinthians thirteen, four to seven'."""
    of_books = {"1": "First ", "2": "Second ", "3": "Third ", "I": "First ", "II": "Second ", "III": "Third "}
    book = _BOOKS.get(found[2], found[2])
    verses = found[4] + (f" to {found[5]}" if found[5] else "")
    return f"{of_books.get(found[1] or '', '')}{book} {found[3]}, {verses}"


ABBREVIATIONS: tuple[Rule, ...] = (
    rule(r"(?<=\d )((?:[A-Z][a-z]+ ){1,3})Dr\.", r"\1Drive", needs="Dr."),
    rule(rf"\b({'|'.join(_TITLES)})\. ?(?=[A-Z])", lambda found: f"{_TITLES[found[1]]} ", needs="."),
    rule(
        rf"(?<=[\w&,] )({'|'.join(_FIRMS)})\.",
        lambda found: _FIRMS[found[1]] + ("." if ends_a_sentence(found) else ""),
        needs=".",
    ),
    rule(r"\bvs\b\.?", "versus", needs="vs"),
    rule(r"\bw/o\b", "without", needs="w/"),
    rule(r"\bw/ ?(?=[a-z\d])", "with ", needs="w/"),
    rule(r"(?<=\d)( ?)(sq|cu)\. ?(ft|in|mi|yd|m|km)\b", r" \2 \3", needs="sq.|cu."),
    rule(rf"(?<=\d )({_UNITS})\.(?!\w)|(?<=\d)({_UNITS})\.(?!\w)", _unit, needs="."),
    rule(
        rf"\b(?:([123]|I{{1,3}}) )?({'|'.join(_BOOKS)}|{_WHOLE_BOOKS})\b\.? (\d{{1,3}}):(\d{{1,3}})(?:[-–](\d{{1,3}}))?"
        r"(?![\d:]| ?[ap]\.?m\b)",
        _verse,
        needs="0:0",
    ),
    rule(
        rf"\b({'|'.join(_PLAIN)}|{'|'.join(short.capitalize() for short in _PLAIN if short[0] != 'm')})\.(?!\w)",
        lambda found: _cased(found[1], _PLAIN) + ("." if ends_a_sentence(found) else ""),
        needs=".",
    ),
    rule(
        r"\b([Ee])st\. ?(?=(?:in )?(?:1[5-9]|20)\d\d\b(?![,.]\d))", lambda found: f"{found[1]}stablished ", needs="st."
    ),
    rule(r"\bnos\. ?(?=\d)", "numbers ", needs="nos."),
    rule(r"\b([Tt])el(?=: ?[\d(+])", r"\1elephone", needs="el:"),
    rule(r"\bNo(s?)\. ?(?=\d)", r"number\1 ", needs="No"),
    # A street where a name stands before it and none after it; else a saint.
    rule(rf"{_NAMED}(?! ?[A-Z]|\w)", _street, needs="."),
    rule(rf"{_NAMED}(?= (?:{BEGINNINGS}) )", _street, needs="."),
    rule(rf"(?<=\d ){_NAMED}(?= [A-Z])", _street, needs="."),
    rule(rf"\b({'|'.join(_PLACE)})\. ?(?=[A-Z])", lambda found: f"{_PLACE[found[1]]} ", needs="."),
    rule(
        rf"\b({'|'.join(_NUMBERED)})\. ?(?=\d)",
        lambda found: f"{_cased(found[1], _NUMBERED)} ",
        re.IGNORECASE,
        needs=".0|. 0",
    ),
    rule(r"[#№] ?(?=\d)", "number ", needs="#|№"),
    rule(r"§§? ?(?=\d)", "section ", needs="§"),
    rule(rf"\b({KINGS}) ([IVX]{{2,5}}|V|X)(?![\w-])", _king),
    rule(
        r"\b((?i:chapter|part|volume|act|scene|book|section|article|phase|level|type|appendix|world war)|Super Bowl) "
        r"([IVXL]{1,7})(?![\w'’-])",
        _counted,
    ),
    rule(r"\b([Pp]ages?|[Pp]p?\.) ([ivxl]{1,7})[-–]([ivxl]{1,7})\b", _pages, needs="-|–"),
    rule(
        r"\b((?i:pages?|chapter|part|volume|act|scene|book|section|article|phase|appendix|footnote|note|item|step|"
        r"figure|clause|paragraph)) ([ivxl]{2,7}|[IVXL]{2,7}|[vx])(?![\w'’-])",
        _counted,
    ),
    rule(r"\b([IVX]{1,6})(?:th)?((?: |-)(?:century|centuries|dynasty)\b)", _century),
    rule(r"\bM[CDLXVIM]{3,}\b", _roman_year),
    rule(r"\b([A-Z][a-z]+) (I{2,3}|IV|VI{1,3}|IX|XI{1,3}|XIV|XV)(?![\w.'’-])", _counted),
)
