"""Reads a voice pack's untrusted manifest.json: errors name the field with the wrong type."""

from __future__ import annotations

import json
from typing import Annotated, NoReturn

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError

from studio.errors import InvalidPack
from studio.library import VoiceFields
from studio.library.voices.voice import OF_THIS_LIBRARY

FORMAT = "fishvoice/1"
MAX_MANIFEST = 256 * 1024
"""Bytes."""

Time = Annotated[float, Field(gt=0, lt=1e11, description="Seconds since 1970.")]


class _PackPart(BaseModel):
    """Unknown fields are ignored, since a later version may have them."""

    model_config = ConfigDict(strict=True, frozen=True)


class PackFile(_PackPart):
    """A file of the pack."""

    name: str
    size: int
    sha256: str


class PackCodes(_PackPart):
    """Codes in packs of earlier versions; they are counted but not used."""

    file: PackFile


class PackSample(_PackPart):
    """A clip, its transcript, and its cut: start, end, gain in decibels, channel."""

    clip: PackFile
    text: str
    speaker: int
    cut: Annotated[tuple[float, float | None, float, int | None], Strict(False)]
    codes: list[PackCodes] = []


class PackConsent(_PackPart):
    """The person who agreed to the use of the voice, the wording, and possibly a recording of it."""

    name: str
    language: str
    statement: str
    created: Time
    recording: PackFile | None


class Manifest(_PackPart):
    """The contents of a pack: a voice's fields, checked, and the typed list of everything else."""

    created: Time
    samples: list[PackSample]
    consent: PackConsent | None
    fields: VoiceFields


def read_manifest(text: bytes) -> Manifest:
    """Raises InvalidPack naming the first field that is missing or wrong, and the errors of VoiceFields."""
    if not text or len(text) > MAX_MANIFEST:
        raise InvalidPack("the pack has no manifest.json, or one that is too large", "file")
    try:
        manifest = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InvalidPack("the pack's manifest.json is not valid JSON", "file") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InvalidPack(f"the pack's format is not {FORMAT}", "file")
    try:
        fields = {
            name: manifest[name] for name in VoiceFields.model_fields.keys() - OF_THIS_LIBRARY if name in manifest
        }
        return Manifest.model_validate(manifest | {"fields": VoiceFields.model_validate(fields)})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(step) for step in first["loc"])[:80]
        raise InvalidPack(f"the pack's manifest is wrong at {field}: {first['msg']}", "file") from error


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
