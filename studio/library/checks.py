"""Limits on a voice's fields, with refusals that name the field; rights to voices and projects."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from speechtext.characters import MOST_COMPOSED, normalize
from speechtext.dictionary import PHONEMES
from speechtext.language import LANGUAGE_TAG
from speechtext.transcript import MAX_TEXT
from studio.errors import EditConflict, InvalidRequest, NotAllowed
from studio.library.records import MAX_PHRASE, MAX_SAID, NewSample, Pronunciation, Sample

if TYPE_CHECKING:
    from studio.library.schema import Database


MAX_DESCRIPTION = 2000
MAX_TAGS = 32
MAX_SAMPLES = 8
MAX_SECONDS = 90.0
"""Maximum total seconds of a voice's samples: at 21.5 frames per second they must fit the model's context."""
MAX_SPEAKER = 9
MAX_SEED = 2**63 - 1
MAX_TOP_K = 1024
"""The engine's limits of the same names; importing the engine loads torch, which a library does not need."""

DEFAULTS: Mapping[str, tuple[float, float]] = {
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "top_k": (1, MAX_TOP_K),
    "seed": (0, MAX_SEED),
}
"""The request fields that a voice may preset, with their limits."""

GENDERS = ("female", "male", "neutral")
MAX_ACCENT = 50

_COLOUR = re.compile(r"#[0-9a-f]{6}")

Right = Literal["read", "edit", "own"]
"""read: use, listen, export. edit: also change. own: also share, delete and restore."""
SHARINGS = ("private", "read", "edit")
"""The rights of all others than the owner: none, to read, or to edit."""
NOBODY = "nobody"
"""A viewer that owns nothing: it has rights only to shared items."""
_RANKS = {"private": 0, "read": 1, "edit": 2, "own": 3}


