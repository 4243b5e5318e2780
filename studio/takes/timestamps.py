"""When the words of a kept take are heard: found when somebody asks for the first time, and kept with the take."""

from __future__ import annotations

import asyncio
from functools import partial
from weakref import WeakValueDictionary

from anyio import to_thread

from studio.engine_host import EngineHost
from studio.errors import NoTimestamps
from studio.library import Library, StoredTake
from studio.speech.continuing import made_by
from studio.speech.timing.timestamps import Unit, in_units, word_times
from studio.speech.timing.words import Timed
from studio.takes.history import History
from studio.work.work_queue import WorkQueue


class TakeTimes:
    """Of the takes of this history. Used from one event loop."""

    def __init__(self, history: History, library: Library, host: EngineHost, queue: WorkQueue) -> None:
        """``queue``: in which the engine is asked."""
        self._history, self._takes, self._host, self._queue = history, library.takes, host, queue
        self._finding: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def get(self, take_id: str, unit: Unit, sees: str | None, caller: str) -> tuple[str, list[Timed]]:
        """The text, and its times in seconds of the kept sound; the first time costs the engine hundredths of these.

        Raises NotFound, UnderWay, NoTimestamps, QueueFull, NotReady, Unavailable, CannotAlign, EngineStopped.
        """
        take = await self._history.stored(take_id, sees)
        async with self._finding.setdefault(take_id, asyncio.Lock()):  # who asks at the same time has the same words
            kept = await to_thread.run_sync(self._takes.word_times, take_id)
            if kept is None:
                async with self._queue.turn(caller):
                    kept = [(word.text, word.start, word.end) for word in await self._find(take)]
                await to_thread.run_sync(self._takes.keep_word_times, take_id, kept)
        words = [Timed(*word) for word in kept]
        times = await to_thread.run_sync(partial(in_units, unit, take.text, "cast" in take.parameters, words))
        return take.text, times

    async def _find(self, take: StoredTake) -> list[Timed]:
        codes = await to_thread.run_sync(self._takes.codes, take.id)
        if codes is None:
            raise NoTimestamps(f"the frames of the take {take.id} are not kept, and nothing tells when its words come")
        engine = self._host.engine()
        if codes.made_by != made_by(engine.info):
            raise NoTimestamps(
                f"the take {take.id} was spoken by another model or codec than the one that is loaded "
                f"({codes.made_by}, not {made_by(engine.info)})"
            )
        speed = float(take.parameters.get("speed") or 1.0)
        return await word_times(engine, take.text, "cast" in take.parameters, codes.parts, speed)
