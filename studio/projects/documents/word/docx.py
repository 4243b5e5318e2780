"""Reads Word documents (.docx), untrusted zip files, within limits; headings begin chapters."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from itertools import dropwhile
from xml.etree.ElementTree import Element

from studio.errors import InvalidDocument
from studio.projects.documents.headings import is_bare_heading, is_heading, is_scene_break, is_title
from studio.projects.documents.passages import Document, Passage, Skipped, valid_language, with_pauses
from studio.projects.documents.titles import chapter_levels, is_same_words
from studio.projects.documents.word.byline import author_of
from studio.projects.documents.word.numbering import LEVELS, Numbering
from studio.projects.documents.word.styles import Styles
from studio.projects.documents.word.word_body import WordParagraph, with_rows, word_paragraphs
from studio.projects.documents.word.word_xml import MalformedPart, tree
from studio.unzip import InvalidArchive, opened

MAX_ENTRIES = 10_000
MAX_BODY = 64 * 1024 * 1024
"""Maximum unpacked bytes of the body."""
MAX_ABOUT = 4 * 1024 * 1024
"""Maximum unpacked bytes of each of styles, numbering and metadata."""
MAX_NOTES = 16 * 1024 * 1024
"""Maximum unpacked bytes of each of footnotes and endnotes."""
BODY, ABOUT = "word/document.xml", "docProps/core.xml"

_DC = "{http://purl.org/dc/elements/1.1/}"


def read_docx(data: bytes, with_notes: bool = False) -> Document:
    """Body text, tables and text boxes, with list numbers; not headers, comments, contents or deleted text.

    With ``with_notes``, footnotes and endnotes follow the paragraphs that refer to them. Raises InvalidDocument for a
    file that is not a .docx, or is too large when unpacked.
    """
    try:
        with opened(data, MAX_ENTRIES) as archive:
            return _DocxReader(archive, with_notes).document()
    except InvalidArchive as error:
        raise InvalidDocument(f"this file is not a readable Word document: {error}", "file") from error


class _DocxReader:
    """Reads the files of one document."""

    def __init__(self, archive: zipfile.ZipFile, with_notes: bool) -> None:
        if BODY not in archive.namelist():
            raise InvalidDocument(f"this is not a Word document: it has no {BODY}", "file")
        self._archive = archive
        self._with_notes = with_notes
        self._skipped = Skipped()
        self._styles = Styles(self._tree("word/styles.xml", "the styles, and with them its headings"))
        self._numbering = Numbering(self._tree("word/numbering.xml", "the numbers of its lists"))
        about = self._tree(ABOUT, "its title and author")
        self._about = {field.tag.removeprefix(_DC): " ".join((field.text or "")[:1000].split()) for field in about}
        self._has_contents = False

    def document(self) -> Document:
        body = list(with_rows(word_paragraphs(self._archive, BODY, MAX_BODY), self._is_text))
        notes = self._notes() if self._with_notes else {}
        title = self._about.get("title", "") or self._title(body)
        levels = chapter_levels(
            level
            for paragraph in body
            if (level := self._level(paragraph)) and not is_same_words(paragraph.text, title)
        )
        passages = tuple(with_pauses(self._passages(body, notes, levels)))
        if self._has_contents:
            self._skipped.add("The table of contents is left out.")
        if not self._with_notes:
            self._skipped.notes = sum(len(paragraph.notes) for paragraph in body)
        language = valid_language(self._about.get("language", ""))
        author = author_of(self._about.get("creator", ""), self._subtitle(body))
        skipped = self._skipped
        return Document(
            passages, True, title, author, language, skipped=skipped.sentences(), notes_left_out=skipped.notes
        )

    def _tree(self, name: str, contents: str) -> Element:
        """An optional file of the document; empty if it is malformed."""
        try:
            return tree(self._archive, name, MAX_ABOUT)
        except (MalformedPart, InvalidArchive):
            self._report_missing(name, contents)
            return Element("")

    def _report_missing(self, name: str, contents: str) -> None:
        self._skipped.add(f"The file {name} of the document cannot be read: {contents} are not known.")

    def _notes(self) -> dict[str, list[str]]:
        """The paragraphs of each note."""
        notes: dict[str, list[str]] = {}
        for name in ("footnotes", "endnotes"):
            try:
                for paragraph in word_paragraphs(self._archive, f"word/{name}.xml", MAX_NOTES):
                    notes.setdefault(paragraph.note, []).append(paragraph.text)
            except (MalformedPart, InvalidArchive):
                self._report_missing(f"word/{name}.xml", f"its {name}")
        return notes

    def _title(self, body: list[WordParagraph]) -> str:
        """The first paragraph in the style Title."""
        titles = (paragraph.text for paragraph in body if self._styles.find(paragraph.style).name == "title")
        return next((" ".join(title.split()) for title in titles if title), "")

    def _subtitle(self, body: list[WordParagraph]) -> str:
        """The paragraph in the style Subtitle directly below the first one in the style Title."""
        paragraphs = ((self._styles.find(paragraph.style).name, paragraph.text) for paragraph in body if paragraph.text)
        below = dropwhile(lambda paragraph: paragraph[0] != "title", paragraphs)
        after_title = dropwhile(lambda paragraph: paragraph[0] == "title", below)
        name, text = next(after_title, ("", ""))
        return text if name == "subtitle" else ""

    def _is_text(self, paragraph: WordParagraph) -> bool:
        """Whether it is neither a heading nor the title, an entry of the contents or a list item."""
        style = self._styles.find(paragraph.style)
        is_named = style.name == "title" or style.name.startswith("toc ")
        return not (is_named or style.list_id or paragraph.list_id or self._level(paragraph))

    def _level(self, paragraph: WordParagraph) -> int:
        """The level of a heading; 0 for body text."""
        level = paragraph.level
        if level is None:
            level = self._styles.find(paragraph.style).level
        return level if level is not None and level <= LEVELS else 0

    def _passages(
        self, body: list[WordParagraph], notes: dict[str, list[str]], levels: set[int]
    ) -> Iterator[Passage | None]:
        is_chapter = was_bare = False
        for paragraph in body:
            text = paragraph.text
            if self._styles.find(paragraph.style).name.startswith("toc "):
                self._has_contents = self._has_contents or bool(text)
                continue
            if is_scene_break(text):
                is_chapter = was_bare = False
                yield None
            elif any(map(str.isalnum, text)):
                text = f"{self._number(paragraph)} {text}".strip()
                line = " ".join(text.split())
                level = self._level(paragraph)
                # A heading of any level directly below a chapter's heading continues its title.
                is_chapter = (
                    level in levels or is_heading(line) or (is_chapter and level > 0) or (was_bare and is_title(line))
                )
                was_bare = is_chapter and is_bare_heading(line)
                yield Passage(line, chapter=line) if is_chapter else Passage(text)
            for note in paragraph.notes:
                for words in notes.get(note, ()):
                    if any(map(str.isalnum, words)):
                        yield Passage(words)

    def _number(self, paragraph: WordParagraph) -> str:
        """The number of a list item or a numbered heading."""
        style = self._styles.find(paragraph.style)
        list_id = style.list_id if paragraph.list_id is None else paragraph.list_id
        level = style.list_level if paragraph.list_level is None else paragraph.list_level
        return self._numbering.next_number(list_id, level, paragraph.style) if list_id else ""
