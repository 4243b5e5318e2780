"""Computes the numbers of lists and headings, which are not part of a Word document's text."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from studio.projects.documents.books.ordinals import ordinal
from studio.projects.documents.word.word_xml import children, name_of, number, value

LEVELS = 9
_KINDS = {
    "decimal": "1", "decimalZero": "1", "lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I",
}  # fmt: skip


@dataclass(slots=True)
class _Level:
    kind: str = ""
    """The kind for `ordinal`; blank for bullets or no number."""
    text: str = ""
    """The pattern of the numbers: %1 is the number of the first level."""
    start: int = 1
    style: str = ""
    """The id of the style that has this level."""


@dataclass(slots=True)
class _List:
    levels: dict[int, _Level]
    counts: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Instance:
    """A list as referenced by paragraphs; instances of the same list share its counts unless one restarts."""

    of: str
    starts: dict[int, int]
    is_used: bool = False


class Numbering:
    """The lists of word/numbering.xml; call `next_number` for each paragraph in order."""

    def __init__(self, root: Element) -> None:
        self._lists: dict[str, _List] = {}
        self._instances: dict[str, _Instance] = {}
        for element in root:
            if name_of(element) == "abstractNum":
                levels = {number(level, "ilvl") or 0: _level(level) for level in element if name_of(level) == "lvl"}
                self._lists[value(element, "abstractNumId")] = _List({at: levels[at] for at in levels if at < LEVELS})
            elif name_of(element) == "num":
                self._instances[value(element, "numId")] = _instance(element)

    def next_number(self, list_id: str, level: int | None, style_id: str) -> str:
        """The number of the next paragraph of a list; blank for bullets and unknown lists."""
        instance = self._instances.get(list_id)
        if instance is None or instance.of not in self._lists:
            return ""
        numbers = self._lists[instance.of]
        if level is None:
            level = next((at for at, entry in numbers.levels.items() if entry.style == style_id != ""), 0)
        if level >= LEVELS:
            return ""
        if not instance.is_used:
            instance.is_used = True
            numbers.counts |= {at: start - 1 for at, start in instance.starts.items()}
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
            text = text.replace(f"%{at + 1}", ordinal(numbers.counts.get(at, 1), kind or "1"))
        return text.strip()


def _level(element: Element) -> _Level:
    parts = children(element)
    kind, start = _KINDS.get(value(parts.get("numFmt")), ""), number(parts.get("start"))
    return _Level(kind, value(parts.get("lvlText"))[:100], 1 if start is None else start, value(parts.get("pStyle")))


def _instance(element: Element) -> _Instance:
    overridden = {number(level, "ilvl") or 0: number(children(level).get("startOverride")) for level in element}
    starts = {at: start for at, start in overridden.items() if start is not None}
    return _Instance(value(children(element).get("abstractNumId")), starts)
