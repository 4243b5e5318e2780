"""Keeps a few documents in memory that were read and not imported yet, for half an hour."""

from __future__ import annotations

import secrets
from collections import Counter
from dataclasses import dataclass, field

from manuscript.documents import Document
from manuscript.parts import Section
from studio.errors import NotFound, TooManyRequests
from studio.library.trash import now

MAX_PER_CALLER = 4  # documents: as many tabs as one person imports from
MAX_KEPT = 1000
MAX_KEPT_CHARACTERS = 20_000_000
"""Maximum characters of all documents together: four of the longest."""
SECONDS = 1800.0
"""How long a preview is kept: time to correct the people of a long book. Later the file is read again."""


@dataclass(frozen=True, slots=True)
class ImportPreview:
    """A document as it was read, with its chapters."""

    caller: str = field(repr=False)
    document: Document = field(repr=False)
    sections: tuple[Section, ...]
    kind: str
    file_name: str
    with_notes: bool
    expires: float  # Unix time
    id: str = field(default_factory=lambda: f"prev_{secrets.token_hex(12)}")

    @property
    def characters(self) -> int:
        return sum(section.characters for section in self.sections)


class ImportPreviews:
    """Used from one event loop. At MAX_PER_CALLER a caller's oldest is removed; at the other limits the oldest of the
    caller whose documents are the longest together, so that many others push out nobody's short document."""

    def __init__(self) -> None:
        self._previews: dict[str, ImportPreview] = {}

    def keep(
        self, caller: str, document: Document, sections: tuple[Section, ...], kind: str, file_name: str, notes: bool
    ) -> ImportPreview:
        """Keep a document. Raises TooManyRequests if only the removal of shorter ones could make room for it."""
        preview = ImportPreview(caller, document, sections, kind, file_name, notes, now() + SECONDS)
        self._expire()
        own_ids = [item.id for item in self._previews.values() if item.caller == caller]
        for preview_id in own_ids[: len(own_ids) + 1 - MAX_PER_CALLER] if len(own_ids) >= MAX_PER_CALLER else []:
            del self._previews[preview_id]
        while len(self._previews) >= MAX_KEPT or self._characters + preview.characters > MAX_KEPT_CHARACTERS:
            self._make_room_for(preview)
        self._previews[preview.id] = preview
        return preview

    def _make_room_for(self, preview: ImportPreview) -> None:
        sizes: Counter[str] = Counter()
        for kept in self._previews.values():
            sizes[kept.caller] += kept.characters
        sizes[preview.caller] += preview.characters
        longest = max(sizes, key=lambda caller: sizes[caller])
        oldest = next((key for key, kept in self._previews.items() if kept.caller == longest), None)
        if oldest is None:
            raise TooManyRequests("too many documents are being imported by others; try again in some minutes", 30)
        del self._previews[oldest]

    def get(self, preview_id: str, caller: str) -> ImportPreview:
        """Raises NotFound."""
        self._expire()
        preview = self._previews.get(preview_id)
        if preview is None or preview.caller != caller:
            raise NotFound("this preview has expired; send the document again", "preview")
        return preview

    @property
    def _characters(self) -> int:
        return sum(preview.characters for preview in self._previews.values())

    def _expire(self) -> None:
        time = now()
        self._previews = {key: preview for key, preview in self._previews.items() if preview.expires > time}
