"""The active, recent and stored takes of a caller: list, star, delete and restore them."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from studio.errors import DamagedAudio, InProgress, NotFound
from studio.library import Library, TakeFilter
from studio.library.names import split_revision
from studio.library.take import NewTake, Take
from studio.library.take_repository import EVERY
from studio.library.trash import TrashKind
from studio.speech.recorder import NOT_WHOLE, Recorder
from studio.speech.register import Register
from studio.takes.take_json import listed_json, removal_json, whole_json
from studio.work import read, write

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

    def __init__(self, library: Library, register: Register, recorder: Recorder | None) -> None:
        self._library = library
        self._register = register
        self._recorder = recorder

    async def retention_json(self, caller: str) -> TakeJson | None:
        """The retention, the takes of a caller that it removes next, the days of the trash, and the number of takes
        since the start that could not be stored, or only without audio; None if no takes are stored."""
        if self._recorder is None:
            return None
        retention = self._recorder.retention
        limits = retention.takes, retention.bytes, retention.owner(caller)
        removed_next = await read(self._library.takes.removed_next, *limits)
        counts: TakeJson = {outcome: self._register.outcomes[outcome] for outcome in NOT_WHOLE}
        return counts | {
            "takes": retention.takes,
            "bytes": retention.bytes,
            "undo_seconds": self.undo_seconds,
            "removes_next": [removal_json(kind, take) for kind, take in removed_next.items()],
        }

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
            voice = await read(voices.get, name)
        except NotFound:
            return filters  # a deleted voice, or clip, or random
        return replace(filters, voice=voice.id if revision is None else f"{voice.id}@{revision}")

    async def page(self, filters: TakeFilter, limit: int, after: str | None = None) -> TakePage:
        """Active takes and stored ones, newest first. Raises NotFound if ``after`` is gone."""
        await self._settle()
        active = self._register.active(filters.caller, with_background=False)[::-1]
        waiting = {new_take.take.id: new_take for new_take in self._all_waiting(filters.caller)[::-1]}
        seen = None
        if after is not None:
            with suppress(NotFound):
                seen = self._register.get(after, filters.caller)
        return await read(self._page, active, waiting, filters, limit, after, seen)

    async def get(self, take_id: str, owner_filter: str | None) -> TakeJson:
        """A take with all details. Raises NotFound."""
        try:
            take = await self.stored_take(take_id, owner_filter)
        except (NotFound, InProgress):
            library = self._library.seen_by(owner_filter)
            if new_take := self._waiting(take_id, owner_filter):
                return await read(lambda: whole_json(_with_audio(new_take), library, is_stored=False))
            return await read(listed_json, self._register.get(take_id, owner_filter), None)
        return await read(whole_json, take, self._library.seen_by(owner_filter))

    async def stored_take(self, take_id: str, owner_filter: str | None) -> Take:
        """A take of the library. Raises NotFound, InProgress."""
        self._check(take_id, owner_filter)
        await self._settle(take_id)
        waits = self._waiting(take_id, owner_filter) is not None
        try:
            return await read(self._library.takes.get, take_id, owner_filter)
        except NotFound:
            if waits:
                why = "the library's disk is full or busy; it can be played, and all else works once it is stored"
                raise InProgress(f"the take {take_id} is not stored yet, because {why}", "take_id") from None
            raise

    async def playable(self, take_id: str, owner_filter: str | None) -> tuple[Take, Path | bytes]:
        """A take and its audio file, in memory if it waits for the disk. Raises NotFound without one, InProgress."""
        try:
            return await self.sound(take_id, owner_filter)
        except InProgress:
            new_take = self._waiting(take_id, owner_filter)
            if new_take is None or not new_take.audio:
                raise
            return await read(lambda: (_with_audio(new_take), b"".join(new_take.audio)))

    async def sound(self, take_id: str, owner_filter: str | None) -> tuple[Take, Path]:
        """A take and its audio file. Raises NotFound without one, InProgress, DamagedAudio."""
        take = await self.stored_take(take_id, owner_filter)
        path = await read(self._file, take)
        if path is None:
            message = f"the audio of take {take_id} is not in the library; generate it again"
            raise NotFound(message, "take_id", "no_audio")
        return take, path

    def _file(self, take: Take) -> Path | None:
        """The audio file of a take, None without one. Blocking. Raises DamagedAudio as `AudioFiles.checked` does."""
        if not take.audio or not self._library.files.path(take.audio).exists():
            return None
        try:
            return self._library.files.checked(take.audio, take.size)
        except DamagedAudio as error:
            remedy = "generate it again, or restore a backup"
            raise DamagedAudio(f"the audio of the take {take.id} is damaged: {remedy}") from error

    async def sounds(self, filters: TakeFilter, limit: int) -> list[tuple[Take, Path]]:
        """The newest takes that have audio, with its file. Raises DamagedAudio."""
        await self._settle()

        def find() -> list[tuple[Take, Path]]:
            found, after = list[tuple[Take, Path]](), None
            while len(found) < limit and (takes := self._library.takes.page(filters, limit, after)):
                found += [(take, path) for take in takes if (path := self._file(take))]
                after = takes[-1].id
            return found[:limit]

        return await read(find)

    async def star(self, take_id: str, starred: bool, owner_filter: str | None) -> TakeJson:
        """Star or unstar a take. Raises NotFound, InProgress."""
        await self.stored_take(take_id, owner_filter)
        library = self._library.seen_by(owner_filter)
        return await write(lambda: whole_json(self._library.takes.star(take_id, starred, owner_filter), library))

    async def delete(self, take_id: str, owner_filter: str | None) -> float:
        """Delete a take and return the seconds for which it can be restored: 0 if it was not stored.

        Raises NotFound, InProgress.
        """
        self._check(take_id, owner_filter)
        await self._settle(take_id)
        if self._waiting(take_id, owner_filter) and self._recorder and await self._recorder.withdraw([take_id]):
            self._register.forget(take_id)
            return 0
        deleted = await write(self._library.takes.delete, TakeFilter(ids=(take_id,), caller=owner_filter))
        if not deleted:
            self._register.get(take_id, owner_filter)
        self._register.forget(take_id)
        return self.undo_seconds if deleted else 0

    async def count(self, filters: TakeFilter) -> int:
        """Number of takes that match, stored or waiting for the disk."""
        await self._settle()
        stored = await read(self._library.takes.count, filters)
        return stored + len(self._all_waiting(filters.caller, filters))

    async def delete_all(self, filters: TakeFilter) -> tuple[list[str], float]:
        """Delete matching takes, at most as many as the library allows at once. Returns their ids, and the seconds for
        which all can be restored: 0 if some waited for the disk, which are not written."""
        await self._settle()
        waiting = [new_take.take.id for new_take in self._all_waiting(filters.caller, filters)]
        deleted = await write(self._library.takes.delete, filters)  # first: a refusal must lose no take
        withdrawn = await self._recorder.withdraw(waiting) if self._recorder else []
        for take_id in (*withdrawn, *deleted):
            self._register.forget(take_id)
        return withdrawn + deleted, 0 if withdrawn else self.undo_seconds

    async def restore(self, ids: list[str], owner_filter: str | None) -> list[str]:
        """Restore deleted takes; returns the ids of those that were in the trash."""
        items: list[tuple[TrashKind, str]] = [("take", take_id) for take_id in ids]
        restored = await write(self._library.trash.restore, items, owner_filter)
        return [take_id for _, take_id in restored]

    def _check(self, take_id: str, owner_filter: str | None) -> None:
        """Raises InProgress for a take that is queued or being generated."""
        try:
            ended = self._register.get(take_id, owner_filter).ended
        except NotFound:
            return
        if not ended:
            raise InProgress(f"the take {take_id} is still being generated; try again when it has ended", "take_id")

    def _waiting(self, take_id: str, owner_filter: str | None) -> NewTake | None:
        """A take that waits for the disk."""
        return next((waiting for waiting in self._all_waiting(owner_filter) if waiting.take.id == take_id), None)

    def _all_waiting(self, owner_filter: str | None, filters: TakeFilter = EVERY) -> list[NewTake]:
        waiting = self._recorder.waiting() if self._recorder else []
        own = [new_take for new_take in waiting if owner_filter in (None, new_take.take.caller)]
        return [new_take for new_take in own if _matches(new_take.take, filters)]

    async def _settle(self, take_id: str | None = None) -> None:
        if self._recorder is not None:
            await self._recorder.wait_until_written(take_id)

    def _page(
        self,
        active: list[Take],
        waiting: dict[str, NewTake],
        filters: TakeFilter,
        limit: int,
        after: str | None,
        seen: Take | None,
    ) -> TakePage:
        """``waiting``: takes that wait for the disk, newest first. ``seen``: the take ``after``, if it is or was an
        active one."""
        takes = self._library.takes
        active = active + [new_take.take for new_take in waiting.values()]
        stored_ids = takes.numbers([take.id for take in active] + ([seen.id] if seen else []))
        if seen is not None and seen.id not in stored_ids:  # else it was stored since, as the newest
            active, after = [take for take in active if take.created < seen.created], None
            if seen.ended:  # without audio, or removed since
                filters = replace(filters, until=min(filters.until or seen.created, seen.created))
        elif after is not None:
            active = []
        active = [take for take in active if take.id not in stored_ids and _matches(take, filters)]
        stored = takes.page(filters, limit + 1, after)
        shown = [_with_audio(waiting[take.id]) if take.id in waiting else take for take in active[: limit + 1]]
        entries = [listed_json(take, None) for take in shown]
        entries += [listed_json(take, self._library) for take in stored[: limit + 1 - len(entries)]]
        data = entries[:limit]
        last_id = str(data[-1]["id"]) if data else None
        data.sort(key=lambda take: cast(int, take["created"]), reverse=True)
        return TakePage(data, last_id, len(entries) > limit)


def _with_audio(new_take: NewTake) -> Take:
    """The record of a take that waits for the disk, as it will be stored; it cannot be continued yet. Blocking:
    milliseconds for a minute of audio."""
    digest = hashlib.sha256()
    for piece in new_take.audio:
        digest.update(piece)
    size = sum(map(len, new_take.audio))
    return replace(new_take.take, audio=digest.hexdigest() if size else "", size=size, can_continue=False)


def _matches(take: Take, filters: TakeFilter) -> bool:
    """Whether an active take matches; words, voices and stars are known of stored ones only."""
    return (
        not (filters.query.strip() or filters.starred or filters.voice)
        and (filters.since is None or take.created >= filters.since)
        and (filters.until is None or take.created < filters.until)
        and (filters.ids is None or take.id in filters.ids)
    )


def without_starred(filters: TakeFilter) -> TakeFilter:
    """The same filter, without starred takes unless it selects by id: bulk deletion must not delete favourites."""
    return filters if filters.ids is not None or filters.starred else replace(filters, starred=False)
