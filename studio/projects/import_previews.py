"""Keeps a few documents in memory that were read and not imported yet, for half an hour."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field

from studio.errors import NotFound
from studio.projects.documents import Document
from studio.projects.documents.matter import Section

MAX_PER_CALLER = 4
MAX_KEPT = 32
MAX_KEPT_CHARACTERS = 20_000_000
"""Maximum characters of all documents together: four of the longest."""
SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class ImportPreview:
    """A document as it was read, with its chapters."""

    caller: str = field(repr=False)
    document: Document = field(repr=False)
    sections: tuple[Section, ...]
    kind: str
    file_name: str
    with_notes: bool
    expires: float
    """Unix time."""
    id: str = field(default_factory=lambda: f"prev_{secrets.token_hex(12)}")

    @property
    def characters(self) -> int:
        return sum(section.characters for section in self.sections)


class ImportPreviews:
    """Used from one event loop. At the limit the oldest is removed: first the same caller's, then anyone's."""

    def __init__(self) -> None:
        self._kept: dict[str, ImportPreview] = {}

    def keep(
        self, caller: str, document: Document, sections: tuple[Section, ...], kind: str, file_name: str, notes: bool
    ) -> ImportPreview:
        preview = ImportPreview(caller, document, sections, kind, file_name, notes, time.time() + SECONDS)
        self._expire()
        mine = [kept.id for kept in self._kept.values() if kept.caller == caller]
        for old in mine[: len(mine) + 1 - MAX_PER_CALLER] if len(mine) >= MAX_PER_CALLER else []:
            del self._kept[old]
        while self._kept and (
            len(self._kept) >= MAX_KEPT or self._characters + preview.characters > MAX_KEPT_CHARACTERS
        ):
            del self._kept[next(iter(self._kept))]
        self._kept[preview.id] = preview
        return preview

    def get(self, preview_id: str, caller: str) -> ImportPreview:
        """Raises NotFound."""
        self._expire()
        preview = self._kept.get(preview_id)
        if preview is None or preview.caller != caller:
            raise NotFound("this preview has expired; send the document again", "preview")
        return preview

    @property
    def _characters(self) -> int:
        return sum(preview.characters for preview in self._kept.values())

    def _expire(self) -> None:
        now = time.time()
        self._kept = {key: preview for key, preview in self._kept.items() if preview.expires > now}
