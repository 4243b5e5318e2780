"""Tells whether references without a revision name an existing voice, for callers that ask often."""

from __future__ import annotations

from dataclasses import dataclass

from studio.library.voices.names import fold


@dataclass(frozen=True, slots=True)
class KnownVoices:
    """Whether a reference without a revision names a voice; can be sent to another process."""

    ids: frozenset[str]
    slugs: frozenset[str]
    names: frozenset[str]

    def __call__(self, reference: str) -> bool:
        as_id, as_slug, as_name = meanings(reference)
        return as_id in self.ids or as_slug in self.slugs or as_name in self.names


def meanings(reference: str) -> tuple[str, str, str]:
    """A reference without a revision as an id, as a slug, and as a folded name."""
    trimmed = reference.strip()
    return trimmed, trimmed.lower(), fold(trimmed)
