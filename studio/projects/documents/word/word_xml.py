"""The XML files of a Word document: small ones as trees, large ones element by element."""

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
"""Elements and attributes of a file."""
FALLBACK = "Fallback"
"""A copy of what stands before it, for old programs."""

_NAMESPACES = (
    "{http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "{http://purl.oclc.org/ooxml/wordprocessingml/main",
)
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006"


class MalformedPart(InvalidDocument):
    """A file of the document that is not well-formed."""


def steps(archive: zipfile.ZipFile, name: str, limit: int) -> Iterator[tuple[bool, Element]]:
    """Each element of a file: True where it begins, False where it ends and is whole; none of a missing file.

    Raises InvalidDocument, of which MalformedPart is one, and InvalidArchive.
    """
    if name not in archive.namelist():
        return
    data = read_entry(archive, archive.getinfo(name), limit)
    if b"<!DOCTYPE" in data.replace(b"\0", b""):  # in UTF-16 too: it could have entities that grow on reading
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
    """A small file as a whole; an element without anything in it for a missing one. Raises as `steps` does."""
    *_, (_, root) = (False, Element("")), *steps(archive, name, limit)
    return root


@lru_cache(maxsize=1000)
def _plain(tag: str) -> str:
    space, _, name = tag.rpartition("}")
    return name if space in _NAMESPACES or (space == _COMPATIBILITY and name == FALLBACK) else ""


def name_of(element: Element) -> str:
    """The name of an element of Word's, in either of its namespaces; blank for others."""
    return _plain(element.tag)


def children(element: Element) -> dict[str, Element]:
    """By their names; of several with one name the last."""
    return {name_of(each): each for each in element}


def value(element: Element | None, name: str = "val") -> str:
    """Of the attribute with this name in any namespace; blank without one."""
    return (
        ""
        if element is None
        else next((each for key, each in element.attrib.items() if key.rpartition("}")[2] == name), "")
    )


def number(element: Element | None, name: str = "val") -> int | None:
    """The whole number that an attribute is; None for anything else."""
    text = value(element, name)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def outline_level(element: Element | None) -> int | None:
    """From 1 on; 10 is body text."""
    level = number(element)
    return None if level is None else level + 1
