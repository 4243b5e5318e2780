"""A page of a list, as every route answers with one that continues after the last id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")


def list_page(found: Sequence[Item], limit: int, as_json: Callable[[Item], dict[str, Any]]) -> dict[str, Any]:
    """``found``: what there is, up to one item more than ``limit``."""
    data = [as_json(item) for item in found[:limit]]
    last_id = data[-1]["id"] if data else None
    return {"object": "list", "data": data, "last_id": last_id, "has_more": len(found) > limit}
