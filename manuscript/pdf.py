"""Reads the text of PDFs as paragraphs, without page numbers, running heads, contents and footnotes.

Chapters begin at the entries of the outline, or else at headings.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from manuscript.headings import SENTENCE_END, is_bare_heading, is_heading, is_scene_break, is_title
from manuscript.note_marks import HalfWords, ends_in_half_word
from manuscript.passages import MAX_TEXT, Document, InvalidDocument, Passage, Skipped, with_scenes
from manuscript.pdf_text import Line, PdfText, text_of_pdf
from manuscript.plain import begins_contents, ends_with_page

MIN_CHARACTERS = 8  # letters and digits per page; a PDF with fewer is a scan
EDGE = 2  # lines at the top and bottom of a page that may be repeated on others
SMALL = 0.9  # maximum size of footnotes, relative to the usual font size

_NUMBER = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(
    r"[ivxlc]{1,7}|[-–—|•·]\s?\d{1,4}\s?[-–—|•·]|(?:page|seite|página|pagina|p\.|s\.)\s?\d{1,4}(?:\s?(?:of|von|de|di|/)\s?\d{1,4})?"
    r"|\d{1,4}\s?(?:of|/)\s?\d{1,4}",
    re.IGNORECASE,
)
_NOTE = re.compile(r"[\[(]?(\d{1,3}|[*†‡§¶]{1,3})[\]).]?\s*[^\W\d]")
MAX_TITLE = 200
TITLE_LINES = 3  # lines of a page that may form one title of the outline

_LEADING = re.compile(r"(?:\d{1,3}\.)*\d{1,3}\.?\s+(?=\D)")
_UNKNOWN = ("untitled", "anonymous", "unknown", "unspecified", "no title")
_PROGRAM = re.compile(r"\AMicrosoft Word - ")


def read_pdf(data: bytes) -> Document:
    """Join lines into paragraphs; the first two levels of the outline, or else headings, begin chapters.

    Raises InvalidDocument for a scan without text, a password, and a file that takes too much memory.
    """
    pdf = text_of_pdf(data)
    signs = sum(sign.isalnum() for page in pdf.pages for line in page for sign in line.text)
    if signs < MIN_CHARACTERS * max(1, len(pdf.pages)):
        raise InvalidDocument(
            "this PDF has no text, probably because its pages are scans: convert it with text recognition (OCR) first"
        )
    if signs > MAX_TEXT:
        raise InvalidDocument(f"the PDF has more than {MAX_TEXT} characters of text")
    titles: dict[int, PageTitles] = {}
    for page, title in pdf.outline:
        titles.setdefault(page, PageTitles()).add(" ".join(title.split())[:MAX_TITLE])
    pages, skipped = _without_furniture(pdf, titles)
    passages = tuple(with_scenes(_Paragraphs(pages, titles).passages()))
    return Document(passages, True, _name(pdf.title), _name(pdf.author), skipped=skipped.sentences())


def _name(words: str) -> str:
    """A title or an author from the metadata; blank for placeholders such as "untitled"."""
    name = " ".join(words.split())[:MAX_TITLE]
    return "" if name.strip("()").casefold() in _UNKNOWN else _PROGRAM.sub("", name)


class _Paragraphs:
    """Joins lines into paragraphs, which may span pages but not chapters."""

    def __init__(self, pages: Sequence[list[Line]], titles: Mapping[int, PageTitles]) -> None:
        self._pages = pages
        self._titles = titles
        self._line_length = _usual_length(pages)
        self._size = _usual_size(pages)
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


def _without_furniture(pdf: PdfText, titles: Mapping[int, PageTitles]) -> tuple[list[list[Line]], Skipped]:
    """The pages without numbers, running heads, contents and footnotes, and notes about omissions."""
    pages = _without_edges(pdf.pages, titles)
    pages, had_contents = _without_contents(pages)
    pages, notes = _without_notes(pages)
    skipped = Skipped()
    if had_contents:
        skipped.add("The table of contents is left out.")
    if mixed := [number for number in pdf.mixed if pages[number]]:
        numbers = ", ".join(str(number + 1) for number in mixed[:10]) + (" …" if len(mixed) > 10 else "")
        subject = f"Page {numbers} seems" if len(mixed) == 1 else f"Pages {numbers} seem"
        skipped.add(f"{subject} to have two columns whose lines the file mixes: check the text, or send it as .txt.")
    skipped.notes = notes
    return pages, skipped


def _without_edges(pages: Sequence[list[Line]], titles: Mapping[int, PageTitles]) -> list[list[Line]]:
    """The pages without page numbers and short lines repeated at the edges.

    A possible chapter title stays at its first occurrence.
    """
    line_length = _usual_length(pages)
    forms: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number, page in enumerate(pages):
        texts = {line.text for line in (*page[:EDGE], *page[-EDGE:]) if len(line.text) <= 0.8 * line_length}
        for form in {form for text in texts for form in _forms(text, number)}:
            forms[form].append(number)
    repeated = {
        form: set(numbers) if form[0] == "0" else _repeated(numbers, len(pages))  # a number alone is the page's
        for form, numbers in forms.items()
        if len(numbers) > 2
    }

    def stays(number: int, page: list[Line], at: int) -> bool:
        text = page[at].text
        if EDGE <= at < len(page) - EDGE:
            return True
        if number in titles and titles[number].of([line.text for line in page[at : at + TITLE_LINES]])[0]:
            return True
        if is_heading(text):
            occurrences = repeated.get((text.casefold(), -1), set())
            return number not in occurrences or (number - 1 not in occurrences and number - 2 not in occurrences)
        is_last = at == len(page) - 1
        if (at == 0 or is_last) and (text == str(number + 1) or _PAGE_NUMBER.fullmatch(text)):
            return False
        if is_last and at and text.isdecimal() and len(text) <= 4:
            return False
        return not any(number in repeated.get(form, ()) for form in _forms(text, number))

    return [[line for at, line in enumerate(page) if stays(number, page, at)] for number, page in enumerate(pages)]


def _forms(line: str, page: int) -> tuple[tuple[str, int], ...]:
    """Keys that are equal for lines that differ only in the page number, however pages are numbered."""
    match = _NUMBER.search(line)
    exact = line.casefold(), -1
    return (exact, (_NUMBER.sub("0", line.casefold(), count=1), int(match[0][:9]) - page)) if match else (exact,)


def _repeated(numbers: Sequence[int], pages: int) -> set[int]:
    """The pages on which a line is repeated: more than a sixth of all pages, or three left or right ones in a row."""
    if len(numbers) > max(2, pages / 6):
        return set(numbers)
    runs = [[numbers[0]]]
    for number in numbers[1:]:
        if number - runs[-1][-1] <= 2:
            runs[-1].append(number)
        else:
            runs.append([number])
    return {number for run in runs if len(run) > 2 for number in run}


def _usual_length(pages: Iterable[list[Line]]) -> int:
    """Characters of a full line."""
    lengths = sorted(len(line.text) for page in pages for line in page)
    return lengths[len(lengths) * 3 // 4] if lengths else 0


def _usual_size(pages: Iterable[list[Line]]) -> float:
    """The commonest font size, in points."""
    sizes = Counter[float]()
    for page in pages:
        for line in page:
            sizes[round(line.size, 1)] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def _without_contents(pages: Sequence[list[Line]]) -> tuple[list[list[Line]], bool]:
    """The pages without tables of contents, on which most lines end with a page number; and whether there were any."""
    remaining, is_list, had_list = list[list[Line]](), False, False
    for number, page in enumerate(pages):
        entries = [ends_with_page(line.text) for line in page]
        is_start = number < 50 and any(begins_contents(line.text) for line in page[:3])
        is_list = (is_start or is_list) and sum(entries) >= max(2, len(page) / 2)
        had_list |= is_list
        remaining.append([] if is_list else page)
    return remaining, had_list


def _without_notes(pages: Sequence[list[Line]]) -> tuple[list[list[Line]], int]:
    """The pages without footnotes, in small type below the lines that refer to them; and their number."""
    small = SMALL * _usual_size(pages)
    remaining, count = list[list[Line]](), 0
    for page in pages:
        marks = {mark for line in page for mark in line.marks}
        end = len(page)
        while end and page[end - 1].size <= small:
            end -= 1
        starts = [at for at in range(end, len(page)) if (match := _NOTE.match(page[at].text)) and match[1] in marks]
        remaining.append(page[: starts[0]] if starts else page)
        count += len(starts)
    return remaining, count


class PageTitles:
    """The outline titles of one page, matched by letters and digits only."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._by_letters: dict[str, str] = {}

    def add(self, title: str) -> None:
        """Add a title; it matches with or without its number."""
        self.all.append(title)
        words = title.split()
        for count in range(min(3, len(words))):
            if count and not (is_heading(" ".join(words[:count])) or _NUMBER.match(words[count - 1])):
                continue
            letters = _letters(" ".join(words[count:]))
            if len(letters) > 1:
                self._by_letters.setdefault(letters, title)

    def of(self, lines: Sequence[str]) -> tuple[str, int]:
        """The title at the start of some lines, and its number of lines; blank if there is none."""
        if not self._by_letters:
            return "", 0
        number = _LEADING.match(lines[0]) if lines else None
        return self._find(lines) or (self._find([lines[0][number.end() :], *lines[1:]]) if number else None) or ("", 0)

    def _find(self, lines: Sequence[str]) -> tuple[str, int] | None:
        letters, title = "", None
        for count, line in enumerate(lines[:TITLE_LINES], start=1):
            letters += _letters(line)
            if len(letters) > MAX_TITLE:
                break
            if letters in self._by_letters:
                title = self._by_letters[letters], count
        return title


def _letters(text: str) -> str:
    return "".join(sign for sign in text[: 2 * MAX_TITLE].casefold() if sign.isalnum())
