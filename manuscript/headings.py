"""Recognises headings of chapters, titles below them, and scene breaks in lines of text.

In a document it joins headings in a row, and tells numbers on their own that are headings from page numbers.
"""

from __future__ import annotations

import functools
import json
import re
import unicodedata
from bisect import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from manuscript.passages import Document, Passage
from speechtext.rules import roman

MAX_HEADING = 160  # characters; a longer line is prose
MAX_TITLE = 80  # characters of a title that is recognised only by its position
MAX_JOINED_TITLE = 200  # characters of a joined title, or of one from a table of contents
_ONLY_NUMBER = re.compile(r"\d{1,4}|[IVXLCDM]{1,8}")
_CHAPTER_LEVELS = 2  # levels of headings that begin a chapter, such as parts and chapters

_WORDS = json.loads(Path(__file__).with_name("headings.json").read_text("utf-8"))
"""Patterns of words: those that mean a chapter, those that are a heading alone, and by language other words beside a
number. Prose seldom has a number after "chapter", so the others have stricter rules."""


def _any_of(patterns: Sequence[str]) -> str:
    return "|".join(map(_folded, patterns))


def _folded(line: str) -> str:
    """The line without accents, which capitals often lack, and with plain digits, spaces and Roman numerals."""
    composed = unicodedata.normalize("NFKD", line)
    return "".join(sign for sign in composed if not unicodedata.combining(sign))


_CHAPTER, _ALONE = _any_of(_WORDS["chapter"]), _any_of(_WORDS["alone"])
_ROMAN = r"(?=[ivxlc])c{0,3}(?:xc|xl|l?x{0,4})(?:ix|iv|v?i{0,4})"
_FIGURE = rf"(?:\d{{1,4}}(?:\.\d{{1,3}}){{0,3}}[a-z]?|{_ROMAN}|(?-i:[A-H]))"


class _Words(NamedTuple):
    """Patterns of one language: words beside a number, and numbers in words."""

    kinds: str
    numbers: str
    ordinals: str
    article: str


def _words(kinds: list[str], cardinals: list[str], ordinals: list[str], articles: list[str]) -> _Words:
    article = rf"(?:(?:{_any_of(articles)})\s+)?" if articles else ""
    return _Words(_any_of(kinds), f"{article}(?:{_any_of((*ordinals, *cardinals))})", _any_of(ordinals), article)


_LANGUAGES = [_words(**language) for language in _WORDS["languages"].values()]
_GAP = r"(?:\s*+(?=\d)|\s++)"


@functools.cache
def _numbered() -> re.Pattern[str]:
    """Compiled on first use, which takes longer than all other patterns together.

    Not before a colon and a figure, as in the name of a verse of the Bible.
    """
    choices = (
        # Words of a chapter stand beside numbers in any language, which keeps the pattern short.
        rf"(?:{_CHAPTER}){_GAP}(?:{_FIGURE}|{'|'.join(words.numbers for words in _LANGUAGES)})",
        *(rf"(?:{words.kinds}){_GAP}(?:{_FIGURE}|{words.numbers})" for words in _LANGUAGES),
        rf"\d{{1,3}}(?:\.\s+|-[^\W\d_]{{0,3}}\s*)(?:{_CHAPTER}|{'|'.join(words.kinds for words in _LANGUAGES)})",
        *(rf"{words.article}(?:{words.ordinals})\s+(?:{_CHAPTER}|{words.kinds})" for words in _LANGUAGES),
    )
    return re.compile(rf"(?:{'|'.join(choices)})(?!\w|:\d)", re.IGNORECASE)


