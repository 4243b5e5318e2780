"""A voice: the fields that people fill in, cleaned and checked in one place, and the stored voice."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from studio.library.checks import (
    MAX_DESCRIPTION,
    Right,
    clean_accent,
    clean_colour,
    clean_defaults,
    clean_gender,
    clean_language,
    clean_sharing,
    clean_tags,
    clean_text,
)
from studio.library.names import clean_name, clean_slug
from studio.library.records import Sample

OF_THIS_LIBRARY = frozenset({"slug", "favourite", "consent", "sharing"})
"""Fields that apply only within one library and are not exported with a voice."""


class VoiceFields(BaseModel):
    """The editable fields of a voice: all fields of a new one, or the changed fields of an existing one.

    Raises InvalidRequest, naming the field, for a value that is not allowed, and ValidationError for a wrong type.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, AfterValidator(clean_name)] = ""
    slug: Annotated[
        str, AfterValidator(clean_slug), Field(description="Used in requests; at first made from the name.")
    ] = ""
    description: Annotated[str, AfterValidator(partial(clean_text, "description", limit=MAX_DESCRIPTION))] = ""
    tags: Annotated[tuple[str, ...], AfterValidator(clean_tags)] = ()
    language: Annotated[str, AfterValidator(clean_language), Field(description="BCP 47, such as en or pt-BR.")] = ""
    gender: Annotated[str, AfterValidator(clean_gender), Field(description="female, male, neutral or blank.")] = ""
    accent: Annotated[str, AfterValidator(clean_accent), Field(description="In words, such as British.")] = ""
    colour: Annotated[
        str, AfterValidator(clean_colour), Field(description="#rrggbb; blank: derived from the name.")
    ] = ""
    favourite: bool = False
    licence: Annotated[str, AfterValidator(partial(clean_text, "licence", limit=MAX_DESCRIPTION))] = ""
    consent: Annotated[str | None, Field(description="The id of a consent; blank removes it.")] = None
    defaults: Annotated[
        dict[str, float | int],
        BeforeValidator(clean_defaults),
        Field(description="Sampling where a request says nothing: temperature, top_p, top_k, seed."),
    ] = {}
    sharing: Annotated[
        str,
        AfterValidator(clean_sharing),
        Field(description="With API keys, the rights of other keys: private, read or edit."),
    ] = "private"

    def details(self) -> dict[str, Any]:
        """The exported fields as JSON."""
        return self.model_dump(mode="json", include=VoiceFields.model_fields.keys() - OF_THIS_LIBRARY)


class Voice(VoiceFields):
    """A voice in one of its revisions."""

    id: str
    bundled: bool = False
    created: float = 0.0
    """Unix time."""
    changed: float = 0.0
    latest: int = 1
    """The newest revision."""
    version: int = 1
    """Counts every change, including names; for ETags."""
    deleted: float | None = None
    """Unix time of its deletion, while it can be restored."""
    owner: str = ""
    """Blank where there were no keys when it was made."""
    right: Right = "own"
    """The right of the caller that reads it."""
    revision: int = 1
    """The revision to which `samples` belong."""
    samples: tuple[Sample, ...] = ()
    speaker: str | None = None
    """The loaded model's name of a voice of its own, which no library has."""

    @property
    def address(self) -> str:
        """A reference to exactly this revision: slug@revision; a model's own voice has none."""
        return self.slug if self.speaker else f"{self.slug}@{self.revision}"

    @property
    def seconds(self) -> float:
        return sum(sample.seconds for sample in self.samples)

    @property
    def text(self) -> str:
        """The transcript of its first sample."""
        return self.samples[0].text if self.samples else ""
