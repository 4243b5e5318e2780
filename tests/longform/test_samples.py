"""Samples and MP3s for shops: length, end and bit rate."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable

import av
import numpy as np
import pytest

from tests.longform.test_files import FRAME, RATE, fetch, samples
from tests.longform.test_finished import settings
from tests.longform.test_projects import PROJECTS, Json, create_project, parts_of, until
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.server import Served

Steer = Callable[..., Steered]
WORD = 6 * FRAME / RATE
"""Duration of a word in seconds."""
SENTENCE = "One two three four five six seven eight nine ten."
ITEMS = [
    {"input": "A title", "chapter": "A title"},
    {"input": " ".join([SENTENCE] * 3)},
    {"input": " ".join([SENTENCE] * 3)},
    {"input": "The end", "chapter": "The end"},
]


@pytest.fixture
def spoken_project(steered: Steer) -> tuple[Served, Json]:
    served, _ = steered()
    project = create_project(served, items=ITEMS, title="A Book", seed=3, pause=0, chapter_pause=0, start=True)
    return served, until(served, project, "done")


def test_a_sample_ends_with_a_sentence(spoken_project: tuple[Served, Json]) -> None:
    served, project = spoken_project
    whole = samples(fetch(served, project, "audio"))
    part = 30 * 6 * FRAME
    for seconds, words in ((10, 32), (11, 32), (13, 42), (17.5, 62), (300, 64)):
        cut = samples(fetch(served, project, f"sample?format=wav&seconds={seconds}"))
        assert len(cut) <= seconds * RATE and np.array_equal(cut, whole[: len(cut)])
        assert len(cut) == pytest.approx(words * 6 * FRAME, abs=0.3 * RATE)
    _, second, third, _ = parts_of(served, project)
    chosen = samples(fetch(served, project, f"sample?format=wav&first={third['id']}&last={third['id']}"))
    assert np.array_equal(chosen, whole[2 * 6 * FRAME + part :][:part])
    with served.client() as client:
        url = f"{PROJECTS}/{project['id']}/sample"
        assert_envelope(client.get(url, params={"first": third["id"], "last": second["id"]}), 400, "last")
        assert_envelope(client.get(url, params={"first": "part_x"}), 404, "first")
        for wrong in ("9", "301", "nan"):
            assert_envelope(client.get(url, params={"seconds": wrong}), 400, "seconds")
        assert_envelope(client.get(url, params={"format": "m4b"}), 400, "format")


def test_acx_sample_has_silent_edges_and_192_kbps_and_skips_the_credits(
    spoken_project: tuple[Served, Json],
) -> None:
    served, project = spoken_project
    settings(served, project, opening_credits="Credits of {title}.")
    with served.client() as client:
        client.post(f"{PROJECTS}/{project['id']}/speak", json={}).raise_for_status()
    until(served, project, "done")
    cut = samples(fetch(served, project, "sample?format=wav&loudness=acx&seconds=10"))
    assert 7 * RATE < len(cut) <= 10 * RATE
    assert not cut[: round(0.75 * RATE)].any() and not cut[-2 * RATE :].any()
    assert cut[round(0.75 * RATE) : -2 * RATE].any()
    first = json.loads(fetch(served, project, "timeline"))["parts"][0]
    assert first["chapter"] == "Opening credits"
    title = 2 * 6 * FRAME
    assert len(samples(fetch(served, project, "sample?format=wav"))) == 64 * 6 * FRAME > title
    with av.open(io.BytesIO(fetch(served, project, "sample?loudness=acx")), "r") as file:
        audio = file.streams.audio[0]
        assert (audio.bit_rate, audio.channels, audio.rate) == (192_000, 1, 44_100)


def test_sentence_longer_than_the_sample_is_refused(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": " ".join(["word"] * 60)}], start=True)
    until(served, project, "done")
    with served.client() as client:
        answer = client.get(f"{PROJECTS}/{project['id']}/sample?seconds=10")
    assert_envelope(answer, 400, "seconds")
    assert "part 1" in answer.json()["error"]["message"]


@pytest.mark.parametrize("rate", [44_100, 24_000])
def test_mp3_has_the_bit_rate_of_the_project_or_the_request(steered: Steer, rate: int) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": SENTENCE, "chapter": "One"}], bitrate=64, start=True)
    until(served, project, "done")
    library = served.app.state.studio.library
    with library.store.writing() as db:  # as with a codec of another sample rate
        db.execute("update takes set sample_rate = ?", [rate])

    def bit_rate_of(data: bytes) -> tuple[int | None, int]:
        with av.open(io.BytesIO(data), "r") as file:
            assert file.streams.audio[0].channels == 1
            return file.streams.audio[0].bit_rate, file.streams.audio[0].rate

    assert bit_rate_of(fetch(served, project, "audio?format=mp3")) == (64_000, rate)
    assert bit_rate_of(fetch(served, project, "audio?format=mp3&bitrate=192")) == (192_000, 44_100)
    with zipfile.ZipFile(io.BytesIO(fetch(served, project, "chapters?bitrate=96"))) as archive:
        assert bit_rate_of(archive.read(archive.namelist()[0])) == (96_000, rate)
    settings(served, project, bitrate=None)
    assert bit_rate_of(fetch(served, project, "audio?format=mp3")) == (128_000, rate)
    with served.client() as client:
        url = f"{PROJECTS}/{project['id']}"
        assert_envelope(client.get(f"{url}/audio?format=mp3&bitrate=100"), 400, "bitrate")
        assert_envelope(client.get(f"{url}/audio?format=flac&bitrate=128"), 400, "bitrate")
        assert_envelope(client.patch(url, json={"bitrate": 1000}), 400, "bitrate")
