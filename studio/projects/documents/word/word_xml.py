"""The XML files of a Word document, given to a target element by element; no tree is kept."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Mapping
from xml.etree import ElementTree

from studio.errors import InvalidDocument
from studio.unzip import read_entry

MAX_MARKUP = 6_000_000
"""Elements and attributes of a file."""

_NAMESPACES = (
    "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}",
    "{http://purl.oclc.org/ooxml/wordprocessingml/main}",
)
_CHUNK = 256 * 1024
"""Bytes after which the parser is asked again, so that a refusal ends it."""

Act = Callable[[Mapping[str, str]], None]


class MalformedPart(InvalidDocument):
    """A file of the document that is not well-formed."""


def parse(archive: zipfile.ZipFile, name: str, limit: int, target: object) -> None:
    """Give ``target`` the elements of a file as they are read; a file may be missing.

    Raises InvalidDocument, of which MalformedPart is one, and InvalidArchive.
    """
    if name not in archive.namelist():
        return
    data = read_entry(archive, archive.getinfo(name), limit)
    if b"<!DOCTYPE" in data.replace(b"\0", b""):  # in UTF-16 too: it could have entities that grow on reading
        raise InvalidDocument(f"{name!r} in the document declares a document type, which Word never does", "file")
    parser = ElementTree.XMLParser(target=target)  # noqa: S314  (no entities)
    try:
        for at in range(0, len(data), _CHUNK):
            parser.feed(data[at : at + _CHUNK])
        parser.close()
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise MalformedPart(f"{name!r} in the document is malformed: {error}", "file") from None


def of_word(acts: Mapping[str, Act]) -> dict[str, Act]:
    """The functions for elements of Word, by their names in both namespaces that it uses."""
    return {f"{space}{name}": act for space in _NAMESPACES for name, act in acts.items()}


def value(attributes: Mapping[str, str], names: Iterable[str] = ("val",)) -> str:
    """The value of the first attribute with such a name, in any namespace; blank without one."""
    plain = {name.rpartition("}")[2]: each for name, each in attributes.items()}
    return next((plain[name] for name in names if name in plain), "")
