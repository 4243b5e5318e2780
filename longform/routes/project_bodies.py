"""Request and response bodies for projects and their parts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import AfterValidator, Field

from audio.formats import check_bit_rate
from longform.credits import check_template
from longform.expected_length import expected_seconds
from longform.import_previews import ImportPreview
from longform.library.chapters import Chapter
from longform.library.project_records import (
    Loudness,
    Part,
    PartChanges,
    PartRange,
    Project,
    ProjectSettings,
    ReplacedValues,
)
from longform.library.table_plan import TableUpdate
from longform.timeline import Placed, Timeline
from manuscript.documents import TEXTS, Document, Passage
from manuscript.encodings import NAMES as ENCODINGS
from manuscript.parts import MAX_PART_BYTES, MIN_PART_BYTES, PART_BYTES, PartSplitting, SplitBy
from manuscript.passages import (
    MAX_ALIASES,
    MAX_AUTHOR,
    MAX_NAME,
    MAX_PARTS,
    MAX_PASSAGES,
    MAX_PAUSE,
    MAX_TITLE,
    InvalidDocument,
    NewCharacter,
)
from manuscript.table import MAX_COLUMNS, of_rows
from studio.api.field_types import (
    BEFORE,
    FINITE,
    NO_BOOLEAN,
    Seed,
    Speed,
    StrictBody,
    Temperature,
    TopK,
    TopP,
    VoiceName,
    Whole,
    as_read,
)
from studio.errors import InvalidRequest
from studio.library.checks import check_before, clean_language, sharing_json
from studio.library.take import Take

ColumnRole = Literal[
    "", "id", "text", "character", "voice", "direction", "chapter", "file", "gender", "pause", "scene", "continues"
]
MAX_LISTED = 500  # lines of an update that a response lists
MAX_CAST = 1000  # names with voices in one request
Pause = Annotated[float, FINITE, Field(ge=0, le=MAX_PAUSE), NO_BOOLEAN]
Offset = Annotated[int, Query(ge=0, le=MAX_PARTS)]
Limit = Annotated[int, Query(ge=1, le=200)]


def one_line(text: str) -> str:
    return " ".join(text.split())


def _bit_rate(bitrate: int) -> int:
    check_bit_rate(bitrate, "mp3")
    return bitrate


BookName = Annotated[str, Field(max_length=MAX_AUTHOR), AfterValidator(one_line)]


class SettingsBody(StrictBody):
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
    trim: bool | None = Field(
        None, description="Whether to remove the silence around each part, so that pauses have their exact length."
    )
    cue_speed: Annotated[float, FINITE, Field(ge=1, le=2), NO_BOOLEAN] | None = Field(
        None,
        description="How many times faster, at most, a part with its own start is played so that the next one begins "
        "on time; 1, the default: not faster.",
    )
    loudness: Loudness | None = Field(
        None, description="Loudness standard of exported files: none, podcast (-16 LUFS) or acx (audiobooks)."
    )
    author: BookName | None = Field(None, description="Author in exported files.")
    language: Annotated[str, AfterValidator(clean_language)] | None = Field(
        None, description="Language in exported files, as BCP 47, such as en or pt-BR. Blank: none."
    )
    narrator: BookName | None = Field(None, description="Narrator in exported files.")
    year: Annotated[int, Field(ge=1, le=9999), NO_BOOLEAN] | None = Field(None, description="Year in exported files.")
    bitrate: Annotated[Whole, AfterValidator(_bit_rate)] | None = Field(
        None, description="kbit/s of MP3 files; null: 192 for acx, else 128."
    )
    read_titles: bool | None = Field(
        None, description="Whether the audio includes parts that consist only of a chapter's title; default true."
    )
    opening_credits: Annotated[str, AfterValidator(partial(check_template, "opening_credits"))] | None = Field(
        None,
        description="Template of a part at the beginning: {title}, {author}, {narrator} and {year} are filled in. A "
        "sentence with one that has no value is left out. Blank: no such part.",
    )
    closing_credits: Annotated[str, AfterValidator(partial(check_template, "closing_credits"))] | None = Field(
        None, description="The same for a part at the end."
    )

    def settings(self, before: ProjectSettings) -> ProjectSettings:
        """The settings, updated with the fields that were sent."""
        defaults = ProjectSettings()
        names = self.model_fields_set & SettingsBody.model_fields.keys() - {"title"}
        fields = {name: getattr(self, name) for name in names}
        return replace(before, **{k: getattr(defaults, k) if v is None or v == "" else v for k, v in fields.items()})

    def change(self, project: Project) -> tuple[str | None, ProjectSettings]:
        """The new title, None for the same, and settings of a project."""
        return self.title, self.settings(project.settings)

    def values_of(self, project: Project) -> dict[str, Any]:
        """What a project has in the fields that were sent."""
        names = self.model_fields_set & SettingsBody.model_fields.keys()
        return {name: getattr(project if name == "title" else project.settings, name) for name in sorted(names)}

    def replaced(self, before: Project, after: Project) -> dict[str, dict[str, Any]]:
        """What these changes replaced in a project, for ReplacedSettings."""
        old, new = self.values_of(before), self.values_of(after)
        changed = [name for name in old if old[name] != new[name]]
        return {"before": {name: old[name] for name in changed}, "after": {name: new[name] for name in changed}}


class ProjectChanges(SettingsBody):
    sharing: Literal["private", "read", "edit"] | None = Field(
        None, description="With API keys, the rights of other keys; only the owner may change it. null: unchanged."
    )
    before: SettingsBody | None = BEFORE

    def change(self, project: Project) -> tuple[str | None, ProjectSettings]:
        """As for all settings. Raises EditConflict."""
        title, settings = super().change(project)
        new = self.values_of(replace(project, title=title or project.title, settings=settings))
        check_before(self.values_of(project), as_read(self.before), new)
        return title, settings


class NewPartFields(StrictBody):
    """The fields of a part that is added; null is the same as absent."""

    voice: VoiceName | None = Field(None, description="Absent or blank: the project's.")
    pause: Pause | None = Field(None, description="Seconds of silence after it; absent: the project's.")
    chapter: Annotated[str, Field(max_length=MAX_TITLE)] | None = Field(
        None, description="The title of the chapter that begins with it."
    )


class ItemBody(NewPartFields):
    """One part; one with the chapter of the item before it continues that chapter."""

    input: str
    character: Annotated[str, Field(max_length=MAX_NAME)] | None = Field(
        None, description="The name of the character who speaks it."
    )
    scene: bool | None = Field(None, description="Whether a scene ends after it; absent: no.")
    continues: bool | None = Field(
        None, description="Whether it continues the paragraph of the item before it; null: unknown."
    )

    def passage(self) -> Passage:
        return Passage(
            self.input,
            self.chapter or "",
            self.voice,
            self.pause,
            bool(self.scene),
            speaker=" ".join((self.character or "").split()),
            continues=self.continues,
        )


class PersonBody(StrictBody):
    """A person of a text, as in a project's cast: the person's names are nobody else's."""

    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    aliases: list[Annotated[str, Field(min_length=1, max_length=MAX_NAME)]] = Field([], max_length=MAX_ALIASES)
    gender: Literal["", "female", "male", "neutral"] = Field("", description="Blank: found in the text.")
    voice: VoiceName | None = Field(None, description="Absent or blank: the project's.")
    narrator: bool = Field(False, description="Whether this person tells the story, in the project's voice.")

    def character(self) -> NewCharacter:
        voice = (self.voice or "").strip() or None
        return NewCharacter(self.name, tuple(self.aliases), self.gender, voice, self.narrator)


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
    people: list[PersonBody] | None = Field(
        None,
        max_length=MAX_CAST,
        description="With speakers: people of the text with all their names, such as the corrected list of "
        "POST /v1/projects/characters, or the cast of an earlier book. Others are found beside them.",
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
    encoding: str | None = Field(
        None,
        description="The encoding of a file that is text, such as gb18030, big5, shift_jis or windows-1251; absent: "
        "Unicode, or else detected.",
    )
    preview: str | None = Field(
        None, description="The id of a preview (POST /v1/projects/preview): its document, without sending it again."
    )
    chapters: list[Annotated[int, Field(ge=0, lt=MAX_PASSAGES), NO_BOOLEAN]] | None = Field(
        None, min_length=1, max_length=MAX_PARTS, description="The chapters to import, counted from 0; null: all."
    )
    with_cover: bool = Field(True, description="Whether to use the document's cover.")
    columns: dict[str, ColumnRole] | None = Field(
        None,
        max_length=MAX_COLUMNS,
        description="The role of each column of a table, by the column's name; columns that are left out are kept with "
        "their rows. null: by their names. A new version of a table finds the lines by their ids.",
    )
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
        return of_rows(item.passage() for item in items)


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
        names = {field.name for field in fields(PartChanges)} & type(self).model_fields.keys()
        return PartChanges(**{name: getattr(self, name) for name in names})


class PartBody(DirectionBody):
    """Fields that are absent or null stay as they are."""

    text: str | None = None
    text_before: str | None = Field(
        None, description="The part's text as read before; if it has changed since, the response is 412. Absent: any."
    )
    take: str | None = Field(None, description="The id of the take to choose.")
    take_before: str | None = Field(
        None, description="The chosen take as read; if another was chosen since, the response is 412. Absent: any."
    )
    chapter: Annotated[str, Field(max_length=MAX_TITLE)] | None = Field(
        None,
        description="A new title of the chapter that begins with this part. If the part is its heading, its text "
        "changes too, unless text is sent as well.",
    )
    chapter_before: str | None = Field(
        None, description="The chapter's title as read; if it has changed since, the response is 412. Absent: any."
    )


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


class UpdateBody(StrictBody):
    columns: dict[str, ColumnRole] | None = Field(
        None, max_length=MAX_COLUMNS, description="As for a new project; null: as it was imported."
    )
    apply: bool = Field(False, description="Whether to make the changes; otherwise they are only listed.")


def page_json(data: list[dict[str, Any]], offset: int, total: int) -> dict[str, Any]:
    """A page that begins after ``offset`` of ``total`` items."""
    return {"object": "list", "data": data, "total": total, "has_more": offset + len(data) < total}


def project_json(project: Project, seconds_left: float | None, seconds_to_speak: float | None = None) -> dict[str, Any]:
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
        "speak_s": None if seconds_to_speak is None else round(seconds_to_speak, 1),
        "created_at": int(project.created),
        "changed_at": project.changed,  # with its fraction: whoever compares it must see two changes in one second
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
        "script": document.is_script,
        "skipped": list(document.skipped),
        "encoding": document.encoding,
        "encodings": ENCODINGS if preview.kind in TEXTS else {},
        "chapters": chapters,
        "rows": len(document.passages) if document.columns else 0,
        "columns": [asdict(column) for column in document.columns],
        "expires_at": int(preview.expires),
    }


