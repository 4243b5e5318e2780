"""The styles of a Word document: names, heading levels and lists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from studio.projects.documents.word.word_xml import name_of, number, outline_level, value

_HEADING = re.compile(r"heading ?([1-9])")
_MAX_BASES = 20
"""Maximum length of a chain of base styles."""


@dataclass(slots=True)
class Style:
    """A style's own properties, without those of its bases."""

    name: str = ""
    """In lower case; always English, in any language of Word."""
    base: str = ""
    level: int | None = None
    """Outline level from 1; 10 is body text, None inherits from the base."""
    list_id: str | None = None
    list_level: int | None = None


class Styles:
    """The styles of word/styles.xml, resolved with their bases."""

    def __init__(self, root: Element) -> None:
        self._styles = {value(style, "styleId"): _style(style) for style in root if name_of(style) == "style"}
        self._resolved: dict[str, Style] = {}

    def find(self, style_id: str) -> Style:
        """A style with the properties of its bases; an unknown one is named by its id."""
        if style_id not in self._resolved:
            self._resolved[style_id] = self._resolve(style_id)
        return self._resolved[style_id]

    def _resolve(self, style_id: str) -> Style:
        style = self._styles.get(style_id)
        if style is None:
            return Style(name := style_id.lower(), level=_level_of(name))
        result = Style(style.name)
        seen = set[str]()
        while style is not None and style_id not in seen and len(seen) < _MAX_BASES:
            seen.add(style_id)
            level = style.level if style.level is not None else _level_of(style.name)
            result.level = level if result.level is None else result.level
            result.list_id = style.list_id if result.list_id is None else result.list_id
            result.list_level = style.list_level if result.list_level is None else result.list_level
            if style.name.startswith(("toc ", "title")) and not result.name.startswith(("toc ", "title")):
                result.name = style.name
            style_id = style.base
            style = self._styles.get(style_id)
        return result


def _style(element: Element) -> Style:
    parts = {name_of(part): part for part in reversed(list(element.iter()))}
    name, base, list_id = (value(parts.get(key)) for key in ("name", "basedOn", "numId"))
    level, list_level = outline_level(parts.get("outlineLvl")), number(parts.get("ilvl"))
    return Style(name.lower(), base, level, list_id if "numId" in parts else None, list_level)


def _level_of(name: str) -> int | None:
    match = _HEADING.fullmatch(name)
    return int(match[1]) if match else None
