"""An engine's information about its machine: its GPU, even if the engine runs on the CPU, or none."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from engine import Engine, EngineConfig, Gpu


@pytest.mark.parametrize("has_gpu", [True, False])
def test_an_engine_on_a_cpu_reports_the_machines_gpu(
    tiny_checkpoint: Path, monkeypatch: pytest.MonkeyPatch, has_gpu: bool
) -> None:
    card = SimpleNamespace(name="A card", total_memory=24 * 2**30)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: card)
    engine = Engine.start(EngineConfig(model=str(tiny_checkpoint), device="cpu", max_rows=1, threads=1))
    try:
        assert engine.info.gpu == (Gpu("A card", 24 * 2**30) if has_gpu else None)
    finally:
        engine.stop()
