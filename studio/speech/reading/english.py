"""English number words, and the configuration of the normalisation library: units, currencies, abbreviations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from normt2s import Normalizer
from normt2s.langs.en import English

from studio.paths import json_beside

TABLES: dict[str, Any] = json_beside(__file__, "english.json")
"""Words of all rules here, by the names under which these modules read them."""
UNITS: Mapping[str, Sequence[str]] = TABLES["units"]
"""Units that the library lacks or gets wrong: singular and plural."""
DOLLARS: Mapping[str, str] = TABLES["dollars"]
"""Nationality by the letters before the dollar sign."""
DOLLAR_SIGNS = {before: chr(0xE011 + number) for number, before in enumerate(DOLLARS)}
"""Private characters in place of these, because the library knows only single characters before an amount."""
CURRENCIES: Mapping[str, Sequence[str]] = TABLES["currencies"]
"""Currencies that the library lacks: singular and plural, then those of the smaller coin."""
PLURALS = {sign: names[1] for sign, names in CURRENCIES.items()} | TABLES["plurals"]
"""All currencies except those in DOLLARS."""
LEFT_AS_WRITTEN: Sequence[str] = TABLES["left_as_written"]
"""Abbreviations that the library must leave alone: they are read as written, or handled by our rules."""


class SpokenEnglish(English):
    """English with "and" after hundreds and with AM and PM; years only where one of our rules found one."""

    year_prepositions = ()

    def cardinal(self, n: int, gender: str | None = None) -> str:
        """'one thousand two hundred and five', 'minus three'."""
        if n < 0:
            return f"{self.minus} {self.cardinal(-n)}"
        if n < 100:
            return super().cardinal(n)
        if n < 1000:
            rest = f" and {self.cardinal(n % 100)}" if n % 100 else ""
            return f"{super().cardinal(n // 100)} hundred{rest}"
        size = 1000 ** ((len(str(n)) - 1) // 3)
        head = f"{self.cardinal(n // size)} {super().cardinal(size).partition(' ')[2]}"
        rest = n % size
        return head + (f"{' and ' if rest < 100 else ' '}{self.cardinal(rest)}" if rest else "")

    def year(self, n: int) -> str:
        """'nineteen oh five', 'two thousand and nine', 'twenty twenty-four'."""
        return super().year(n) if n % 1000 >= 10 else self.cardinal(n)

    def time(self, hour: int, minute: int, suffix: str | None) -> str:
        """'seven forty', "nine o'clock", 'eight twenty PM'; midnight is twelve."""
        if hour == 0 and minute and not suffix:
            return f"twelve {super().time(1, minute, None).partition(' ')[2]}"
        words = super().time(hour, minute, suffix)
        return f"{words[: -len(' a m')]} {suffix[0].upper()}M" if suffix else words


def english_normalizer() -> Normalizer:
    """The library's normalizer with our English, units and currencies; dashes, titles and formulas are left alone."""
    normalizer = Normalizer(SpokenEnglish(), latex="keep")
    for unit, (singular, plural) in UNITS.items():
        normalizer.add_unit(unit, singular, plural)
    for before, sign in DOLLAR_SIGNS.items():
        normalizer.add_currency(sign, (f"{DOLLARS[before]} dollar", f"{DOLLARS[before]} dollars"), ("cent", "cents"))
    for sign, (singular, plural, coin, coins) in CURRENCIES.items():
        normalizer.add_currency(sign, (singular, plural), (coin, coins))
    for abbreviation in LEFT_AS_WRITTEN:
        for form in {abbreviation, abbreviation.capitalize() if abbreviation[0].islower() else abbreviation}:
            if form in normalizer.lexicon.abbreviations:
                normalizer.lexicon.remove("abbreviations", form)
    for sign in tuple(normalizer.lexicon.punctuation):
        normalizer.lexicon.remove("punctuation", sign)
    return normalizer
