"""The replicas of a fleet: which are up, how loaded they are, which may have failed, and which one takes a voice."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import time
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from engine import EngineInfo, EngineStats, EngineStopped, Utterance
from fleet.replica import Item

log = logging.getLogger(__name__)

ANSWER_SECONDS = 2.0
"""A replica that takes longer to report its stats gets no new takes until it answers."""
ROUND_SECONDS = 1.0  # interval between requests for stats
POLL_TIMEOUT_SECONDS = 20.0
"""Timeout of a request for stats; late answers count, as on a busy machine all may be late."""
PATIENCE_SECONDS = 60.0  # seconds for which work waits for an available replica
HOMES = 2  # home replicas of a voice: the second takes over when the first is busy or down
LEAST_BOUND = 2.0
OVER_MEAN = 1.25
"""A home serves its voices while its load is below this multiple of the mean, or below LEAST_BOUND."""
UP: set[str] = set()
"""Names of the replicas that are up; Ray Serve's router in this process keeps it current."""


class ReplicaLost(Exception):
    """A replica has stopped, or does not answer."""


class Stream(Protocol):
    """A take streamed from a replica. Raises the engine's errors, ReplicaLost, and StopAsyncIteration."""

    def __anext__(self) -> Any: ...

    def __aiter__(self) -> AsyncIterator[Item]: ...

    def cancel(self) -> None:
        """Cancel the take at the replica; dropping the stream does not."""


class Transport(Protocol):
    """The connection to the replicas. Used from one event loop."""

    def names(self) -> Collection[str]:
        """Names of the replicas that are up."""

    def open(self, replica: str, utterance: Utterance, may_wait: bool) -> Stream:
        """Start a take. Without ``may_wait``, a replica without a free row raises EngineFull."""

    async def call(self, replica: str, method: str, *arguments: object) -> Any:
        """Call a method of a replica. Raises the errors of the method, and ReplicaLost."""

    async def close(self) -> None: ...


@dataclass(slots=True)
class Member:
    """A replica with the same model as the others."""

    info: EngineInfo
    stats: EngineStats = field(default_factory=lambda: EngineStats(0, 0, 0, 0, 0, 0.0))
    open: int = 0  # takes and clips of this process in progress
    other_takes: int = 0  # takes of other processes in progress at the last stats
    is_silent: bool = False
    requested_at: float = 0.0
    last_message_at: float = 0.0

    @property
    def load(self) -> float:
        return self.open + self.other_takes

    @property
    def silent_seconds(self) -> float:
        """Seconds since the last request for stats or the last message."""
        return time.monotonic() - max(self.requested_at, self.last_message_at)


