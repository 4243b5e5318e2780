"""Finds people whom a text names only by a noun: "said the constable", "the Mad Hatter replied", "dit le gendarme"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from studio.projects.casting.speech_verbs import (
    AFTER_NOUNS,
    ARTICLES,
    BETWEEN,
    HONORIFICS,
    LINK,
    NOT_PEOPLE,
    PHRASE_ADJECTIVES,
    POSSESSIVES,
    ROLES,
    VERBS,
)

MAX_PHRASES = 300
"""The most frequent ones of a text: patterns grow with their number."""
MAX_WORDS = 4
"""Of a phrase after its article."""
_ROMANCE = frozenset({"le", "la", "l’", "el", "il", "lo"})
_LETTERS = r"[^\W\d_][\w’'\-]{0,30}"
_ARTICLE = rf"(?:(?:{'|'.join(sorted(ARTICLES - POSSESSIVES - {'l’'}))})\s+|l[’'])"
_INVERTED = re.compile(
    rf"^[\s,;:.!?—–\-]*(?i:{VERBS})(?:-t)?\s+(?P<article>{_ARTICLE})(?P<words>(?:{_LETTERS}[ ]?){{1,6}})"
)
_DIRECT = re.compile(
    rf"^[\s,;—–\-]*(?P<article>the\s+)(?P<words>{_LETTERS}(?:\s+{_LETTERS}){{0,3}}?){LINK}{BETWEEN}\s+(?i:{VERBS})\b"
)
_BEFORE = re.compile(
    rf"(?<!\S)(?P<article>[Tt]he\s+)(?P<words>{_LETTERS}(?:\s+{_LETTERS}){{0,3}}?){BETWEEN}\s+"
    rf"(?i:{VERBS})\b[^.!?]{{0,60}}[,:]\s*$"
)
_KEPT_ING = frozenset({"king", "thing", "viking", "being", "darling", "sibling"})


def find_phrases(narration: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The phrases beside verbs of speech, folded, without article, the most frequent first.

    ``narration``: the text before and after each quotation, as much as may contain its verb of speech.
    """
    counts = Counter[str]()
    for before, after in narration:
        for pattern, text in ((_INVERTED, after), (_DIRECT, after), (_BEFORE, before)):
            if (match := pattern.search(text)) and (words := _phrase(match["words"], match["article"].strip().lower())):
                counts[" ".join(words)] += 1
                break
    heads = Counter(phrase.split()[-1] for phrase in counts if " " in phrase)
    for head, number in heads.items():
        if number == 1 and head not in ROLES:  # "the old stationmaster" is "the stationmaster" too
            counts[head] += 0
    return tuple(phrase for phrase, _ in counts.most_common(MAX_PHRASES))


def _phrase(text: str, article: str) -> Sequence[str]:
    """The words of the text that belong to the noun; none if it does not mean a person."""
    words = list[str]()
    following = [*text.lower().split(), ""]
    for word, after in pairwise(following):
        is_end = not after or after in AFTER_NOUNS
        if word in AFTER_NOUNS or (words and _is_adverb(word, is_end)):
            break
        words.append(word)
        if article in _ROMANCE and word not in PHRASE_ADJECTIVES:
            break
    if not words or len(words) > MAX_WORDS or words[-1] in NOT_PEOPLE or words[-1] in HONORIFICS:
        return ()
    return () if len(words) == 1 and words[0] in ROLES else words


def _is_adverb(word: str, is_end: bool) -> bool:
    """Whether a word after a noun describes the way of speaking: "gravely", "smiling"."""
    return (word.endswith("ly") and is_end) or (word.endswith("ing") and word not in _KEPT_ING)
