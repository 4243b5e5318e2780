"""English number words, and the configuration of the normalisation library: units, currencies, abbreviations."""

from __future__ import annotations

from normt2s import Normalizer
from normt2s.langs.en import English

UNITS = {
    "mph": ("mile per hour", "miles per hour"), "km/h": ("kilometer per hour", "kilometers per hour"),
    "kph": ("kilometer per hour", "kilometers per hour"), "m/s": ("meter per second", "meters per second"),
    "fps": ("frame per second", "frames per second"), "rpm": ("revolution per minute", "revolutions per minute"),
    "Mbps": ("megabit per second", "megabits per second"), "Gbps": ("gigabit per second", "gigabits per second"),
    "kbps": ("kilobit per second", "kilobits per second"), "dpi": ("dot per inch", "dots per inch"),
    "sq ft": ("square foot", "square feet"), "sq mi": ("square mile", "square miles"),
    "sec": ("second", "seconds"), "secs": ("second", "seconds"), "mins": ("minute", "minutes"),
    "hr": ("hour", "hours"), "hrs": ("hour", "hours"), "yrs": ("year", "years"), "yd": ("yard", "yards"),
    "lb": ("pound", "pounds"), "lbs": ("pound", "pounds"), "ha": ("hectare", "hectares"), "psi": ("P S I", "P S I"),
    "tbsp": ("tablespoon", "tablespoons"), "tsp": ("teaspoon", "teaspoons"), "gal": ("gallon", "gallons"),
    "sq in": ("square inch", "square inches"), "sq m": ("square meter", "square meters"),
    "sq km": ("square kilometer", "square kilometers"), "cu ft": ("cubic foot", "cubic feet"),
    "mpg": ("mile per gallon", "miles per gallon"),
}  # fmt: skip
"""Units that the library lacks or gets wrong: singular and plural."""
DOLLARS = {"US": "US", "U.S.": "US", "A": "Australian", "AU": "Australian", "C": "Canadian", "CA": "Canadian",
           "NZ": "New Zealand", "HK": "Hong Kong", "S": "Singapore"}  # fmt: skip
"""Nationality by the letters before the dollar sign."""
DOLLAR_SIGNS = {before: chr(0xE011 + number) for number, before in enumerate(DOLLARS)}
"""Private characters that stand for them, as the library knows only single characters before an amount."""
CURRENCIES = {
    "₹": ("rupee", "rupees", "paisa", "paise"), "₩": ("won", "won", "jeon", "jeon"),
    "₽": ("ruble", "rubles", "kopeck", "kopecks"), "₺": ("lira", "lira", "kurus", "kurus"),
    "₪": ("shekel", "shekels", "agora", "agorot"), "₫": ("dong", "dong", "xu", "xu"),
    "₱": ("peso", "pesos", "centavo", "centavos"), "₴": ("hryvnia", "hryvnias", "kopeck", "kopecks"),
    "₦": ("naira", "naira", "kobo", "kobo"), "₿": ("bitcoin", "bitcoins", "cent", "cents"),
    "CHF": ("Swiss franc", "Swiss francs", "centime", "centimes"), "JPY": ("yen", "yen", "sen", "sen"),
    "CNY": ("yuan", "yuan", "fen", "fen"), "INR": ("rupee", "rupees", "paisa", "paise"),
    "KRW": ("won", "won", "jeon", "jeon"), "CAD": ("Canadian dollar", "Canadian dollars", "cent", "cents"),
    "AUD": ("Australian dollar", "Australian dollars", "cent", "cents"),
    "NZD": ("New Zealand dollar", "New Zealand dollars", "cent", "cents"),
    "HKD": ("Hong Kong dollar", "Hong Kong dollars", "cent", "cents"),
    "SGD": ("Singapore dollar", "Singapore dollars", "cent", "cents"),
    "SEK": ("Swedish krona", "Swedish kronor", "öre", "öre"),
    "NOK": ("Norwegian krone", "Norwegian kroner", "øre", "øre"),
    "DKK": ("Danish krone", "Danish kroner", "øre", "øre"), "PLN": ("zloty", "zlotys", "grosz", "groszy"),
    "MXN": ("Mexican peso", "Mexican pesos", "centavo", "centavos"), "ZAR": ("rand", "rand", "cent", "cents"),
    "BRL": ("real", "reais", "centavo", "centavos"), "RUB": ("ruble", "rubles", "kopeck", "kopecks"),
}  # fmt: skip
"""Currencies that the library lacks: singular and plural, then those of the smaller coin."""
PLURALS = {sign: names[1] for sign, names in CURRENCIES.items()} | {
    "$": "dollars", "€": "euros", "£": "pounds", "¥": "yen", "USD": "dollars", "EUR": "euros", "GBP": "pounds",
}  # fmt: skip
"""All currencies except those in DOLLARS."""
LEFT_AS_WRITTEN = ("Mr.", "Mrs.", "Ms.", "etc.", "U.S.", "U.K.", "et al.", "sec.", "ch.", "eq.", "max.", "vol.", "fig.",
                   "pp.", "cf.", "approx.", "avg.", "dept.", "Dr.", "Prof.", "Inc.", "Ltd.", "vs.", "24/7")  # fmt: skip
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
    for unit, (one, many) in UNITS.items():
        normalizer.add_unit(unit, one, many)
    for before, sign in DOLLAR_SIGNS.items():
        normalizer.add_currency(sign, (f"{DOLLARS[before]} dollar", f"{DOLLARS[before]} dollars"), ("cent", "cents"))
    for sign, (one, many, coin, coins) in CURRENCIES.items():
        normalizer.add_currency(sign, (one, many), (coin, coins))
    for abbreviation in LEFT_AS_WRITTEN:
        for written in {abbreviation, abbreviation.capitalize() if abbreviation[0].islower() else abbreviation}:
            if written in normalizer.lexicon.abbreviations:
                normalizer.lexicon.remove("abbreviations", written)
    for sign in tuple(normalizer.lexicon.punctuation):
        normalizer.lexicon.remove("punctuation", sign)
    return normalizer
