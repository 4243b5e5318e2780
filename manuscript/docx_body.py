"""Reads the paragraphs of a Word document's body and notes."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from xml.etree.ElementTree import Element

from manuscript.docx_parts import FALLBACK, FORMULAS, name_of, number, outline_level, steps, value
from manuscript.formulas import word_text
from manuscript.note_marks import BEFORE, as_raised, is_note_mark, row_text
from manuscript.passages import MAX_PASSAGES, MAX_TEXT, InvalidDocument
from manuscript.plain import unwrap
from speechtext.markup import without_verse_numbers

_IGNORED = ("moveFrom", "rt", FALLBACK)
_FILE = "altChunk"  # another document, such as a web page, in the file
_SIGNS = {"tab": " ", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_LINE_BREAKS = ("", "textWrapping")  # types of ``br``; others begin a page or a column
_CONTEXT = 8  # pieces of text examined before a raised one


@dataclass(slots=True)
class WordParagraph:
    """A paragraph of the file."""

    texts: list[str] = field(default_factory=list)
    style: str = ""  # its id
    level: int | None = None  # outline level from 1, if the paragraph has its own
    list_id: str | None = None
    list_level: int | None = None
    notes: list[str] = field(default_factory=list)  # that it refers to; footnote 3 is "footnote3"
    note: str = ""  # that it belongs to
    formulas: int = 0  # number of formulas that cannot be said
    files: int = 0  # number of files that Word would show here; then it has no text
    row: int = 0  # number of its row of a table; 0 outside tables, and in a table within another
    cell: int = 0

    @property
    def text(self) -> str:
        """Its lines are those with a break between them, unless the second begins in lower case."""
        lines = (" ".join(line.split()) for line in "".join(self.texts).split("\n"))
        return without_verse_numbers(unwrap(lines, wrapped=MAX_TEXT))


def word_paragraphs(archive: zipfile.ZipFile, name: str, limit: int) -> Iterator[WordParagraph]:
    """The paragraphs of a file; those of text boxes come before their anchor. Raises as `steps` does."""
    characters = count = ignored = is_open = row = cell = depth = 0
    note = ""
    ancestors: list[Element] = []
    for begins, element in steps(archive, name, limit):
        kind = name_of(element)
        change = 1 if begins else -1
        ignored += change * (kind in _IGNORED)
        is_open += change * (kind == "p")
        depth += change * (kind == "tbl")
        if begins:
            ancestors.append(element)
            count += kind in ("p", _FILE)
            row += kind == "tr"
            cell += kind == "tc"
            if count > MAX_PASSAGES:
                raise InvalidDocument(f"the document has more than {MAX_PASSAGES} paragraphs; split it")
            if kind in ("footnote", "endnote"):
                note = f"{kind}{value(element, 'id')}"
            continue
        ancestors.pop()
        if kind == _FILE and not ignored:
            yield WordParagraph(files=1)
        if kind == "p" and not ignored:
            paragraph = _paragraph(element, note)
            if depth == 1:
                paragraph.row, paragraph.cell = row, cell
            characters += sum(map(len, paragraph.texts))
            if characters > MAX_TEXT:
                raise InvalidDocument(f"the document has more than {MAX_TEXT} characters of text; split it")
            if paragraph.texts or paragraph.notes or paragraph.list_id:
                yield paragraph
        if kind == "p":
            element.clear()
        if ancestors and not is_open:
            ancestors[-1].clear()  # frees memory


def with_rows(paragraphs: Iterable[WordParagraph], is_text: Callable[[WordParagraph], bool]) -> Iterator[WordParagraph]:
    """Join the cells of a table's row where `row_text` does. ``is_text``: whether a paragraph is body text."""
    for row, cells in groupby(paragraphs, lambda paragraph: paragraph.row):
        if not row:
            yield from cells
            continue
        inside = list(cells)
        is_simple = len({paragraph.cell for paragraph in inside}) == len(inside) and all(map(is_text, inside))
        line = row_text([text for paragraph in inside if (text := paragraph.text)]) if is_simple else None
        if line is None:
            yield from inside
        else:
            notes = [note for paragraph in inside for note in paragraph.notes]
            yield WordParagraph([line], notes=notes, formulas=sum(paragraph.formulas for paragraph in inside))


def _paragraph(root: Element, note: str) -> WordParagraph:
    paragraph = WordParagraph(note=note)
    is_raised = is_hidden = False
    stack = [root]
    while stack:
        element = stack.pop()
        kind = name_of(element)
        if kind in _IGNORED:
            continue
        if element.tag in FORMULAS:
            formula = word_text(element)
            paragraph.formulas += formula is None
            paragraph.texts.append(formula or " ")
            continue
        stack += reversed(element)
        match kind:
            case "r":
                is_raised = is_hidden = False
            case "vertAlign":
                is_raised = value(element) == "superscript"
            case "vanish":
                is_hidden = value(element) not in ("0", "false", "off")
            case "t" if not is_hidden:
                text = (element.text or "").replace("\n", " ")
                if is_raised:
                    before = "".join(piece[-BEFORE:] for piece in paragraph.texts[-_CONTEXT:])[-BEFORE:]
                    if is_note_mark(before, text):
                        continue
                    text = as_raised(text)
                paragraph.texts.append(text)
            case "br" if value(element, "type") not in _LINE_BREAKS:
                paragraph.texts.append(" ")
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
