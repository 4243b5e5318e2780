"""The author of a Word document: of its metadata, or of the subtitle below its title."""

from __future__ import annotations

import re

from studio.library.projects.project_records import MAX_AUTHOR
from studio.paths import json_beside
from studio.projects.documents.headings import is_heading

_WORDS = {name: frozenset(words) for name, words in json_beside(__file__, "byline.json").items()}
"""placeholders: authors that programs enter by themselves; by: words before a name; and: words between names;
particles: parts of names in lower case; other: words of subtitles that are not in names."""
_SEPARATOR = re.compile(rf"\s*[,&]\s*|\s+(?:{'|'.join(sorted(_WORDS['and']))})\s+", re.IGNORECASE)
_NAME = re.compile(r"[^\W\d_]+(?:[-'’.][^\W\d_]*)*")
_MOST_WORDS = 4
"""Of a name, without its particles."""


def author_of(creator: str, subtitle: str) -> str:
    """The metadata's creator, unless a program entered it; else the name in the subtitle; blank without either.

    A subtitle has a name after a word such as "by", or if it consists of two to four words of which each may be part of
    a name. Several names are separated by commas or "and".
    """
    if creator and creator.casefold() not in _WORDS["placeholders"]:
        return creator[:MAX_AUTHOR]
    first, _, rest = (line := " ".join(subtitle.split())).partition(" ")
    is_marked = first.casefold().rstrip(":") in _WORDS["by"]
    names = rest if is_marked else line
    min_words = 1 if is_marked else 2
    is_author = names and not is_heading(line) and all(_is_name(name, min_words) for name in _SEPARATOR.split(names))
    return names[:MAX_AUTHOR] if is_author else ""


def _is_name(name: str, min_words: int) -> bool:
    words = [word for word in name.split() if word not in _WORDS["particles"]]
    return min_words <= len(words) <= _MOST_WORDS and all(
        _NAME.fullmatch(word) and word[0].isupper() and word.casefold().rstrip(".") not in _WORDS["other"]
        for word in words
    )
