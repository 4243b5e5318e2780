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
        lost: TakeJson = {outcome: self._outcomes.get(outcome, 0) for outcome in NOT_WHOLE}
        return lost | {"takes": retention.takes, "bytes": retention.bytes, "undo_seconds": self.undo_seconds}

    @property
    def undo_seconds(self) -> float:
        """Time for which a deleted take can be restored."""
        return self._library.trash.seconds

    async def by_id(self, wanted: TakeFilter) -> TakeFilter:
        """The same filter with the voice's id, so that renaming the voice does not matter."""
        if wanted.voice is None:
            return wanted
        name, revision = split_revision(wanted.voice)
        try:
            voices = self._library.seen_by(wanted.caller).voices
            voice = await to_thread.run_sync(voices.get, name)
        except NotFound:
            return wanted  # a deleted voice, or clip, or random
        return replace(wanted, voice=voice.id if revision is None else f"{voice.id}@{revision}")

    async def page(self, wanted: TakeFilter, limit: int, after: str | None = None) -> TakePage:
        """Stored and unstored takes by time. Raises NotFound if ``after`` is gone."""
        await self._settle()
        return await to_thread.run_sync(partial(self._page, self._recent.list(wanted.caller), wanted, limit, after))

    async def get(self, take_id: str, owner_filter: str | None) -> TakeJson:
        """A take with all details. Raises NotFound."""
        try:
            take = await self.stored(take_id, owner_filter)
        except (NotFound, InProgress):
            return await to_thread.run_sync(listed_json, self._recent.get(take_id, owner_filter), None)
        return await to_thread.run_sync(whole_json, take, self._library.seen_by(owner_filter))

    async def stored(self, take_id: str, owner_filter: str | None) -> Take:
        """A take of the library. Raises NotFound, InProgress."""
        self._check(take_id, owner_filter)
        await self._settle(take_id)
        return await to_thread.run_sync(self._library.takes.get, take_id, owner_filter)

    async def sound(self, take_id: str, owner_filter: str | None) -> tuple[Take, Path]:
        """A take and its audio file. Raises NotFound without one, InProgress."""
        take = await self.stored(take_id, owner_filter)
        path = self._library.files.path(take.audio) if take.audio else None
        if path is None or not await to_thread.run_sync(path.exists):
            raise NotFound(
                f"the audio of take {take_id} is not in the library; generate it again", "take_id", "no_audio"
            )
        return take, path

    async def sounds(self, wanted: TakeFilter, limit: int) -> list[tuple[Take, Path]]:
        """The newest takes that have audio, with its file."""
        await self._settle()

        def read() -> list[tuple[Take, Path]]:
            takes = self._library.takes.page(wanted, limit)
            files = [(take, self._library.files.path(take.audio)) for take in takes if take.audio]
            return [(take, path) for take, path in files if path.exists()]

        return await to_thread.run_sync(read)

    async def star(self, take_id: str, starred: bool, owner_filter: str | None) -> TakeJson:
        """Star or unstar a take. Raises NotFound, InProgress."""
        await self.stored(take_id, owner_filter)
        take = await to_thread.run_sync(self._library.takes.star, take_id, starred, owner_filter)
        return await to_thread.run_sync(whole_json, take, self._library.seen_by(owner_filter))

    async def delete(self, take_id: str, owner_filter: str | None) -> float:
        """Delete a take and return the seconds for which it can be restored: 0 if it was not stored.

        Raises NotFound, InProgress.
        """
        self._check(take_id, owner_filter)
        await self._settle(take_id)
        gone = await to_thread.run_sync(self._library.takes.delete, TakeFilter(ids=(take_id,), caller=owner_filter))
        if not gone:
            self._recent.get(take_id, owner_filter)
        self._recent.drop(take_id)
        return self.undo_seconds if gone else 0

    async def count(self, wanted: TakeFilter) -> int:
        """Number of stored takes that match."""
        await self._settle()
        return await to_thread.run_sync(self._library.takes.count, wanted)

    async def delete_all(self, wanted: TakeFilter) -> list[str]:
        """Delete matching takes, at most as many as the library allows at once, and return their ids."""
        await self._settle()
        gone = await to_thread.run_sync(self._library.takes.delete, wanted)
        for take_id in gone:
            self._recent.drop(take_id)
        return gone

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

    def _page(self, recent: list[Take], wanted: TakeFilter, limit: int, after: str | None) -> TakePage:
        takes, label = self._library.takes, self._label(wanted.voice, wanted.caller)
        stored = takes.numbers([take.id for take in recent])
        unstored = [take for take in recent if take.id not in stored]
        before = takes.number_at([take.created for take in unstored])
        places = {take.id: (number, True, take.created, take.id) for take, number in zip(unstored, before, strict=True)}
        end = None if after is None else self._place_of(after, places)
        # An unstored take has the number of the next stored one.
        page = takes.page(wanted, limit + 1, before=None if end is None else end[0] + end[1])
        numbers = takes.numbers([take.id for take in page])
        entries: list[tuple[_Place, Take]] = [((numbers[take.id], False, 0.0, ""), take) for take in page]
        entries += [(places[take.id], take) for take in unstored if _fits(take, wanted, label)]
        entries = sorted(
            (entry for entry in entries if end is None or entry[0] < end), key=lambda entry: entry[0], reverse=True
        )
        data = [listed_json(take, None if place[1] else self._library) for place, take in entries[:limit]]
        last = str(data[-1]["id"]) if data else None
        data.sort(key=lambda take: cast(int, take["created"]), reverse=True)
        return TakePage(data, last, len(entries) > limit)

    def _place_of(self, take_id: str, places: Mapping[str, _Place]) -> _Place:
        """Raises NotFound."""
        number = self._library.takes.numbers([take_id]).get(take_id)
        if take_id not in places and number is None:
            raise NotFound(f"there is no take {take_id[:80]!r}", "after")
        return places.get(take_id, (number or 0, False, 0.0, ""))


_Place = tuple[int, bool, float, str]
"""A take's position among all; larger is newer. An unstored take comes right after the newest stored take that began
before it (whose number it has, marked as unstored), and among other unstored ones by its own time."""


def _fits(take: Take, wanted: TakeFilter, label: str | None) -> bool:
    """Whether a take matches, as far as known without its text; ``label`` is the voice's."""
    return (
        not (wanted.query.strip() or wanted.starred)
        and (label is None or label in take.label.split(", "))
        and (wanted.since is None or take.created >= wanted.since)
        and (wanted.until is None or take.created < wanted.until)
        and (wanted.ids is None or take.id in wanted.ids)
    )


def without_starred(wanted: TakeFilter) -> TakeFilter:
    """The same filter, without starred takes unless it selects by id: bulk deletion must not delete favourites."""
    return wanted if wanted.ids is not None or wanted.starred else replace(wanted, starred=False)
