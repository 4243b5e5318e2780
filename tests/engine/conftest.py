"""Fixtures of the engine's tests."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor


@dataclass
class Eager:
    """In a graph's place: its work, done anew each time."""

    work: Callable[..., Any]
    inputs: tuple[Tensor, ...] = ()

    def replay(self, *values: Tensor) -> Any:
        self.inputs = values
        return self.again()

    def again(self) -> Any:
        return self.work(*self.inputs)


@pytest.fixture
def eager_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever works by CUDA graphs does so on a CPU, with the same sizes and the same filling up."""
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    for module in ("graphs", "codec_streams"):
        name = f"engine.runtime.{module}.capture_sizes"
        monkeypatch.setattr(name, lambda work, inputs, progress: {size: Eager(work) for size in inputs})
