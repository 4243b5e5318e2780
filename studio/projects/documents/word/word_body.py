"""The paragraphs of a Word document's body, and of its notes, as they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from studio.errors import InvalidDocument
from studio.projects.documents.books.note_marks import BEFORE, as_raised, is_note_mark
from studio.projects.documents.passages import MAX_PASSAGES, MAX_TEXT
from studio.projects.documents.word.styles import outline_level, whole_number
from studio.projects.documents.word.word_xml import MAX_MARKUP, of_word, value

_TWICE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_FEW = 8
"""Texts that are looked at before a raised one."""


@dataclass(slots=True)
class WordParagraph:
    """A paragraph as the file has it."""

    texts: list[str] = field(default_factory=list)
    style: str = ""
    """The id."""
    level: int | None = None
    """Of its outline, from 1 on, where it says so itself."""
    list_id: str | None = None
    list_level: int | None = None
    notes: list[str] = field(default_factory=list)
    """Those that it refers to: footnote 3 is "footnote3"."""
    note: str = ""
    """The one that it is of."""

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


class WordBody:
    """Receives elements; then has the paragraphs, those of text boxes before the one that they hang on."""

    def __init__(self) -> None:
        self.paragraphs: list[WordParagraph] = []
        self._open: list[WordParagraph] = []
        self._is_text = self._is_raised = self._is_custom_mark = False
        self._unheard = self._characters = self._markup = self._begun = 0
        self._note = ""
        self._acts = of_word({
            "p": self._begin, "r": self._begin_run, "t": self._begin_text, "tab": self._blank, "br": self._blank,
            "cr": self._blank, "noBreakHyphen": self._hyphen, "pStyle": self._style, "outlineLvl": self._level,
            "numId": self._list, "ilvl": self._list_level, "vertAlign": self._raise, "moveFrom": self._begin_unheard,
            "rt": self._begin_unheard, "footnoteReference": self._footnote, "endnoteReference": self._endnote,
            "footnote": self._begin_footnote, "endnote": self._begin_endnote,
        }) | {_TWICE: self._begin_unheard}  # fmt: skip
        self._ends = of_word({
            "p": self._finish, "t": self._end_text, "moveFrom": self._end_unheard, "rt": self._end_unheard,
        }) | {_TWICE: self._end_unheard}  # fmt: skip

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._markup += 1 + len(attributes)
        if self._markup > MAX_MARKUP:
            raise InvalidDocument(f"the document has more than {MAX_MARKUP} elements and attributes; split it", "file")
        if act := self._acts.get(tag):
            act(attributes)

    def data(self, text: str) -> None:
        if self._is_text:
            self._open[-1].texts.append(text)

    def end(self, tag: str) -> None:
        if act := self._ends.get(tag):
            act({})

    def close(self) -> None:
        """Nothing is left to do."""

    def _begin(self, _: Mapping[str, str]) -> None:
        self._begun += 1
        if self._begun > MAX_PASSAGES:
            raise InvalidDocument(f"the document has more than {MAX_PASSAGES} paragraphs; split it", "file")
        self._open.append(WordParagraph(note=self._note))

    def _finish(self, _: Mapping[str, str]) -> None:
        if not self._open:
            return
        paragraph = self._open.pop()
        self._characters += sum(map(len, paragraph.texts))
        if self._characters > MAX_TEXT:
            raise InvalidDocument(f"the document has more than {MAX_TEXT} characters of text; split it", "file")
        if paragraph.texts or paragraph.notes or paragraph.list_id:
            self.paragraphs.append(paragraph)

    def _begin_run(self, _: Mapping[str, str]) -> None:
        self._is_raised = self._is_custom_mark = False

    def _raise(self, attributes: Mapping[str, str]) -> None:
        self._is_raised = value(attributes) == "superscript"

    def _begin_text(self, _: Mapping[str, str]) -> None:
        self._is_text = bool(self._open) and not self._unheard and not self._is_custom_mark

    def _end_text(self, _: Mapping[str, str]) -> None:
        if self._is_text and self._is_raised:
            texts = self._open[-1].texts
            raised = texts.pop() if texts else ""
            before = "".join(each[-BEFORE:] for each in texts[-_FEW:])[-BEFORE:]
            if not is_note_mark(before, raised):
                texts.append(as_raised(raised))
        self._is_text = False

    def _blank(self, _: Mapping[str, str]) -> None:
        if self._open:
            self._open[-1].texts.append(" ")

    def _hyphen(self, _: Mapping[str, str]) -> None:
        if self._open:
            self._open[-1].texts.append("-")

    def _style(self, attributes: Mapping[str, str]) -> None:
        if self._open:
            self._open[-1].style = value(attributes)

    def _level(self, attributes: Mapping[str, str]) -> None:
        if self._open:
            self._open[-1].level = outline_level(attributes)

    def _list(self, attributes: Mapping[str, str]) -> None:
        if self._open:
            self._open[-1].list_id = value(attributes)

    def _list_level(self, attributes: Mapping[str, str]) -> None:
        if self._open:
            self._open[-1].list_level = whole_number(value(attributes))

    def _footnote(self, attributes: Mapping[str, str]) -> None:
        self._refer("footnote", attributes)

    def _endnote(self, attributes: Mapping[str, str]) -> None:
        self._refer("endnote", attributes)

    def _refer(self, kind: str, attributes: Mapping[str, str]) -> None:
        if self._open and not self._unheard:
            self._open[-1].notes.append(f"{kind}{value(attributes, ['id'])}")
            self._is_custom_mark = value(attributes, ["customMarkFollows"]) in ("1", "true", "on")

    def _begin_footnote(self, attributes: Mapping[str, str]) -> None:
        self._note = f"footnote{value(attributes, ['id'])}"

    def _begin_endnote(self, attributes: Mapping[str, str]) -> None:
        self._note = f"endnote{value(attributes, ['id'])}"

    def _begin_unheard(self, _: Mapping[str, str]) -> None:
        self._unheard += 1

    def _end_unheard(self, _: Mapping[str, str]) -> None:
        self._unheard -= 1