def chapter_json(chapter: Chapter, settings: ProjectSettings) -> dict[str, Any]:
    """``expected_s``: the audio that exists, and an estimate for the rest; pauses are left out."""
    share = 1 - chapter.characters_heard / max(1, chapter.characters)
    remaining = share * expected_seconds(chapter.characters, chapter.words, settings.speed)
    fields = asdict(chapter)
    del fields["characters_heard"]
    return fields | {
        "object": "project.chapter",
        "parts": {"total": sum(chapter.parts.values())} | chapter.parts,
        "seconds": round(chapter.seconds, 3),
        "expected_s": round(chapter.seconds + remaining, 1),
    }


def update_json(update: TableUpdate, applied: bool) -> dict[str, Any]:
    """``lines``: at most MAX_LISTED of the changes."""
    count = Counter(line.change for line in update.lines)
    return {
        "object": "project.update",
        "applied": applied,
        "same": update.same,
        "added": count["added"],
        "changed": count["changed"],
        "gone": count["gone"],
        "lines": [asdict(line) for line in update.lines[:MAX_LISTED]],
        **({"replaced": replaced_json(update.replaced) | {"table": update.undo}} if applied else {}),
    }


def _kept_columns(part: Part, settings: ProjectSettings) -> dict[str, str]:
    """The cells of a part's row in the columns without a role; blank ones are left out."""
    cells = json.loads(part.cells) if part.cells else {}
    return {name: cell for name, cell in cells.items() if name and cell.strip() and name not in settings.columns}


