"""Rules for abbreviations, most of which depend on a name or number beside them, and for Roman numerals."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from studio.speech.reading.english import TABLES
from studio.speech.reading.rules import BEGINNINGS, ENGLISH, YEAR, Rule, roman, rule

_STREET: Mapping[str, str] = TABLES["streets"]
_PLACE: Mapping[str, str] = TABLES["places"]
_NUMBERED: Mapping[str, str] = TABLES["numbered"]
"""Expanded only before a number; may be capitalised."""
_OF_BOOKS: Mapping[str, str] = TABLES["of_books"]
"""Expanded before Roman numerals."""
_PLAIN: Mapping[str, str] = TABLES["plain"]
"""Expanded anywhere if followed by a full stop; capitalised only if they cannot be a name."""
_UNITS = "ft|in|lbs?|oz|yds?|hrs?|mins?|secs?|yrs?|[Tt]bsp|[Tt]sp|gal|km|cm|mm|kg|mi|mph|sq ft"
_BOOKS: Mapping[str, str] = TABLES["books"] | {
    book: book for book in (*TABLES["books"].values(), *TABLES["whole_books"])
}
_TITLES: Mapping[str, str] = TABLES["titles"]
_FIRMS: Mapping[str, str] = TABLES["firms"]
_WARS = {"I": "one", "1": "one", "II": "two", "2": "two", "III": "three", "3": "three"}
_CROWNED = r"(?:King|Queen|Pope|Emperor|Empress|Tsar|Czar|Kaiser|Sultan)"
_SAID_BY_ME = (
    r"(?! (?:am|was sure|think|thought|know|knew|believe|have|had|said|saw|met|mean|meant|love|loved)\b|['’][mdvl])"
)
"""Words that follow the pronoun "I", and not a monarch's number."""
KINGS = "|".join(TABLES["kings"])
_OF_SEVERAL = {"1": "First ", "2": "Second ", "3": "Third ", "I": "First ", "II": "Second ", "III": "Third "}
_NAMED = rf"\b([A-Z][a-z]+|\d+(?:st|nd|rd|th)) ({'|'.join(_STREET)})\."


def _roman(read: Callable[[int], str]) -> Callable[[str], str | None]:
    return lambda figures: read(number) if (number := roman(figures)) else None


def _cased(words: Mapping[str, str]) -> Callable[[str], str]:
    """A reader that looks up a table and keeps the capital of the abbreviation."""
    return lambda short: words[short.lower()].capitalize() if short[0].isupper() else words[short.lower()]


_ORDINAL, _CARDINAL, _YEAR = map(_roman, (ENGLISH.ordinal, ENGLISH.cardinal, ENGLISH.year))
_HEADING = _roman(lambda number: ENGLISH.cardinal(number).capitalize())

