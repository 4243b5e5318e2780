"""Engines for speech processes, by names that another process can import."""

from __future__ import annotations

from collections.abc import Callable

from engine import EngineConfig, EngineError
from tests.studio.fake_engine import FakeEngine


def held(config: EngineConfig, progress: Callable[[str, float], None]) -> FakeEngine:
    """It speaks one frame; takes of more go on until they are ended."""
    engine = FakeEngine.start(config, progress)
    engine.later_frames_gate.clear()
    return engine


def broken(config: EngineConfig, progress: Callable[[str, float], None]) -> FakeEngine:
    raise EngineError("the engines are elsewhere")
