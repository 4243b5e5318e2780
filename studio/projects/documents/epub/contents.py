"""Reads the table of contents and the landmarks of an EPUB 3 (nav) or EPUB 2 (ncx)."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import unquote

from studio.projects.documents.epub.markup_parser import MarkupParser, page_text, types_of
from studio.projects.documents.epub.package import resolved
from studio.projects.documents.epub.page_kinds import NO_CHAPTERS, front_matter
from studio.projects.documents.titles import MAX_JOINED_TITLE

MAX_CONTENTS = 5000
"""Maximum entries of one table."""
MAX_CONTENTS_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a table of contents."""

    title: str
    path: str
    place: str
    """Id of an element of the page; blank for its beginning."""

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
        self._kind = ""
        """Kind of the open nav."""
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
