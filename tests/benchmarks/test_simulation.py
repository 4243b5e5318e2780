"""The simulated fleet keeps the given times, and loses no take of a killed replica."""

from __future__ import annotations

import json
import xml.etree.ElementTree as Xml

import pytest

from benchmarks.common.plot import lines
from benchmarks.fleet.simulate import RESULTS, pace_of, plot, simulate
from benchmarks.fleet.timed import FRAME_SECONDS, Pace


def test_two_replicas_do_twice_as_much_and_a_killed_one_loses_nothing() -> None:
    pace = Pace(((1, 0.01), (8, 0.02)), codec=0.0, hit=0.0, miss=0.0, voices=8, rows=8, waiting=8)
    one, two = simulate(pace, (1, 2), seconds=20, kills=1)
    assert one["xrt"] == pytest.approx(8 * FRAME_SECONDS / 0.02, rel=0.05)
    assert two["share"] == pytest.approx(1, abs=0.05)
    assert two["prefix_hit_share"] > one["prefix_hit_share"]
    assert two["burst_xrt"] == pytest.approx(2 * one["burst_xrt"], rel=0.05), "no row is free while takes wait"
    assert two["kill_lost"] == 0 and two["refused"] == 0


def test_its_pace_is_a_measured_gpus() -> None:
    measured = json.loads((RESULTS / "h200.json").read_text())
    pace = pace_of(measured)
    assert 64 * FRAME_SECONDS / pace.turn(64) == pytest.approx(measured["xrt_b64_with_codec"])
    assert 0 < pace.hit < pace.miss


def polylines(svg: str) -> list[list[str]]:
    """The points of each."""
    drawn = Xml.fromstring(svg)  # noqa: S314  (our own)
    return [each.attrib["points"].split() for each in drawn.iter("{http://www.w3.org/2000/svg}polyline")]


def test_what_was_simulated_is_drawn_and_each_point_is_where_its_figure_says() -> None:
    told = json.loads((RESULTS / "fleet_simulated.json").read_text())
    rows = told["rows"]
    assert told["sim_64_share"] == pytest.approx(rows[-1]["share"], abs=0.001) and told["sim_64_share"] >= 0.9
    ways = polylines(plot(rows))
    assert [len(way) for way in ways] == [len(rows)] * 2
    picture = RESULTS.parents[1] / "docs" / "pictures" / "fleet-simulated.svg"
    assert picture.read_text("utf-8") == plot(rows), "draw it again: simulate --plot"
    (way,) = polylines(lines("a < b", "across", [1, 2, 4], {"one": [0.0, 0.5, 1.0]}, top=1.0))
    downs = [float(point.partition(",")[2]) for point in way]
    assert downs[0] - downs[1] == pytest.approx(downs[1] - downs[2], abs=0.2) and downs[0] > downs[2]
    with pytest.raises(ValueError, match="3 steps and series of"):
        lines("", "", [1, 2, 4], {"one": [0.0, 1.0]}, top=1.0)
