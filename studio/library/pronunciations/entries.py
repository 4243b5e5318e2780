"""The records of pronunciation: an entry of a dictionary, and the dictionary's scope."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from studio.errors import InvalidRequest
from studio.library.checks import clean_text

MAX_PHRASE = 100
MAX_SAID = 200
"""Characters."""
MAX_ENTRIES = 2000
"""Entries in one dictionary."""
_BEGINNING = 3
"""Number of a phrase's characters in the index."""
_FEW = 16
"""Maximum number of entries for which searching for each one is faster."""
PHONEMES = ("<|phoneme_start|>", "<|phoneme_end|>")

Scope = Literal["global", "voice", "project"]


@dataclass(frozen=True, slots=True)
class Pronunciation:
    """An entry."""

    phrase: str
    said: str
    """The replacement that is read: other words, or phonemes between PHONEMES."""
    match_case: bool = False
    id: str = ""
    created: float = 0.0

    @property
    def key(self) -> str:
        """Identifies the words of an entry: after a space if their case counts, else folded."""
        return f" {' '.join(self.phrase.split())}" if self.match_case else fold_phrase(self.phrase)


@dataclass(frozen=True, slots=True)
class DictionaryScope:
    """The scope of a dictionary."""

    scope: Scope = "global"
    subject: str = ""
    """The id of the voice or the project."""


GLOBAL = DictionaryScope()


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
    """Fold case and spaces."""
    return " ".join(text.casefold().split())


def entry_of(row: dict[str, Any]) -> Pronunciation:
    return Pronunciation(row["phrase"], row["said"], bool(row["match_case"]), row["id"], row["created"])


class EntryIndex:
    """Entries to search in many texts; the time depends on the text, not on the number of entries."""

    def __init__(self, entries: Iterable[Pronunciation]) -> None:
        self._entries = tuple(entries)
        self._unlisted: list[tuple[int, str]] = []
        """Positions and folded phrases of entries outside the index: too short, or too few to be worth it."""
        self._by_beginning: dict[str, list[tuple[int, str]]] = {}
        for place, entry in enumerate(self._entries):
            folded = fold_phrase(entry.phrase)
            begin = folded[:_BEGINNING]
            is_listed = len(begin) == _BEGINNING and len(self._entries) > _FEW
            listing = self._by_beginning.setdefault(begin, []) if is_listed else self._unlisted
            listing.append((place, folded))

    def in_text(self, text: str) -> list[Pronunciation]:
        """The entries whose words may be in a text, in their order."""
        if not self._entries:
            return []
        folded = fold_phrase(text)
        likely = list(self._unlisted)
        if self._by_beginning:
            beginnings = {folded[at : at + _BEGINNING] for at in range(len(folded))}
            likely += [entry for begin in beginnings & self._by_beginning.keys() for entry in self._by_beginning[begin]]
        return [self._entries[place] for place in sorted(place for place, phrase in likely if phrase in folded)]
