"""The number of cores that the engine uses follows a container's limit of processor time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine import config


@pytest.mark.parametrize(
    ("limit", "cores"),
    [("max 100000", 8), ("50000 100000", 1), ("250000 100000", 3), ("9900000 100000", 8), ("nonsense", 8), (None, 8)],
)
def test_a_containers_limit_of_processor_time_counts(
    limit: str | None, cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if limit is not None:
        (tmp_path / "cpu.max").write_text(limit + "\n")
    monkeypatch.setattr(config, "CPU_LIMIT", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    assert config.available_cores() == cores
    assert config.default_threads() == max(1, cores // 2)
    assert 1 <= config.physical_cores() <= cores
