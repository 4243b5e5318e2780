"""Reads untrusted documents and splits them into parts; large ones are read in a child process."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from longform.voice_proposals import Role, roles_of
from manuscript.cast import Casting, is_script, speakers_in, split_by_speaker
from manuscript.documents import TEXTS, Document, Passage, into_parts, read_document
from manuscript.parts import BY_LENGTH, PartSplitting, Section, chosen_sections, sections_of
from manuscript.passages import MAX_SKIPPED, SURE, Column, NewCharacter
from manuscript.untrusted import Cover
from speechtext.language import guess_language
from speechtext.script import TAG, with_tags
from speechtext.tags import manner_tags
from studio.library.names import KnownVoices

if TYPE_CHECKING:
    from studio.work import WorkQueue

MEMORY_BYTES = 2 * 1024**3  # memory limit of the child process
SMALL = 64 * 1024
"""Maximum bytes of text, or characters of items, of a document that is read in a thread, in another queue than the long
ones: that takes a few milliseconds, while a process takes 0.2 s to start."""
SAMPLE_TEXTS = 20  # number of paragraphs or parts by which a language is guessed
MAX_SAMPLE = 240
"""Maximum characters of a line that is listed with its character, so that it is read at a glance."""


@dataclass(frozen=True, slots=True)
class DocumentImport:
    """A document to import, and how to split it into parts."""

    source: bytes | Document  # the bytes of a file, or a document that is already parsed
    kind: str
    splitting: PartSplitting = BY_LENGTH
    cast: Mapping[str, str] = field(default_factory=dict)
    """Voice names by speaker name. A speaker who is not listed gets the voice of the same name, if there is one."""
    with_notes: bool = False  # whether footnotes and endnotes become parts too
    with_speakers: bool = False
    """Whether the speakers of quoted speech in prose, and all names of a script, become characters."""
    file_name: str = ""  # the name given by the sender; blank if there is none
    chapters: tuple[int, ...] | None = None
    """The chapters to import, by their numbers in `sections_of`; None: all."""
    with_cover: bool = True
    columns: Mapping[str, str] | None = None  # the roles of a table's columns, as in `read_csv`
    tags: tuple[str, ...] | None = None
    """The tags of the speech model; None: it takes any words. A direction that is none of them would be read aloud."""
    encoding: str = ""  # the encoding of a text; blank: Unicode, or else detected
    people: tuple[NewCharacter, ...] = ()
    """Known people of the text, with all their names; the others are found in it."""
    project_id: str = ""
    """Of the project to create, if the request could be sent again for lack of an answer; blank: a new one."""

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
            document = read_document(self.source, self.kind, self.with_notes, self.columns, self.encoding)
        document = document if self.with_cover else replace(document, cover=None)
        language = document.language or guessed_language(passage.text for passage in document.passages)
        document = replace(document, language=language)
        return document if self.chapters is None else chosen_sections(document, self.chapters)

    async def read(self, queue: WorkQueue, caller: str, is_voice: KnownVoices) -> Document:
        """The document, with the parts of a project as its passages. Cancelling the call stops the work.

        Raises InvalidDocument, TooCostly, QueueFull, TooManyRequests.
        """
        if self.is_small:
            return await queue.run(caller, cut_document, self, is_voice)
        kinds = (Document, Passage, Cover, NewCharacter, Column)
        return await queue.run_in_child(caller, MEMORY_BYTES, kinds, cut_document, self, is_voice)

    async def preview(self, queue: WorkQueue, caller: str) -> tuple[Document, tuple[Section, ...]]:
        """The document in paragraphs, and its chapters; errors as for `read`."""
        if self.is_small:
            return await queue.run(caller, _preview, self)
        kinds = (Document, Passage, Cover, Section, NewCharacter, Column)
        return await queue.run_in_child(caller, MEMORY_BYTES, kinds, _preview, self)

    async def roles(self, queue: WorkQueue, caller: str) -> list[Role]:
        """The characters of the document, those with the most lines first; errors as for `read`."""
        if self.is_small:
            return await queue.run(caller, _roles, self)
        return await queue.run_in_child(caller, MEMORY_BYTES, (Role, NewCharacter), _roles, self)


def guessed_language(texts: Iterable[str]) -> str:
    """The language of a text that names none, by its first paragraphs or parts; blank if uncertain."""
    return guess_language(TAG.sub(" ", " ".join(islice(texts, SAMPLE_TEXTS)))) or ""


def _preview(request: DocumentImport) -> tuple[Document, tuple[Section, ...]]:
    document = request.document()
    document = replace(document, is_script=is_script(document))
    return document, sections_of(document, request.with_notes)


def _roles(request: DocumentImport) -> list[Role]:
    document = speakers_in(request.document(), request.people)
    samples = dict[str, tuple[bool, int, str]]()  # whether its speaker is sure, its length, and the line
    for passage in document.passages:
        is_sure = passage.confidence is None or passage.confidence >= SURE
        line = is_sure, len(passage.text), passage.text
        if len(passage.text) <= MAX_SAMPLE and line[:2] > samples.get(passage.speaker, (False, 0))[:2]:
            samples[passage.speaker] = line
    roles = roles_of(document.cast, (passage.speaker for passage in document.passages if passage.speaker))
    return [replace(role, sample=samples.get(role.character.name, ("",))[-1]) for role in roles]


def cut_document(request: DocumentImport, is_voice: KnownVoices) -> Document:
    """The document, with the parts of a project as its passages; voices are named by their slugs. Blocking. Raises
    InvalidDocument."""
    by_slug = functools.cache(is_voice.by_slug)
    casting = Casting(request.cast, is_voice, request.people)
    document = split_by_speaker(request.document(), casting, request.with_speakers)
    parts, tags = into_parts(document, request.splitting), request.tags
    known = None if tags is None else {tag.lower() for tag in tags}
    unknown = dict.fromkeys(p.direction for p in parts if p.direction and not is_tag(p.direction, known))
    if unknown:
        names = ", ".join(list(unknown)[:8]) + (" …" if len(unknown) > 8 else "")
        note = f"The model does not know these directions, so they stay in their column: {names}."
        document = replace(document, skipped=(*document.skipped, note)[-MAX_SKIPPED:])
    cast = tuple(replace(one, voice=by_slug(one.voice)) if one.voice else one for one in document.cast)
    parts = [replace(part, voice=by_slug(part.voice)) if part.voice else part for part in parts]
    return replace(document, passages=tuple(_named_once(directed(part, known) for part in parts)), cast=cast)


def _named_once(parts: Iterable[Passage]) -> Iterator[Passage]:
    """A row that names several speakers in its text becomes several parts, of which the first has the row's id."""
    cells = ""
    for part in parts:
        yield replace(part, name="", cells="") if part.cells and part.cells == cells else part
        cells = part.cells


def is_tag(direction: str, known: Set[str] | None) -> bool:
    """Whether a direction can be a tag; ``known``: the model's, in lower case, or None if it takes any words."""
    return not re.search(r"[\[\]<>|]", direction) and (known is None or direction.lower() in known)


def directed(passage: Passage, known: Set[str] | None) -> Passage:
    """The passage with its direction as a tag before each sentence, unless its text begins with tags already."""
    if not passage.direction or not is_tag(passage.direction, known) or manner_tags(passage.text):
        return passage
    return replace(passage, text=with_tags(passage.text, [passage.direction]))
