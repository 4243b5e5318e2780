"""Whether two spellings may sound the same: ignores case, punctuation, accents, homophones and variants."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from pathlib import Path

from rapidfuzz.distance import Indel, Levenshtein

ALIKE = 0.75
"""Words with this share of letters in common are spellings of one word: colour, color; realise, realize."""
ALIKE_NAME = 0.5
"""Share for names, whose spelling recognisers guess by sound: Siobhan, Shivon; Thaddeus, Fadius."""
ALIKE_NAME_PIECES = 0.75
"""Share of consonants for a name heard as several words: a lower one would hide the word beside it."""
ALIKE_SOUND = 0.5
"""Share of letters for words with the same consonants: "guest", "guessed", but not "ready", "rude"."""
ALIKE_PIECES = 0.85
"""Share of letters for several words against one: a lower one would hide a short word added or left out."""
SHORT = 3  # minimum letters; in shorter words a single letter makes another word: "in", "on"

_APART = re.compile(r"[-\u2010-\u2015/_\s]+")
_SHORTENED = re.compile(r"(?<=[a-z])(n['’]t|['’](?:ll|re|ve|d|s|m))$", re.IGNORECASE)
"""Endings that may be heard as a separate word: "we'll" and "we will"."""
_SOUNDS = tuple(
    (re.compile(pattern), sound)
    for pattern, sound in (
        (r"^(?:kn|gn|pn)", "n"), (r"^wr", "r"), (r"^wh", "w"), (r"^ps", "s"), (r"^x", "s"), (r"mb$", "m"),
        (r"tch", "c"), (r"sch|sh|ti(?=on|a)|ci(?=a|ou)|si(?=on)", "x"), (r"ch", "c"), (r"ph|v", "f"), (r"th", "t"),
        (r"dg(?=[eiy])", "j"), (r"gh(?=t|$)", ""), (r"g(?=[eiy])", "j"), (r"c(?=[eiy])|z", "s"), (r"ck|q|c(?!$)", "k"),
        (r"x(?!$)", "ks"), (r"d(?=$)", "t"), (r"(.)\1+", r"\1"), (r"(?<=.)[aeiouyhw]", ""),
    )
)  # fmt: skip
_GROUPS: dict[str, set[int]] = {}  # the numbers of the lines of homophones with a word
for _number, _group in enumerate(Path(__file__).with_name("homophones.txt").read_text("utf-8").splitlines()):
    for _word in _group.split():
        _GROUPS.setdefault(_word, set()).add(_number)


def parts_of(word: str) -> list[str]:
    """The letters and figures of a word, without accents and case, split into parts if hyphenated or contracted."""
    pieces = [piece for part in _APART.split(word) for piece in _SHORTENED.split(part)]
    return [folded for piece in pieces if (folded := fold(piece))]


@lru_cache(maxsize=65_536)
def fold(text: str) -> str:
    """Only the letters and figures, without accents and case."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(sign for sign in plain if unicodedata.category(sign)[0] in "LN")


@lru_cache(maxsize=65_536)
def sound_of(word: str) -> str:
    """The first letter and the consonants of a folded word, roughly as pronounced in English and related languages."""
    for pattern, sound in _SOUNDS:
        word = pattern.sub(sound, word)
    return word


def sound_likeness(word: str, other: str) -> float:
    """The similarity of the consonants of two folded words, from 0 to 1."""
    return Levenshtein.normalized_similarity(sound_of(word), sound_of(other))


def likeness(word: str, other: str) -> float:
    """The similarity of the letters, or of the consonants, of two folded words, from 0 to 1."""
    return max(sound_likeness(word, other), Indel.normalized_similarity(word, other))


@lru_cache(maxsize=65_536)
def is_one_piece(word: str, other: str, is_name: bool = False) -> bool:
    """Whether joined folded words equal other joined ones: "any more", "anymore"."""
    if word == other or (is_name and sound_likeness(word, other) >= ALIKE_NAME_PIECES):
        return True
    return Indel.normalized_similarity(word, other) >= ALIKE_PIECES and sound_of(word) == sound_of(other)


@lru_cache(maxsize=65_536)
def are_alike(word: str, other: str, is_name: bool = False) -> bool:
    """Whether a folded word, or several joined ones, may have been heard as another."""
    if word == other:
        return True
    if not word or not other or word.isdigit() or other.isdigit():
        return False
    if not _GROUPS.get(word, set()).isdisjoint(_GROUPS.get(other, ())):
        return True
    letters = Indel.normalized_similarity(word, other)
    if is_name:
        return likeness(word, other) >= ALIKE_NAME
    if min(len(word), len(other)) <= SHORT:
        return False
    return letters >= ALIKE or (letters >= ALIKE_SOUND and sound_of(word) == sound_of(other))