def part_json(part: Part, settings: ProjectSettings) -> dict[str, Any]:
    fields = asdict(part)
    for name in ("project_id", "takes", "sent", "cells", "credits"):
        del fields[name]
    fields["columns"] = _kept_columns(part, settings)
    recipe = part.direction.over(settings).recipe(part.text, part.voice)
    return fields | {
        "object": "project.part",
        "seconds": round(part.take.seconds, 3) if part.take else None,
        "takes": [_take_json(take, recipe) for take in part.takes],
    }


def replaced_json(parts: Sequence[ReplacedValues], followed: Sequence[ReplacedValues] = ()) -> dict[str, Any]:
    """What a change replaced, for UndoBody."""

    def listed(some: Sequence[ReplacedValues]) -> list[dict[str, Any]]:
        return [{"ids": list(one.ids), "before": one.before, "after": one.after} for one in some]

    return {"parts": listed(parts), "followed": listed(followed)}


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
        delivery = {"take": placed.take.id, "speed": placed.speed, "late_s": round(timeline.delay(placed), 3)}
        return part | times | delivery

    return {
        "object": "project.timeline",
        "sample_rate": timeline.sample_rate,
        "samples": timeline.samples,
        "seconds": timeline.seconds(timeline.samples),
        "missing": timeline.missing,
        "parts": [placed_json(placed) for placed in timeline.placed],
    }
