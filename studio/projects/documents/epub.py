"""EPUB: the chapters of the spine in order, as text; a zip from a stranger, read within limits."""

from __future__ import annotations

import posixpath
import re
import zipfile
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import unquote
from xml.etree import ElementTree

from studio.audio.cover import MAX_COVER, Cover, read_cover
from studio.errors import InvalidDocument, InvalidRequest
from studio.library.checks import clean_language
from studio.library.projects.records import MAX_AUTHOR
from studio.projects.documents.passages import MAX_TEXT, Document, Passage
from studio.unzip import InvalidArchive, opened, read_entry

MAX_ENTRIES = 10_000
MOST_AUTHORS = 8
MAX_ENTRY = 16 * 1024 * 1024
"""Bytes that one chapter or index may unpack to."""
MAX_UNPACKED = 96 * 1024 * 1024
"""Bytes that all chapters may unpack to."""

_PACKAGE = "{http://www.idpf.org/2007/opf}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_PICTURES = ("image/jpeg", "image/png")
_ROOT = ".//{urn:oasis:names:tc:opendocument:xmlns:container}rootfile"
_CHAPTERS = ("application/xhtml+xml", "text/html")
_BLOCKS = frozenset((
    "address", "article", "aside", "blockquote", "body", "br", "caption", "dd", "div", "dl", "dt", "figcaption",
    "figure", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "ol", "p", "pre", "section",
    "table", "td", "th", "tr", "ul",
))  # fmt: skip
_SILENT = frozenset((
    "script", "style", "svg", "math", "nav", "rt", "rp", "head", "audio", "video", "object", "template",
))  # fmt: skip
_HEADINGS = ("h1", "h2")
_NOTEREFS = frozenset(("noteref", "doc-noteref"))
"""What EPUB 3 and ARIA call a link to a footnote; EPUB 2 has no word for it."""
_MARK = re.compile(r"[\s\d()\[\]*†‡]{0,12}")
_BETWEEN_MARKS = re.compile(r"[\s()\[\],]{0,12}")


def read_epub(data: bytes) -> Document:
    """Raises InvalidDocument for what is no EPUB, is locked, or unpacks to too much."""
    try:
        with opened(data, MAX_ENTRIES) as archive:
            return _read(archive)
    except InvalidArchive as error:
        raise InvalidDocument(f"this file is not a readable EPUB: {error}", "file") from error


def _read(archive: zipfile.ZipFile) -> Document:
    container = _xml(archive, "META-INF/container.xml")
    root = container.find(_ROOT)
    if root is None:
        raise InvalidDocument("this is not an EPUB: its container names no package", "file")
    package_path = root.get("full-path", "")
    package = _xml(archive, package_path)
    items = {item.get("id"): item for item in package.iter(f"{_PACKAGE}item")}
    passages: list[Passage] = []
    unpacked = characters = 0
    read = set[str]()
    for reference in package.iter(f"{_PACKAGE}itemref"):
        item = items.get(reference.get("idref"))
        if item is None or item.get("media-type") not in _CHAPTERS or reference.get("linear") == "no":
            continue
        if "nav" in (item.get("properties") or "").split():
            continue
        path = _path(package_path, item)
        if path in read:  # the spine names a page once
            continue
        read.add(path)
        page = _bytes(archive, path)
        unpacked += len(page)
        reader = _Reader()
        # The line's end completes a text; close() would seek the end of each unfinished tag in all that follows it.
        reader.feed(page.decode("utf-8", "replace") + "\n")
        found = reader.passages()
        characters += sum(len(passage.text) for passage in found)
        if unpacked > MAX_UNPACKED or characters > MAX_TEXT:
            raise InvalidDocument(f"the EPUB has more than {MAX_TEXT} characters of text", "file")
        passages += found
    [title, *_], [language, *_] = (_said(package, name) or [""] for name in ("title", "language"))
    author = ", ".join(_said(package, "creator")[:MOST_AUTHORS])[:MAX_AUTHOR]
    cover = _cover(archive, package, package_path)
    return Document(tuple(passages), True, title, author, _known(language), cover)


def _known(language: str) -> str:
    """Blank for what is no code of a language."""
    try:
        return clean_language(language)
    except InvalidRequest:
        return ""


def _said(package: ElementTree.Element, name: str) -> list[str]:
    """What the package says under a name of the Dublin Core, in order; blank ones are left out."""
    told = (" ".join((each.text or "")[:1000].split()) for each in package.iter(f"{_DC}{name}"))
    return [each for each in told if each]


def _path(package_path: str, item: ElementTree.Element) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(package_path), unquote(item.get("href", ""))))


