"""Rules for figures: amounts such as prices, fractions, measures and ranges, with their symbols; and identifiers.

Identifiers are phone numbers, codes, rooms, parcels, products, versions and IP addresses.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

from speechtext.rules import (
    BEGINNINGS,
    DOLLAR_SIGNS,
    ENDS,
    ENGLISH,
    MONEY,
    PLURALS,
    SENTENCE,
    SIDES,
    STARTS,
    TABLES,
    YEAR,
    Rule,
    cardinal,
    digits,
    ordinal,
    rule,
    year,
)

_DENOMINATORS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 32, 64, 100)  # denominators that are read as fractions
_LEAST_SHARE = 5  # of a hundred, as in a 60/40 split
_MARKED = (
    r"(?:stars?|points?|marks?|rating|ratings|score|scores|votes|players|people|doctors|dentists|respondents|customers|"
    r"users|attempts|tests|questions|answers|students|patients|adults|children|Americans|reviews?|difficulty)"
)
"""Nouns after a score, as in "8/10 points"."""
_CODES = "|".join(sign for sign in PLURALS if len(sign) == 3)
_PER: Mapping[str, str] = TABLES["per"]
_TIMES = r"(?:seconds?|sec|minutes?|min|hours?|hr|days?|weeks?|months?|years?)"
_GOODS = "|".join(sorted(map(re.escape, _PER), key=len, reverse=True))
_SMALL_UNITS = r"(?:kg|km/h|km|cm|mm|m|g|mg|l|L|ml|%|°C|°|kWh|kW|GB|MB|[mb]illion|Euro|€)"
_KITCHEN: Mapping[str, Sequence[str]] = TABLES["kitchen"]  # units with fractions: singular and plural
_SINGULAR = {"$": "dollar", "€": "euro", "£": "pound"}
_AFTER_A_PRICE = (
    r"(?:per|and|for|off|each|more|less|from|with|when|that|than|but|because|after|before|over|under|into|until|while|"
    r"now|then|here|there|today|every|the|plus|minus|this|later|earlier|yesterday|above|below|only)"
)
"""Words after a price that are not the noun that it describes, as "bill" in 'a $5 bill'."""
_SMILE = r"[:;=]-?[()DPp](?![\w()])"
_RACE = r"(?: (?:run|race|walk|jog|row|swim|time|course|resolution|video|display|monitor|TV|screen|footage|res)\b)"
_SHAPED = (
    r"(?:aspect|screens?|displays?|monitors?|pictures?|video|videos|format|formats|photos?|sensor|television|TVs?)"
)
_VERBS = r"(?:is|was|has|makes|says|sells|does|buys|announces|plans|wants|reports|pays|owns|uses|wins|shares)"
_SCALES = {"k": "thousand", "m": "million", "mn": "million", "b": "billion", "bn": "billion", "t": "trillion"}
_SCALES |= {sign.upper(): word for sign, word in _SCALES.items()}
VULGAR = "½¼¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"
_QUARTERS = {"N": " north", "S": " south", "E": " east", "W": " west"}
_PIECES = r"(?:bills?|notes?|banknotes?|coins?|tickets?|chips?|vouchers?|gift cards?)"
"""Nouns that a price describes, as in "a $5 note"."""
_IN_MARKS = re.compile(rf"[ -]{_MARKED}\b")
_CODED = (
    r"(?:code|pin|passcode|password|combination|zip|zip code|postcode|extension|ext\.|area code|serial number|"
    r"(?:account|order|reference|confirmation|booking|tracking|case|ticket|invoice|card|registration|flight|train|"
    r"phone|telephone|model|licen[cs]e) number|flight|plate|registration)"
)
_PLACES = r"(?:room|suite|apartment|apt\.|flat|route|highway|interstate|bus|train|tram|hall|locker|channel|unit)"
_ROADS = r"(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Place|Court|Way|Square)"
_LOWERED = re.compile(r"\d+")
_NAMED_CURRENCIES: Mapping[str, str] = TABLES["named_currencies"]
_FORMULAS = frozenset("CO2 H2O O2 O3 N2 H2 CH4 NH3 SO2 NO2".split())  # noqa: SIM905
"""Formulas that the library spells out."""
_ISOTOPES = frozenset(TABLES["isotopes"])
"""Isotopes that the library reads by name; it would also do so with "F-16"."""
_PRODUCTS = r"(?:RTX|GTX|RX|Office|Microsoft|Xbox|Boeing|Airbus|Porsche|Ferrari|Ryzen [3579]|Nokia|Peugeot|Fiat)"
_RESOLUTIONS = r"(?:144|240|360|480|540|576|720|1080|1440|2160|4320)"  # lines of a video format
_SERVICES = r"(?:[2-9]11|112|999|988)"  # short phone numbers
_CALLING = (
    r"(?:call(?:s|ed|ing)?|dial(?:s|l?ed|l?ing)?|phon(?:es?|ed|ing)|rang|ring|text(?:s|ed|ing)?|press(?:ed|ing)?)"
)
_STATES: Mapping[str, str] = TABLES["states"]  # abbreviations before ZIP codes
_PROGRAMS = r"(?:[Vv]ersion|[Rr]elease|Python|Windows|Android|Ubuntu|iOS|macOS|Java|Linux)"


def _groups(figures: str) -> str:
    """A phone number, with a short pause between its groups."""
    plus = "plus " if figures.startswith("+") else ""
    return plus + ", ".join(map(digits, re.findall(r"\d+", figures)))


def _file(figures: str) -> str:
    """A file number: 'twenty twenty-four dash zero zero one'."""
    first, *rest = figures.split("-")
    return " dash ".join([year(first) if re.fullmatch(YEAR, first) else digits(first), *map(digits, rest)])


def door(figures: str) -> str:
    """'six fourteen', 'twelve oh five', 'three hundred', as for rooms and houses; at most four digits."""
    high, low = divmod(int(figures), 100)
    if figures.startswith("0"):
        return digits(figures)
    if not high or (not high % 10 and not low):
        return ENGLISH.cardinal(int(figures))
    rest = "hundred" if not low else f"oh {ENGLISH.cardinal(low)}" if low < 10 else ENGLISH.cardinal(low)
    return f"{ENGLISH.cardinal(high)} {rest}"


def _lettered(match: re.Match[str]) -> str:
    """'C twenty-two', 'F sixteen', 'A three eighty', 'KL one two three four', 'MP three'."""
    letters, figures = match[1], match[2]
    if match[0] in _FORMULAS | _ISOTOPES:
        return match[0]
    if len(letters) == 1:
        return f"{letters} {door(figures)}"
    is_long = len(figures) > 2 or figures.startswith("0")
    return f"{letters} {digits(figures) if is_long else ENGLISH.cardinal(int(figures))}"


def _range(match: re.Match[str]) -> str:
    low, high = match[1], match[2]
    if low == high:
        return f"{cardinal(low)}-{cardinal(low)}"
    if re.fullmatch(YEAR, low) and re.fullmatch(YEAR, high):
        return f"{year(low)} to {year(high)}"
    if re.fullmatch(YEAR, low) and len(high) == 2 and int(low[2:]) < int(high):
        return f"{year(low)} to {year(low[:2] + high) if high[0] == '0' else cardinal(high)}"
    if re.fullmatch("1[1-9]99", low) and high == "00":
        return f"{year(low)} to {year(str(int(low) + 1))}"
    if high[0] == "0" and len(high) > 1:
        return f"{digits(low)} dash {digits(high)}"
    return f"{low} to {high}"


def _fraction(match: re.Match[str]) -> str:
    """A fraction if people write it as one; '8/10' is a score."""
    top, bottom = int(match[1]), int(match[2])
    if (top + bottom == 100 and min(top, bottom) >= _LEAST_SHARE) or top == bottom == 20:
        return f"{ENGLISH.cardinal(top)}-{ENGLISH.cardinal(bottom)}"
    if _IN_MARKS.match(match.string, match.end()) and top <= bottom:
        return f"{top} out of {bottom}"
    is_quantity = match.string.startswith((" of ", " cup", " inch", " mile"), match.end())
    if bottom in (10, 100, top) and not is_quantity:
        return f"{top} out of {bottom}"
    return match[0] if top < bottom and bottom in _DENOMINATORS else f"{top} over {bottom}"


def _part_of_a_unit(match: re.Match[str]) -> str:
    """'1/2 teaspoon', '1 1/2 teaspoons': the library has no units for fractions."""
    singular, plural = _KITCHEN[match[3]]
    return f"{match[1]}{match[2]} {plural if match[1] else singular}"


def _from_to(match: re.Match[str]) -> str:
    """'$60 to 80k': the currency and the scale are read once if both are the same."""
    sign, low, scale, high = match[1], match[2], match[3] or "", match[4]
    if not scale and not match[5] and re.search(r"\.\d\d\b", f"{low} {high}"):
        return f"{sign}{low} to {sign}{high}"
    is_same = not scale or scale.lower() == (match[5] or "").lower()
    return (
        f"{low} to {sign}{high}{match[5] or ''}" if is_same else f"{sign}{low}{scale} to {sign}{high}{match[5] or ''}"
    )


def _priced(match: re.Match[str]) -> str:
    """'a five dollar bill'; prices with cents stay as they are."""
    scale = match[4] or ""
    if "." in match[3] and not scale:
        return match[0]
    scale = scale if scale[:1] in ("", " ") else f" {_SCALES[scale]}"
    return f"{match[1]}{match[3]}{scale} {_SINGULAR[match[2]]}"


def _before_an_amount(match: re.Match[str]) -> str:
    """'USD 50' as '50 USD', which the library reads."""
    return f"{match[2]}{match[3]} {PLURALS[match[1]]}" if match[3] else f"{match[2]} {match[1]}"


def _thousands(match: re.Match[str]) -> str:
    """European thousands separators; three decimals after a dollar sign are a price per gallon."""
    is_one_point = match[0].count(".") == 1 and "," not in match[0]
    return match[0] if is_one_point and match.string[match.start() - 1] not in "€" else _european(match)


def _european(match: re.Match[str]) -> str:
    return match[0].replace(".", "").replace(",", ".")


def _raised(match: re.Match[str]) -> str:
    """'10 to the power of minus six'."""
    exponent = unicodedata.normalize("NFKC", match[2]).replace("\u2212", "-")
    if exponent in ("2", "3") or not exponent.lstrip("-").isdigit():
        return match[0]
    return f"{match[1]} to the power of {ENGLISH.cardinal(int(exponent))}"


def _indian(figures: str) -> str:
    """'one lakh twenty-five thousand': hundreds of thousands and tens of millions have names in India."""
    number, words = int(figures.replace(",", "")), list[str]()
    for size, name in ((10_000_000, "crore"), (100_000, "lakh")):
        count, number = divmod(number, size)
        words += [f"{ENGLISH.cardinal(count)} {name}"] if count else []
    return " ".join([*words, *([ENGLISH.cardinal(number)] if number else [])])


def _lowered(match: re.Match[str]) -> str:
    """'H two O', 'x one'; formulas that the library knows get their figures."""
    word = unicodedata.normalize("NFKC", match[0])
    return word if word in _FORMULAS else _LOWERED.sub(lambda figures: f" {cardinal(figures[0])} ", word).strip()


SIGNS: tuple[Rule, ...] = (
    rule(r"[A-Za-z]{1,8}(?:[₀-₉]{1,3}[A-Za-z]{0,8}){1,8}", _lowered, needs="|".join("₀₁₂₃₄₅₆₇₈₉")),
    rule(r"(?<!\w)(?:Rs\.?|₨) ?(?=\d)", "₹", needs="Rs|₨"),
    rule(r"(?<![\w.,])₹ ?(\d{1,2}(?:,\d\d){1,4},\d{3})(?![\d,]|\.\d)", r"\1 rupees", _indian, needs="0,00,000"),
    rule(r"(?<![\w.,])(\d{1,2}(?:,\d\d){1,4},\d{3})(?![\d,]|\.\d)", r"\1", _indian, needs="0,00,000"),
    rule(r"₹ ?(\d[\d,]{0,12}(?:\.\d{1,3})?) ((?:lakh|crore)s?)\b", r"\1 \2 rupees", needs="₹"),
    rule(r"(?<![\w.,'’])\d{1,3}(?:['’]\d{3}){1,4}(?![\w'’])", lambda match: re.sub("['’]", "", match[0]),
        needs="0'000|0’000"),
    rule(r"(?<![\w.,])[1-9]\d{0,2}(?:\.\d{3}){2}(?![\w,]|\.\d)", _european, needs="0.000.000"),
    rule(rf"(?<!\w)({'|'.join(_NAMED_CURRENCIES)}) ?(\d[\d.,]{{0,15}}(?<!\D))(?!\w)", r"\2 \1", _NAMED_CURRENCIES,
        needs="Kč|zł|kr"),
    rule(rf"(?<=\d) ?({'|'.join(_NAMED_CURRENCIES)})(?!\w)", r" \1", _NAMED_CURRENCIES, needs="Kč|zł|kr"),
    rule(r"(?<![\w.,-])([6-9]\d{4} \d{5})(?!\w|[.,]\d)", r"\1", _groups, needs="00000 00000"),
    rule(rf"(?:(?<![\w.,/])(\d{{1,4}}) ?)?([{VULGAR}])", r"\1\2", lambda whole: f"{whole} ",
        lambda sign: unicodedata.normalize("NFKC", sign).replace("\u2044", "/"), needs="|".join(VULGAR)),
    rule(rf"(\d)([{RAISED}]{{1,5}})(?!\w)", _raised, needs="|".join(f"0{sign}" for sign in RAISED)),
    rule(r"(?<![\w.,/])1/(\d{1,2})(?:th|rd|nd)\b", r"one \1", ordinal, needs="0/0"),
    rule(r"(?:^|(?<=[;,(] ))([<>]) ?(?=\d)", r"\1", {">": "more than ", "<": "less than "}, needs="<|>"),
    rule(r"\+/[-−–]", "±", needs="+/"),
    rule(r"(?<![\w.,])(\d{1,3})° ?([0-5]?\d)['′] ?(?:([0-5]?\d)[\"″] ?)?([NSEW])?(?!\w)", r"\1 degrees \2 minutes\3\4",
        None, None, lambda seconds: f" {seconds} seconds", _QUARTERS, needs="°"),
    rule(r"(\d) ?(%|°[CF]?) ?[-–] ?(?=\d[\d.,]{0,12} ?\2)", r"\1 to ", needs="%|°"),
    rule(r"(?<![\w.,])(\d{1,3}) ?bps\b", r"\1 basis points", needs="bps"),
    rule(r"(?<=\d) ?([VW])(?=[\s,.;:)]|$)(?! [A-Z\d])", r"\1", {"V": " volts", "W": " watts"}, needs="0V|0W|0 V|0 W"),
    rule(r"(?<=[=+−-] )(\d{1,4})([xyz])\b|(?<![\w.])(\d{1,4})([xyz])(?= ?[+=−-] ?\w)", r"\1\3 \2\4", needs="0x|0y|0z"),
    rule(r"\b([xyz]) [-−] (?=[\dxyz]\b)", r"\1 minus ", needs="x -|y -|z -|x −|y −|z −"),
    rule(r"(?<=\d)( ?(?:KG|KM|CM|MM|ML|MPH|KPH|LBS?|FT|OZ|MIN|SEC|HRS?|YDS?)|ST|ND|RD|TH)\b", r"\1", str.lower,
        needs="0K|0C|0M|0L|0F|0O|0S|0H|0Y|0T|0N|0R|0 K|0 C|0 M|0 L|0 F|0 O|0 S|0 H|0 Y"),
    rule(r"\b(I|[Ww]e|[Yy]ou|[Tt]hey) <3 (?=\S)", r"\1 love ", needs="<0"),
    # Emoticons are not read.
    rule(rf"^{_SMILE} ?| {_SMILE}|(?<!\b[a-zA-HJ-Z]) <3(?=[ .,!?]|$)", "", needs=":|;|=|<0"),
    rule(r"(?:\b[Cc]opyright )?© ?", "copyright ", needs="©"),
    rule(r"[™®]", "", needs="™|®"),
    rule(r"(?<![\w.@/])@(?=[A-Za-z_])|(?<= )@(?= )", lambda match: "at" if match.string[match.end()] == " " else "at ",
        needs="@"),
    rule(r"(?<![\w#&/])(?<!\]\()#(?=[A-Za-z_])", "hashtag ", needs="#"),
    rule(r"\b([CFAGDJ])#(?![\w#])", r"\1 sharp", needs="#"),
    rule(r"(?<=[A-Za-z])\+\+(?=(\w)?)", r" plus plus\1", lambda _: " ", needs="++"),
    rule(r"\b([A-F])\+(?=[\s.,;:!?)\"”]|$)", r"\1 plus", needs="+"),
    rule(r"(?<=\d)\+(?=[\s.,;:!?)\"”]|$)(?! ?\d)", " plus", needs="0+"),
    rule(r"\b([A-Z]{1,3})&([A-Z]{1,3})(s?)(?!\w)", r"\1 and \2\3", " ".join, " ".join, {"s": "'s"}, needs="&"),
    rule(r"(?<=[\w)]) == (?=[\w(-])", " equals ", needs=" == "),
    rule(r" ?([<>!])= ?", r"\1", {"<": " ≤ ", ">": " ≥ ", "!": " ≠ "}, needs="<=|>=|!="),
    rule(r"(\d{3}[-. ]\d{4}),? ?(?:[Xx]|[Ee]xt\.?:?|[Ee]xtension) ?(\d{1,6})\b", r"\1, extension \2", None,
        lambda figures: digits(figures) if len(figures) > 2 else figures, needs="0-0000|0.0000|0 0000"),
    rule(rf"(?<=[{MONEY}])\d{{1,3}}(?:\.\d{{3}})+(?:,\d\d)?(?![\d,]|\.\d)", _thousands, needs=".000"),
    rule(r"(?<![\w.,])\d{1,3}(?:\.\d{3})+,\d\d(?![\d,]|\.\d)", _european, needs=".000"),
    rule(rf"(?<![\w.,{MONEY}])(\d{{1,3}}),(\d{{1,2}})(?= ?{_SMALL_UNITS}(?!\w))", r"\1.\2", needs="0,0"),
    rule(rf"\b({_CODES}) ?(?=\d)(\d[\d.,]{{0,15}}(?<!\D))( (?:thousand|million|billion|trillion))?(?!\w)",
        _before_an_amount),
    rule(rf"(?<=\d)( (?:thousand|million|billion|trillion)) ({_CODES}|[{MONEY}])(?!\w)", r"\1 \2", None, PLURALS,
        needs="illion|thousand"),
    rule(r"(?<![\w.,])(\d{1,3}(?:\.\d{1,6})?)[eE]([+−-]?)(\d{1,3})\b", r"\1ten to the \2\3",
        lambda first: "" if first == "1" else f"{first} times ", SIDES | {"+": ""}, cardinal, needs="0e|0E"),
    rule(r"(?<=\d)\u2009(?=\d{3}(?!\d))", "\u202f", needs="\u2009"),  # the thousands separator that the library knows
    rule(r"(?<=\d) ?\$(?![\d\w])", " dollars", needs="$"),
    rule(rf"(?<![\w.])({'|'.join(map(re.escape, DOLLAR_SIGNS))})\$ ?(?=\d)", r"\1", DOLLAR_SIGNS, needs="$"),
    rule(rf"(?<=[{MONEY}])(\d{{1,6}}),(\d\d)(?!\d|,\d)", r"\1.\2", needs="0,00"),
    rule(r"(?<![\w.,/])(\d{1,2})p\b", r"\1", lambda number: "1 penny" if number == "1" else f"{number} pence",
        needs="0p"),
    rule(r"(?<![\w.])(\d{1,4}) ?¢", r"\1", lambda number: "1 cent" if number == "1" else f"{number} cents", needs="¢"),
    rule(r"(?<![\w.])\.(?=\d)", "0.", needs=".0"),
    rule(rf"~ ?(?=[\d{MONEY}])", "about ", needs="~"),
    rule(r"± ?(?=\d)", "plus or minus ", needs="±"),
    rule(r"(\d) ?÷ ?(?=\d)", r"\1 divided by ", needs="÷"),
    rule(r"(\d) ?[x×] ?(?=\d[\d.,]{0,12} ?=|10(?:\^| to the power))", r"\1 times ", needs="0x|0 x|0×|0 ×"),
    rule(r"(?<![\w.,])0[xX]([\dA-Fa-f]{1,16})\b", r"0 x \1",
        lambda figures: " ".join(digits(sign) or sign.upper() for sign in figures), needs="0x|0X"),
    rule(r"(?<![\w.,])(\d{3,4}) ?[x×] ?(\d{3,4})(?!\w|[.,]\d| ?(?:mm|cm|m|ft|in)\b)", r"\1 by \2", door, door,
        needs="000x|000 x|000×|000 ×"),
    rule(r"(\d) ?[x×] ?(?=\d)", r"\1 by ", needs="0x|0 x|0×|0 ×"),
    rule(r"(\d(?: ?(?:ft|in|m|cm|mm|km)|['′\"″])) ?[x×] ?(?=\d)", r"\1 by ", needs="x 0|× 0|x0|×0"),
    rule(r"(\d)x\b", r"\1 times", needs="0x"),
    rule(rf"(?<=\d)/({_GOODS})(?![\w/²])", r" per \1", _PER, needs="0/"),
    rule(rf"(?<=\d)([kKMB]|bn| million| billion)/({_GOODS})(?![\w/])", r"\1 per \2", None, _PER, needs="/"),
    rule(rf"(\d[\d.,]{{0,12}} [a-z]{{2,20}})/({_TIMES})\b", r"\1 per \2", None, lambda time: _PER.get(time, time),
        needs="/"),
)  # fmt: skip
AMOUNTS: tuple[Rule, ...] = (
    rule(rf"([$€£])(\d{{1,4}})(?=[ -]{_PIECES}\b)", r"\2 \1", _SINGULAR, needs="$|€|£"),
    rule(r"(?<![\w.,:/-])(\d{1,2}):(?=\d{1,3}(?:,\d{3})+(?![\d,]))", r"\1 to ", needs="0:0"),
    rule(rf"\b([Aa]n? )([$€£])(\d[\d,]{{0,12}}(?:\.\d{{1,2}})?)([kKMB]|bn| (?:thousand|million|billion|trillion))?"
        rf"(?= (?!{_AFTER_A_PRICE}\b)[a-z]{{3,}})", _priced),
    rule(r"(?<=\d)°(?= (?:angle|turn|view|rotation|camera|video|heat|weather)s?\b)", " degree", needs="°"),
    rule(rf"([{MONEY}])(\d[\d,]{{0,12}}(?:\.\d{{1,4}})?)(bn|mn|[kKmMbBtT])?[-–]\1?(\d[\d,]{{0,12}}(?:\.\d{{1,4}})?)"
        r"(bn|mn|[kKmMbBtT])?(?![\w/]|[-–]\d)", _from_to, needs="-|–"),
    rule(r"(?<![\w.,/:-])(\d{1,3})([kKM])[-–](\d{1,3})(?=\2\b)", r"\1 to \3", needs="-|–"),
    rule(rf"(?<=[{MONEY}])(\d[\d,]{{0,12}}(?:\.\d{{1,4}})?) ?(bn|mn|[kKmMbBtT])\b", r"\1 \2", None, _SCALES),
    rule(rf"([{MONEY}])(\d[\d.,]{{0,12}})[-–]\1?(?=\d)", r"\2 to \1", needs="-|–"),
    rule(rf"(?<![\w.,])(\d{{1,3}})k(?={_RACE})", r"\1 K", needs="0k "),
    rule(r"(?<![\w.])(\d{1,3}(?:\.\d{1,3})?)(?: (?=[bm]n\b))?(k|bn|mn)\b", r"\1 \2", None, _SCALES,
        needs="0k|0bn|0mn|0 bn|0 mn"),
    rule(r"(?<![\w.,])(\d{1,3}\.\d{1,3})([MBK])\b", r"\1 \2", None, _SCALES, needs="0M|0B|0K"),
    rule(rf"(?<![\w.,])(?![48]K)(\d{{1,3}})([KMB])(?=\+? (?:(?!{_VERBS}\b)[a-z]{{2,20}}s|people|men|women|children)\b)",
        r"\1 \2", None, _SCALES, needs="0K|0M|0B"),
    rule(r"(?<![\w.,/-])24/7/365(?![\w/]|\.\d)", "twenty-four seven, three sixty-five", needs="00/0/000"),
    rule(r"(?<![\w.,/-])(\d{1,2}(?:/\d{1,2}){2,4})(?![\w/]|\.\d)", r"\1", lambda items: items.replace("/", ", "),
        needs="0/0"),
    rule(r"(?<![\w.,/-])(\d{1,2}\.\d)/(5|10|100)(?![\w/]|\.\d)", r"\1 out of \2", needs="0/0"),
    rule(r"(?i)\b((?:rated?|rating|scored?|score of|grade|got|gave (?:it|him|her|them)|earned)(?: (?:it|a|an|of))? )"
        r"(\d{1,2})/(\d{1,2})(?![\w/]|\.\d)", r"\1\2 out of \3", needs="0/0"),
    rule(r"(?<![\w.,/:-])(\d{1,3}(?:,\d{3})+|\d{1,6}\.\d{1,4})[-–](?=(?:\d{1,3}(?:,\d{3})+|\d{1,6}\.\d{1,4})(?![\w-]|[.,:/]\d))",
        r"\1 to ", needs="0-0|0–0"),
    rule(rf"(?<![\w.,/:-])(16|21|4|5|3):(9|10|3|4|2)(?= {_SHAPED}\b)", r"\1 by \2", needs="0:0"),
    rule(r"(?<![\w.,/:-])(16|21|32):(9|10)(?![\w:]|[.,/-]\d)", r"\1 by \2", needs="0:0"),
    rule(rf"(?<![\w.,/-])((?:\d{{1,3}} )?)(\d{{1,2}}/\d{{1,2}}) ?({'|'.join(_KITCHEN)})\b\.?", _part_of_a_unit,
        needs="0/0"),
    rule(r"(?<![\w.,/-])(\d{1,3}) ([1-7])/([2-8])(?![\w/])",
        lambda match: ENGLISH.mixed_fraction(int(match[1]), int(match[2]), int(match[3])), needs="0/0"),
    rule(r"\b24/7\b", "twenty-four seven", needs="00/0"),
    rule(r"\b9/11\b", "nine eleven", needs="0/00"),
    rule(rf"{STARTS}(\d{{1,6}})[-–](\d{{1,6}})(?![\w/-]|[.,:]\d)", _range, needs="0-0|0–0"),
    rule(r"(?<![\w.,/:-])(\d[\d,.]{0,12})[-–](?=\d[\d,.]{0,12}(?: ?%|°| ?[a-zA-Z]{1,4}\b))", r"\1 to ",
        needs="0-0|0–0"),
    # After a name they may be a chapter and a verse.
    rule(rf"(\b(?!(?:{BEGINNINGS})\b)[A-Z]\w{{0,30}}\.? {SENTENCE}?)?(?<![\w.,:/-])"
        r"(\d{1,6}(?:\.\d{1,3})?):(\d(?:\.\d{1,3})?|\d{3,6})(?![\w:]|[.,/-]\d)",
        lambda match: match[0] if match[1] else f"{match[2]} to {match[3]}", needs="0:0"),
    rule(r"(?<![\w./])(\d{1,3})/(\d{1,3})(?![\w/]|\.\d)", _fraction, needs="0/0"),
    rule(r"(?<![\w.])(\d{1,3}) ?['′] ?(\d{1,2})(?:\"|″|['′]{2})?(?![\w'’])", r"\1 foot \2", needs="'|′"),
    rule(r"(\d (?:ft|foot|feet)) (\d{1,2}) in\b", r"\1 \2 inches", needs="0 ft|0 foot|0 feet"),
    rule(r"(?<=\d)['′](?= ?(?:by|x|×|long|wide|tall|high|deep)\b)", " feet", needs="0'|0′"),
    rule(r"(\bby \d{1,3})['′](?![\w'])", r"\1 feet", needs="by 0"),
    rule(r"(\bby \d{1,3})[\"″](?=$|[,.;] | (?:in|long|wide|thick)\b)", r"\1 inches", needs="by 0"),
    rule(r"(?<=\d)[\"”″](?= (?:by|long|wide|tall|high|deep|thick)\b)", " inches", needs='0"|0”|0″'),
    rule(r"(?<=\d)[\"”″](?= (?:pipe|screen|monitor|display|TV|laptop|nail|board|wheel|disc)s?\b)", " inch",
        needs='0"|0”|0″'),
    rule(r"(?<=\d) ?″", " inches", needs="″"),
)  # fmt: skip
CALLED: tuple[Rule, ...] = (
    rule(r"\b(ISBN(?:-1[03])?:? )((?:97[89][ –-]?)?(?:\d[ –-]?){9}[\dXx])(?![\w-])", r"\1\2", None,
        lambda figures: _groups(figures) + (" X" if figures[-1] in "xX" else ""), needs="ISBN"),
    # Short amounts such as '+2.5' stay.
    rule(r"(?<![\w.,-])\+\d{1,3}(?:[ .-]\(?\d{1,8}\)?){1,6}(?![\w-])",
        lambda match: _groups(match[0]) if len(re.sub(r"\D", "", match[0])) >= 7 else match[0], needs="+0"),
    rule(r"(?<![\w.,-])1[ -](8\d\d|900)[ -]([A-Z]{2,10}(?:-[A-Z]{2,10})?)\b", r"one, \1, \2", cardinal,
        lambda word: word.lower().replace("-", " "), needs="0-000-|0 000 |0-000 "),
    rule(r"\b([Nn]umber |(?i:invoice|order|ticket|case|file|reference|ref\.?|claim|docket|id|contract|model|part) )"
        rf"({YEAR}-\d{{2,6}}|\d{{2,6}}-0\d{{1,5}}|\d{{2,6}}(?:-\d{{2,6}}){{2,3}}){ENDS}", r"\1\2", None, _file,
        needs="0-0"),
    rule(rf"\b({'|'.join(_STATES)}),? (\d{{5}}(?:-\d{{4}})?){ENDS}", r"\1 \2", _STATES, _groups, needs="00000"),
    rule(r"(?i)\bP\.? ?O\.? Box (\d{1,6})\b", r"P.O. Box \1",
        lambda number: door(number) if len(number) < 3 else digits(number), needs="ox "),
    rule(r"(?<![\w.,-])((?:1[ -])?(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-.]\d{4})(?![\w-])", r"\1", _groups,
        needs="0-0000|0.0000"),
    rule(rf"(?<![\w.,{MONEY}-])(\d{{3}}-\d{{4}})(?![\w-])", r"\1", _groups, needs="0-0000"),
    rule(r"(?<![\w.,-])(?<!\d )(0\d{2,5}(?:[ -]\d{3,7}){1,3})(?![\w-])", r"\1", _groups, needs="00 0|00-0"),
    rule(rf"(?i)\b({_CODED}(?: (?:is|was|number|no\.))?:? )((?:[A-Z]{{1,3}} ?)?)(\d{{3,12}}(?: \d{{3}}\b)?){ENDS}",
        r"\1\2\3", None, lambda letters: f"{letters.strip()} ", _groups, needs="000"),
    rule(rf"(?i)\b({_CALLING} )({_SERVICES})(?![\w/-]|[.,:]\d| [a-z]+s\b)", r"\1\2", None, digits, needs="000"),
    rule(rf"(?<![\w.,/:{MONEY}-])(?<!Porsche )(911)(?=[,;:!?)\"”’]|\.?$|\. |['’]s|-call| (?:calls?|operators?|"
        r"dispatch(?:ers?)?|emergency|centers?|immediately|right|now)\b)", r"\1", digits, needs="000"),
    rule(rf"(?i)\b((?:enter|dial|call) )(\d{{3,8}}){ENDS}"
        r"(?=[.,;:!?\"”’)]|$| (?:and|to|for|on|now|if|or|then|before|in|at)\b)", r"\1\2", None, digits, needs="000"),
    rule(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.]*\d)", lambda match: " dot ".join(map(digits, match[0].split("."))),
        needs=".0"),
    rule(r"\bv(?=\d{1,3}\.\d)", "version ", needs="v0"),
    rule(rf"\b({_PROGRAMS} )(\d{{1,4}}(?:\.\d{{1,4}}){{1,3}})(?!\w|\.\d)", r"\1\2", None,
        lambda version: " point ".join(map(cardinal, version.split("."))), needs="0.0"),
)  # fmt: skip
NAMED: tuple[Rule, ...] = (
    rule(rf"\b({_PRODUCTS} )(\d{{3}})-(\d{{1,3}})(?![\w-])", r"\1\2 \3", None, door, door, needs="000-0"),
    rule(r"(?<![\w.,])(\d\d)ers\b", r"\1ers", lambda number: cardinal(number).rstrip("e"), needs="0ers"),
    rule(rf"(?i)\b({_PLACES}(?: (?:number|no\.))? )(\d{{3,4}}){ENDS}", r"\1\2", None, door, needs="000"),
    rule(rf"\b({_PRODUCTS} )(\d{{3,4}})(?![\w-]|[.,:/]\d)", r"\1\2", None, door, needs="000"),
    rule(rf"(?<![\w.,])({_RESOLUTIONS})([pi])(\d\d)?\b", r"\1 \2\3", door, None, lambda rate: f" {rate}",
        needs="0p|0i"),
    rule(r"\b[Ss](\d{1,2}) ?[Ee](\d{1,3})\b", r"season \1 episode \2", cardinal, cardinal, needs="0E|0e|0 E|0 e"),
    rule(r"\b([A-Z]{1,4})-?(\d{1,4})(?!\w|[.,:/-]\d)", _lettered),
    rule(rf"{STARTS}(\d{{3,4}})(?= (?:[NSEW]\.? )?(?:[A-Z][a-z]+ ){{1,3}}{_ROADS}\b)", r"\1", door, needs="000"),
)  # fmt: skip
