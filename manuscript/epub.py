"""Reads EPUBs, untrusted zip files, within limits: the pages of the spine in order."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NoReturn

from manuscript.epub_chapters import ReadPage, with_chapters
from manuscript.epub_markup import (
    MAX_FRONT_MATTER,
    NO_CHAPTERS,
    is_copyright_page,
    is_title_of_notes,
    page_text,
    with_entities,
)
from manuscript.epub_package import Package, Page, read_contents, resolved
from manuscript.epub_page import PageReader, PageText, Paragraph
from manuscript.formulas import formulas_left_out
from manuscript.headings import is_heading
from manuscript.passages import MAX_PASSAGES, MAX_TEXT, Document, InvalidDocument, Skipped, with_scenes
from manuscript.untrusted import InvalidArchive, TooLarge, opened

MAX_ENTRIES = 10_000
MAX_AUTHORS = 8
MAX_UNPACKED = 96 * 1024 * 1024  # unpacked bytes of all pages
MAX_MARKUP = 2_000_000  # tags and attributes of all pages
MAX_ENTITIES = 1_000_000  # characters by which the entities of all pages make them longer
BRACKETS = 4  # characters that may surround the number at the start of a note
MAX_NAMES = 5  # of entities that are left out
MIN_LINKS = 2  # links into the book on a page that is a table of contents
MIN_LISTED = 5  # consecutive paragraphs of links that count as a table of contents
SHORT = 40
"""Characters of a paragraph that may separate two links, such as a number in a table cell."""
_LINKED = 0.7  # share of a page's or paragraph's letters inside links from which it is a table of contents


def read_epub(data: bytes, with_notes: bool = False) -> Document:
    """The text of the book; ``skipped`` lists pages and sections that are damaged or not read aloud.

    With ``with_notes``, footnotes and endnotes are read in place. Raises InvalidDocument for a file that is not an
    EPUB, is protected by DRM, is too large when unpacked or has no text.
    """
    try:
        with opened(data, MAX_ENTRIES) as archive:
            return _EpubReader(Package(archive), with_notes).document()
    except InvalidArchive as error:
        raise InvalidDocument(f"this file is not a readable EPUB: {error}") from error


class _EpubReader:
    """Reads the pages of one book, and counts them against the limits."""

    def __init__(self, package: Package, with_notes: bool) -> None:
        self._package = package
        self._with_notes = with_notes
        self._skipped = Skipped()
        self._formulas = 0  # left out
        self._unpacked_bytes = self._entities = self._markup = self._characters = self._paragraphs = 0
        self._marks: dict[tuple[str, str], str] = {}  # note marks by target (path and id)

    def document(self) -> Document:
        package = self._package
        contents = []
        for path in package.contents():
            try:
                contents.append(read_contents(package.read(path), path))
            except (KeyError, InvalidArchive):
                self._skipped.add(f"The table of contents ({_name(path)}) cannot be read.")
        front = package.guide()
        for table in contents:
            front |= table.landmarks
        spine = list(package.pages())
        chapters = {entry.path for table in contents for entry in table.entries if is_heading(entry.title)}
        front = {path: name for path, name in front.items() if path not in chapters}
        pages = [self._page(page, front) for page in spine]
        if not _has_text(pages):  # a book with a single page may mark it as the title page
            self._skipped = Skipped()
            pages = [self._page(page, {}, keep_all=True) for page in spine]
        for name, reason in dict.fromkeys(package.unreadable()):
            self._skipped.add(f"The page {_name(name)} is left out: {reason}.")
        self._remove_notes(pages)
        if not _has_text(pages):
            reason = " ".join(self._skipped.sentences()[:2])
            raise InvalidDocument(f"the EPUB has no text to speak. {reason}".strip())
        [title, *_], [language, *_] = (package.named(name) or [""] for name in ("title", "language"))
        entries = max((table.entries for table in contents), key=len, default=[])
        cover, is_bad = package.cover()
        if is_bad:
            self._skipped.add("The picture of the cover cannot be used; choose another one among the project's files.")
        if self._formulas:
            self._skipped.add(formulas_left_out(self._formulas))
        return Document(
            tuple(with_scenes(with_chapters(pages, entries, title))),
            prose=True,
            title=title,
            author=", ".join(package.named("creator")[:MAX_AUTHORS]),
            language=language,
            cover=cover,
            skipped=self._skipped.sentences(),
            notes_left_out=self._skipped.notes,
        )

    def _page(self, page: Page, front: dict[str, str], keep_all: bool = False) -> ReadPage:
        """Read a page; it has no paragraphs if it is left out. ``keep_all`` leaves out damaged pages only."""
        if page.is_contents:
            self._skipped.add(f"The table of contents ({_name(page.path)}) is left out.")
            return ReadPage(page.path, [], is_left_out=True)
        data, reason = self._bytes(page.path)
        if reason:
            self._skipped.add(f"The page {_name(page.path)} is left out: {reason}.")
            return ReadPage(page.path, [])
        markup, entities = with_entities(page_text(data), self._spend_entities)
        if self._markup + markup.count("<") > MAX_MARKUP:
            self._refuse(f"{MAX_MARKUP} tags and attributes")
        text = PageReader(self._with_notes, self._spend).read(markup)
        reason = "" if keep_all else self._reason_to_skip(page, text, front.get(page.path, ""))
        if reason:
            self._skipped.add(reason)
            self._skipped.notes += 0 if page.is_linear else text.notes
            return ReadPage(page.path, [], is_left_out=True)
        for part in dict.fromkeys(text.left_out):
            self._skipped.add(f"The {part} ({_name(page.path)}) is left out.")
        if entities:
            names = ", ".join(entities[:MAX_NAMES])
            self._skipped.add(f"Entities in {_name(page.path)} are left out, as they are not plain text: {names}.")
        self._skipped.notes += text.notes
        self._formulas += text.formulas
        for target, mark in text.marks:
            if mark:
                self._marks[resolved(page.path, target), target.partition("#")[2]] = mark
        paragraphs = _without_link_lists(text.paragraphs)
        if len(paragraphs) < len(text.paragraphs):
            self._skipped.add(f"The table of contents in {_name(page.path)} is left out.")
        return ReadPage(page.path, paragraphs, text.last_ids)

    def _reason_to_skip(self, page: Page, text: PageText, name: str) -> str:
        """Why a readable page is left out; blank if it is not. ``name`` is its kind of front matter in the book."""
        if name and 0 < sum(len(paragraph.text) for paragraph in text.paragraphs) <= MAX_FRONT_MATTER:
            return f"The {name} ({_name(page.path)}) is left out."
        if not page.is_linear and not (self._with_notes and text.has_notes):
            reason = f"The page {_name(page.path)} is left out: it is not part of the main text."
            return reason if text.paragraphs else ""
        if is_copyright_page("\n".join(paragraph.text for paragraph in islice(text.paragraphs, MAX_FRONT_MATTER))):
            return f"The copyright page ({_name(page.path)}) is left out."
        # Most of its text links into the book; headings without links do not count.
        body = "".join(paragraph.text for paragraph in text.paragraphs if not paragraph.level or paragraph.linked)
        linked = sum(paragraph.linked for paragraph in text.paragraphs)
        if text.links >= MIN_LINKS and linked > _LINKED * sum(map(str.isalnum, body)):
            return f"The table of contents ({_name(page.path)}) is left out."
        return ""

    def _bytes(self, path: str) -> tuple[bytes, str]:
        """The bytes of a page, or why it cannot be read."""
        try:
            data = self._package.read(path)
        except KeyError:
            return b"", "the file is missing"
        except TooLarge:
            raise
        except InvalidArchive as error:
            return b"", str(error)
        self._unpacked_bytes += len(data)
        if self._unpacked_bytes > MAX_UNPACKED:
            self._refuse(f"{MAX_UNPACKED} bytes of pages")
        if not data.strip(b" \t\r\n\0\xef\xbb\xbf"):
            return b"", "it is empty"
        return (data, "") if b"<" in data[:4096] else (b"", "it is not a page of text")

    def _spend(self, markup: int, characters: int) -> None:
        """Count against the limits; raises InvalidDocument when one is exceeded."""
        self._markup += markup
        if self._markup > MAX_MARKUP:
            self._refuse(f"{MAX_MARKUP} tags and attributes")
        if characters:
            self._characters += characters
            self._paragraphs += 1
            if self._characters > MAX_TEXT:
                self._refuse(f"{MAX_TEXT} characters of text")
            if self._paragraphs > MAX_PASSAGES:
                self._refuse(f"{MAX_PASSAGES} paragraphs")

    def _spend_entities(self, characters: int) -> None:
        self._entities += characters
        if self._entities > MAX_ENTITIES:
            self._refuse(f"{MAX_ENTITIES} characters of entities")

    def _refuse(self, limit: str) -> NoReturn:
        raise InvalidDocument(f"the EPUB has more than {limit}; split the book and import its parts")

    def _remove_notes(self, pages: Sequence[ReadPage]) -> None:
        """Remove paragraphs that begin with a note mark and are its target, as EPUB 2 has no type for notes."""
        if self._with_notes or not self._marks:
            return
        for page in pages:
            notes = set(self._notes_of(page))
            if not notes:
                continue
            self._skipped.notes += len(notes)
            titles = {at - 1 for at in notes if at and is_title_of_notes(page.paragraphs[at - 1].text)}
            remaining = [paragraph for at, paragraph in enumerate(page.paragraphs) if at not in notes | titles]
            is_empty = all(paragraph.level or not paragraph.text for paragraph in remaining)  # only the heading "Notes"
            page.paragraphs = [] if is_empty else remaining

    def _notes_of(self, page: ReadPage) -> Iterator[int]:
        for number, paragraph in enumerate(page.paragraphs):
            marks = (self._marks.get((page.path, name), "") for name in paragraph.ids)
            mark = next(filter(None, marks), "")
            if mark and not paragraph.level:
                begin = paragraph.text[: len(mark) + BRACKETS].lstrip("[( ")
                is_number = begin.startswith(mark) and not begin[len(mark) : len(mark) + 1].isalnum()
                if paragraph.opens_with_mark or is_number:
                    yield number


def _has_text(pages: Sequence[ReadPage]) -> bool:
    return any(paragraph.text for page in pages for paragraph in page.paragraphs)


def _name(path: str) -> str:
    return posixpath.basename(path)[-80:]


def _without_link_lists(paragraphs: list[Paragraph]) -> list[Paragraph]:
    """The paragraphs without rows of MIN_LISTED or more links and their headings."""
    if sum(paragraph.linked > 0 for paragraph in paragraphs) < MIN_LISTED:
        return paragraphs
    remaining: list[Paragraph] = []
    row: list[Paragraph] = []
    for paragraph in [*paragraphs, None]:
        is_between = paragraph and row and _is_link(row[-1]) and not paragraph.level and len(paragraph.text) <= SHORT
        if paragraph and (_is_link(paragraph) or is_between):
            row.append(paragraph)
            continue
        after = [row.pop()] if row and not _is_link(row[-1]) else []
        if sum(map(_is_link, row)) < MIN_LISTED:
            remaining += row
        else:
            if remaining and not any(map(str.isalpha, remaining[-1].text)):  # the number of the first row
                remaining.pop()
            if remaining and remaining[-1].text.casefold().strip(" .:") in NO_CHAPTERS:
                remaining.pop()
        remaining += after
        row = []
        if paragraph:
            remaining.append(paragraph)
    return remaining


def _is_link(paragraph: Paragraph) -> bool:
    return paragraph.linked > _LINKED * sum(map(str.isalnum, paragraph.text))
