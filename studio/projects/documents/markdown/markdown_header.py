"""Reads the front matter of a Markdown document: title, author and language between two lines of dashes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import yaml

from studio.library.projects.project_records import MAX_AUTHOR
from studio.library.projects.project_records import MAX_TITLE as MAX_PROJECT_TITLE
from studio.projects.documents.passages import valid_language

MAX_HEADER = 20_000
"""Characters; a longer block is left out unread."""
MAX_AUTHORS = 20

_HEADER = re.compile(
    r"---[ \t]*\n((?:#|[\w-]+:(?:[ \t]|$)).*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
_FIELD = re.compile(r"^([\w-]+):[ \t]+(\S.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MarkdownHeader:
    """The metadata of a Markdown document; unknown fields are blank."""

    title: str = ""
    author: str = ""
    language: str = ""


def split_header(text: str) -> tuple[MarkdownHeader, str]:
    """The front matter of a document, and its text without it."""
    match = _HEADER.match(text)
    if not match:
        return MarkdownHeader(), text
    fields = _fields(match[1]) if len(match[1]) <= MAX_HEADER else {}

    def first(*names: str) -> str:
        return next(filter(None, (_words(fields.get(name)) for name in names)), "")

    language = valid_language(first("lang", "language").replace("_", "-"))
    header = MarkdownHeader(first("title")[:MAX_PROJECT_TITLE], first("author", "authors")[:MAX_AUTHOR], language)
    return header, text[match.end() :]


def _fields(header: str) -> Mapping[str, object]:
    """Fields by name in lower case. Malformed YAML, such as a title with a colon, is read line by line."""
    try:
        fields = yaml.load(header, yaml.BaseLoader)  # noqa: S506  (it makes text, lists and mappings only)
    except (yaml.YAMLError, RecursionError):
        fields = {name: value.strip("\"' ") for name, value in _FIELD.findall(header)}
    return {str(name).lower(): value for name, value in fields.items()} if isinstance(fields, dict) else {}


def _words(value: object) -> str:
    """A value as one line: a text, or a list of texts or of authors with their names."""
    values = value[:MAX_AUTHORS] if isinstance(value, list) else [value]
    names = (item.get("name") if isinstance(item, dict) else item for item in values)
    return ", ".join(" ".join(name.split()) for name in names if isinstance(name, str) and name.strip())
