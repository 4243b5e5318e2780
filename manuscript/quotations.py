"""Finds quoted speech in prose, in the quotation marks of the common languages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from string import ascii_lowercase

from manuscript.characters import INVERTED, VERBS

_PAIRS = {"“": "”", "„": "“”", "«": "»", "»": "«", "‹": "›", "「": "」", "『": "』", "‘": "’", '"': '"', "'": "'"}
"""Opening marks, each with the marks that may close it."""
_SINGLE = "‘'"
_DASHES = "—–―"
_TERMINAL = ".,!?…;:—–-。！？、，"
_OPENS = re.compile(r"[“„«»‹「『‘\"']")
_DASHED = re.compile(rf"\s*(?:[{_DASHES}]|-{{1,2}})\s*(?=\S)")
_AROUND_NARRATION = re.compile(
    rf"(?<=\s)(?P<opens>[{_DASHES}]|--?)(?=\w)|(?<=[\w.!?…\"»”’'])(?:[{_DASHES}]|--?)(?:[,;:.!?…]{{1,3}}+|(?=\s|$))"
)
"""Dashes that touch the narrator's words between them, with the mark that ends these: “—No —dijo Inés—. Nunca.”"""
_WORD = re.compile(r"[^\W\d_]+(?:[’'][^\W\d_]+)*")
_VERB_AFTER = re.compile(rf"\W{{0,3}}(?:[^\W\d_]+\s+){{0,3}}?(?:{VERBS})\b", re.IGNORECASE)
_VERB_BEFORE = re.compile(rf"\b(?:{VERBS})\b[^.!?]{{0,60}}[,:]\s*$", re.IGNORECASE)
_INCISE = re.compile(
    rf"(?:(?<=[,!?…])|(?<=[!?…] ))\s*(?:(?:lui|leur|nous|me|se|le)\s+)?(?:{INVERTED})"
    r"(?:-t)?(?:-(?:il|elle|ils|elles|je|on))?\b",
    re.IGNORECASE,
)
_INCISE_END = re.compile(
    r"[.!?…](?=\s|$)|[,;](?!\s(?:(?:tout\s)?(?:en\s)?(?:s[’']|l[’']|se\s)?\w+ant\b|avec\b|qui\b|chez\b|puis\b))\s?[—–]?"
)
"""The mark after the narrator's words; a participle or a preposition after a comma goes on with them."""
_NARRATED = re.compile(rf"\s(?:[{_DASHES}]|--?)(?:le\s)?(?:{INVERTED})\b|{_INCISE.pattern}", re.IGNORECASE)
_INTERRUPTED = re.compile(r"\s?[—–-]{1,2}[^“”\"‘—–]{2,70}[—–-]{1,2}\s?[“\"‘]")
"""An action between dashes in speech: “And you”—he pointed at the boy—“stay here.”"""
_SHORT = 4  # words of a quotation within a sentence that may be a title or a word as a word
_NEAR = 80  # characters around a quotation that are searched for a verb of speech


@dataclass(frozen=True, slots=True)
class Quotation:
    """Speech in one paragraph, by character offsets, quotation marks included."""

    start: int
    end: int
    continues: bool = False  # whether it continues the speech at the end of the previous paragraph
    is_sure: bool = True  # false: its closing mark is missing


def find_quotations(paragraphs: Sequence[str]) -> list[list[Quotation]]:
    """The speech of each paragraph, in order. Titles, irony and words as words are not speech. Linear in the text."""
    marks, dashes = _marks_of(paragraphs), _dashes_of(paragraphs)
    by_paragraph: list[list[Quotation]] = []
    unclosed = ""
    for paragraph, following in pairwise([*paragraphs, ""]):
        if (dash := _DASHED.match(paragraph)) and dash[0].strip() in dashes:
            quotations, unclosed = _dashed(paragraph, dash.end()), ""
        else:
            quotations, unclosed = _quoted(paragraph, marks, unclosed, following.lstrip()[:1])
        by_paragraph.append(quotations)
    return by_paragraph


def _marks_of(paragraphs: Iterable[str]) -> set[str]:
    """The marks of speech. Single ones, which may be apostrophes, count only if double ones are rarer."""
    counts = Counter[str]()
    for paragraph in paragraphs:
        counts.update(at[0] for at in _OPENS.finditer(paragraph) if _may_open(paragraph, at.start()))
    double = sum(count for mark, count in counts.items() if mark not in _SINGLE)
    marks = {mark for mark, count in counts.items() if mark not in _SINGLE or count > double}
    # In German books » opens and « closes, in French ones the other way round.
    marks.discard("«" if counts["»"] > counts["«"] else "»")
    return marks


