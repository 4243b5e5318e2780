"""Joins the lines of a PDF into paragraphs, by their lengths and positions, and finds the starts of chapters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from studio.projects.documents.half_words import HalfWords, ends_in_half_word
from studio.projects.documents.headings import SENTENCE_END, is_bare_heading, is_heading, is_scene_break, is_title
from studio.projects.documents.passages import Passage
from studio.projects.documents.pdf.page_furniture import usual_length, usual_size
from studio.projects.documents.pdf.page_titles import TITLE_LINES, PageTitles
from studio.projects.documents.pdf.pdf_text import Line


class PdfParagraphs:
    """Joins lines into paragraphs, which may span pages but not chapters."""

    def __init__(self, pages: Sequence[list[Line]], titles: Mapping[int, PageTitles]) -> None:
        self._pages = pages
        self._titles = titles
        self._line_length = usual_length(pages)
        self._size = usual_size(pages)
        self._by_outline = sum(len(page.all) for page in titles.values()) > 1
        """Whether the outline determines the chapters; a single bookmark is often the cover."""
        self._half_words = HalfWords(line.text for page in pages for line in page)
        self._lines: list[Line] = []
        self._chapter = ""

    def passages(self) -> Iterator[Passage | None]:
        """The passages in order, with None for a scene break."""
        was_bare = False
        for number, page in enumerate(self._pages):
            titles = self._titles.get(number, PageTitles())
            texts = [line.text for line in page]
            line_titles = [titles.of(texts[at : at + TITLE_LINES]) for at in range(len(page))]
            visible_titles = {title for title, _ in line_titles}
            hidden_title = next((title for title in titles.all if title not in visible_titles), "")
            if hidden_title:  # a chapter without a visible title begins with its page
                yield from self._flush()
                self._chapter = hidden_title
            skip_count = 0
            for at, line in enumerate(page):
                if skip_count:
                    skip_count -= 1
                    continue
                title, count = line_titles[at]
                below = page[at + 1].text if at + 1 < len(page) else ""
                if not title and (self._is_chapter(line, at == 0) or (was_bare and self._is_below(line, below))):
                    title, count = line.text, 1
                was_bare = bool(title) and (is_bare_heading(line.text) or (was_bare and self._is_large(line)))
                if title:
                    yield from self._flush()
                    self._lines, self._chapter, skip_count = page[at : at + count], title, count - 1
                    yield from self._flush()
                elif is_scene_break(line.text):
                    yield from self._flush()
                    yield None
                else:
                    if self._lines and self._ends_before(line):
                        yield from self._flush()
                    self._lines.append(line)
        yield from self._flush()

    def _is_large(self, line: Line) -> bool:
        return line.size > 1.1 * self._size

    def _is_below(self, line: Line, following: str) -> bool:
        """Whether a line below a bare heading is its title, and not the first line of a paragraph."""
        if self._by_outline or not is_title(line.text):
            return False
        return self._is_large(line) or (len(line.text) < 0.7 * self._line_length and not following[:1].islower())

    def _is_chapter(self, line: Line, is_first: bool) -> bool:
        """Whether a line is a heading, and not the middle of a sentence."""
        if self._by_outline or not is_heading(line.text):
            return False
        before = self._lines[-1] if self._lines else None
        if not before or is_first or line.size > 1.1 * before.size or SENTENCE_END.search(before.text):
            return True
        return len(before.text) < 0.85 * self._line_length

    def _ends_before(self, line: Line) -> bool:
        """Whether the paragraph ends before ``line``: its last line is short, or a gap or an indent follows."""
        last = self._lines[-1]
        if line.text[:1].islower() or ends_in_half_word(last.text):
            return False
        if not SENTENCE_END.search(last.text):
            return len(last.text) < 0.6 * self._line_length
        return (
            len(last.text) < 0.85 * self._line_length
            or last.y - line.y > 1.8 * max(last.size, line.size) > 0
            or 0.8 * line.size < line.x - self._lines[-1].x < 6 * line.size
        )

    def _flush(self) -> Iterator[Passage]:
        """Yield the current paragraph, if it has text, and begin the next one."""
        pieces: list[str] = []
        for line in self._lines:
            if pieces and self._half_words.are_one(pieces[-1], line.text):
                pieces[-1] = self._half_words.unhyphenated(pieces[-1], line.text)
            elif pieces:
                pieces.append(" ")
            pieces.append(line.text)
        text = "".join(pieces)
        if any(sign.isalnum() for sign in text):
            yield Passage(text, chapter=self._chapter)
            self._chapter = ""
        self._lines = []
