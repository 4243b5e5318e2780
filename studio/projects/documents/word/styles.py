"""The styles of a Word document: their names, the levels of headings and the lists that they stand for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from studio.projects.documents.word.word_xml import name_of, number, outline_level, value

_HEADING = re.compile(r"heading ?([1-9])")
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
    """Of the tree of word/styles.xml: gives each style with the properties of its bases."""

    def __init__(self, root: Element) -> None:
        self._styles = {value(each, "styleId"): _style(each) for each in root if name_of(each) == "style"}
        self._whole: dict[str, Style] = {}

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


def _style(element: Element) -> Style:
    parts = {name_of(each): each for each in reversed(list(element.iter()))}
    name, base, list_id = (value(parts.get(each)) for each in ("name", "basedOn", "numId"))
    level, list_level = outline_level(parts.get("outlineLvl")), number(parts.get("ilvl"))
    return Style(name.lower(), base, level, list_id if "numId" in parts else None, list_level)


def _level_of(name: str) -> int | None:
    found = _HEADING.fullmatch(name)
    return int(found[1]) if found else None
