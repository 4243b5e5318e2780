"""PDF: its text as paragraphs, without what repeats on each page; chapters by its outline, or by their headings."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from studio.errors import InvalidDocument
from studio.library.projects.records import MAX_AUTHOR
from studio.projects.documents.front_matter import begins_contents, ends_with_page
from studio.projects.documents.headings import is_bare_heading, is_heading, is_scene_break, is_title
from studio.projects.documents.passages import MAX_TEXT, Document, Passage, with_pauses
from studio.projects.documents.pdf_text import Line, PdfText, text_of_pdf

FEW = 8
"""Letters and digits a page; with fewer it is a scan, of which at most a page number can be read."""
EDGE = 2
"""Lines at the top and at the bottom of a page that may be repeated on the others."""
MAX_TITLE = 200
TITLE_LINES = 3
"""Lines of a page that may be one title of the outline together."""
SMALL = 0.9
"""Of the usual size of letters: so small are footnotes at most."""

_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]\Z")
_ENDS = re.compile(r"[.!?:…。！？][\"'”’»)\]]*\Z")
_NUMBER = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(
    r"[ivxlc]{1,7}|[-–—|•·]\s?\d{1,4}\s?[-–—|•·]|(?:page|seite|página|pagina|p\.|s\.)\s?\d{1,4}(?:\s?(?:of|von|de|di|/)\s?\d{1,4})?"
    r"|\d{1,4}\s?(?:of|/)\s?\d{1,4}",
    re.IGNORECASE,
)
_NOTE = re.compile(r"[\[(]?(?:\d{1,3}|[*†‡§¶]{1,3})[\]).]?\s*\S")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


def read_pdf(data: bytes) -> Document:
    """Lines become paragraphs again, by their lengths; the outline's first two levels, or headings, begin chapters.

    Raises InvalidDocument for a scan without text, one with a password, and what takes too much memory.
    """
    told = text_of_pdf(data)
    signs = sum(sign.isalnum() for page in told.pages for line in page for sign in line.text)
    if signs < FEW * max(1, len(told.pages)):
        raise InvalidDocument(
            "this PDF has no text, as if its pages were scanned: have a program for text recognition (OCR) make one",
            "file",
        )
    if signs > MAX_TEXT:
        raise InvalidDocument(f"the PDF has more than {MAX_TEXT} characters of text", "file")
    titles: dict[int, Titles] = {}
    for page, title in told.outline:
        titles.setdefault(page, Titles()).add(" ".join(title.split())[:MAX_TITLE])
    pages, skipped = _without_furniture(told, titles)
    passages = tuple(with_pauses(Paragraphs(pages, titles).passages()))
    title, author = (" ".join(words.split())[:MAX_TITLE] for words in (told.title, told.author))
    return Document(passages, True, title, author[:MAX_AUTHOR], skipped=skipped)


class Titles:
    """The titles of the outline that point to one page, found by the letters of the lines that show them."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._by_letters: dict[str, str] = {}

    def add(self, title: str) -> None:
        """Found with its number and without it."""
        self.all.append(title)
        words = title.split()
        for count in range(min(3, len(words))):
            if count and not (is_heading(" ".join(words[:count])) or _NUMBER.match(words[count - 1])):
                continue
            letters = _letters(" ".join(words[count:]))
            if len(letters) > 1:
                self._by_letters.setdefault(letters, title)

    def of(self, lines: Sequence[str]) -> tuple[str, int]:
        """The title with which some lines begin, and how many lines it has; blank where they begin with none."""
        letters = ""
        found = "", 0
        for count, line in enumerate(lines[:TITLE_LINES], start=1):
            letters += _letters(line)
            if len(letters) > MAX_TITLE:
                break
            if letters in self._by_letters:
                found = self._by_letters[letters], count
        return found


def _letters(text: str) -> str:
    return "".join(sign for sign in text[: 2 * MAX_TITLE].casefold() if sign.isalnum())


