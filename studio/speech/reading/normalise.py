"""Normalises a text paragraph by paragraph: tags stay, and so do paragraphs that are not English."""

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
"""A paragraph that matches neither of these needs no normalisation."""
_SENTENCES = re.compile(r"[^\n]{1,800}(?:(?<=[.!?;]) |(?=\n)|\Z)|[^\n]{1,800}(?: |(?=\n)|\Z)|[^\n]{800}|\n+")
"""Texts processed in one go: bounded, so that the time is linear in the length of the text."""
_PROTECTED = re.compile(rf"{'[^<]{0,200}'.join(map(re.escape, PHONEMES))}|{TAG.pattern}")
"""Tags and phonemes, which stay as they are."""
_STOPS = (".", "!", "?", ":", "…")
_FIGURE = re.compile(r"[^\D0-9]")
_AS_WRITTEN = str.maketrans({sign: f"{before}$" for before, sign in DOLLAR_SIGNS.items()})
"""Restores dollar signs that are not part of an amount."""
_BEGUN = re.compile(rf"{SENTENCE}([\"'“‘(]?.?)")
_BEGINNINGS: tuple[Rule, ...] = (
    # Not after an initial: the full stop of an unknown abbreviation does not end a sentence.
    rule(r"(?:^|(?<=[^\W\d_]{2}[.!?] )|(?<=[\d)\"”’%][.!?] )|(?<=[.!?][\"'”’)] ))(?=[\"'“‘]?[^\w\s\"'“‘(]{0,2}\d)",
        SENTENCE),
)  # fmt: skip
_RULES = (
    *ADDRESSES, *SIGNS, *SHORT_MONTHS, *ABBREVIATIONS, *_BEGINNINGS, *DATES, *CALLED, *NAMED, *AMOUNTS, *YEARS
)  # fmt: skip


def normalised(text: str) -> str:
    """Write numbers, abbreviations etc. as words: "$3.50" becomes "three dollars and fifty cents".

    [tags], <|speaker:0|> marks and paragraphs in languages other than English stay. Blocking: under 1 ms per sentence.
    """
    read = "".join(_paragraph(piece) for piece in re.split(r"(\n+)", text))
    return read if read.strip() else text


def _paragraph(text: str) -> str:
    if not (_TO_READ.search(text) or _IN_CAPITALS.search(text)) or not looks_english(TAG.sub(" ", text)):
        return text
    read, at, is_start = list[str](), 0, True
    for tag in (*_PROTECTED.finditer(text), None):
        for sentences in _SENTENCES.findall(text[at : tag.start() if tag else len(text)]):
            read.append(_read(sentences, is_start))
            is_start = sentences.rstrip().endswith(_STOPS) if sentences.strip() else is_start
        if tag:
            read.append(tag[0])
            at = tag.end()
    return "".join(read)


def _read(sentences: str, is_start: bool) -> str:
    """Normalise sentences; spaces at both ends stay, as a tag may come before or after."""
    inner = sentences.strip()
    start = sentences.index(inner)
    read = in_small_letters(inner, is_start=is_start) if _IN_CAPITALS.search(inner) else inner
    if _TO_READ.search(read):
        read = _normalizer().normalize(apply_rules(_RULES, _FIGURE.sub(_plain_figure, read))).translate(_AS_WRITTEN)
        read = _BEGUN.sub(_capital, read if is_start else read.removeprefix(SENTENCE))
    return sentences[:start] + read + sentences[start + len(inner) :]


def _plain_figure(match: re.Match[str]) -> str:
    return str(unicodedata.decimal(match[0]))


def _capital(match: re.Match[str]) -> str:
    return match[1].upper()


@cache
def _normalizer() -> Normalizer:
    return english_normalizer()
