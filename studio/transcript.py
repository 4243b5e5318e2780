"""A transcript against what was heard: word by word, where the two differ."""

from __future__ import annotations

import difflib
import unicodedata
from dataclasses import dataclass

ALIKE = 0.75
"""Words with this share of letters in common are taken for one word spelt in two ways."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A piece of a transcript. All pieces joined are the transcript."""

    text: str
    heard: str | None = None
    """What was heard in its place, blank for nothing; None where both agree. Words that are only heard have no text."""


@dataclass(frozen=True, slots=True)
class _Word:
    folded: str
    start: int
    end: int


def compare(written: str, heard: str) -> tuple[Mark, ...]:
    """The transcript in pieces, marked where other words were heard; spelling, case and signs do not count."""
    written, heard = (unicodedata.normalize("NFC", text) for text in (written, heard))
    ours, theirs = _words(written), _words(heard)
    matcher = difflib.SequenceMatcher(None, [w.folded for w in ours], [w.folded for w in theirs], autojunk=False)
    marks, position = list[Mark](), 0
    for kind, first, last, start, end in matcher.get_opcodes():
        left, right = _joined(ours[first:last]), _joined(theirs[start:end])
        if kind == "equal" or _alike(left, right):
            continue
        begins = ours[first].start if first < len(ours) else len(written)
        ends = ours[last - 1].end if last > first else begins
        if position < begins:
            marks.append(Mark(written[position:begins]))
        there = heard[theirs[start].start : theirs[end - 1].end] if start < end else ""
        marks.append(Mark(written[begins:ends], there))
        position = ends
    return (*marks, Mark(written[position:])) if position < len(written) else tuple(marks)


def _joined(words: list[_Word]) -> str:
    return " ".join(word.folded for word in words)


def _words(text: str) -> list[_Word]:
    """Words without signs and case; scripts that write no blanks count letter by letter."""
    words: list[_Word] = []
    joined = False
    for position, letter in enumerate(text):
        for sign in unicodedata.normalize("NFKC", letter).casefold():
            if sign in "'’":
                continue
            if unicodedata.category(sign)[0] not in "LNM":
                joined = False
                continue
            is_dense = sign >= "\u2e80"
            if joined and not is_dense:
                last = words.pop()
                words.append(_Word(last.folded + sign, last.start, position + 1))
            else:
                words.append(_Word(sign, position, position + 1))
            joined = not is_dense
    return words


def _alike(left: str, right: str) -> bool:
    return bool(left and right) and difflib.SequenceMatcher(None, left, right).ratio() >= ALIKE
