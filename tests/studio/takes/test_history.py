"""Kept takes: stored data, lists and filters, audio in ranges and formats, stars, deletions, retention."""

from __future__ import annotations

import io
import json
import sqlite3
import time
import zipfile
from collections.abc import Callable
from mmap import mmap
from pathlib import Path
from types import SimpleNamespace

import av
import httpx
import numpy as np
import pytest

from studio.errors import DamagedAudio
from studio.library import Library, TakeFilter
from studio.library.take import Take
from studio.settings import Settings, read_keys
from studio.takes.take_export import STORED, zipped
from tests.studio.answers import assert_envelope
from tests.studio.fake_engine import FakeEngine, tone
from tests.studio.library.worker import stored_take
from tests.studio.server import Served, serve
from tests.studio.sounds import wav

SPEECH, TAKES = "/v1/audio/speech", "/v1/takes"
FRAME = 2048
NO_CODES = {"voice": "random"}
"""Codes of other voices are written before speech starts, which waits for the disk, as intended."""
Steered = tuple[Served, FakeEngine]
Steer = Callable[..., Steered]


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"home": str(tmp_path / "home")}


def library_of(served: Served) -> Library:
    library: Library = served.app.state.studio.speech.voices.library
    return library


def speak(client: httpx.Client, text: str = "Two words.", **fields: object) -> str:
    """Speak and return the take's id."""
    answer = client.post(SPEECH, json={"input": text, "response_format": "wav"} | fields)
    assert answer.status_code == 200, answer.text
    return answer.headers["x-request-id"]


def ids(client: httpx.Client, **query: str | float | None) -> list[str]:
    return [take["id"] for take in client.get(TAKES, params=query).json()["data"]]


def decoded(file: bytes) -> np.ndarray:
    with av.open(io.BytesIO(file), "r") as source:
        return np.concatenate([frame.to_ndarray().reshape(-1) for frame in source.decode(audio=0)])


