"""The records of pronunciation: an entry of a dictionary, and the dictionary's scope."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from speechtext.dictionary import PHONEMES, Entry
from studio.errors import InvalidRequest
from studio.library.checks import clean_text

MAX_PHRASE = 100
MAX_SAID = 200
"""Characters."""
MAX_ENTRIES = 2000
"""Entries in one dictionary."""
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


def entry_of(phrase: str, said: str, match_case: int, entry_id: str, created: float) -> Pronunciation:
    return Pronunciation(phrase, said, bool(match_case), entry_id, created)
