"""A replica's health, as requested by Ray Serve."""

from __future__ import annotations

import pytest

from fleet import replica as fleet_replica
from fleet.replica import Replica
from tests.fleet.fakes import CountingEngine


async def test_working_engine_is_healthy_without_new_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_replica, "STUCK_SECONDS", -1.0)
    engine = CountingEngine()
    replica = Replica("a", engine)
    engine.running = 1
    for _ in range(3):  # pieces of a prompt
        engine.busy_seconds += 0.5
        await replica.check_health()
    with pytest.raises(RuntimeError, match="1 rows are running without progress"):
        await replica.check_health()
    engine.running = 0
    await replica.check_health()
    engine.failure = "the engine died"
    with pytest.raises(RuntimeError, match="the engine died"):
        await replica.check_health()
