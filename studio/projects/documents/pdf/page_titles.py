"""Finds the titles of a PDF's outline in the lines of the page to which they point."""

from __future__ import annotations

import re
from collections.abc import Sequence

from studio.projects.documents.headings import is_heading

MAX_TITLE = 200
TITLE_LINES = 3
"""Lines of a page that may form one title of the outline."""

_NUMBER = re.compile(r"\d+")
_LEADING = re.compile(r"(?:\d{1,3}\.)*\d{1,3}\.?\s+(?=\D)")


class PageTitles:
    """The outline titles of one page, matched by letters and digits only."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._by_letters: dict[str, str] = {}

    def add(self, title: str) -> None:
        """Add a title; it matches with or without its number."""
        self.all.append(title)
        words = title.split()
        for count in range(min(3, len(words))):
            if count and not (is_heading(" ".join(words[:count])) or _NUMBER.match(words[count - 1])):
                continue
            letters = _letters(" ".join(words[count:]))
            if len(letters) > 1:
                self._by_letters.setdefault(letters, title)

    def of(self, lines: Sequence[str]) -> tuple[str, int]:
        """The title at the start of some lines, and its number of lines; blank if there is none."""
        if not self._by_letters:
            return "", 0
        number = _LEADING.match(lines[0]) if lines else None
        return self._find(lines) or (self._find([lines[0][number.end() :], *lines[1:]]) if number else None) or ("", 0)

    def _find(self, lines: Sequence[str]) -> tuple[str, int] | None:
        letters, title = "", None
        for count, line in enumerate(lines[:TITLE_LINES], start=1):
            letters += _letters(line)
            if len(letters) > MAX_TITLE:
                break
            if letters in self._by_letters:
                title = self._by_letters[letters], count
        return title


def _letters(text: str) -> str:
    return "".join(sign for sign in text[: 2 * MAX_TITLE].casefold() if sign.isalnum())
