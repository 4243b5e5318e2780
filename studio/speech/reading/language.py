"""Guesses the language of a text by its script and its commonest words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

_WORD = re.compile(r"(?<![\w@./:-])[^\W\d_]+(?:['’][^\W\d_]+)*(?![\w@/]|[.:]\w)")
SAMPLE = 4000
"""Characters of a text that are examined."""
COMMON_WORDS = {
    "en": "the and of to in is was that it for on with as at by this are be have had not but from or an they you he "
    "she we his her my your will would there which who when what all can do if me so out up just please were been has",
    "de": "der die das und ist nicht ich ein eine zu den mit von auf für dem des sich auch es an im war sie wir er aus "
    "bei nach wie einen aber noch hat haben werden wird kann uns oder über mir mich nur schon sehr heute kostet um uhr",
    "fr": "le la les et est un une de des du que qui dans en pour pas sur il elle nous vous je ce cette au avec son sa "
    "ses plus mais ne se sont été avoir être par ou où leur aux très heures",
    "es": "el la los las es un una de del que en por para con no se su al lo como más pero sus este esta yo "
    "me mi hay fue son muy ya cuando está las hoy cuesta",
    "it": "il lo la gli le un una di del della che in per con non si su al come più ma sono questo questa io mi ha "
    "ho dei delle nel alla anche costa oggi ore",
    "pt": "os as um uma de do da dos das que em por para com não se no na ao como mais mas seu sua eu ele ela "
    "foi são está muito hoje custa",
    "nl": "de het een en van is niet dat ik te op zijn met voor die er aan maar om ook als bij nog uit naar heeft wij "
    "je wordt deze heb vandaag kost uur",
    "sv": "och att det som en ett är på av för med inte den till har jag om han hon var de vi men så från kostar idag",
    "pl": "na nie się do to że jest jak za od po ale co tak przez dla są był jego ich już kosztuje dziś",
    "tr": "ve bir bu da de için ile çok ne ben sen gibi daha ama var yok olarak kadar sonra bugün saat",
}
"""Frequent words by ISO 639-1 code, for languages in Latin script."""
_COMMON = {code: frozenset(words.split()) for code, words in COMMON_WORDS.items()}
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
    return guess_language(text) in ("en", None) and not _is_mostly_foreign(text)


def _is_mostly_foreign(text: str) -> bool:
    """Whether most letters are not Latin, in scripts unknown here too."""
    letters = _letters(text)
    return letters["LATIN"] * 2 < sum(letters.values())


def _letters(text: str) -> Counter[str]:
    """Number of letters by script."""
    return Counter(_script(sign) for sign in text[:SAMPLE] if sign.isalpha())


def _by_words(text: str) -> str | None:
    """The language with the most matching words, if there are at least two and no tie."""
    words = [word.lower() for word in _WORD.findall(text)]
    hits = Counter({code: sum(word in common for word in words) for code, common in _COMMON.items()})
    (first, most), (_, second) = hits.most_common(2)
    return first if most >= 2 and most > second else None


def _script(sign: str) -> str:
    if sign.isascii():
        return "LATIN"
    name = unicodedata.name(sign, "").partition(" ")[0].partition("-")[0]
    return "LATIN" if name in ("MICRO", "FEMININE", "MASCULINE", "DOUBLE", "SCRIPT", "MODIFIER") else name
