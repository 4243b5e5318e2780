"""Parses the XML files of a Word document, and resolves what its body refers to: styles, and the numbers of lists."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from manuscript.note_marks import ordinal
from manuscript.passages import InvalidDocument
from manuscript.untrusted import read_entry

MAX_MARKUP = 6_000_000  # elements and attributes of a file
FALLBACK = "Fallback"  # an element with a copy of the previous one, for old programs
LEVELS = 9

_NAMESPACES = (
    "{http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "{http://purl.oclc.org/ooxml/wordprocessingml/main",
)
FORMULAS = frozenset((
    "{http://schemas.openxmlformats.org/officeDocument/2006/math}oMath",
    "{http://purl.oclc.org/ooxml/officeDocument/math}oMath",
))  # fmt: skip
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006"
_HEADING = re.compile(r"heading ?([1-9])")
_MAX_BASES = 20  # in a chain of base styles
_KINDS = {
    "decimal": "1", "decimalZero": "1", "lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I",
}  # fmt: skip


class MalformedPart(InvalidDocument):
    """A file of the document is not well-formed."""


def steps(archive: zipfile.ZipFile, name: str, limit: int) -> Iterator[tuple[bool, Element]]:
    """Yield (True, element) at each start tag and (False, element) at each end tag; nothing if the file is missing.

    Raises InvalidDocument (MalformedPart is a subclass) and InvalidArchive.
    """
    if name not in archive.namelist():
        return
    data = read_entry(archive, archive.getinfo(name), limit)
    if b"<!DOCTYPE" in data.replace(b"\0", b""):  # also in UTF-16; entities could expand endlessly
        raise InvalidDocument(f"{name!r} in the document declares a document type, which Word never does")
    markup = 0
    try:
        for event, element in ElementTree.iterparse(io.BytesIO(data), ("start", "end")):  # noqa: S314  (no entities)
            if event == "start":
                markup += 1 + len(element.attrib)
                if markup > MAX_MARKUP:
                    raise InvalidDocument(f"the document has more than {MAX_MARKUP} elements and attributes; split it")
            yield event == "start", element
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise MalformedPart(f"{name!r} in the document is malformed: {error}") from None


def tree(archive: zipfile.ZipFile, name: str, limit: int) -> Element:
    """The root of a small file; an empty element if the file is missing. Raises as `steps` does."""
    *_, (_, root) = (False, Element("")), *steps(archive, name, limit)
    return root


@lru_cache(maxsize=1000)
def _plain(tag: str) -> str:
    namespace, _, name = tag.rpartition("}")
    return name if namespace in _NAMESPACES or (namespace == _COMPATIBILITY and name == FALLBACK) else ""


def name_of(element: Element) -> str:
    """The name of an element in one of Word's namespaces; blank for others."""
    return _plain(element.tag)


def value(element: Element | None, name: str = "val") -> str:
    """The attribute with this name in any namespace; blank if missing."""
    attributes = {} if element is None else element.attrib
    return next((text for key, text in attributes.items() if key.rpartition("}")[2] == name), "")


def number(element: Element | None, name: str = "val") -> int | None:
    """An attribute as an integer; None if it is not one."""
    text = value(element, name)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def outline_level(element: Element | None) -> int | None:
    """The outline level from 1; 10 is body text."""
    level = number(element)
    return None if level is None else level + 1


@dataclass(slots=True)
class Style:
    """A style. Properties that are None are inherited from its base."""

    name: str = ""  # in lower case; always English, in any language of Word
    base: str = ""
    level: int | None = None  # outline level from 1; 10 is body text
    list_id: str | None = None
    list_level: int | None = None


