"""Documents from strangers read and cut into parts: those that may take long in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from studio.audio.cover import Cover
from studio.library.voices.known_voices import KnownVoices
from studio.projects.casting.cast import characters_of, with_speakers
from studio.projects.casting.characters import Character
from studio.projects.documents import Document, Passage, into_parts, read_document
from studio.projects.documents.parts import BY_LENGTH, Cutting
from studio.speech.dialogue import fold_speaker
from studio.work.work_queue import WorkQueue

MEMORY = 2 * 1024**3
"""Bytes."""
SMALL = 64 * 1024
"""Bytes of a text, or characters of items, that are read in a thread: some ms, where a process takes 0.3 s to start."""
TEXTS = ("txt", "md", "srt", "csv")
"""The kinds that nothing has to unpack."""


@dataclass(frozen=True, slots=True)
class DocumentImport:
    """What is to be read, and how it becomes parts."""

    source: bytes | Document
    """A file, or what needs no reading."""
    kind: str
    cut: Cutting = BY_LENGTH
    cast: Mapping[str, str] = field(default_factory=dict)
    """Voices of the names that begin lines; other names that are voices' own have these."""
    with_notes: bool = False
    """Footnotes and endnotes are parts too."""
    with_speakers: bool = False
    """Quoted speech in prose has the voice of its speaker in ``cast``."""
    file_name: str = ""
    """As its sender calls it; blank: it has none."""

    @property
    def is_small(self) -> bool:
        if isinstance(self.source, Document):
            return sum(len(passage.text) for passage in self.source.passages) <= SMALL
        return self.kind in TEXTS and len(self.source) <= SMALL

    def document(self) -> Document:
        """The document as it is read, in paragraphs. Blocking. Raises InvalidDocument."""
        if isinstance(self.source, Document):
            return self.source
        return read_document(self.source, self.kind, self.with_notes)

    async def read(self, queue: WorkQueue, caller: str, is_voice: KnownVoices) -> Document:
        """The document, its passages the parts of a project. Being cancelled ends the work.

        Raises InvalidDocument, TooCostly, QueueFull, TooManyRequests.
        """
        if self.is_small:
            return await queue.run(caller, cut_document, self, is_voice)
        return await queue.run_in_child(caller, MEMORY, (Document, Passage, Cover), cut_document, self, is_voice)

    async def characters(self, queue: WorkQueue, caller: str) -> list[Character]:
        """The characters of the document, those with most lines first; errors as for `read`."""
        if self.is_small:
            return await queue.run(caller, _characters, self)
        return await queue.run_in_child(caller, MEMORY, (Character,), _characters, self)


def _characters(wanted: DocumentImport) -> list[Character]:
    return characters_of(wanted.document())


def cut_document(wanted: DocumentImport, is_voice: KnownVoices) -> Document:
    """The document, its passages the parts of a project. Blocking. Raises InvalidDocument."""
    document = wanted.document()
    known: dict[str, str | None] = {fold_speaker(name): voice for name, voice in wanted.cast.items()}

    def voice_of(name: str) -> str | None:
        folded = fold_speaker(name)
        if folded not in known:
            known[folded] = name if is_voice(name) else None
        return known[folded]

    if wanted.with_speakers:
        document = with_speakers(document, voice_of)
    return replace(document, passages=tuple(into_parts(document, voice_of, wanted.cut)))