ABBREVIATIONS: tuple[Rule, ...] = (
    rule(r"(?<=\d )((?:[A-Z][a-z]+ ){1,3})Dr\.", r"\1Drive", needs="Dr."),
    rule(rf"\b({'|'.join(_TITLES)})\. ?(?=[A-Z])", r"\1 ", _TITLES, needs="."),
    rule(rf"(?<=[\w&,] )({'|'.join(_FIRMS)})\.", r"\1\.", _FIRMS, needs="."),
    rule(r"\bvs\b\.?", "versus", needs="vs"),
    rule(r"\bw/o\b", "without", needs="w/"),
    rule(r"\bb/c\b", "because", needs="b/c"),
    rule(r"\bWW ?(I{1,3}|[123])\b", r"World War \1", _WARS, needs="WW"),
    rule(r"\bw/ ?(?=[a-z\d])", "with ", needs="w/"),
    rule(r"(?<=\d)( ?)(sq|cu)\. ?(ft|in|mi|yd|m|km)\b", r" \2 \3", needs="sq.|cu."),
    rule(rf"(?<=\d )({_UNITS})\.(?!\w)|(?<=\d)({_UNITS})\.(?!\w)", r"\1\2\.",
        lambda unit: "inches" if unit == "in" else unit.lower(), str.lower, needs="."),
    rule(rf"\b(?:([123]|I{{1,3}}) )?({'|'.join(_BOOKS)})\b\.? (\d{{1,3}}):(\d{{1,3}})"
        r"(?:[-–](\d{1,3})(?::(\d{1,3}))?)?" r"(?![\d:]| ?[ap]\.?m\b)", r"\1\2 \3, \4\5\6", _OF_SEVERAL, _BOOKS, None,
        None, lambda last: f" to {last}", lambda last: f", {last}", needs="0:0"),
    rule(rf"\b(?!(?<=\d )min\b)({'|'.join(_PLAIN)}|"
        rf"{'|'.join(short.capitalize() for short in _PLAIN if short[0] != 'm')})\.(?!\w)", r"\1\.", _cased(_PLAIN),
        needs="."),
    rule(r"\b([Ee])st\. ?(?=(?:in )?(?:1[5-9]|20)\d\d\b(?![,.]\d))", r"\1stablished ", needs="st."),
    rule(r"\bnos\. ?(?=\d)", "numbers ", needs="nos."),
    rule(r"\b([Tt])el(?=: ?[\d(+])", r"\1elephone", needs="el:"),
    rule(r"\bPs\. ?(?=\d)", "Psalm ", needs="Ps"),
    rule(r"(?:(?<=^)|(?<=\b(?:[Tt]he|won|was|our|his|her|its) )|(?<=\b(?:is|at|as|my) )|(?<=[,;] )|(?<=\())"
        r"no\. ?(?=\d)", "number ", needs="no."),
    rule(r"\bNo(s?)\. ?(?=\d)", r"number\1 ", needs="No"),
    # "St." is a street after a name and before none; otherwise a saint.
    rule(rf"{_NAMED}(?! ?[A-Z]|\w)", r"\1 \2\.", None, _STREET, needs="."),
    rule(rf"{_NAMED}(?= (?:{BEGINNINGS}) )", r"\1 \2\.", None, _STREET, needs="."),
    rule(rf"(?<=\d ){_NAMED}(?= [A-Z])", r"\1 \2\.", None, _STREET, needs="."),
    rule(rf"\b({'|'.join(_PLACE)})\. ?(?=[A-Z])", r"\1 ", _PLACE, needs="."),
    rule(rf"\b[Cc]a\. ?(?={YEAR}(?:[,;.)–-]|$| (?:in|at|by|and|to)\b))", "circa ", needs="a. 0|a.0"),
    rule(rf"(?i)\b({'|'.join(_NUMBERED)})\. ?(?=\d)", r"\1 ", _cased(_NUMBERED), needs=".0|. 0"),
    rule(r"[#№] ?(?=\d)", "number ", needs="#|№"),
    rule(r"§(§?) ?(?=\d)", r"section\1 ", {"§": "s"}, needs="§"),
    rule(rf"\b({KINGS}) ([IVX]{{2,5}}|V|X)(?![\w-])", r"\1 the \2", None, _ORDINAL),
    rule(rf"(?<![Tt]he )\b({_CROWNED} [A-Z][a-z]+) (I)(?![\w-]){_SAID_BY_ME}", r"\1 the \2", None, _ORDINAL,
        needs=" I"),
    rule(rf"\b({KINGS}) (I)(?= of [A-Z]|['’]s\b| \(|\))", r"\1 the \2", None, _ORDINAL, needs=" I"),
    rule(rf"\b((?i:{'|'.join(_OF_BOOKS)}))\. ?([IVXL]{{2,7}}|[VX]|[ivxl]{{2,7}})(?![\w'’-])", r"\1 \2",
        _cased(_OF_BOOKS), _CARDINAL, needs="."),
    rule(r"^([IVXL]{1,7})(\.?)$|^([IVX]{2,6})(\.)(?= [A-Z])", r"\1\2\3\4", _HEADING, None, _HEADING),
    rule(r"\b((?i:chapter|part|volume|act|scene|book|section|article|phase|level|type|appendix|world war)|Super Bowl) "
        r"([IVXL]{1,7})(?![\w'’-])", r"\1 \2", None, _CARDINAL),
    rule(r"\b([Pp]ages?|[Pp]p?\.) ([ivxl]{1,7})[-–]([ivxl]{1,7})\b", r"\1 \2 to \3", None, _CARDINAL, _CARDINAL,
        needs="-|–"),
    rule(r"\b((?i:pages?|chapter|part|volume|act|scene|book|section|article|phase|appendix|footnote|note|item|step|"
        r"figure|clause|paragraph)) ([ivxl]{2,7}|[IVXL]{2,7}|[vx])(?![\w'’-])", r"\1 \2", None, _CARDINAL),
    rule(r"\b([IVX]{1,6})(?:th)?((?: |-)(?:century|centuries|dynasty)\b)", r"\1\2", _ORDINAL),
    rule(r"\b(M[CDLXVIM]{3,})\b", r"\1", _YEAR),
    rule(r"\b([A-Z][a-z]+) (I{2,3}|IV|VI{1,3}|IX|XI{1,3}|XIV|XV)(?![\w.'’-])", r"\1 \2", None, _CARDINAL),
)  # fmt: skip
