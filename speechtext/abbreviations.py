"""Rules for abbreviations, most of which depend on a name or number beside them; Roman numerals; web addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from speechtext.rules import BEGINNINGS, ENGLISH, TABLES, YEAR, Rule, roman, rule

_STREET: Mapping[str, str] = TABLES["streets"]
_PLACE: Mapping[str, str] = TABLES["places"]
_NUMBERED: Mapping[str, str] = TABLES["numbered"]  # expanded only before a number; may be capitalised
_OF_BOOKS: Mapping[str, str] = TABLES["of_books"]  # expanded before Roman numerals
_PLAIN: Mapping[str, str] = TABLES["plain"]
"""Expanded anywhere if followed by a full stop; capitalised only if they cannot be a name."""
_UNITS = "ft|in|lbs?|oz|yds?|hrs?|mins?|secs?|yrs?|[Tt]bsp|[Tt]sp|gal|km|cm|mm|kg|mi|mph|sq ft"
_BOOKS: Mapping[str, str] = TABLES["books"] | {
    book: book for book in (*TABLES["books"].values(), *TABLES["whole_books"])
}
_TITLES: Mapping[str, str] = TABLES["titles"]
_FORENAMES: Mapping[str, str] = TABLES["forenames"]
_FIRMS: Mapping[str, str] = TABLES["firms"]
_WARS = {"I": "one", "1": "one", "II": "two", "2": "two", "III": "three", "3": "three"}
_CROWNED = r"(?:King|Queen|Pope|Emperor|Empress|Tsar|Czar|Kaiser|Sultan)"
_REIGNED = (
    "died|ruled|reigned|ascended|abdicated|succeeded|conquered|was (?:crowned|succeeded)|became (?:king|queen|emperor)"
)
"""What only monarchs do after their number, in the third person."""
_SAID_BY_ME = (
    r"(?! (?:am|was sure|think|thought|know|knew|believe|have|had|said|saw|met|mean|meant|love|loved)\b|['’][mdvl])"
)
"""Words that follow the pronoun "I", and not a monarch's number."""
KINGS = "|".join(TABLES["kings"])
_OF_SEVERAL = {"1": "First ", "2": "Second ", "3": "Third ", "I": "First ", "II": "Second ", "III": "Third "}
_BEGINS = re.compile(BEGINNINGS)
_SPANISH = re.compile(r"(?:ez|ía|ín|ón|ñ\w{1,3})$")
_VERSES = re.compile(r"(\d{1,3}):(\d{1,3})(?:[-–](\d{1,3}))?")
_NAMED = rf"\b([A-Z][a-z]+|\d+(?:st|nd|rd|th)) ({'|'.join(_STREET)})\."

_SIGNS = {".": "dot", "/": "slash", "-": "dash", "_": "underscore", "@": "at", ":": "colon", "?": "question mark",
          "=": "equals", "&": "and", "#": "hash", "%": "percent", "+": "plus", "~": "tilde"}  # fmt: skip
_FILES = r"(?i:net|com|org|txt|pdf|exe|zip|docx?|xlsx?|csv|json|html?|jpe?g|png|mp[34]|wav|epub|py|js)"
_HEAD = re.compile(r"^(?:https?://)?(www\.)?", re.IGNORECASE)


def _before_a_name(match: re.Match[str]) -> str:
    """'Monsieur'; 'Sister', or 'Señor' before a name that looks Spanish. After a name it is an initial, or 'Senior'."""
    word, short, name = match.groups()
    if word[:1].isupper() and word[-2].isalnum() and not _BEGINS.fullmatch(word[:-1]):
        return match[0]
    return f"{word}{'Monsieur' if short == 'M' else 'Señor' if _SPANISH.search(name) else 'Sister'} "


def _more_verses(references: str) -> str:
    """'; 12, 1' and ', 7, 12 to 14': further chapters and verses of the same book."""
    return _VERSES.sub(lambda verse: f"{verse[1]}, {verse[2]}{f' to {verse[3]}' if verse[3] else ''}", references)


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
    rule(rf"\b({'|'.join(_FORENAMES)})\. ?(?=[A-Z]|$)", r"\1 ", _FORENAMES, needs="."),
    # Not an initial: those follow a name or precede another one.
    rule(r"(?<![\w.’'-])((?:[\w’'-]{1,40}[,;:.!?]? )?)(M|Sr)\. (?=((?:(?:de|du|le|la) )?[A-Z][^\W\d_A-Z]{1,30}))",
        _before_a_name, needs="M.|Sr."),
    rule(rf"\b({'|'.join(TABLES['scholarly'])})\.(?=,? )", r"\1", TABLES["scholarly"], needs="f.|z."),
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
        r"(?:[-–](\d{1,3})(?::(\d{1,3}))?)?((?:[;,] ?\d{1,3}:\d{1,3}(?:[-–]\d{1,3})?(?![\d:])){0,20})"
        r"(?![\d:]| ?[ap]\.?m\b)", r"\1\2 \3, \4\5\6\7", _OF_SEVERAL, _BOOKS, None, None,
        lambda last: f" to {last}", lambda last: f", {last}", _more_verses, needs="0:0"),
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
    rule(rf"\b({KINGS}) (I)(?= of [A-Z]|['’]s\b| \(|\)|[.,;:]|$| (?:{_REIGNED})\b)", r"\1 the \2", None,
        _ORDINAL, needs=" I"),
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


def _address(address: str) -> str:
    """Words stay, other characters are named; the scheme is left out."""
    head = _HEAD.match(address)
    assert head is not None, "every part of it may be missing"
    parts = re.split(r"([^A-Za-z0-9])", address[head.end() :].removesuffix("/"))
    if address.isupper():
        parts = [part.lower() for part in parts]
    words = [_SIGNS.get(part, "U K" if part == "uk" else part) for part in parts if part]
    spaced = [re.sub(r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])", " ", word) for word in words]
    return ("W W W dot " if head[1] else "") + " ".join(spaced)


def _doi(match: re.Match[str]) -> str:
    """Its figures one by one, as they are no numbers; the 10 with which all of them begin is one."""
    words = re.sub(r"(?<=\d)(?=\d)", " ", _address(match[2].removeprefix("10.")))
    return f"{'DOI ' if match[1] else ''}10 dot {words}"


ADDRESSES: tuple[Rule, ...] = (
    rule(r"(?<![\w./])((?i:doi:? ?|https?://(?:dx\.)?doi\.org/))?(10\.\d{4,9}/[^\s<>\"]{0,200}[^\s<>\".,;:!?)\]'])",
        _doi, needs="0.0"),
    rule(r"(?a)(?<![\w@.+-])([\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,6}[A-Za-z]{2,24})\b", r"\1", _address, needs="@"),
    rule(r"(?i)\b((?:https?://|www\.)[^\s<>\"]{0,400}[^\s<>\".,;:!?)\]'])", r"\1", _address, needs="://|ww.|WW.|Ww."),
    rule(r"(?a)(?<![\w@./-])((?:[A-Za-z][\w-]{0,62}\.){1,4}(?:com|org|net|edu|gov|io|info|dev|ai|co\.uk|uk|de|eu)"
        r"(?:/[\w./-]{0,200}[\w/])?)(?![\w-]|\.\w)", r"\1", _address, needs="."),
    rule(rf"(?<![\w.])\.({_FILES})\b", r"dot \1", str.lower, needs="."),
    rule("`", "", needs="`"),  # the library would not change text between two of them
)  # fmt: skip
