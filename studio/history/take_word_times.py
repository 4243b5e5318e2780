"""When the words of a kept take are heard: found at the first request, and kept with the take."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

from anyio import to_thread

from studio.engine_host import EngineHost
from studio.errors import NoTimestamps
from studio.library import Library
from studio.library.takes.take import Take, Timed
from studio.speech.resume import made_by
from studio.speech.timing.timestamps import Unit, in_units, word_times
from studio.work.work_queue import WorkQueue


class TakeWordTimes:
    """Of the takes of this library. Used from one event loop."""

    def __init__(self, library: Library, host: EngineHost, queue: WorkQueue) -> None:
        """``queue``: in which the engine is asked."""
        self._takes, self._host, self._queue = library.takes, host, queue
        self._finding: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def get(self, take: Take, unit: Unit, caller: str) -> list[Timed]:
        """Its words or sentences, in seconds of the kept sound. Raises as `words`."""
        words = await self.words(take, caller)
        return await to_thread.run_sync(in_units, unit, take.text, "cast" in take.parameters, words)

    async def words(self, take: Take, caller: str) -> list[Timed]:
        """The first time costs the engine hundredths of the take's seconds.

        Raises NoTimestamps, QueueFull, NotReady, Unavailable, CannotAlign, EngineStopped.
        """
        async with self._finding.setdefault(take.id, asyncio.Lock()):  # requests at the same time get the same words
            kept = (await to_thread.run_sync(self._takes.word_times, [take.id])).get(take.id)
            if kept is None:
                async with self._queue.turn(caller):
                    kept = await self._find(take)
                await to_thread.run_sync(self._takes.keep_word_times, take.id, kept)
        return kept

    async def _find(self, take: Take) -> list[Timed]:
        codes = await to_thread.run_sync(self._takes.codes, take.id)
        if codes is None:
            raise NoTimestamps(f"the take {take.id} has no word times; regenerate it as a whole")
        engine = self._host.engine()
        if codes.made_by != made_by(engine.info):
            raise NoTimestamps(
                f"the take {take.id} was spoken by another model or codec than the one that is loaded "
                f"({codes.made_by}, not {made_by(engine.info)})"
            )
        speed = float(take.parameters.get("speed") or 1.0)
        return await word_times(engine, take.text, "cast" in take.parameters, codes.parts, speed)
