"""The number of replicas of a fleet: fixed, or a range that follows the load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine import ConfigError, EngineConfig

TARGET_LOAD = 0.7  # share of rows in use, waiting requests included, at which an elastic fleet aims
GROW_SECONDS = 10.0  # seconds with too few replicas after which some are added
SHRINK_SECONDS = 600.0
"""Seconds with too many replicas after which some are removed; adding one takes half a minute or more."""


@dataclass(frozen=True)
class ReplicaRange:
    """The minimum and maximum number of replicas; equal if it is fixed."""

    minimum: int
    maximum: int

    def options(self, config: EngineConfig, on_gpu: bool) -> dict[str, Any]:
        if self.minimum == self.maximum:
            return {"num_replicas": self.maximum}
        from ray.serve.config import AutoscalingConfig

        scaling = AutoscalingConfig(
            min_replicas=self.minimum,
            max_replicas=self.maximum,
            target_ongoing_requests=TARGET_LOAD * config.rows_on("cuda" if on_gpu else "cpu"),
            upscale_delay_s=GROW_SECONDS,
            downscale_delay_s=SHRINK_SECONDS,
        )
        return {"autoscaling_config": scaling}

    def __str__(self) -> str:
        return str(self.maximum) if self.minimum == self.maximum else f"{self.minimum}-{self.maximum}"


def fleet_size(
    engines: int | tuple[int, int] | None, gpus: int, cores: int, config: EngineConfig, machines: str, may_grow: bool
) -> ReplicaRange:
    """The size for STUDIO_ENGINES; None means one engine per GPU. ``machines`` names the machines in errors.

    Raises ConfigError for more replicas than GPUs (without GPUs: than cores). With ``may_grow`` only the minimum has to
    fit, as a cloud may add machines.
    """
    if config.device == "cuda" and not gpus:
        raise ConfigError(f"STUDIO_DEVICE=cuda, but {machines} has no GPU")
    if engines is None:
        return ReplicaRange(max(gpus, 1), max(gpus, 1))
    size = ReplicaRange(*engines) if isinstance(engines, tuple) else ReplicaRange(engines, engines)
    available, needed = gpus or cores, size.minimum if may_grow else size.maximum
    if needed <= available:
        return size
    suggestion = (
        f"STUDIO_ENGINES={available} or less"
        if size.minimum == size.maximum
        else f"STUDIO_ENGINES to numbers up to {available}"
    )
    if may_grow and size.minimum < size.maximum:
        suggestion = f"the first of its numbers to {available} or less"
    if gpus:
        raise ConfigError(
            f"STUDIO_ENGINES={size}, but {machines} has {gpus} GPU{'s' * (gpus > 1)}, and each engine takes one: "
            f"set {suggestion}, or STUDIO_DEVICE=cpu"
        )
    raise ConfigError(
        f"STUDIO_ENGINES={size}, but {machines} has {cores} core{'s' * (cores > 1)} and no GPU that may be used, and "
        f"each engine needs a core at least: set {suggestion}"
    )