def _without_furniture(told: PdfText, titles: Mapping[int, Titles]) -> tuple[list[list[Line]], tuple[str, ...]]:
    """The pages without numbers, running heads, contents and footnotes; and what was left out, or may be mixed up."""
    pages = _without_edges(told.pages, titles)
    pages, had_contents = _without_contents(pages)
    pages, notes = _without_notes(pages)
    skipped = []
    if had_contents:
        skipped.append("The list of contents was left out.")
    if notes:
        skipped.append(f"Footnotes at the bottom of {notes} {'page' if notes == 1 else 'pages'} were left out.")
    if told.mixed:
        numbers = ", ".join(str(number + 1) for number in told.mixed[:10]) + (" …" if len(told.mixed) > 10 else "")
        which = f"Page {numbers} seems" if len(told.mixed) == 1 else f"Pages {numbers} seem"
        skipped.append(f"{which} to have two columns whose lines the file mixes: check the text, or send it as .txt.")
    return pages, tuple(skipped)


def _without_edges(pages: Sequence[list[Line]], titles: Mapping[int, Titles]) -> list[list[Line]]:
    """The pages without their numbers, and without the short lines that others have at the same end.

    What could be the title of a chapter stays where it comes first.
    """
    usual = _usual_length(pages)
    forms: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number, page in enumerate(pages):
        texts = {line.text for line in (*page[:EDGE], *page[-EDGE:]) if len(line.text) <= 0.8 * usual}
        for form in {form for text in texts for form in _forms(text, number)}:
            forms[form].append(number)
    repeated = {form: _repeated(numbers, len(pages)) for form, numbers in forms.items() if len(numbers) > 2}

    def stays(number: int, page: list[Line], at: int) -> bool:
        text = page[at].text
        if EDGE <= at < len(page) - EDGE:
            return True
        if number in titles and titles[number].of([line.text for line in page[at : at + TITLE_LINES]])[0]:
            return True
        if is_heading(text):
            again = repeated.get((text.casefold(), -1), set())
            return number not in again or (number - 1 not in again and number - 2 not in again)
        if at in (0, len(page) - 1) and (text == str(number + 1) or _PAGE_NUMBER.fullmatch(text)):
            return False
        return not any(number in repeated.get(form, ()) for form in _forms(text, number))

    return [[line for at, line in enumerate(page) if stays(number, page, at)] for number, page in enumerate(pages)]


def _forms(line: str, page: int) -> tuple[tuple[str, int], ...]:
    """The same for lines that differ only in the number of their page, however pages are counted."""
    found = _NUMBER.search(line)
    exact = line.casefold(), -1
    return (exact, (_NUMBER.sub("0", line.casefold(), count=1), int(found[0][:9]) - page)) if found else (exact,)


def _repeated(numbers: Sequence[int], pages: int) -> set[int]:
    """The pages on which a line is one of many: on more than a third of all pages, or on three left or right ones."""
    if len(numbers) > max(2, pages / 3):
        return set(numbers)
    runs = [[numbers[0]]]
    for number in numbers[1:]:
        if number - runs[-1][-1] <= 2:
            runs[-1].append(number)
        else:
            runs.append([number])
    return {number for run in runs if len(run) > 2 for number in run}


