"""The simulated fleet keeps the time that it is told, and loses no take of a replica that is killed."""

from __future__ import annotations

import json

import pytest

from benchmarks.fleet.simulate import RESULTS, pace_of, simulate
from benchmarks.fleet.timed import FRAME_SECONDS, Pace


def test_two_replicas_do_twice_as_much_and_a_killed_one_loses_nothing() -> None:
    pace = Pace(((1, 0.01), (4, 0.02)), codec=0.0, hit=0.0, miss=0.0, voices=8, rows=4, waiting=4)
    one, two = simulate(pace, (1, 2), seconds=20, kills=1)
    assert one["xrt"] == pytest.approx(4 * FRAME_SECONDS / 0.02, rel=0.05)
    assert two["share"] == pytest.approx(1, abs=0.05)
    assert two["prefix_hit_share"] > one["prefix_hit_share"]
    assert two["kill_lost"] == 0 and two["refused"] == 0


def test_its_pace_is_a_measured_gpus() -> None:
    measured = json.loads((RESULTS / "h200.json").read_text())
    pace = pace_of(measured)
    assert 64 * FRAME_SECONDS / pace.turn(64) == pytest.approx(measured["xrt_b64_with_codec"])
    assert 0 < pace.hit < pace.miss
