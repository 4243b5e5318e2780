"""Removes page numbers, running heads, contents and footnotes from the pages of a PDF."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from studio.projects.documents.front_matter import begins_contents, ends_with_page
from studio.projects.documents.headings import is_heading
from studio.projects.documents.passages import Skipped
from studio.projects.documents.pdf.page_titles import TITLE_LINES, PageTitles
from studio.projects.documents.pdf.pdf_text import Line, PdfText

EDGE = 2
"""Lines at the top and bottom of a page that may be repeated on others."""
SMALL = 0.9
"""Maximum size of footnotes, relative to the usual font size."""

_NUMBER = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(
    r"[ivxlc]{1,7}|[-–—|•·]\s?\d{1,4}\s?[-–—|•·]|(?:page|seite|página|pagina|p\.|s\.)\s?\d{1,4}(?:\s?(?:of|von|de|di|/)\s?\d{1,4})?"
    r"|\d{1,4}\s?(?:of|/)\s?\d{1,4}",
    re.IGNORECASE,
)
_NOTE = re.compile(r"[\[(]?(\d{1,3}|[*†‡§¶]{1,3})[\]).]?\s*[^\W\d]")


def without_furniture(pdf: PdfText, titles: Mapping[int, PageTitles]) -> tuple[list[list[Line]], Skipped]:
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
    line_length = usual_length(pages)
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


def usual_length(pages: Iterable[list[Line]]) -> int:
    """Characters of a full line."""
    lengths = sorted(len(line.text) for page in pages for line in page)
    return lengths[len(lengths) * 3 // 4] if lengths else 0


def usual_size(pages: Iterable[list[Line]]) -> float:
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
    small = SMALL * usual_size(pages)
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
