"""Extracts the lines of a PDF with their positions, in reading order and without footnote marks."""

from __future__ import annotations

import io
import itertools
import logging
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from pypdf import PdfReader
from pypdf.errors import DependencyError, PyPdfError

from manuscript.note_marks import BEFORE, as_raised, is_note_mark
from manuscript.passages import InvalidDocument

MAX_PAGES = 5000
MAX_PDF_CHARACTERS = 10_000_000  # characters of all pages, including spaces

_SHOWN = (b"Tj", b"TJ", b"'", b'"')
_MARK = re.compile(r"\d+|[*†‡§¶]+")
_RAISED = 0.85  # maximum size of raised marks, relative to their line
_STEP = 4.0  # points; lines that begin within this distance share a margin
_LETTER_WIDTH = 0.45  # approximate width of a letter, relative to the font size

logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it warns about every violation in an untrusted file


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text; ``x`` and ``y`` of its beginning and the font ``size`` are in points."""

    text: str
    x: float
    y: float
    size: float
    marks: tuple[str, ...] = ()  # footnote marks removed from it

    @property
    def end(self) -> float:
        return self.x + len(self.text) * self.size * _LETTER_WIDTH


@dataclass(frozen=True, slots=True)
class PdfText:
    """A PDF's pages and bookmarks."""

    pages: list[list[Line]]
    outline: list[tuple[int, str]]  # page index and title of each bookmark
    mixed: list[int]  # indices of pages whose two columns could not be separated
    title: str = ""
    author: str = ""


@dataclass(slots=True)
class _Piece:
    text: str
    x: float
    y: float
    size: float
    rise: float


def text_of_pdf(data: bytes) -> PdfText:
    """Extract the text of a PDF. Raises InvalidDocument with the reason."""
    try:
        return _read(data)
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError) as error:
        reason = f"it is damaged ({type(error).__name__})"
    except DependencyError:  # only some kinds of encryption need another package
        reason = "it is encrypted; save it without a password and without restrictions"
    except (MemoryError, RecursionError):
        reason = "it takes too much memory to read"
    raise InvalidDocument(f"this PDF cannot be read: {reason}")


def _read(data: bytes) -> PdfText:
    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise InvalidDocument("this PDF cannot be read: it has a password; save it without one")
    if len(reader.pages) > MAX_PAGES:
        raise InvalidDocument(f"this PDF has {len(reader.pages)} pages; at most {MAX_PAGES} are allowed")
    pages, mixed, characters = list[list[Line]](), list[int](), 0
    for number, page in enumerate(reader.pages):
        content = _Page()
        characters += len(page.extract_text(visitor_operand_before=content.before, visitor_text=content.add))
        if characters > MAX_PDF_CHARACTERS:
            raise InvalidDocument(f"this PDF has more than {MAX_PDF_CHARACTERS} characters")
        lines = content.lines()
        if content.has_columns_in_lines(lines):
            mixed.append(number)
        pages.append(lines)
    about = reader.metadata
    title, author = (str(about.title or ""), str(about.author or "")) if about else ("", "")
    return PdfText(pages, list(_outline(reader, reader.outline, 2)), mixed, title, author)


def _outline(reader: PdfReader, entries: Sequence[Any], depth: int) -> Iterator[tuple[int, str]]:
    for entry in entries:
        if not isinstance(entry, list):
            page = reader.get_destination_page_number(entry)
            if page is not None and entry.title:
                yield page, str(entry.title)
        elif depth > 1:
            yield from _outline(reader, entry, depth - 1)


