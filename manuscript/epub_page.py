"""Reads a page of an EPUB, however malformed, as paragraphs without notes, page numbers and note marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from manuscript.epub_markup import (
    BACKLINKS,
    GUTENBERG,
    KINDS,
    NOTE,
    NOTEREFS,
    NOTES,
    NUMBER,
    NUMBERED,
    PAGE_BREAKS,
    MarkupParser,
    front_matter,
    types_of,
)
from manuscript.formulas import FormulaBuilder
from manuscript.headings import is_scene_break
from manuscript.note_marks import BEFORE, as_raised, is_note_mark, ordinal, row_text, without_first_mark
from speechtext.markup import without_verse_numbers

MAX_HEADING_TEXT = 500  # characters; a longer heading was never closed
_BLOCKS = frozenset(KINDS["blocks"])
_SILENT = frozenset(KINDS["silent"])
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_IN_HEADINGS = frozenset(("br", "div", "p", "hr", "text"))  # blocks inside headings, which are lines of the heading
_MAX_PAGE_NUMBER = 40  # characters
_LONG_TAG = 64 * 1024  # characters; inline images are longer, but have few attributes
_MAX_ATTRIBUTES = 5000  # a long tag with more attributes is skipped
_VOID = frozenset(KINDS["void"])
_NOT_SHOWN = re.compile(r"\b(?:display\s?:\s?none|visibility\s?:\s?hidden)\b", re.IGNORECASE)
"""What a style attribute says of an element that is not shown."""
_MEDIA = ("audio/", "image/", "video/")
"""Types of objects that are left out like other pictures, sounds and films, with what describes them."""
_IN_DRAWINGS = ("text", "foreignobject")  # elements of an SVG that have text; others have titles and metadata
_LETTER = re.compile(r"[\"'“‘«„]?[^\W\d_]")
"""The alternative text of a picture of an initial: one letter, perhaps after a quotation mark."""
_FILE_NAME = re.compile(r"\.(?:jpe?g|png|gif|svg|webp|mp[34]|m4[av]|og[gv]|webm)$", re.IGNORECASE)
_LINE = "\0"  # separates the lines of a heading until it ends
_MARK = re.compile(r"[\s\d()\[\]*†‡§]{0,12}")
_ALONE = re.compile(r"\[\s*+[\w*†‡§]{1,4}\s*+\]|[*†‡§↩↑⤴⏎^←\ufe0e\ufe0f\s]{1,6}")
"""Text of a link that is a note mark anywhere."""
_ATTACHED = re.compile(r"\(?\d{1,4}\)?")  # text of a link that is a note mark directly after a word
_CONTEXT = 8  # pieces of text examined before a note mark
_BETWEEN_MARKS = re.compile(r"[\s()\[\],]{0,12}")

MAX_DEPTH = 100  # nested lists whose numbers are counted
_HAS_NUMBER = re.compile(r"[(\[]?(?:\d{1,4}|[a-zA-Z]|[ivxIVX]{1,5})[.)\]]\s")


@dataclass(slots=True)
class Paragraph:
    """A paragraph of a page."""

    text: str  # blank for a scene break
    level: int = 0  # heading level, 1 to 6; 0 for text
    linked: int = 0  # number of letters and digits in links into the book
    ids: tuple[str, ...] = ()
    """Ids of the paragraph, of elements that begin in it, and of earlier elements without text."""
    opens_with_mark: bool = False


@dataclass(slots=True)
class _Link:
    """An open link."""

    start: int  # index in the pieces of text
    is_mark: bool  # whether the markup says that it links to a note or back from one
    target: str  # a place in a page; blank for a whole page or a link out of the book
    leads_into_book: bool
    is_raised: bool


@dataclass(slots=True)
class PageText:
    """The text of a page, and its omissions."""

    paragraphs: list[Paragraph] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # names of sections left out, such as "title page"
    notes: int = 0  # number of notes left out
    has_notes: bool = False  # whether it has notes, read or not
    marks: list[tuple[str, str]] = field(default_factory=list)
    """Link target and text of each note mark left out."""
    links: int = 0  # number of links into the book
    last_ids: tuple[str, ...] = ()  # ids of elements after the last paragraph
    formulas: int = 0  # number of formulas left out


class PageReader(MarkupParser):
    """``spend`` is called with the tags and attributes, and the characters, consumed by each step; it may raise."""

    def __init__(self, with_notes: bool, spend: Callable[[int, int], None]) -> None:
        super().__init__()
        self.page = PageText()
        self._with_notes = with_notes
        self._spend = spend
        self._text: list[str] = []
        self._heading = ""
        self._mute = ""  # tag of the element that is being left out
        self._depth = 0  # number of open elements with this tag
        self._is_mute_note = self._is_mute_break = False
        self._page_number = ""
        self._is_drawing = False  # whether the element that is being left out is an SVG that is shown
        self._drawing: tuple[str, int] | None = None  # the open element with text in an SVG, and the depth of the SVG
        self._line: str | None = None  # height of the last line in an SVG
        self._numbered: tuple[str, dict[str, str | None]] | None = None
        """The open element whose class says that it is a number of a page, a line or a verse."""
        self._link: _Link | None = None
        self._raised: int | None = None  # index in the pieces of text where the open raised text begins
        self._has_mark = self._opens_with_mark = False
        self._linked = 0
        self._ids: list[tuple[str, int]] = []
        """Ids of the current paragraph, and their index in the pieces of text."""
        self._earlier_ids: list[str] = []  # ids of earlier elements without text
        self._lists = ListNumbers()
        self._formula: FormulaBuilder | None = None  # the open one
        self._pictures: list[str] = []  # descriptions of pictures in the open heading
        self._cells: list[int] = []  # index of the first paragraph of each cell of the open row of a table

    def read(self, text: str) -> PageText:
        # The newline completes the last text; close() would take quadratic time on unfinished tags.
        self.feed(text + "\n")
        self._flush()
        self.page.last_ids = tuple(self._earlier_ids)
        return self.page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._spend(1 + len(attrs), 0)
        values = dict(attrs)
        if self._mute:
            self._stay_mute(tag, values)
            if self._mute:
                return
        if attrs or tag in _SILENT:
            self._begin_silence(tag, values)
            if self._mute:
                return
            self._keep_ids(values)
        if tag == "tspan":
            self._begin_line(values)
        elif self._formula or tag.endswith("math"):
            self._in_formula(tag, values)
        elif tag == "img":
            self._read_picture(values)
        elif tag == "a":
            self._close_link()
            self._link = self._open_link(values)
        elif tag == "sup":
            self._raised = len(self._text)
            if self._link:
                self._link.is_raised = True
        elif tag in _BLOCKS:
            self._begin_block(tag, values)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._spend(1 + len(attrs), 0)
        if not self._mute:
            self._keep_ids(values := dict(attrs))
            if self._formula or tag.endswith("math"):
                self._in_formula(tag, values, is_empty=True)
            elif tag == "img":
                self._read_picture(values)
            elif tag in _BLOCKS:
                self._begin_block(tag, values, is_empty=True)

    def handle_endtag(self, tag: str) -> None:
        self._spend(1, 0)
        if self._mute:
            if tag == self._mute:
                self._depth -= 1
                self._mute = self._mute if self._depth else ""
            if self._mute or not self._numbered or NUMBER.fullmatch(self._page_number):
                self._end_drawn(tag)
                return
            self._restore_number()
        if self._formula and self._formula.end(tag.rpartition(":")[2]):
            self._close_formula()
        elif self._formula:
            pass
        elif tag == "a":
            self._close_link()
        elif tag == "sup":
            self._close_raised()
        elif tag in _BLOCKS:
            self._end_block(tag)
            self._end_drawn(tag)

    def handle_data(self, data: str) -> None:
        if self._formula and not self._mute:
            self._formula.text(data)
        elif not self._mute:
            self._text.append(data)
        elif self._is_mute_break and not (data.isspace() and self._page_number.endswith(" ")):
            self._page_number += " " if data.isspace() else data
            if len(self._page_number.strip()) > _MAX_PAGE_NUMBER:  # it was never closed, or is not a page number
                self._restore_number()

    def _restore_number(self) -> None:
        """Read an element that was left out for the number of a page, a line or a verse, but is another."""
        text, self._mute = self._page_number, ""
        if self._numbered and self._numbered[0] in _BLOCKS:
            self._begin_block(*self._numbered)
        self._text.append(text)

    def parse_starttag(self, i: int) -> int:
        end = self.rawdata.find(">", i)
        if end - i > _LONG_TAG:
            count = len(self.rawdata[i:end].split()) + self.rawdata.count("=", i, end)
            if count > _MAX_ATTRIBUTES:  # HTMLParser would block while parsing them all
                self._spend(count, 0)
                return end + 1
        return super().parse_starttag(i) if end > 0 else -1

    def _begin_silence(self, tag: str, values: dict[str, str | None]) -> None:
        """Leave out an element that is not read aloud."""
        if tag in _VOID:
            return
        types = types_of(values)
        classes = set((values.get("class") or "").lower().split())
        name = front_matter(types | (classes & {GUTENBERG}))
        if name and tag != "nav":
            self.page.left_out.append(name)
        self.page.has_notes |= not NOTES.isdisjoint(types)
        self._is_mute_note = not (name or self._with_notes or NOTES.isdisjoint(types))
        is_numbered = tag not in _HEADINGS and any(map(NUMBERED.fullmatch, classes))
        self._is_mute_break, self._page_number = is_numbered or not PAGE_BREAKS.isdisjoint(types | classes), ""
        self._numbered = (tag, values) if is_numbered and PAGE_BREAKS.isdisjoint(types | classes) else None
        is_hidden = "hidden" in values or _NOT_SHOWN.search(values.get("style") or "") is not None
        is_unwanted = name or is_hidden or self._is_mute_note or self._is_mute_break
        self._is_drawing = tag == "svg" and not is_unwanted
        if tag in _SILENT or is_unwanted or (tag == "object" and _is_media(values)):
            if tag in _BLOCKS or tag == "nav":
                self._flush()
            self._mute, self._depth = tag, 1
            self.page.notes += self._is_mute_note and not NOTE.isdisjoint(types)

    def _stay_mute(self, tag: str, values: dict[str, str | None]) -> None:
        if tag == self._mute:
            self._depth += 1
        if self._is_mute_note:
            self.page.notes += tag == "li" or not NOTE.isdisjoint(types_of(values))
        if self._numbered and self._is_mute_break and tag in _BLOCKS and tag != "br":
            self._restore_number()  # a number is not in paragraphs
        if self._is_drawing and tag in _IN_DRAWINGS:
            self._mute, self._drawing = "", (tag, self._depth)
        if (self._mute == "head" and tag == "body") or (self._mute == "p" and tag in _BLOCKS and tag != "br"):
            self._mute = ""  # these may end without an end tag

    def _in_formula(self, tag: str, values: dict[str, str | None], is_empty: bool = False) -> None:
        name = tag.rpartition(":")[2]
        if self._formula and tag in _BLOCKS:  # it was never closed
            self._close_formula()
            self.handle_starttag(tag, list(values.items()))
        elif self._formula:
            self._formula.begin(name, is_empty)
        elif name == "math" and is_empty:
            self.page.formulas += 1
        elif name == "math":
            self._formula = FormulaBuilder(values)

    def _close_formula(self) -> None:
        formula, self._formula = self._formula, None
        text = formula.read() if formula else ""
        self.page.formulas += text is None
        self._text.append(text or " ")

    def _read_picture(self, values: dict[str, str | None]) -> None:
        """Read a picture of a letter; the description of another one counts only where it is a whole heading."""
        description = " ".join((values.get("alt") or "").split())
        if _LETTER.fullmatch(description):
            self._text.append(description)
        elif self._heading and not _FILE_NAME.search(description) and len(description) < MAX_HEADING_TEXT:
            self._pictures.append(description)

    def _keep_ids(self, values: dict[str, str | None]) -> None:
        for name in (values.get("id"), values.get("name")):
            if name:
                self._ids.append((name, len(self._text)))

    def _open_link(self, values: dict[str, str | None]) -> _Link:
        href = values.get("href") or ""
        types = types_of(values)
        is_mark = not (NOTEREFS | BACKLINKS).isdisjoint(types)
        is_internal = bool(href) and "://" not in href and not href.startswith(("mailto:", "tel:"))
        target = href if is_internal and "#" in href else ""
        self.page.links += is_internal
        return _Link(len(self._text), is_mark, target, is_internal, self._raised is not None)

    def _begin_block(self, tag: str, values: dict[str, str | None], is_empty: bool = False) -> None:
        if self._heading and tag in _IN_HEADINGS:
            text = "".join(self._text)
            if len(text) < MAX_HEADING_TEXT and not (tag == "p" and text.strip()):
                self._text.append(_LINE)  # a heading that was never closed ends at a paragraph
                return
        self._flush()
        if tag == "tr":
            self._cells.clear()
        elif tag in ("td", "th"):
            self._cells.append(len(self.page.paragraphs))
        self._heading = tag if tag in _HEADINGS and not is_empty else ""
        if tag == "hr" and PAGE_BREAKS.isdisjoint(types_of(values)):
            self._keep(Paragraph(""))
        elif not is_empty:
            self._lists.begin(tag, values)

    def _begin_line(self, values: dict[str, str | None]) -> None:
        """Separate the lines of a text in an SVG; pieces at the same height may be of one word."""
        height = values.get("y") or self._line
        if "dy" in values or height != self._line:
            self._text.append(" ")
        self._line = height

    def _end_block(self, tag: str) -> None:
        if self._heading and tag in _IN_HEADINGS:
            self._text.append(_LINE)
        else:
            self._flush()
            self._heading = ""
            self._lists.end(tag)
            if tag == "tr":
                self._end_row()

    def _end_drawn(self, tag: str) -> None:
        """Leave out what follows a text in an SVG."""
        if self._drawing and tag == self._drawing[0] and not self._mute:
            self._mute, self._depth, self._drawing = "svg", self._drawing[1], None
            self._is_mute_note = self._is_mute_break = False
            self._is_drawing, self._numbered = True, None

    def _end_row(self) -> None:
        """Make one paragraph of the row's cells where `row_text` joins them."""
        paragraphs = self.page.paragraphs
        starts, self._cells = [*self._cells, len(paragraphs)], []
        cells = paragraphs[starts[0] :]
        is_simple = all(end - begin < 2 for begin, end in pairwise(starts))
        if is_simple and not any(cell.level or cell.linked or cell.opens_with_mark or not cell.text for cell in cells):
            line = row_text([cell.text for cell in cells])
            if line is not None:
                paragraphs[starts[0] :] = [Paragraph(line, ids=tuple(name for cell in cells for name in cell.ids))]

    def _close_link(self) -> None:
        """Close the link, and drop its text if it is a note mark."""
        link, self._link = self._link, None
        if not link:
            return
        text = "".join(self._text[link.start :])
        looks_like_mark = (
            (link.is_raised and _MARK.fullmatch(text))
            or _ALONE.fullmatch(text.strip())
            or (_ATTACHED.fullmatch(text) and is_note_mark(self._before(link.start), text))
        )
        if link.is_mark or (link.target and looks_like_mark):
            self._drop(link.start)
            self._has_mark = self._raised is not None
            self.page.marks.append((link.target, text.strip(" []()\n\t")))
        elif link.is_raised and self._raised is None:
            self._finish_raised(link.start)
        elif link.leads_into_book:
            self._linked += sum(sign.isalnum() for sign in text)

    def _close_raised(self) -> None:
        """Close raised text: drop note marks, and brackets and commas around links to notes."""
        start, self._raised = self._raised, None
        if start is not None and not (self._link and self._link.start <= start):
            if self._has_mark and _BETWEEN_MARKS.fullmatch("".join(self._text[start:])):
                self._drop(start)
            else:
                self._finish_raised(start)
        self._has_mark = False

    def _finish_raised(self, start: int) -> None:
        text = "".join(self._text[start:])
        if is_note_mark(self._before(start), text.strip()):
            self._drop(start)
        else:
            self._text[start:] = [as_raised(text.strip()) if text.strip() else text]

    def _drop(self, start: int) -> None:
        del self._text[start:]
        if len(self._text) < _CONTEXT and not "".join(piece[:BEFORE] for piece in self._text).strip():
            self._opens_with_mark = True

    def _before(self, start: int) -> str:
        """The context before this index."""
        return "".join(piece[-BEFORE:] for piece in self._text[max(0, start - _CONTEXT) : start])[-BEFORE:]

    def _flush(self) -> None:
        self._close_formula() if self._formula else None
        self._close_link()
        self._close_raised()
        text = ""
        if self._pictures and not any(map(str.isalnum, "".join(self._text))):
            self._text += self._pictures
        self._pictures.clear()
        if self._text:
            lines = (" ".join(line.split()) for line in "".join(self._text).split(_LINE))
            text = "\n".join(line for line in lines if line)
        is_break = is_scene_break(text)
        if not is_break and any(sign.isalnum() for sign in text):
            unmarked, level = without_verse_numbers(without_first_mark(text)), _HEADINGS.get(self._heading, 0)
            # An id at the very end of a paragraph belongs to the next one, unless the paragraph is a heading.
            last_index = next(at for at in range(len(self._text) - 1, -1, -1) if self._text[at].strip())
            ids = (*self._earlier_ids, *(name for name, at in self._ids if level or at <= last_index))
            self._earlier_ids = [name for name, at in self._ids if not level and at > last_index]
            opens_with_mark = self._opens_with_mark or unmarked != text
            self._keep(Paragraph(self._lists.numbered(unmarked), level, self._linked, ids, opens_with_mark))
        else:
            if is_break:
                self._keep(Paragraph(""))
            self._earlier_ids += [name for name, _ in self._ids]
        self._ids.clear()
        self._text.clear()
        self._linked, self._opens_with_mark = 0, False

    def _keep(self, paragraph: Paragraph) -> None:
        self._spend(0, len(paragraph.text) + 1)
        self.page.paragraphs.append(paragraph)


