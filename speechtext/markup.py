"""Removes markup that is not read aloud: Markdown, citation marks, emoji."""

from __future__ import annotations

import re

from speechtext.tags import TAG, between

_MOST_PASSES = 4  # markup can be nested, as a list in a quotation; deeper levels are left
_NOTE = r"\d{1,3}(?:\s?[,;–-]\s?\d{1,3})*|\^[^\[\]\s]{1,40}|(?:note|n) \d{1,3}|(?:citation|clarification) needed"
_CITATION = rf"(?<!\\)\[(?:{_NOTE})\]"
CITATION = re.compile(_CITATION, re.IGNORECASE)  # [1], [2, 3], [^note], [citation needed]
_CITATIONS = re.compile(rf"^(?:{_CITATION})+:?[ \t]*|(?<![ \t])[ \t]*(?:{_CITATION})+", re.IGNORECASE | re.MULTILINE)
_ADDRESS = r"(?:(?:https?://|www\.|mailto:|\.{0,2}/|#(?=\w))[^\s()]*(?:\([^\s()]*\)[^\s()]*)*|[\w%-]+(?:[./][\w%-]+)*\.[a-z]\w{1,4})"
_TARGET = rf"\(<?{_ADDRESS}>?(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'))?\)"
LINK_TARGET = re.compile(rf"(?<=\]){_TARGET}")
_LINK = re.compile(rf"!?\[([^\[\]]*)\]{_TARGET}")
_DEFINITION = re.compile(r"^[ ]{0,3}\[[^\[\]\n]+\]:[ \t]*<?(?:https?://|www\.|mailto:).*$", re.MULTILINE)
_BARE_LINK = re.compile(r"<((?:https?://|mailto:)[^\s<>]+)>")
_FENCE = re.compile(r"^[ \t]*+(?:`{3,}+|~{3,}+)[ \t]*+[\w+-]*+[ \t]*+$", re.MULTILINE)
_RULE = re.compile(
    r"^[ \t]*+(?:(?:[*_=-][ \t]*+){3,}+|(?:\|[ \t]*+)?:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*\|[-: \t]*+)$",
    re.MULTILINE,
)
"""A horizontal rule, or the line below the header of a table."""
_ROW = re.compile(r"^[ \t]*\|(.*)\|[ \t]*$", re.MULTILINE)
_BARS = re.compile(r"(?<=[^\s|])(?:[ \t]+\|)+[ \t]+(?=[^\s|])")
"""Between the cells of a table whose rows have no bars at the ends."""
_HEADING_END = re.compile(r"^([ \t]*#{1,6}[ \t].*?)(?<=\S)[ \t]+#+[ \t]*$", re.MULTILINE)
_LINE_START = re.compile(r"^[ \t]*(?:>[ \t]?|#{1,6}[ \t]+|[*+•‣◦-][ \t]+(?:\[[ xX]\][ \t]+)?)+", re.MULTILINE)
_EMPHASIS = re.compile(
    r"(?<![\w*\\])\*+(?=[^\s*])|(?<=[^\s*\\])\*+(?![\w*])"
    r"|(?<![\w\\])_+(?=[^\W_])|(?<=[^\s_\\])_+(?!\w)"
    r"|~~(?=\S)|(?<=\S)~~"
)
_ESCAPE = re.compile(r"\\(?=[*_#>~|`])")  # a backslash before a character that is not markup
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_RAISED_MARK = re.compile(
    rf"([^\W\d_{_RAISED}]{{3,40}})[{_RAISED}]{{1,4}}(?!\w)|(?<=[.,;:!?\"”’)])[{_RAISED}]{{1,4}}(?=\s|$)"
)
"""A raised note mark after a word or a sentence."""
_RAISED_NUMBER = re.compile(
    rf"(?:^|(?<=(?P<end>[.,:;!?…\"”’)])\s)|(?<=[\s\"“‘«(\[]))[{_RAISED}]{{1,4}}[ \t]?"
    r"(?=[\"“‘«(]?(?P<word>[^\W\d_]{1,3}))",
    re.MULTILINE,
)
"""The number of a verse or a note, before its first word."""
_MEASURES = re.compile(r"(?:inch|feet|foot|yard|mile|met(?:er|re)|acre|unit)s?|inches|sin|cos|tan|log", re.IGNORECASE)
"""Words that can have exponents."""
_TICKS = re.compile(r"(?<=[^\W\d_])`(?=[^\W\d_])|(`+)")
_PICTURES = "\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001f0ff\U0001f170-\U0001faff"
_EMOJI = re.compile(rf"(?<![ \t])[ \t]*[{_PICTURES}][{_PICTURES} \t]*")
_ANY = re.compile(rf"[\[\]*_~`#|<>•‣◦={_PICTURES}{_RAISED}]|^[ \t]*[+-]", re.MULTILINE)


def without_markup(text: str) -> str:
    """The text without Markdown, citations and emoji; idempotent.

    Links keep their words, tables their cells, separated by commas.
    """
    for _ in range(_MOST_PASSES):
        if not _ANY.search(text):
            break
        # The bars of speaker and phoneme marks are not those of a table.
        marks = (tag for tag in TAG.finditer(text) if tag[0][0] == "<")
        before, text = text, between(marks, text, _words)
        if text == before:
            break
    return text


def _words(text: str) -> str:
    for pattern in (_FENCE, _RULE, _DEFINITION):
        text = pattern.sub("", text)
    text = _LINK.sub(r"\1", _BARE_LINK.sub(r"\1", text))
    text = _CITATIONS.sub("", text)
    text = _RAISED_MARK.sub(lambda mark: mark[0] if _MEASURES.search(mark[1] or "") else mark[1] or "", text)
    text = without_verse_numbers(text)
    text = _ROW.sub(lambda row: ", ".join(cell.strip() for cell in row[1].split("|") if cell.strip()), text)
    text = _BARS.sub(", ", text)
    text = _LINE_START.sub("", _HEADING_END.sub(r"\1", text))
    text = _EMPHASIS.sub("", text)
    text = _TICKS.sub(lambda tick: "" if tick[1] else "'", text)
    return _EMOJI.sub(_gap, _ESCAPE.sub("", text))


def without_verse_numbers(text: str) -> str:
    """The text without raised numbers before words, as verses and notes have; those of isotopes stay."""

    def read(number: re.Match[str]) -> str:
        word, is_first = number["word"], number["end"] or number.start() == 0 or text[number.start() - 1] == "\n"
        is_element = not is_first and word[0].isupper() and (len(word) < 2 or (len(word) < 3 and word[1].islower()))
        return number[0] if is_element else ""

    return _RAISED_NUMBER.sub(read, text)


def _gap(picture: re.Match[str]) -> str:
    """A space if the emoji is between two words or two sentences."""
    text, (start, end) = picture.string, picture.span()
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    return " " if before.strip() and (after.isalnum() or after in tuple("[(\"'“‘<$")) else ""
