"""Encoding clips while other takes run: the cost for those, and the time per clip."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import numpy as np

from benchmarks.common.material import noise
from benchmarks.common.report import spread
from benchmarks.engine.model import DEVICE, FRAME_SECONDS, S2_PRO, row
from engine.codec import Codec
from engine.fused.codec_decoder import FusedDecoder
from engine.fused.codec_encoder import FusedEncoder
from engine.model.dual_ar import DualAR
from engine.runtime.clip_encoder import AT_ONCE, ClipEncoder
from engine.runtime.codec_streams import GraphStreams
from engine.runtime.graphs import ClipGraphs, GraphSet, capture
from engine.runtime.loop import Loop
from engine.runtime.runner import Runner
from engine.runtime.scheduler import LoopTurn

CLIP_SECONDS = 10
TURNS = 300


class WatchedLoop(Loop):
    """Records the duration of each turn, which is a listener's wait for a frame."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.turns: list[float] = []
        self.many = threading.Event()

    def _turn(self, turn: LoopTurn) -> None:
        started = time.perf_counter()
        super()._turn(turn)
        if turn.speaking:
            self.turns.append((time.perf_counter() - started) * 1e3)
        if len(self.turns) >= TURNS:
            self.many.set()


def time_encoding(model: DualAR, codec: Codec, rows: int = 16, count: int = 10) -> dict[str, dict[str, float | None]]:
    """Milliseconds of the loop's turns with `rows` takes, alone and while `count` clips are encoded; then clips alone.

    Uses up the codec's weights.
    """
    runner = Runner(model, rows, 4096)
    sets: list[GraphSet[Any]] = [*runner.use_graphs(True)]
    streams = GraphStreams(FusedDecoder(codec, rows), rows)
    capture(*sets, *streams.graphs)
    graphs = ClipGraphs(FusedEncoder(codec, AT_ONCE), codec.config.frame_samples, DEVICE)
    started = time.perf_counter()
    capture(graphs)
    captured = time.perf_counter() - started
    clips = ClipEncoder(graphs, codec.config, DEVICE, AT_ONCE, lambda: None)
    clips.prepare()
    clip = noise(CLIP_SECONDS, codec.config.sample_rate)

    async def encode(many: int) -> float:
        began = time.perf_counter()
        await asyncio.gather(*(clips.encode(np.roll(clip, i), codec.config.sample_rate) for i in range(many)))
        return (time.perf_counter() - began) * 1e3

    asyncio.run(encode(2))
    out: dict[str, dict[str, float | None]] = {"alone": spread([asyncio.run(encode(1)) for _ in range(10)])}
    out["ten at once"] = spread([asyncio.run(encode(count)) for _ in range(5)])
    loop = WatchedLoop(runner, streams, DEVICE, rows, rows, FRAME_SECONDS)
    loop.start()
    for i in range(rows):
        speaking = row(0, i, 100, S2_PRO)
        speaking.max_frames = 3900
        loop.submit(speaking)
    loop.many.wait(60)
    out["turns"] = spread(loop.turns[-TURNS // 2 :])
    before = len(loop.turns)
    meanwhile = asyncio.run(encode(count))
    out["turns while clips are encoded"] = spread(loop.turns[before + 1 :])
    loop.stop()
    clips.stop()
    out["clips while rows speak"] = {"all_ms": meanwhile, "capture_s": captured}
    return out
