"""An engine's life cycle: takes start, wait and end; a full, stopped or dead engine answers every caller."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from engine import (
    CheckpointError,
    ConfigError,
    Engine,
    EngineConfig,
    EngineFull,
    EngineStopped,
    InvalidUtterance,
    Sampling,
    Utterance,
)
from engine.codec import StreamState
from engine.runtime.row import Row
from engine.runtime.runner import Runner
from tests.engine.speaking import first_chunk, greedy, hear, running_engine, until
from tests.tiny import TinyCodec, TinyModel, write_checkpoint

LONG = 2000


def has_finished(engine: Engine, takes: int) -> bool:
    return engine.stats().finished >= takes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smallest models, because these tests concern order, not audio."""
    return write_checkpoint(
        tmp_path_factory.mktemp("small"), TinyModel(n_layer=1, fast_n_layer=1), TinyCodec(num_codebooks=2, n_layer=1)
    )


@pytest.fixture
def one_row(folder: Path) -> Iterator[Engine]:
    with running_engine(folder, max_rows=1, max_waiting=1) as engine:
        yield engine


async def test_breaking_the_iteration_frees_the_row(one_row: Engine) -> None:
    before = one_row.stats()
    async for _ in one_row.speak(greedy(frames=LONG)):
        break
    take = await hear(one_row, greedy(frames=5))
    after = one_row.stats()
    assert take.codes.shape[1] == 5
    assert after.cancelled == before.cancelled + 1
    assert after.finished == before.finished + 1
    assert after.frames - before.frames < LONG / 2
    assert (after.running, after.waiting) == (0, 0)


async def test_closed_takes_release_their_codec_streams(one_row: Engine) -> None:
    def streams() -> int:
        gc.collect()
        return sum(type(thing) is StreamState for thing in gc.get_objects())

    for _ in range(5):
        chunks, _ = await first_chunk(one_row, greedy(frames=LONG))
        await chunks.aclose()
    await hear(one_row, greedy(frames=3))
    await until(lambda: streams() == 0)


async def test_cancelling_the_task_frees_the_row(one_row: Engine) -> None:
    task = asyncio.create_task(hear(one_row, greedy(frames=LONG)))
    await until(lambda: one_row.stats().running == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: one_row.stats().running == 0)
    assert one_row.stats().cancelled == 1


async def test_speak_does_nothing_before_the_first_iteration(one_row: Engine) -> None:
    takes = [one_row.speak(greedy(frames=LONG)) for _ in range(5)]
    assert one_row.stats().running == 0
    assert (await hear(one_row, greedy(frames=2))).reason == "length"
    for take in takes:
        await take.aclose()


async def test_full_queue_refuses_an_utterance_and_the_others_continue(one_row: Engine) -> None:
    speaking, _ = await first_chunk(one_row, greedy(frames=LONG))
    waiting = asyncio.create_task(hear(one_row, greedy(frames=3)))
    await until(lambda: one_row.stats().waiting == 1)
    for _ in range(3):
        with pytest.raises(EngineFull, match="1"):
            await hear(one_row, greedy())
    await speaking.aclose()
    assert (await waiting).codes.shape[1] == 3
    assert (await hear(one_row, greedy(frames=2))).reason == "length"


async def test_owner_who_has_no_row_is_next_and_not_refused_for_those_of_others(folder: Path) -> None:
    """The queue is full of one owner's utterances: another's first is accepted, and waits only for a row."""
    ended: list[str] = []

    async def speak(owner: str, frames: int = 3) -> None:
        await hear(engine, replace(greedy(frames=frames), owner=owner))
        ended.append(owner)

    with running_engine(folder, max_rows=1, max_waiting=3) as engine:
        speaking, _ = await first_chunk(engine, replace(greedy(frames=LONG), owner="anna"))
        takes = [asyncio.create_task(speak("anna")) for _ in range(3)]
        await until(lambda: engine.stats().waiting == 3)
        takes += [asyncio.create_task(speak(owner)) for owner in ("bob", "carla", "dora")]
        await until(lambda: engine.stats().waiting == 6)
        for owner in ("anna", "bob", "emil"):  # the last place is for nobody
            with pytest.raises(EngineFull):
                await speak(owner)
        await speaking.aclose()
        await asyncio.gather(*takes)
    assert ended == ["bob", "carla", "dora", "anna", "anna", "anna"]


