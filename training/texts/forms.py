"""Written forms, each with one fixed reading: prices, times, dates, units, phone numbers and the like."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from training.texts.numerals import cardinal, decimal, digits, ordinal, pair, room, suffixed, year

MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Form:
    """The text as written, and the words it is read as."""

    text: str
    words: str


# Written unit -> read for one, for more; with or without a space before it, as people write both.
UNITS = {
    "km": ("kilometer", "kilometers"), "m": ("meter", "meters"), "cm": ("centimeter", "centimeters"),
    "mm": ("millimeter", "millimeters"), "kg": ("kilogram", "kilograms"), "g": ("gram", "grams"),
    "mg": ("milligram", "milligrams"), "lb": ("pound", "pounds"), "lbs": ("pounds", "pounds"),
    "oz": ("ounce", "ounces"), "ft": ("foot", "feet"), "ml": ("milliliter", "milliliters"),
    "mph": ("mile per hour", "miles per hour"), "km/h": ("kilometer per hour", "kilometers per hour"),
    "GB": ("gigabyte", "gigabytes"), "MB": ("megabyte", "megabytes"), "TB": ("terabyte", "terabytes"),
    "GHz": ("gigahertz", "gigahertz"), "MHz": ("megahertz", "megahertz"), "kHz": ("kilohertz", "kilohertz"),
    "Hz": ("hertz", "hertz"), "W": ("watt", "watts"), "kW": ("kilowatt", "kilowatts"), "V": ("volt", "volts"),
    "kWh": ("kilowatt hour", "kilowatt hours"), "min": ("minute", "minutes"), "sec": ("second", "seconds"),
    "hrs": ("hours", "hours"), "ms": ("millisecond", "milliseconds"), "fps": ("frame per second", "frames per second"),
    "dB": ("decibel", "decibels"), "°C": ("degree Celsius", "degrees Celsius"),
    "°F": ("degree Fahrenheit", "degrees Fahrenheit"), "°": ("degree", "degrees"),
    "Mbps": ("megabit per second", "megabits per second"), "m²": ("square meter", "square meters"),
    "sq ft": ("square foot", "square feet"),
}  # fmt: skip
MONEY = {"$": ("dollar", "dollars", "cent", "cents"), "£": ("pound", "pounds", "penny", "pence"),
         "€": ("euro", "euros", "cent", "cents")}  # fmt: skip


def log_uniform(rng: random.Random, low: int, high: int) -> int:
    """A whole number from low to high; every order of magnitude is equally likely."""
    return min(high, int(math.exp(rng.uniform(math.log(low), math.log(high + 1)))))


def grouped(number: int) -> str:
    """'12,500': a comma between thousands."""
    return f"{number:,}"


def _count(rng: random.Random) -> Form:
    number = log_uniform(rng, 2, 9999)
    return Form(grouped(number), cardinal(number))


def _small(rng: random.Random) -> Form:
    number = log_uniform(rng, 2, 60)
    return Form(str(number), cardinal(number))


def _big(rng: random.Random) -> Form:
    if rng.random() < 0.3:
        text = f"{rng.randint(1, 99)}.{rng.randint(1, 9)}" if rng.random() < 0.5 else str(rng.randint(2, 900))
        scale = rng.choice(("million", "million", "billion"))
        return Form(f"{text} {scale}", f"{decimal(text)} {scale}")
    number = log_uniform(rng, 1000, 999_999_999)
    number = round(number, -rng.choice((0, 0, 2, len(str(number)) - 2)))
    return Form(grouped(number), cardinal(number))


def _year(rng: random.Random) -> Form:
    number = rng.choice((rng.randint(1900, 2035), rng.randint(1900, 2035), rng.randint(1100, 1899)))
    return Form(str(number), year(number))


def _decade(rng: random.Random) -> Form:
    century, ten = rng.choice((18, 19, 19, 19)), rng.randint(2, 9)
    plural = cardinal(10 * ten)[:-1] + "ies"
    return Form(f"{century}{ten}0s", f"{cardinal(century)} {plural}")


def _ordinal(rng: random.Random) -> Form:
    number = log_uniform(rng, 1, 150)
    return Form(suffixed(number), ordinal(number))


def _century(rng: random.Random) -> Form:
    number = rng.randint(5, 21)
    return Form(f"{suffixed(number)} century", f"{ordinal(number)} century")


def _decimal(rng: random.Random) -> Form:
    text = f"{rng.choice((0, log_uniform(rng, 1, 300)))}.{rng.choice((rng.randint(1, 9), f'{rng.randint(1, 99):02d}'))}"
    return Form(text, decimal(text))


def _percent(rng: random.Random) -> Form:
    text = rng.choice((str(rng.randint(1, 100)), f"{rng.randint(0, 30)}.{rng.randint(1, 9)}"))
    return Form(text + rng.choice(("%", "%", " percent")), f"{decimal(text)} percent")


def price(rng: random.Random) -> Form:
    """Dollars, pounds or euros, whole or with cents; cents alone; millions."""
    sign = rng.choice("$$$£€")
    one, many, cent, cents = MONEY[sign]
    kind = rng.random()
    if kind < 0.08:
        amount = rng.randint(2, 99)
        return Form(f"{amount} cents" if sign != "£" else f"{amount}p", f"{cardinal(amount)} {cents}")
    if kind < 0.16:
        text = rng.choice((f"{rng.randint(1, 99)}.{rng.randint(1, 9)}", str(rng.randint(2, 900))))
        scale = rng.choice(("million", "billion"))
        return Form(f"{sign}{text} {scale}", f"{decimal(text)} {scale} {many}")
    whole = log_uniform(rng, 1, 20_000)
    words = f"{cardinal(whole)} {one if whole == 1 else many}"
    if kind < 0.5 or whole > 2500:
        return Form(f"{sign}{grouped(whole)}", words)
    rest = rng.choice((99, 50, 95, 25, 49, rng.randint(1, 99), rng.randint(1, 99)))
    if kind > 0.96:
        return Form(f"{sign}0.{rest:02d}", f"{cardinal(rest)} {cent if rest == 1 else cents}")
    return Form(f"{sign}{grouped(whole)}.{rest:02d}", f"{words} and {cardinal(rest)} {cent if rest == 1 else cents}")


def time(rng: random.Random) -> Form:
    """A clock time of twelve or of twenty-four hours."""
    minute = rng.choice((0, 15, 30, 45, 5 * rng.randint(0, 11), rng.randint(0, 59), rng.randint(0, 59)))
    if rng.random() < 0.3:
        hour = rng.randint(13, 23)
        return Form(f"{hour}:{minute:02d}", f"{cardinal(hour)} {pair(minute) if minute else 'hundred'}")
    hour = rng.randint(1, 12)
    half = rng.choice(("am", "pm"))
    written = rng.choice((f" {half}", f"{half}", f" {half.upper()}", f" {half[0]}.m.")) if rng.random() < 0.6 else ""
    suffix = f" {half.upper()}" if written else ""
    if not minute:
        if written and rng.random() < 0.6:
            return Form(f"{hour}{written}", cardinal(hour) + suffix)
        return Form(f"{hour}:00{written}", cardinal(hour) + (suffix or " o'clock"))
    zero = "0" if not written and hour < 10 and rng.random() < 0.1 else ""
    return Form(f"{zero}{hour}:{minute:02d}{written}", f"{cardinal(hour)} {pair(minute)}{suffix}")


def date(rng: random.Random) -> Form:
    """A day and a month in American or British order, perhaps with a year; an unambiguous date in figures."""
    number, day = rng.randint(1, 12), rng.randint(1, 31 if rng.random() < 0.5 else 28)
    month, in_year = MONTHS[number - 1], rng.choice((rng.randint(1985, 2035), rng.randint(1700, 2035)))
    with_year = rng.random() < 0.5
    short = month if len(month) < 5 or rng.random() < 0.8 else month[:3] + rng.choice(("", "."))
    kind = rng.random()
    if kind < 0.06:
        return Form(f"{in_year}-{number:02d}-{day:02d}", f"{month} {ordinal(day)}, {year(in_year)}")
    if kind < 0.55:
        figure = rng.choice((str(day), suffixed(day)))
        text, words = f"{short} {figure}", f"{month} {ordinal(day)}"
        return Form(f"{text}, {in_year}", f"{words}, {year(in_year)}") if with_year else Form(text, words)
    if kind < 0.7:
        text, words = f"the {suffixed(day)} of {month}", f"the {ordinal(day)} of {month}"
    else:
        text, words = f"{rng.choice((str(day), suffixed(day)))} {short}", f"the {ordinal(day)} of {month}"
    return Form(f"{text} {in_year}", f"{words} {year(in_year)}") if with_year else Form(text, words)


def phone(rng: random.Random) -> Form:
    """American and British numbers, digit by digit with a short stop between groups."""
    last, middle, area = f"{rng.randint(0, 9999):04d}", f"{rng.randint(200, 999)}", f"{rng.randint(201, 989)}"
    kind = rng.randrange(5)
    if kind == 0:
        groups, text = [middle, last], f"{middle}-{last}"
    elif kind == 1:
        groups, text = [area, middle, last], f"({area}) {middle}-{last}"
    elif kind == 2:
        groups, text = [area, middle, last], f"{area}-{middle}-{last}"
    elif kind == 3:
        groups = ["020", f"7{middle}", last]
        text = " ".join(groups)
    else:
        groups = [f"07{area}", f"{rng.randint(100000, 999999)}"]
        text = " ".join(groups)
    return Form(text, ", ".join(map(digits, groups)))


def unit(rng: random.Random) -> Form:
    """A measure: number, unit, with or without a space."""
    return _measure(rng, rng.choice(tuple(UNITS)))


def _measure(rng: random.Random, name: str) -> Form:
    one, many = UNITS[name]
    degrees = name.startswith("°")
    if degrees:
        text = str(rng.randint(-20, 45) if name == "°C" else rng.randint(1, 110))
    elif rng.random() < 0.25:
        text = f"{log_uniform(rng, 1, 90)}.{rng.randint(1, 9)}"
    else:
        text = grouped(log_uniform(rng, 1, 3000))
    gap = "" if degrees or (rng.random() < 0.4 and name[0].isalpha() and " " not in name) else " "
    return Form(f"{text}{gap}{name}", f"{decimal(text)} {one if text in ('1', '-1') else many}")


def _of_units(*names: str) -> Callable[[random.Random], Form]:
    return lambda rng: _measure(rng, rng.choice(names))


def _range(rng: random.Random) -> Form:
    low = log_uniform(rng, 1, 400)
    high = low + log_uniform(rng, 1, max(2, low))
    dash = rng.choice("--–")
    return Form(f"{low}{dash}{high}", f"{cardinal(low)} to {cardinal(high)}")


def _years(rng: random.Random) -> Form:
    low = rng.randint(1500, 2015)
    high = low + log_uniform(rng, 1, 60)
    return Form(f"{low}{rng.choice('-–')}{high}", f"{year(low)} to {year(high)}")


def _mixed(rng: random.Random) -> Form:
    """A whole number and a half, a third or a quarter."""
    whole = rng.randint(1, 12)
    text, words = rng.choice(
        (("1/2", "a half"), ("1/4", "a quarter"), ("3/4", "three quarters"), ("2/3", "two thirds"))
    )
    return Form(f"{whole} {text}", f"{cardinal(whole)} and {words}")


def _room(rng: random.Random) -> Form:
    number = rng.choice((rng.randint(101, 999), rng.randint(101, 999), rng.randint(1001, 2999)))
    return Form(str(number), room(number))


def _flight(rng: random.Random) -> Form:
    airline = rng.choice("BA UA AA LH KL DL AF EI QF SK".split())  # noqa: SIM905
    number = str(rng.randint(12, 9999))
    return Form(f"{airline}{rng.choice(('', ' '))}{number}", f"{airline} {digits(number)}")


def _gate(rng: random.Random) -> Form:
    letter, number = rng.choice("BCDEFGHK"), rng.randint(1, 60)
    return Form(f"{letter}{number}", f"{letter} {cardinal(number)}")


def _score(rng: random.Random) -> Form:
    low, high = rng.randint(0, 6), rng.randint(1, 35)
    return Form(f"{high}{rng.choice('-–')}{low}", f"{cardinal(high)} to {cardinal(low)}")


def _version(rng: random.Random) -> Form:
    parts = [rng.randint(0, 14), rng.randint(0, 20), *([rng.randint(0, 20)] if rng.random() < 0.4 else [])]
    return Form(".".join(map(str, parts)), " point ".join(map(cardinal, parts)))


def _code(rng: random.Random) -> Form:
    length = rng.choice((3, 4, 4, 5, 6))
    text = "".join(str(rng.randint(0, 9)) for _ in range(length))
    if length == 6 and rng.random() < 0.5:
        return Form(f"{text[:3]} {text[3:]}", f"{digits(text[:3])}, {digits(text[3:])}")
    return Form(text, digits(text))


def _plate(rng: random.Random) -> Form:
    letters = "".join(rng.choice("BCDFGHJKLMNPRSTVWXZ") for _ in range(rng.choice((2, 3))))
    number = str(rng.randint(10, 999))
    return Form(f"{letters} {number}", f"{letters} {digits(number)}")


def _number(rng: random.Random) -> Form:
    number = log_uniform(rng, 1, 250)
    return Form(rng.choice(("No. ", "#", "No. ")) + str(number), f"number {cardinal(number)}")


def _page(rng: random.Random) -> Form:
    number = log_uniform(rng, 1, 600)
    short, word = rng.choice((("p. ", "page "), ("vol. ", "volume "), ("ch. ", "chapter "), ("fig. ", "figure ")))
    return Form(f"{short}{number}", word + cardinal(number))


def _sum(rng: random.Random) -> Form:
    a, b = log_uniform(rng, 1, 99), log_uniform(rng, 1, 99)
    a, b = max(a, b), min(a, b)
    sign, word, result = rng.choice((("+", "plus", a + b), ("-", "minus", a - b), ("×", "times", a * b)))
    return Form(f"{a} {sign} {b} = {result}", f"{cardinal(a)} {word} {cardinal(b)} equals {cardinal(result)}")


def _size(rng: random.Random) -> Form:
    a, b = log_uniform(rng, 2, 90), log_uniform(rng, 2, 90)
    return Form(f"{a}{rng.choice((' x ', 'x', ' × '))}{b}", f"{cardinal(a)} by {cardinal(b)}")


def _aged(rng: random.Random) -> Form:
    number = rng.randint(2, 95)
    return Form(f"{number}-year-old", f"{cardinal(number)}-year-old")


def _countdown(rng: random.Random) -> Form:
    numbers = range(rng.randint(3, 10), 0, -1)
    return Form(", ".join(map(str, numbers)), ", ".join(map(cardinal, numbers)))


def _roman(rng: random.Random) -> Form:
    figures = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
    number = rng.randint(1, 12)
    if rng.random() < 0.5:
        name = rng.choice(("Henry", "George", "Edward", "Elizabeth", "Charles", "William", "Catherine", "Louis"))
        number = rng.randint(1, 8)
        return Form(f"{name} {figures[number - 1]}", f"{name} the {ordinal(number)}")
    name = rng.choice(("Chapter", "Part", "Volume", "Act", "World War"))
    number = rng.randint(1, 2) if name == "World War" else number
    return Form(f"{name} {figures[number - 1]}", f"{name} {cardinal(number)}")


def _minus(rng: random.Random) -> Form:
    number = log_uniform(rng, 1, 60)
    return Form(f"-{number}", f"minus {cardinal(number)}")


def _initials(rng: random.Random) -> Form:
    """'J. K.': the text has the letters; the phonemiser reads them so."""
    text = " ".join(f"{rng.choice('ABCDEFGHJKLMNPRSTW')}." for _ in range(rng.choice((1, 2, 2))))
    return Form(text, text)


def _mail(rng: random.Random) -> Form:
    name, host = rng.choice(_MAIL_NAMES), rng.choice(_HOSTS)
    number = rng.choice(("", "", str(rng.randint(2, 99))))
    spoken = f"{name} {cardinal(int(number))}".strip() if number else name
    return Form(f"{name}{number}@{host}", f"{spoken} at {host.replace('.', ' dot ')}".replace(" uk", " U.K."))


def _site(rng: random.Random) -> Form:
    host, page = rng.choice(_HOSTS), rng.choice(("", "", "help", "news", "tickets", "shop"))
    start = rng.choice(("www.", ""))
    words = ("W W W dot " if start else "") + host.replace(".", " dot ").replace(" uk", " U.K.")
    return Form(start + host + (f"/{page}" if page else ""), words + (f" slash {page}" if page else ""))


_MAIL_NAMES = "anna info support peter contact hello office tickets maria sales help news".split()  # noqa: SIM905
_HOSTS = ("example.com", "example.org", "garden.co.uk", "library.net", "museum.org", "bakery.com", "weather.gov",
          "school.edu", "railway.co.uk", "cinema.com", "voices.io", "flowers.net")  # fmt: skip

FORMS: dict[str, Callable[[random.Random], Form]] = {
    "count": _count, "small": _small, "big": _big, "year": _year, "decade": _decade, "ordinal": _ordinal,
    "century": _century, "decimal": _decimal, "percent": _percent, "price": price, "time": time, "date": date,
    "phone": phone, "unit": unit, "range": _range, "years": _years, "mixed": _mixed, "door": _room,
    "flight": _flight, "gate": _gate, "score": _score, "version": _version, "code": _code, "plate": _plate,
    "number": _number, "page": _page, "sum": _sum, "size": _size, "aged": _aged, "countdown": _countdown,
    "roman": _roman, "minus": _minus, "initials": _initials, "mail": _mail, "site": _site,
    "speed": _of_units("mph", "km/h"), "heat": _of_units("°C", "°F", "°", "°C"),
    "length": _of_units("cm", "m", "mm", "ft"), "distance": _of_units("km", "m", "ft", "km"),
    "weight": _of_units("kg", "g", "lbs", "oz"), "volume": _of_units("ml"), "data": _of_units("GB", "MB", "TB"),
}  # fmt: skip
