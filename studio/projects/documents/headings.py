"""Recognises headings of chapters, titles below them, and scene breaks in single lines of text."""

from __future__ import annotations

import re
import unicodedata

from studio.paths import json_beside

MAX_HEADING = 160
"""Characters; a longer line is prose."""
MAX_TITLE = 80
"""Characters of a title that is recognised only by its position."""

_WORDS = json_beside(__file__, "headings.json")
"""Patterns of words: those that mean a chapter, those that are a heading alone, and by language other words beside a
number. Prose seldom has a number after "chapter", so the others have stricter rules."""
_CHAPTER, _ALONE = "|".join(_WORDS["chapter"]), "|".join(_WORDS["alone"])
_ROMAN = r"(?=[ivxlc])c{0,3}(?:xc|xl|l?x{0,4})(?:ix|iv|v?i{0,4})"
_FIGURE = rf"(?:\d{{1,4}}(?:\.\d{{1,3}}){{0,3}}[a-z]?|{_ROMAN}|(?-i:[A-H]))"


def _numbered(kinds: list[str], cardinals: list[str], ordinals: list[str], articles: list[str]) -> str:
    words = "|".join((_CHAPTER, *kinds))
    article = rf"(?:(?:{'|'.join(articles)})\s+)?" if articles else ""
    after = rf"(?:{words})\s+(?:{_FIGURE}|{article}(?:{'|'.join((*ordinals, *cardinals))}))"
    before = rf"{article}(?:{'|'.join(ordinals)}|\d{{1,3}}\.)\s+(?:{words})"
    return f"{after}|{before}"


_NUMBERED = re.compile(
    rf"(?:{'|'.join(_numbered(**language) for language in _WORDS['languages'].values())})(?!\w)", re.IGNORECASE
)
_IS_CHAPTER = re.compile(rf"(?:^|\s)(?:{_CHAPTER})(?:\s|$)", re.IGNORECASE)
_STARTS_ALONE = re.compile(rf"(?:{_ALONE})(?P<end>[.:]?$|\s*[:.—–-]\s+)", re.IGNORECASE)
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
_SCENE = re.compile(
    r"([*#~•·⁂⁎❦❧◆◇○●☆★✦※＊=_—–-])(?:\s*\1){2,}|[⁂❦❧※#*~]"
    r"|[*=_~—–-]{1,10}\s?(?=[^oO]{0,9}[oO])[oO0](?:\s?[oO0]){0,8}\s?[*=_~—–-]{1,10}|o(?:\s?[oO0]){1,8}\s?o"  # -o0o-
)
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
    """Whether a line is a scene break: ``* * *``, ``---``, ``⁂``, ``#``, ``~``, ``-o0o-``."""
    line = line.strip()
    return len(line) <= MAX_TITLE and _SCENE.fullmatch(line) is not None


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
