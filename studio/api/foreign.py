"""Fields of other servers' speech APIs: equivalents, ignored fields with the reason, and refused fields."""

from __future__ import annotations

import json
from typing import Any

from studio import ASSETS
from studio.errors import InvalidRequest

_FIELDS: dict[str, dict[str, str]] = json.loads((ASSETS / "protocols" / "openai.json").read_text("utf-8"))
MEAN = _FIELDS["mean"]
"""Other servers' names of the studio's fields."""
IGNORED = _FIELDS["ignored"]
"""Known fields without effect, and the reasons; unknown fields are ignored too."""
REFUSED = _FIELDS["refused"]
"""Unsupported fields and alternatives; refused unless null, false, empty or 1."""

NAMES = "/v1/names"
"""The base path of OpenAI's API for clients such as OpenReader that take only names as voices."""


def canonical_fields(body: dict[str, Any]) -> dict[str, Any]:
    """The fields by the studio's names, without those that are null.

    Raises InvalidRequest for unsupported fields, and for contradicting values under two names.
    """
    for name, remedy in REFUSED.items():
        if body.get(name) not in (None, False, 1, "", [], {}) or body.get(name) is True:
            raise InvalidRequest(f"{name} is not supported by this server: {remedy}", name, "unsupported_parameter")
    fields = {name: value for name, value in body.items() if value is not None}
    for alias, field in MEAN.items():
        _set(fields, field, fields.pop(alias, None), alias)
    references = fields.pop("references", None)
    if references:
        _set_reference(fields, references)
    return fields


def _set_reference(fields: dict[str, Any], references: object) -> None:
    """references: a list with one {audio_path or audio, text}."""
    if not isinstance(references, list) or len(references) != 1 or not isinstance(references[0], dict):
        raise InvalidRequest("references must be one object with audio_path and text", "references")
    reference = references[0]
    _set(fields, "ref_audio", reference.get("audio_path") or reference.get("audio"), "references")
    _set(fields, "ref_text", reference.get("text"), "references")


def _set(fields: dict[str, Any], name: str, value: object, alias: str) -> None:
    if value is None:
        return
    if fields.get(name, value) != value:
        raise InvalidRequest(f"{alias} and {name} contradict each other; send only one of them", alias)
    fields[name] = value
