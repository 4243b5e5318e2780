"""The JSON bodies with which voices, samples and consents are changed."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from studio.api.schemas.numbers import Number, Whole
from studio.library import Cut, VoiceFields
from studio.library.voices.names import MAX_REFERENCE

VoiceName = Annotated[str, Field(max_length=MAX_REFERENCE)]
"""What a voice is asked for by: an id, slug, name or alias, with @REVISION if wanted."""


class ConsentChanges(BaseModel):
    name: str


def _nullable(schema: dict[str, Any]) -> None:
    for field in schema["properties"].values():
        if "type" in field:
            field.update(type=[field["type"], "null"], default=None)


class VoiceBody(VoiceFields):
    """Fields that are absent or null stay as they are; unknown ones are refused."""

    model_config = ConfigDict(json_schema_extra=_nullable)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, body: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in body.items() if value is not None or name not in cls.model_fields}


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

    def cut(self) -> Cut:
        return Cut(**self.model_dump())


class SampleBody(BaseModel):
    """Fields that are absent or null stay as they are; a cut is given whole."""

    model_config = ConfigDict(extra="forbid")

    text: str | None = None
    speaker: Whole | None = None
    cut: CutBody | None = None