def _cover(archive: zipfile.ZipFile, package: ElementTree.Element, package_path: str) -> Cover | None:
    """As EPUB 3 and EPUB 2 name it; None where there is none that can be used: the book can be read all the same."""
    named = {each.get("content") for each in package.iter(f"{_PACKAGE}meta") if each.get("name") == "cover"}
    for item in package.iter(f"{_PACKAGE}item"):
        is_cover = "cover-image" in (item.get("properties") or "").split() or item.get("id") in named
        if is_cover and item.get("media-type") in _PICTURES:
            try:
                return read_cover(read_entry(archive, archive.getinfo(_path(package_path, item)), MAX_COVER))
            except (KeyError, InvalidArchive, InvalidRequest):
                return None
    return None


def _bytes(archive: zipfile.ZipFile, name: str) -> bytes:
    """One file of the archive, never more than MAX_ENTRY of it, whatever it says of itself."""
    try:
        info = archive.getinfo(name)
    except KeyError:
        raise InvalidDocument(f"the EPUB lacks a file that it names: {name[:200]!r}", "file") from None
    data = read_entry(archive, info, MAX_ENTRY)
    if b"<" not in data[:4096]:
        raise InvalidDocument("the EPUB is protected by DRM; only unprotected books can be read", "file")
    return data


def _xml(archive: zipfile.ZipFile, name: str) -> ElementTree.Element:
    data = _bytes(archive, name)
    if b"<!ENTITY" in data.replace(b"\0", b""):  # in UTF-16 too: entities that grow on reading; no package has any
        raise InvalidDocument(f"{name[:200]!r} in the EPUB declares entities", "file")
    try:
        return ElementTree.fromstring(data)  # noqa: S314  (no entities)
    except (ElementTree.ParseError, ValueError, LookupError) as error:  # the last two of an encoding that there is not
        raise InvalidDocument(f"{name[:200]!r} in the EPUB is malformed: {error}", "file") from None


@dataclass(slots=True)
class _Link:
    """One that is open."""

    begins: int
    """Among the page's texts."""
    is_noteref: bool
    is_inside: bool
    """Whether it goes to a place in a page."""
    is_raised: bool


def _link(begins: int, said: dict[str, str | None], is_raised: bool) -> _Link:
    kinds = f"{said.get('epub:type') or ''} {said.get('role') or ''}".split()
    return _Link(begins, not _NOTEREFS.isdisjoint(kinds), "#" in (said.get("href") or ""), is_raised)


class _Reader(HTMLParser):
    """A page's paragraphs; forgiving, as many a book is not well-formed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._passages: list[Passage] = []
        self._text: list[str] = []
        self._heading = ""
        self._silent = 0
        self._link: _Link | None = None
        self._raised: int | None = None
        """Where what stands above the line begins, while it does."""
        self._has_mark = False

    def passages(self) -> list[Passage]:
        self._flush()
        return self._passages

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent += 1
        if tag == "a":
            self._leave_link()
            self._link = _link(len(self._text), dict(attrs), self._raised is not None)
        if tag == "sup":
            self._raised = len(self._text)
            if self._link:
                self._link.is_raised = True
        if tag in _BLOCKS:
            self._flush()
            self._heading = tag if tag in _HEADINGS else ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS:
            self._flush()

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        if tag == "a":
            self._leave_link()
        if tag == "sup":
            self._leave_raised()
        if tag in _BLOCKS:
            self._flush()
            self._heading = ""

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._text.append(data)

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        try:
            return super().parse_marked_section(i, report)
        except AssertionError:  # a kind that it does not know: for browsers too it goes to the next ">"
            return self.parse_bogus_comment(i)

    def _leave_link(self) -> None:
        """What a link to a footnote shows is not said."""
        link, self._link = self._link, None
        if link and (link.is_noteref or (link.is_raised and link.is_inside and self._is_only(_MARK, link.begins))):
            del self._text[link.begins :]
            self._has_mark = self._raised is not None

    def _leave_raised(self) -> None:
        """Nor are brackets and commas around such links."""
        begins, self._raised = self._raised, None
        if begins is not None and self._has_mark and self._is_only(_BETWEEN_MARKS, begins):
            del self._text[begins:]
        self._has_mark = False

    def _is_only(self, pattern: re.Pattern[str], begins: int) -> bool:
        return pattern.fullmatch("".join(self._text[begins:])) is not None

    def _flush(self) -> None:
        self._leave_link()
        self._leave_raised()
        text = " ".join("".join(self._text).split())
        self._text.clear()
        if any(character.isalnum() for character in text):
            self._passages.append(Passage(text, chapter=text if self._heading else ""))
