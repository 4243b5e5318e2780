"""Recognises headings of chapters, titles below them, and scene breaks in single lines of text."""

from __future__ import annotations

import re
import unicodedata

MAX_HEADING = 160
"""Characters; a longer line is prose."""
MAX_TITLE = 80
"""Characters of a title that is recognised only by its position."""

# Words before or after a number. Prose seldom has a number after "chapter", so the other words have stricter rules.
_CHAPTER = "chapter kapitel chapitre capitulo capitolo hoofdstuk rozdzia[lł] глава"
_LANGUAGES = (
    (
        "part book act scene letter canto volume section stave",
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
        " eighteen nineteen (?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:[ -](?:one|two|three|four"
        "|five|six|seven|eight|nine))? (?:a|one)[ ]hundred",
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth"
        " fifteenth sixteenth seventeenth eighteenth nineteenth twentieth thirtieth (?:twenty|thirty)-(?:first|second"
        "|third|fourth|fifth|sixth|seventh|eighth|ninth) last final",
        "the",
    ),
    (
        "teil buch akt szene aufzug band brief gesang",
        "eins zwei drei vier funf sechs sieben acht neun zehn elf zwolf (?:drei|vier|funf|sech|sieb|acht|neun)zehn"
        " (?:(?:ein|zwei|drei|vier|funf|sechs|sieben|acht|neun)und)?(?:zwanzig|dreißig|vierzig)",
        "(?:erst|zweit|dritt|viert|funft|sechst|siebt|siebent|acht|neunt|zehnt|elft|zwolft|(?:drei|vier|funf|sech|sieb"
        "|acht|neun)zehnt|(?:(?:ein|zwei|drei|vier|funf|sechs|sieben|acht|neun)und)?(?:zwanzigst|dreißigst)|letzt)e[rs]?",
        "der das",
    ),
    (
        "partie livre acte scene tome lettre chant",
        "un une deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit"
        " dix-neuf vingt vingt-(?:et-un|deux|trois|quatre|cinq|six|sept|huit|neuf) trente",
        "premiere? seconde? dernier dernière (?:deux|trois|quatr|cinqu|six|sept|huit|neuv|dix|onz|douz|treiz|quatorz"
        "|quinz|seiz|vingt)ieme",
        "la le",
    ),
    (
        "parte libro livro acto ato escena cena carta canto tomo atto scena lettera volume",
        "uno um una dos dois tres tre cuatro quatro quattro cinco cinque seis sei siete sete sette ocho oito otto nueve"
        " nove diez dez dieci once onze undici doce doze dodici trece treze tredici catorce quatorze quattordici quince"
        " quinze quindici veinte vinte venti",
        "(?:primer|segund|secund|tercer|cuart|quint|sext|septim|octav|noven|decim|primeir|terceir|quart|setim|oitav|non"
        "|prim|second|terz|sest|settim|ottav|undecim|duodecim|ultim)[oa]? (?:undic|dodic|tredic|ventic?)esim[oa]",
        "el la il o a",
    ),
    (
        "deel boek bedrijf brief",
        "een twee drie vier vijf zes zeven acht negen tien elf twaalf (?:der|veer|vijf|zes|zeven|acht|negen)tien"
        " twintig",
        "(?:eer|twee|der|vier|vijf|zes|zeven|acht|negen|tien|elf|twaalf)(?:ste|de)",
        "het de",
    ),
    (
        "czesc ksi[eę]ga akt scena tom",
        "jeden dwa trzy cztery pi[ee]c szesc siedem osiem dziewiec dziesiec",
        "(?:pierwsz|drug|trzec|czwart|piat|szost|siodm|osm|dziewiat|dziesiat)(?:y|i|a|ia)",
        "",
    ),
    (
        "часть книга акт сцена том действие письмо песнь",
        "один два три четыре пять шесть семь восемь девять десять",
        "(?:перв|втор|трет|четверт|пят|шест|седьм|восьм|девят|десят|одиннадцат|двенадцат|последн)(?:ая|ыи|ое|ои|ья|ии|ье|яя)",
        "",
    ),
)
_ALONE = (
    "prologue epilogue preface foreword introduction afterword prolog epilog vorwort nachwort einleitung einfuhrung"
    " avant-propos introduction postface prologo epilogo prefacio introduccion introducao prefazione introduzione"
    " postfazione voorwoord inleiding nawoord przedmowa wstep poslowie пролог эпилог предисловие введение послесловие"
)
_ROMAN = r"(?=[ivxlc])c{0,3}(?:xc|xl|l?x{0,4})(?:ix|iv|v?i{0,4})"
_FIGURE = rf"(?:\d{{1,4}}(?:\.\d{{1,3}}){{0,3}}[a-z]?|{_ROMAN}|(?-i:[A-H]))"


