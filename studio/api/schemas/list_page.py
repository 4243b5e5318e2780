"""A page of a list that continues after its last id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")


def list_page(items: Sequence[Item], limit: int, as_json: Callable[[Item], dict[str, Any]]) -> dict[str, Any]:
    """``items``: up to one item more than ``limit``, which shows that there are more."""
    data = [as_json(item) for item in items[:limit]]
    last_id = data[-1]["id"] if data else None
    return {"object": "list", "data": data, "last_id": last_id, "has_more": len(items) > limit}
