"""The simulated fleet matches the given times and loses no take when a replica is killed."""

from __future__ import annotations

import json

import pytest

from benchmarks.fleet.simulate import RESULTS, SIZES, pace_of, simulate
from benchmarks.fleet.timed import FRAME_SECONDS, Pace


def test_two_replicas_double_the_throughput_and_a_kill_loses_no_take() -> None:
    pace = Pace(((1, 0.01), (8, 0.02)), codec=0.0, hit=0.0, miss=0.0, voices=8, rows=8, waiting=8)
    one, two = simulate(pace, (1, 2), seconds=20, kills=1)
    assert one["xrt"] == pytest.approx(8 * FRAME_SECONDS / 0.02, rel=0.05)
    assert two["share"] == pytest.approx(1, abs=0.05)
    assert two["prefix_hit_share"] > one["prefix_hit_share"]
    assert two["burst_xrt"] == pytest.approx(2 * one["burst_xrt"], rel=0.05), "no row is free while takes wait"
    assert two["kill_lost"] == 0 and two["refused"] == 0


def test_expected_pace_matches_a_measured_gpu() -> None:
    measured = json.loads((RESULTS / "h200.json").read_text())
    pace = pace_of(measured)
    assert 64 * FRAME_SECONDS / pace.turn(64) == pytest.approx(measured["xrt_b64_with_codec"])
    assert 0 < pace.hit < pace.miss


def test_stored_results_cover_all_sizes_and_scale_with_replicas() -> None:
    results = json.loads((RESULTS / "fleet_simulated.json").read_text())
    rows = results["rows"]
    assert [row["replicas"] for row in rows] == list(SIZES)
    assert results["sim_64_share"] == pytest.approx(rows[-1]["share"], abs=0.001) and results["sim_64_share"] >= 0.9
