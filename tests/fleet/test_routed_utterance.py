"""A take over replicas that die, stall, are full or send too little: no frame is lost, and each is cancelled once."""

from __future__ import annotations

import asyncio
import selectors
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine import AudioChunk, EngineFull, EngineStopped, InvalidUtterance, Utterance
from fleet import membership, routed_utterance
from fleet import replica as fleet_replica
from fleet.membership import Membership, homes
from fleet.routed_utterance import RoutedUtterance, voice_of
from tests.engine.speaking import until
from tests.fleet.fakes import INFO, FakeTransport, codes_of, utterance


@pytest.fixture(autouse=True)
async def _virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Virtual time jumps ahead while nothing can run: a busy machine causes no timeout."""
    loop = asyncio.get_running_loop()
    selector: selectors.BaseSelector = loop._selector  # type: ignore[attr-defined]
    select, now = selector.select, loop.time()

    def jump(timeout: float | None) -> Any:
        nonlocal now
        assert timeout is not None, "nothing is left that could happen"
        now += max(0.0, timeout)
        return select(0)

    monkeypatch.setattr(selector, "select", jump)
    monkeypatch.setattr(loop, "time", lambda: now)
    clock = SimpleNamespace(monotonic=lambda: now, perf_counter=lambda: now)
    for module in (membership, routed_utterance, fleet_replica):
        monkeypatch.setattr(module, "time", clock)


async def fleet(transport: FakeTransport) -> Membership:
    replicas = Membership(transport)
    await replicas.request_stats()
    return replicas


async def hear(replicas: Membership, what: Utterance) -> list[AudioChunk]:
    return [chunk async for chunk in RoutedUtterance(replicas, what).chunks()]


def codes(chunks: list[AudioChunk]) -> np.ndarray:
    return np.concatenate([chunk.codes for chunk in chunks], axis=1)


def home_of(transport: FakeTransport, voice: int) -> str:
    return homes(voice_of(utterance(voice=voice)) or b"", transport.engines)[0]


async def test_undisturbed_take_equals_the_engines() -> None:
    transport = FakeTransport()
    chunks = await hear(await fleet(transport), utterance(frames=7))
    assert np.array_equal(codes(chunks), codes_of(5, 0, 7))
    assert [chunk.first_frame for chunk in chunks] == [0, 2, 4, 6]
    assert chunks[-1].finish_reason == "length"
    assert [stream.cancels for stream in transport.opened] == [1]


@pytest.mark.parametrize("fault", ["dies", "stalls", "closes", "skips"])
@pytest.mark.parametrize("after", [0, 4, 8])
async def test_another_replica_continues_at_the_same_frame(fault: str, after: int) -> None:
    transport = FakeTransport()
    home = home_of(transport, 1)
    transport.faults[home] = (fault, after)
    chunks = await hear(await fleet(transport), utterance(frames=12, voice=1))
    assert np.array_equal(codes(chunks), codes_of(5, 0, 12))
    assert [chunk.first_frame for chunk in chunks] == list(range(0, 12, 2))
    assert chunks[-1].finish_reason == "length"
    assert [stream.replica for stream in transport.opened] == [home, ({"a", "b"} - {home}).pop()]
    assert [stream.cancels for stream in transport.opened] == [1, 1], "each is cancelled once"
    assert [chunk.resumed_at for chunk in chunks[after // 2 :]] == [after or None] * (6 - after // 2)
    resumed = transport.engines[transport.opened[1].replica].utterances[0]
    assert resumed.frames_so_far == after and resumed.max_frames == 12


async def test_timestamps_continue_after_a_change_of_replica() -> None:
    transport = FakeTransport()
    transport.faults[home_of(transport, 1)] = ("stalls", 4)
    chunks = await hear(await fleet(transport), utterance(frames=8, voice=1))
    assert chunks[0].timing.now == pytest.approx(0.3)
    stalled = routed_utterance.STALL_SECONDS
    assert chunks[-1].timing.now == pytest.approx(0.3 + stalled, abs=0.1), "the take's clock did not restart"
    assert {chunk.timing.admitted for chunk in chunks} == {chunks[0].timing.admitted}


async def test_silent_replica_gets_no_takes_until_it_answers() -> None:
    transport = FakeTransport()
    home = home_of(transport, 1)
    transport.faults[home] = ("stalls", 2)
    replicas = await fleet(transport)
    await hear(replicas, utterance(voice=1))
    transport.faults.clear()
    await hear(replicas, utterance(voice=1))
    assert [stream.replica == home for stream in transport.opened] == [True, False, False]
    transport.deaf.clear()
    await replicas.request_stats()
    await hear(replicas, utterance(voice=1))
    assert transport.opened[-1].replica == home


async def test_an_utterance_fails_after_three_replicas() -> None:
    transport = FakeTransport(4)
    transport.faults = dict.fromkeys(transport.engines, ("closes", 0))
    with pytest.raises(EngineStopped, match="3 replicas failed one after another, the last: its stream ended"):
        await hear(await fleet(transport), utterance())
    assert len({stream.replica for stream in transport.opened}) == 3
    assert [stream.cancels for stream in transport.opened] == [1, 1, 1]


async def test_successive_losses_of_replicas_do_not_end_a_progressing_take() -> None:
    transport = FakeTransport(6)
    transport.faults = dict.fromkeys("abcde", ("dies", 2))
    transport.up = {"a"}
    replicas = await fleet(transport)
    hearing = asyncio.create_task(hear(replicas, utterance(frames=12)))
    for name in "bcdef":  # each joins once the previous one has gone, as in an update
        await until(lambda: not transport.up)
        transport.up = {name}
        await replicas.request_stats()
    chunks = await hearing
    assert np.array_equal(codes(chunks), codes_of(5, 0, 12))
    assert [chunk.resumed_at for chunk in chunks] == [None, 2, 4, 6, 8, 10]


async def test_late_answer_makes_a_replica_available() -> None:
    transport = FakeTransport(1)
    replicas = await fleet(transport)
    transport.late_seconds = 1.5 * membership.ANSWER_SECONDS
    await replicas.request_stats(1.1 * membership.ANSWER_SECONDS)
    assert replicas.choose(None) is None
    await until(lambda: replicas.choose(None) == "a")


async def test_speaking_replica_counts_as_alive_without_answers() -> None:
    transport = FakeTransport(1)
    replicas = await fleet(transport)
    async with aclosing(RoutedUtterance(replicas, utterance()).chunks()) as chunks:
        await anext(chunks)
        replicas.suspect("a")
        assert replicas.choose(None) is None
        await anext(chunks)
        assert replicas.choose(None) == "a"


async def test_a_lone_replica_continues_once_it_answers() -> None:
    transport = FakeTransport(1)
    transport.faults["a"] = ("closes", 4)
    replicas = await fleet(transport)
    hearing = asyncio.create_task(hear(replicas, utterance()))
    await until(lambda: bool(transport.opened and transport.opened[0].cancels))
    transport.faults.clear()
    await replicas.request_stats()
    assert np.array_equal(codes(await hearing), codes_of(5, 0, 10))


async def test_lone_replica_may_pause_between_frames() -> None:
    transport = FakeTransport(1)
    transport.faults["a"] = ("pauses", 4)
    assert np.array_equal(codes(await hear(await fleet(transport), utterance())), codes_of(5, 0, 10))
    assert len(transport.opened) == 1


async def test_take_fails_if_no_replica_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routed_utterance, "PATIENCE_SECONDS", 0.0)
    transport = FakeTransport(1)
    transport.faults["a"] = ("dies", 4)
    with pytest.raises(EngineStopped, match="no replica was available"):
        await hear(await fleet(transport), utterance())


async def test_a_full_queue_is_retried_once_elsewhere() -> None:
    transport = FakeTransport(3)
    home = home_of(transport, 1)
    transport.engines[home].full_times = 1
    replicas = await fleet(transport)
    assert len(codes(await hear(replicas, utterance(voice=1)))) == 2
    for engine in transport.engines.values():
        engine.full_times = 9
    transport.opened.clear()
    with pytest.raises(EngineFull):
        await hear(await fleet(transport), utterance(voice=1))
    replicas_in_order = [stream.replica for stream in transport.opened]
    assert sorted(replicas_in_order[:3]) == ["a", "b", "c"], "each for a free row"
    assert len(replicas_in_order) == 5 and replicas_in_order[3] != replicas_in_order[4], "two for a place in line"
    assert [stream.cancels for stream in transport.opened] == [1] * 5


async def test_takes_of_other_processes_count_before_the_next_stats_request() -> None:
    transport = FakeTransport()
    for engine in transport.engines.values():
        engine.gate.clear()
    processes = [await fleet(transport), await fleet(transport)]  # each knows of its own takes only
    hearing = [
        asyncio.create_task(hear(process, utterance(voice=1)))
        for process, takes in zip(processes, (5, 3), strict=True)
        for _ in range(takes)
    ]
    await until(lambda: sum(engine.running for engine in transport.engines.values()) == 8)
    assert {name: engine.running for name, engine in transport.engines.items()} == {
        "a": INFO.max_rows,
        "b": INFO.max_rows,
    }
    waiting = asyncio.create_task(hear(processes[0], utterance(voice=1)))  # no replica has a free row
    await until(lambda: sum(engine.running for engine in transport.engines.values()) == 9)
    for engine in transport.engines.values():
        engine.gate.set()
    assert {codes(chunks).shape for chunks in await asyncio.gather(*hearing, waiting)} == {(2, 10)}


async def test_started_take_waits_for_a_free_row() -> None:
    transport = FakeTransport()
    home = home_of(transport, 1)
    other = ({"a", "b"} - {home}).pop()
    transport.faults[home] = ("dies", 4)
    transport.engines[other].full_times = 5
    chunks = await hear(await fleet(transport), utterance(voice=1))
    assert np.array_equal(codes(chunks), codes_of(5, 0, 10))


async def test_invalid_utterance_is_refused_without_a_retry() -> None:
    transport = FakeTransport()

    def refuse(what: Utterance) -> None:
        raise InvalidUtterance("no")

    for engine in transport.engines.values():
        engine.speak = refuse  # type: ignore[assignment]
    with pytest.raises(InvalidUtterance):
        await hear(await fleet(transport), utterance())
    assert len(transport.opened) == 1


async def test_closing_a_take_cancels_it_at_the_replica() -> None:
    transport = FakeTransport(1)
    replicas = await fleet(transport)
    async with aclosing(RoutedUtterance(replicas, utterance(frames=1000)).chunks()) as chunks:
        await anext(chunks)
        assert replicas.members["a"].open == 1
    assert [stream.cancels for stream in transport.opened] == [1]
    assert replicas.members["a"].open == 0


async def test_long_wait_for_the_first_frame_does_not_count_as_silence() -> None:
    transport = FakeTransport(1)
    transport.engines["a"].gate.clear()
    replicas = await fleet(transport)
    hearing = asyncio.create_task(hear(replicas, utterance()))
    await asyncio.sleep(2 * routed_utterance.FIRST_SECONDS)  # longer than both limits: heartbeats show that it lives
    transport.engines["a"].gate.set()
    assert np.array_equal(codes(await hearing), codes_of(5, 0, 10))
    assert len(transport.opened) == 1
