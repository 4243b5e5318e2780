"""Where the sentences of a text end: at stops and lines, but at no abbreviation, and never inside a tag."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape

from studio.speech.script.brackets import TAG
from studio.speech.script.markup import CITATION
from studio.speech.script.signs import ENTITY

FAR = 256
"""Characters that are looked at again when more text comes: no tag, and no end of a sentence, is longer."""
_NEAR = 64
"""Characters before a stop that are looked at: no abbreviation is longer."""
_TAG = "\ufffc"
"""Stands for each character of a tag: it is not a letter, and what it follows at once may be the end of a sentence."""
_STOPS = ".!?…؟۔।॥"
_CLOSING = "\"'”’»)]*_"
_QUOTES = frozenset("\"'”’»")
_END = re.compile(
    # Scripts that put a space after a sentence. A run of stops is looked at from its first one only: else a line of
    # dots would be gone through from each of them. ". . ." is one run.
    rf"((?<![.!?…])[.!?…]+(?:[ \u00a0][.…]+)*|(?<![؟۔।॥])[؟۔।॥]+)([{re.escape(_CLOSING)}]*)(?=\s|{_TAG})"
    r"|([。！？｡]+)([”’」』）]*)"  # scripts that do not
    r"|\n\s*(?=\n)|\n(?=\s*\S)"  # lines
)
_OPENED = re.compile(r"\[[^\[\]]*\Z|<(?:\|[^|>]*\|?)?\Z|&[#\w]{0,31}\Z")
_HIDDEN = re.compile(rf"{TAG.pattern}|{ENTITY.pattern}|[\u00ad\u200b-\u200f\u2060\ufeff]")
_WORD = re.compile(r"[^\W_]")
_INSIDE = re.compile(r"\S")
_DOTS = re.compile(r"[.…]+\Z")
_BEFORE_A_WORD = re.compile(rf"[\s()\"'“‘\[\]{{。！？｡、，{_TAG}]")
_INITIAL = re.compile(r"(?:\w\.)*[A-ZÀ-Þ]")
_LETTERS = re.compile(r"[\w'’]+")
_SPACED_WORD = re.compile(r"(\S+)\s")
_FEW_FIGURES = re.compile(r"\d{1,2}")


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\S+", text))


_ABBREVIATIONS = _words(
    "mr mrs ms messrs dr prof st mt gen col capt cpt cmdr lt maj sgt cpl pvt adm rev fr hon sen gov rep pres supt "
    "vs v eg ie e.g i.e nos fig vol approx cf viz "
    "z.b d.h u.a bzw ca nr str hr evtl ggf usw m mme mlle p.ex sig sra av"
)
"""A sentence never ends after them: something always follows."""
_LAST_WORDS = _words("etc inc ltd co corp bros jr sr dept est a.m p.m u.s u.k e.u u.n d.c b.c a.d ph.d m.d al")
"""They may end one: then a word follows that begins one."""
_BEFORE_NUMBERS = _words(
    "no p pp b c d s ch sec art eq para nos vols figs jan feb mar apr jun jul aug sep sept oct nov dec"
)
"""Before a number they are abbreviations; else they are words, and may end a sentence."""
_AMONG_WORDS = re.compile(
    rf"(?:[^\W\d_],?|\b(?:{'|'.join(_BEFORE_NUMBERS | {'vol', 'fig'})})\.) \d{{1,2}}\Z", re.IGNORECASE
)
"""A number in a sentence, and not the ordinal number before a point of a list."""
_FIRST_WORDS = _words(
    "He She It They We I You The A An In On At But And Then There This That These Those My Our His Her Their Your When "
    "If So Now Please What Who Why How Where While After Before As For From With Not No Yes Let's It's I'm He's She's "
    "They're We're You're I've I'll Don't Isn't"
)
"""They have a capital because a sentence begins with them."""
_SAYING = (
    "said|says|asked|asks|cried|replied|answered|added|whispered|shouted|called|exclaimed|murmured|muttered|continued|"
    "went on|began|demanded|insisted|repeated|snapped|sighed|laughed|yelled|screamed|told|wondered|thought|remarked"
)
_SPEAKER_SAYS = re.compile(rf"(?:[A-ZÀ-Þ][\w.'’-]*\s+){{1,3}}(?:{_SAYING})\b")
_MOST_WORDS = 4
"""Of a name of three, and what it does."""


@dataclass(frozen=True, slots=True)
class Ends:
    """The ends that were found in a text, and where to look again when more of it comes."""

    places: list[int]
    """Each is the index after the last character of a sentence."""
    settled: int
    """What comes next changes nothing before it."""
    has_word: bool
    """Whether there is a word between the last end and there."""


def find_ends(text: str, start: int = 0, has_word: bool = False, is_whole: bool = True) -> Ends:
    """The ends from ``start`` on, which must not be inside a tag; ``has_word``: whether the sentence has one before it.

    A piece without a word is not a sentence: it goes with the next one, at the end of the text with the one before.
    With ``is_whole`` false more text may come; what that could change is left for then.
    """
    begin = max(0, start - _NEAR)
    masked = _mask(text[begin:])
    limit = len(masked) if is_whole else _open_place(masked, start - begin)
    places, seen = list[int](), start - begin
    settled = limit
    for end in _END.finditer(masked, start - begin):
        if end.start() >= limit:
            break
        ends = _ends_sentence(masked, end, limit, is_whole or len(masked) - end.start() > FAR)
        if ends is None:
            settled = end.start()
            break
        if ends:
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


def _mask(text: str) -> str:
    """The text with tags, entities and invisible signs made harmless, position for position."""
    return _HIDDEN.sub(_masked, text)


def _masked(match: re.Match[str]) -> str:
    hidden = match[0]
    if hidden[0] == "&":
        sign = unescape(hidden)[:1]
    elif hidden[0] in "[<":
        sign = ")" if CITATION.fullmatch(hidden) else _TAG
    else:
        sign = "_"  # invisible: as part of what closes, it parts no stop from the space after it
    return sign * len(hidden)


def _open_place(masked: str, start: int) -> int:
    """Where a tag or an entity begins that may be complete with what comes next; the end of the text for none."""
    opened = _OPENED.search(masked, max(start, len(masked) - FAR))
    return opened.start() if opened else len(masked)


def _ends_sentence(text: str, end: re.Match[str], limit: int, is_whole: bool) -> bool | None:
    """Whether a sentence ends here; None where what comes after ``limit`` may tell. Of a text that is masked."""
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
        return not (is_quoted or stops.strip(". …\u00a0") == "")
    if is_quoted:
        return _is_not_said_by(text[following.start() : min(limit, following.start() + _NEAR)], is_whole)
    return stops != "." or _is_full_stop(text, end.start(), following.start(), limit, is_whole)


def _is_not_said_by(following: str, is_whole: bool) -> bool | None:
    """Whether what follows a quotation is not its speaker, as in '"Why?" Anna asked.'."""
    if _SPEAKER_SAYS.match(following):
        return False
    words = _SPACED_WORD.findall(following)
    may_be = all(word[0].isupper() for word in words) and len(words) < _MOST_WORDS and len(following) < _NEAR
    return None if may_be and not is_whole else True


def _is_full_stop(text: str, at: int, following: int, limit: int, is_whole: bool) -> bool | None:
    """Whether the stop ends a sentence and not an abbreviation, an initial or an ordinal number."""
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
