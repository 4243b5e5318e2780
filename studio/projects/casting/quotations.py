"""Finds quoted speech in prose, in the quotation marks of the common languages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from studio.projects.casting.speech_verbs import INVERTED, VERBS

_PAIRS = {"“": "”", "„": "“”", "«": "»", "»": "«", "‹": "›", "「": "」", "『": "』", "‘": "’", '"': '"', "'": "'"}
"""Opening marks, each with the marks that may close it."""
_SINGLE = "‘'"
_DASHES = "—–―"
_TERMINAL = ".,!?…;:—–-。！？、"
_OPENS = re.compile(r"[“„«»‹「『‘\"']")
_DASHED = re.compile(rf"\s*[{_DASHES}]\s*(?=\S)")
_WORD = re.compile(r"[^\W\d_]+(?:[’'][^\W\d_]+)*")
_VERB_AFTER = re.compile(rf"\W{{0,3}}(?:[^\W\d_]+\s+){{0,3}}?(?:{VERBS})\b", re.IGNORECASE)
_VERB_BEFORE = re.compile(rf"\b(?:{VERBS})\b[^.!?]{{0,60}}[,:]\s*$", re.IGNORECASE)
_INCISE = re.compile(
    rf"(?:(?<=[,!?…])|(?<=[!?…] ))\s+(?:{INVERTED})(?:-t)?(?:-(?:il|elle|ils|elles|je|on))?\b", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"[.!?…](?=\s|$)")
_SHORT = 4
"""Maximum words of a quotation within a sentence that may be a title or a word as a word."""
_NEAR = 80
"""Characters around a quotation that are searched for a verb of speech."""


@dataclass(frozen=True, slots=True)
class Quotation:
    """Speech in one paragraph, by character offsets, quotation marks included."""

    start: int
    end: int
    continues: bool = False
    """Whether it continues the speech at the end of the previous paragraph."""
    is_sure: bool = True
    """False: its closing mark is missing."""


@dataclass(frozen=True, slots=True)
class QuotationStyle:
    """The marks that a book uses for speech."""

    marks: frozenset[str]
    has_dashes: bool

    @classmethod
    def of(cls, paragraphs: Iterable[str]) -> QuotationStyle:
        """Find the style. Single marks, which may be apostrophes, count as speech only if double ones are rarer."""
        counts: Counter[str] = Counter()
        dashes = 0
        for paragraph in paragraphs:
            counts.update(
                mark for at in _OPENS.finditer(paragraph) if _may_open(paragraph, at.start()) for mark in at[0]
            )
            dashes += bool(_DASHED.match(paragraph))
        double = sum(count for mark, count in counts.items() if mark not in _SINGLE)
        singles = {mark for mark in _SINGLE if counts[mark] > double}
        marks = {mark for mark in counts if mark not in _SINGLE} | singles
        # In German books » opens and « closes, in French ones the other way round.
        if counts["»"] > counts["«"]:
            marks.discard("«")
        else:
            marks.discard("»")
        return cls(frozenset(marks), dashes >= 2)


def find_quotations(paragraphs: Sequence[str], style: QuotationStyle) -> list[list[Quotation]]:
    """The speech of each paragraph, in order. Titles, irony and words as words are not speech. Linear in the text."""
    by_paragraph: list[list[Quotation]] = []
    unclosed = ""
    for index, paragraph in enumerate(paragraphs):
        if style.has_dashes and (dash := _DASHED.match(paragraph)):
            by_paragraph.append(_dashed(paragraph, dash.end()))
            unclosed = ""
            continue
        following = paragraphs[index + 1].lstrip()[:1] if index + 1 < len(paragraphs) else ""
        quotations, open_mark = _quoted(paragraph, style, unclosed, following)
        by_paragraph.append(quotations)
        unclosed = open_mark
    return by_paragraph


def _quoted(paragraph: str, style: QuotationStyle, unclosed: str, following: str) -> tuple[list[Quotation], str]:
    """Quotations of a paragraph, and the mark that the next paragraph repeats if the last one continues there."""
    quotations = []
    at = 0
    while (opening := _OPENS.search(paragraph, at)) is not None:
        start, mark = opening.start(), opening[0]
        at = opening.end()
        if mark not in style.marks or not _may_open(paragraph, start):
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
    return not before.isalnum() and before not in tuple(".,!?…") and bool(after.strip())


def _closing(text: str, start: int, mark: str) -> int | None:
    """The end of the quotation that begins at ``start``; None if its closing mark is missing."""
    closers = _PAIRS[mark]
    if mark in _SINGLE:
        return _single_closing(text, start, closers)
    if mark == '"':
        at = text.find(mark, start + 1)
        return None if at < 0 else at + 1
    depth = 0
    for at in range(start + 1, len(text)):
        sign = text[at]
        if sign in closers:
            if not depth:
                return at + 1
            depth -= 1
        elif sign == mark:
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
        if last is None:
            last = at + 1
    return last


def _is_speech(text: str, start: int, end: int) -> bool:
    words = len(_WORD.findall(text[start:end]))
    if not words:
        return False
    inner = text[start + 1 : end - 1].strip()
    before, after = text[max(0, start - _NEAR) : start], text[end : end + _NEAR]
    if _VERB_BEFORE.search(before):
        return True
    if inner[-1:] in _TERMINAL and (inner[-1:] != "," or _VERB_AFTER.match(after) or not before.strip()):
        return not before.strip() or before.rstrip()[-1:] in _TERMINAL + "”’\"'»“«" or words > _SHORT
    if (
        after.lstrip(" ,\u00a0").strip()
        and _VERB_AFTER.match(after)
        and after.lstrip()[:1] in ",abcdefghijklmnopqrstuvwxyz"
    ):
        return not before.strip() or before.rstrip()[-1:] in _TERMINAL + "”’\"'»“«"
    return (not before.strip() and not after.strip(" .!?")) or words > 3 * _SHORT


def _dashed(text: str, start: int) -> list[Quotation]:
    """Speech after a dash, without the narrator's insertions: "—No —dijo Inés—. Nunca." and "— Non, dit Luc." """
    quotations = []
    dashes = [at for at in range(start, len(text)) if text[at] in _DASHES]
    is_speech, begin = True, start
    for at in dashes:
        # A pair of dashes around a verb of speech encloses narration.
        if is_speech and text[at - 1 : at] == " " and _VERB_AFTER.match(text[at + 1 : at + _NEAR]):
            quotations.append(Quotation(begin, at))
            is_speech = False
        elif not is_speech:
            is_speech, begin = True, at + 1
    if is_speech:
        quotations.append(Quotation(begin, len(text)))
    return [piece for quotation in quotations for piece in _without_incises(text, quotation)]


def _without_incises(text: str, quotation: Quotation) -> list[Quotation]:
    pieces, begin = [], quotation.start
    while (incise := _INCISE.search(text, begin, quotation.end)) is not None:
        pieces.append(Quotation(begin, incise.start()))
        end = _SENTENCE_END.search(text, incise.end(), quotation.end)
        begin = end.end() if end else quotation.end
    pieces.append(Quotation(begin, quotation.end))
    return [piece for piece in pieces if _WORD.search(text, piece.start, piece.end)]
