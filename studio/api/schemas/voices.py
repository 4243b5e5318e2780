"""The JSON bodies with which voices, samples and consents are changed."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from studio.api.schemas.numbers import Number, Whole
from studio.library import Cut, VoiceChanges
from studio.library.voices.names import MAX_REFERENCE
from studio.voices.editing import SampleChanges

VoiceName = Annotated[str, Field(max_length=MAX_REFERENCE)]
"""What a voice is asked for by: an id, slug, name or alias, with @REVISION if wanted."""


class ConsentChanges(BaseModel):
    name: str


class VoiceBody(BaseModel):
    """Fields that are absent or null stay as they are; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = None
    slug: str | None = Field(None, description="The name used in requests; if absent, it follows from a new name.")
    description: str | None = None
    tags: list[str] | None = None
    language: str | None = None
    gender: str | None = Field(None, description="female, male, neutral or blank.")
    accent: str | None = None
    colour: str | None = Field(None, description="#rrggbb; blank: drawn from the name.")
    favourite: bool | None = None
    licence: str | None = None
    consent: str | None = Field(None, description="The id of a consent; blank removes it.")
    defaults: dict[str, float | int] | None = None

    def changes(self) -> VoiceChanges:
        return VoiceChanges(
            name=self.name,
            slug=self.slug,
            description=self.description,
            tags=None if self.tags is None else tuple(self.tags),
            language=self.language,
            gender=self.gender,
            accent=self.accent,
            colour=self.colour,
            favourite=self.favourite,
            licence=self.licence,
            consent_id=self.consent,
            defaults=None if self.defaults is None else dict(self.defaults),
        )


class ChosenSamples(BaseModel):
    """Which samples a voice's new revision has, in the order of the prompt; each was in one of its revisions."""

    model_config = ConfigDict(extra="forbid")

    samples: list[str]


class NewName(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str


class CutBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    start: Number = 0.0
    end: Number | None = None
    gain_db: Number = 0.0
    channel: Whole | None = None


class SampleBody(BaseModel):
    """Fields that are absent or null stay as they are; a cut is given whole."""

    model_config = ConfigDict(extra="forbid")

    text: str | None = None
    speaker: Whole | None = None
    cut: CutBody | None = None

    def changes(self) -> SampleChanges:
        cut = None if self.cut is None else Cut(self.cut.start, self.cut.end, self.cut.gain_db, self.cut.channel)
        return SampleChanges(self.text, cut, self.speaker)
