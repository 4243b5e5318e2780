"""Text as read aloud: without markup; with numbers, dates, units, formulas, abbreviations and capitals in words."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Collection
from functools import cache

from normt2s import Normalizer

from speechtext.abbreviations import ABBREVIATIONS, ADDRESSES
from speechtext.capitals import in_small_letters
from speechtext.dates import DATES, SHORT_MONTHS, YEARS
from speechtext.dictionary import PHONEMES, Dictionary
from speechtext.elements import without_elements
from speechtext.figures import AMOUNTS, CALLED, NAMED, SIGNS
from speechtext.language import guess_language, looks_english
from speechtext.markup import without_markup
from speechtext.rules import CURRENCIES, DOLLAR_SIGNS, DOLLARS, ENGLISH, SENTENCE, TABLES, Rule, apply_rules, rule
from speechtext.script import is_blank
from speechtext.tags import TAG, between, read_brackets

log = logging.getLogger(__name__)

_TO_READ = re.compile(
    r"[\d$€£¥₹₩₽₺₪₫₱₴₦₿&%@#+=~§©™®°½¼¾⅐-⅞²³⁰-⁹⁻₀-₉×÷≤≥≠<>]|[A-Za-z]\.|\b(?:[VX]|[IVXLCDM]{2,}|[ivx]+)\b|[Ww]ww|\bvs\b|\bw/|"
    r"^I\.?$|\b[A-Z][a-z]+ I(?:[,;:]|$)|\bI(?: of\b| \(|['’]s\b)|"
    r"(?:King|Queen|Pope|Emperor|Empress|Tsar|Czar|Kaiser|Sultan) \w+ I\b|"
    r"\bb/c\b|[:;]-?[()]|[a-z][-–][A-Z]|(?<!\S)\.[A-Za-z]"
)
_IN_CAPITALS = re.compile(r"[A-ZÀ-ÖØ-Þ]['’]?[A-ZÀ-ÖØ-Þ]")
"""A paragraph that matches neither of these needs no normalisation."""
_SENTENCES = re.compile(r"[^\n]{1,800}(?:(?<=[.!?;]) |(?=\n)|\Z)|[^\n]{1,800}(?: |(?=\n)|\Z)|[^\n]{800}|\n+")
"""Texts processed in one go: bounded, so that the time is linear in the length of the text."""
_FORMULA = re.compile(
    r"\$\$(?P<display>[^$]{1,2000})\$\$"
    r"|(?<![\\$\w])\$(?![\s$])(?P<inline>[^$\n]{1,500})(?<![\s\\])\$(?![\w$])"
    r"|\\\((?P<round>[^\\\n]{0,500}(?:\\[^()\n][^\\\n]{0,500}){0,99})\\\)"
    r"|\\\[(?P<square>[^\\]{0,500}(?:\\[^\[\]][^\\]{0,500}){0,99})\\\]"
)
"""Between the delimiters of TeX and Markdown."""
_TEX = re.compile(r"\\[A-Za-z]{2,}|[_^](?:[\w{\\]|[+−-]\d)")  # a command, an index or a power
_SYMBOLS = re.compile(r"[A-Za-z\d\s=+*/()<>.,|'!\u2190-\u22ff\u0370-\u03ff×÷±·′-]+")
_WORD = re.compile(r"[A-Za-z]{2}")
_COMMAND = re.compile(r"\\([A-Za-z]+)\*?|\\.")
_LAYOUT = re.compile(r"[{}&$~]|\\\\")
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


def as_said(
    text: str, tags: Collection[str] | None = None, dictionary: Dictionary | None = None, normalizes: bool = True
) -> str:
    """The text as a model should read it, with brackets only around tags.

    ``text``: from `clean_signs`. ``tags``: the model's tags, None if it takes any words in brackets as one.
    ``normalizes``: whether markup is removed, and numbers and abbreviations are written as words; a text of nothing but
    markup stays. Blocking: about 1 ms per sentence.
    """
    plain = without_markup(with_formulas_said(without_elements(text))) if normalizes else text
    said = read_brackets(text if is_blank(plain) else plain, tags)
    if dictionary is not None:
        said = dictionary.read(said)
    return normalised(said) if normalizes else said


def normalised(text: str) -> str:
    """Write numbers, abbreviations etc. as words: "$3.50" becomes "three dollars and fifty cents".

    [tags], <|speaker:0|> marks and paragraphs in languages other than English stay. Blocking: under 1 ms per sentence.
    """
    read = "".join(_paragraph(piece) for piece in re.split(r"(\n+)", text))
    return read if read.strip() else text


def _paragraph(text: str) -> str:
    if not (_TO_READ.search(text) or _IN_CAPITALS.search(text)) or not looks_english(TAG.sub(" ", text)):
        return text
    is_start = True

    def read(piece: str) -> str:
        nonlocal is_start
        said = list[str]()
        for sentences in _SENTENCES.findall(piece):
            said.append(_read(sentences, is_start))
            is_start = sentences.rstrip().endswith(_STOPS) if sentences.strip() else is_start
        return "".join(said)

    return between(_PROTECTED.finditer(text), text, read)


def _read(sentences: str, is_start: bool) -> str:
    """Normalise sentences; spaces at both ends stay, as a tag may come before or after."""
    inner = sentences.strip()
    start = sentences.index(inner)
    read = in_small_letters(inner, is_start=is_start) if _IN_CAPITALS.search(inner) else inner
    if _TO_READ.search(read):
        read = _in_words(_normalizer(), apply_rules(_RULES, _with_usual_figures(read))).translate(_AS_WRITTEN)
        read = _BEGUN.sub(lambda begun: begun[1].upper(), read if is_start else read.removeprefix(SENTENCE))
    return sentences[:start] + read + sentences[start + len(inner) :]


def _with_usual_figures(text: str) -> str:
    """With 0 to 9 for the figures of other scripts; beside TeX's commands the library takes ² for one, and fails."""
    text = _FIGURE.sub(lambda figure: str(unicodedata.decimal(figure[0])), text)
    if "\\" in text:
        text = "".join(f"^{unicodedata.digit(one)}" if one.isdigit() > one.isdecimal() else one for one in text)
    return text


