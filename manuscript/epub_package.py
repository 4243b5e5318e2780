"""Reads the package of an EPUB: pages in order, tables of contents with landmarks, metadata, encryption."""

from __future__ import annotations

import posixpath
import unicodedata
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote
from xml.etree import ElementTree

from manuscript.epub_markup import NO_CHAPTERS, MarkupParser, front_matter, page_text, types_of
from manuscript.headings import MAX_JOINED_TITLE
from manuscript.passages import InvalidDocument
from manuscript.untrusted import MAX_COVER, Cover, InvalidArchive, read_cover, read_entry
from speechtext.errors import TextError

MAX_ENTRY = 16 * 1024 * 1024  # unpacked bytes of one file
MAX_CONTENTS = 5000  # entries of one table
MAX_CONTENTS_BYTES = 2 * 1024 * 1024
MAX_FALLBACKS = 10  # files in place of others, for one page

_PACKAGE = "{http://www.idpf.org/2007/opf}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_ENCRYPTION = "{http://www.w3.org/2001/04/xmlenc#}"
_ROOT = ".//{urn:oasis:names:tc:opendocument:xmlns:container}rootfile"
_PICTURES = ("image/jpeg", "image/png")
_DRAWING = "image/svg+xml"
_PAGES = ("application/xhtml+xml", "text/html", "text/x-oeb1-document", "application/xml", "text/xml", _DRAWING)
_PAGE_NAMES = (".xhtml", ".html", ".htm", ".xht")
_NCX = "application/x-dtbncx+xml"
_FONT_OBFUSCATION = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
"""Algorithms that obfuscate fonts only."""
_FONT_NAMES = (".otf", ".ttf", ".woff", ".woff2", ".ttc")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the spine."""

    path: str  # path in the archive
    is_contents: bool = False
    is_linear: bool = True  # whether it is part of the main text


class Package:
    """The package of an EPUB. Raises InvalidDocument if it is missing, malformed or protected by DRM."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = {_folded(name): name for name in archive.namelist()}
        self._path = self._find()
        self._root = self._xml(self._path)
        self._items = {item.get("id"): item for item in self._root.iter(f"{_PACKAGE}item")}
        self._refuse_drm()

    def read(self, path: str) -> bytes:
        """A file of the archive, at most MAX_ENTRY bytes. Raises KeyError and InvalidArchive."""
        try:
            info = self._archive.getinfo(path)
        except KeyError:
            info = self._archive.getinfo(self._names[_folded(path)])
        return read_entry(self._archive, info, MAX_ENTRY)

    def pages(self) -> Iterator[Page]:
        """The pages of the spine, each once; in place of a file that is not a page, its fallback."""
        seen = set[str]()
        for reference in self._root.iter(f"{_PACKAGE}itemref"):
            item = self._page_of(reference)
            path = self._resolved(item.get("href", "")) if item is not None else ""
            if item is None or path in seen:
                continue
            seen.add(path)
            yield Page(path, _has_property(item, "nav"), reference.get("linear") != "no")

    def unreadable(self) -> Iterator[tuple[str, str]]:
        """The names of what else is in the spine, without pictures, and why it cannot be read."""
        for reference in self._root.iter(f"{_PACKAGE}itemref"):
            if self._page_of(reference) is not None:
                continue
            item = self._items.get(reference.get("idref", ""))
            if item is None:
                yield reference.get("idref", ""), "the book's list of files lacks it"
            elif not item.get("media-type", "").startswith("image/"):
                yield item.get("href", ""), "it is not a page of text"

    def contents(self) -> list[str]:
        """Paths of the tables of contents: of EPUB 3, then of EPUB 2."""
        items = list(self._items.values())
        nav_items = [item for item in items if _has_property(item, "nav")]
        spine = next(self._root.iter(f"{_PACKAGE}spine"), None)
        named = self._items.get(spine.get("toc")) if spine is not None else None
        ncx_items = [item for item in items if item.get("media-type") == _NCX or item is named]
        return list(dict.fromkeys(self._resolved(item.get("href", "")) for item in (*nav_items[:1], *ncx_items[:1])))

    def guide(self) -> dict[str, str]:
        """Names of front matter in the guide of EPUB 2, such as "title page", by page path."""
        references = [(ref.get("type", ""), ref.get("href", "")) for ref in self._root.iter(f"{_PACKAGE}reference")]
        return {
            self._resolved(href): name
            for kind, href in references
            if "#" not in href and (name := front_matter([kind.lower().removeprefix("other.")]))  # a whole page
        }

    def named(self, name: str) -> list[str]:
        """The non-blank values of a Dublin Core element, in order."""
        values = (" ".join((element.text or "")[:1000].split()) for element in self._root.iter(f"{_DC}{name}"))
        return [value for value in values if value]

    def cover(self) -> tuple[Cover | None, bool]:
        """The cover named by EPUB 3 or EPUB 2, and whether there is one that cannot be used."""
        named = {meta.get("content") for meta in self._root.iter(f"{_PACKAGE}meta") if meta.get("name") == "cover"}
        is_bad = False
        for item in self._root.iter(f"{_PACKAGE}item"):
            kind = item.get("media-type", "")
            if not kind.startswith("image/") or not (_has_property(item, "cover-image") or item.get("id") in named):
                continue
            try:
                if kind in _PICTURES:
                    info = self._archive.getinfo(self._resolved(item.get("href", "")))
                    return read_cover(read_entry(self._archive, info, MAX_COVER)), False
            except (KeyError, InvalidArchive, TextError):
                return None, True
            is_bad = True  # such as SVG; another item may be a picture that can be used
        return None, is_bad

    def _page_of(self, reference: ElementTree.Element) -> ElementTree.Element | None:
        """The item of a reference in the spine, or its nearest fallback that is a page."""
        item = self._items.get(reference.get("idref", ""))
        for _ in range(MAX_FALLBACKS):
            if item is None or item.get("media-type") in _PAGES:
                return item
            if self._resolved(item.get("href", "")).casefold().endswith(_PAGE_NAMES):
                return item
            item = self._items.get(item.get("fallback", ""))
        return None

    def _find(self) -> str:
        if "META-INF/container.xml" not in self._archive.namelist():
            packages = [name for name in self._archive.namelist() if name.casefold().endswith(".opf")]
            if len(packages) != 1:
                raise InvalidDocument("this is not an EPUB: it has no META-INF/container.xml")
            return packages[0]
        root = self._xml("META-INF/container.xml").find(_ROOT)
        if root is None:
            raise InvalidDocument("this is not an EPUB: its container names no package")
        return root.get("full-path", "")

    def _xml(self, path: str) -> ElementTree.Element:
        try:
            data = self.read(path)
        except KeyError:
            raise InvalidDocument(f"the EPUB lacks a file that it names: {path[:200]!r}") from None
        if b"<!ENTITY" in data.replace(b"\0", b""):  # also in UTF-16; entities could expand endlessly
            raise InvalidDocument(f"{path[:200]!r} in the EPUB declares entities")
        try:
            return ElementTree.fromstring(data.strip())  # noqa: S314  (no entities)
        except (ElementTree.ParseError, ValueError, LookupError) as error:  # the last two: unknown encoding
            raise InvalidDocument(f"{path[:200]!r} in the EPUB is malformed: {error}") from None

    def _resolved(self, href: str) -> str:
        return resolved(self._path, href)

    def _refuse_drm(self) -> None:
        """Raise InvalidDocument if pages are encrypted; encrypted fonts do not matter."""
        if "META-INF/encryption.xml" not in self._archive.namelist():
            return
        pages = {page.path for page in self.pages()}
        try:
            encryption = self._xml("META-INF/encryption.xml")
        except InvalidDocument:  # an encrypted page is then found on reading, as it has no markup
            return
        for entry in encryption.iter(f"{_ENCRYPTION}EncryptedData"):
            method = entry.find(f"{_ENCRYPTION}EncryptionMethod")
            reference = next(entry.iter(f"{_ENCRYPTION}CipherReference"), None)
            path = posixpath.normpath(unquote(reference.get("URI", ""))) if reference is not None else ""
            if method is not None and method.get("Algorithm") in _FONT_OBFUSCATION:
                continue
            if path in pages and not path.casefold().endswith(_FONT_NAMES):
                raise InvalidDocument("the EPUB is protected by DRM; only unprotected books can be read")


def _has_property(item: ElementTree.Element, name: str) -> bool:
    return name in item.get("properties", "").split()


def resolved(base: str, href: str) -> str:
    """The path in the archive of a reference from a file at ``base``, without the fragment."""
    path = unquote(href.partition("#")[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), path)).lstrip("/") if path else base


