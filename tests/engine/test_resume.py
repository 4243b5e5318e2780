"""A take resumed after its played frames: refusals, and continuation as if uninterrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import DirectEngine, Engine, EngineConfig, InvalidUtterance, PromptTooLong, Reference, Utterance
from engine.checkpoint import open_source
from engine.model.prompt import build_prompt
from engine.runtime import runner
from engine.runtime.plain_frame import PlainFrame
from tests.engine.speaking import Take, greedy, hear, running_engine, seeded, until
from tests.tiny import FEW_CODEBOOKS, TinyModel, write_checkpoint

BUNDLED = Path(__file__).parents[2] / "assets" / "fry"
KINDS = ("CPU frame", "plain frame", "bfloat16", "inline", "reproducible", "drawn ahead")
CUTS = (1, 5, 7, 16, 23, 33)
FRAMES = 34
BOOKS = FEW_CODEBOOKS.num_codebooks


def voice(frames: int, seed: int) -> Reference:
    codes = np.random.default_rng(seed).integers(0, 64, (BOOKS, frames), dtype=np.int16)
    return Reference(codes, f"Words number {seed}.")


TAKES = (
    greedy("The best token each time.", FRAMES),
    seeded("A seeded take with defaults.", 11, FRAMES),
    seeded("Hot " * 20, 2**63 - 1, FRAMES, temperature=1.5, top_p=1.0, top_k=500),
    seeded("So few tokens that they repeat.", 13, FRAMES, (voice(40, 5), voice(7, 6)), temperature=1.0, top_k=4),
    replace(seeded("An answer.", 14, FRAMES, (voice(20, 7),)), history=(voice(9, 8), voice(6, 9))),
)


def start_engine(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Engine:
    config: dict[str, Any] = {"device": "cpu", "threads": 1} | settings
    if kind == "inline":
        return DirectEngine.start(EngineConfig(str(folder), **config))
    if kind == "plain frame":
        monkeypatch.setattr(runner, "CpuFrame", lambda model, cache, slots, *sizes: PlainFrame(model, cache, slots))
    config |= {"dtype": "bfloat16"} if kind == "bfloat16" else {}
    config |= {"reproducible": True} if kind in ("reproducible", "drawn ahead") else {}
    engine = Engine.start(EngineConfig(str(folder), **config))
    engine._loop._runner.ahead = kind == "drawn ahead"
    return engine


@pytest.fixture(scope="module", params=KINDS)
def engine(request: pytest.FixtureRequest, quick_checkpoint: Path) -> Iterator[Engine]:
    with pytest.MonkeyPatch.context() as patch:
        started = start_engine(request.param, quick_checkpoint, patch)
        yield started
        started.stop()


@pytest.fixture(scope="module")
def plain_engine(quick_checkpoint: Path) -> Iterator[Engine]:
    with running_engine(quick_checkpoint, threads=1) as started:
        yield started


def after(utterance: Utterance, take: Take, cut: int) -> Utterance:
    """Return the utterance with the take's first `cut` frames already played."""
    return replace(utterance, so_far=take.codes[:, :cut])


def assert_continues(resumed: Take, whole: Take, cut: int, frame_samples: int = 2048) -> None:
    assert np.array_equal(resumed.codes, whole.codes[:, cut:])
    np.testing.assert_allclose(resumed.pcm, whole.pcm[cut * frame_samples :], rtol=0, atol=1e-6)
    assert resumed.reason == whole.reason
    assert resumed.chunks[0].first_frame == cut
    assert {chunk.resumed_at for chunk in resumed.chunks} == {cut}
    for one, following in zip(resumed.chunks, resumed.chunks[1:], strict=False):
        assert following.first_frame == one.first_frame + one.frames


@pytest.mark.parametrize("number", range(len(TAKES)))
async def test_resumed_take_continues_as_if_uninterrupted(engine: Engine, number: int) -> None:
    utterance = TAKES[number]
    whole = await hear(engine, utterance)
    assert whole.chunks[0].resumed_at is None
    assert whole.codes.shape[1] > 23, "the take must be long enough for this test to mean anything"
    assert len(np.unique(whole.codes[0])) > 3, "the take must vary for this test to mean anything"
    cut = min(CUTS[number], whole.codes.shape[1] - 1)
    assert_continues(await hear(engine, after(utterance, whole, cut)), whole, cut)


async def test_continued_takes_run_beside_others_and_new_ones(plain_engine: Engine) -> None:
    """Nine takes in four rows, in codec streams of different ages."""
    whole = [await hear(plain_engine, take) for take in TAKES]
    new = [hear(plain_engine, take) for take in TAKES[:4]]
    cuts = CUTS[: len(TAKES)]
    continued = [
        hear(plain_engine, after(take, heard, cut)) for take, heard, cut in zip(TAKES, whole, cuts, strict=True)
    ]
    together = await asyncio.gather(*new, *continued)
    for resumed, unbroken, cut in zip(together[4:], whole, cuts, strict=True):
        assert_continues(resumed, unbroken, cut)
    for one, other in zip(together[:4], whole, strict=False):
        assert np.array_equal(one.codes, other.codes)


async def test_take_may_be_interrupted_repeatedly(plain_engine: Engine) -> None:
    whole = await hear(plain_engine, TAKES[1])
    heard = np.zeros((BOOKS, 0), np.int16)
    while heard.shape[1] < FRAMES:
        async for chunk in plain_engine.speak(replace(TAKES[1], so_far=heard)):
            assert chunk.first_frame == heard.shape[1]
            heard = np.concatenate([heard, chunk.codes], axis=1)
            break
    assert np.array_equal(heard, whole.codes)
    await until(lambda: plain_engine.stats().running == 0 and plain_engine.stats().codec_streams == 0)


