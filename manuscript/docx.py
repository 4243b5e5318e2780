"""Reads Word documents (.docx), untrusted zip files, within limits; headings begin chapters."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from itertools import dropwhile
from pathlib import Path
from xml.etree.ElementTree import Element

from manuscript.docx_body import WordParagraph, with_rows, word_paragraphs
from manuscript.docx_parts import LEVELS, MalformedPart, Numbering, Styles, tree
from manuscript.formulas import formulas_left_out
from manuscript.headings import chapter_levels, is_bare_heading, is_heading, is_same_words, is_scene_break, is_title
from manuscript.passages import Document, InvalidDocument, Passage, Skipped, with_scenes
from manuscript.untrusted import InvalidArchive, opened

MAX_ENTRIES = 10_000
MAX_BODY = 64 * 1024 * 1024  # unpacked bytes
MAX_ABOUT = 4 * 1024 * 1024  # unpacked bytes of each of styles, numbering and metadata
MAX_NOTES = 16 * 1024 * 1024  # unpacked bytes of each of footnotes and endnotes
BODY = "word/document.xml"
_DC = "{http://purl.org/dc/elements/1.1/}"

_WORDS = {
    name: frozenset(words)
    for name, words in json.loads(Path(__file__).with_name("byline.json").read_text("utf-8")).items()
}
"""placeholders: authors that programs enter by themselves; by: words before a name; and: words between names;
particles: parts of names in lower case; other: words of subtitles that are not in names."""
_SEPARATOR = re.compile(rf" ?[,&] ?| (?:{'|'.join(sorted(_WORDS['and']))}) ", re.IGNORECASE)
_NAME = re.compile(r"[^\W\d_]+(?:[-'’.][^\W\d_]*)*")
_MOST_WORDS = 4  # of a name, without its particles


def read_docx(data: bytes, with_notes: bool = False) -> Document:
    """Body text, tables and text boxes, with list numbers; not headers, comments, contents or deleted text.

    With ``with_notes``, footnotes and endnotes follow the paragraphs that refer to them. Raises InvalidDocument for a
    file that is not a .docx, or is too large when unpacked.
    """
    try:
        with opened(data, MAX_ENTRIES) as archive:
            return _DocxReader(archive, with_notes).document()
    except InvalidArchive as error:
        raise InvalidDocument(f"this file is not a readable Word document: {error}") from error


class _DocxReader:
    """Reads the files of one document."""

    def __init__(self, archive: zipfile.ZipFile, with_notes: bool) -> None:
        if BODY not in archive.namelist():
            raise InvalidDocument(f"this is not a Word document: it has no {BODY}")
        self._archive = archive
        self._with_notes = with_notes
        self._skipped = Skipped()
        self._styles = Styles(self._tree("word/styles.xml", "the styles, and with them its headings"))
        self._numbering = Numbering(self._tree("word/numbering.xml", "the numbers of its lists"))
        about = self._tree("docProps/core.xml", "its title and author")
        self._about = {field.tag.removeprefix(_DC): " ".join((field.text or "")[:1000].split()) for field in about}

    def document(self) -> Document:
        body = list(with_rows(word_paragraphs(self._archive, BODY, MAX_BODY), self._is_text))
        notes = self._notes() if self._with_notes else {}
        titles = (paragraph.text for paragraph in body if self._styles.find(paragraph.style).name == "title")
        title = self._about.get("title", "") or next((" ".join(title.split()) for title in titles if title), "")
        levels = chapter_levels(
            level
            for paragraph in body
            if (level := self._level(paragraph)) and not is_same_words(paragraph.text, title)
        )
        passages = tuple(with_scenes(self._passages(body, notes, levels)))
        if any(self._is_in_contents(paragraph) and paragraph.text for paragraph in body):
            self._skipped.add("The table of contents is left out.")
        if formulas := sum(paragraph.formulas for paragraph in body):
            self._skipped.add(formulas_left_out(formulas))
        if files := sum(paragraph.files for paragraph in body):
            subject = "1 document in this one is" if files == 1 else f"{files} documents in this one are"
            self._skipped.add(f"{subject} left out: open the file in Word and save it, which makes it one text.")
        if not self._with_notes:
            self._skipped.notes = sum(len(paragraph.notes) for paragraph in body)
        author = author_of(self._about.get("creator", ""), self._subtitle(body))
        language, skipped = self._about.get("language", ""), self._skipped
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
        is_named = style.name == "title" or self._is_in_contents(paragraph)
        return not (is_named or style.list_id or paragraph.list_id or self._level(paragraph))

    def _is_in_contents(self, paragraph: WordParagraph) -> bool:
        return self._styles.find(paragraph.style).name.startswith("toc ")

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
            if self._is_in_contents(paragraph):
                continue
            if is_scene_break(text):
                is_chapter = was_bare = False
                yield None
            elif any(map(str.isalnum, text)):
                style = self._styles.find(paragraph.style)
                list_id = style.list_id if paragraph.list_id is None else paragraph.list_id
                list_level = style.list_level if paragraph.list_level is None else paragraph.list_level
                if list_id:
                    text = f"{self._numbering.next_number(list_id, list_level, paragraph.style)} {text}".strip()
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


def author_of(creator: str, subtitle: str) -> str:
    """The metadata's creator, unless a program entered it; else the name in the subtitle; blank without either.

    A subtitle has a name after a word such as "by", or if it consists of two to four words of which each may be part of
    a name. Several names are separated by commas or "and".
    """
    if creator and creator.casefold() not in _WORDS["placeholders"]:
        return creator
    first, _, rest = (line := " ".join(subtitle.split())).partition(" ")
    is_marked = first.casefold().rstrip(":") in _WORDS["by"]
    names = rest if is_marked else line
    min_words = 1 if is_marked else 2
    is_author = names and not is_heading(line) and all(_is_name(name, min_words) for name in _SEPARATOR.split(names))
    return names if is_author else ""


def _is_name(name: str, min_words: int) -> bool:
    words = [word for word in name.split() if word not in _WORDS["particles"]]
    return min_words <= len(words) <= _MOST_WORDS and all(
        _NAME.fullmatch(word) and word[0].isupper() and word.casefold().rstrip(".") not in _WORDS["other"]
        for word in words
    )
