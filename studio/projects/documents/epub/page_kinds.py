"""Types of pages and sections that are not read aloud, from EPUB 3, EPUB 2 and ARIA."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from studio.paths import json_beside

_WORDS = json_beside(__file__, "page-kinds.json")
FRONT_MATTER: Mapping[str, str] = _WORDS["front_matter"]
"""Names by the type of a section, landmark or guide reference; the last one is a class."""
MAX_FRONT_MATTER = 6000
"""Characters; longer pages are read even if the guide or the landmarks call them front matter."""
GUTENBERG = "pg-boilerplate"
NOTE = frozenset(("footnote", "rearnote", "endnote", "doc-footnote", "doc-endnote"))
NOTES = NOTE | frozenset(("footnotes", "rearnotes", "endnotes", "doc-endnotes"))
"""Types of single notes and of lists of notes."""
PAGE_BREAKS = frozenset(("pagebreak", "doc-pagebreak", "pagenum", "pageno", "page-number", "pagenumber"))
"""Types, and classes that are used instead."""
NOTEREFS = frozenset(("noteref", "doc-noteref"))
BACKLINKS = frozenset(("doc-backlink", "backlink", "referrer"))
NO_CHAPTERS = frozenset(_WORDS["no_chapters"])
"""Entries of tables of contents that are not chapters, in lower case."""
MAX_RIGHTS = 3000
"""Characters of a copyright page that is recognised only by its text."""
_TITLES_OF_NOTES = frozenset(_WORDS["titles_of_notes"])
_COPYRIGHT = re.compile(r"©|\(c\) ?\d{4}|\bcopyright\b", re.IGNORECASE)
_RIGHTS = re.compile(
    r"\bISBN\b|all rights reserved|alle rechte vorbehalten|tous droits réservés|todos los derechos reservados"
    r"|todos os direitos reservados|tutti i diritti|alle rechten voorbehouden",
    re.IGNORECASE,
)


def is_title_of_notes(text: str) -> bool:
    """Whether a paragraph is only the title of the notes below it."""
    return text.casefold().strip(" .:*[]") in _TITLES_OF_NOTES


def is_copyright_page(text: str) -> bool:
    """Whether a page without a type is a copyright page: short, with a copyright notice and a rights statement."""
    return len(text) <= MAX_RIGHTS and bool(_COPYRIGHT.search(text) and _RIGHTS.search(text))


def front_matter(types: Iterable[str]) -> str:
    """The name of front matter with one of these types; blank if there is none."""
    return next((FRONT_MATTER[kind] for kind in sorted(types) if kind in FRONT_MATTER), "")
