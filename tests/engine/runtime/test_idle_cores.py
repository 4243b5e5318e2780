"""A clip is encoded on all cores only while the engine is idle, and the number of threads is restored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from engine.runtime import setup
from tests.engine.speaking import paused_loop, running_engine, seeded
from tests.tiny import TinyCodec, TinyModel, write_checkpoint


async def test_clips_use_all_cores_only_while_nobody_speaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_checkpoint(tmp_path, TinyModel(), TinyCodec(), seed=3)
    monkeypatch.setattr(setup.encoder, "runs", lambda codec: False)  # native code has one pool for all work
    monkeypatch.setattr(setup, "available_cores", lambda: 5)
    monkeypatch.setattr(setup, "default_threads", lambda: 2)
    threads: list[int] = []
    before = torch.get_num_threads()
    try:
        with running_engine(tmp_path) as engine:
            encoder = engine._checkpoint.codec.encoder
            encoder.register_forward_pre_hook(lambda *_: threads.append(torch.get_num_threads()))
            silence = np.zeros(4096, np.float32)
            await engine.encode_reference(silence, engine.info.sample_rate, "Words.")
            take = engine.speak(seeded("Hello.", 1, frames=200))
            await anext(take)
            with paused_loop(engine):
                await engine.encode_reference(silence, engine.info.sample_rate, "Words.")
            await take.aclose()
        assert threads == [5, 2]
    finally:
        torch.set_num_threads(before)
