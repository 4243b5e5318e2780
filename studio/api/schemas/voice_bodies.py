"""JSON bodies that edit voices, samples and consents."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from studio.api.schemas.field_types import Number, StrictBody, Whole
from studio.library import Cut, VoiceFields


class ConsentChanges(BaseModel):
    name: str


def _nullable(schema: dict[str, Any]) -> None:
    for field in schema["properties"].values():
        if "type" in field:
            field.update(type=[field["type"], "null"], default=None)


class VoiceBody(VoiceFields):
    """Absent and null fields stay unchanged; unknown ones are refused."""

    model_config = ConfigDict(json_schema_extra=_nullable)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, body: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in body.items() if value is not None or name not in cls.model_fields}


class ChosenSamples(StrictBody):
    """The samples of a voice's new revision, in the order of the prompt, from any of its revisions."""

    samples: list[str]


class NewName(StrictBody):
    name: str


class CutBody(StrictBody):
    start: Number = 0.0
    end: Number | None = None
    gain_db: Number = 0.0
    channel: Whole | None = None

    def cut(self) -> Cut:
        return Cut(**self.model_dump())


class SampleBody(StrictBody):
    """Absent and null fields stay unchanged; a cut replaces the whole cut."""

    text: str | None = None
    speaker: Whole | None = None
    cut: CutBody | None = None