def _in_words(normalizer: Normalizer, text: str) -> str:
    try:
        return normalizer.normalize(text)
    except Exception as error:  # noqa: BLE001  (whatever the library fails at, the text can be spoken as written)
        log.warning("a text is read as written, because normt2s failed: %s", type(error).__name__)
        return text


@cache
def _normalizer() -> Normalizer:
    """The library's normalizer with our English, units and currencies; dashes, titles and formulas are left alone."""
    normalizer = Normalizer(ENGLISH, latex="keep")
    # Units that the library lacks or gets wrong.
    for unit, (singular, plural) in TABLES["units"].items():
        normalizer.add_unit(unit, singular, plural)
    for before, sign in DOLLAR_SIGNS.items():
        normalizer.add_currency(sign, (f"{DOLLARS[before]} dollar", f"{DOLLARS[before]} dollars"), ("cent", "cents"))
    for sign, (singular, plural, coin, coins) in CURRENCIES.items():
        normalizer.add_currency(sign, (singular, plural), (coin, coins))
    # Abbreviations that are read as written, or handled by our rules.
    for abbreviation in TABLES["left_as_written"]:
        for form in {abbreviation, abbreviation.capitalize() if abbreviation[0].islower() else abbreviation}:
            if form in normalizer.lexicon.abbreviations:
                normalizer.lexicon.remove("abbreviations", form)
    for sign in tuple(normalizer.lexicon.punctuation):
        normalizer.lexicon.remove("punctuation", sign)
    return normalizer


def with_formulas_said(text: str) -> str:
    """The text with its formulas in words. Prices such as $5 are no formulas."""
    if "$" not in text and "\\" not in text:
        return text
    language = guess_language(text) or "en"
    return _FORMULA.sub(lambda formula: _formula_said(formula, language), text)


def _formula_said(formula: re.Match[str], language: str) -> str:
    inner = next(group for group in formula.groups() if group is not None)
    # Single letters are variables; an amount begins with a figure.
    is_symbols = _SYMBOLS.fullmatch(inner) and not _WORD.search(inner) and any(map(str.isalpha, inner))
    if not (_TEX.search(inner) or (is_symbols and not inner[0].isdigit())):
        return formula[0]
    if language in ("en", "de"):
        said = _in_words(_formula_normalizer(language), _with_usual_figures(f"${' '.join(inner.split())}$"))
        if "$" not in said and "\\" not in said:
            return said
    return " ".join(_LAYOUT.sub(" ", _COMMAND.sub(lambda command: f" {command[1] or ''} ", inner)).split())


@cache
def _formula_normalizer(language: str) -> Normalizer:
    return Normalizer(ENGLISH if language == "en" else language, latex="speak")
