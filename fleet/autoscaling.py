"""How many replicas a fleet has: a number, or from so few to so many, by how much there is to speak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine import ConfigError, EngineConfig

BUSY = 0.7
"""A fleet that may grow has so many replicas that about this share of their rows is taken, by those who wait too."""
GROW_SECONDS = 10.0
"""More are started when there are too few for so long …"""
SHRINK_SECONDS = 600.0
"""… and some are let go when there are too many for so long: to load one again takes half a minute, a machine more."""


@dataclass(frozen=True)
class Size:
    """At least and at most so many replicas; the same number where it does not change."""

    least: int
    most: int

    def options(self, config: EngineConfig, on_gpu: bool) -> dict[str, Any]:
        """As Ray Serve's deployment takes it."""
        if self.least == self.most:
            return {"num_replicas": self.most}
        from ray.serve.config import AutoscalingConfig

        scaling = AutoscalingConfig(
            min_replicas=self.least,
            max_replicas=self.most,
            target_ongoing_requests=BUSY * config.rows_on("cuda" if on_gpu else "cpu"),
            upscale_delay_s=GROW_SECONDS,
            downscale_delay_s=SHRINK_SECONDS,
        )
        return {"autoscaling_config": scaling}

    def __str__(self) -> str:
        return str(self.most) if self.least == self.most else f"{self.least}-{self.most}"


def size_of(
    engines: int | tuple[int, int] | None, gpus: int, cores: int, config: EngineConfig, where: str, may_grow: bool
) -> Size:
    """What STUDIO_ENGINES asks for; None:  an engine for each GPU. ``where`` has so many GPUs and cores.

    Raises ConfigError for more replicas than GPUs, or without one than cores; those that a fleet may grow to can come
    with machines that a cloud adds.
    """
    if config.device == "cuda" and not gpus:
        raise ConfigError(f"STUDIO_DEVICE=cuda, but {where} has no GPU")
    if engines is None:
        return Size(max(gpus, 1), max(gpus, 1))
    size = Size(*engines) if isinstance(engines, tuple) else Size(engines, engines)
    there, needed = gpus or cores, size.least if may_grow else size.most
    if needed <= there:
        return size
    fitting = (
        f"STUDIO_ENGINES={there} or less" if size.least == size.most else f"STUDIO_ENGINES to numbers up to {there}"
    )
    if may_grow and size.least < size.most:
        fitting = f"the first of its numbers to {there} or less"
    if gpus:
        raise ConfigError(
            f"STUDIO_ENGINES={size}, but {where} has {gpus} GPU{'s' * (gpus > 1)}, and each engine takes one: "
            f"set {fitting}, or STUDIO_DEVICE=cpu"
        )
    raise ConfigError(
        f"STUDIO_ENGINES={size}, but {where} has {cores} core{'s' * (cores > 1)} and no GPU that may be used, and each "
        f"engine needs a core at least: set {fitting}"
    )
