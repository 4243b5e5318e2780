"""Names of voices: checks and compares them, derives the slugs that clients use, and tells which exist."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from anyascii import anyascii

from speechtext.characters import MOST_COMPOSED, normalize
from studio.errors import InvalidRequest

MAX_NAME = 100
MAX_SLUG = 48
MAX_REFERENCE = 256
"""Maximum characters of a reference to a voice: a name, possibly decomposed, and a revision."""
RESERVED = frozenset({"default", "random", "clip"})
"""Names with a special meaning in a speech request."""

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"


def clean_name(name: str) -> str:
    """The name as shown: NFC, trimmed, with single spaces. Raises InvalidRequest."""
    if len(name) > MOST_COMPOSED * MAX_NAME:
        raise InvalidRequest(f"the name has {len(name)} characters; at most {MAX_NAME} are allowed", "name")
    cleaned = re.sub(r"\s+", " ", normalize("NFC", name)).strip()
    if not cleaned:
        raise InvalidRequest("a voice needs a name: it is blank", "name")
    if len(cleaned) > MAX_NAME:
        raise InvalidRequest(f"the name has {len(cleaned)} characters; at most {MAX_NAME} are allowed", "name")
    if any(unicodedata.category(char) in _INVISIBLE and char not in _JOINERS for char in name.strip()):
        raise InvalidRequest("the name has control or invisible characters", "name")
    if any(char in cleaned for char in "/\\@") or cleaned in (".", ".."):
        raise InvalidRequest("a name may not contain / \\ or @, nor be . or ..", "name")
    if fold(cleaned) in RESERVED:
        raise InvalidRequest(f"the name {cleaned!r} is reserved; choose another", "name")
    if not any(unicodedata.category(char)[0] in "LN" for char in cleaned):
        raise InvalidRequest("a name needs at least one letter or digit", "name")
    return cleaned


def fold(name: str) -> str:
    """Fold a name for comparison: ignores compatibility forms, case and invisible joiners."""
    folded = normalize("NFKC", name).casefold()
    folded = "".join(char for char in folded if char not in _JOINERS)
    return " ".join(normalize("NFKC", folded).split())


def slug_of(name: str) -> str:
    """ASCII letters, digits and hyphens, for URLs, headers and lists; other scripts are transliterated."""
    latin = "".join(map(_in_latin, normalize("NFKC", name))).lower()
    slug = re.sub(r"[^a-z0-9]+", "-", latin).strip("-")[:MAX_SLUG].rstrip("-")
    return slug if slug and slug not in RESERVED else "voice"


def _in_latin(char: str) -> str:
    """A letter, digit or mark in ASCII; a hyphen begins each syllable of Chinese and Korean."""
    if char.isascii():
        return char
    if plain := unicodedata.normalize("NFKD", char).encode("ascii", "ignore").decode():
        return plain  # a Latin letter without its accent
    if unicodedata.category(char)[0] not in "LMN":
        return " "
    latin = anyascii(char)
    return f"-{latin}" if latin[:1].isupper() and unicodedata.category(char) == "Lo" else latin


def clean_slug(slug: str) -> str:
    """Check a slug chosen by a person. Raises InvalidRequest."""
    if not 0 < len(slug) <= MAX_SLUG or slug_of(slug) != slug:
        rule = f"a slug has the letters a to z, digits and single hyphens between them, at most {MAX_SLUG}"
        raise InvalidRequest(f"{rule}; {', '.join(sorted(RESERVED))} are reserved", "slug")
    return slug


def split_revision(reference: str) -> tuple[str, int | None]:
    """ "anna@2" is ("anna", 2); without a revision the number is None."""
    name, separator, number = reference.rpartition("@")
    if separator and re.fullmatch(r"[0-9]{1,9}", number):
        return name, int(number)
    return reference, None


@dataclass(frozen=True, slots=True)
class KnownVoices:
    """Whether a reference without a revision names a voice; can be sent to another process."""

    ids: frozenset[str]
    slugs: frozenset[str]
    names: Mapping[str, str]  # slugs by folded names

    def __call__(self, reference: str) -> bool:
        as_id, as_slug, as_name = meanings(reference)
        return as_id in self.ids or as_slug in self.slugs or as_name in self.names

    def by_slug(self, reference: str) -> str:
        """The reference with the slug of a voice in place of its name, which may change."""
        name = split_revision(reference.strip())[0]
        as_id, as_slug, as_name = meanings(name)
        slug = None if as_id in self.ids or as_slug in self.slugs else self.names.get(as_name)
        return reference if slug is None else slug + reference.strip()[len(name) :]


def meanings(reference: str) -> tuple[str, str, str]:
    """A reference without a revision as an id, as a slug, and as a folded name."""
    trimmed = reference.strip()
    return trimmed, trimmed.lower(), fold(trimmed)