class Styles:
    """The styles of word/styles.xml, resolved with their bases."""

    def __init__(self, root: Element) -> None:
        self._styles = {value(style, "styleId"): _style(style) for style in root if name_of(style) == "style"}
        self.find = cache(self._resolve)
        """Finds a style by its id, with the properties of its bases; an unknown one is named by its id."""

    def _resolve(self, style_id: str) -> Style:
        style = self._styles.get(style_id)
        if style is None:
            return Style(name := style_id.lower(), level=_level_of(name))
        result, seen = replace(style), set[str]()
        while style is not None and style_id not in seen and len(seen) < _MAX_BASES:
            seen.add(style_id)
            result.level = style.level if result.level is None else result.level
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
    level = outline_level(parts.get("outlineLvl"))
    return Style(
        name.lower(),
        base,
        _level_of(name.lower()) if level is None else level,
        list_id if "numId" in parts else None,
        number(parts.get("ilvl")),
    )


def _level_of(name: str) -> int | None:
    match = _HEADING.fullmatch(name)
    return int(match[1]) if match else None


@dataclass(slots=True)
class _Level:
    kind: str = ""  # for `ordinal`; blank for bullets or no number
    text: str = ""  # the pattern of the numbers: %1 is the number of the first level
    start: int = 1
    style: str = ""  # the id of the style that has this level


@dataclass(slots=True)
class _List:
    levels: dict[int, _Level]
    counts: dict[int, int] = field(default_factory=dict)


class Numbering:
    """The lists of word/numbering.xml, whose numbers are not part of the text of their paragraphs.

    Call `next_number` for each paragraph in order. Lists with the same abstract one share its counts, unless one
    restarts at its first use.
    """

    def __init__(self, root: Element) -> None:
        self._abstract: dict[str, _List] = {}
        self._lists: dict[str, str] = {}  # the abstract list of each list that paragraphs name
        self._restarts: dict[str, dict[int, int]] = {}  # by list, the numbers at which its levels restart
        for element in root:
            if name_of(element) == "abstractNum":
                levels = {number(level, "ilvl") or 0: _level(level) for level in element if name_of(level) == "lvl"}
                levels = {at: level for at, level in levels.items() if at < LEVELS}
                self._abstract[value(element, "abstractNumId")] = _List(levels)
            elif name_of(element) == "num":
                list_id = value(element, "numId")
                self._lists[list_id] = value(_children(element).get("abstractNumId"))
                starts = {number(part, "ilvl") or 0: number(_children(part).get("startOverride")) for part in element}
                self._restarts[list_id] = {at: start for at, start in starts.items() if start is not None}

    def next_number(self, list_id: str, level: int | None, style_id: str) -> str:
        """The number of the next paragraph of a list; blank for bullets and unknown lists."""
        numbers = self._abstract.get(self._lists[list_id]) if list_id in self._lists else None
        if numbers is None:
            return ""
        if level is None:
            level = next((at for at, entry in numbers.levels.items() if entry.style == style_id != ""), 0)
        if level >= LEVELS:
            return ""
        numbers.counts |= {at: start - 1 for at, start in self._restarts.pop(list_id, {}).items()}
        for at in range(level + 1):
            numbers.counts.setdefault(at, numbers.levels.get(at, _Level()).start - (at == level))
        numbers.counts[level] += 1
        numbers.counts = {at: count for at, count in numbers.counts.items() if at <= level}
        entry = numbers.levels.get(level)
        if entry is None or not entry.kind:
            return ""
        text = entry.text
        for at in range(level + 1):
            kind = numbers.levels[at].kind if at in numbers.levels else ""
            text = text.replace(f"%{at + 1}", ordinal(numbers.counts[at], kind or "1"))
        return text.strip()


def _level(element: Element) -> _Level:
    parts = _children(element)
    kind, start = _KINDS.get(value(parts.get("numFmt")), ""), number(parts.get("start"))
    return _Level(kind, value(parts.get("lvlText"))[:100], 1 if start is None else start, value(parts.get("pStyle")))


def _children(element: Element) -> dict[str, Element]:
    """Child elements by name; the last one of each name."""
    return {name_of(child): child for child in element}
