"""Text in brackets: a tag if the model or the studio knows it, otherwise ordinary words.

A tag after a backslash counts as ordinary words too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable

TAG = re.compile(r"\[[^\[\]]*\]|<\|[^|>]*\|>")  # not read aloud: [whisper], [pause:1s], <|speaker:0|>
PAUSE = re.compile(r"\[pause:\s*(\d{1,5}(?:\.\d{1,3})?)\s*(ms|s)\s*\]", re.IGNORECASE)
"""Silence, with any model."""
_BRACKETS = re.compile(r"<\|[^|>]*\|>|(\\?)\[([^\[\]]*)\]|(\\?[\[\]])")
_BETWEEN = ("pause", "break", "long-break")  # tags between two sentences, which belong to both
_LEADING = re.compile(r"(?:[\s\"'“‘«„(]|<\|[^|>]*\|>|\[[^\[\]]*\])*")
_BLANKED = str.maketrans("\\[]", "   ")
_NAMED = re.compile(r"\[([^\[\]]*)\]")


def between(marks: Iterable[re.Match[str]], text: str, read: Callable[[str], str]) -> str:
    """The text, with ``read`` applied to what is before, between and after the marks, which stay."""
    pieces, at = list[str](), 0
    for mark in marks:
        pieces += [read(text[at : mark.start()]), mark[0]]
        at = mark.end()
    return "".join([*pieces, read(text[at:])])


def read_brackets(text: str, names: Collection[str] | None) -> str:
    """Remove all brackets except those of tags; the words in them stay.

    ``names`` are the model's tags; None if it takes any words as a tag.
    """
    if "[" not in text and "]" not in text:
        return text
    tags = _tags_by_key(names)
    return _BRACKETS.sub(lambda bracket: _as_read(bracket, tags), text)


def hide_tags(text: str, names: Collection[str] | None) -> str:
    """Replace tags, and the brackets around words, by spaces; the length stays the same."""
    tags = _tags_by_key(names)
    return _BRACKETS.sub(lambda bracket: _hidden(bracket, tags), text)


def _tags_by_key(names: Collection[str] | None) -> dict[str, str] | None:
    return None if names is None else {_folded(name): name for name in names}


def _is_words(bracket: re.Match[str], tags: dict[str, str] | None) -> bool:
    """Whether the text in these brackets is not a tag."""
    escaped, inner, _ = bracket.groups()
    if inner is None:
        return False
    return bool(escaped) or (tags is not None and _folded(inner) not in tags and not PAUSE.fullmatch(bracket[0]))


def _as_read(bracket: re.Match[str], tags: dict[str, str] | None) -> str:
    _, inner, stray = bracket.groups()
    if stray:
        return "" if tags is not None or stray[0] == "\\" else stray
    if _is_words(bracket, tags):
        return _spaced(bracket, inner.strip().removesuffix("\\").rstrip())
    name = None if tags is None or inner is None else tags.get(_folded(inner))
    return bracket[0] if name is None else f"[{name}]"


def _hidden(bracket: re.Match[str], tags: dict[str, str] | None) -> str:
    if _is_words(bracket, tags):
        return bracket[0].translate(_BLANKED)
    return bracket[0] if bracket[3] else " " * len(bracket[0])


def _spaced(bracket: re.Match[str], words: str) -> str:
    """The words, separated from adjoining ones, unless the brackets are inside a word: "[t]he", "walk[ed]"."""
    if " " not in words and not words[:1].isupper():
        return words
    text, (start, end) = bracket.string, bracket.span()
    before = " " if text[max(0, start - 1) : start].isalnum() else ""
    after = " " if text[end : end + 1].isalnum() and len(words) > 1 else ""
    return f"{before}{words}{after}"


def manner_of(text: str) -> str:
    """The leading tags of a text without pauses: how it is spoken. Blank if there are none."""
    return "".join(tag[0] for tag in manner_tags(text))


def manner_tags(text: str) -> list[re.Match[str]]:
    """Matches of the leading tags of a text, without pauses."""
    return [tag for tag in _leading_tags(text) if not _is_pause(tag)]


def pauses_before_manner(text: str) -> int:
    """The index after the pauses before the first other leading tag; 0 if there are none."""
    place = 0
    for tag in _leading_tags(text):
        if not _is_pause(tag):
            return place
        place = tag.end()
    return 0


def _leading_tags(text: str) -> list[re.Match[str]]:
    leading = _LEADING.match(text)
    return [*_NAMED.finditer(leading[0])] if leading else []


def _is_pause(tag: re.Match[str]) -> bool:
    return _folded(tag[1]) in _BETWEEN or bool(PAUSE.match(tag[0]))


def _folded(name: str) -> str:
    return " ".join(name.lower().split())
