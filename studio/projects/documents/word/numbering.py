"""The numbers of lists and headings in a Word document, which it shows and its text does not have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from studio.projects.documents.books.ordinals import WORD_KINDS, ordinal
from studio.projects.documents.word.styles import whole_number
from studio.projects.documents.word.word_xml import of_word, value

LEVELS = 9


@dataclass(slots=True)
class _Level:
    kind: str = ""
    """As ordinals call it; blank: bullets, or nothing."""
    text: str = ""
    """The pattern of its numbers: %1 is the number of the first level."""
    start: int = 1
    style: str = ""
    """The id of the style whose paragraphs are of this level."""


@dataclass(slots=True)
class _List:
    levels: dict[int, _Level] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Instance:
    """A list as paragraphs name it: it counts on with others of the same list, unless it starts again."""

    of: str = ""
    starts: dict[int, int] = field(default_factory=dict)
    is_used: bool = False


class Numbering:
    """Receives the elements of word/numbering.xml; then gives paragraph after paragraph its number."""

    def __init__(self) -> None:
        self._lists: dict[str, _List] = {}
        self._instances: dict[str, _Instance] = {}
        self._list = _List()
        self._level = _Level()
        self._instance: _Instance | None = None
        self._overridden = 0
        self._acts = of_word({
            "abstractNum": self._begin_list, "lvl": self._begin_level, "numFmt": self._kind, "lvlText": self._text,
            "start": self._start, "pStyle": self._style, "num": self._begin_instance, "abstractNumId": self._of,
            "lvlOverride": self._override, "startOverride": self._start_again,
        })  # fmt: skip

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if act := self._acts.get(tag):
            act(attributes)

    def close(self) -> None:
        """Nothing is left to do."""

    def next_number(self, list_id: str, level: int | None, style_id: str) -> str:
        """The number of the next paragraph of a list; blank for bullets, and if there is no such list."""
        instance = self._instances.get(list_id)
        if instance is None or instance.of not in self._lists:
            return ""
        numbers = self._lists[instance.of]
        if level is None:
            level = next((at for at, each in numbers.levels.items() if each.style == style_id != ""), 0)
        if level >= LEVELS:
            return ""
        if not instance.is_used:
            instance.is_used = True
            numbers.counts |= {at: start - 1 for at, start in instance.starts.items()}
        for at in range(level + 1):
            numbers.counts.setdefault(at, numbers.levels.get(at, _Level()).start - (at == level))
        numbers.counts[level] += 1
        numbers.counts = {at: count for at, count in numbers.counts.items() if at <= level}
        return self._shown(numbers, level)

    def _shown(self, numbers: _List, level: int) -> str:
        own = numbers.levels.get(level)
        if own is None or not own.kind:
            return ""
        text = own.text
        for at in range(level + 1):
            kind = numbers.levels[at].kind if at in numbers.levels else ""
            text = text.replace(f"%{at + 1}", ordinal(numbers.counts.get(at, 1), kind or "1"))
        return text.strip()

    def _begin_list(self, attributes: Mapping[str, str]) -> None:
        self._list = self._lists[value(attributes, ["abstractNumId"])] = _List()
        self._instance = None

    def _begin_level(self, attributes: Mapping[str, str]) -> None:
        at = whole_number(value(attributes, ["ilvl"])) or 0
        self._level = _Level()
        if self._instance is None and at < LEVELS:
            self._list.levels[at] = self._level

    def _kind(self, attributes: Mapping[str, str]) -> None:
        self._level.kind = WORD_KINDS.get(value(attributes), "")

    def _text(self, attributes: Mapping[str, str]) -> None:
        self._level.text = value(attributes)[:100]

    def _start(self, attributes: Mapping[str, str]) -> None:
        start = whole_number(value(attributes))
        self._level.start = 1 if start is None else start

    def _style(self, attributes: Mapping[str, str]) -> None:
        self._level.style = value(attributes)

    def _begin_instance(self, attributes: Mapping[str, str]) -> None:
        self._instance = self._instances[value(attributes, ["numId"])] = _Instance()

    def _of(self, attributes: Mapping[str, str]) -> None:
        if self._instance:
            self._instance.of = value(attributes)

    def _override(self, attributes: Mapping[str, str]) -> None:
        self._overridden = whole_number(value(attributes, ["ilvl"])) or 0

    def _start_again(self, attributes: Mapping[str, str]) -> None:
        start = whole_number(value(attributes))
        if self._instance and start is not None:
            self._instance.starts[self._overridden] = start
