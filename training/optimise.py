"""Optimisation shared by the stages: a time-based schedule, per-tensor clipping, an average of weights."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn


class Clock:
    """A stage's time budget; learning rates follow the elapsed share."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.started = time.monotonic()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def share(self) -> float:
        """Elapsed share of the budget, 0 to 1."""
        return min(1.0, self.elapsed / self.seconds)

    def rate(self, step: int, warm_up: int, hold: float = 0.0, last: float = 0.03) -> float:
        """Factor on the learning rate: linear warm-up, constant until `hold`, then a cosine to `last`."""
        decay = max(0.0, self.share - hold) / (1 - hold)
        return min(1.0, (step + 1) / warm_up) * (last + (1 - last) * 0.5 * (1 + math.cos(math.pi * decay)))


def set_rate(optimiser: torch.optim.Optimizer, factor: float) -> None:
    """Scale every group's own base rate (stored as "base") by factor; a rate that is a tensor is changed in place."""
    for group in optimiser.param_groups:
        if "base" not in group:
            group["base"] = float(group["lr"])
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(group["base"] * factor)
        else:
            group["lr"] = group["base"] * factor


def adamw(
    parameters: list[nn.Parameter], rate: float, betas: tuple[float, float], weight_decay: float
) -> torch.optim.AdamW:
    """AdamW whose steps can be part of a CUDA graph if the parameters are on a GPU."""
    device = parameters[0].device
    if device.type != "cuda":
        return torch.optim.AdamW(parameters, rate, betas, weight_decay=weight_decay)
    on_device = torch.tensor(rate, device=device)
    return torch.optim.AdamW(parameters, on_device, betas, weight_decay=weight_decay, fused=True, capturable=True)


class Replayed:
    """A training step of fixed shapes: a few ordinary runs, then one CUDA graph, which saves thousands of launches.

    The step picks its own batch and reads changing values from tensors. Steps with a common ``pool`` of memory must
    never run at the same time or pass results to one another, and all of them must be kept as long as any of them runs.
    """

    WARM = 4

    def __init__(
        self, step: Callable[[], Tensor], device: torch.device, pool: torch.cuda._POOL_HANDLE | None = None
    ) -> None:
        self._step, self._pool = step, pool
        self._runs = 0
        self._is_captured = device.type == "cuda"
        self._graph: torch.cuda.CUDAGraph | None = None
        self._result: Tensor | None = None

    def __call__(self) -> Tensor:
        """One step; returns a copy of its figures."""
        if not self._is_captured:
            return self._step()
        self._runs += 1
        if self._runs <= self.WARM:
            return self._aside()
        if self._graph is None:
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph, pool=self._pool):
                self._result = self._step()
        self._graph.replay()
        assert self._result is not None
        return self._result.clone()

    def _aside(self) -> Tensor:
        """Warm up on another stream, as a capture requires."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            figures = self._step()
        torch.cuda.current_stream().wait_stream(stream)
        return figures


def clip_each(parameters: list[nn.Parameter], limit: float = 1.0) -> None:
    """Clip each tensor's gradient to its own norm, so that one unstable layer does not stop the others."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    norms = torch._foreach_norm(gradients)
    torch._foreach_mul_(gradients, [(limit / n.clamp(min=limit)).nan_to_num(0.0) for n in norms])


class Average:
    """An exponential moving average of parameters, warmed up so that the start is forgotten."""

    def __init__(self, parameters: list[nn.Parameter], decay: float = 0.999) -> None:
        self.parameters, self.decay = parameters, decay
        self.values = [p.detach().clone() for p in parameters]
        self._steps = 0

    @torch.no_grad()
    def update(self) -> None:
        self._steps += 1
        decay = min(self.decay, (1 + self._steps) / (10 + self._steps))
        torch._foreach_lerp_(self.values, [p.detach() for p in self.parameters], 1 - decay)

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange the parameters with their averages; call again to undo."""
        for parameter, value in zip(self.parameters, self.values, strict=True):
            copy = parameter.detach().clone()
            parameter.copy_(value)
            value.copy_(copy)


def orthogonalised(update: Tensor) -> Tensor:
    """The nearest semi-orthogonal matrices to update (n, rows, columns), as Muon finds them (Jordan 2024)."""
    x = update.bfloat16()
    tall = x.shape[1] > x.shape[2]
    if tall:
        x = x.mT
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        gram = x @ x.mT
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return (x.mT if tall else x).to(update.dtype)


class Muon(torch.optim.Optimizer):
    """Momentum with an orthogonalised update, for weight matrices; equal shapes are handled as one batch."""

    def __init__(
        self, matrices: list[nn.Parameter], lr: float, momentum: float = 0.95, weight_decay: float = 0.01
    ) -> None:
        shapes = sorted({tuple(p.shape) for p in matrices})
        groups = [{"params": [p for p in matrices if tuple(p.shape) == s]} for s in shapes]
        super().__init__(groups, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            weights = group["params"]
            gradients = torch.stack([p.grad for p in weights])
            state = self.state[weights[0]]
            if "momentum" not in state:
                state["momentum"] = torch.zeros_like(gradients)
            state["momentum"].lerp_(gradients, 1 - group["momentum"])
            update = orthogonalised(gradients.lerp(state["momentum"], group["momentum"]))
            scale = group["lr"] * max(1.0, update.shape[1] / update.shape[2]) ** 0.5
            torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_add_(weights, list(update.unbind(0)), alpha=-scale)
