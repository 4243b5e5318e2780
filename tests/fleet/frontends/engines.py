"""Engines for speech processes, by names that another process can import."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from engine import EngineConfig, EngineError
from tests.studio.fake_engine import FakeEngine


def held(config: EngineConfig, progress: Callable[[str, float], None]) -> FakeEngine:
    """An engine that generates one frame; longer takes stay active until they are cancelled."""
    engine = FakeEngine.start(config, progress)
    engine.later_frames_gate.clear()
    return engine


def reluctant(folder: str, config: EngineConfig, progress: Callable[[str, float], None]) -> FakeEngine:
    """An engine whose stop creates the file ``stops`` in the folder, then waits for the file ``may-stop``."""
    engine = FakeEngine.start(config, progress)
    stop = engine.stop

    def stop_late() -> None:
        Path(folder, "stops").touch()
        while not Path(folder, "may-stop").exists():
            time.sleep(0.01)
        stop()

    engine.stop = stop_late  # type: ignore[method-assign]
    return engine


def broken(config: EngineConfig, progress: Callable[[str, float], None]) -> FakeEngine:
    raise EngineError("the engines are elsewhere")
