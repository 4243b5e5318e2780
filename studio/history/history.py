"""The active, recent and stored takes of a caller: list, star, delete and restore them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import cast

from anyio import to_thread

from studio.errors import InProgress, NotFound
from studio.history.take_json import listed_json, whole_json
from studio.library import Library, TakeFilter
from studio.library.takes.take import Take
from studio.library.trash import TrashKind
from studio.library.voices.names import split_revision
from studio.takes.recent_takes import RecentTakes
from studio.takes.recorder import NOT_WHOLE, Outcome, Recorder

TakeJson = dict[str, object]


@dataclass(frozen=True, slots=True)
class TakePage:
    data: list[TakeJson]
    """Newest first."""
    last_id: str | None
    """Cursor of the next page."""
    has_more: bool


class History:
    """Used from one event loop. ``owner_filter`` is the caller whose takes are visible; None means everyone's."""

    def __init__(
        self,
        library: Library,
        recent: RecentTakes,
        recorder: Recorder | None,
        outcomes: Mapping[Outcome, int] = MappingProxyType({}),
    ) -> None:
        """``outcomes``: storage results since the start."""
        self._outcomes = outcomes
        self._library = library
        self._recent = recent
        self._recorder = recorder

    @property
    def retention_json(self) -> TakeJson | None:
        """The retention, the days of the trash, and the number of takes since the start that could not be stored, or
        only without audio; None if no takes are stored."""
        if self._recorder is None:
            return None
        retention = self._recorder.retention
        counts: TakeJson = {outcome: self._outcomes.get(outcome, 0) for outcome in NOT_WHOLE}
        return counts | {"takes": retention.takes, "bytes": retention.bytes, "undo_seconds": self.undo_seconds}

    @property
    def undo_seconds(self) -> float:
        """Time for which a deleted take can be restored."""
        return self._library.trash.seconds

    async def with_voice_id(self, filters: TakeFilter) -> TakeFilter:
        """The same filter with the voice's id, so that renaming the voice does not matter."""
        if filters.voice is None:
            return filters
        name, revision = split_revision(filters.voice)
        try:
            voices = self._library.seen_by(filters.caller).voices
            voice = await to_thread.run_sync(voices.get, name)
        except NotFound:
            return filters  # a deleted voice, or clip, or random
        return replace(filters, voice=voice.id if revision is None else f"{voice.id}@{revision}")

    async def page(self, filters: TakeFilter, limit: int, after: str | None = None) -> TakePage:
        """Stored and unstored takes by time. Raises NotFound if ``after`` is gone."""
        await self._settle()
        return await to_thread.run_sync(partial(self._page, self._recent.list(filters.caller), filters, limit, after))

    async def get(self, take_id: str, owner_filter: str | None) -> TakeJson:
        """A take with all details. Raises NotFound."""
        try:
            take = await self.stored_take(take_id, owner_filter)
        except (NotFound, InProgress):
            return await to_thread.run_sync(listed_json, self._recent.get(take_id, owner_filter), None)
        return await to_thread.run_sync(whole_json, take, self._library.seen_by(owner_filter))

    async def stored_take(self, take_id: str, owner_filter: str | None) -> Take:
        """A take of the library. Raises NotFound, InProgress."""
        self._check(take_id, owner_filter)
        await self._settle(take_id)
        return await to_thread.run_sync(self._library.takes.get, take_id, owner_filter)

    async def sound(self, take_id: str, owner_filter: str | None) -> tuple[Take, Path]:
        """A take and its audio file. Raises NotFound without one, InProgress."""
        take = await self.stored_take(take_id, owner_filter)
        path = self._library.files.path(take.audio) if take.audio else None
        if path is None or not await to_thread.run_sync(path.exists):
            raise NotFound(
                f"the audio of take {take_id} is not in the library; generate it again", "take_id", "no_audio"
            )
        return take, path

    async def sounds(self, filters: TakeFilter, limit: int) -> list[tuple[Take, Path]]:
        """The newest takes that have audio, with its file."""
        await self._settle()

        def read() -> list[tuple[Take, Path]]:
            takes = self._library.takes.page(filters, limit)
            files = [(take, self._library.files.path(take.audio)) for take in takes if take.audio]
            return [(take, path) for take, path in files if path.exists()]

        return await to_thread.run_sync(read)

    async def star(self, take_id: str, starred: bool, owner_filter: str | None) -> TakeJson:
        """Star or unstar a take. Raises NotFound, InProgress."""
        await self.stored_take(take_id, owner_filter)
        take = await to_thread.run_sync(self._library.takes.star, take_id, starred, owner_filter)
        return await to_thread.run_sync(whole_json, take, self._library.seen_by(owner_filter))

    async def delete(self, take_id: str, owner_filter: str | None) -> float:
        """Delete a take and return the seconds for which it can be restored: 0 if it was not stored.

        Raises NotFound, InProgress.
        """
        self._check(take_id, owner_filter)
        await self._settle(take_id)
        deleted = await to_thread.run_sync(self._library.takes.delete, TakeFilter(ids=(take_id,), caller=owner_filter))
        if not deleted:
            self._recent.get(take_id, owner_filter)
        self._recent.drop(take_id)
        return self.undo_seconds if deleted else 0

    async def count(self, filters: TakeFilter) -> int:
        """Number of stored takes that match."""
        await self._settle()
        return await to_thread.run_sync(self._library.takes.count, filters)

    async def delete_all(self, filters: TakeFilter) -> list[str]:
        """Delete matching takes, at most as many as the library allows at once, and return their ids."""
        await self._settle()
        deleted = await to_thread.run_sync(self._library.takes.delete, filters)
        for take_id in deleted:
            self._recent.drop(take_id)
        return deleted

    async def restore(self, ids: list[str], owner_filter: str | None) -> list[str]:
        """Restore deleted takes; returns the ids of those that were in the trash."""
        items: list[tuple[TrashKind, str]] = [("take", take_id) for take_id in ids]
        restored = await to_thread.run_sync(self._library.trash.restore, items, owner_filter)
        return [take_id for _, take_id in restored]

    def _check(self, take_id: str, owner_filter: str | None) -> None:
        """Raises InProgress for a take that is queued or being generated."""
        try:
            ended = self._recent.get(take_id, owner_filter).ended
        except NotFound:
            return
        if not ended:
            raise InProgress(f"the take {take_id} is still being generated; try again when it has ended", "take_id")

    async def _settle(self, take_id: str | None = None) -> None:
        if self._recorder is not None:
            await self._recorder.wait_until_written(take_id)

    def _label(self, voice: str | None, viewer: str | None) -> str | None:
        """The name of the voice with this id in recent takes."""
        try:
            return voice and self._library.seen_by(viewer).voices.get(voice).slug
        except NotFound:
            return voice

    def _page(self, recent: list[Take], filters: TakeFilter, limit: int, after: str | None) -> TakePage:
        takes, label = self._library.takes, self._label(filters.voice, filters.caller)
        stored_ids = takes.numbers([take.id for take in recent])
        unstored = [take for take in recent if take.id not in stored_ids]
        preceding = takes.number_at([take.created for take in unstored])
        positions = {
            take.id: (number, True, take.created, take.id) for take, number in zip(unstored, preceding, strict=True)
        }
        end = None if after is None else self._position_of(after, positions)
        # An unstored take has the number of the next stored one.
        page = takes.page(filters, limit + 1, before=None if end is None else end[0] + end[1])
        numbers = takes.numbers([take.id for take in page])
        entries: list[tuple[_Position, Take]] = [((numbers[take.id], False, 0.0, ""), take) for take in page]
        entries += [(positions[take.id], take) for take in unstored if _matches(take, filters, label)]
        entries = sorted(
            (entry for entry in entries if end is None or entry[0] < end), key=lambda entry: entry[0], reverse=True
        )
        data = [listed_json(take, None if position[1] else self._library) for position, take in entries[:limit]]
        last_id = str(data[-1]["id"]) if data else None
        data.sort(key=lambda take: cast(int, take["created"]), reverse=True)
        return TakePage(data, last_id, len(entries) > limit)

    def _position_of(self, take_id: str, positions: Mapping[str, _Position]) -> _Position:
        """Raises NotFound."""
        number = self._library.takes.numbers([take_id]).get(take_id)
        if take_id not in positions and number is None:
            raise NotFound(f"there is no take {take_id[:80]!r}", "after")
        return positions.get(take_id, (number or 0, False, 0.0, ""))


_Position = tuple[int, bool, float, str]
"""A take's position among all; larger is newer. An unstored take comes right after the newest stored take that began
before it (whose number it has, marked as unstored), and among other unstored ones by its own time."""


def _matches(take: Take, filters: TakeFilter, label: str | None) -> bool:
    """Whether a take matches, as far as known without its text; ``label`` is the voice's."""
    return (
        not (filters.query.strip() or filters.starred)
        and (label is None or label in take.label.split(", "))
        and (filters.since is None or take.created >= filters.since)
        and (filters.until is None or take.created < filters.until)
        and (filters.ids is None or take.id in filters.ids)
    )


def without_starred(filters: TakeFilter) -> TakeFilter:
    """The same filter, without starred takes unless it selects by id: bulk deletion must not delete favourites."""
    return filters if filters.ids is not None or filters.starred else replace(filters, starred=False)
