"""Parses the XML files of a Word document: small ones as trees, large ones element by element."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from studio.errors import InvalidDocument
from studio.unzip import read_entry

MAX_MARKUP = 6_000_000
"""Maximum number of elements and attributes of a file."""
FALLBACK = "Fallback"
"""An element with a copy of the previous one, for old programs."""

_NAMESPACES = (
    "{http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "{http://purl.oclc.org/ooxml/wordprocessingml/main",
)
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006"


class MalformedPart(InvalidDocument):
    """A file of the document is not well-formed."""


def steps(archive: zipfile.ZipFile, name: str, limit: int) -> Iterator[tuple[bool, Element]]:
    """Yield (True, element) at each start tag and (False, element) at each end tag; nothing if the file is missing.

    Raises InvalidDocument (MalformedPart is a subclass) and InvalidArchive.
    """
    if name not in archive.namelist():
        return
    data = read_entry(archive, archive.getinfo(name), limit)
    if b"<!DOCTYPE" in data.replace(b"\0", b""):  # also in UTF-16; entities could expand endlessly
        raise InvalidDocument(f"{name!r} in the document declares a document type, which Word never does", "file")
    markup = 0
    try:
        for event, element in ElementTree.iterparse(io.BytesIO(data), ("start", "end")):  # noqa: S314  (no entities)
            if event == "start":
                markup += 1 + len(element.attrib)
                if markup > MAX_MARKUP:
                    raise InvalidDocument(
                        f"the document has more than {MAX_MARKUP} elements and attributes; split it", "file"
                    )
            yield event == "start", element
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise MalformedPart(f"{name!r} in the document is malformed: {error}", "file") from None


def tree(archive: zipfile.ZipFile, name: str, limit: int) -> Element:
    """The root of a small file; an empty element if the file is missing. Raises as `steps` does."""
    *_, (_, root) = (False, Element("")), *steps(archive, name, limit)
    return root


@lru_cache(maxsize=1000)
def _plain(tag: str) -> str:
    namespace, _, name = tag.rpartition("}")
    return name if namespace in _NAMESPACES or (namespace == _COMPATIBILITY and name == FALLBACK) else ""


def name_of(element: Element) -> str:
    """The name of an element in one of Word's namespaces; blank for others."""
    return _plain(element.tag)


def children(element: Element) -> dict[str, Element]:
    """Child elements by name; the last one of each name."""
    return {name_of(child): child for child in element}


def value(element: Element | None, name: str = "val") -> str:
    """The attribute with this name in any namespace; blank if missing."""
    attributes = {} if element is None else element.attrib
    return next((text for key, text in attributes.items() if key.rpartition("}")[2] == name), "")


def number(element: Element | None, name: str = "val") -> int | None:
    """An attribute as an integer; None if it is not one."""
    text = value(element, name)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def outline_level(element: Element | None) -> int | None:
    """The outline level from 1; 10 is body text."""
    level = number(element)
    return None if level is None else level + 1
