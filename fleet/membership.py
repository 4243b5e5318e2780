"""What a fleet knows of its replicas: which there are, how loaded, which of them are not to be trusted for now."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from engine import EngineInfo, EngineStats, EngineStopped, Utterance
from fleet.replica import Item
from fleet.routing import choose

log = logging.getLogger(__name__)

ANSWER_SECONDS = 2.0
"""A replica that is asked how it is and says nothing for longer gets no new takes until it does."""
ROUND_SECONDS = 1.0
"""Between two questions how they are."""
QUESTION_SECONDS = 20.0
"""A late answer still counts: on a busy machine all may be late. After so long the question is asked again."""
PATIENCE_SECONDS = 60.0
"""How long work waits for a replica to be there."""


UP: set[str] = set()
"""The names of the replicas that Ray Serve says are up: its router in this process notes them here."""


class ReplicaLost(Exception):
    """A replica is gone, or says nothing any more."""


class Stream(Protocol):
    """A take on its way from a replica. Raises what the engine raises, ReplicaLost, and StopAsyncIteration."""

    def __anext__(self) -> Any: ...

    def __aiter__(self) -> AsyncIterator[Item]: ...

    def cancel(self) -> None:
        """Have the replica end the take; a stream that is merely dropped speaks on."""


class Transport(Protocol):
    """The way to the replicas. Used from one event loop."""

    def names(self) -> Collection[str]:
        """Of the replicas that are up."""

    def open(self, replica: str, utterance: Utterance, may_wait: bool) -> Stream:
        """Unless it may wait for a row, the take of a replica that has none free raises EngineFull."""

    async def call(self, replica: str, method: str, *arguments: object) -> Any:
        """What a method of the replica returns. Raises what it raises, ReplicaLost."""

    async def close(self) -> None: ...


@dataclass(slots=True)
class Member:
    """A replica whose engine is like those of the others."""

    info: EngineInfo
    stats: EngineStats = field(default_factory=lambda: EngineStats(0, 0, 0, 0, 0, 0.0))
    open: int = 0
    """Takes and clips of this process that it works at."""
    others: int = 0
    """Takes of other processes that it worked at when it was last asked."""
    is_silent: bool = False
    asked_at: float = 0.0
    heard_at: float = 0.0

    @property
    def load(self) -> float:
        return self.open + self.others

    @property
    def silent_seconds(self) -> float:
        """Since it was asked, or has last said something."""
        return time.monotonic() - max(self.asked_at, self.heard_at)


class Membership:
    """The members of the fleet. Used from one event loop; `names` and `stats` of any thread."""

    def __init__(self, line: Transport) -> None:
        self.line = line
        self._members: dict[str, Member] = {}
        self._model: tuple[str, EngineInfo] | None = None  # who was met first: the others must be like it
        self._refused: dict[str, str] = {}
        self._questions: dict[str, asyncio.Task[None]] = {}
        self._change = asyncio.Event()
        self._random = random.Random()
        self.heard_at = time.monotonic()
        """When a replica last said something of itself."""

    @property
    def members(self) -> dict[str, Member]:
        """A copy: those that are up and were asked who they are."""
        return dict(self._members)

    @property
    def refused(self) -> dict[str, str]:
        """A copy: those that are up and get nothing to do, and why."""
        return dict(self._refused)

    def choose(self, voice: bytes | None, avoid: Collection[str] = ()) -> str | None:
        """Where a take should go: to a replica that is up, answers and is not to be avoided; None if there is none.

        While one of them has a free row, to such a one.
        """
        up = self.line.names()
        loads = {name: member.load for name, member in self._members.items() if name in up and not member.is_silent}
        full = {name for name in loads if not self.has_room(name)}
        return choose(voice, loads, full.union(avoid), self._random) or choose(voice, loads, avoid, self._random)

    def has_room(self, name: str) -> bool:
        """Whether a row of it seems to be free."""
        member = self._members.get(name)
        return member is not None and member.load < member.info.max_rows

    def took_its_rows(self, name: str) -> None:
        """It said that all are taken: takes of other processes have what this one has not."""
        if member := self._members.get(name):
            member.others = max(member.others, member.info.max_rows - member.open)

    @contextmanager
    def working(self, name: str) -> Iterator[None]:
        """Counts a piece of work at a replica while it goes on."""
        member = self._members[name]
        member.open += 1
        try:
            yield
        finally:
            member.open -= 1

    def suspect(self, name: str) -> None:
        """Give it nothing more until it has said something."""
        if name in self._members:
            self._members[name].is_silent = True

    def heard(self, name: str) -> None:
        """It said something, of itself or of a take: it lives."""
        self.heard_at = time.monotonic()
        if member := self._members.get(name):
            member.heard_at = self.heard_at
            if member.is_silent:
                member.is_silent = False
                self._change.set()

    async def wait_for_one(self, voice: bytes | None, avoid: set[str], until: float) -> str:
        """As `choose`, but until that time of the monotonic clock it waits for one to come.

        ``avoid`` is forgotten when nothing else is left: one that fell silent and has answered since will do. Raises
        EngineStopped when none comes.
        """
        while (name := self.choose(voice, avoid)) is None:
            if time.monotonic() > until:
                raise EngineStopped(f"no replica was there for {PATIENCE_SECONDS:g} s")
            avoid.clear()
            self._change.clear()
            change = asyncio.create_task(_is_set(self._change))
            await asyncio.wait({change}, timeout=ROUND_SECONDS)
            change.cancel()
        return name

    async def call(self, name: str, method: str, *arguments: object) -> Any:
        """As Transport.call, for what may take long: raises ReplicaLost also once the replica has fallen silent."""
        calling = asyncio.ensure_future(self.line.call(name, method, *arguments))
        try:
            while not (await asyncio.wait({calling}, timeout=ROUND_SECONDS))[0]:
                if name not in self._members or self._members[name].is_silent:
                    raise ReplicaLost("it answers nothing any more")
            return calling.result()
        finally:
            calling.cancel()

    async def watch(self) -> None:
        """Ask them all how they are, again and again. One that says nothing keeps none of the others waiting."""
        while True:
            self._hear_answers()
            self._put_questions()
            await asyncio.sleep(ROUND_SECONDS)

    async def ask(self, seconds: float | None = None) -> None:
        """Once, and wait so long for the answers, ANSWER_SECONDS unless told. Who takes longer may answer later."""
        self._put_questions()
        if self._questions:
            await asyncio.wait(self._questions.values(), timeout=ANSWER_SECONDS if seconds is None else seconds)
        self._hear_answers()

    def _put_questions(self) -> None:
        """Meet those that are new, forget those that are gone, ask those that have answered the last time."""
        up = set(self.line.names())
        for name in self._members.keys() - up:
            if not self._members[name].open:
                del self._members[name]
        self._refused = {name: why for name, why in self._refused.items() if name in up}
        for name in sorted(up - self._refused.keys() - self._questions.keys()):
            self._questions[name] = asyncio.create_task(self._ask(name))
            if member := self._members.get(name):
                member.asked_at = time.monotonic()

    def _hear_answers(self) -> None:
        """Suspect those that are late. Raises what no question should raise."""
        for name, question in list(self._questions.items()):
            if question.done():
                del self._questions[name]
                question.result()
            elif (member := self._members.get(name)) and member.silent_seconds > ANSWER_SECONDS:
                self.suspect(name)

    async def close(self) -> None:
        """End the questions that nobody has answered, and the line."""
        for question in self._questions.values():
            question.cancel()
        await asyncio.gather(*self._questions.values(), return_exceptions=True)
        await self.line.close()

    async def _ask(self, name: str) -> None:
        try:
            if name not in self._members:
                await self._meet(name)
                return
            member = self._members[name]
            known = member.open
            stats = await asyncio.wait_for(self.line.call(name, "stats"), QUESTION_SECONDS)
        except (TimeoutError, ReplicaLost, EngineStopped) as error:
            self.suspect(name)
            log.info("replica %s does not answer: %s", name, error or "no word within the limit")
            return
        self.heard(name)
        member.stats = stats
        member.others = max(0, stats.running + stats.waiting - known)

    async def _meet(self, name: str) -> None:
        info = await asyncio.wait_for(self.line.call(name, "info"), QUESTION_SECONDS)
        first, wanted = self._model = self._model or (name, info)
        if difference := unlike(wanted, info):
            self._refused[name] = f"the replicas {first} and {name} differ: {difference}"
            log.error("replica %s gets nothing to do: %s", name, difference)
            return
        self._members[name] = Member(info, heard_at=time.monotonic())
        self._change.set()


async def _is_set(event: asyncio.Event) -> None:
    await event.wait()


def unlike(one: EngineInfo, other: EngineInfo) -> str | None:
    """In which way two engines would not speak a take alike, with both named; None when they would."""
    for what, field_name in (
        ("checkpoint", "fingerprint"),
        ("codec", "codec_fingerprint"),
        ("dtype", "dtype"),
        ("kind of weights", "weights"),
        ("context", "max_context"),
    ):
        mine, theirs = getattr(one, field_name), getattr(other, field_name)
        if mine != theirs:
            same = "give all the same STUDIO_MODEL, STUDIO_WEIGHTS and STUDIO_MAX_CONTEXT"
            return f"its {what} is {theirs} and that of the others {mine}: {same}"
    return None
