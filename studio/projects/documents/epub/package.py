"""Reads the package of an EPUB: pages in order, tables of contents, metadata, encryption."""

from __future__ import annotations

import posixpath
import unicodedata
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote
from xml.etree import ElementTree

from studio.audio.cover import MAX_COVER, Cover, read_cover
from studio.errors import InvalidDocument, InvalidRequest
from studio.projects.documents.epub.page_kinds import front_matter
from studio.unzip import InvalidArchive, read_entry

MAX_ENTRY = 16 * 1024 * 1024
"""Maximum unpacked bytes of one file."""

_PACKAGE = "{http://www.idpf.org/2007/opf}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_ENCRYPTION = "{http://www.w3.org/2001/04/xmlenc#}"
_ROOT = ".//{urn:oasis:names:tc:opendocument:xmlns:container}rootfile"
_PICTURES = ("image/jpeg", "image/png")
_PAGES = ("application/xhtml+xml", "text/html", "text/x-oeb1-document", "application/xml", "text/xml")
_PAGE_NAMES = (".xhtml", ".html", ".htm", ".xht")
_NCX = "application/x-dtbncx+xml"
_FONT_OBFUSCATION = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
"""Algorithms that obfuscate fonts only."""
_FONT_NAMES = (".otf", ".ttf", ".woff", ".woff2", ".ttc")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the spine."""

    path: str
    """Path in the archive."""
    is_contents: bool = False
    is_linear: bool = True
    """Whether it is part of the main text."""


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
        """The pages of the spine, each once."""
        seen = set[str]()
        for reference in self._root.iter(f"{_PACKAGE}itemref"):
            item = self._items.get(reference.get("idref"))
            if item is None:
                continue
            path = self._resolved(item.get("href", ""))
            if path in seen or not (item.get("media-type", "") in _PAGES or path.casefold().endswith(_PAGE_NAMES)):
                continue
            seen.add(path)
            is_contents = "nav" in (item.get("properties") or "").split()
            yield Page(path, is_contents, reference.get("linear") != "no")

    def contents(self) -> list[str]:
        """Paths of the tables of contents: of EPUB 3, then of EPUB 2."""
        items = list(self._items.values())
        nav_items = [item for item in items if "nav" in (item.get("properties") or "").split()]
        spine = next(self._root.iter(f"{_PACKAGE}spine"), None)
        named = self._items.get(spine.get("toc")) if spine is not None else None
        ncx_items = [item for item in items if item.get("media-type") == _NCX or item is named]
        return list(dict.fromkeys(self._resolved(item.get("href", "")) for item in (*nav_items[:1], *ncx_items[:1])))

    def guide(self) -> dict[str, str]:
        """Names of front matter in the guide of EPUB 2, such as "title page", by page path."""
        references = [(ref.get("type", ""), ref.get("href", "")) for ref in self._root.iter(f"{_PACKAGE}reference")]
        return {self._resolved(href): name for kind, href in references if (name := _whole_page(kind, href))}

    def named(self, name: str) -> list[str]:
        """The non-blank values of a Dublin Core element, in order."""
        values = (" ".join((element.text or "")[:1000].split()) for element in self._root.iter(f"{_DC}{name}"))
        return [value for value in values if value]

    def cover(self) -> tuple[Cover | None, bool]:
        """The cover named by EPUB 3 or EPUB 2, and whether there is one that cannot be used."""
        named = {meta.get("content") for meta in self._root.iter(f"{_PACKAGE}meta") if meta.get("name") == "cover"}
        for item in self._root.iter(f"{_PACKAGE}item"):
            is_cover = "cover-image" in (item.get("properties") or "").split() or item.get("id") in named
            if is_cover and item.get("media-type") in _PICTURES:
                try:
                    info = self._archive.getinfo(self._resolved(item.get("href", "")))
                    return read_cover(read_entry(self._archive, info, MAX_COVER)), False
                except (KeyError, InvalidArchive, InvalidRequest):
                    return None, True
        return None, False

    def _find(self) -> str:
        if "META-INF/container.xml" not in self._archive.namelist():
            packages = [name for name in self._archive.namelist() if name.casefold().endswith(".opf")]
            if len(packages) != 1:
                raise InvalidDocument("this is not an EPUB: it has no META-INF/container.xml", "file")
            return packages[0]
        root = self._xml("META-INF/container.xml").find(_ROOT)
        if root is None:
            raise InvalidDocument("this is not an EPUB: its container names no package", "file")
        return root.get("full-path", "")

    def _xml(self, path: str) -> ElementTree.Element:
        try:
            data = self.read(path)
        except KeyError:
            raise InvalidDocument(f"the EPUB lacks a file that it names: {path[:200]!r}", "file") from None
        if b"<!ENTITY" in data.replace(b"\0", b""):  # also in UTF-16; entities could expand endlessly
            raise InvalidDocument(f"{path[:200]!r} in the EPUB declares entities", "file")
        try:
            return ElementTree.fromstring(data.strip())  # noqa: S314  (no entities)
        except (
            ElementTree.ParseError,
            ValueError,
            LookupError,
        ) as error:  # the last two: unknown encoding
            raise InvalidDocument(f"{path[:200]!r} in the EPUB is malformed: {error}", "file") from None

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
                raise InvalidDocument("the EPUB is protected by DRM; only unprotected books can be read", "file")


def resolved(base: str, href: str) -> str:
    """The path in the archive of a reference from a file at ``base``, without the fragment."""
    path = unquote(href.partition("#")[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), path)).lstrip("/") if path else base


def _folded(path: str) -> str:
    """A path for comparison, regardless of case and Unicode composition."""
    return unicodedata.normalize("NFC", path.casefold())


def _whole_page(kind: str, href: str) -> str:
    """The name of front matter if the reference is to a whole page, not to a place in it."""
    return "" if "#" in href else front_matter([kind.lower().removeprefix("other.")])
