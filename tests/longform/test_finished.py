"""Exported files: loudness standards, silence between parts, tags and covers, a zip of chapters."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import av
import numpy as np
import pytest

from audio.loudness import Loudness
from tests.audio.test_loudness import measured
from tests.longform.test_files import FRAME, RATE, fetch, samples
from tests.longform.test_projects import PROJECTS, Json, create_project, until
from tests.studio import fake_engine
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.documents import epub, page, png
from tests.studio.server import Served
from tests.studio.sounds import decoded

Steer = Callable[..., Steered]


def settings(served: Served, project: Json, **changes: object) -> Json:
    with served.client() as client:
        answer = client.patch(f"{PROJECTS}/{project['id']}", json=changes)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def book(steered: Steer) -> tuple[Served, Json]:
    """A generated project of an EPUB with two chapters and complete metadata."""
    served, _ = steered()
    pages = {
        "a.xhtml": page("<h1>One: the “Start”</h1><p>Hello you there.</p>"),
        "b.xhtml": page("<h1>Two/Three</h1><p>Bye now.</p>"),
    }
    document = epub(pages, "A Büch", author=("Ann A.", "Bo B."), language="pt-BR", cover=png())
    with served.client() as client:
        data = {"seed": "3", "start": "true"}
        project = client.post(PROJECTS, files={"file": ("x.epub", document)}, data=data).json()
    return served, until(served, project, "done")


def test_exported_files_have_the_metadata_of_the_epub(book: tuple[Served, Json]) -> None:
    served, project = book
    metadata = project["settings"]
    assert (metadata["author"], metadata["language"]) == ("Ann A., Bo B.", "pt-BR")
    assert fetch(served, project, "cover") == png()
    for name in ("m4b", "mp3"):
        data = fetch(served, project, f"audio?format={name}")
        with av.open(io.BytesIO(data), "r") as file:
            assert (file.metadata["title"], file.metadata["artist"]) == ("A Büch", "Ann A., Bo B.")
            assert [chapter["metadata"]["title"] for chapter in file.chapters()] == ["One: the “Start”", "Two/Three"]
            picture = file.streams.video[0]
            assert next(packet for packet in file.demux(picture) if packet.size).size == len(png())
            assert (picture.width, picture.height) == (8, 8)
            language = file.metadata.get("language") or file.streams.audio[0].metadata["language"]
            assert language == "por"
    assert b"ftypM4B " in fetch(served, project, "audio?format=m4b")[:12]
    for name in ("flac", "opus"):
        with av.open(io.BytesIO(fetch(served, project, f"audio?format={name}")), "r") as file:
            assert (file.metadata | file.streams.audio[0].metadata)["artist"] == "Ann A., Bo B."


def test_cover_can_be_replaced_and_an_invalid_one_is_refused(book: tuple[Served, Json]) -> None:
    served, project = book
    url = f"{PROJECTS}/{project['id']}/cover"
    flat = png()[:33] + png()[33:-20][::-1] + png()[-20:]
    with served.client() as client:
        for bad, why in (
            (b"GIF89a" * 9, "not a readable JPEG or PNG"),
            (png(5000, 1), "5000 by 1 pixels; at most 4096"),
            (b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(40), "not a readable"),
            (flat, "not a readable"),
            (png() + bytes(4 << 20), "at most 4194304"),
        ):
            refused = client.put(url, files={"cover": ("x.png", bad)})
            assert_envelope(refused, 400, "cover")
            assert why in refused.json()["error"]["message"]
        assert client.get(url).content == png()
        changed = client.put(url, files={"cover": ("x.png", png(9))}).json()
        assert changed["cover"] != project["cover"] and client.get(url).content == png(9)
        assert client.delete(url).json()["cover"] is None
        assert_envelope(client.get(url), 404, "project")
        client.put(url, files={"cover": ("x.png", png())})
        client.delete(f"{PROJECTS}/{project['id']}")
    served.app.state.studio.library.trash.empty(None)
    with served.app.state.studio.library.store.reading() as db:
        assert not list(db.table("covers").rows)


def levels(data: bytes, name: str) -> Loudness:
    rate, pcm = decoded(data, name)
    return measured(pcm, rate=rate)


def test_files_meet_the_loudness_standard_of_the_project_or_request(book: tuple[Served, Json]) -> None:
    served, project = book
    plain = fetch(served, project, "audio")
    assert json.loads(fetch(served, project, "loudness"))["loudness"] == "none"
    assert settings(served, project, loudness="podcast")["settings"]["loudness"] == "podcast"
    report: dict[str, Any] = json.loads(fetch(served, project, "loudness"))
    assert report["faults"] == [] and report["after"]["integrated_lufs"] == pytest.approx(-16, abs=0.3)
    assert report["before"]["integrated_lufs"] == pytest.approx(measure_wav(plain).integrated, abs=0.1)
    wav = fetch(served, project, "audio")
    assert len(wav) == len(plain) and measure_wav(wav).integrated == pytest.approx(-16, abs=0.3)
    for name, container in (("mp3", "mp3"), ("m4b", "mp4"), ("opus", "ogg")):
        loudness = levels(fetch(served, project, f"audio?format={name}"), container)
        assert loudness.integrated == pytest.approx(-16, abs=0.5) and loudness.true_peak <= -1
    assert fetch(served, project, "audio?loudness=none") == plain
    acx = measure_wav(fetch(served, project, "audio?loudness=acx"))
    assert acx.rms == pytest.approx(-20, abs=0.3) and acx.peak <= -3
    with served.client() as client:
        url = f"{PROJECTS}/{project['id']}"
        assert_envelope(client.get(f"{url}/audio?loudness=loud"), 400, "loudness")
        assert_envelope(client.patch(url, json={"loudness": "loud"}), 400, "loudness")
        assert_envelope(client.patch(url, json={"language": "no such"}), 400, "language")


def measure_wav(wav: bytes) -> Loudness:
    return measured(samples(wav).astype(np.float32) / 32767)


def test_a_zip_has_a_tagged_file_for_each_chapter(book: tuple[Served, Json]) -> None:
    served, project = book
    with zipfile.ZipFile(io.BytesIO(fetch(served, project, "chapters"))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["01 One the “Start”.mp3", "02 Two Three.mp3"]
        with av.open(io.BytesIO(archive.read("02 Two Three.mp3")), "r") as file:
            tags = {name: file.metadata[name] for name in ("title", "album", "track", "artist")}
            assert tags == {"title": "Two/Three", "album": "A Büch", "track": "2/2", "artist": "Ann A., Bo B."}
            assert file.streams.video
    with zipfile.ZipFile(io.BytesIO(fetch(served, project, "chapters?format=wav&loudness=acx"))) as archive:
        first, second = (samples_of(archive.read(name)) for name in archive.namelist())
    assert len(first) == round(2.75 * RATE) + (3 + 3) * 6 * FRAME + RATE // 2
    assert len(second) == round(2.75 * RATE) + (1 + 2) * 6 * FRAME + RATE // 2
    assert not first[: round(0.75 * RATE)].any() and not first[-2 * RATE :].any()
    with zipfile.ZipFile(io.BytesIO(fetch(served, project, "chapters?loudness=acx"))) as archive:
        first_mp3 = archive.read(archive.namelist()[0])
    with av.open(io.BytesIO(first_mp3), "r") as file:
        assert file.streams.audio[0].bit_rate == 192_000
    with served.client() as client:
        assert_envelope(client.get(f"{PROJECTS}/{project['id']}/chapters?format=m4b"), 400, "format")


def samples_of(wav: bytes) -> np.ndarray:
    return np.frombuffer(wav[44:], "<i2")


def test_silence_around_parts_is_trimmed_on_request(steered: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each take begins and ends with a frame of silence."""
    usual = fake_engine.tone
    silence = np.zeros(FRAME, np.float32)
    monkeypatch.setattr(fake_engine, "tone", lambda seed, frame: silence if frame in (0, 5) else usual(seed, frame))
    served, _ = steered()
    items = [{"input": "One"}, {"input": "Two", "chapter": "Next"}]
    project = create_project(served, items=items, seed=3, pause=1, chapter_pause=2, start=True)
    until(served, project, "done")
    assert len(samples(fetch(served, project, "audio"))) == 2 * 6 * FRAME + 2 * RATE
    settings(served, project, trim=True)
    whole = samples(fetch(served, project, "audio"))
    kept, window = round(0.03 * RATE), 441
    audible = np.flatnonzero(whole)
    assert kept <= audible[0] <= kept + window and kept <= len(whole) - audible[-1] <= kept + window + 1
    [gap] = [end - start for start, end in pairwise(audible) if end - start > RATE]
    assert 0 <= gap - (2 * RATE + 2 * kept) <= 2 * window
    timeline = json.loads(fetch(served, project, "timeline"))
    assert timeline["parts"][1]["start_s"] - timeline["parts"][0]["end_s"] == pytest.approx(2)
    middle = round(timeline["parts"][0]["end_s"] * RATE)
    span = fetch(served, project, "audio", Range=f"bytes={40 + 2 * middle}-{44 + 2 * middle + RATE}")
    assert len(span) == 5 + RATE and not any(span[-RATE:])