class Membership:
    """The members of the fleet. Used from one event loop; `members` and `refused` from any thread."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._members: dict[str, Member] = {}
        self._model: tuple[str, EngineInfo] | None = None  # the first member: the others must match it
        self._refused: dict[str, str] = {}
        self._polls: dict[str, asyncio.Task[None]] = {}
        self._change = asyncio.Event()
        self._random = random.Random()
        self.last_message_at = time.monotonic()  # time of the last message from any replica

    @property
    def members(self) -> dict[str, Member]:
        """A copy of the members by name."""
        return dict(self._members)

    @property
    def refused(self) -> dict[str, str]:
        """A copy: replicas that are up but not used, and why."""
        return dict(self._refused)

    def choose(self, voice: bytes | None, excluded: Collection[str] = ()) -> str | None:
        """The replica for a take: up, responsive and not in ``excluded``; None if there is none.

        Replicas with a free row are preferred.
        """
        names = self.transport.names()
        loads = {name: member.load for name, member in self._members.items() if name in names and not member.is_silent}
        full_names = {name for name in loads if not self.has_room(name)}
        return choose(voice, loads, full_names.union(excluded), self._random) or choose(
            voice, loads, excluded, self._random
        )

    def has_room(self, name: str) -> bool:
        """Whether it seems to have a free row."""
        member = self._members.get(name)
        return member is not None and member.load < member.info.max_rows

    def mark_full(self, name: str) -> None:
        """Record that all its rows are in use, some of them by other processes."""
        if member := self._members.get(name):
            member.other_takes = max(member.other_takes, member.info.max_rows - member.open)

    @contextmanager
    def working(self, name: str) -> Iterator[None]:
        """Counts a piece of work at a replica while it runs."""
        member = self._members[name]
        member.open += 1
        try:
            yield
        finally:
            member.open -= 1

    def suspect(self, name: str) -> None:
        """Send it no more work until it answers."""
        if name in self._members:
            self._members[name].is_silent = True

    def mark_alive(self, name: str) -> None:
        """Record a message from it."""
        self.last_message_at = time.monotonic()
        if member := self._members.get(name):
            member.last_message_at = self.last_message_at
            if member.is_silent:
                member.is_silent = False
                self._change.set()

    async def wait_for_replica(self, voice: bytes | None, excluded: set[str], deadline: float) -> str:
        """Like `choose`, but waits for a replica until ``deadline`` (monotonic clock).

        ``excluded`` is cleared if no other replica is left, as a silent one may have answered since. Raises
        EngineStopped after the deadline.
        """
        while (name := self.choose(voice, excluded)) is None:
            if time.monotonic() > deadline:
                raise EngineStopped(f"no replica was available for {PATIENCE_SECONDS:g} s")
            excluded.clear()
            self._change.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._change.wait(), ROUND_SECONDS)
        return name

    async def call(self, name: str, method: str, *arguments: object) -> Any:
        """Like Transport.call, for long calls: also raises ReplicaLost when the replica stops answering."""
        call_task = asyncio.ensure_future(self.transport.call(name, method, *arguments))
        try:
            while not (await asyncio.wait({call_task}, timeout=ROUND_SECONDS))[0]:
                if name not in self._members or self._members[name].is_silent:
                    raise ReplicaLost("it no longer answers")
            return call_task.result()
        finally:
            call_task.cancel()

    async def watch(self) -> None:
        """Request stats from all replicas regularly; a silent one does not delay the others."""
        while True:
            self._collect_polls()
            self._start_polls()
            await asyncio.sleep(ROUND_SECONDS)

    async def request_stats(self, seconds: float | None = None) -> None:
        """Request stats once, and wait ``seconds`` (default ANSWER_SECONDS) for the answers; late ones still count."""
        self._start_polls()
        if self._polls:
            await asyncio.wait(self._polls.values(), timeout=ANSWER_SECONDS if seconds is None else seconds)
        self._collect_polls()

    def _start_polls(self) -> None:
        """Add new replicas, drop stopped ones, and poll those that have answered the last poll."""
        names = set(self.transport.names())
        for name in self._members.keys() - names:
            if not self._members[name].open:
                del self._members[name]
        self._refused = {name: reason for name, reason in self._refused.items() if name in names}
        for name in sorted(names - self._refused.keys() - self._polls.keys()):
            self._polls[name] = asyncio.create_task(self._poll(name))
            if member := self._members.get(name):
                member.requested_at = time.monotonic()

    def _collect_polls(self) -> None:
        """Suspect replicas whose answers are late. Raises unexpected errors of polls."""
        for name, poll in list(self._polls.items()):
            if poll.done():
                del self._polls[name]
                poll.result()
            elif (member := self._members.get(name)) and member.silent_seconds > ANSWER_SECONDS:
                self.suspect(name)

    async def close(self) -> None:
        """Cancel open polls and close the transport."""
        for poll in self._polls.values():
            poll.cancel()
        await asyncio.gather(*self._polls.values(), return_exceptions=True)
        await self.transport.close()

    async def _poll(self, name: str) -> None:
        try:
            if name not in self._members:
                await self._add_member(name)
                return
            member = self._members[name]
            own_takes = member.open
            stats = await asyncio.wait_for(self.transport.call(name, "stats"), POLL_TIMEOUT_SECONDS)
        except (TimeoutError, ReplicaLost, EngineStopped) as error:
            self.suspect(name)
            log.info("replica %s does not answer: %s", name, error or "timed out")
            return
        self.mark_alive(name)
        member.stats = stats
        member.other_takes = max(0, stats.running + stats.waiting - own_takes)

    async def _add_member(self, name: str) -> None:
        info = await asyncio.wait_for(self.transport.call(name, "info"), POLL_TIMEOUT_SECONDS)
        first_name, expected = self._model = self._model or (name, info)
        if difference := difference_between(expected, info):
            self._refused[name] = f"the replicas {first_name} and {name} differ: {difference}"
            log.error("replica %s is not used: %s", name, difference)
            return
        self._members[name] = Member(info, last_message_at=time.monotonic())
        self._change.set()


def difference_between(info: EngineInfo, other_info: EngineInfo) -> str | None:
    """The first difference that would change a take; None if there is none."""
    for label, field_name in (
        ("checkpoint", "fingerprint"),
        ("codec", "codec_fingerprint"),
        ("dtype", "dtype"),
        ("kind of weights", "weights"),
        ("context", "max_context"),
    ):
        value, other_value = getattr(info, field_name), getattr(other_info, field_name)
        if value != other_value:
            advice = "set the same STUDIO_MODEL, STUDIO_WEIGHTS and STUDIO_MAX_CONTEXT"
            return f"its {label} is {other_value}, but {value} at the others: {advice} for all"
    return None


def choose(
    voice: bytes | None, loads: Mapping[str, float], excluded: Collection[str] = (), ties: random.Random | None = None
) -> str | None:
    """The replica for a take; None if all are in ``excluded``.

    ``voice`` None has no home. ``loads`` are the running and queued takes by replica. Ties are broken at random, so
    that callers with the same loads do not all choose the same replica.
    """
    candidates = {name: load for name, load in loads.items() if name not in excluded}
    if not candidates:
        return None
    load_limit = max(LEAST_BOUND, OVER_MEAN * sum(candidates.values()) / len(candidates))
    for home in homes(voice, candidates) if voice is not None else ():
        if candidates[home] < load_limit:
            return home
    lowest_load = min(candidates.values())
    return (ties or random).choice(sorted(name for name, load in candidates.items() if load == lowest_load))


def homes(voice: bytes, replicas: Iterable[str]) -> list[str]:
    """A voice's homes by rendezvous hashing: equal in every process; a lost replica moves only its own voices."""
    return sorted(replicas, key=lambda name: (_weight(voice, name), name), reverse=True)[:HOMES]


def _weight(voice: bytes, replica: str) -> bytes:
    return hashlib.blake2b(voice + replica.encode(), digest_size=8).digest()