def _any(words: str) -> str:
    return "|".join(word.replace("[ ]", " ") for word in words.replace("[ -]", "[\x00-]").split())


def _numbered(kinds: str, cardinals: str, ordinals: str, articles: str) -> str:
    words = f"(?:{_any(_CHAPTER)}|{_any(kinds)})"
    article = rf"(?:(?:{_any(articles)})\s+)?" if articles else ""
    after = rf"{words}\s+(?:{_FIGURE}|{article}(?:{_any(ordinals)}|{_any(cardinals)}))"
    before = rf"{article}(?:{_any(ordinals)}|\d{{1,3}}\.)\s+{words}"
    return f"{after}|{before}"


_NUMBERED = re.compile(
    rf"(?:{'|'.join(_numbered(*language) for language in _LANGUAGES)})(?!\w)".replace("\x00", r"\s"), re.IGNORECASE
)
_IS_CHAPTER = re.compile(rf"(?:^|\s)(?:{_any(_CHAPTER)})(?:\s|$)", re.IGNORECASE)
_STARTS_ALONE = re.compile(rf"(?:{_any(_ALONE)})(?P<end>[.:]?$|\s*[:.—–-]\s+)", re.IGNORECASE)
_FAR_EAST = re.compile(
    r"(?:第\s?[\d一二三四五六七八九十百千零〇两兩]{1,6}\s?(?:[章節节回部卷篇幕話话集](?!分)|部分(?=$|[\s：:]))|제\s?\d{1,4}\s?[장부화편막권])"
    r"|(?:序章|序幕|序言|序|前言|楔子|引子|尾声|尾聲|终章|終章|后记|後記|プロローグ|エピローグ|まえがき|はじめに|あとがき|おわりに"
    r"|프롤로그|에필로그)(?=$|[\s：:])"
)
_EAST_STOP = re.compile(r"[。！？，、；!?,;]")
_STOP = re.compile(r"[.:)\]]?\s*(?:[—–-]{1,3}\s*)?")
_BARE_END = re.compile(r"[\s.:)\]—–-]{0,4}$")
_IN_WHICH = re.compile(r",\s+(?:in which|wherein|in dem|in welchem|dans lequel|en el que|in cui)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(
    r"\b(?!(?:mrs?|ms|dr|st|ste|vs|no|nos|mme|mlle|hr|fr|sra?|jr|prof|capt|col|gen|lt|rev|vol|maj|sgt)\.)"
    r"[^\W\d_]{2,}[.!?…][\"”’»)]*\s",
    re.IGNORECASE,
)
_DECORATED = re.compile(r"(?:#{1,6}[ \t]+|([*_=~—–-]{1,10})[ \t]*)(\S.*?)[ \t]*(?:#*|[*_=~—–-]{1,10})")
_SCENE = re.compile(r"(?:([*#~•·⁂⁎❦❧◆◇○●☆★✦※＊=_—–-])\s*){3,}|[⁂❦❧※]|#|\*|\[?\s*\.\s*\.\s*\.\s*\]?(?<=\])")
SENTENCE_END = re.compile(r"[.!?:…。！？][\"'”’»)\]_*]*$")
"""The end of a sentence at the end of a line, with closing quotation marks or emphasis."""


