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

from engine.runtime import graphs


@dataclass
class Eager:
    """Replaces a graph: repeats its work each time."""

    work: Callable[..., Any]
    inputs: tuple[Tensor, ...] = ()

    def replay(self, *values: Tensor) -> Any:
        self.inputs = values
        return self.again()

    def again(self) -> Any:
        return self.work(*self.inputs)


@pytest.fixture
def eager_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that uses CUDA graphs runs on a CPU, with the same sizes and the same padding."""
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr(graphs.GraphSet, "compile", lambda graph_set: None)

    def capture(graph_set: graphs.GraphSet[Any], size: Any, make_room: bool = True) -> None:
        graph_set._graphs[size] = Eager(graph_set._work, graph_set._inputs[size])  # type: ignore[assignment]

    monkeypatch.setattr(graphs.GraphSet, "capture", capture)


@pytest.fixture
def wide_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute products for few rows in few, wide programs on a CPU: Triton's interpreter takes equally long for each.

    For tests of code that uses products; the kernels' own tests keep a GPU's tiles.
    """
    if torch.cuda.is_available():
        return
    for name in ("gemv", "packed_gemv"):
        module: Any = sys.modules[f"engine.kernels.{name}"]

        def tiles(*shape: Any, chosen: Callable[..., Any] = module._tiles) -> Any:
            return replace(chosen(*shape), block_n=64)

        monkeypatch.setattr(module, "_tiles", tiles)
