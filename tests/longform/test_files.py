"""A project's audio as files: exact to the sample, byte ranges of a WAV, chapters, a zip, timed subtitles."""

from __future__ import annotations

import csv
import io
import json
import wave
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import av
import httpx
import numpy as np
import pytest

from longform.library.project_records import Part, ProjectSettings
from longform.render import ConcatenatedWav, encoded, write_m4b
from longform.tags import Tags
from longform.timeline import lay_out
from manuscript.subtitles import read_srt
from manuscript.untrusted import Cover
from studio.errors import InvalidRequest
from studio.library.audio_files import AudioFiles
from studio.library.take import Take
from tests.longform.test_projects import PROJECTS, Json, change, create_project, parts_of, until
from tests.studio.conftest import Steered
from tests.studio.documents import png
from tests.studio.server import Served
from tests.studio.sounds import decoded, tone, wav

FRAME, RATE = 2048, 44_100
Steer = Callable[..., Steered]


def fetch(served: Served, project: Json, path: str, **headers: str) -> bytes:
    with served.client() as client:
        answer = client.get(f"{PROJECTS}/{project['id']}/{path}", headers=headers)
    assert answer.status_code in (200, 206), answer.text
    return answer.content


def samples(wav: bytes) -> np.ndarray:
    with wave.open(io.BytesIO(wav)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getnframes()) == (RATE, 1, (len(wav) - 44) // 2)
        return np.frombuffer(file.readframes(1 << 30), "<i2")


@pytest.fixture
def spoken_project(steered: Steer) -> tuple[Served, Json]:
    """Four parts in two chapters, the second part with its own pause."""
    served, _ = steered()
    items = [
        {"input": "One", "chapter": "First"},
        {"input": "Two three", "pause": 0.25, "voice": "bert"},
        {"input": "Four."},
        {"input": "Five.", "chapter": "Zweites “Ende”"},
    ]
    project = create_project(served, items=items, title="A Bük", seed=3, pause=1, chapter_pause=2, start=True)
    return served, until(served, project, "done")


def test_project_audio_is_exactly_its_parts_and_pauses(spoken_project: tuple[Served, Json]) -> None:
    served, project = spoken_project
    takes = [fetch(served, project, f"takes/{part['chosen']}/audio") for part in parts_of(served, project)]
    pauses = [np.zeros(round(seconds * RATE), np.int16) for seconds in (1, 0.25, 2)]
    pieces = [samples(takes[0])]
    for pause, take in zip(pauses, takes[1:], strict=True):
        pieces += [pause, samples(take)]
    whole = fetch(served, project, "audio")
    assert np.array_equal(samples(whole), np.concatenate(pieces))
    assert len(samples(whole)) == (1 + 2 + 1 + 1) * 6 * FRAME + round(3.25 * RATE)
    for start, stop in ((0, 10), (40, 50), (44, 100), (30_000, 200_001), (len(whole) - 5, len(whole) + 50)):
        assert fetch(served, project, "audio", Range=f"bytes={start}-{stop - 1}") == whole[start:stop]
    assert fetch(served, project, "audio", Range="bytes=-7") == whole[-7:]
    assert fetch(served, project, "audio", Range="bytes=50000-") == whole[50_000:]
    with served.client() as client:
        url = f"{PROJECTS}/{project['id']}/audio"
        answer = client.get(url, headers={"Range": "bytes=5-9"})
        assert (answer.status_code, answer.headers["content-range"]) == (206, f"bytes 5-9/{len(whole)}")
        assert client.get(url, headers={"Range": f"bytes={len(whole)}-"}).status_code == 416
        stale = {"Range": "bytes=5-9", "If-Range": '"another"'}
        assert client.get(url, headers=stale).status_code == 200


def test_other_formats_have_the_same_audio(spoken_project: tuple[Served, Json]) -> None:
    served, project = spoken_project
    whole = samples(fetch(served, project, "audio"))
    rate, flac = decoded(fetch(served, project, "audio?format=flac"), "flac")
    assert rate == RATE and np.array_equal(np.rint(flac * 32768).astype(np.int16), whole)
    rate, mp3 = decoded(fetch(served, project, "audio?format=mp3"), "mp3")
    assert rate == RATE and 0 <= len(mp3) - len(whole) < 4 * 1152
    with served.client() as client:
        assert client.get(f"{PROJECTS}/{project['id']}/audio?format=pcm").status_code == 400


def test_m4b_has_the_title_and_chapters_of_the_project(spoken_project: tuple[Served, Json]) -> None:
    served, project = spoken_project
    timeline = json.loads(fetch(served, project, "timeline"))
    book = fetch(served, project, "audio?format=m4b")
    with av.open(io.BytesIO(book), "r") as file:
        chapters = file.chapters()
        length = sum(frame.samples for frame in file.decode(audio=0))
        assert file.metadata["title"] == "A Bük"
    assert [chapter["metadata"]["title"] for chapter in chapters] == ["First", "Zweites “Ende”"]
    assert chapters[1]["start"] == round(timeline["parts"][3]["start_s"] * 1000) == chapters[0]["end"]
    assert abs(length - timeline["samples"]) <= 2 * 1024
    assert not list(served.app.state.studio.speech.voices.library.home.glob("tmp*"))


def test_m4b_is_exported_without_chapters_and_leaves_room_for_others(
    steered: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, _ = steered()
    project = create_project(served, input="One.", start=True)
    until(served, project, "done")
    with av.open(io.BytesIO(fetch(served, project, "audio?format=m4b")), "r") as file:
        assert file.chapters() == []
        assert sum(frame.samples for frame in file.decode(audio=0)) > 0
    monkeypatch.setattr("studio.library.disk_reserve.SPARE", 2**60)
    with served.client() as client:
        for path in ("audio?format=m4b", "epub"):
            head, answer = (client.request(method, f"{PROJECTS}/{project['id']}/{path}") for method in ("HEAD", "GET"))
            assert head.status_code == 200 and "content-length" not in head.headers, "it is not written for that"
            assert answer.status_code == 503 and "are free on the library's disk" in answer.text


def test_subtitles_and_timeline_have_the_times_of_the_audio(spoken_project: tuple[Served, Json]) -> None:
    served, project = spoken_project
    timeline = json.loads(fetch(served, project, "timeline"))
    starts = np.cumsum([0, 6 * FRAME + RATE, 12 * FRAME + RATE // 4, 6 * FRAME + 2 * RATE]) / RATE
    ends = starts + np.array([6, 12, 6, 6]) * FRAME / RATE
    assert [part["start_s"] for part in timeline["parts"]] == pytest.approx(starts, abs=1e-9)
    assert [part["end_s"] for part in timeline["parts"]] == pytest.approx(ends, abs=1e-9)
    cues = fetch(served, project, "subtitles").decode().split("\n\n")
    assert cues[0] == "1\n00:00:00,000 --> 00:00:00,279\nOne"
    spoken_until = starts[3] + 6 * FRAME / RATE * 4 / 5  # without its full stop
    assert cues[3] == f"4\n{clock(starts[3])} --> {clock(spoken_until)}\nFive."


def test_webvtt_has_the_same_cues_as_srt(spoken_project: tuple[Served, Json]) -> None:
    served, project = spoken_project
    change(served, project, parts_of(served, project)[0], text="1 < 2 --> & so").raise_for_status()
    start(served, project)
    srt, vtt = (fetch(served, project, f"subtitles?format={name}").decode() for name in ("srt", "vtt"))
    header, *cues = vtt.strip().split("\n\n")
    assert header == "WEBVTT" and cues[0].endswith("\n1 &lt; 2 --&gt; &amp; so")
    times = [cue.split("\n")[1].replace(",", ".") for cue in srt.strip().split("\n\n")]
    assert [cue.split("\n")[0] for cue in cues] == times
    texts = [passage.text for passage in read_srt(vtt.encode()).passages]
    assert texts == [part["text"] for part in parts_of(served, project)]
    with served.client() as client:
        assert (
            client.get(f"{PROJECTS}/{project['id']}/subtitles?format=vtt")
            .headers["content-type"]
            .startswith("text/vtt")
        )
        assert client.get(f"{PROJECTS}/{project['id']}/subtitles?format=ass").status_code == 400


def clock(seconds: float) -> str:
    return f"00:00:{int(seconds):02},{round(seconds % 1 * 1000):03}"


def test_cues_are_sentences_with_the_word_times_of_their_takes(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(
        served, items=[{"input": "Six words [whisper] are here. So they are!"}, {"input": "Bye."}], pause=1
    )
    part = start(served, project)[0]
    cues = fetch(served, project, "subtitles").decode().split("\n\n")
    assert [cue.split("\n")[-1] for cue in cues[:3]] == ["Six words are here.", "So they are!", "Bye."]
    whole = 8 * 6 * FRAME / RATE  # all characters have the same duration
    ends, begins = (whole * at / len(part["text"]) for at in (part["text"].index("."), part["text"].index("So")))
    assert cues[0].startswith(f"1\n00:00:00,000 --> {clock(ends)}\n")
    assert cues[1].startswith(f"2\n{clock(begins)} --> ")
    assert cues[2].startswith(f"3\n{clock(whole + 1)} --> ")
    times = json.loads(fetch(served, project, f"takes/{part['chosen']}/timestamps"))
    assert [word["text"] for word in times["timestamps"]] == ["Six", "words", "are", "here", "So", "they", "are"]
    assert times["text"] == part["text"] and times["of"] == "word"
    times = json.loads(fetch(served, project, f"takes/{part['chosen']}/timestamps?of=sentence"))
    assert [sentence["text"] for sentence in times["timestamps"]] == ["Six words are here.", "So they are!"]


def test_part_without_word_times_is_one_cue(steered: Steer) -> None:
    served, engine = steered()
    engine.info = replace(engine.info, cannot_align="held in fp8")
    project = create_project(served, items=[{"input": "One here. Two there."}])
    [part] = start(served, project)
    assert fetch(served, project, "subtitles").decode().strip().endswith("\nOne here. Two there.")
    with served.client() as client:
        answer = client.get(f"{PROJECTS}/{project['id']}/takes/{part['chosen']}/timestamps")
        assert (answer.status_code, answer.json()["error"]["code"]) == (501, "no_timestamps")
        client.delete(f"{PROJECTS}/{project['id']}").raise_for_status()


def start(served: Served, project: Json) -> list[Json]:
    """Generate all parts, wait for them and return them."""
    with served.client() as client:
        client.post(f"{PROJECTS}/{project['id']}/speak", json={"parts": "all"}).raise_for_status()
    until(served, project, "done")
    return parts_of(served, project)


def test_manifest_of_the_zip_recreates_the_project(spoken_project: tuple[Served, Json]) -> None:
    served, project = spoken_project
    data = fetch(served, project, "zip")
    parts = parts_of(served, project)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        manifest = archive.read("manifest.csv")
        rows = list(csv.DictReader(io.StringIO(manifest.decode())))
        for row, part in zip(rows, parts, strict=True):
            assert archive.read(row["file"]) == fetch(served, project, f"takes/{part['chosen']}/audio")
            assert (row["text"], row["voice"], row["seed"]) == (part["text"], part["voice"] or "", "3")
    with served.client() as client:
        again = client.post(PROJECTS, files={"file": ("manifest.csv", manifest)}, data={"title": "Again"}).json()
    columns = ("text", "chapter", "voice", "pause")
    assert [[part[name] for name in columns] for part in parts_of(served, again)] == [
        [part[name] for name in columns] for part in parts
    ]


def test_missing_part_is_reported_or_omitted(spoken_project: tuple[Served, Json]) -> None:
    served, project = spoken_project
    change(served, project, parts_of(served, project)[2], text="Another.")
    with served.client() as client:
        answer = client.get(f"{PROJECTS}/{project['id']}/audio")
        assert answer.status_code == 409 and "1 of 4 parts" in answer.json()["error"]["message"]
        answer = client.get(f"{PROJECTS}/{project['id']}/audio?partial=true")
    assert answer.headers["x-missing-parts"] == "1"
    assert len(samples(answer.content)) == 4 * 6 * FRAME + round(1.25 * RATE)


def test_damaged_audio_is_refused_before_the_first_byte(spoken_project: tuple[Served, Json]) -> None:
    served, project = spoken_project
    library, chosen = served.app.state.studio.library, [part["chosen"] for part in parts_of(served, project)]
    paths = [library.files.path(library.takes.get(take_id).audio) for take_id in chosen]
    whole = [path.read_bytes() for path in paths]

    def refused(client: httpx.Client, path: str, named: str) -> None:
        answer = client.get(f"{PROJECTS}/{project['id']}/{path}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "damaged_audio"), path
        assert named in answer.json()["error"]["message"] and str(library.home) not in answer.text

    with served.client() as client:
        paths[1].unlink()
        refused(client, "zip?partial=true", "the audio of part 2 is missing")
        paths[2].chmod(0o600)
        paths[2].write_bytes(whole[2][:3000])  # the audio of the other parts of one word, too
        for path in ("timeline", "audio", "audio?format=mp3", "chapters", "zip", "tracks", "sample", "epub"):
            refused(client, path, "the audio of parts 1, 2, 3 and 4 is missing")
        for take_id in chosen[1:3]:
            refused(client, f"takes/{take_id}/audio", "audio file")
        paths[2].write_bytes(whole[2])
        changed = whole[1][:44] + bytes(len(whole[1]) - 44)
        streams = ("audio", "audio?format=mp3", "audio?format=opus&loudness=podcast", "chapters", "zip", "tracks")
        for path in (*streams, "sample", "epub", "audio?format=m4b"):  # each at the first try, and part 1 is as it was
            paths[1].write_bytes(changed)
            refused(client, path, "the audio of part 2 is missing")
            paths[1].write_bytes(whole[1])
            assert client.get(f"{PROJECTS}/{project['id']}/{path}").status_code == 200
        paths[1].write_bytes(changed)
        with pytest.raises(httpx.RemoteProtocolError, match="without sending complete message"):
            client.get(f"{PROJECTS}/{project['id']}/audio", headers={"Range": "bytes=0-"})  # a player's
        refused(client, "timeline", "the audio of part 2 is missing")


def test_subtitles_start_at_their_times_or_after_the_previous_one(steered: Steer) -> None:
    served, _ = steered()
    srt = (
        "1\n00:00:01,000 --> 00:00:02,000\nOne\n\n2\n00:00:01,100 --> 00:00:02,000\nTwo\n\n"
        "3\n00:00:04,000 --> 00:00:05,000\nThree\n"
    )
    project = create_project(served, input=srt, kind="srt", start=True)
    until(served, project, "done")
    timeline = json.loads(fetch(served, project, "timeline"))
    starts = [1.0, (RATE + 6 * FRAME) / RATE, 4.0]
    assert [part["start_s"] for part in timeline["parts"]] == pytest.approx(starts, abs=1e-9)
    whole = samples(fetch(served, project, "audio"))
    assert len(whole) == 4 * RATE + 6 * FRAME
    with served.client() as client:
        seconds = client.get(f"{PROJECTS}/{project['id']}").json()["seconds"]
    assert seconds == pytest.approx(len(whole) / RATE, abs=0.001)
    assert not whole[:RATE].any() and whole[RATE : RATE + 100].any() and not whole[3 * RATE : 4 * RATE].any()


def test_emptying_the_trash_deletes_the_files_of_a_project(spoken_project: tuple[Served, Json]) -> None:
    served, project = spoken_project
    library = served.app.state.studio.speech.voices.library
    files = {name for name, _ in library.files.everything()}
    with served.client() as client:
        client.delete(f"{PROJECTS}/{project['id']}")
        assert files == {name for name, _ in library.files.everything()}
    library.trash.empty(None)
    gone = files - {name for name, _ in library.files.everything()}
    assert len(gone) == 2  # three of the four takes are identical and share a file


def take_of(samples: int, rate: int, audio: str = "0" * 64) -> Part:
    take = Take("t", 0.0, "anna", 1, audio=audio, seconds=samples / rate, sample_rate=rate, part_id="p")
    state = {"position": 0, "state": "done", "attempts": 1, "error": None, "chosen": "t", "takes": (take,)}
    return Part("Hi", id="p", project_id="x", **state)  # type: ignore[arg-type]


def test_wav_that_would_be_too_large_is_refused(tmp_path: Path) -> None:
    longest = (2**32 - 1 - 44) // 2
    files, settings = AudioFiles(tmp_path), ProjectSettings()
    assert ConcatenatedWav(lay_out([take_of(longest, RATE)], settings), files).size == 2**32 - 2
    with pytest.raises(InvalidRequest, match="flac, mp3 or m4b"):
        ConcatenatedWav(lay_out([take_of(longest + 1, RATE)], settings), files)


@pytest.mark.parametrize("count", [255, 258])
def test_more_chapters_than_a_short_list_holds_are_only_in_the_long_list(tmp_path: Path, count: int) -> None:
    """Players that prefer the short one would show 255 chapters or fewer, the last of them hours long."""
    files = AudioFiles(tmp_path)
    timeline = lay_out([take_of(RATE, RATE, files.put(wav(tone(1.0, RATE, hertz=440), RATE)))], ProjectSettings())
    chapters = tuple((f"Chapter {number}", number / 300, (number + 1) / 300) for number in range(count))
    tags = Tags("A Book", chapters=chapters, cover=Cover(png(), "image/png"))
    *_, file = write_m4b(timeline, files, tags, tmp_path)
    with file:
        m4b = file.read()
    mp3 = b"".join(encoded(timeline, files, "mp3", tags))
    for data in (m4b, mp3):
        with av.open(io.BytesIO(data)) as book:
            assert [chapter["metadata"]["title"] for chapter in book.chapters()] == [title for title, *_ in chapters]
            assert book.metadata["title"] == "A Book"
    assert (b"chpl" in m4b) == (b"CTOC" in mp3) == (count <= 255)


def test_takes_of_another_model_are_resampled_to_the_rate_of_most(tmp_path: Path) -> None:
    files, settings = AudioFiles(tmp_path), ProjectSettings(pause=0.5)
    sounds = [wav(tone(1.0, rate, hertz=440), rate) for rate in (24_000, RATE, RATE)]
    parts = [take_of(rate, rate, files.put(sound)) for rate, sound in zip((24_000, RATE, RATE), sounds, strict=True)]
    timeline = lay_out(parts, settings)
    assert (timeline.sample_rate, timeline.samples) == (RATE, 4 * RATE), "three seconds, and two pauses"
    whole = ConcatenatedWav(timeline, files)
    data = b"".join(whole.read(0, whole.size))
    first, second = samples(data)[:RATE], samples(data)[RATE * 3 // 2 : RATE * 5 // 2]
    middle = slice(RATE // 10, -RATE // 10)
    spectra = [np.abs(np.fft.rfft(sound[middle] * np.hanning(RATE * 8 // 10))) for sound in (first, second)]
    assert [int(spectrum.argmax()) for spectrum in spectra] == [440 * 8 // 10] * 2
    assert spectra[0].max() == pytest.approx(spectra[1].max(), rel=0.01)
    for start, stop in ((40, 50), (50_001, 60_007), (RATE, 3 * RATE)):
        assert b"".join(whole.read(start, stop)) == data[start:stop]
    assert lay_out([parts[0], parts[1]], settings).sample_rate == RATE, "the higher of two that are as frequent"
