"""Patterns that find people in running text: names with titles, roles, pronouns, and the noun phrases of one text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from studio.projects.casting.speech_verbs import (
    ARTICLES,
    BETWEEN,
    FIRST_PERSON,
    HONORIFICS,
    LINK,
    PRONOUNS,
    ROLES,
    TITLES,
    VERBS,
)


def _any_of(words: Iterable[str]) -> str:
    """A pattern of these alternatives, longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_TITLE = _any_of(TITLES)
_CAPITAL = r"[A-ZÀ-ÖØ-ÞŒŠŽ][\w’'\-]*"
_NAME = rf"(?:(?i:(?:{_TITLE})\.?\s+))*{_CAPITAL}(?:\s+(?:(?:de|van|von|la|le)\s+)?{_CAPITAL}){{0,3}}"
_PRONOUN = rf"(?i:{_any_of({*PRONOUNS, *FIRST_PERSON})})\b"
_VERB = rf"(?P<verb>(?i:{VERBS}))\b"
_OPENING = r"^\W*(?:[Tt]hen\s+|[Bb]ut\s+|[Aa]nd\s+)?"
_ABBREVIATION = rf"\b(?i:{_any_of(HONORIFICS)})\.(?=\s)"
SENTENCES = re.compile(rf"(?:{_ABBREVIATION}|[^.!?…])+[.!?…]*")
"""Clauses of a text; the full stop of "Dr." does not end one."""
TITLED_SUBJECT = re.compile(rf"{_OPENING}(?P<person>(?i:{_any_of(HONORIFICS)})\b\.?\s+{_NAME})(?!\s*[’']s\b)")
"""A name with a title, which certainly means a person, at the start of a sentence."""


UNNAMED = re.compile(
    rf"^[\s,;:.!?—–\-]*(?:(?i:{VERBS})(?:-t)?\s+(?!to\b|that\b)[^\W\d_]"
    rf"|(?:an?|another|one|some|somebody|someone|several|everybody|everyone|jemand)\b[^.!?,;:]{{0,40}}?\s(?i:{VERBS})\b)"
)
"""A verb of speech after a quotation, with any subject."""
_ARTICLE = re.compile(rf"(?i:(?:{_any_of(ARTICLES)})\s+|l[’'])")


class PersonPatterns:
    """The patterns of one text."""

    def __init__(self, phrases: Collection[str] = ()) -> None:
        """``phrases``: nouns that mean people in it, folded, without article. Blocking: 0.1 s for MAX_PHRASES."""
        self.phrases = frozenset(phrases)
        articles = rf"(?:(?:{_any_of(ARTICLES)})\s+|l[’'])"
        role = rf"(?i:{articles}(?:{_any_of(phrases) or '(?!)'}|(?:old\s+|young\s+)?(?:{_any_of(ROLES)}))\b)"
        person = rf"(?:{role}|{_PRONOUN}|{_NAME})"
        self.mention = re.compile(rf"(?<![\w’'])(?:{role}|{_NAME})")
        """A mention of any person, but not a pronoun."""
        self.after = re.compile(
            rf"^[\s,;:.!?—–\-]*(?:{_VERB}(?:-t)?[\s\-]+(?P<behind>{person})"
            rf"|(?P<before>{person}){LINK}{BETWEEN}\s+(?P<verb2>(?i:{VERBS}))\b)"
        )
        """A verb of speech and its subject after a quotation."""
        self.beside = re.compile(
            rf"(?<!\S)(?P<before>{role})(?P<behind>){BETWEEN}\s+(?i:{VERBS})\b[^.!?]{{0,60}}[,:]\s*$"
        )
        """A verb of speech before a quotation, directly after a noun."""
        self.before = re.compile(
            rf"(?:^|[.!?…]\s+|,\s+|\band\s+)(?:(?P<before>{person})(?:{_ABBREVIATION}|[^.!?:]){{0,80}}?\b{_VERB}"
            rf"|(?P<verb2>(?i:{VERBS}))\s+(?P<behind>{person}))[^.!?]{{0,60}}[,:]\s*$"
        )
        """A verb of speech before a quotation, with its subject further before it."""
        self.subject = re.compile(rf"{_OPENING}(?P<person>{person})(?!\s*[’']s\b)")
        """The subject of a sentence, at its start."""
        self.vocative = re.compile(rf"(?:^\W{{0,9}}|,\s{{1,3}})({person})\s{{0,3}}(?:[,.!?…—–\-]|\W{{0,9}}$)")
        """A person addressed."""

    def phrase(self, name: str) -> str:
        """The name as written within a sentence, if it is an article and one of the phrases; else blank."""
        article = _ARTICLE.match(name)
        is_phrase = article is not None and " ".join(name[article.end() :].lower().split()) in self.phrases
        return name[:1].lower() + name[1:] if is_phrase else ""
