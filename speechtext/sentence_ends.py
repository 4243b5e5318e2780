"""Finds the ends of sentences: at stops and line ends, but not at abbreviations and never inside a tag."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape

from speechtext.characters import ENTITY
from speechtext.markup import CITATION
from speechtext.tags import TAG

FAR = 256
"""Characters examined again when more text arrives: no tag and no end of a sentence is longer."""
_NEAR = 64  # characters examined before a stop: no abbreviation is longer
_TAG = "\ufffc"
"""Replaces each character of a tag: it is not a letter, and a sentence may end directly before it."""
_STOPS = ".!?…؟۔।॥"
_CLOSING = "\"'”’»)]*_"
_QUOTES = frozenset("\"'”’»")
_END = re.compile(
    # Scripts with a space after a sentence. A run of stops matches from its first one only; otherwise a line of dots
    # would take quadratic time. ". . ." is one run.
    rf"((?<![.!?…])[.!?…]+(?:[ \u00a0][.…]+)*|(?<![؟۔।॥])[؟۔।॥]+)([{re.escape(_CLOSING)}]*)(?=\s|{_TAG})"
    r"|([。！？｡]+)([”’」』）]*)"  # scripts that do not
    r"|\n\s*(?=\n)|\n(?=\s*\S)"  # lines
)
# A tag or entity that more text may complete.
_OPENED = re.compile(r"\[[^\[\]]*\Z|<(?:\|[^|>]*\|?)?\Z|&[#\w]{0,31}\Z")
_HIDDEN = re.compile(rf"{TAG.pattern}|{ENTITY.pattern}|[\u00ad\u200b-\u200f\u2060\ufeff]")
_WORD = re.compile(r"[^\W_]")
_INSIDE = re.compile(r"\S")
_DOTS = re.compile(r"[.…]+\Z")
_BEFORE_A_WORD = re.compile(rf"[\s()\"'“‘\[\]{{。！？｡、，{_TAG}]")
_INITIAL = re.compile(r"(?:\w\.)*[A-ZÀ-Þ]")
_LETTERS = re.compile(r"[\w'’]+")
_SPACED_WORD = re.compile(r"(?<!\S)(\S++)\s")
_FEW_FIGURES = re.compile(r"\d{1,2}")


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\S+", text))


_ABBREVIATIONS = _words(
    "mr mrs ms messrs dr prof st mt gen col capt cpt cmdr lt maj sgt cpl pvt adm rev fr hon sen gov rep pres supt "
    "vs v eg ie e.g i.e nos fig vol approx cf viz "
    "z.b d.h u.a bzw ca nr str hr evtl ggf usw m mme mlle p.ex sig sra av"
)
"""Abbreviations that never end a sentence."""
_LAST_WORDS = _words("etc inc ltd co corp bros jr sr dept est a.m p.m u.s u.k e.u u.n d.c b.c a.d ph.d m.d al")
"""Abbreviations that end a sentence if the next word begins one."""
_BEFORE_NUMBERS = _words(
    "no p pp b c d s vv ll ch sec art eq para nos vols figs jan feb mar apr jun jul aug sep sept oct nov dec"
)
"""Abbreviations before a number; otherwise words, which may end a sentence."""
_AMONG_WORDS = re.compile(
    rf"(?:[^\W\d_],?|\b(?:{'|'.join(sorted(_BEFORE_NUMBERS | {'vol', 'fig'}))})\.) \d{{1,2}}\Z", re.IGNORECASE
)
"""A number in a sentence, not the number of a list item."""
_FIRST_WORDS = _words(
    "He She It They We I You The A An In On At But And Then There This That These Those My Our His Her Their Your When "
    "If So Now Please What Who Why How Where While After Before As For From With Not No Yes Let's It's I'm He's She's "
    "They're We're You're I've I'll Don't Isn't"
)
"""Words that are capitalised because they begin a sentence."""
_SAYING = (
    "said|says|asked|asks|cried|replied|answered|added|whispered|shouted|called|exclaimed|murmured|muttered|continued|"
    "went on|began|demanded|insisted|repeated|snapped|sighed|laughed|yelled|screamed|told|wondered|thought|remarked"
)
_SPEAKER_SAYS = re.compile(rf"(?:[A-ZÀ-Þ][\w.'’-]*\s+){{1,3}}(?:{_SAYING})\b")
_MOST_WORDS = 4  # a name of three words and a verb


@dataclass(frozen=True, slots=True)
class Ends:
    """The ends of sentences in a text, and where to continue when more of it arrives."""

    places: list[int]  # indices after the last character of each sentence
    settled: int  # up to this index, later text does not change the result
    has_word: bool  # whether there is a word between the last end and ``settled``


def find_ends(text: str, start: int = 0, has_word: bool = False, is_whole: bool = True) -> Ends:
    """The ends from ``start`` on, which must not be inside a tag.

    ``has_word``: whether the sentence has a word before ``start``. Text without a word is not a sentence: it belongs to
    the next one, or at the end of the text to the previous one. With ``is_whole`` false, more text may arrive, and ends
    that it could change are left for later.
    """
    begin = max(0, start - _NEAR)
    masked = _HIDDEN.sub(_masked, text[begin:])
    limit = len(masked)
    if not is_whole and (opened := _OPENED.search(masked, max(start - begin, limit - FAR))):
        limit = opened.start()
    places, seen = list[int](), start - begin
    settled = limit
    for end in _END.finditer(masked, start - begin):
        if end.start() >= limit:
            break
        is_end = _ends_sentence(masked, end, limit, is_whole or len(masked) - end.start() > FAR)
        if is_end is None:
            settled = end.start()
            break
        if is_end:
            has_word = has_word or bool(_WORD.search(masked, seen, end.end()))
            seen = end.end()
            if has_word:
                places.append(begin + end.end())
                has_word = False
    if not is_whole:
        settled = max(seen, min(settled, len(masked[:limit].rstrip(f"{_STOPS}{_CLOSING}。！？｡”’」』） \n\t\r\u00a0"))))
        settled = max(settled, limit - FAR) if limit - settled > FAR else settled
    has_word = has_word or bool(_WORD.search(masked, seen, settled))
    if is_whole and places and not has_word:
        places.pop()
    return Ends(places, begin + settled, has_word)


def _masked(match: re.Match[str]) -> str:
    """A tag, an entity or an invisible character as neutral characters of the same length."""
    hidden = match[0]
    if hidden[0] == "&":
        sign = unescape(hidden)[:1]
    elif hidden[0] in "[<":
        sign = ")" if CITATION.fullmatch(hidden) else _TAG
    else:
        sign = "_"  # invisible: treated as a closing mark, so that it does not separate a stop from the next space
    return sign * len(hidden)


def _ends_sentence(text: str, end: re.Match[str], limit: int, is_whole: bool) -> bool | None:
    """Whether a sentence ends here in a masked text; None if that depends on text after ``limit``."""
    stops, closing, wide_stops, wide_closing = end.groups()
    if wide_stops:
        sign = text[end.end() : min(limit, end.end() + 1)]
        return None if not sign and not is_whole else not (wide_closing and sign == "と")
    if stops is None or stops[0] not in ".!?…":
        return True
    following = _INSIDE.search(text, end.end())
    if (
        following is None
        or (following[0] == "&" and following.start() >= limit)
        or _DOTS.match(text, following.start())
    ):
        return True if is_whole else None
    if "\n" in text[end.end() : following.start()]:
        return True
    is_quoted = not _QUOTES.isdisjoint(closing)
    if following[0].islower():
        return not (is_quoted or ")" in closing or "]" in closing or stops.strip(". …\u00a0") == "")
    if is_quoted:
        return _is_not_said_by(text[following.start() : min(limit, following.start() + _NEAR)], is_whole)
    return stops != "." or _is_full_stop(text, end.start(), following.start(), limit, is_whole)


def _is_not_said_by(following: str, is_whole: bool) -> bool | None:
    """Whether the text after a quotation does not name its speaker, as '"Why?" Anna asked.' does."""
    if _SPEAKER_SAYS.match(following):
        return False
    words = _SPACED_WORD.findall(following)
    may_be = all(word[0].isupper() for word in words) and len(words) < _MOST_WORDS and len(following) < _NEAR
    return None if may_be and not is_whole else True


def _is_full_stop(text: str, at: int, following: int, limit: int, is_whole: bool) -> bool | None:
    """Whether the stop ends a sentence, rather than an abbreviation, an initial or an ordinal number."""
    before = text[max(0, at - _NEAR) : at]
    last = _BEFORE_A_WORD.split(before)[-1]
    folded = last.lower()
    if folded in _ABBREVIATIONS:
        return False
    if text[following] in (_TAG, "[", "<"):
        return True
    if len(last) == 1 and last.islower():  # "z. B.", "d. h.", "i. d. R."
        if following + 1 >= limit and not is_whole:
            return None
        if text[following].isalpha() and text[following + 1 : following + 2] == ".":
            return False
    if folded in _BEFORE_NUMBERS:
        return not text[following].isdigit()
    is_number = bool(_FEW_FIGURES.fullmatch(last))
    if not is_number and folded not in _LAST_WORDS and not _INITIAL.fullmatch(last):
        return True
    if is_number and not _AMONG_WORDS.search(before):
        return False
    word = _LETTERS.match(text, following, limit)
    if word and word.end() == limit and not is_whole:
        return None
    if word is None or word[0] not in _FIRST_WORDS:
        return False
    return len(word[0]) > 1 or text[word.end() : word.end() + 1] != "."  # "J. A. Smith"
