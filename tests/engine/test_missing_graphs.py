"""Graphs captured while the engine speaks: takes stay the same and do not wait for them."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

from engine.checkpoint import load
from engine.model.prompt import Prompt
from engine.runtime.codec_streams import GraphStreams
from engine.runtime.graphs import GraphSet, capture, capture_missing
from engine.runtime.row import Row
from engine.runtime.runner import Runner
from engine.types import Sampling
from tests.engine.kernels.interpreter import DEVICE
from tests.engine.runtime.test_codec_streams import PlainBatches
from tests.engine.speaking import hear, paused_loop, running_engine, seeded, until
from tests.tiny import TinyCodec, TinyModel, write_checkpoint

pytest.importorskip("engine.fused.frame")


@pytest.fixture(autouse=True)
def eager_on_a_cpu(request: pytest.FixtureRequest) -> None:
    if DEVICE == "cpu":
        request.getfixturevalue("eager_graphs")


@pytest.mark.usefixtures("wide_tiles")
def test_samples_of_rows_do_not_depend_on_the_graph_sizes(tmp_path: Path) -> None:
    device = torch.device(DEVICE)
    tiny = TinyModel(n_layer=2, fast_n_layer=1), TinyCodec(num_codebooks=3, semantic_codebook_size=60)
    checkpoint = load(write_checkpoint(tmp_path, *tiny), device, device, torch.float32)
    prompt = Prompt(np.arange(12), np.zeros((3, 12), np.int64), prefix=0)
    runner = Runner(checkpoint.model, 3, 64)
    (frames,) = runner.use_graphs(kernel_attention=False)
    capture(frames, only_first=True)
    drawn, missing = [], []
    for _ in itertools.chain(capture_missing(frames), [0]):  # before and after the missing one is captured
        missing.append(frames.missing())
        rows = tuple(Row(prompt, Sampling(seed=seed), 99, print, slot=seed) for seed in range(2))
        runner.prefill(rows)
        drawn.append([codes.copy() for _ in range(2) for _, codes, _ in runner.launch(rows).read()])
    assert missing == [[2], []]
    assert np.array_equal(drawn[0], drawn[1])


def test_streams_of_any_length_are_decoded_before_all_sizes_are_captured(tiny_checkpoint: Path) -> None:
    codec = load(tiny_checkpoint, torch.device("cpu"), torch.device("cpu"), torch.float32).codec
    codes = np.random.default_rng(0).integers(0, 16, (2, codec.config.num_codebooks, 15)).astype(np.int16)
    sounds = []
    for only_first in (False, True):
        streams = GraphStreams(cast(Any, PlainBatches(codec)), 5)
        capture(*streams.graphs, only_first=only_first)
        assert bool(streams.graphs[0].missing()) == only_first
        assert streams.open("a") and streams.open("b")
        sounds.append(streams.decode([("a", codes[0]), ("b", codes[1])]))
    np.testing.assert_allclose(sounds[0], sounds[1], atol=1e-5)


def test_existing_graph_sizes_are_used_if_memory_runs_out(
    tiny_checkpoint: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    codec = load(tiny_checkpoint, torch.device("cpu"), torch.device("cpu"), torch.float32).codec
    streams = GraphStreams(cast(Any, PlainBatches(codec)), 5)
    capture(*streams.graphs, only_first=True)

    def no_memory(graph_set: GraphSet[Any], size: Any, make_room: bool) -> None:
        raise torch.OutOfMemoryError("there is none")

    monkeypatch.setattr(GraphSet, "capture", no_memory)
    with caplog.at_level(logging.WARNING, "engine"):
        lefts = list(capture_missing(*streams.graphs))
    assert len(lefts) == 1 and f"no memory for {lefts[0]} of the CUDA graphs" in caplog.text
    assert streams.open("a")
    assert len(streams.decode([("a", np.zeros((codec.config.num_codebooks, 3), np.int16))])[0])


@pytest.mark.parametrize("frame_seconds", [None, 60.0], ids=["nothing buffered", "minutes buffered"])
async def test_gap_work_waits_without_buffered_audio(tiny_checkpoint: Path, frame_seconds: float | None) -> None:
    with running_engine(tiny_checkpoint, max_rows=2) as engine:
        engine._loop._frame_seconds = frame_seconds
        utterance = seeded("Say this.", 3, 60)
        speaking: list[int] = []

        def work() -> Iterator[int]:
            for missing in (3, 2, 1):
                yield missing
                speaking.append(engine.stats().running)

        alone = await hear(engine, utterance)
        with paused_loop(engine):  # both begin in the engine's next turn
            take = asyncio.ensure_future(hear(engine, utterance))
            await until(lambda: engine._loop._commands.qsize() == 1)
            engine._loop.run_in_gaps(work())
        assert np.array_equal((await take).codes, alone.codes)
        await until(lambda: engine.stats().graphs_left == 0)
        assert speaking == [0 if frame_seconds is None else 1] * 3