def _folded(path: str) -> str:
    """A path for comparison, regardless of case and Unicode composition."""
    return unicodedata.normalize("NFC", path.casefold())


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a table of contents."""

    title: str
    path: str
    place: str  # id of an element of the page; blank for its beginning

    @property
    def is_chapter(self) -> bool:
        """Whether the entry is a chapter, and not "Cover" or "Contents"."""
        return self.title.casefold().strip(" .:") not in NO_CHAPTERS


@dataclass(slots=True)
class Contents:
    """A table of contents."""

    entries: list[Entry] = field(default_factory=list)
    landmarks: dict[str, str] = field(default_factory=dict)
    """Names of front matter, such as "title page", by page path."""


def read_contents(data: bytes, path: str) -> Contents:
    """Read at most MAX_CONTENTS_BYTES and MAX_CONTENTS entries; malformed markup is read as far as possible."""
    reader = _Reader(path)
    reader.feed(page_text(data[:MAX_CONTENTS_BYTES]) + "\n")
    return reader.contents


class _Reader(MarkupParser):
    """Handles both kinds: links in a nav of type toc, and the navPoints of a navMap."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.contents = Contents()
        self._path = path
        self._kind = ""  # kind of the open nav
        self._is_map = self._is_label = False
        self._href: str | None = None
        self._text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        types = types_of(values)
        if tag == "nav":
            self._kind = next((kind for kind in ("toc", "landmarks") if kind in types), "")
            self._kind = self._kind or ("toc" if not types or "doc-toc" in types else "")
        elif tag == "navmap":
            self._is_map = True
        elif tag == "a" and self._kind:
            self._href = values.get("href") or ""
            self._text.clear()
            name = front_matter(types)
            if self._kind == "landmarks" and name and self._href and "#" not in self._href:
                self.contents.landmarks[resolved(self._path, self._href)] = name
        elif tag == "text" and self._is_map:
            self._is_label = True
            self._text.clear()
        elif tag == "content" and self._is_map:
            self._add(values.get("src") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "nav":
            self._kind = ""
        elif tag == "navmap":
            self._is_map = False
        elif tag == "text":
            self._is_label = False
        elif tag == "a" and self._href is not None:
            if self._kind == "toc":
                self._add(self._href)
            self._href = None

    def handle_data(self, data: str) -> None:
        if self._is_label or self._href is not None:
            self._text.append(data)

    def _add(self, href: str) -> None:
        title = " ".join("".join(self._text).split())[:MAX_JOINED_TITLE]
        if title and href and "://" not in href and len(self.contents.entries) < MAX_CONTENTS:
            place = unquote(href.partition("#")[2])
            self.contents.entries.append(Entry(title, resolved(self._path, href), place))
