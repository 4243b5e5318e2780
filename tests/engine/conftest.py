"""Fixtures of the engine's tests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
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


@pytest.fixture
def wide_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products for few rows on a CPU by few programs, of many columns each: Triton's interpreter takes as long for any.

    For tests of what products are part of; those of the kernels keep the tiles that a GPU has.
    """
    if torch.cuda.is_available():
        return
    for name, wide in (("gemv", {"block_n": 64}), ("packed12", {"quads": 16})):
        module: Any = sys.modules[f"engine.kernels.{name}"]

        def tiles(*shape: Any, chosen: Callable[..., Any] = module._tiles, wide: dict[str, int] = wide) -> Any:
            return replace(chosen(*shape), **wide)

        monkeypatch.setattr(module, "_tiles", tiles)
