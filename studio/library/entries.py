"""The records of pronunciation: an entry of a dictionary, and the dictionary's scope."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from speechtext.dictionary import PHONEMES, Entry, fold_phrase
from studio.errors import InvalidRequest
from studio.library.checks import clean_text

MAX_PHRASE = 100
MAX_SAID = 200
"""Characters."""
MAX_ENTRIES = 2000
"""Entries in one dictionary."""
_PREFIX_LENGTH = 3
"""Number of a phrase's characters in the index."""
_FEW = 16
"""Maximum number of entries for which searching for each one is faster."""
Scope = Literal["global", "voice", "project"]


@dataclass(frozen=True, slots=True)
class Pronunciation(Entry):
    """An entry, as the library stores it."""

    id: str = ""
    created: float = 0.0


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
    if not any(char.isalnum() for char in phrase):
        raise InvalidRequest("phrase needs a letter or a digit", "phrase")
    if any(mark in phrase for mark in ("[", "]", "<|", "|>")):
        raise InvalidRequest("phrase may not contain [ ] <| or |>, which make tags", "phrase")
    if not said:
        raise InvalidRequest("said is blank: write how the phrase is said", "said")
    remainder = said
    for mark in PHONEMES:
        remainder = remainder.replace(mark, "")
    if "<|" in remainder:
        raise InvalidRequest(f"said may have no control tokens but {' and '.join(PHONEMES)}", "said")
    return replace(entry, phrase=phrase, said=said)


def entry_of(row: dict[str, Any]) -> Pronunciation:
    return Pronunciation(row["phrase"], row["said"], bool(row["match_case"]), row["id"], row["created"])


class EntryIndex:
    """Entries to search in many texts; the time depends on the text, not on the number of entries."""

    def __init__(self, entries: Iterable[Pronunciation]) -> None:
        self._entries = tuple(entries)
        self._unindexed: list[tuple[int, str]] = []
        """Positions and folded phrases of entries outside the index: too short, or too few to be worth it."""
        self._by_prefix: dict[str, list[tuple[int, str]]] = {}
        for position, entry in enumerate(self._entries):
            folded = fold_phrase(entry.phrase)
            prefix = folded[:_PREFIX_LENGTH]
            is_indexed = len(prefix) == _PREFIX_LENGTH and len(self._entries) > _FEW
            group = self._by_prefix.setdefault(prefix, []) if is_indexed else self._unindexed
            group.append((position, folded))

    def in_text(self, text: str) -> list[Pronunciation]:
        """The entries whose words may be in a text, in their order."""
        if not self._entries:
            return []
        folded = fold_phrase(text)
        candidates = list(self._unindexed)
        if self._by_prefix:
            prefixes = {folded[start : start + _PREFIX_LENGTH] for start in range(len(folded))}
            candidates += [entry for prefix in prefixes & self._by_prefix.keys() for entry in self._by_prefix[prefix]]
        return [
            self._entries[position]
            for position in sorted(position for position, phrase in candidates if phrase in folded)
        ]
