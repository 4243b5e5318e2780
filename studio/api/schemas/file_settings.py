"""The settings of a project's files: their finishing, and the book's details."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import AfterValidator, Field

from studio.api.schemas.field_types import NO_BOOLEAN, StrictBody, Whole
from studio.audio.formats import check_bit_rate
from studio.library.checks import clean_language
from studio.library.projects.project_records import MAX_AUTHOR, Loudness
from studio.projects.credits import check_template


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _bit_rate(bitrate: int) -> int:
    check_bit_rate(bitrate, "mp3")
    return bitrate


Name = Annotated[str, Field(max_length=MAX_AUTHOR), AfterValidator(_one_line)]


class FileSettings(StrictBody):
    """Fields of a project's settings; null means the default."""

    trim: bool | None = Field(
        None, description="Whether to remove the silence around each part, so that pauses have their exact length."
    )
    loudness: Loudness | None = Field(
        None, description="Loudness standard of exported files: none, podcast (-16 LUFS) or acx (audiobooks)."
    )
    author: Name | None = Field(None, description="Author in exported files.")
    language: Annotated[str, AfterValidator(clean_language)] | None = Field(
        None, description="Language in exported files, as BCP 47, such as en or pt-BR. Blank: none."
    )
    narrator: Name | None = Field(None, description="Narrator in exported files.")
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
