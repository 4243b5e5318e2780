"""Numbers in JSON bodies as people mean them: a boolean is none, and neither is NaN or infinity."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number, not a boolean")
    return value


Number = Annotated[float, BeforeValidator(_no_boolean), Field(allow_inf_nan=False)]
Whole = Annotated[int, BeforeValidator(_no_boolean)]