def check_before(now: Mapping[str, Any], before: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Raises EditConflict for a value that is neither the one read before a change nor the new one, by their names."""
    for name in now.keys() & before.keys():
        if now[name] not in (before[name], new[name]):
            told = json.dumps(now[name], ensure_ascii=False)[:200]
            raise EditConflict(f"somebody has changed {name} meanwhile: it is now {told}", name)


def clean_text(field: str, text: str, limit: int) -> str:
    """Trimmed text without control characters (line ends and tabs are fine). Raises InvalidRequest."""
    text = text.strip()
    if len(text) <= MOST_COMPOSED * limit:  # a longer text is too long in every normal form
        text = normalize("NFC", text)
    if len(text) > limit:
        raise InvalidRequest(f"{field} has {len(text)} characters; at most {limit} are allowed", field)
    controls = (unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t\r" for char in text)
    if not text.isprintable() and any(controls):
        raise InvalidRequest(f"{field} has control characters or is not valid Unicode", field)
    return text


def clean_language(language: str) -> str:
    language = language.strip()
    if language and not LANGUAGE_TAG.fullmatch(language):
        raise InvalidRequest(f"language must be a BCP 47 tag such as en or pt-BR, not {language[:40]!r}", "language")
    return language


def clean_gender(gender: str) -> str:
    gender = gender.strip().lower()
    if gender and gender not in GENDERS:
        raise InvalidRequest(f"gender must be {', '.join(GENDERS)} or blank, not {gender[:40]!r}", "gender")
    return gender


def clean_accent(accent: str) -> str:
    return " ".join(clean_text("accent", accent, MAX_ACCENT).split())


def clean_colour(colour: str) -> str:
    colour = colour.strip().lower()
    if colour and not _COLOUR.fullmatch(colour):
        raise InvalidRequest(f"colour must be written as #rrggbb, such as #0f766e, not {colour[:40]!r}", "colour")
    return colour


def clean_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Distinct tags, in the order given."""
    if len(tags) > MAX_TAGS:
        raise InvalidRequest(f"there are {len(tags)} tags; at most {MAX_TAGS} are allowed", "tags")
    cleaned = (clean_text("tags", tag, 50) for tag in tags)
    return tuple(dict.fromkeys(tag for tag in cleaned if tag))


def clean_defaults(defaults: object) -> object:
    """Raises InvalidRequest for values that a voice cannot preset; the caller checks that it is a mapping."""
    for name, value in defaults.items() if isinstance(defaults, Mapping) else ():
        if name not in DEFAULTS:
            raise InvalidRequest(f"defaults cannot have {name[:40]!r}; use {', '.join(DEFAULTS)}", "defaults")
        low, high = DEFAULTS[name]
        is_integer = name in ("top_k", "seed")
        if isinstance(value, bool) or not isinstance(value, int if is_integer else (int, float)):
            raise InvalidRequest(f"defaults.{name} must be a {'whole ' if is_integer else ''}number", "defaults")
        if not low <= value <= high:  # also refuses NaN; a float cannot hold an integer of 400 digits
            raise InvalidRequest(f"defaults.{name} must be from {low:g} to {high:g}", "defaults")
    return defaults


def check_words(text: str, param: str) -> None:
    """Raises InvalidRequest for a text that cannot be a sample's transcript, naming the field ``param``."""
    if not clean_text(param, text, MAX_TEXT):
        raise InvalidRequest("a sample needs the words spoken in it: its transcript is blank", param)
    if "<|" in text:
        raise InvalidRequest("a transcript may not contain <|, which begins a control token", param)


def check_samples(samples: Sequence[Sample | NewSample]) -> None:
    """Raises InvalidRequest for too many samples, too many seconds, or a missing transcript."""
    if not samples:
        raise InvalidRequest("a voice needs at least one sample", "samples")
    if len(samples) > MAX_SAMPLES:
        raise InvalidRequest(f"a voice may have at most {MAX_SAMPLES} samples", "samples")
    total = sum(sample.seconds for sample in samples)
    if total > MAX_SECONDS:
        lengths = f"the samples last {total:.1f} s together; at most {MAX_SECONDS:g} s are allowed"
        raise InvalidRequest(lengths, "samples")
    for sample in samples:
        check_words(sample.text, "ref_text")
        if not 0 <= sample.speaker <= MAX_SPEAKER:
            raise InvalidRequest(f"speaker must be from 0 to {MAX_SPEAKER}", "speaker")


def clean_sharing(sharing: str) -> str:
    """Raises InvalidRequest."""
    if sharing not in SHARINGS:
        raise InvalidRequest(f"sharing must be one of {', '.join(SHARINGS)}", "sharing")
    return sharing


def readable(viewer: str) -> str:
    """An SQL condition on a table with the columns owner and sharing; ``viewer``: the name of its parameter."""
    return f"({viewer} is null or owner = {viewer} or sharing != 'private')"


def right_of(row: Mapping[str, Any], viewer: str | None) -> Right:
    """The right of a viewer to an item that is `readable`; None: any caller, without keys."""
    return "own" if viewer is None or row["owner"] == viewer else "edit" if row["sharing"] == "edit" else "read"


def check_right(db: Database, subject: str, row: Mapping[str, Any], viewer: str | None, needed: Right | None) -> None:
    """Raises NotAllowed unless a viewer has a right to a `readable` item; ``subject``: its kind and name.

    Without ``needed``, it depends on the transaction: one that writes needs the right to edit.
    """
    from studio.library.store import is_writing  # not needed to read a document

    needed = needed or ("edit" if is_writing(db) else "read")
    if _RANKS[right_of(row, viewer)] < _RANKS[needed]:
        if needed == "own":
            raise NotAllowed(f"only the owner of {subject} may share, delete or restore it")
        raise NotAllowed(f"{subject} is shared with you for reading only; its owner can allow you to edit it")


def sharing_json(owner: str, sharing: str, right: Right) -> dict[str, object]:
    """The public form; the owner is the name in STUDIO_API_KEYS, None for a key without a name and without an owner."""
    kind, _, name = owner.partition(" ")
    return {"owner": name if kind == "owner" else None, "sharing": sharing, "right": right}


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
