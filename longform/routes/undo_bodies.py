"""Request bodies for undoing changes: what these replaced, as their answers have it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from longform.library.project_records import Project, ProjectSettings, ReplacedValues, ReplacedVoice
from longform.routes.project_bodies import Pause, SettingsBody, one_line
from manuscript.passages import MAX_CAST_CHARACTERS, MAX_PARTS, MAX_TITLE
from studio.api.field_types import (
    FINITE,
    NO_BOOLEAN,
    Speed,
    StrictBody,
    Temperature,
    TopK,
    TopP,
    VoiceName,
)
from studio.errors import InvalidRequest


class PartValues(StrictBody):
    """Fields of a part as an answer's ``replaced`` has them."""

    text: str | None = None
    chapter: Annotated[str, Field(max_length=MAX_TITLE), AfterValidator(one_line)] | None = None
    chosen: str | None = None
    voice: VoiceName | None = None
    pause: Pause | None = None
    speed: Speed | None = None
    temperature: Temperature | None = None
    top_p: TopP | None = None
    top_k: TopK | None = None
    scene: Literal[0, 1] = 0
    character: str | None = None
    confidence: Annotated[float, FINITE, Field(ge=0, le=1), NO_BOOLEAN] | None = None
    confirmed: Annotated[int, Field(ge=0, lt=2**53), NO_BOOLEAN] = 0

    def sent(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.model_fields_set}


class ReplacedParts(StrictBody):
    ids: list[str] = Field(max_length=MAX_PARTS)
    before: PartValues
    after: PartValues

    def values(self) -> ReplacedValues:
        """Raises InvalidRequest."""
        before, after = self.before.sent(), self.after.sent()
        if before.keys() != after.keys() or None in (before.get("text", ""), before.get("chapter", "")):
            raise InvalidRequest("before and after have the same fields, and text and chapter are texts", "parts")
        return ReplacedValues(tuple(self.ids), before, after)


class ReplacedSettings(StrictBody):
    before: SettingsBody
    after: SettingsBody

    def compared(self, project: Project, keeps_voice: bool) -> tuple[list[str], list[str]]:
        """The changed fields that a project still has as they are after the change, and those that it has not;
        ``keeps_voice``: nor the voice."""
        unchanged, others = list[str](), list[str]()
        for name, current in self.before.values_of(project).items():
            if (after := getattr(self.after, name)) != getattr(self.before, name):
                is_kept = current != after or (keeps_voice and name == "voice")
                (others if is_kept else unchanged).append(name)
        return unchanged, others

    def change(self, project: Project, keeps_voice: bool) -> tuple[str | None, ProjectSettings]:
        """The new title, None for the same, and settings of a project."""
        names, _ = self.compared(project, keeps_voice)
        return SettingsBody(**{name: getattr(self.before, name) for name in names}).change(project)


class ReplacedVoiceBody(StrictBody):
    id: str
    before: VoiceName | None
    after: VoiceName | None
    own: list[str] = Field([], max_length=MAX_PARTS, description="Lines that keep the voice: it was their own before.")
    narrator: bool | None = Field(None, description="Whether it was the narrator before; null: that did not change.")


def _each_once(parts: list[ReplacedParts]) -> list[ReplacedParts]:
    if sum(len(one.ids) for one in parts) > MAX_PARTS:
        raise ValueError(f"at most {MAX_PARTS} ids are allowed")
    return parts


PartsReplaced = Annotated[list[ReplacedParts], Field(max_length=MAX_PARTS), AfterValidator(_each_once)]


class ReplacedCredit(StrictBody):
    """As `longform.credits.ReplacedPart`."""

    before: str | None
    after: str | None
    deleted: list[str] = Field(max_length=2)
    added: str | None
    titled: str | None


class UndoBody(StrictBody):
    """The fields of ``replaced``, as the answer of a change has them."""

    times_larger: ClassVar[int] = 5  # than others: a change of a long project has all its texts twice
    settings: ReplacedSettings | None = None
    parts: PartsReplaced = Field([])
    followed: PartsReplaced = Field([], description="Only if any of the other parts is as it was after the change.")
    characters: list[ReplacedVoiceBody] = Field([], max_length=MAX_CAST_CHARACTERS)
    credits: list[ReplacedCredit] = Field(
        [], min_length=2, max_length=2, description="The opening and the closing ones."
    )
    table: str | None = Field(None, description="An update from a table: its lines that were added and gone.")

    def cast_changes(self) -> tuple[list[ReplacedValues], list[ReplacedValues], dict[str, ReplacedVoice]]:
        """The parts, those that followed, and the characters' voices by their ids. Raises InvalidRequest."""
        lists = self.parts, self.followed
        parts, followed = ([one.values() for one in each if one.before != one.after] for each in lists)
        return (
            parts,
            followed,
            {one.id: ReplacedVoice(one.before, one.after, one.own, one.narrator) for one in self.characters},
        )
