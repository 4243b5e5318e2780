"""Subtitles as a dub: two people at once overlap, takes are played faster to fit, late ones are listed by the check."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable

import numpy as np
import pytest

from tests.longform.test_files import FRAME, RATE, fetch, samples
from tests.longform.test_projects import PROJECTS, Json, create_project, until
from tests.longform.test_proof import report, run_check, spots
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.server import Served

Steer = Callable[..., Steered]
WORD = 6 * FRAME / RATE
"""Seconds of a word, 0.28."""
AT_ONCE = """WEBVTT

00:01.000 --> 00:03.000
<v Anna>One two three four

00:01.500 --> 00:02.000
<v Ben>Five

00:01.600 --> 00:03.000
<v Anna>Six

00:03.000 --> 00:04.000
<v Ben>Seven
"""
CLOSE = """1
00:00:01,000 --> 00:00:01,900
One two three four

2
00:00:02,000 --> 00:00:02,400
Five six seven

3
00:00:02,450 --> 00:00:04,000
Eight

4
00:00:06,000 --> 00:00:07,000
Nine
"""


def timeline_of(served: Served, project: Json) -> list[Json]:
    return json.loads(fetch(served, project, "timeline"))["parts"]


def test_two_people_who_speak_at_once_are_heard_at_once(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, input=AT_ONCE, kind="srt", speakers=True, start=True)
    until(served, project, "done")
    starts = [part["start_s"] for part in timeline_of(served, project)]
    assert starts == pytest.approx([1.0, 1.5, 1 + 4 * WORD, 3.0], abs=1e-4), "a person does not interrupt herself"
    wav = fetch(served, project, "audio")
    whole = samples(wav)
    with zipfile.ZipFile(io.BytesIO(fetch(served, project, "tracks?format=wav"))) as archive:
        tracks = [samples(archive.read(name)) for name in archive.namelist() if name.endswith(".wav")]
    overlap = slice(round(1.55 * RATE), round(1.7 * RATE))
    assert len(tracks) == 2 and all(np.any(track[overlap]) and len(track) == len(whole) for track in tracks)
    total = np.sum(tracks, axis=0, dtype=np.int32)
    assert np.array_equal(whole, total.clip(-32768, 32767)) and np.any(whole != 0)
    middle = 44 + 2 * round(1.6 * RATE)
    for start, stop in ((middle, middle + 1000), (middle + 1, middle + 1000), (middle + 3, middle + 4)):
        assert fetch(served, project, "audio", Range=f"bytes={start}-{stop - 1}") == wav[start:stop]


def test_takes_are_played_faster_up_to_a_limit_and_late_ones_are_listed(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, input=CLOSE, kind="srt", start=True)
    until(served, project, "done")
    late = [1 + 4 * WORD - 2.0, 1 + 7 * WORD - 2.45]
    now = timeline_of(served, project)
    assert [part["late_s"] for part in now] == pytest.approx([0, *late, 0], abs=0.001)
    assert {part["speed"] for part in now} == {1}
    assert run_check(served, project)["spots"]["late"] == 1, "an eighth of a second is not noticed"
    [spot] = spots(served, project, "?kind=late")
    assert (spot["kind"], spot["position"], spot["heard"]) == ("late", 2, f"+{late[1]:.1f} s")
    assert f"Part 3, 0.0 s: begins late: +{late[1]:.1f} s" in report(served, project, "txt")
    with served.client() as client:
        address = f"{PROJECTS}/{project['id']}"
        for wrong in (0.9, 2.5, "fast"):
            assert_envelope(client.patch(address, json={"cue_speed": wrong}), 400, "cue_speed")
        client.patch(address, json={"cue_speed": 2}).raise_for_status()
    fitted = timeline_of(served, project)
    assert [part["start_s"] for part in fitted] == pytest.approx([1, 2, 2.45, 6], abs=0.001)
    speeds = [part["speed"] for part in fitted]
    assert speeds == pytest.approx([4 * WORD / 1.0, 3 * WORD / 0.45, 1, 1], abs=0.002)
    whole = samples(fetch(served, project, "audio"))
    sounding = np.abs(whole) > 0
    assert len(whole) == round(6 * RATE) + 6 * FRAME and sounding[round(2.44 * RATE) : round(2.46 * RATE)].any()
    assert run_check(served, project)["spots"]["late"] == 0 and spots(served, project, "?kind=late") == []