async def test_empty_frames_so_far_start_a_new_take(plain_engine: Engine) -> None:
    whole = await hear(plain_engine, TAKES[1])
    take = await hear(plain_engine, after(TAKES[1], whole, 0))
    assert np.array_equal(take.codes, whole.codes) and take.chunks[0].resumed_at is None


async def test_frames_drawn_by_another_engine_are_kept_when_they_are_replayed(
    plain_engine: Engine, quick_checkpoint: Path
) -> None:
    """As if the machine that began the take rounds differently from the one that continues it."""
    others = await hear(plain_engine, seeded("Something else.", 99, 20))
    wanted = after(TAKES[1], others, 20)
    read = await hear(plain_engine, wanted)
    for ahead in (False, True):
        with running_engine(quick_checkpoint, threads=1, reproducible=True) as engine:
            engine._loop._runner.ahead = ahead
            drawn = await hear(engine, wanted)
        assert np.array_equal(drawn.codes, read.codes)
        np.testing.assert_allclose(drawn.pcm, read.pcm, rtol=0, atol=1e-6)


async def test_frames_prefilled_together_rarely_change_a_token(quick_checkpoint: Path) -> None:
    """Rounding differs from that of single frames, but in float32 rarely enough to change a token."""
    with running_engine(quick_checkpoint, threads=1) as engine:
        whole = [await hear(engine, take) for take in TAKES]
        engine._loop._runner._reads_frames_one_by_one = False
        equal = 0
        for utterance, take in zip(TAKES, whole, strict=True):
            resumed = await hear(engine, after(utterance, take, 20))
            assert resumed.chunks[0].first_frame == 20 and resumed.codes.shape[1] == FRAMES - 20
            equal += np.array_equal(resumed.codes, take.codes[:, 20:])
    assert equal >= len(TAKES) - 1


async def test_cached_voice_prefix_excludes_the_frames_so_far(quick_checkpoint: Path) -> None:
    with running_engine(quick_checkpoint, threads=1) as engine:
        utterance = TAKES[3]
        whole = await hear(engine, utterance)
        before = engine.stats()
        for cut in (3, 20):
            assert_continues(await hear(engine, after(utterance, whole, cut)), whole, cut)
        stats = engine.stats()
    assert (stats.prefix_hits, stats.prefix_misses) == (before.prefix_hits + 2, before.prefix_misses)
    assert stats.prefix_bytes == before.prefix_bytes


async def test_resumed_take_ends_at_the_end_token(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, TinyModel(stop_bias=1.0), seed=4)
    with running_engine(folder, threads=1) as engine:
        for seed in range(4):
            utterance = seeded("Until it ends.", seed, 60, temperature=1.0)
            whole = await hear(engine, utterance)
            if whole.reason == "stop" and whole.codes.shape[1]:
                break
        assert whole.reason == "stop"
        frames = whole.codes.shape[1]
        last = await hear(engine, after(utterance, whole, frames))
        assert (last.reason, last.chunks[0].first_frame, last.pcm.size) == ("stop", frames, 0)
        if frames > 1:
            assert_continues(await hear(engine, after(utterance, whole, frames - 1)), whole, frames - 1)


async def test_context_ends_a_resumed_take_at_the_same_frame(quick_checkpoint: Path) -> None:
    config = open_source(quick_checkpoint).config
    utterance = greedy("word " * 60, frames=100_000)
    prompt = len(build_prompt(utterance, open_source(quick_checkpoint).tokenizer(), config))
    with running_engine(quick_checkpoint, max_context=prompt + 20, threads=1) as engine:
        whole = await hear(engine, utterance)
        assert_continues(await hear(engine, after(utterance, whole, 20)), whole, 20)
        with pytest.raises(PromptTooLong, match=r"has 21 frames so far; .* room for 21 .* so it cannot be continued"):
            await hear(engine, after(utterance, whole, 21))


@pytest.mark.parametrize(("kind", "cut"), [("CPU frame", 30), ("reproducible", 9)])
async def test_resumed_take_of_the_bundled_model_equals_the_whole_one(
    kind: str, cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = start_engine(kind, BUNDLED, monkeypatch, max_context=512)
    try:
        utterance = seeded("Nobody had yet walked across the snow.", cut, 40)
        whole = await hear(engine, utterance)
        assert_continues(await hear(engine, after(utterance, whole, cut)), whole, cut)
    finally:
        engine.stop()


@pytest.mark.parametrize(
    ("so_far", "message"),
    [
        (np.zeros((10, 3), np.int64), r"must be int16 \(codebooks, frames\), not int64 \(10, 3\)"),
        (np.zeros(3, np.int16), r"must be int16 \(codebooks, frames\), not int16 \(3,\)"),
        ([[1, 2]], r"must be int16 \(codebooks, frames\), not list"),
        (np.zeros((10, 12), np.int16), "the 12 frames so far already reach max_frames, which is 12"),
    ],
)
def test_invalid_frames_so_far_are_refused(so_far: object, message: str) -> None:
    with pytest.raises(InvalidUtterance, match=message):
        greedy(frames=12, so_far=so_far)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: np.zeros((BOOKS - 1, 3), np.int16), f"so_far has {BOOKS - 1} codebooks, this model {BOOKS}"),
        (lambda: np.full((BOOKS, 3), -1, np.int16), "so_far's codes lie outside this model's codebooks"),
        (lambda: np.full((BOOKS, 3), 128, np.int16), "so_far's codes lie outside this model's codebooks"),
    ],
)
async def test_frames_so_far_of_another_codec_are_refused(
    plain_engine: Engine, make: Callable[[], np.ndarray], message: str
) -> None:
    with pytest.raises(InvalidUtterance, match=message):
        await hear(plain_engine, greedy(so_far=make()))
