"""The takes of recent requests: a bounded record by request id, in memory only."""

from __future__ import annotations

from collections import OrderedDict

from studio.errors import NotFound
from studio.library.takes.take import Take


class RecentTakes:
    """The last ``limit`` takes."""

    def __init__(self, limit: int = 512) -> None:
        self._limit = limit
        self._takes: OrderedDict[str, Take] = OrderedDict()

    def put(self, take: Take) -> None:
        """Add a take, or replace its record."""
        self._takes[take.id] = take
        while len(self._takes) > self._limit:
            self._takes.popitem(last=False)

    def get(self, take_id: str, caller: str | None = None) -> Take:
        """Raises NotFound if this caller (None: any caller) has no such take, or it is too old."""
        take = self._takes.get(take_id)
        if take is None or (caller is not None and take.caller != caller):
            raise NotFound(f"there is no take {take_id[:80]!r}", "take_id")
        return take

    def drop(self, take_id: str) -> None:
        """Forget a take, if it is known."""
        self._takes.pop(take_id, None)

    def list(self, caller: str | None = None) -> list[Take]:
        """The recent takes of a caller (None: all callers), newest first."""
        return [take for take in reversed(self._takes.values()) if caller is None or take.caller == caller]
