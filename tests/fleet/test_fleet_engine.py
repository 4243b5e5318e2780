"""The fleet as one engine: its properties, start and stop; cancelling and stopping reach the replicas."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from collections.abc import Iterator
from contextlib import aclosing, contextmanager

import numpy as np
import pytest

from engine import ConfigError, EngineStopped
from fleet import fleet_engine
from fleet import membership as fleet_replicas
from fleet.fleet_engine import FleetEngine
from tests.engine.speaking import hear, until
from tests.fleet.fakes import INFO, FakeTransport, codes_of, utterance


@contextmanager
def fleet(transport: FakeTransport, head: str | None = None) -> Iterator[tuple[FleetEngine, list[str]]]:
    """A fleet over the transport, and a list that records when it frees its resources."""
    freed: list[str] = []

    async def connect() -> FakeTransport:
        return transport

    engine = FleetEngine(connect, lambda: freed.append("once"), head)
    try:
        yield engine, freed
    finally:
        engine.stop()


async def test_fleet_info_adds_up_the_rows_of_all_replicas() -> None:
    with fleet(FakeTransport(3)) as (engine, _):
        assert (engine.info.max_rows, engine.info.max_waiting) == (12, 6)
        assert engine.info.device == "3 × cpu"
        assert engine.info.codec_fingerprint == INFO.codec_fingerprint


async def test_takes_run_from_any_event_loop() -> None:
    with fleet(FakeTransport()) as (engine, _):
        takes = await asyncio.gather(*(hear(engine, utterance(seed)) for seed in range(6)))
        elsewhere = await asyncio.to_thread(lambda: asyncio.run(hear(engine, utterance(9))))
    for seed, take in [*enumerate(takes), (9, elsewhere)]:
        assert np.array_equal(take.codes, codes_of(seed, 0, 10))


async def test_a_lost_head_node_is_reported_until_it_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_engine, "HEAD_SECONDS", 0.05)
    head = socket.create_server(("127.0.0.1", 0), reuse_port=True)
    address = head.getsockname()
    with fleet(FakeTransport(), "{}:{}".format(*address)) as (engine, _), socket.socket() as reserved_port:
        reserved_port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved_port.bind(address)  # without listening, so that no other program gets it
        head.settimeout(60)
        head.accept()[0].close()
        await until(lambda: engine.stats().trouble is None)
        assert engine.failure is None
        head.close()
        await until(lambda: engine.stats().trouble is not None)
        assert "Ray's head node does not answer" in str(engine.stats().trouble) and engine.failure is None
        assert len((await hear(engine, utterance(1))).codes)
        with socket.create_server(address, reuse_port=True):
            await until(lambda: engine.stats().trouble is None)


async def test_stats_include_totals_and_each_replica() -> None:
    with fleet(FakeTransport()) as (engine, _):
        await hear(engine, utterance(frames=10))
        await until(lambda: engine.stats().frames == 10)
        stats = engine.stats()
    assert stats.replicas.keys() == {"a", "b"}
    assert sorted(replica.frames for replica in stats.replicas.values()) == [0, 10]
    assert stats.finished == 1


async def test_silent_replica_does_not_delay_the_stats_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_replicas, "ROUND_SECONDS", 0.01)
    monkeypatch.setattr(fleet_replicas, "ANSWER_SECONDS", 1000.0)
    monkeypatch.setattr(fleet_replicas, "POLL_TIMEOUT_SECONDS", 1000.0)
    transport = FakeTransport()
    with fleet(transport) as (engine, _):
        transport.deaf = {"a"}
        calls = transport.calls["a stats"]
        await until(lambda: transport.calls["a stats"] > calls)
        transport.engines["b"].frames = 7
        await until(lambda: engine.stats().replicas["b"].frames == 7)


async def test_closing_a_take_cancels_it_at_the_replica() -> None:
    transport = FakeTransport(1)
    with fleet(transport) as (engine, _):
        async with aclosing(engine.speak(utterance(frames=100_000))) as chunks:
            await anext(chunks)
        await until(lambda: transport.opened[0].cancels == 1)


async def test_stop_ends_every_take_and_releases_resources_once() -> None:
    transport = FakeTransport()
    with fleet(transport) as (engine, freed):
        chunks = engine.speak(utterance(frames=100_000))
        await anext(chunks)
        await asyncio.to_thread(engine.stop)
        with pytest.raises(EngineStopped):
            while True:
                await anext(chunks)
        with pytest.raises(EngineStopped):
            await hear(engine, utterance())
        with pytest.raises(EngineStopped):
            await engine.encode_reference(np.zeros(4, np.float32), 44_100, "words")
        engine.stop()
        assert engine.failure == "the engine was stopped"
    assert freed == ["once"] and transport.is_closed
    assert [stream.cancels for stream in transport.opened] == [1]
    assert "fleet" not in {thread.name for thread in threading.enumerate()}


async def test_stop_ends_calls_waiting_for_an_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fleet_replicas, "ROUND_SECONDS", 0.01)
    monkeypatch.setattr(fleet_replicas, "ANSWER_SECONDS", 1000.0)
    transport = FakeTransport(1)
    with fleet(transport) as (engine, _):
        transport.deaf = {"a"}
        encoding = asyncio.create_task(engine.encode_reference(np.zeros(4, np.float32), 44_100, "words"))
        aligning = asyncio.create_task(engine.align("ab", np.zeros((2, 6), np.int16)))
        questions = transport.calls["a stats"]
        await until(lambda: transport.calls["a encode_reference"] + transport.calls["a align"] == 2)
        await until(lambda: transport.calls["a stats"] > questions)
        await asyncio.to_thread(engine.stop)
        for waiting in (encoding, aligning):
            await until(waiting.done)
            with pytest.raises(EngineStopped, match="the engine was stopped"):
                await waiting
    gc.collect()
    assert "was destroyed but it is pending" not in caplog.text


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {"fingerprint": "other"},
            "the replicas a and b differ: its checkpoint is other, but weights at the others",
        ),
        ({"weights": "int8"}, "its kind of weights is int8, but bf16 at the others: set the same"),
        (
            {"dtype": "bfloat16"},
            "its dtype is bfloat16, but float32 at the others: set the same STUDIO_MODEL",
        ),
        ({"codec_fingerprint": "x"}, "its codec is x"),
    ],
)
def test_differing_replicas_are_refused(other: dict[str, str], message: str) -> None:
    transport = FakeTransport(b=other)
    with pytest.raises(ConfigError, match=message), fleet(transport):
        pass
    assert transport.is_closed
    assert "fleet" not in {thread.name for thread in threading.enumerate()}


def test_fleet_does_not_start_without_a_replica() -> None:
    with pytest.raises(EngineStopped, match="no replica came up"), fleet(FakeTransport(0)):
        pass


async def test_silent_replica_joins_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_engine, "POLL_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(fleet_replicas, "POLL_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(fleet_replicas, "ROUND_SECONDS", 0.01)
    transport = FakeTransport(3)
    transport.deaf, transport.up = {"b"}, {"a", "b", "c"}
    with fleet(transport) as (engine, _):
        assert engine.info.max_rows == 8
        transport.deaf = set()
        await until(lambda: engine.info.max_rows == 12)


def test_losing_a_replica_during_the_start_does_not_end_it() -> None:
    transport = FakeTransport(2)
    transport.gone = {"a"}
    with fleet(transport) as (engine, _):
        assert engine.info.max_rows == 4


def test_fleet_does_not_start_without_an_answer_from_a_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_engine, "POLL_TIMEOUT_SECONDS", 0.05)
    transport = FakeTransport(2)
    transport.deaf = {"a", "b"}
    with pytest.raises(EngineStopped, match="2 replicas are up, and none has answered"), fleet(transport):
        pass
    assert transport.is_closed


async def test_differing_replica_that_joins_later_gets_no_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_replicas, "ROUND_SECONDS", 0.01)
    transport = FakeTransport(3, c={"fingerprint": "other"})
    transport.up = {"a"}
    with fleet(transport) as (engine, _):
        assert engine.info.max_rows == 4
        transport.up = {"a", "b", "c"}
        await until(lambda: len(engine.stats().replicas) == 2)
        assert engine.info.max_rows == 8, "the rows of those that are there"
        await asyncio.gather(*(hear(engine, utterance(seed)) for seed in range(8)))
    assert {stream.replica for stream in transport.opened} == {"a", "b"}


async def test_health_check_answered_by_another_replica_does_not_end_the_watch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleet_replicas, "ROUND_SECONDS", 0.01)
    transport = FakeTransport(3)
    transport.up = {"a", "b"}
    with fleet(transport) as (engine, _):
        transport.gone, transport.up = {"a"}, {"a", "b", "c"}
        await until(lambda: "c" in engine.stats().replicas)
        assert engine.failure is None


async def test_fleet_counts_as_failed_until_a_replica_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_replicas, "ROUND_SECONDS", 0.01)
    monkeypatch.setattr(fleet_replicas, "ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(fleet_replicas, "POLL_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(fleet_engine, "ANSWER_SECONDS", 0.0)
    transport = FakeTransport()
    with fleet(transport) as (engine, _):
        assert engine.failure is None
        monkeypatch.setattr(fleet_engine, "ABSENT_SECONDS", 0.3)
        transport.deaf = {"a", "b"}
        await until(lambda: engine.failure is not None)
        assert "no replica of the fleet answers" in (engine.failure or "")
        transport.deaf = {"a"}
        await until(lambda: engine.failure is None)


async def test_clip_waits_for_a_replica_to_join(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_replicas, "ROUND_SECONDS", 0.01)
    transport = FakeTransport()
    transport.up = {"a"}
    with fleet(transport) as (engine, _):
        transport.up = set()
        encoding = asyncio.create_task(engine.encode_reference(np.zeros(6, np.float32), 44_100, "words"))
        await until(lambda: not engine.stats().replicas)
        transport.up = {"b"}
        assert (await encoding).frames == 6


async def test_clip_is_encoded_by_another_replica_if_one_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_replicas, "ROUND_SECONDS", 0.02)
    monkeypatch.setattr(fleet_replicas, "ANSWER_SECONDS", 0.05)
    transport = FakeTransport()
    with fleet(transport) as (engine, _):
        transport.deaf = {"a"}
        for _ in range(4):  # regardless of which is asked first
            reference = await engine.encode_reference(np.zeros((2, 6), np.float32), 44_100, "words")
            assert reference.codes.shape == (2, 6), "one channel, not two"
        assert (await engine.align("ab", reference.codes)).tolist() == [0, 3, 6]
    assert transport.calls["b encode_reference"] >= 4  # more if a busy machine delayed b too