def _quoted(paragraph: str, marks: set[str], unclosed: str, following: str) -> tuple[list[Quotation], str]:
    """Quotations of a paragraph, and the mark that the next paragraph repeats if the last one continues there."""
    quotations = []
    at = 0
    while (opening := _OPENS.search(paragraph, at)) is not None:
        start, mark = opening.start(), opening[0]
        at = opening.end()
        if mark not in marks or not _may_open(paragraph, start):
            continue
        continues = bool(unclosed) and mark == unclosed and not paragraph[:start].strip()
        close = _closing(paragraph, start, mark)
        if close is None:
            is_continued = following == mark
            quotations.append(Quotation(start, len(paragraph.rstrip()), continues, is_sure=is_continued))
            return quotations, mark if is_continued else ""
        if continues or _is_speech(paragraph, start, close):
            quotations.append(Quotation(start, close, continues))
        at = close
    return quotations, ""


def _may_open(text: str, at: int) -> bool:
    """Whether a mark may open: a space or a bracket precedes it, and a word or another mark follows."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if text[at] in "「『":
        return True
    if text[at] in "«»" and after in " \u00a0\u202f":
        after = text[at + 2 : at + 3]
    if after in tuple(" \u00a0\u202f") and (text[at] == "“" or (text[at] == '"' and not text[:at].strip())):
        after = text[at + 2 : at + 3]  # some editions have a space inside the marks
    return not before.isalnum() and before not in tuple(".,!?…") and bool(after.strip())


def _closing(text: str, start: int, mark: str) -> int | None:
    """The end of the quotation that begins at ``start``; None if its closing mark is missing."""
    closers = _PAIRS[mark]
    if mark in _SINGLE:
        return _single_closing(text, start, closers)
    if mark == '"':
        return text.find(mark, start + 1) + 1 or None
    depth = 0
    for at in range(start + 1, len(text)):
        if text[at] in closers:
            if not depth:
                return at + 1
            depth -= 1
        elif text[at] == mark:
            depth += 1
    return None


def _single_closing(text: str, start: int, closer: str) -> int | None:
    """The first single mark after punctuation, or else one after a letter, which may be an apostrophe."""
    last = None
    for at in range(start + 1, len(text)):
        if last is not None and text[at] == text[start] and _may_open(text, at):
            break  # the next quotation: do not search the rest of the paragraph for each one
        if text[at] != closer or text[at + 1 : at + 2].isalnum():
            continue
        if text[at - 1] in _TERMINAL + "”":
            return at + 1
        last = last or at + 1
    return last


def _is_speech(text: str, start: int, end: int) -> bool:
    words = len(_WORD.findall(text[start:end]))
    if not words:
        return False
    last = text[start + 1 : end - 1].strip()[-1:]
    before, after = text[max(0, start - _NEAR) : start], text[end : end + _NEAR]
    if _VERB_BEFORE.search(before) or _INTERRUPTED.match(after) or before.endswith("："):
        return True
    begins = not before.strip()
    begins_apart = begins or before.rstrip()[-1:] in _TERMINAL + "，；：”’\"'»“«』」"
    if last in _TERMINAL and (last != "," or begins or _VERB_AFTER.match(after)):
        return begins_apart or words > _SHORT
    if after.lstrip(" ,\u00a0").strip() and after.lstrip()[:1] in f",{ascii_lowercase}" and _VERB_AFTER.match(after):
        return begins_apart
    return (begins and not after.strip(" .!?")) or words > 3 * _SHORT


def _dashes_of(paragraphs: Iterable[str]) -> set[str]:
    """The dashes before speech. Hyphens, which may begin the items of a list, only where the narrator interrupts."""
    counts = Counter[str]()
    for paragraph in paragraphs:
        if (dash := _DASHED.match(paragraph)) is not None:
            mark = dash[0].strip()
            counts[mark] += mark in tuple(_DASHES) or _NARRATED.search(paragraph, dash.end()) is not None
    return {mark for mark, count in counts.items() if count > 1}


def _dashed(text: str, start: int) -> list[Quotation]:
    """Speech after a dash, without the narrator's words: "—No —dijo Inés—. Nunca." and "— Non, dit Luc." """
    quotations = []
    begin, is_speech = start, True
    if not text[start - 1].isspace():
        for dash in _AROUND_NARRATION.finditer(text, start):
            if is_speech and dash["opens"]:
                quotations.append(Quotation(begin, dash.start()))
                is_speech = False
            elif not is_speech and not dash["opens"]:
                is_speech, begin = True, dash.end()
    if is_speech:
        quotations.append(Quotation(begin, len(text)))
    return [piece for quotation in quotations for piece in _without_incises(text, quotation)]


def _without_incises(text: str, quotation: Quotation) -> list[Quotation]:
    pieces, begin = [], quotation.start
    while (incise := _INCISE.search(text, begin, quotation.end)) is not None:
        pieces.append(Quotation(begin, incise.start()))
        end = None if text.rstrip().endswith(":") else _INCISE_END.search(text, incise.end(), quotation.end)
        begin = end.end() if end else quotation.end
    pieces.append(Quotation(begin, quotation.end))
    return [piece for piece in pieces if _WORD.search(text, piece.start, piece.end)]
