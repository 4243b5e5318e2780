"""Field types of several bodies; booleans, NaN and infinity are not accepted as numbers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from engine import MAX_SEED, MAX_TOP_K
from studio.audio.tempo import MAX_SPEED, MIN_SPEED
from studio.library.voices.names import MAX_REFERENCE


class StrictBody(BaseModel):
    """A body that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid")


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number, not a boolean")
    return value


Number = Annotated[float, BeforeValidator(_no_boolean), Field(allow_inf_nan=False)]
Whole = Annotated[int, BeforeValidator(_no_boolean)]

Seed = Annotated[Whole, Field(ge=0, le=MAX_SEED)]
Temperature = Annotated[Number, Field(ge=0, le=2)]
TopP = Annotated[Number, Field(ge=0, le=1)]
TopK = Annotated[Whole, Field(ge=1, le=MAX_TOP_K)]
Speed = Annotated[Number, Field(ge=MIN_SPEED, le=MAX_SPEED)]

VoiceName = Annotated[str, Field(max_length=MAX_REFERENCE)]
"""Reference to a voice: an id, slug, name or alias, optionally with @REVISION."""
LOWER_CASE = BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value)
"""For Annotated: accepts any case, as for voices and models."""


class SelectionBody(StrictBody):
    """A selected range of a text, in Unicode code points."""

    start: Annotated[Whole, Field(ge=0)] = Field(
        description="Index of the first character of the selection, which is extended to whole sentences."
    )
    end: Annotated[Whole, Field(ge=0)] = Field(
        description="End of the selection (exclusive); it may span several sentences of one turn."
    )