class ListNumbers:
    """Follows the tags of a page, and adds the number to the first paragraph of each item."""

    def __init__(self) -> None:
        self._open: list[tuple[str, int, int] | None] = []
        """Kind, next number and step of each open list; None for a list without numbers."""
        self._number = ""

    def begin(self, tag: str, values: Mapping[str, str | None]) -> None:
        if tag in ("ol", "ul") and len(self._open) < MAX_DEPTH:
            is_bare = tag == "ul" or "list-style-type:none" in (values.get("style") or "").replace(" ", "")
            step = -1 if "reversed" in values else 1
            self._open.append(None if is_bare else (values.get("type") or "1", _integer(values.get("start"), 1), step))
        elif tag == "li":
            self._number = ""  # left by an item without text
            if self._open and (numbering := self._open[-1]):
                kind, number, step = numbering
                number = _integer(values.get("value"), number)
                self._number = ordinal(number, kind)
                self._open[-1] = (kind, number + step, step)

    def end(self, tag: str) -> None:
        if tag in ("ol", "ul") and self._open:
            self._open.pop()
        elif tag == "li":
            self._number = ""

    def numbered(self, text: str) -> str:
        """A paragraph with the number of the item that it begins, unless the text has one already."""
        number, self._number = self._number, ""
        return f"{number}. {text}" if number and not _HAS_NUMBER.match(text) else text


def _is_media(values: Mapping[str, str | None]) -> bool:
    address = values.get("data") or ""
    kinds = (values.get("type") or "", address.removeprefix("data:"))
    return any(kind.startswith(_MEDIA) for kind in kinds) or bool(_FILE_NAME.search(address))


def _integer(text: str | None, default: int) -> int:
    try:
        return int((text or "")[:6])
    except ValueError:
        return default
