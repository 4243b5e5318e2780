"""A model's requirements before it is loaded, and its expected speed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine import EngineConfig, expected_speed, survey_model


def test_expected_speed_uses_the_engines_threads_and_the_best_measurement(
    quick_checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It depends neither on the calling process's threads nor on other programs, and is measured once."""
    threads = list[int]()
    busy, now = [1.0] * 30 + [0.001, 0.001] + [1.0] * 1000, [0.0]

    def run(*_: torch.Tensor) -> None:
        threads.append(torch.get_num_threads())
        now[0] += busy[len(threads) - 1]

    monkeypatch.setattr(expected_speed.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(torch, "mv", run)
    monkeypatch.setattr(torch, "conv1d", run)
    before = torch.get_num_threads()
    expected_speed._cpu_rates.cache_clear()
    config = EngineConfig(str(quick_checkpoint), "cpu", threads=before + 1)
    first = survey_model(config).needs[0].real_time_factor
    measured = len(threads)
    assert set(threads) == {before + 1} and torch.get_num_threads() == before
    assert first is not None and first < 1
    assert survey_model(config).needs[0].real_time_factor == first and len(threads) == measured
    expected_speed._cpu_rates.cache_clear()