def test_take_is_stored_with_its_request_and_can_be_repeated(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        first = client.post(SPEECH, json={"input": "Two words.", "seed": 7, "temperature": 0.5, "voice": "bert"})
        take = client.get(f"{TAKES}/{first.headers['x-request-id']}").json()
        assert (take["state"], take["finish_reason"], take["stored"], take["starred"]) == (
            "finished",
            "stop",
            True,
            False,
        )
        assert (take["text"], take["voice"], take["voice_revision"], take["seed"]) == ("Two words.", "bert", 1, 7)
        assert take["parameters"]["temperature"] == 0.5 and take["parameters"]["response_format"] == "mp3"
        assert take["queue_ms"] is not None and take["first_audio_ms"] > 0 and take["frames"] == 12
        assert take["seconds"] == pytest.approx(12 * FRAME / 44_100, abs=1e-3)
        assert take["request"]["voice"] == "bert@1"
        again = client.post(SPEECH, json=take["request"])
        assert again.content == first.content
        sounds = [client.get(f"{TAKES}/{answer.headers['x-request-id']}").json()["audio"] for answer in (first, again)]
        assert sounds[0]["sha256"] == sounds[1]["sha256"] and sounds[0]["sample_rate"] == 44_100


def test_stored_audio_is_the_generated_audio_not_the_sent_file(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        take_id = speak(client, seed=3, response_format="mp3", sample_rate=16_000)
        answer = client.get(f"{TAKES}/{take_id}/audio")
    sound = np.concatenate([tone(3, frame) for frame in range(12)])
    assert answer.headers["content-type"] == "audio/wav"
    assert decoded(answer.content).tolist() == np.rint(sound * 32767).astype(int).tolist()


def test_stored_audio_has_the_requested_speed(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        take = client.get(f"{TAKES}/{speak(client, speed=2)}").json()
    assert take["audio_s"] == pytest.approx(12 * FRAME / 44_100, abs=1e-3)
    assert take["seconds"] == pytest.approx(take["audio_s"] / 2, rel=0.1)


def test_cancelled_and_failed_takes_are_stored_if_they_have_audio(steered: Steer) -> None:
    served, engine = steered(max_rows=1, max_waiting=0)
    with served.client() as client:
        engine.later_frames_gate.clear()
        body = {"input": "Stopped here.", "response_format": "wav"}
        with client.stream("POST", SPEECH, json=body) as answer:
            pieces = answer.iter_raw()  # losing this reference would close the connection
            next(pieces)
            running_id = answer.headers["x-request-id"]
            assert client.get(f"{TAKES}/{running_id}").json()["state"] == "speaking"
            assert_envelope(client.delete(f"{TAKES}/{running_id}"), 409, "take_id")
            assert_envelope(client.get(f"{TAKES}/{running_id}/audio"), 409, "take_id")
            assert_envelope(client.post(SPEECH, json=body), 429)
        served.until(running=0)
        engine.later_frames_gate.set()
        engine.spoilt = ["", "late nan", "short", "short"]
        speak(client)
        with pytest.raises(httpx.RemoteProtocolError):
            client.post(SPEECH, json={"input": "Broken off half-way.", "response_format": "wav"})
        silent = client.post(SPEECH, json={"input": "Never heard."})
        assert_envelope(silent, 500)
        silent_take = client.get(f"{TAKES}/{silent.headers['x-request-id']}").json()
        assert silent_take["error"] and not silent_take["stored"]
        takes = [client.get(f"{TAKES}/{take}").json() for take in ids(client)]
    by_text = {take["text"]: take for take in takes}
    assert {text: take["state"] for text, take in by_text.items()} == {
        "Broken off half-way.": "failed",
        "Two words.": "finished",
        "Stopped here.": "cancelled",
    }
    assert by_text["Broken off half-way."]["audio"] and by_text["Stopped here."]["audio"]


def test_take_audio_has_ranges_an_etag_and_a_file_name(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        path = f"{TAKES}/{speak(client, '[happy] Grüße, Welt!', seed=5)}/audio"
        whole = client.get(path)
        assert whole.headers["accept-ranges"] == "bytes"
        name = whole.headers["content-disposition"].partition("filename=")[2]
        assert name.endswith('_anna_gr-e-welt_seed-5.wav"')
        part = client.get(path, headers={"Range": "bytes=100-199"})
        assert part.status_code == 206 and part.content == whole.content[100:200]
        assert part.headers["content-range"] == f"bytes 100-199/{len(whole.content)}"
        assert client.get(path, headers={"Range": "bytes=-10"}).content == whole.content[-10:]
        tag = whole.headers["etag"]
        assert client.get(path, headers={"If-None-Match": tag}).status_code == 304
        resumed = client.get(path, headers={"Range": "bytes=5-", "If-Range": tag})
        assert resumed.status_code == 206 and resumed.content == whole.content[5:]
        for wrong in ("bytes=99999999-", "bytes=a-b"):
            refused = client.get(path, headers={"Range": wrong})
            assert_envelope(refused, 416)
            assert refused.headers["content-range"] == f"bytes */{len(whole.content)}"


@pytest.mark.parametrize(("name", "codec"), [("mp3", "mp3float"), ("flac", "flac"), ("opus", "opus"), ("aac", "aac")])
def test_take_audio_is_converted_to_the_requested_format(steered: Steer, name: str, codec: str) -> None:
    served, _ = steered()
    with served.client() as client:
        answer = client.get(f"{TAKES}/{speak(client)}/audio", params={"format": name})
        assert answer.headers["content-disposition"].endswith(f'.{name}"') and answer.headers["etag"]
    with av.open(io.BytesIO(answer.content), "r") as source:
        assert source.streams.audio[0].codec.name in (codec, "libopus")
    assert len(decoded(answer.content)) >= 12 * FRAME


def test_bad_formats_and_missing_takes_are_refused(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        take_id = speak(client)
        assert_envelope(client.get(f"{TAKES}/{take_id}/audio?format=midi"), 400, "format")
        assert_envelope(client.get(f"{TAKES}/{take_id}/audio?sample_rate=1"), 400, "sample_rate")
        for verb, path in (("GET", ""), ("GET", "/audio"), ("DELETE", ""), ("POST", "/restore")):
            assert_envelope(client.request(verb, f"{TAKES}/req_none{path}"), 404)
        assert_envelope(client.patch(f"{TAKES}/{take_id}", json={"starred": "very"}), 400, "starred")
        assert_envelope(client.patch(f"{TAKES}/{take_id}", json={"star": True}), 400)
        assert_envelope(client.get(TAKES, params={"since": "yesterday"}), 400, "since")
        assert_envelope(client.get(TAKES, params={"limit": 0}), 400, "limit")
        assert_envelope(client.get(TAKES, params={"after": "req_none"}), 404, "after")


def test_takes_are_searched_filtered_and_paged(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        newest_first = [speak(client, f"Number {n}.", voice="bert" if n % 2 else "anna") for n in range(5)][::-1]
        assert ids(client) == newest_first
        first = client.get(TAKES, params={"limit": 2}).json()
        assert [take["id"] for take in first["data"]] == newest_first[:2] and first["has_more"]
        assert first["retention"] == {"takes": 1000, "bytes": 4096 * 2**20, "undo_seconds": 7 * 86_400} | {
            "soundless": 0,
            "lost": 0,
            "removes_next": [],
        }
        assert ids(client, limit=2, after=first["last_id"]) == newest_first[2:4]
        assert ids(client, q="number 3") == [newest_first[1]]
        assert ids(client, voice="Bert") == ids(client, voice="bert@1") == [newest_first[1], newest_first[3]]
        assert client.patch(f"{TAKES}/{newest_first[2]}", json={"starred": True}).json()["starred"] is True
        assert ids(client, starred="true") == [newest_first[2]] and newest_first[2] not in ids(client, starred="false")
        assert ids(client, ids=f"{newest_first[4]}, {newest_first[0]},req_no") == [newest_first[0], newest_first[4]]
        created = client.get(f"{TAKES}/{newest_first[0]}").json()["created"]
        assert ids(client, until=created - 60) == [] == ids(client, since="2999-01-01T00:00:00Z")
        assert ids(client, since=created - 60, until="2999-01-01") == newest_first


def test_bulk_deletion_needs_confirmation_and_spares_starred_takes(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        take_ids = [speak(client, f"Number {n}.") for n in range(4)]
        client.patch(f"{TAKES}/{take_ids[1]}", json={"starred": True})
        refused = client.delete(TAKES, params={"q": "number"})
        assert_envelope(refused, 400, "confirm")
        assert "delete 3 takes" in refused.json()["error"]["message"]
        assert_envelope(client.delete(TAKES, params={"query": "number", "confirm": "true"}), 400, "query")
        for limit in ("q", "voice", "since", "until", "ids"):  # as a script sends it whose variable is empty
            assert_envelope(client.delete(TAKES, params={limit: " ", "confirm": "true"}), 400, limit)
        gone = client.delete(TAKES, params={"q": "number", "confirm": "true"}).json()
        assert gone["ids"] == [take_ids[3], take_ids[2], take_ids[0]] and gone["has_more"] is False
        assert ids(client) == [take_ids[1]]
        assert client.post(f"{TAKES}/restore", json={"ids": gone["ids"][:2]}).json()["ids"] == [
            take_ids[3],
            take_ids[2],
        ]
        assert ids(client) == [take_ids[3], take_ids[2], take_ids[1]]
        client.delete(TAKES, params={"ids": take_ids[1], "confirm": "true"})
        assert ids(client) == [take_ids[3], take_ids[2]]


def test_zip_has_the_audio_and_its_metadata(steered: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    served, _ = steered()
    with served.client() as client:
        ids = [speak(client, seed=1), speak(client, seed=1), speak(client, "Another.", seed=2)]
        monkeypatch.setattr("zipfile.time", SimpleNamespace(time=lambda: 0.0, localtime=time.localtime))  # 1970
        answer = client.get(f"{TAKES}/export", params={"q": "two words", "format": "flac"})
        assert_envelope(client.get(f"{TAKES}/export", params={"q": "nobody said this"}), 404)
        library_of(served).takes.add(Take("req_silent", 2.0**31, "anna@1", 1, text="Two words."))
        assert client.get(f"{TAKES}/export", params={"q": "two words"}).status_code == 200, "without the silent one"
        monkeypatch.setattr("studio.api.routes.take_routes.MAX_ZIP", 2)
        assert_envelope(client.get(f"{TAKES}/export"), 400, "ids")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        manifest = json.loads(archive.read("manifest.json"))
        assert [entry["take"]["id"] for entry in manifest] == [ids[1], ids[0]]
        assert len({entry["file"] for entry in manifest}) == 2
        assert len(decoded(archive.read(manifest[0]["file"]))) == 12 * FRAME


@pytest.mark.parametrize("name", [STORED, "flac"])
def test_zip_that_a_take_is_missing_for_by_now_names_it(tmp_path: Path, name: str) -> None:
    library = Library(tmp_path)
    for number in range(2):
        library.takes.add(stored_take(f"req_{number}", "Words.", "anna"), wav(tone(number, 0)))
    takes = [(take, library.files.path(take.audio)) for take in library.takes.page()]
    pieces = zipped(takes, name, [{}, {}])
    assert next(pieces)
    library.takes.delete(TakeFilter(ids=("req_0",)))
    library.trash.empty(None)
    with pytest.raises(DamagedAudio, match="the take req_0 cannot be exported"):
        list(pieces)


def test_unstored_take_leaves_no_text_on_the_disk(steered: Steer, home: dict[str, str]) -> None:
    served, _ = steered(**home)
    with served.client() as client:
        secret = speak(client, "A secret.", store=False)
        record = client.get(f"{TAKES}/{secret}").json()
        assert record["stored"] is False and record["state"] == "finished" and "text" not in record
        assert_envelope(client.get(f"{TAKES}/{secret}/audio"), 404)
        batch = {"items": [{"input": "Another secret."}], "store": False}
        assert client.post(f"{SPEECH}/batch", json=batch).json()["succeeded"] == 1
        assert ids(client) == []
        assert client.delete(f"{TAKES}/{secret}").json()["undo_seconds"] == 0
        assert_envelope(client.post(f"{TAKES}/{secret}/restore"), 404, "take_id")
    assert library_of(served).takes.page() == []
    assert b"secret" not in b"".join(path.read_bytes() for path in Path(home["home"]).rglob("*") if path.is_file())


def test_studio_without_storage_reports_no_retention(steered: Steer) -> None:
    served, _ = steered(keep_takes=0)
    with served.client() as client:
        take_id = speak(client)
        page = client.get(TAKES).json()
        assert page["retention"] is None and page["data"] == []
        assert client.get(f"{TAKES}/{take_id}").json()["state"] == "finished"
        assert_envelope(client.patch(f"{TAKES}/{take_id}", json={"starred": True}), 404)
    assert library_of(served).takes.page() == []


def test_retention_keeps_the_newest_thousand_takes_and_starred_ones(steered: Steer, home: dict[str, str]) -> None:
    served, _ = steered(keep_takes=1000, **home)
    old = stored_take("req_0", "old", "anna@1")
    library = library_of(served)
    library.takes.add(old, b"old sound")
    with library.store.writing() as db:
        row = next(iter(db.table("takes").rows))
        db.table("takes").insert_all(row | {"n": None, "id": f"req_{n}"} for n in range(1, 1050))
    with served.client() as client:
        assert client.patch(f"{TAKES}/req_3", json={"starred": True}).status_code == 200
        newest = speak(client)
        assert ids(client, limit=1) == [newest]
        assert_envelope(client.get(f"{TAKES}/req_50"), 404)
        assert client.get(f"{TAKES}/req_51").status_code == 200
        assert client.get(f"{TAKES}/req_3").json()["starred"] is True
    with sqlite3.connect(library.store.path) as db:
        assert db.execute("select count(*) from takes where deleted is null").fetchone() == (1001,)


def test_takes_belong_to_their_key(steered: Steer) -> None:
    keys = read_keys("key-a,key-b")
    served, _ = steered(api_keys=keys)
    clients = [served.client(headers={"Authorization": f"Bearer key-{name}"}) for name in "ab"]
    with clients[0] as anna, clients[1] as bert:
        secret = speak(anna, "A secret of a.")
        path = f"{TAKES}/{secret}"
        assert ids(anna) == [secret] and ids(bert) == [] == ids(bert, q="secret") == ids(bert, ids=secret)
        for verb, tail in (("GET", ""), ("GET", "/audio"), ("DELETE", ""), ("POST", "/restore")):
            assert_envelope(bert.request(verb, path + tail), 404)
        assert_envelope(bert.patch(path, json={"starred": True}), 404)
        assert bert.delete(TAKES, params={"ids": secret, "confirm": "true"}).json()["ids"] == []
        assert_envelope(bert.get(f"{TAKES}/export", params={"ids": secret}), 404)
        anna.delete(path)
        assert bert.post(f"{TAKES}/restore", json={"ids": [secret]}).json()["ids"] == []
        assert anna.post(path + "/restore").status_code == 200
        assert speak(bert, "Of b.") not in ids(anna)


def test_disk_error_does_not_end_speech_and_is_counted(steered: Steer, home: dict[str, str]) -> None:
    served, _ = steered(**home)
    library = library_of(served)
    with served.client() as client:
        take_id = speak(client, "Kept.")
        assert client.get(f"{TAKES}/{take_id}").json()["stored"]
        with library.store.writing() as db:
            db.execute("create trigger full before insert on takes begin select raise(abort, 'disk full'); end")
        lost = speak(client, "Lost.")
        assert client.get(f"{TAKES}/{lost}").json()["stored"] is False
        assert ids(client) == [take_id]
        metrics = client.get("/metrics").text
    assert 'studio_takes_kept_total{outcome="kept"} 1.0' in metrics
    assert 'studio_takes_kept_total{outcome="lost"} 1.0' in metrics


def test_hanging_disk_does_not_slow_speech(steered: Steer, home: dict[str, str]) -> None:
    served, _ = steered(**home)
    library = library_of(served)
    with served.client() as client:
        with library.store.writing():  # blocks all other writers
            first = client.post(SPEECH, json={"input": "While the disk hangs."} | NO_CODES)
            assert first.status_code == 200 and first.content
        assert client.get(f"{TAKES}/{first.headers['x-request-id']}").json()["text"] == "While the disk hangs."


def test_missing_or_damaged_audio_file_is_reported(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        take_id = speak(client)
        take = client.get(f"{TAKES}/{take_id}").json()
        path = library_of(served).files.path(take["audio"]["sha256"])
        path.chmod(0o600)
        whole = path.read_bytes()
        for content in (whole[:30], bytes(len(whole))):
            path.write_bytes(content)
            for url in (f"{TAKES}/{take_id}/audio?format=mp3", f"{TAKES}/export", f"{TAKES}/{take_id}/audio"):
                answer = client.get(url)
                assert (answer.status_code, answer.json()["error"]["code"]) == (409, "damaged_audio"), url
                assert str(path.parent) not in answer.text and path.name not in answer.text
        path.unlink()
        assert client.get(f"{TAKES}/{take_id}").json()["audio"] is None
        answer = client.get(f"{TAKES}/{take_id}/audio")
        assert_envelope(answer, 404, "take_id")
        assert answer.json()["error"]["code"] == "no_audio"


def test_take_beyond_the_memory_limit_is_stored_without_audio_unless_it_is_in_a_file_by_then(
    steered: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.speech.recorder.MAX_HELD", 2 * 13 * FRAME)
    served, _ = steered()
    with served.client() as client:
        small, large = speak(client, "Two words."), speak(client, "Three words here.")
        assert client.get(f"{TAKES}/{small}").json()["audio"]
        record = client.get(f"{TAKES}/{large}").json()
        assert record["text"] == "Three words here." and record["audio"] is None
        assert client.get(f"{TAKES}/{speak(client)}").json()["audio"], "room was not given back"
        monkeypatch.setattr("studio.speech.active_take.SPILL", 2 * FRAME)
        long = client.post(
            SPEECH, json={"input": "Three words here. " * 4, "response_format": "pcm", "sample_rate": 44_100}
        )
        stored = client.get(f"{TAKES}/{long.headers['x-request-id']}/audio").content
        assert stored[44:] == long.content and len(stored) > 4 * 13 * FRAME
        assert 'studio_takes_kept_total{outcome="soundless"} 1.0' in client.get("/metrics").text
        # Each file that waits holds a descriptor: beyond a number of them, long takes wait in memory.
        monkeypatch.setattr("studio.speech.active_take.MAX_FILES", 1)
        monkeypatch.setattr("studio.speech.recorder.MAX_HELD", 2**20)
        with library_of(served).store.writing():
            waiting = [speak(client, "Three words here. " * 4, **NO_CODES) for _ in range(3)]
            audio = [new_take.audio for new_take in served.app.state.studio.speech.recorder.waiting()]
            assert [sum(isinstance(piece, mmap) for piece in pieces) for pieces in audio] == [1, 0, 0]
        assert all(client.get(f"{TAKES}/{take_id}").json()["audio"] for take_id in waiting)


def test_number_of_takes_waiting_for_the_disk_is_limited(
    steered: Steer, home: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.speech.recorder.MAX_WAITING", 2)
    served, _ = steered(**home)
    with served.client() as client:
        with library_of(served).store.writing():
            ids = [speak(client, f"Number {n}.", **NO_CODES) for n in range(4)]
            assert client.get("/health").json()["background"]["recorder"] == {"ok": False, "failures": 2}
        assert [client.get(f"{TAKES}/{take_id}").json()["stored"] for take_id in ids] == [True, True, False, False]
        assert 'studio_takes_kept_total{outcome="lost"} 2.0' in client.get("/metrics").text
        assert client.get("/health").json()["takes"] == {"kept": 2, "soundless": 0, "lost": 2}
        assert client.get(TAKES).json()["retention"]["lost"] == 2


def test_pending_takes_are_written_at_shutdown(voices_folder: Path, home: dict[str, str]) -> None:
    settings = Settings(model="test/model", voices=str(voices_folder), home=home["home"])
    with serve(settings, FakeEngine.start) as served, served.client() as client, library_of(served).store.writing():
        speak(client, "At the last moment.", **NO_CODES)
    assert [take.text for take in Library(Path(home["home"])).takes.page()] == ["At the last moment."]
