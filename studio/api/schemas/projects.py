"""Request and response bodies for projects and their parts."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from studio.api.schemas.field_types import (
    FINITE,
    NO_BOOLEAN,
    Seed,
    Speed,
    StrictBody,
    Temperature,
    TopK,
    TopP,
    VoiceName,
)
from studio.api.schemas.file_settings import FileSettings
from studio.audio.loudness import Loudness as Measured
from studio.audio.mastering import Mastering
from studio.errors import InvalidDocument, InvalidRequest
from studio.library.projects.chapters import Chapter
from studio.library.projects.project_records import (
    MAX_NAME,
    MAX_PARTS,
    MAX_PAUSE,
    MAX_TITLE,
    Part,
    PartChanges,
    PartRange,
    Project,
    ProjectSettings,
)
from studio.library.sharing import sharing_json
from studio.library.takes.take import Take
from studio.projects.documents import Document, Passage
from studio.projects.documents.parts import MAX_PART_BYTES, MIN_PART_BYTES, PART_BYTES, PartSplitting, SplitBy
from studio.projects.documents.passages import MAX_PASSAGES, SCENE_PAUSE
from studio.projects.expected_length import expected_seconds
from studio.projects.import_previews import ImportPreview
from studio.projects.timeline import Placed, Timeline

SETTINGS = (
    *("voice", "temperature", "top_p", "top_k", "speed", "seed", "pause", "chapter_pause", "normalize"),
    "scene_pause",
    *FileSettings.model_fields,
)
MAX_CAST = 1000
"""Names with voices in one request."""
Pause = Annotated[float, FINITE, Field(ge=0, le=MAX_PAUSE), NO_BOOLEAN]


class SettingsBody(FileSettings):
    """How parts are generated and joined; null means the default. Unknown fields are refused."""

    title: Annotated[str, Field(max_length=MAX_TITLE)] | None = None
    voice: VoiceName | None = Field(None, description="For parts without their own voice.")
    temperature: Temperature | None = None
    top_p: TopP | None = None
    top_k: TopK | None = None
    speed: Speed | None = None
    seed: Seed | None = Field(None, description="Seed of each part's first take.")
    pause: Pause | None = Field(None, description="Seconds of silence between parts.")
    chapter_pause: Pause | None = Field(None, description="Seconds of silence before a chapter.")
    scene_pause: Pause | None = Field(None, description="Seconds of silence after the end of a scene.")
    normalize: bool | None = Field(
        None, description="Whether numbers, dates etc. are converted to words; null: as the model needs it."
    )

    def settings(self, before: ProjectSettings) -> ProjectSettings:
        """The settings, updated with the fields that were sent."""
        defaults = ProjectSettings()
        fields = {name: getattr(self, name) for name in SETTINGS if name in self.model_fields_set}
        return replace(before, **{k: getattr(defaults, k) if v is None or v == "" else v for k, v in fields.items()})


class ProjectChanges(SettingsBody):
    sharing: Literal["private", "read", "edit"] | None = Field(
        None, description="With API keys, the rights of other keys; only the owner may change it. null: unchanged."
    )


class ItemBody(StrictBody):
    """One part."""

    input: str
    voice: VoiceName | None = None
    pause: Pause | None = None
    chapter: str = Field("", max_length=200)
    character: str = Field("", max_length=MAX_NAME, description="The name of the character who speaks it.")
    scene: bool = Field(False, description="Whether a scene ends after it.")
    continues: bool | None = Field(
        None, description="Whether it continues the paragraph of the item before it; null: unknown."
    )

    def passage(self) -> Passage:
        pause = SCENE_PAUSE if self.scene and self.pause is None else self.pause
        speaker = " ".join(self.character.split())
        return Passage(self.input, self.chapter, self.voice, pause, speaker=speaker, continues=self.continues)


class ProjectBody(SettingsBody):
    """A document as ``input``, or its parts as ``items``; multipart: as ``file``."""

    input: str | None = Field(None, description="A document as text.")
    items: list[ItemBody] | None = Field(None, min_length=1, max_length=MAX_PARTS)
    kind: Literal["txt", "md", "epub", "docx", "pdf", "srt", "csv"] | None = Field(
        None, description="Format of the document; absent: by the file's name, txt for input."
    )
    cast: dict[str, VoiceName] | None = Field(
        None, max_length=MAX_CAST, description="Voices of the speaker names at the beginning of lines."
    )
    part_length: Annotated[int, Field(ge=MIN_PART_BYTES, le=MAX_PART_BYTES), NO_BOOLEAN] = Field(
        PART_BYTES, description="Maximum bytes of UTF-8 in a part of prose that is split by length."
    )
    split_by: SplitBy = Field(
        "length", description="How prose is split: length (as many sentences as fit), paragraph or sentence."
    )
    notes: bool = Field(
        False, description="Whether to include footnotes and endnotes of Markdown, EPUB and Word documents as parts."
    )
    speakers: bool = Field(
        False,
        description="Find the speakers of quoted speech, and all names before a colon in a script. They become the "
        "project's cast, in their voices in cast; POST /v1/projects/characters lists them.",
    )
    preview: str | None = Field(
        None, description="The id of a preview (POST /v1/projects/preview): its document, without sending it again."
    )
    chapters: list[Annotated[int, Field(ge=0, lt=MAX_PASSAGES), NO_BOOLEAN]] | None = Field(
        None, min_length=1, max_length=MAX_PARTS, description="The chapters to import, counted from 0; null: all."
    )
    with_cover: bool = Field(True, description="Whether to use the document's cover.")
    start: bool = Field(False, description="Whether to queue all parts immediately.")

    @property
    def splitting(self) -> PartSplitting:
        return PartSplitting(self.split_by, self.part_length)

    def of_items(self) -> Document:
        """Raises InvalidDocument."""
        items = self.items or []
        if any(not item.input.strip() for item in items):
            number = next(n for n, item in enumerate(items, start=1) if not item.input.strip())
            raise InvalidDocument(f"item {number} has no text to speak", "items")
        return Document(tuple(item.passage() for item in items), prose=False)


def _or_project(text: str) -> Any:
    return Field(None, description=f"{text}; -1: the project's.")


AsProject = Literal[-1]


class DirectionBody(StrictBody):
    """Settings for speaking parts. Absent and null fields are not changed."""

    voice: VoiceName | None = Field(None, description="Blank: the project's.")
    pause: Annotated[float, FINITE, Field(ge=-1, le=MAX_PAUSE), NO_BOOLEAN] | None = _or_project(
        "Seconds of silence after it"
    )
    speed: Speed | AsProject | None = _or_project("Speed")
    temperature: Temperature | AsProject | None = _or_project("Temperature")
    top_p: TopP | AsProject | None = _or_project("Top-p")
    top_k: TopK | AsProject | None = _or_project("Top-k")
    tags: list[str] | None = Field(
        None, description="Tags at the beginning of each sentence, such as whisper, instead of its present ones."
    )
    scene: bool | None = Field(None, description="Whether a scene ends after it; scene_pause follows.")
    character: Annotated[str, Field(max_length=MAX_NAME)] | None = Field(
        None, description="The id of the character who speaks, in that character's voice; blank: the narrator."
    )
    confirmed: bool | None = Field(None, description="Whether a person has decided who speaks; true with a character.")

    def changes(self) -> PartChanges:
        names = ("voice", "pause", "speed", "temperature", "top_p", "top_k", "scene", "character", "confirmed")
        return PartChanges(**{name: getattr(self, name) for name in names})


class PartBody(DirectionBody):
    """Fields that are absent or null stay as they are."""

    text: str | None = None
    text_before: str | None = Field(
        None,
        description="The part's text as read before; if it has changed since, the response is 412. Absent: any.",
    )
    take: str | None = Field(None, description="The id of the take to choose.")
    chapter: Annotated[str, Field(max_length=MAX_TITLE)] | None = Field(
        None,
        description="A new title of the chapter that begins with this part. If the part is its heading, its text "
        "changes too, unless text is sent as well.",
    )

    def changes(self) -> PartChanges:
        changes = replace(DirectionBody.changes(self), text=self.text, text_before=self.text_before)
        return replace(changes, take=self.take, chapter=self.chapter)


class PartsBody(DirectionBody):
    """Parts by their ids or as a range, and the changes to each."""

    ids: list[str] | None = Field(None, min_length=1, max_length=MAX_PARTS)
    first: str | None = Field(None, description="The id of the first part of a range, in any order with last.")
    last: str | None = None

    def selection(self) -> list[str] | PartRange:
        """Raises InvalidRequest."""
        if self.ids is not None and self.first is None and self.last is None:
            return self.ids
        if self.ids is None and self.first is not None and self.last is not None:
            return PartRange(self.first, self.last)
        raise InvalidRequest("name the parts by ids, or by first and last", "ids")


class SpeakBody(StrictBody):
    parts: Literal["missing", "stale", "all"] | Annotated[list[str], Field(max_length=MAX_PARTS)] = Field(
        "missing", description="missing: new, stale and failed parts; or the ids of parts to generate again."
    )
    chapter: str | None = Field(None, description="The id of a chapter's first part: only parts of that chapter.")


def project_json(project: Project, seconds_left: float | None) -> dict[str, Any]:
    return {
        "id": project.id,
        "object": "project",
        "title": project.title,
        "kind": project.kind,
        "state": project.state,
        "settings": project.settings.as_dict(),
        "cover": project.cover,
        "skipped": list(project.skipped),
        "parts": {"total": sum(project.parts.values())} | project.parts,
        "characters": project.characters,
        "seconds": round(project.seconds, 3),
        "eta_s": None if seconds_left is None else round(seconds_left, 1),
        "created_at": int(project.created),
        "changed_at": int(project.changed),
        **sharing_json(project.owner, project.sharing, project.right),
    }


def preview_json(preview: ImportPreview, title: str) -> dict[str, Any]:
    """``included``: whether a chapter is proposed; front and back matter is not."""
    document = preview.document
    has_body = any(section.matter == "body" for section in preview.sections)
    chapters = [
        {
            "title": section.title,
            "matter": section.matter,
            "included": section.matter == "body" or not has_body,
            "words": section.words,
            "characters": section.characters,
            "expected_s": round(expected_seconds(section.characters, section.words), 1),
        }
        for section in preview.sections
    ]
    return {
        "id": preview.id,
        "object": "project.preview",
        "kind": preview.kind,
        "title": title,
        "author": document.author,
        "language": document.language,
        "cover": document.cover.digest if document.cover else None,
        "notes": preview.with_notes,
        "notes_left_out": document.notes_left_out,
        "skipped": list(document.skipped),
        "chapters": chapters,
        "expires_at": int(preview.expires),
    }


def chapter_json(chapter: Chapter, settings: ProjectSettings) -> dict[str, Any]:
    """``expected_s``: the audio that exists, and an estimate for the rest; pauses are left out."""
    share = 1 - chapter.characters_heard / max(1, chapter.characters)
    remaining = share * expected_seconds(chapter.characters, chapter.words, settings.speed)
    return {
        "object": "project.chapter",
        "id": chapter.id,
        "title": chapter.title,
        "position": chapter.position,
        "parts": {"total": sum(chapter.parts.values())} | chapter.parts,
        "words": chapter.words,
        "characters": chapter.characters,
        "seconds": round(chapter.seconds, 3),
        "expected_s": round(chapter.seconds + remaining, 1),
    }


def part_json(part: Part, settings: ProjectSettings) -> dict[str, Any]:
    fields = asdict(part)
    for name in ("project_id", "takes", "continues"):
        del fields[name]
    recipe = part.direction.over(settings).recipe(part.text, part.voice)
    return fields | {
        "object": "project.part",
        "seconds": round(part.take.seconds, 3) if part.take else None,
        "takes": [_take_json(take, recipe) for take in part.takes],
    }


def _take_json(take: Take, recipe: str) -> dict[str, Any]:
    return {
        "id": take.id,
        "voice": take.voice,
        "seed": take.seed,
        "seconds": round(take.seconds, 3),
        "finish_reason": take.finish_reason,
        "stale": take.recipe != recipe,
        "created_at": int(take.created),
    }


def timeline_json(timeline: Timeline) -> dict[str, Any]:
    def placed_json(placed: Placed) -> dict[str, Any]:
        times = {"start_s": timeline.seconds(placed.start), "end_s": timeline.seconds(placed.end)}
        part = {"part": placed.part.id, "position": placed.part.position, "chapter": placed.part.chapter}
        return part | {"take": placed.take.id} | times

    return {
        "object": "project.timeline",
        "sample_rate": timeline.sample_rate,
        "samples": timeline.samples,
        "seconds": timeline.seconds(timeline.samples),
        "missing": timeline.missing,
        "parts": [placed_json(placed) for placed in timeline.placed],
    }


def loudness_json(mastering: Mastering, has_standard: bool) -> dict[str, Any]:
    """Without a standard, ``after`` equals ``before``."""

    def measured(loudness: Measured) -> dict[str, float | None]:
        return {
            "integrated_lufs": loudness.integrated and round(loudness.integrated, 1),
            "true_peak_db": round(loudness.true_peak, 1),
            "peak_db": round(loudness.peak, 1),
            "rms_db": round(loudness.rms, 1),
            "noise_floor_db": round(loudness.noise_floor, 1),
        }

    return {
        "object": "project.loudness",
        "loudness": mastering.standard.name if has_standard else "none",
        "gain_db": round(mastering.gain, 1) if has_standard else 0.0,
        "limited": mastering.is_limited if has_standard else False,
        "before": measured(mastering.before),
        "after": measured(mastering.after if has_standard else mastering.before),
        "faults": mastering.standard.faults(mastering.after) if has_standard else [],
    }
