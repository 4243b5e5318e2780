"""Whole numbers as words, one reading each: cardinal, ordinal, as a year, as a room, digit by digit."""

from __future__ import annotations

ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen""".split()  # noqa: SIM905 - easier to read than quoted words
TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()  # noqa: SIM905
SCALES = ((10**9, "billion"), (10**6, "million"), (1000, "thousand"))
_ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
             "twelve": "twelfth"}  # fmt: skip


def cardinal(number: int) -> str:
    """'one thousand two hundred and five', 'minus three'; below 10 to the 12th."""
    if number < 0:
        return f"minus {cardinal(-number)}"
    for size, name in SCALES:
        if number >= size:
            rest = number % size
            joint = " and " if rest < 100 else " "
            return f"{cardinal(number // size)} {name}" + (joint + cardinal(rest) if rest else "")
    if number >= 100:
        return f"{ONES[number // 100]} hundred" + (f" and {cardinal(number % 100)}" if number % 100 else "")
    if number >= 20:
        return TENS[number // 10] + (f"-{ONES[number % 10]}" if number % 10 else "")
    return ONES[number]


def ordinal(number: int) -> str:
    """'twenty-first', 'one hundredth'."""
    words = cardinal(number)
    cut = max(words.rfind(" "), words.rfind("-")) + 1
    last = words[cut:]
    return words[:cut] + (_ORDINALS.get(last) or (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th"))


def suffixed(number: int) -> str:
    """'21st', as an ordinal is written in digits."""
    teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def year(number: int) -> str:
    """'nineteen oh five', 'nineteen hundred', 'two thousand and five', 'twenty twenty-four'; 1000 to 2999."""
    high, low = divmod(number, 100)
    if high % 10 == 0 and low < 10:
        return cardinal(number)
    return f"{cardinal(high)} {pair(low) if low else 'hundred'}"


def pair(number: int) -> str:
    """The last two digits of a clock time, a year or a room: 'oh five', 'forty-five'."""
    return f"oh {ONES[number]}" if number < 10 else cardinal(number)


def room(number: int) -> str:
    """'two oh four', 'twelve fifteen', 'three hundred'; 100 to 9999."""
    high, low = divmod(number, 100)
    if not low:
        return cardinal(number)
    return f"{cardinal(high)} {pair(low)}"


def digits(text: str) -> str:
    """Every digit by its name, without other characters."""
    return " ".join(ONES[int(character)] for character in text if character.isdigit())


def decimal(text: str) -> str:
    """'three point one four' for '3.14'; commas between thousands may stand in it."""
    whole, _, fraction = text.replace(",", "").partition(".")
    minus = "minus " if whole.startswith("-") else ""
    return minus + cardinal(int(whole.removeprefix("-"))) + (f" point {digits(fraction)}" if fraction else "")
