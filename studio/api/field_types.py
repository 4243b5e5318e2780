"""Field types of several bodies; booleans, NaN and infinity are not accepted as numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar, get_args

from fastapi import Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from audio.tempo import MAX_SPEED, MIN_SPEED
from engine import MAX_SEED, MAX_TOP_K
from studio.errors import InvalidRequest
from studio.library.names import MAX_REFERENCE

Item = TypeVar("Item")


class StrictBody(BaseModel):
    """A body that refuses unknown fields. A field with a default that cannot be null counts as absent if it is."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, values: Any) -> Any:
        if isinstance(values, dict):
            for name in [name for name, value in values.items() if value is None and name in cls.model_fields]:
                field = cls.model_fields[name]
                if not field.is_required() and type(None) not in get_args(field.annotation):
                    values = {key: value for key, value in values.items() if key != name}
        return values


def check_deletion(request: Request, *known: str) -> None:
    """Raises InvalidRequest for a body, and an unknown or blank query field, which may be meant to limit what is
    deleted."""
    if unknown := [name for name in request.query_params if name not in known]:
        fields = ", ".join(known)
        name = unknown[0][:80]
        raise InvalidRequest(f"unknown query field {name!r}; nothing was deleted. Known: {fields}", name)
    if blank := [name for name, value in request.query_params.items() if not value.strip()]:
        raise InvalidRequest(f"{blank[0]} is blank; nothing was deleted. Leave it out, or give it a value", blank[0])
    if int(request.headers.get("content-length") or 0) or "transfer-encoding" in request.headers:
        raise InvalidRequest("this deletion takes query fields and no body; nothing was deleted", "body")


MAX_IDS = 1000  # in a query, whose address must fit into `studio.server.HEAD_BYTES`


def ids_of(text: str | None) -> tuple[str, ...] | None:
    """The ids in a query, separated by commas. Raises InvalidRequest."""
    ids = None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())
    if ids is not None and len(ids) > MAX_IDS:
        raise InvalidRequest(f"ids has {len(ids)}; at most {MAX_IDS} are allowed", "ids")
    return ids


BEFORE = Field(None, description="As read: 412 if a field that is sent has another value since. Absent fields: any.")


def as_read(before: StrictBody | None) -> dict[str, Any]:
    """The values in a field BEFORE, for `check_before`."""
    return before.model_dump(exclude_unset=True) if before else {}


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number, not a boolean")
    return value


FINITE = Field(allow_inf_nan=False)
NO_BOOLEAN = BeforeValidator(_no_boolean)
"""Put it after the limits in Annotated: pydantic omits limits that come after a validator from OpenAPI."""
Number = Annotated[float, FINITE, NO_BOOLEAN]
Whole = Annotated[int, Field(ge=-MAX_SEED, le=MAX_SEED), NO_BOOLEAN]

Seed = Annotated[int, Field(ge=0, le=MAX_SEED), NO_BOOLEAN]
Temperature = Annotated[float, FINITE, Field(ge=0, le=2), NO_BOOLEAN]
TopP = Annotated[float, FINITE, Field(ge=0, le=1), NO_BOOLEAN]
TopK = Annotated[int, Field(ge=1, le=MAX_TOP_K), NO_BOOLEAN]
Speed = Annotated[float, FINITE, Field(ge=MIN_SPEED, le=MAX_SPEED), NO_BOOLEAN]

VoiceName = Annotated[str, Field(max_length=MAX_REFERENCE)]
"""Reference to a voice: an id, slug, name or alias, optionally with @REVISION."""
LOWER_CASE = BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value)
"""For Annotated: accepts any case, as for voices and models."""


class SelectionBody(StrictBody):
    """A selected range of a text, in Unicode code points."""

    start: Annotated[int, Field(ge=0), NO_BOOLEAN] = Field(
        description="Index of the first character of the selection, which is extended to whole sentences."
    )
    end: Annotated[int, Field(ge=0), NO_BOOLEAN] = Field(
        description="End of the selection (exclusive); it may span several sentences of one turn."
    )


def list_page(items: Sequence[Item], limit: int, as_json: Callable[[Item], dict[str, Any]]) -> dict[str, Any]:
    """``items``: up to one item more than ``limit``, which shows that there are more."""
    data = [as_json(item) for item in items[:limit]]
    last_id = data[-1]["id"] if data else None
    return {"object": "list", "data": data, "last_id": last_id, "has_more": len(items) > limit}
