"""Reads untrusted documents and splits them into parts; large ones are read in a child process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from studio.audio.cover import Cover
from studio.library.projects.project_records import NewCharacter
from studio.library.voices.known_voices import KnownVoices
from studio.projects.casting.cast import Casting, speakers_in, split_by_speaker
from studio.projects.casting.voice_proposals import Role, roles_of
from studio.projects.documents import Document, Passage, into_parts, read_document
from studio.projects.documents.matter import Section, chosen_sections, sections_of
from studio.projects.documents.parts import BY_LENGTH, PartSplitting

if TYPE_CHECKING:
    from studio.work.work_queue import WorkQueue

MEMORY_BYTES = 2 * 1024**3
"""Memory limit of the child process."""
SMALL = 64 * 1024
"""Maximum bytes of text, or characters of items, of a document that is read in a thread: that takes a few
milliseconds, while a process takes 0.2 s to start."""
TEXTS = ("txt", "md", "srt", "csv")
"""Kinds that are not compressed."""


@dataclass(frozen=True, slots=True)
class DocumentImport:
    """A document to import, and how to split it into parts."""

    source: bytes | Document
    """The bytes of a file, or a document that is already parsed."""
    kind: str
    splitting: PartSplitting = BY_LENGTH
    cast: Mapping[str, str] = field(default_factory=dict)
    """Voice names by speaker name. A speaker who is not listed gets the voice of the same name, if there is one."""
    with_notes: bool = False
    """Whether footnotes and endnotes become parts too."""
    with_speakers: bool = False
    """Whether the speakers of quoted speech in prose, and all names of a script, become characters."""
    file_name: str = ""
    """The name given by the sender; blank if there is none."""
    chapters: tuple[int, ...] | None = None
    """The chapters to import, by their numbers in `sections_of`; None: all."""
    with_cover: bool = True

    @property
    def is_small(self) -> bool:
        if isinstance(self.source, Document):
            return sum(len(passage.text) for passage in self.source.passages) <= SMALL
        return self.kind in TEXTS and len(self.source) <= SMALL

    def document(self) -> Document:
        """The document in paragraphs. Blocking. Raises InvalidDocument, InvalidRequest."""
        if isinstance(self.source, Document):
            document = self.source
        else:
            document = read_document(self.source, self.kind, self.with_notes)
        document = document if self.with_cover else replace(document, cover=None)
        return document if self.chapters is None else chosen_sections(document, self.chapters)

    async def read(self, queue: WorkQueue, caller: str, is_voice: KnownVoices) -> Document:
        """The document, with the parts of a project as its passages. Cancelling the call stops the work.

        Raises InvalidDocument, TooCostly, QueueFull, TooManyRequests.
        """
        if self.is_small:
            return await queue.run(caller, cut_document, self, is_voice)
        kinds = (Document, Passage, Cover, NewCharacter)
        return await queue.run_in_child(caller, MEMORY_BYTES, kinds, cut_document, self, is_voice)

    async def preview(self, queue: WorkQueue, caller: str) -> tuple[Document, tuple[Section, ...]]:
        """The document in paragraphs, and its chapters; errors as for `read`."""
        if self.is_small:
            return await queue.run(caller, _preview, self)
        return await queue.run_in_child(caller, MEMORY_BYTES, (Document, Passage, Cover, Section), _preview, self)

    async def roles(self, queue: WorkQueue, caller: str) -> list[Role]:
        """The characters of the document, those with the most lines first; errors as for `read`."""
        if self.is_small:
            return await queue.run(caller, _roles, self)
        return await queue.run_in_child(caller, MEMORY_BYTES, (Role, NewCharacter), _roles, self)


def _preview(request: DocumentImport) -> tuple[Document, tuple[Section, ...]]:
    document = request.document()
    return document, sections_of(document, request.with_notes)


def _roles(request: DocumentImport) -> list[Role]:
    document = speakers_in(request.document())
    return roles_of(document.cast, (passage.speaker for passage in document.passages if passage.speaker))


def cut_document(request: DocumentImport, is_voice: KnownVoices) -> Document:
    """The document, with the parts of a project as its passages. Blocking. Raises InvalidDocument."""
    document = split_by_speaker(request.document(), Casting(request.cast, is_voice), request.with_speakers)
    return replace(document, passages=tuple(into_parts(document, request.splitting)))