_IS_CHAPTER = re.compile(rf"(?:^|[\s-])(?:{_CHAPTER})(?=[\s\d]|$)", re.IGNORECASE)
_STARTS_ALONE = re.compile(rf"(?:{_ALONE})(?P<end>[.:]?$|\s*[:.—–-]\s+)", re.IGNORECASE)
_COUNTED = "一二三四五六七八九十百千零〇两兩壹贰貳叁參肆伍陆陸柒捌玖拾佰廿卅"
_FAR_EAST = re.compile(
    rf"(?:第\s?[\d{_COUNTED}]{{1,6}}\s?(?:[章節节回部卷篇幕話话集](?!分)|部分(?=$|[\s：:]))"
    rf"|卷之?[{_COUNTED}]{{1,4}}(?=$|[\s：:])|제\s?\d{{1,4}}\s?[장부화편막권]|\d{{1,3}}\s?장(?=$|[\s.：:]))"
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
_DECORATED = re.compile(r"(?:#{1,6}[ \t]+|([*_=~—–-]{1,10})[ \t]*)(\S.*?)(?<![ \t])[ \t]*+(?:#*|[*_=~—–-]{1,10})")
_SCENE = re.compile(
    r"([*#~•·⁂⁎❦❧◆◇○●☆★✦※＊=_—–-])(?:\s*\1){2,}|[⁂❦❧※#*~]"
    r"|[*=_~—–-]{1,10}\s?(?=[^oO]{0,9}[oO])[oO0](?:\s?[oO0]){0,8}\s?[*=_~—–-]{1,10}|o(?:\s?[oO0]){1,8}\s?o"  # -o0o-
)
SENTENCE_END = re.compile(r"[.!?:…。！？][\"'”’»)\]_*]*$")
"""The end of a sentence at the end of a line, with closing quotation marks or emphasis."""
LEAST_CHAPTERS = 2  # a single line that looks like a heading may be anything
LEAST_PAGES = 3  # minimum of consecutive numbers, some of them in the middle of a sentence
LAST_PAGE = 1400  # higher numbers are more likely to be years than pages

_LONE = re.compile(
    r"(?P<page>(?:page|p\.|seite)\s{1,3})?[\[(—–-]?\s?(\d{1,4}|[IVXLC]{1,7})\s?[.)\]—–-]?", re.IGNORECASE
)
_PAGE_OF_ALL = re.compile(r"(?:page\s{1,3})(\d{1,4})(?:\s?(?:of|/)\s?\d{1,4})", re.IGNORECASE)


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
    numbered = _numbered().match(folded)
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
    match = _numbered().match(folded)
    while match and (following := _numbered().match(rest := folded[match.end() :].lstrip(", ."))):
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


def _may_follow(rest: str, is_chapter: bool) -> bool:
    """Whether the text after a heading's number is empty, a stop, or a title that is not a sentence."""
    if _BARE_END.fullmatch(rest):
        return True
    if match := _numbered().match(rest.lstrip(", .")):  # Part 1, Chapter 2
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


def join_headings(passages: Iterable[Passage], book: str) -> tuple[Passage, ...]:
    """Join headings without text between them into one passage and one chapter.

    A heading that is the title of the ``book`` does not begin a chapter if another heading follows.
    """
    joined: list[Passage] = []
    for passage in passages:
        before = joined[-1] if joined else None
        if before and _is_only_title(before) and _is_only_title(passage):
            title = before.chapter
            if is_same_words(title, book) and not is_heading(title) and not _ONLY_NUMBER.fullmatch(title):
                joined[-1] = replace(before, chapter="", is_title=False)
            elif _belongs(before, passage):
                text, title = f"{before.text}\n{passage.text}", _joined_title(title, passage.chapter)
                joined[-1] = replace(before, text=text, chapter=title, is_title=True)
                continue
        joined.append(passage)
    return tuple(joined)


def _joined_title(first: str, second: str) -> str:
    """The title of two headings in a row: "1. The Beginning", "Chapter One The Beginning"; without repeated words."""
    if len(words_of(second)) > 1 and words_of(first).endswith(words_of(second)):
        return first
    if not _ONLY_NUMBER.fullmatch(first.rstrip(".):")) and words_of(second).startswith(words_of(first)):
        return second
    return f"{first}{'.' if _ONLY_NUMBER.fullmatch(first) else ''} {second}"


def chapter_levels(levels: Iterable[int]) -> set[int]:
    """The levels of headings that begin chapters: the two highest in use."""
    return set(sorted({level for level in levels if level})[:_CHAPTER_LEVELS])


def is_same_words(first: str, second: str) -> bool:
    """Whether two titles are the same apart from case and punctuation."""
    return words_of(first) == words_of(second) != ""


def words_of(text: str) -> str:
    """A title's letters and digits, in lower case: the same for two titles that differ in punctuation alone."""
    return "".join(sign for sign in text.casefold() if sign.isalnum())


def _is_only_title(passage: Passage) -> bool:
    return bool(passage.chapter) and (passage.is_title or passage.text == passage.chapter)


def _belongs(first: Passage, second: Passage) -> bool:
    """Whether two headings belong to one chapter; "Chapter 1" and "Chapter 2" do not, even without text between."""
    if len(first.chapter) + len(second.chapter) + 2 > MAX_JOINED_TITLE:
        return False
    if _ONLY_NUMBER.fullmatch(first.chapter) and _ONLY_NUMBER.fullmatch(second.chapter):
        return False
    kinds = [heading.chapter.split()[0].casefold() for heading in (first, second)]
    return kinds[0] != kinds[1] or not (is_heading(first.chapter) and is_heading(second.chapter))


@dataclass(frozen=True, slots=True)
class _Number:
    """A number that is a passage, or the first line of one."""

    at: int
    value: int
    is_page: bool  # whether it is marked as a page number by a word
    is_roman: bool
    rest: str  # the other lines of the passage


def read_lone_numbers(document: Document) -> Document:
    """The document with chapters at numbers that count up from one, and without page numbers."""
    passages = document.passages
    numbers = [number for at in range(len(passages)) if (number := _number(passages, at))]
    if _are_pages(passages, numbers):
        left_out = "Page numbers are left out."
        return replace(document, passages=_without_pages(passages, numbers), skipped=(*document.skipped, left_out))
    chapters = _chapters(passages, numbers) or _before_headings(passages, numbers)
    return replace(document, passages=_with_chapters(passages, chapters)) if chapters else document


def _number(passages: Sequence[Passage], at: int) -> _Number | None:
    passage = passages[at]
    first, _, rest = passage.text.partition("\n")
    if passage.chapter or len(first) > 40:
        return None
    first = first.strip()
    if page := _PAGE_OF_ALL.fullmatch(first):
        return _Number(at, int(page[1]), True, False, rest)
    match = _LONE.fullmatch(first)
    if not match:
        return None
    figures = match[2]
    value = int(figures) if figures.isdigit() else roman(figures) if figures.isupper() else None
    return None if value is None else _Number(at, value, bool(match["page"]), not figures.isdigit(), rest)


def _are_pages(passages: Sequence[Passage], numbers: Sequence[_Number]) -> bool:
    """Whether the numbers are consecutive and some are in the middle of a sentence."""
    if len(numbers) < LEAST_PAGES or any(number.is_roman or number.rest for number in numbers):
        return False
    if numbers[-1].value > LAST_PAGE:
        return False
    steps = [high.value - low.value for low, high in pairwise(numbers)]
    return all(1 <= step <= 2 for step in steps) and any(_is_in_a_sentence(passages, number.at) for number in numbers)


def _is_in_a_sentence(passages: Sequence[Passage], at: int) -> bool:
    if not 0 < at < len(passages) - 1 or passages[at - 1].chapter:
        return False
    return not SENTENCE_END.search(passages[at - 1].text) and passages[at + 1].text[:1].islower()


def _without_pages(passages: Sequence[Passage], numbers: Sequence[_Number]) -> tuple[Passage, ...]:
    """The passages without page numbers; sentences that they interrupted are joined."""
    pages = {number.at: _is_in_a_sentence(passages, number.at) for number in numbers}
    remaining: list[Passage] = []
    for at, passage in enumerate(passages):
        if at in pages:
            continue
        if remaining and pages.get(at - 1):
            remaining[-1] = remaining[-1].followed_by(passage, f"{remaining[-1].text} {passage.text}")
        else:
            remaining.append(passage)
    return tuple(remaining)


def _chapters(passages: Sequence[Passage], numbers: Sequence[_Number]) -> Sequence[_Number]:
    """The numbers that begin chapters: they count up from one, and may restart in the next part of the book.

    Empty if other headings begin chapters: numbers below those belong to sections.
    """
    titles = [passage.chapter for passage in passages if passage.chapter]
    if any(names_chapter(title) or not is_heading(title) for title in titles):
        return ()
    candidates = [number for number in numbers if number.is_roman == numbers[0].is_roman and not number.is_page]
    if len(candidates) < LEAST_CHAPTERS:
        return ()
    before = 0
    for number, following in zip(candidates, [*candidates[1:], None], strict=True):
        is_next = number.value == before + 1 or (before > 1 and number.value == 1)
        has_text = number.rest or (number.at + 1 < len(passages) and (not following or following.at > number.at + 1))
        if not is_next or not has_text or _is_in_a_sentence(passages, number.at):
            return ()
        before = number.value
    return candidates


def _before_headings(passages: Sequence[Passage], numbers: Sequence[_Number]) -> Sequence[_Number]:
    """The numbers that begin chapters where other chapters have headings: "7", text, "Chapter Eight", text, "9".

    The first one is at the front, below titles at most; the others continue it, with the headings counted.
    """
    headings = [at for at, passage in enumerate(passages) if passage.chapter]
    if not headings or not numbers or any(len(passage.text) > MAX_TITLE for passage in passages[: numbers[0].at]):
        return ()
    chapters: list[_Number] = []
    before = None
    for number, following in zip(numbers, [*numbers[1:], None], strict=True):
        count = bisect(headings, number.at)  # of the headings above
        end = min([*headings[count : count + 1], following.at if following else len(passages)])
        has_prose = any(
            len(text) > MAX_TITLE
            for text in (number.rest, *(passage.text for passage in passages[number.at + 1 : end]))
        )
        is_next = number.value - count == before if before is not None else not count
        if not is_next or not has_prose or number.is_page or number.is_roman != numbers[0].is_roman:
            break
        chapters.append(number)
        before = number.value - count + 1
    return chapters


def _with_chapters(passages: Sequence[Passage], chapters: Sequence[_Number]) -> tuple[Passage, ...]:
    numbers = {number.at: number for number in chapters}
    read: list[Passage] = []
    for at, passage in enumerate(passages):
        number = numbers.get(at)
        if not number:
            read.append(passage)
            continue
        first = passage.text.partition("\n")[0].strip()
        if not number.rest or is_title(number.rest):
            read.append(replace(passage, chapter=" ".join(passage.text.split()), is_title=True))
        else:
            read += [
                replace(passage, text=first, chapter=first, pause=None, scene=False),
                replace(passage, text=number.rest),
            ]
    return tuple(read)
