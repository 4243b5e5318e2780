"""What a reference without a revision can mean, and whether a voice of it is there, for those who ask often."""

from __future__ import annotations

from dataclasses import dataclass

from studio.library.voices.names import fold


@dataclass(frozen=True, slots=True)
class KnownVoices:
    """Tells whether there is a voice of a reference without a revision; another process may be given it."""

    ids: frozenset[str]
    slugs: frozenset[str]
    names: frozenset[str]

    def __call__(self, reference: str) -> bool:
        as_id, as_slug, as_name = meanings(reference)
        return as_id in self.ids or as_slug in self.slugs or as_name in self.names


def meanings(reference: str) -> tuple[str, str, str]:
    """What a reference without a revision is as an id, as a slug, and as a folded name."""
    trimmed = reference.strip()
    return trimmed, trimmed.lower(), fold(trimmed)
