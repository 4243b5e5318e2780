"""Numbers in JSON bodies as people mean them: a boolean is none, and neither is NaN or infinity."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from studio.audio.tempo import MAX_SPEED, MIN_SPEED
from studio.speech.request import MAX_SEED, MAX_TOP_K


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