def is_heading(line: str) -> bool:
    """Whether a line is the heading of a chapter: "Chapter 1", "Book the Second: Paris", "Prologue".

    A line that only begins like one is prose: "Part of him wanted to run.", "Chapter 3 was long.".
    """
    line = line.strip()
    if not line or len(line) > MAX_HEADING or (len(line) < 4 and line.isascii()):
        return False
    if match := _FAR_EAST.match(line):
        rest = line[match.end() :]
        return len(rest) <= 40 and (rest[:1] in " \u3000：:" or not _EAST_STOP.search(rest)) and rest[-1:] != "。"
    folded = _folded(line)
    if alone := _STARTS_ALONE.match(folded):
        return _is_title(folded[alone.end() :], True) if alone["end"].strip() and alone.end() < len(folded) else True
    numbered = _NUMBERED.match(folded)
    if not numbered:
        return False
    rest = folded[numbered.end() :]
    # "SCENE II. Verona. A public place."
    is_scene = len(rest) <= MAX_TITLE and rest[:1] in (".", ":") and folded.split()[0].isupper()
    return is_scene or _may_follow(rest, bool(_IS_CHAPTER.search(numbered[0])))


def names_chapter(line: str) -> bool:
    """Whether a heading contains the word "chapter" in one of the known languages."""
    return _IS_CHAPTER.search(_folded(line)) is not None


def is_bare_heading(line: str) -> bool:
    """Whether a line is a heading without a title, which may follow on the next line."""
    line = line.strip()
    if len(line) > MAX_TITLE:
        return False
    if far_east := _FAR_EAST.match(line):
        return not line[far_east.end() :].strip(" \u3000：:")
    folded = _folded(line)
    match = _NUMBERED.match(folded)
    while match and (following := _NUMBERED.match(rest := folded[match.end() :].lstrip(", ."))):
        folded, match = rest, following
    return match is not None and _BARE_END.match(folded, match.end()) is not None


def is_title(line: str) -> bool:
    """Whether a line can be the title below a bare heading: short, and not a sentence."""
    line = line.strip()
    if len(line) > MAX_TITLE or not any(sign.isalpha() for sign in line) or is_heading(line):
        return False
    if line.upper() == line and line.lower() != line:
        return not line.endswith((",", ";"))
    first = next(sign for sign in line if sign.isalpha())
    is_sentence = line.endswith((".", ",", ";", ":", "。", "，", "、", '."', ".”", "…")) or _SENTENCE_END.search(line)
    return not is_sentence and not first.islower() and line[:1] not in "-–—\"“„«「『‘'"


def undecorated(line: str) -> str:
    """A heading without its markup: "# Act One", "_CHAPTER I._", "=== Part 2 ===".

    Other lines stay, unless they have Markdown's "#".
    """
    line = line.strip()
    match = _DECORATED.fullmatch(line) if len(line) <= MAX_HEADING else None
    if not match:
        return line
    return match[2] if line.startswith("#") or is_heading(match[2]) else line


def is_scene_break(line: str) -> bool:
    """Whether a line is a scene break: ``* * *``, ``---``, ``⁂``, ``#``."""
    line = line.strip()
    return 0 < len(line) <= MAX_TITLE and _SCENE.fullmatch(line) is not None and len(set(line) - {" ", "\t"}) <= 1


def _folded(line: str) -> str:
    """The line without accents, which capitals often lack, and with plain digits, spaces and Roman numerals."""
    composed = unicodedata.normalize("NFKD", line)
    return "".join(sign for sign in composed if not unicodedata.combining(sign))


def _may_follow(rest: str, is_chapter: bool) -> bool:
    """Whether the text after a heading's number is empty, a stop, or a title that is not a sentence."""
    if _BARE_END.fullmatch(rest):
        return True
    if match := _NUMBERED.match(rest.lstrip(", .")):  # Part 1, Chapter 2
        return _may_follow(rest.lstrip(", .")[match.end() :], is_chapter)
    if _IN_WHICH.match(rest):
        return is_chapter and not rest.endswith((".", ",", ";"))
    match = _STOP.match(rest)
    sign, title = (match[0], rest[match.end() :]) if match else ("", rest)
    if not sign or not title:
        return False
    if not sign.strip():  # a space alone
        return (
            _is_title(title, is_chapter) and not title.endswith(".") and title[0].isalnum() and not title[0].islower()
        )
    return _is_title(title, is_chapter) and (not title[0].islower() or ":" in sign or is_chapter)


def _is_title(title: str, is_chapter: bool) -> bool:
    if title.upper() == title:
        return True
    if title.endswith((",", ";", ":")) or _SENTENCE_END.search(title):
        return False
    is_short = is_chapter or len(title) <= MAX_TITLE
    return is_short and not (title.endswith((".", "!", "?", '"', "”")) and not (is_chapter and title[0].isupper()))