@dataclass(slots=True)
class _Page:
    """Collects the text of a page from pypdf's callbacks."""

    pieces: list[_Piece] = field(default_factory=list)
    starts: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Horizontal positions of text, by height in points."""
    rise: float = 0.0
    shown_rise: float = 0.0

    def before(self, operator: bytes, operands: list[Any], cm: list[float], tm: list[float]) -> None:
        """Called before each operator."""
        if operator in _SHOWN:
            self.shown_rise = self.rise
            x, y = _place(cm, tm)
            self.starts[round(y)].append(x)
        elif operator == b"Ts" and operands and isinstance(operands[0], (int, float)):
            self.rise = float(operands[0])

    def add(self, text: str, cm: list[float], tm: list[float], _: object, size: float) -> None:
        """Called for each piece of text, with its position; a piece never spans lines, fonts or text objects."""
        if text:
            scale = math.hypot(tm[2] * cm[0] + tm[3] * cm[2], tm[2] * cm[1] + tm[3] * cm[3])
            self.pieces.append(_Piece(text, *_place(cm, tm), abs(size) * scale, self.shown_rise))

    def lines(self) -> list[Line]:
        """The lines in reading order."""
        rows: list[list[_Piece]] = [[]]
        for piece in self.pieces:
            *lines, rest = piece.text.split("\n")
            for text in lines:
                rows[-1].append(replace(piece, text=text))
                rows.append([])
            if rest:
                rows[-1].append(replace(piece, text=rest))
        joined = [line for row in rows for line in _line(row)]
        if margins := _second_margins(rows):
            separated = [line for row in rows for part in _columns_of(row, margins) for line in _line(part)]
            ordered = _in_reading_order(separated)
            return joined if ordered is separated else ordered
        return _in_reading_order(joined)

    def has_columns_in_lines(self, lines: Sequence[Line]) -> bool:
        """Whether most lines mix two columns: a second piece of text starts at the same position far to the right."""
        rows = [row for row in self.starts.values() if len(row) > 1]
        if len(lines) < 6 or median(len(line.text) for line in lines) < 40:
            return False
        left = min(line.x for line in lines)
        distance = 0.3 * (max(max(row) for row in self.starts.values()) - left)
        margins = Counter(margin for row in rows for margin in {round(x / _STEP) for x in row if x - left > distance})
        line_starts = Counter(round(line.x / _STEP) for line in lines)
        return any(count >= 0.6 * len(lines) and line_starts[margin] < 3 for margin, count in margins.most_common(3))


def _second_margins(rows: Sequence[Sequence[_Piece]]) -> set[int]:
    """Margins (in units of _STEP) at which text starts on half of the lines, far to the right of their beginning."""
    starts = [[round(piece.x / _STEP) for piece in row if piece.text.strip()] for row in rows]
    starts = [row for row in starts if row]
    if len(starts) < 3:
        return set()
    left, right = min(map(min, starts)), max(map(max, starts))
    min_margin = left + 0.3 * (right - left)
    margins = Counter(margin for row in starts for margin in set(row[1:]) if margin > min_margin)
    return {margin for margin, count in margins.items() if count >= max(3, len(starts) / 2)}


def _columns_of(row: Sequence[_Piece], margins: set[int]) -> list[list[_Piece]]:
    """Split the pieces of a line at these margins, if there is a gap."""
    parts: list[list[_Piece]] = [[]]
    for piece in row:
        before = parts[-1][-1] if parts[-1] else None
        end = before.x + len(before.text) * before.size * _LETTER_WIDTH if before else 0.0
        if before and round(piece.x / _STEP) in margins and piece.x > end + piece.size:
            parts.append([])
        parts[-1].append(piece)
    return parts


def _place(cm: Sequence[float], tm: Sequence[float]) -> tuple[float, float]:
    """The position of text along and across its own direction, so that rotated pages are like others."""
    x, y = tm[4] * cm[0] + tm[5] * cm[2] + cm[4], tm[4] * cm[1] + tm[5] * cm[3] + cm[5]
    along, across = tm[0] * cm[0] + tm[1] * cm[2], tm[0] * cm[1] + tm[1] * cm[3]
    length = math.hypot(along, across) or 1.0
    return (x * along + y * across) / length, (y * along - x * across) / length


def _line(pieces: Sequence[_Piece]) -> list[Line]:
    """The pieces as one line without raised note marks; empty if there is no text."""
    visible = [piece for piece in pieces if piece.text.strip()]
    if not visible:
        return []
    main = max(visible, key=lambda piece: len(piece.text))
    texts, marks = list[str](), list[str]()
    before = ""
    for piece in pieces:
        is_higher = piece.y + piece.rise > main.y + main.rise + 0.08 * main.size
        if not (is_higher and before and piece.size <= _RAISED * main.size):
            texts.append(piece.text)
        elif is_note_mark(before, piece.text.strip()):
            texts.append(" " if piece.text[-1:].isspace() else "")
            marks += _MARK.findall(piece.text)
        else:
            texts.append(as_raised(piece.text.strip()) or piece.text)
        before = f"{before}{texts[-1]}"[-BEFORE:].rstrip()
    text = " ".join("".join(texts).split())
    return [Line(text, visible[0].x, visible[0].y, main.size, tuple(marks))] if text else []


def _in_reading_order(lines: list[Line]) -> list[Line]:
    """Reorder two columns that the file stores row by row, between lines that span both."""
    if len(lines) < 6:
        return lines
    left = min(line.x for line in lines)
    width = max(line.end for line in lines) - left
    margins = Counter(round(line.x / _STEP) for line in lines if line.x - left > 0.3 * width)
    if not margins:
        return lines
    right_margin = margins.most_common(1)[0][0] * _STEP - _STEP
    sides = [
        "right" if line.x >= right_margin else "left" if line.end <= right_margin + 0.1 * width else "both"
        for line in lines
    ]
    columns = [[line for line, side in zip(lines, sides, strict=True) if side == name] for name in ("left", "right")]
    turns = sum(pair == ("right", "left") for pair in itertools.pairwise(sides))
    if min(map(len, columns)) < 3 or turns < max(2, len(columns[1]) / 2 - 1):
        return lines
    if any(median(len(line.text) for line in column) < 12 for column in columns):  # more likely a table
        return lines
    ordered, pending = list[Line](), list[Line]()
    for line, side in zip(lines, sides, strict=True):
        if side == "right":
            pending.append(line)
            continue
        if side == "both":
            ordered += pending
            pending = []
        ordered.append(line)
    return ordered + pending