def test_byte_range_may_end_within_a_pause(book: tuple[Served, Json]) -> None:
    served, project = book
    timeline = json.loads(fetch(served, project, "timeline"))
    begin, end = (44 + 2 * round(timeline["parts"][n][key] * RATE) for n, key in ((0, "end_s"), (1, "start_s")))
    assert begin < end
    assert fetch(served, project, "audio", Range=f"bytes={begin - 4}-{end - 101}")[4:] == bytes(end - begin - 100)


def test_single_take_can_be_exported_with_a_loudness_standard(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        take = client.post("/v1/audio/speech", json={"input": "One two three four five six seven."}).headers[
            "x-request-id"
        ]
        url = f"/v1/takes/{take}/audio"
        kept, louder = client.get(url), client.get(url, params={"loudness": "podcast"})
        assert louder.headers["etag"] != kept.headers["etag"] and len(louder.content) == len(kept.content)
        assert measure_wav(louder.content).integrated == pytest.approx(-16, abs=0.3)
        mp3 = client.get(url, params={"loudness": "acx", "format": "mp3"})
        assert levels(mp3.content, "mp3").rms == pytest.approx(-20, abs=0.8)  # LAME lowers the level
        assert_envelope(client.get(url, params={"loudness": "loud"}), 400, "loudness")
