"""The number of replicas in a fleet: as configured, as running, and as requested from Ray Serve."""

from __future__ import annotations

from typing import Any

import pytest

from engine import ConfigError, EngineConfig
from fleet import start
from fleet.autoscaling import ReplicaRange, fleet_size
from studio.errors import SettingsError
from studio.settings import Settings


def range_of(
    engines: int | tuple[int, int] | None, gpus: int = 2, cores: int = 8, may_grow: bool = True, **config: Any
) -> ReplicaRange:
    where = "the cluster" if may_grow else "this machine"
    return fleet_size(engines, gpus, cores, EngineConfig("some/model", **config), where, may_grow)


def test_fleet_size_is_a_number_a_range_or_one_per_gpu() -> None:
    assert range_of(2) == ReplicaRange(2, 2)
    assert range_of(None) == range_of(None, may_grow=False) == ReplicaRange(2, 2)
    assert range_of(None, gpus=0) == ReplicaRange(1, 1)
    assert range_of((1, 2), may_grow=False) == ReplicaRange(1, 2)
    assert range_of((2, 40)) == ReplicaRange(2, 40), "a cloud brings the machines for more"
    assert (str(ReplicaRange(3, 3)), str(ReplicaRange(2, 40))) == ("3", "2-40")


@pytest.mark.parametrize(
    ("engines", "there", "message"),
    [
        (
            3,
            {"gpus": 2},
            "STUDIO_ENGINES=3, but the cluster has 2 GPUs, and each engine takes one: set STUDIO_ENGINES=2 or less",
        ),
        (
            (3, 9),
            {"gpus": 2},
            "STUDIO_ENGINES=3-9, but the cluster has 2 GPUs, .* set the first of its numbers to 2 or less",
        ),
        ((1, 3), {"gpus": 1, "may_grow": False}, "this machine has 1 GPU, .* set STUDIO_ENGINES to numbers up to 1"),
        ((1, 9), {"gpus": 0, "may_grow": False}, "has 8 cores and no GPU .* set STUDIO_ENGINES to numbers up to 8"),
    ],
)
def test_fleet_larger_than_the_hardware_is_refused(
    engines: int | tuple[int, int], there: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        range_of(engines, **there)


def test_fleet_size_is_read_from_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDIO_ENGINES", "2-8")
    assert Settings.load().engines == (2, 8)


@pytest.mark.parametrize("text", ["8-2", "2-2", "2-", "-8", "0-4"])
def test_invalid_ranges_are_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("STUDIO_ENGINES", text)
    with pytest.raises(SettingsError, match="it must be a number of engines, all, or a range such as 2-8"):
        Settings.load()


@pytest.mark.ray
@pytest.mark.parametrize(("max_rows", "on_gpu", "target"), [(64, True, 44.8), (None, True, 5.6), (None, False, 2.8)])
def test_ray_serve_gets_the_number_of_replicas(
    monkeypatch: pytest.MonkeyPatch, max_rows: int | None, on_gpu: bool, target: float
) -> None:
    from ray import serve

    class Deployed(Exception):
        """Raised instead of starting."""

    def note_deployment(targets: list[Any], **options: Any) -> None:
        raise Deployed(targets[0].target._bound_deployment)

    monkeypatch.setattr(serve, "run_many", note_deployment)
    config = EngineConfig("some/model", max_rows=max_rows)
    with pytest.raises(Deployed) as scaled:
        start.deploy(config, "a plan", ReplicaRange(2, 8), on_gpu, lambda doing, fraction: None)
    (deployment,) = scaled.value.args
    scaling = deployment._deployment_config.autoscaling_config
    assert (scaling.min_replicas, scaling.max_replicas) == (2, 8)
    assert scaling.target_ongoing_requests == pytest.approx(target)
    with pytest.raises(Deployed) as fixed:
        start.deploy(config, "a plan", ReplicaRange(3, 3), on_gpu, lambda doing, fraction: None)
    assert fixed.value.args[0]._deployment_config.autoscaling_config is None
    assert fixed.value.args[0].num_replicas == 3
