"""Word documents (.docx): paragraphs, and headings as chapters; a zip from a stranger, read within limits."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from xml.etree import ElementTree

from studio.errors import InvalidDocument, InvalidRequest
from studio.library.checks import clean_language
from studio.library.projects.records import MAX_AUTHOR
from studio.projects.documents.passages import MAX_TEXT, Document, Passage
from studio.unzip import InvalidArchive, opened, read_entry

MAX_ENTRIES = 10_000
MAX_BODY = 64 * 1024 * 1024
"""Bytes that the body may unpack to."""
MAX_ABOUT = 4 * 1024 * 1024
"""Bytes of styles, and of what the document says of itself."""
BODY, STYLES, ABOUT = "word/document.xml", "word/styles.xml", "docProps/core.xml"
OLD = b"\xd0\xcf\x11\xe0"
"""How .doc files begin, and .docx files with a password."""

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_W_STRICT = "{http://purl.oclc.org/ooxml/wordprocessingml/main}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_UNHEARD = frozenset(("{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback", f"{_W}moveFrom"))
"""What is there twice."""
_CHAPTERS = ("heading 1", "heading 2")


def read_docx(data: bytes) -> Document:
    """Body text, tables and text boxes; no headers, footnotes, comments, contents or deleted words.

    Raises InvalidDocument for what is no .docx, has a password, or unpacks to too much.
    """
    if data.startswith(OLD):
        raise InvalidDocument(
            "this is an old Word document (.doc), or one with a password: save it as .docx without a password", "file"
        )
    try:
        with opened(data, MAX_ENTRIES) as archive:
            return _read(archive)
    except InvalidArchive as error:
        raise InvalidDocument(f"this file is not a readable Word document: {error}", "file") from error


def _read(archive: zipfile.ZipFile) -> Document:
    if BODY not in archive.namelist():
        raise InvalidDocument(f"this is not a Word document: it has no {BODY}", "file")
    styles, about = _Styles(), _About()
    _parse(archive, STYLES, MAX_ABOUT, styles)
    _parse(archive, ABOUT, MAX_ABOUT, about)
    body = _Body(styles.names)
    _parse(archive, BODY, MAX_BODY, body)
    author, language = about.told.get("creator", ""), about.told.get("language", "")
    try:
        language = clean_language(language)
    except InvalidRequest:  # what it says is no code; it can be read all the same
        language = ""
    title = about.told.get("title", "") or body.title
    return Document(tuple(body.passages), True, title, author[:MAX_AUTHOR], language)


def _parse(archive: zipfile.ZipFile, name: str, limit: int, target: object) -> None:
    """Tell ``target`` of the elements of a file as they are read, none of which is kept; a file may be missing."""
    if name not in archive.namelist():
        return
    data = read_entry(archive, archive.getinfo(name), limit)
    if b"<!DOCTYPE" in data.replace(b"\0", b""):  # in UTF-16 too: it could have entities that grow on reading
        raise InvalidDocument(f"{name!r} in the document declares a document type, which Word never does", "file")
    parser = ElementTree.XMLParser(target=target)  # noqa: S314  (no entities)
    try:
        parser.feed(data)
        parser.close()
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise InvalidDocument(f"{name!r} in the document is malformed: {error}", "file") from None


class _Styles:
    """What the styles are called, whatever the language of the Word that made them."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self._id = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        kind, values = _plain(tag), {_plain(name): value for name, value in attributes.items()}
        if kind == "style":
            self._id = values.get("styleId", "")
        elif kind == "name" and self._id:
            self.names.setdefault(self._id, values.get("val", "").lower())

    def close(self) -> None:
        """Nothing is left to do."""


class _About:
    """Title, creator and language, as the document's properties have them."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}
        self._text: list[str] = []

    def start(self, _: str, __: dict[str, str]) -> None:
        self._text.clear()

    def data(self, text: str) -> None:
        self._text.append(text)

    def end(self, tag: str) -> None:
        if tag.startswith(_DC):
            self.told[tag.removeprefix(_DC)] = " ".join("".join(self._text)[:1000].split())

    def close(self) -> None:
        """Nothing is left to do."""


@dataclass(slots=True)
class _Paragraph:
    text: list[str] = field(default_factory=list)
    style: str = ""
    level: str = ""


class _Body:
    """The paragraphs of a body, those of text boxes before the one that they hang on."""

    def __init__(self, styles: dict[str, str]) -> None:
        self.passages: list[Passage] = []
        self.title = ""
        self._styles = styles
        self._open: list[_Paragraph] = []
        self._is_text = False
        self._unheard = self._characters = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in _UNHEARD:
            self._unheard += 1
        kind, value = _plain(tag), next((each for name, each in attributes.items() if _plain(name) == "val"), "")
        if kind == "p" and _is_word(tag):
            self._open.append(_Paragraph())
        elif self._open and _is_word(tag):
            paragraph = self._open[-1]
            if kind == "pStyle":
                paragraph.style = self._styles.get(value, value.lower())
            elif kind == "outlineLvl":
                paragraph.level = value
            elif kind in ("tab", "br", "cr"):
                paragraph.text.append(" ")
            elif kind == "noBreakHyphen":
                paragraph.text.append("-")
            self._is_text = kind == "t" and not self._unheard

    def data(self, text: str) -> None:
        if self._is_text:
            self._open[-1].text.append(text)

    def end(self, tag: str) -> None:
        self._is_text = False
        if tag in _UNHEARD:
            self._unheard -= 1
        if _plain(tag) == "p" and _is_word(tag) and self._open:
            self._finish(self._open.pop())

    def close(self) -> None:
        """Nothing is left to do."""

    def _finish(self, paragraph: _Paragraph) -> None:
        text = " ".join("".join(paragraph.text).split())
        if not any(sign.isalnum() for sign in text) or paragraph.style.startswith("toc "):
            return
        self._characters += len(text)
        if self._characters > MAX_TEXT:
            raise InvalidDocument(f"the document has more than {MAX_TEXT} characters of text", "file")
        if paragraph.style == "title":
            self.title = self.title or text
        begins = paragraph.style in _CHAPTERS or paragraph.level in ("0", "1")
        self.passages.append(Passage(text, chapter=text if begins else ""))


def _is_word(tag: str) -> bool:
    return tag.startswith((_W, _W_STRICT))


def _plain(name: str) -> str:
    """Without its namespace."""
    return name.rpartition("}")[2]