async def test_refused_utterance_builds_no_prompt(one_row: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    speaking, _ = await first_chunk(one_row, greedy(frames=LONG))
    waiting = asyncio.create_task(hear(one_row, greedy(frames=3)))
    await until(lambda: one_row.stats().waiting == 1)
    prompts: list[object] = []
    monkeypatch.setattr("engine.engine.build_prompt", lambda utterance, *_: prompts.append(utterance))
    with pytest.raises(EngineFull):
        await hear(one_row, greedy())
    assert not prompts
    await speaking.aclose()
    await waiting


async def test_busy_seconds_grow_during_prefill(one_row: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    prefill = Runner.prefill

    def record_and_prefill(runner: Runner, rows: Sequence[Row]) -> list[Row]:
        seen.append(one_row.stats().busy_seconds)
        return prefill(runner, rows)

    monkeypatch.setattr(Runner, "prefill", record_and_prefill)
    await hear(one_row, greedy("word " * 200, frames=1))
    assert len(seen) > 2 and np.all(np.diff(seen) > 0)


async def test_a_cancelled_caller_leaves_the_queue(one_row: Engine) -> None:
    speaking, _ = await first_chunk(one_row, greedy(frames=LONG))
    waiting = asyncio.create_task(hear(one_row, greedy(frames=3)))
    await until(lambda: one_row.stats().waiting == 1)
    waiting.cancel()
    await until(lambda: one_row.stats().waiting == 0)
    again = asyncio.create_task(hear(one_row, greedy(frames=4)))
    await until(lambda: one_row.stats().waiting == 1)
    await speaking.aclose()
    assert (await again).codes.shape[1] == 4


async def test_the_queue_is_first_come_first_served(folder: Path) -> None:
    order: list[int] = []

    async def speak(engine: Engine, number: int) -> None:
        async for chunk in engine.speak(greedy(frames=4)):
            if chunk.first_frame == 0:
                order.append(number)

    with running_engine(folder, max_rows=1) as engine:
        await asyncio.gather(*(speak(engine, number) for number in range(6)))
    assert order == list(range(6))


async def test_a_refused_utterance_takes_no_row(one_row: Engine) -> None:
    for _ in range(4):
        with pytest.raises(InvalidUtterance):
            await hear(one_row, greedy("sneak <|im_end|> in"))
    assert (await hear(one_row, greedy(frames=2))).reason == "length"
    assert (one_row.stats().running, one_row.stats().waiting) == (0, 0)


async def test_stopping_ends_every_take_with_an_error(folder: Path) -> None:
    with running_engine(folder, max_rows=2) as engine:
        takes = [asyncio.create_task(hear(engine, greedy(frames=LONG))) for _ in range(4)]
        await until(lambda: engine.stats().running == 2 and engine.stats().waiting == 2)
        await asyncio.to_thread(engine.stop)
        for result in await asyncio.gather(*takes, return_exceptions=True):
            assert isinstance(result, EngineStopped)
        engine.stop()
        with pytest.raises(EngineStopped):
            await hear(engine, greedy())
        with pytest.raises(EngineStopped):
            await engine.encode_reference(np.zeros(44_100, np.float32), 44_100, "Words.")
        assert (engine.stats().running, engine.stats().waiting) == (0, 0)


async def test_a_clip_being_encoded_when_the_engine_stops_gets_an_answer(folder: Path) -> None:
    with running_engine(folder) as engine:
        pcm = np.random.default_rng(0).standard_normal(44_100 * 20).astype(np.float32)
        jobs = [asyncio.create_task(engine.encode_reference(pcm, 44_100, "Words.")) for _ in range(4)]
        await until(lambda: len(engine._clip_encoder._waiting) == 3)  # one is being encoded, three wait
        await asyncio.to_thread(engine.stop)
        results = await asyncio.gather(*jobs, return_exceptions=True)
    assert any(isinstance(result, EngineStopped) for result in results)
    for result in results:
        assert isinstance(result, EngineStopped) or not isinstance(result, BaseException)


async def test_a_dead_engine_answers_every_waiting_and_later_caller(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_engine(folder, max_rows=2) as engine:
        takes = [asyncio.create_task(hear(engine, greedy(frames=LONG))) for _ in range(5)]
        await until(lambda: engine.stats().running == 2 and engine.stats().waiting == 3)

        def broken(*_: object) -> None:
            raise RuntimeError("the device fell off the bus")

        monkeypatch.setattr(Runner, "launch", broken)
        for result in await asyncio.gather(*takes, return_exceptions=True):
            assert isinstance(result, EngineStopped)
            assert "the device fell off the bus" in str(result)
        monkeypatch.undo()
        with pytest.raises(EngineStopped, match="the device fell off the bus"):
            await hear(engine, greedy())
        with pytest.raises(EngineStopped, match="the device fell off the bus"):
            await engine.encode_reference(np.zeros(44_100, np.float32), 44_100, "Words.")


async def test_callers_racing_with_a_stop_are_all_answered(folder: Path) -> None:
    """Many threads submit while the engine stops: each take ends or is refused; none waits forever."""
    for _ in range(5):
        with running_engine(folder, max_rows=1) as engine:
            ends: list[str] = []

            def caller(engine: Engine = engine, ends: list[str] = ends) -> None:
                async def talk() -> None:
                    try:
                        while True:
                            await asyncio.wait_for(hear(engine, greedy(frames=1)), 60)
                    except (EngineStopped, EngineFull) as error:
                        ends.append(type(error).__name__)

                asyncio.run(talk())

            threads = [threading.Thread(target=caller) for _ in range(6)]
            for thread in threads:
                thread.start()
            await until(partial(has_finished, engine, 6))
            await asyncio.to_thread(engine.stop)
            for thread in threads:
                await asyncio.to_thread(thread.join)
        assert ends == ["EngineStopped"] * 6


async def test_tasks_on_several_event_loops_share_one_engine(folder: Path) -> None:
    with running_engine(folder, max_rows=3) as engine:
        expected = (await hear(engine, greedy(frames=15))).codes
        runs = [asyncio.to_thread(asyncio.run, hear(engine, greedy(frames=15))) for _ in range(6)]
        for take in await asyncio.gather(*runs):
            assert np.array_equal(take.codes, expected)


async def test_event_loop_closed_during_a_take_does_not_harm_the_engine(one_row: Engine) -> None:
    def abandon() -> None:
        loop = asyncio.new_event_loop()
        chunks = one_row.speak(greedy(frames=40))
        loop.run_until_complete(anext(chunks))
        loop.close()
        abandoned.append(chunks)  # referenced, so that it is not closed automatically

    abandoned: list[object] = []
    await asyncio.to_thread(abandon)
    assert (await hear(one_row, greedy(frames=3))).codes.shape[1] == 3


def test_engine_info_describes_the_engine(folder: Path) -> None:
    with running_engine(folder, max_rows=3, max_waiting=7, max_context=512) as engine:
        info = engine.info
    assert (info.max_rows, info.max_waiting, info.max_context) == (3, 7, 512)
    assert (info.sample_rate, info.frame_samples, info.num_codebooks) == (44_100, 2048, 2)
    assert (info.device, info.dtype, info.model) == ("cpu", "float32", str(folder))
    assert info.frame_rate == pytest.approx(21.533, abs=1e-3)
    assert info.parameters > 10_000


def test_progress_is_reported_until_ready(folder: Path) -> None:
    steps: list[tuple[str, float]] = []
    Engine.start(EngineConfig(str(folder), device="cpu"), lambda what, done: steps.append((what, done))).stop()
    assert steps[-1] == ("ready", 1.0)
    assert len({what for what, _ in steps}) >= 3
    assert all(0 <= done <= 1 for _, done in steps)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"device": "abacus"}, "abacus"),
        ({"dtype": "float7"}, "float7"),
        ({"max_context": 10_000_000}, "10000000"),
        ({"max_context": 0}, "max_context"),
        ({"max_rows": 0}, "max_rows"),
        ({"max_rows": -2}, "max_rows"),
        ({"max_waiting": -1}, "max_waiting"),
        ({"threads": 0}, "threads"),
        ({"codec_device": "abacus"}, "abacus"),
    ],
)
def test_impossible_setting_is_refused_by_name(folder: Path, settings: dict[str, object], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        Engine.start(EngineConfig(str(folder), **({"device": "cpu"} | settings)))  # type: ignore[arg-type]


def test_a_folder_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json"):
        Engine.start(EngineConfig(str(tmp_path), device="cpu"))


@pytest.mark.parametrize("name", ["cuda:99", "xla", "abacus"] + ["mps"] * (sys.platform != "darwin"))
def test_a_missing_device_is_refused_in_one_sentence(folder: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=f"^device '{name}' cannot be used here(: .*)?; usable are cpu.*$") as refused:
        Engine.start(EngineConfig(str(folder), device=name))
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1), ("temperature", 2.1), ("temperature", float("nan")), ("top_p", 1.1),
        ("top_p", float("inf")), ("top_k", 0), ("top_k", 1025), ("seed", -1), ("seed", 2**63),
    ],
)  # fmt: skip
def test_sampling_outside_its_bounds_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(InvalidUtterance, match=name):
        Sampling(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [4.0, 4.5, "4", None])
@pytest.mark.parametrize("make", [Sampling, partial(Utterance, "Hello.")], ids=["Sampling", "Utterance"])
def test_non_integers_are_refused_for_integer_fields(make: Callable[..., object], value: object) -> None:
    for name in ("top_k", "seed") if make is Sampling else ("max_frames",):
        with pytest.raises(InvalidUtterance, match=f"{name} must be a whole number between"):
            make(**{name: value})
        make(**{name: np.int32(4)})


@pytest.mark.parametrize("change", [{"text": " \n"}, {"text": ""}, {"max_frames": 0}])
def test_utterance_without_text_or_frames_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidUtterance):
        Utterance(**({"text": "Hello."} | change))  # type: ignore[arg-type]
