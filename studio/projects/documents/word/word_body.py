"""The paragraphs of a Word document's body, and of its notes, as they are read."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from studio.errors import InvalidDocument
from studio.projects.documents.books.note_marks import BEFORE, as_raised, is_note_mark
from studio.projects.documents.passages import MAX_PASSAGES, MAX_TEXT
from studio.projects.documents.word.word_xml import FALLBACK, name_of, number, outline_level, steps, value

_UNHEARD = ("moveFrom", "rt", FALLBACK)
_SIGNS = {"tab": " ", "br": " ", "cr": " ", "noBreakHyphen": "-"}
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


def word_paragraphs(archive: zipfile.ZipFile, name: str, limit: int) -> Iterator[WordParagraph]:
    """Those of a file, those of text boxes before the one that they hang on. Raises as `steps` does."""
    characters = begun = unheard = is_open = 0
    note = ""
    around: list[Element] = []
    for begins, element in steps(archive, name, limit):
        kind = name_of(element)
        change = 1 if begins else -1
        unheard += change * (kind in _UNHEARD)
        is_open += change * (kind == "p")
        if begins:
            around.append(element)
            begun += kind == "p"
            if begun > MAX_PASSAGES:
                raise InvalidDocument(f"the document has more than {MAX_PASSAGES} paragraphs; split it", "file")
            if kind in ("footnote", "endnote"):
                note = f"{kind}{value(element, 'id')}"
            continue
        around.pop()
        if kind == "p" and not unheard:
            paragraph = _paragraph(element, note)
            characters += sum(map(len, paragraph.texts))
            if characters > MAX_TEXT:
                raise InvalidDocument(f"the document has more than {MAX_TEXT} characters of text; split it", "file")
            if paragraph.texts or paragraph.notes or paragraph.list_id:
                yield paragraph
        if kind == "p":
            element.clear()
        if around and not is_open:
            around[-1].clear()  # what was read is not kept


def _paragraph(root: Element, note: str) -> WordParagraph:
    paragraph = WordParagraph(note=note)
    is_raised = is_hidden = False
    waiting = [root]
    while waiting:
        element = waiting.pop()
        kind = name_of(element)
        if kind in _UNHEARD:
            continue
        waiting += reversed(element)
        match kind:
            case "r":
                is_raised = is_hidden = False
            case "vertAlign":
                is_raised = value(element) == "superscript"
            case "vanish":
                is_hidden = value(element) not in ("0", "false", "off")
            case "t" if not is_hidden:
                _add(paragraph.texts, element.text or "", is_raised)
            case "tab" | "br" | "cr" | "noBreakHyphen":
                paragraph.texts.append(_SIGNS[kind])
            case "pStyle":
                paragraph.style = value(element)
            case "outlineLvl":
                paragraph.level = outline_level(element)
            case "numId":
                paragraph.list_id = value(element)
            case "ilvl":
                paragraph.list_level = number(element)
            case "footnoteReference" | "endnoteReference":
                paragraph.notes.append(f"{kind.removesuffix('Reference')}{value(element, 'id')}")
                is_hidden = is_hidden or value(element, "customMarkFollows") in ("1", "true", "on")
    return paragraph


def _add(texts: list[str], text: str, is_raised: bool) -> None:
    """Marks of notes are left out."""
    if is_raised:
        if is_note_mark("".join(each[-BEFORE:] for each in texts[-_FEW:])[-BEFORE:], text):
            return
        text = as_raised(text)
    texts.append(text)
