"""Guesses the language of a text by its script and its commonest words."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from pathlib import Path

_WORD = re.compile(r"(?<![\w@./:-])[^\W\d_]+(?:['’][^\W\d_]+)*(?![\w@/]|[.:]\w)")
LANGUAGE_TAG = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,4}")  # a BCP 47 tag such as en or pt-BR
SAMPLE = 4000  # characters of a text that are examined
_COMMON = {
    code: frozenset(words)
    for code, words in json.loads(Path(__file__).with_name("common-words.json").read_text("utf-8")).items()
}
"""Frequent words by ISO 639-1 code, for languages in Latin script."""
_SCRIPTS = {
    "HANGUL": "ko", "HIRAGANA": "ja", "KATAKANA": "ja", "CJK": "zh", "CYRILLIC": "ru", "ARABIC": "ar", "HEBREW": "he",
    "GREEK": "el", "DEVANAGARI": "hi", "BENGALI": "bn", "TAMIL": "ta", "TELUGU": "te", "THAI": "th", "ARMENIAN": "hy",
    "GEORGIAN": "ka",
}  # fmt: skip


def guess_language(text: str) -> str | None:
    """An ISO 639-1 code: by the script if it belongs to one major language, else by the commonest words.

    None if there are too few words, or if the language is not one of those known here.
    """
    letters = _letters(text)
    if not letters:
        return None
    if letters["HIRAGANA"] + letters["KATAKANA"] > letters["CJK"] / 20 and letters["CJK"] > letters["LATIN"]:
        return "ja"
    script = max(letters, key=lambda name: letters[name])
    return _by_words(text[:SAMPLE]) if script == "LATIN" else _SCRIPTS.get(script)


def looks_english(text: str) -> bool:
    """Whether a text may be English: short texts without evidence of another language count as English."""
    if guess_language(text) not in ("en", None):
        return False
    letters = _letters(text)
    return letters["LATIN"] * 2 >= sum(letters.values())  # also in scripts unknown here


def _letters(text: str) -> Counter[str]:
    """Number of letters by script."""
    return Counter(_script(sign) for sign in text[:SAMPLE] if sign.isalpha())


def _by_words(text: str) -> str | None:
    """The language with the most matching words, if there are at least two and no tie."""
    words = [word.lower() for word in _WORD.findall(text)]
    hits = Counter({code: sum(word in common for word in words) for code, common in _COMMON.items()})
    (language, count), (_, second_count) = hits.most_common(2)
    return language if count >= 2 and count > second_count else None


def _script(sign: str) -> str:
    if sign.isascii():
        return "LATIN"
    name = unicodedata.name(sign, "").partition(" ")[0].partition("-")[0]
    return "LATIN" if name in ("MICRO", "FEMININE", "MASCULINE", "DOUBLE", "SCRIPT", "MODIFIER") else name
