"""The styles of a Word document: their names, the levels of headings and the lists that they stand for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from studio.projects.documents.word.word_xml import of_word, value

_HEADING = re.compile(r"heading ([1-9])")
_MOST_BASES = 20
"""Styles that one may be based on, one upon the other."""


@dataclass(slots=True)
class Style:
    """A style, as far as it says something itself."""

    name: str = ""
    """In lower case, and in English whatever the language of the Word that made it."""
    base: str = ""
    level: int | None = None
    """Of its outline, from 1 on; 10 is body text, None: as its base has it."""
    list_id: str | None = None
    list_level: int | None = None


class Styles:
    """Receives the elements of word/styles.xml; then gives each style with the properties of its bases."""

    def __init__(self) -> None:
        self._styles: dict[str, Style] = {}
        self._whole: dict[str, Style] = {}
        self._open = Style()
        self._acts = of_word({
            "style": self._begin, "name": self._name, "basedOn": self._base, "outlineLvl": self._level,
            "numId": self._list, "ilvl": self._list_level,
        })  # fmt: skip

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if act := self._acts.get(tag):
            act(attributes)

    def close(self) -> None:
        """Nothing is left to do."""

    def find(self, style_id: str) -> Style:
        """A style with the properties of its bases; one that is not listed is called as its id."""
        if style_id not in self._whole:
            self._whole[style_id] = self._resolved(style_id)
        return self._whole[style_id]

    def _resolved(self, style_id: str) -> Style:
        own = self._styles.get(style_id)
        if own is None:
            return Style(name := style_id.lower(), level=_level_of(name))
        whole = Style(own.name)
        seen = set[str]()
        while own is not None and style_id not in seen and len(seen) < _MOST_BASES:
            seen.add(style_id)
            level = own.level if own.level is not None else _level_of(own.name)
            whole.level = level if whole.level is None else whole.level
            whole.list_id = own.list_id if whole.list_id is None else whole.list_id
            whole.list_level = own.list_level if whole.list_level is None else whole.list_level
            if own.name.startswith(("toc ", "title")) and not whole.name.startswith(("toc ", "title")):
                whole.name = own.name
            style_id = own.base
            own = self._styles.get(style_id)
        return whole

    def _begin(self, attributes: Mapping[str, str]) -> None:
        self._open = self._styles[value(attributes, ["styleId"])] = Style()

    def _name(self, attributes: Mapping[str, str]) -> None:
        self._open.name = self._open.name or value(attributes).lower()

    def _base(self, attributes: Mapping[str, str]) -> None:
        self._open.base = value(attributes)

    def _level(self, attributes: Mapping[str, str]) -> None:
        self._open.level = outline_level(attributes)

    def _list(self, attributes: Mapping[str, str]) -> None:
        self._open.list_id = value(attributes)

    def _list_level(self, attributes: Mapping[str, str]) -> None:
        self._open.list_level = whole_number(value(attributes))


def outline_level(attributes: Mapping[str, str]) -> int | None:
    """From 1 on; 10 is body text."""
    level = whole_number(value(attributes))
    return None if level is None else level + 1


def whole_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def _level_of(name: str) -> int | None:
    found = _HEADING.fullmatch(name) or _HEADING.fullmatch(name.replace("heading", "heading ", 1))
    return int(found[1]) if found else None
