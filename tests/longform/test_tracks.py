"""Tracks for an audio editor: as long as the whole, silent while others speak, with labels that locate the words."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import numpy as np
import pytest
import soundfile

from longform import zip_export
from tests.longform.test_files import RATE, fetch, samples
from tests.longform.test_projects import PROJECTS, Json, create_project, until
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.server import Served
from tests.studio.sounds import decoded

Steer = Callable[..., Steered]
ITEMS = [
    {"input": "One two.", "voice": "anna", "chapter": "First"},
    {"input": "Three.\n\nfour" + " and so on" * 20, "voice": "bert"},
    {"input": "Five.", "voice": "anna", "chapter": "Second"},
]


@pytest.fixture
def spoken_project(steered: Steer) -> tuple[Served, Json]:
    served, _ = steered()
    project = create_project(served, items=ITEMS, title="A Play", seed=3, pause=0.5, start=True)
    return served, until(served, project, "done")


def test_tracks_add_up_to_the_project_audio(spoken_project: tuple[Served, Json]) -> None:
    served, project = spoken_project
    whole = samples(fetch(served, project, "audio"))
    with zipfile.ZipFile(io.BytesIO(fetch(served, project, "tracks"))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["labels.txt", "chapters.txt", "01 anna.flac", "02 bert.flac"]
        tracks = [np.rint(decoded(archive.read(name), "flac")[1] * 32768) for name in archive.namelist()[2:]]
        stated = [soundfile.info(io.BytesIO(archive.read(name))).frames for name in archive.namelist()[2:]]
        labels = [line.split("\t") for line in archive.read("labels.txt").decode().splitlines()]
        chapters = archive.read("chapters.txt").decode().splitlines()
    assert all(len(track) == len(whole) for track in tracks) and stated == [len(whole)] * 2
    assert np.array_equal(np.add(*tracks), whole) and not np.any((tracks[0] != 0) & (tracks[1] != 0))
    assert [label[2] for label in labels[::2]] == ["anna: One two.", "anna: Five."]
    assert labels[1][2].startswith("bert: Three. four and so on") and labels[1][2].endswith("…")
    begin, end = (round(float(second) * RATE) for second in labels[1][:2])
    assert not tracks[1][:begin].any() and not tracks[1][end:].any() and tracks[1][begin:end].any()
    assert [line.split("\t")[2] for line in chapters] == ["First", "Second"]
    with zipfile.ZipFile(io.BytesIO(fetch(served, project, "tracks?format=wav"))) as archive:
        assert np.array_equal(samples(archive.read("02 bert.wav")), tracks[1])
    with served.client() as client:
        assert_envelope(client.get(f"{PROJECTS}/{project['id']}/tracks?format=mp3"), 400, "format")


def test_rarest_voices_share_a_track_beyond_the_limit(
    spoken_project: tuple[Served, Json], monkeypatch: pytest.MonkeyPatch
) -> None:
    served, project = spoken_project
    monkeypatch.setattr(zip_export, "MAX_TRACKS", 1)
    whole = samples(fetch(served, project, "audio"))
    with zipfile.ZipFile(io.BytesIO(fetch(served, project, "tracks?format=wav"))) as archive:
        assert archive.namelist()[2:] == ["01 Others.wav"]
        assert np.array_equal(samples(archive.read("01 Others.wav")), whole)


@pytest.mark.parametrize("path", ["tracks", "tracks?format=wav", "chapters", "chapters?format=wav", "epub"])
def test_zip_of_large_files_is_whole_and_of_small_ones_can_be_read_by_all_programs(
    spoken_project: tuple[Served, Json], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    served, project = spoken_project
    with zipfile.ZipFile(io.BytesIO(fetch(served, project, path))) as archive:
        assert {info.extract_version for info in archive.infolist()} == {zipfile.DEFAULT_VERSION}
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 4096)
    with zipfile.ZipFile(io.BytesIO(fetch(served, project, path))) as archive:
        assert archive.testzip() is None
        assert max(info.extract_version for info in archive.infolist()) == zipfile.ZIP64_VERSION


def test_cast_gives_each_character_a_track_and_a_name_in_webvtt(steered: Steer) -> None:
    served, _ = steered()
    text = "It was late. “Good night,” said Eleanor. “Sleep well,” said Mary. “I shall,” said Eleanor."
    project = create_project(served, input=text, speakers=True, voice="anna", start=True)
    until(served, project, "done")
    with zipfile.ZipFile(io.BytesIO(fetch(served, project, "tracks"))) as archive:
        names = [name.removesuffix(".flac")[3:] for name in archive.namelist() if name.endswith(".flac")]
        labels = archive.read("labels.txt").decode()
    cues = fetch(served, project, "subtitles?format=vtt").decode().split("\n\n")
    assert cues[1].endswith("\nIt was late.") and cues[2].endswith("\n<v Eleanor>“Good night,”</v>")
    assert "<" not in fetch(served, project, "subtitles").decode()
    assert sorted(names) == ["Eleanor", "Mary", "Narrator"]
    assert "Eleanor: “Good night,”" in labels and "Narrator: It was late." in labels
