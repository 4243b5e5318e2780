"""The nouns of pronunciation: an entry of a dictionary, and whose dictionary it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from studio.errors import InvalidRequest
from studio.library.checks import clean_text
from studio.library.sqlite import Database, select

MAX_PHRASE = 100
MAX_SAID = 200
"""Characters."""
MAX_ENTRIES = 2000
"""Of one dictionary."""
PHONEMES = ("<|phoneme_start|>", "<|phoneme_end|>")

Scope = Literal["global", "voice", "project"]


@dataclass(frozen=True, slots=True)
class Pronunciation:
    """An entry."""

    phrase: str
    said: str
    """What is read in its place: other words, or phonemes between PHONEMES."""
    match_case: bool = False
    id: str = ""
    created: float = 0.0

    @property
    def key(self) -> str:
        """Entries of the same key are for the same words: as they are written, behind a blank, or in any case."""
        return f" {' '.join(self.phrase.split())}" if self.match_case else fold_phrase(self.phrase)


@dataclass(frozen=True, slots=True)
class Shelf:
    """Which dictionary is meant."""

    scope: Scope = "global"
    subject: str = ""
    """The id of the voice or the project."""


EVERYBODY = Shelf()


def entries_on(db: Database, shelf: Shelf) -> list[Pronunciation]:
    query = "select * from pronunciations where scope = ? and subject = ? order by phrase collate nocase, key"
    return [entry_of(row) for row in select(db, query, [shelf.scope, shelf.subject])]


def clean_entry(entry: Pronunciation) -> Pronunciation:
    """Raises InvalidRequest."""
    phrase = " ".join(clean_text("phrase", entry.phrase, MAX_PHRASE).split())
    said = " ".join(clean_text("said", entry.said, MAX_SAID).split())
    if not any(sign.isalnum() for sign in phrase):
        raise InvalidRequest("phrase needs a letter or a digit", "phrase")
    if any(sign in phrase for sign in ("[", "]", "<|", "|>")):
        raise InvalidRequest("phrase may not contain [ ] <| or |>, which make tags", "phrase")
    if not said:
        raise InvalidRequest("said is blank: write how the phrase is said", "said")
    rest = said
    for mark in PHONEMES:
        rest = rest.replace(mark, "")
    if "<|" in rest:
        raise InvalidRequest(f"said may have no control tokens but {' and '.join(PHONEMES)}", "said")
    return replace(entry, phrase=phrase, said=said)


def fold_phrase(text: str) -> str:
    """Without regard to case and spaces."""
    return " ".join(text.casefold().split())


def entry_of(row: dict[str, Any]) -> Pronunciation:
    return Pronunciation(row["phrase"], row["said"], bool(row["match_case"]), row["id"], row["created"])


def words_of(entries: Iterable[Pronunciation], text: str) -> list[list[object]]:
    """Those of the entries whose words may be in a text, in figures that tell them from others."""
    if not (listed := tuple(entries)):
        return []
    folded = fold_phrase(text)
    return [[each.phrase, each.said, each.match_case] for each in listed if fold_phrase(each.phrase) in folded]