def _usual_length(pages: Iterable[list[Line]]) -> int:
    """Of a line that is full."""
    lengths = sorted(len(line.text) for page in pages for line in page)
    return lengths[len(lengths) * 3 // 4] if lengths else 0


def _without_contents(pages: Sequence[list[Line]]) -> tuple[list[list[Line]], bool]:
    """Without the pages at the front on which most lines end with the number of another one."""
    kept, is_list, had_list = list[list[Line]](), False, False
    for number, page in enumerate(pages):
        entries = [ends_with_page(line.text) for line in page]
        begins = number < 50 and any(begins_contents(line.text) for line in page[:3])
        is_list = (begins or is_list) and sum(entries) >= max(2, len(page) / 2)
        had_list |= is_list
        kept.append([] if is_list else page)
    return kept, had_list


def _without_notes(pages: Sequence[list[Line]]) -> tuple[list[list[Line]], int]:
    """Without the notes in small letters at the bottom of pages; and on how many pages there were some."""
    sizes = Counter[float]()
    for page in pages:
        for line in page:
            sizes[round(line.size, 1)] += len(line.text)
    small = SMALL * (sizes.most_common(1)[0][0] if sizes else 0.0)
    kept, count = list[list[Line]](), 0
    for page in pages:
        end = len(page)
        while end and page[end - 1].size <= small:
            end -= 1
        begins = next((at for at in range(end, len(page)) if _NOTE.match(page[at].text)), None)
        is_note = end > 0 and begins is not None
        kept.append(page[:begins] if is_note else page)
        count += is_note
    return kept, count


class Paragraphs:
    """Lines put together to paragraphs, which may go on from one page to the next, but not into a chapter."""

    def __init__(self, pages: Sequence[list[Line]], titles: Mapping[int, Titles]) -> None:
        self._pages = pages
        self._titles = titles
        self._usual = _usual_length(pages)
        self._by_outline = sum(len(each.all) for each in titles.values()) > 1
        """Whether the outline decides where chapters begin; one bookmark alone is often the cover's."""
        self._words = Counter(word for page in pages for line in page for word in _inner_words(line.text))
        self._held: list[Line] = []
        self._chapter = ""

    def passages(self) -> Iterator[Passage | None]:
        """None stands for a break between scenes."""
        was_bare = False
        for number, page in enumerate(self._pages):
            titles = self._titles.get(number, Titles())
            texts = [line.text for line in page]
            found = [titles.of(texts[at : at + TITLE_LINES]) for at in range(len(page))]
            shown = {title for title, _ in found}
            unseen = next((title for title in titles.all if title not in shown), "")
            if unseen:  # it begins with its page
                yield from self._ended()
                self._chapter = unseen
            skip = 0
            for at, line in enumerate(page):
                if skip:
                    skip -= 1
                    continue
                title, count = found[at]
                if not title and self._is_chapter(line, was_bare):
                    title, count = line.text, 1
                was_bare = bool(title) and is_bare_heading(line.text)
                if title:
                    yield from self._ended()
                    self._held, self._chapter, skip = page[at : at + count], title, count - 1
                    yield from self._ended()
                elif is_scene_break(line.text):
                    yield from self._ended()
                    yield None
                else:
                    if self._held and self._ends_before(line):
                        yield from self._ended()
                    self._held.append(line)
        yield from self._ended()

    def _is_chapter(self, line: Line, was_bare: bool) -> bool:
        """Whether a line is a heading, or a bare one's title, and not the middle of a sentence."""
        if self._by_outline:
            return False
        if was_bare and is_title(line.text):
            return True
        before = self._held[-1].text if self._held else ""
        goes_on = len(before) >= 0.85 * self._usual and not _ENDS.search(before)
        return is_heading(line.text) and (not before or not goes_on)

    def _ends_before(self, line: Line) -> bool:
        """Whether the paragraph ends with its last line: a short one, or one that a gap or an indented line follows."""
        last = self._held[-1]
        if line.text[:1].islower() or _HYPHEN.search(last.text):
            return False
        if not _ENDS.search(last.text):
            return len(last.text) < 0.6 * self._usual
        return (
            len(last.text) < 0.85 * self._usual
            or last.y - line.y > 1.8 * max(last.size, line.size) > 0
            or 0.8 * line.size < line.x - self._held[-1].x < 6 * line.size
        )

    def _ended(self) -> Iterator[Passage]:
        """The paragraph that is held."""
        pieces: list[str] = []
        for line in self._held:
            if pieces and _HYPHEN.search(pieces[-1]) and line.text[:1].islower():
                pieces[-1] = self._without_hyphen(pieces[-1], line.text)
            elif pieces:
                pieces.append(" ")
            pieces.append(line.text)
        text = "".join(pieces)
        if any(sign.isalnum() for sign in text):
            yield Passage(text, chapter=self._chapter)
            self._chapter = ""
        self._held = []

    def _without_hyphen(self, line: str, following: str) -> str:
        """A line whose last word goes on in the next one; a compound that is written so elsewhere keeps its hyphen."""
        begun, rest = _WORD.findall(line[-60:-1] or " "), _WORD.match(following)
        if not begun or not rest or line[-1] == "\u00ad":
            return line[:-1]
        whole, compound = f"{begun[-1]}{rest[0]}".casefold(), f"{begun[-1]}-{rest[0]}".casefold()
        return line if self._words[compound] > self._words[whole] else line[:-1]


def _inner_words(line: str) -> list[str]:
    """The words of a line without its first and last, which may be halves."""
    return [word.casefold() for word in _WORD.findall(line)[1:-1]]
