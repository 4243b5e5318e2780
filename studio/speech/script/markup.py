"""What is pasted with a text and is not said: Markdown's signs, marks of citations, emoji."""

from __future__ import annotations

import re

from studio.speech.script.brackets import TAG

_MOST_PASSES = 4
"""Signs stand within signs, as a list's in a quotation's; deeper than this they are left."""
_NOTE = r"\d{1,3}(?:\s?[,;–-]\s?\d{1,3})*|\^[^\[\]\s]{1,40}|(?:note|n) \d{1,3}|(?:citation|clarification) needed"
_CITATION = rf"(?<!\\)\[(?:{_NOTE})\]"
CITATION = re.compile(_CITATION, re.IGNORECASE)
"""[1], [2, 3], [^note], [citation needed]."""
_CITATIONS = re.compile(rf"^(?:{_CITATION})+:?[ \t]*|(?<![ \t])[ \t]*(?:{_CITATION})+", re.IGNORECASE | re.MULTILINE)
_ADDRESS = r"(?:(?:https?://|www\.|mailto:|\.{0,2}/|#(?=\w))[^\s()]*(?:\([^\s()]*\)[^\s()]*)*|[\w%-]+(?:[./][\w%-]+)*\.[a-z]\w{1,4})"
_TARGET = rf"\(<?{_ADDRESS}>?(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'))?\)"
LINK_TARGET = re.compile(rf"(?<=\]){_TARGET}")
_LINK = re.compile(rf"!?\[([^\[\]]*)\]{_TARGET}")
_DEFINITION = re.compile(r"^[ ]{0,3}\[[^\[\]\n]+\]:[ \t]*<?(?:https?://|www\.|mailto:).*$", re.MULTILINE)
_BARE_LINK = re.compile(r"<((?:https?://|mailto:)[^\s<>]+)>")
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*[\w+-]*[ \t]*$", re.MULTILINE)
_RULE = re.compile(
    r"^[ \t]*(?:(?:[*_=-][ \t]*){3,}|\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|[-: \t]*)$", re.MULTILINE
)
"""A line across the page, or below the head of a table."""
_ROW = re.compile(r"^[ \t]*\|(.*)\|[ \t]*$", re.MULTILINE)
_BARS = re.compile(r"(?<=[^\s|])(?:[ \t]+\|)+[ \t]+(?=[^\s|])")
"""Between the cells of a table whose lines neither begin nor end with one."""
_HEADING_END = re.compile(r"^([ \t]*#{1,6}[ \t].*?)(?<=\S)[ \t]+#+[ \t]*$", re.MULTILINE)
_LINE_START = re.compile(r"^[ \t]*(?:>[ \t]?|#{1,6}[ \t]+|[*+•‣◦-][ \t]+(?:\[[ xX]\][ \t]+)?)+", re.MULTILINE)
_EMPHASIS = re.compile(
    r"(?<![\w*\\])\*+(?=[^\s*])|(?<=[^\s*\\])\*+(?![\w*])"
    r"|(?<!\w)_+(?=[^\W_])|(?<=[^\s_\\])_+(?!\w)"
    r"|~~(?=\S)|(?<=\S)~~"
)
_TICKS = re.compile(r"(?<=[^\W\d_])`(?=[^\W\d_])|(`+)")
_PICTURES = "\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001f0ff\U0001f170-\U0001faff"
_EMOJI = re.compile(rf"(?<![ \t])[ \t]*[{_PICTURES}][{_PICTURES} \t]*")
_ANY = re.compile(rf"[\[\]*_~`#|<>•‣◦={_PICTURES}]|^[ \t]*[+-]", re.MULTILINE)


def without_markup(text: str) -> str:
    """The words that Markdown, citations and emoji stand around. Doing it again changes nothing.

    Of a link its words are left, of a table its cells, with commas between.
    """
    for _ in range(_MOST_PASSES):
        before, text = text, _plain(text)
        if text == before:
            break
    return text


def _plain(text: str) -> str:
    """Piece by piece between marks of speakers and phonemes, whose bars are nothing of a table."""
    if not _ANY.search(text):
        return text
    read, at = list[str](), 0
    for mark in (*(tag for tag in TAG.finditer(text) if tag[0][0] == "<"), None):
        read.append(_words(text[at : mark.start() if mark else len(text)]))
        if mark:
            read.append(mark[0])
            at = mark.end()
    return "".join(read)


def _words(text: str) -> str:
    for pattern in (_FENCE, _RULE, _DEFINITION):
        text = pattern.sub("", text)
    text = _LINK.sub(r"\1", _BARE_LINK.sub(r"\1", text))
    text = _CITATIONS.sub("", text)
    text = _BARS.sub(", ", _ROW.sub(_cells, text))
    text = _LINE_START.sub("", _HEADING_END.sub(r"\1", text))
    text = _EMPHASIS.sub("", text)
    text = _TICKS.sub(lambda tick: "" if tick[1] else "'", text)
    return _EMOJI.sub(_gap, text)


def _cells(row: re.Match[str]) -> str:
    return ", ".join(cell.strip() for cell in row[1].split("|") if cell.strip())


def _gap(picture: re.Match[str]) -> str:
    """A space where words, or a sentence and the next, stood around a picture."""
    text, (start, end) = picture.string, picture.span()
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    return " " if before.strip() and (after.isalnum() or after in tuple("[(\"'“‘<$")) else ""
