"""Verbs with which narrators introduce speech, and words that name people or end their names, in seven languages."""

from __future__ import annotations

from itertools import chain
from typing import Any

from studio.paths import json_beside

_WORDS: dict[str, Any] = json_beside(__file__, "speech-words.json")

INVERTED = "|".join(chain(*_WORDS["inverted"].values()))
"""Verbs before their subject, without a mark between speech and narrator."""
VERBS = "|".join((*chain(*_WORDS["verbs"].values()), INVERTED))
"""As a pattern of alternatives."""

BETWEEN = r"(?:\s+(?:had|then|only|just|at last|finally|\w+ly))?"
"""Words between a person and the verb, as a pattern."""
LINK = r"(?:\s+(?:in|on|at|from|with|behind|beside|near|by|of|to|who)\b[^.!?,;:\"“”„«»‘]{0,40}?)?"
"""Words before these that describe the person: "the girl in the red coat"."""

TITLES: dict[str, str] = _WORDS["titles"]
"""Words before a name, folded, without a full stop, and the gender that they show."""

HONORIFICS = tuple(_WORDS["honorifics"])
"""Titles, without a full stop, that occur only before a person's name."""

ABBREVIATED: dict[str, str] = _WORDS["abbreviated"]
"""Titles that are short for a role: "the doctor" is Dr. Hall."""

ROLES: dict[str, str] = _WORDS["roles"]
"""Nouns that mean a person after "the", "her", "der" …, and their gender."""

PRONOUNS: dict[str, str] = _WORDS["pronouns"]
FIRST_PERSON = frozenset({"i", "ich", "je", "yo", "io", "eu"})
POSSESSIVES = frozenset("her his my their our ihr ihre sein seine mein meine son sa mon ma su mi".split())  # noqa: SIM905
ARTICLES = frozenset("the der die das le la l’ el il lo".split()) | POSSESSIVES  # noqa: SIM905

AFTER_NOUNS = frozenset(_WORDS["after_nouns"])
"""Words that do not belong to the noun before them: "said the constable again"."""
NOT_PEOPLE = frozenset(_WORDS["not_people"])
"""Nouns beside verbs of speech that are not speakers: "read the sign", "said the other"."""
PHRASE_ADJECTIVES = frozenset(_WORDS["adjectives"])
"""Words of Romance languages that come before their noun."""
