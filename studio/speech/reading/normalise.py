"""A text as it is read aloud: paragraph by paragraph, tags as they are, and only where it is English."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from normt2s import Normalizer

from studio.library.pronunciations.entries import PHONEMES
from studio.speech.reading.abbreviations import ABBREVIATIONS
from studio.speech.reading.amounts import AMOUNTS, SIGNS
from studio.speech.reading.capitals import in_small_letters
from studio.speech.reading.dates import DATES, SHORT_MONTHS, YEARS
from studio.speech.reading.english import DOLLAR_SIGNS, english_normalizer
from studio.speech.reading.figures import CALLED, NAMED
from studio.speech.reading.language import looks_english
from studio.speech.reading.rules import SENTENCE, Rule, apply_rules, rule
from studio.speech.reading.web_addresses import ADDRESSES
from studio.speech.text import TAG

_TO_READ = re.compile(
    r"[\d$€£¥₹₩₽₺₪₫₱₴₦₿&%@#+=~§©™®°½¼¾⅐-⅞²³⁰-⁹⁻×÷≤≥≠<>]|[A-Za-z]\.|\b(?:[VX]|[IVXLCDM]{2,}|[ivx]+)\b|[Ww]ww|\bvs\b|\bw/|"
    r"^I\.?$|\bI(?: of\b| \(|['’]s\b)|(?:King|Queen|Pope|Emperor|Empress|Tsar|Czar|Kaiser|Sultan) \w+ I\b|"
    r"\bb/c\b|[:;]-?[()]|[a-z][-–][A-Z]"
)
_IN_CAPITALS = re.compile(r"[A-ZÀ-ÖØ-Þ]['’]?[A-ZÀ-ÖØ-Þ]")
"""What a paragraph must have some of for there to be anything to read otherwise than it is written."""
_SENTENCES = re.compile(r"[^\n]{1,800}(?:(?<=[.!?;]) |(?=\n)|\Z)|[^\n]{1,800}(?: |(?=\n)|\Z)|[^\n]{800}|\n+")
"""What is read in one go, so that the time it takes grows with the text and not with its square."""
_UNREAD = re.compile(rf"{'[^<]{0,200}'.join(map(re.escape, PHONEMES))}|{TAG.pattern}")
"""What no word is in: tags, and what is written as sounds."""
_STOPS = (".", "!", "?", ":", "…")
_FIGURE = re.compile(r"[^\D0-9]")
_AS_WRITTEN = str.maketrans({sign: f"{before}$" for before, sign in DOLLAR_SIGNS.items()})
"""For what turned out to be no amount, or stands where nothing is read."""
_BEGUN = re.compile(rf"{SENTENCE}([\"'“‘(]?.?)")


_BEGINNINGS: tuple[Rule, ...] = (
    # Not after an initial: the stop of an abbreviation that is not known ends no sentence.
    rule(r"(?:^|(?<=[^\W\d_]{2}[.!?] )|(?<=[\d)\"”’%][.!?] )|(?<=[.!?][\"'”’)] ))(?=[\"'“‘]?[^\w\s\"'“‘(]{0,2}\d)",
        SENTENCE),
)  # fmt: skip
_RULES = (
    *ADDRESSES, *SIGNS, *SHORT_MONTHS, *ABBREVIATIONS, *_BEGINNINGS, *DATES, *CALLED, *NAMED, *AMOUNTS, *YEARS
)  # fmt: skip


def normalised(text: str) -> str:
    """The same text with everything that is not written as it is said in words: "$3.50" as "three dollars and fifty
    cents". Blocking: less than a millisecond a sentence.

    [tags] and <|speaker:0|> marks stay as they are, and so does every paragraph in another language than English.
    """
    read = "".join(_paragraph(each) for each in re.split(r"(\n+)", text))
    return read if read.strip() else text


def _paragraph(text: str) -> str:
    if not (_TO_READ.search(text) or _IN_CAPITALS.search(text)) or not looks_english(TAG.sub(" ", text)):
        return text
    read, at, begins = list[str](), 0, True
    for tag in (*_UNREAD.finditer(text), None):
        for sentences in _SENTENCES.findall(text[at : tag.start() if tag else len(text)]):
            read.append(_read(sentences, begins))
            begins = sentences.rstrip().endswith(_STOPS) if sentences.strip() else begins
        if tag:
            read.append(tag[0])
            at = tag.end()
    return "".join(read)


def _read(sentences: str, begins: bool) -> str:
    """Spaces at both ends stay: what comes before or after may be a tag."""
    inner = sentences.strip()
    start = sentences.index(inner)
    read = in_small_letters(inner, begins=begins) if _IN_CAPITALS.search(inner) else inner
    if _TO_READ.search(read):
        read = _normalizer().normalize(apply_rules(_RULES, _FIGURE.sub(_plain_figure, read))).translate(_AS_WRITTEN)
        read = _BEGUN.sub(_capital, read if begins else read.removeprefix(SENTENCE))
    return sentences[:start] + read + sentences[start + len(inner) :]


def _plain_figure(match: re.Match[str]) -> str:
    return str(unicodedata.decimal(match[0]))


def _capital(match: re.Match[str]) -> str:
    return match[1].upper()


@cache
def _normalizer() -> Normalizer:
    return english_normalizer()
