"""Lowercases words in capitals; acronyms stay as written, which is how models learn to pronounce them.

Models spell out or garble "DO NOT IGNORE IT". Three rules tell "NOW" from "FBI" without a dictionary:

- Two or three letters are a word if it is a common one (SHORT).
- Four or more are a word if they can be pronounced in English and are not a known acronym (KEPT).
- Ambiguous ones ("IT", "US", "WHO") are words next to other words in capitals, else acronyms. The same holds for other
  short ones that form a syllable, as many names do ("TIM").
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from speechtext.abbreviations import KINGS
from speechtext.rules import TABLES, roman, words_of

SHORT = frozenset(TABLES["short_words"])
AMBIGUOUS = words_of("IT US WHO SAT")
KEPT = frozenset(TABLES["acronyms"])
"""Acronyms that look like words. Models know their written form, whether it is spelled or pronounced."""
_ONSETS = (
    "b|bl|br|c|ch|chl|chr|cl|cr|d|dr|dw|f|fl|fr|g|gh|gl|gn|gr|h|j|k|kh|kl|kn|kr|l|ll|m|n|p|ph|phl|phr|pl|pn|pr|ps|q|qu|"
    "r|rh|s|sc|sch|scl|scr|sh|shr|sk|sl|sm|sn|sp|sph|spl|spr|squ|st|str|sv|sw|t|th|thr|thw|tr|ts|tw|v|vl|w|wh|wr|x|z|zh"
)
"""Consonants that may begin a syllable."""
_CODAS = (
    "b|bb|bt|c|ch|ck|ct|d|dd|dg|dth|f|ff|ft|fth|g|gg|gh|ght|ghth|gm|gn|h|hn|k|kk|l|lb|lch|ld|lf|lfth|lft|lk|ll|lm|ln|lp|lph|lpt|lsh|lt|"
    "lth|lv|m|mb|mm|mn|mp|mph|mpt|n|nc|nch|nct|nd|ng|ngth|nk|nn|nst|nt|nth|nx|p|ph|pp|pt|pth|q|r|rb|rc|rch|rd|rf|rg|"
    "rgh|rk|rl|rld|rm|rmth|rn|rp|rph|rr|rsh|rst|rt|rth|rtz|rv|s|sc|sch|sh|sk|sm|sp|ss|st|sth|t|tch|tsch|th|thm|tt|tz|v|w|wd|wk|wl|wn|"
    "wth|x|xt|xth|z|zz"
)
"""Consonants that may end a syllable, without the endings of plurals and past tenses."""
_VOWELS = "[aeiouy]{1,4}"
_BETWEEN = rf"(?:(?:{_CODAS})s?(?:{_ONSETS})?|s(?:{_ONSETS})?|{_ONSETS})"
"""Never empty: with consonants between vowels there is only one way to match, so no backtracking."""
_PRONOUNCED = re.compile(
    rf"(?:{_ONSETS})?{_VOWELS}(?:{_BETWEEN}{_VOWELS}){{0,12}}(?:{_CODAS})?(?:e?[ds])?", re.IGNORECASE
)
_ONE_SYLLABLE = re.compile(r"[BCDFGHJKLMNPRSTVWYZ][AEIOUY][BDFGKLMNPRSTXYZ]|[BCDFGHJKLMNPRSTVWYZ][AEIOU]{2}")
"""The commonest shapes of three letters, as most short names have."""
_DRAWN_OUT = re.compile(r"(?=[A-Z]{4})(?=[A-Z]*?([AEGHIMORSUZ])\1\1)[A-Z]*+")  # 'NOOO', 'AAAH', 'GRRR'
_SCOTTISH = re.compile(r"MC[A-Z]{3,20}")  # 'MCDONALD'
_STREETS = words_of("ST AVE RD BLVD LN DR SQ HWY PL CT PKWY")
_TITLES = words_of("MR MRS MS DR PROF ST MT FT GEN COL CAPT LT SGT REV HON SEN GOV REP PRES ADM")
_NUMBERED = words_of("NO NOS VOL CH FIG SEC EQ ART PARA APPROX APT EXT TEL")
_SHORT_MONTHS = words_of("JAN FEB MAR APR JUN JUL AUG SEP SEPT OCT NOV DEC")
_SHORT_DAYS = words_of("MON TUE TUES WED THU THURS FRI SAT SUN")
_NAMES = words_of(
    "JANUARY FEBRUARY MARCH APRIL MAY JUNE JULY AUGUST SEPTEMBER OCTOBER NOVEMBER DECEMBER MONDAY TUESDAY "
    "WEDNESDAY THURSDAY FRIDAY SATURDAY SUNDAY"
) | frozenset(KINGS.upper().split("|"))
"""Names that other rules recognise by their capital."""
_MAX_ACRONYM = 30  # letters; longer tokens would take too long to match
_AFTER_AM = words_of("I HOW WHO WHAT WHERE WHEN WHY")
_LETTER = "A-ZÀ-ÖØ-Þ"
_TOKEN = re.compile(
    rf"(?<![\w@#$&\\])(?<!\d[-/])(?<![A-Za-z]\.)[{_LETTER}]+(?:['’][{_LETTER}]+)*(?![\w@&\\]|[-/]?\d|\.\w)"
)
_SMALL = re.compile(r"[^\W\d_]")
_SENTENCE_START = re.compile(r"(?:^|[.!?…][\"'”’)\]]{0,2}\s+)[\"'“‘(\[*_]{0,3}$")
"""Text before the first word of a sentence."""


def in_small_letters(text: str, *, is_start: bool = True) -> str:
    """Lowercase words in capitals, except for the first letter of sentences and of names that other rules know.

    Acronyms, Roman numerals and other words stay as they are. ``is_start``: whether the text begins a sentence.
    """
    if not is_start:
        return in_small_letters(f"-{text}")[1:]
    read, at = list[str](), 0
    for run in _runs(text):
        stems = (_parts(token[0])[0] for token in run)
        is_shouted = len(run) > 1 and any(
            len(stem) > 1 and stem not in AMBIGUOUS and _is_word(stem, "", is_shouted=False) for stem in stems
        )
        for index, token in enumerate(run):
            read += [text[at : token.start()], _read(token, run, index, is_shouted=is_shouted)]
            at = token.end()
    return "".join([*read, text[at:]])


def _runs(text: str) -> Iterator[list[re.Match[str]]]:
    """Words in capitals separated only by spaces, digits and punctuation."""
    run = list[re.Match[str]]()
    for token in _TOKEN.finditer(text):
        if run and _SMALL.search(text, run[-1].end(), token.start()):
            yield run
            run = []
        run.append(token)
    if run:
        yield run


def _read(token: re.Match[str], run: list[re.Match[str]], index: int, *, is_shouted: bool) -> str:
    word, following = token[0], token.string[token.end() : token.end() + 3]
    stem, apostrophe, ending = _parts(word)
    before = run[index - 1][0] if index else ""
    if len(stem) == 1:
        is_article = stem == "A" and is_shouted and (index + 1 < len(run) or before in SHORT)
        is_article = is_article and not _SENTENCE_START.search(_before(token))
        is_name = stem in "ODL" and len(ending) > 2 and ending != "CLOCK"
        small = ending.capitalize() if is_name else ending.lower()
        return (stem.lower() if is_article or ending == "CLOCK" else stem) + apostrophe + small
    if _SCOTTISH.fullmatch(stem) and _PRONOUNCED.fullmatch(stem[2:]):
        return f"Mc{stem[2:].capitalize()}{apostrophe}{ending.lower()}"
    if _is_abbreviation(stem, before, following) or _is_in_range(token):
        return word.capitalize()
    if not _is_word(stem, before, is_shouted=is_shouted) and (apostrophe == "" or ending == "S"):
        return stem + apostrophe + ending.lower()
    small = word.lower()
    is_street = re.match(r" (?:ST|AVE|RD|BLVD|LN|DR|HWY|PKWY)\b", token.string[token.end() : token.end() + 6])
    is_named = stem in _NAMES or is_street or (before in _TITLES and _before(token).endswith(". "))
    return small[0].upper() + small[1:] if is_named or _SENTENCE_START.search(_before(token)) else small


def _before(token: re.Match[str]) -> str:
    """The text just before a token; a leading "-" means that there is more, so that it is not the start of the text."""
    start = token.start()
    return ("-" if start > 8 else "") + token.string[max(0, start - 8) : start]


def _parts(word: str) -> tuple[str, str, str]:
    """Split "DON’T" into "DON", "’" and "T"."""
    match = re.search("['’]", word)
    return (word[: match.start()], match[0], word[match.end() :]) if match else (word, "", "")


def _is_abbreviation(stem: str, before: str, following: str) -> bool:
    """Whether it is an abbreviation, as in 'DR. SMITH', 'NO. 5', 'MAR. 3' and 'MAIN ST.'."""
    if stem in _SHORT_MONTHS:
        return bool(re.match(r"\.? ?\d", following))
    if stem in _STREETS and len(before) > 3 and following[:1] == ".":
        return True
    is_title = stem in _TITLES and re.match(rf"\. [{_LETTER}]", following)
    return bool(is_title or (stem in _NUMBERED and re.match(r"\. ?\d", following)))


def _is_in_range(token: re.Match[str]) -> bool:
    """Whether it is part of a range, as in 'MON-FRI' and 'JAN–MAR'."""
    beside = _before(token)[-1:] + token.string[token.end() : token.end() + 1]
    return token[0] in _SHORT_DAYS | _SHORT_MONTHS and ("-" in beside or "–" in beside)


def _is_word(stem: str, before: str, *, is_shouted: bool) -> bool:
    if stem in AMBIGUOUS:
        return is_shouted and before != "THE"
    if stem == "AM":  # otherwise the time of day
        return before in _AFTER_AM
    if stem in KEPT:
        return is_shouted and stem in SHORT
    if stem in SHORT or stem in _NAMES or len(stem) > _MAX_ACRONYM:
        return True
    if roman(stem) is not None:
        return False
    plain = "".join(sign for sign in unicodedata.normalize("NFD", stem) if not unicodedata.combining(sign))
    if len(plain) < 4:
        return is_shouted and bool(_ONE_SYLLABLE.fullmatch(plain))
    return bool(_PRONOUNCED.fullmatch(plain) or _DRAWN_OUT.fullmatch(plain))
