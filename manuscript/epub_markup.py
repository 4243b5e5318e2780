"""Parses the markup of EPUBs, however malformed, and tells by their markup what pages and elements are."""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from html.parser import HTMLParser
from pathlib import Path

from manuscript.encodings import without_controls

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(
    rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})|<meta[^>]{0,200}?charset\s*=\s*["']?([\w.:-]{1,40})""",
    re.IGNORECASE,
)
_AS_BROWSERS = {"iso8859-1": "cp1252", "ascii": "cp1252", "iso8859-9": "cp1254", "gb2312": "gb18030"}

KINDS = json.loads(Path(__file__).with_name("page-kinds.json").read_text("utf-8"))
_KNOWN = frozenset(KINDS["encodings"])  # those that pages may name
FRONT_MATTER: Mapping[str, str] = KINDS["front_matter"]
"""Names by the type of a section, landmark or guide reference; the last one is a class."""
MAX_FRONT_MATTER = 6000
"""Characters; longer pages are read even if the guide or the landmarks call them front matter."""
GUTENBERG = "pg-boilerplate"
NOTE = frozenset(("footnote", "rearnote", "endnote", "doc-footnote", "doc-endnote"))
NOTES = NOTE | frozenset(("footnotes", "rearnotes", "endnotes", "doc-endnotes"))
"""Types of single notes and of lists of notes."""
PAGE_BREAKS = frozenset(("pagebreak", "doc-pagebreak", "pagenum", "pageno", "page-number", "pagenumber"))
"""Types, and classes that are used instead."""
NUMBERED = re.compile(
    r"(?:page|pag|pg|p|line|l|verse|vers|v)[-_]?(?:num(?:ber)?s?|nr|no|nbr|n|break|mark(?:er)?)|page|verse|pg|pb|folio",
    re.IGNORECASE,
)
"""Classes of the numbers of pages, lines and verses, and sometimes of what they number."""
NUMBER = re.compile(r"\W*(?:(?:page|pg|p|line|l|verse|v)\b\W*)?(?:\d{1,5}[a-z]?|[ivxlcdm]{1,9})?\W*", re.IGNORECASE)
"""Their text."""
NOTEREFS = frozenset(("noteref", "doc-noteref"))
BACKLINKS = frozenset(("doc-backlink", "backlink", "referrer"))
NO_CHAPTERS = frozenset(KINDS["no_chapters"])
"""Entries of tables of contents that are not chapters, in lower case."""
MAX_RIGHTS = 3000  # characters of a copyright page that is recognised only by its text
_TITLES_OF_NOTES = frozenset(KINDS["titles_of_notes"])
_COPYRIGHT = re.compile(r"©|\(c\) ?\d{4}|\bcopyright\b", re.IGNORECASE)
_RIGHTS = re.compile(
    r"\bISBN\b|all rights reserved|alle rechte vorbehalten|tous droits réservés|todos los derechos reservados"
    r"|todos os direitos reservados|tutti i diritti|alle rechten voorbehouden",
    re.IGNORECASE,
)
MAX_DOCTYPE = 64 * 1024  # characters up to the end of a page's declarations
_DOCTYPE = re.compile(
    r"(?:[^<]++|<\?(?:[^?]++|\?(?!>))*+\?>|<!--(?:[^-]++|-(?!->))*+-->)*+<!DOCTYPE[^<>\[]*+\["
    r"""((?:[^\]"'<]++|"[^"]*+"|'[^']*+'|<!--(?:[^-]++|-(?!->))*+-->|<(?!!--))*+)\]\s*+>"""
)
_ENTITY = re.compile(r"""<!ENTITY\s++([\w:][\w:.-]{0,79}+)\s++(?:"([^"]*+)"|'([^']*+)'|(?:SYSTEM|PUBLIC)\b)""")
_REFERENCE = re.compile(r"&([\w:][\w:.-]{0,79}+);")
_PREDEFINED = frozenset(("amp", "apos", "gt", "lt", "quot"))


def with_entities(markup: str, spend: Callable[[int], None]) -> tuple[str, list[str]]:
    """The markup with the text of the entities that the page declares, and the names of those that are left out: they
    are in other files, or consist of others.

    ``spend`` is called before with the characters by which the markup grows; it may raise.
    """
    found = _DOCTYPE.match(markup, 0, MAX_DOCTYPE)
    if not found:
        return markup, []
    values: dict[str, str | None] = {}
    for entity in _ENTITY.finditer(found[1]):
        if entity[1] not in _PREDEFINED:  # the first declaration counts
            value = entity[2] if entity[2] is not None else entity[3]
            values.setdefault(entity[1], value and value.replace("&#38;", "&"))
    plain = {
        name: value
        for name, value in values.items()
        if value is not None and not any(inner[1] in values for inner in _REFERENCE.finditer(value))
    }
    markup = markup[found.end() :]
    uses = Counter(name for reference in _REFERENCE.finditer(markup) if (name := reference[1]) in values)
    spend(sum(count * max(0, len(plain.get(name, "")) - len(name)) for name, count in uses.items()))

    def text_of(reference: re.Match[str]) -> str:
        return plain.get(reference[1], " ") if reference[1] in values else reference[0]

    return _REFERENCE.sub(text_of, markup) if uses else markup, [name for name in uses if name not in plain]


def page_text(data: bytes) -> str:
    """Decode a page, even if it declares the wrong encoding, without control characters."""
    return without_controls(_decoded(data))


def _decoded(data: bytes) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.removeprefix(codecs.BOM_UTF8).decode(encoding, "replace")
    if data[:2] in (b"<\0", b"\0<"):
        return data.decode("utf-16-le" if data[0] else "utf-16-be", "replace")
    for encoding in (_declared(data), "utf-8"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:  # the declaration is wrong
            continue
    # A few damaged characters do not mean another encoding.
    text = data.decode("utf-8", "replace")
    return text if text.count("\ufffd") * 4 < sum(sign > "\x7f" for sign in text) else data.decode("cp1252", "replace")


def _declared(data: bytes) -> str:
    match = _DECLARED.search(data, 0, 2048)
    if not match:
        return "utf-8"
    try:
        name = codecs.lookup((match[1] or match[2]).decode("ascii")).name
    except LookupError:
        return "utf-8"
    return _AS_BROWSERS.get(name, name) if name in _KNOWN else "utf-8"


class MarkupParser(HTMLParser):
    """An HTMLParser that does not raise on malformed markup, and reads what XML marks as text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        try:
            return super().parse_marked_section(i, report)
        except AssertionError:  # an unknown kind; like browsers, skip to the next ">"
            return self.parse_bogus_comment(i)

    def unknown_decl(self, data: str) -> None:
        if data.startswith("CDATA["):
            self.handle_data(data.removeprefix("CDATA["))


def types_of(values: dict[str, str | None]) -> set[str]:
    """An element's EPUB types and ARIA roles, from its attributes."""
    return set(f"{values.get('epub:type') or ''} {values.get('role') or ''}".lower().split())


def is_title_of_notes(text: str) -> bool:
    """Whether a paragraph is only the title of the notes below it."""
    return text.casefold().strip(" .:*[]") in _TITLES_OF_NOTES


def is_copyright_page(text: str) -> bool:
    """Whether a page without a type is a copyright page: short, with a copyright notice and a rights statement."""
    return len(text) <= MAX_RIGHTS and bool(_COPYRIGHT.search(text) and _RIGHTS.search(text))


def front_matter(types: Iterable[str]) -> str:
    """The name of front matter with one of these types; blank if there is none."""
    return next((FRONT_MATTER[kind] for kind in sorted(types) if kind in FRONT_MATTER), "")
