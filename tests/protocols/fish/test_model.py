"""/model, /v1/asr, /wallet and fish-speech's references: the library and the recogniser in Fish Audio's forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from protocols.fish.message_pack import pack, unpack
from studio.settings import Settings, read_keys
from studio.voices.recogniser import RATE, Recogniser, Transcription, Word
from tests.protocols.fish.test_tts import PACKED, message
from tests.studio.clips import WORDS, file_of, samples_of, spoken
from tests.studio.conftest import Steered
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import serve
from tests.studio.voices.whisper import write_model

Steer = Callable[..., Steered]
REQUIRED = {
    *("_id", "type", "title", "description", "cover_image", "train_mode", "state", "tags", "samples", "created_at"),
    *("updated_at", "languages", "visibility", "lock_visibility", "like_count", "mark_count", "shared_count"),
    *("task_count", "liked", "marked", "author"),
}


def create(client: httpx.Client, clips: int = 1, **fields: Any) -> httpx.Response:
    """Create a model like fish-audio-sdk: each file named "upload", fields repeated."""
    files = [("voices", ("upload", spoken(), "application/octet-stream"))] * clips
    plain = {"title": "My Voice", "type": "tts", "train_mode": "fast", "enhance_audio_quality": "true"} | fields
    return client.post("/model", data=plain, files=files)


def test_voice_is_created_read_updated_used_and_deleted(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        model = create(client, texts=[WORDS], tags=["calm", "low"], description="Mine", enhance_audio_quality="false")
        assert model.status_code == 201, model.text
        voice = model.json()
        assert voice.keys() >= REQUIRED and voice["state"] == "trained" and len(voice["_id"]) == 32
        assert (voice["title"], voice["tags"], voice["samples"][0]["text"]) == ("My Voice", ["calm", "low"], WORDS)
        address = f"/model/{voice['_id']}"
        assert client.get(address).json() == voice
        assert client.get("/model/my-voice").json() == voice
        assert voice["samples"][0]["audio"].startswith(f"{served.url}/v1/voices/")
        assert client.get(voice["samples"][0]["audio"]).content == spoken()
        outside = client.get(address, headers={"X-Forwarded-Host": "voices.example"}).json()
        assert outside["samples"][0]["audio"].startswith("http://voices.example/v1/voices/")
        bodies: list[dict[str, Any]] = [
            {"data": {"title": "Second", "tags": ["a", "b"]}},
            {"files": {"title": (None, "Third"), "tags": (None, "a,b")}},
            {"json": {"title": "Fourth", "tags": ["a", "b"], "visibility": "unlist"}},
            {"content": pack({"title": "Fifth", "tags": ["a", "b"]}), "headers": PACKED},
        ]
        for body in bodies:
            assert client.patch(address, **body).status_code == 200
            changed = client.get(address).json()
            assert changed["tags"] == ["a", "b"] and changed["description"] == "Mine"
        assert changed["title"] == "Fifth"
        spoken_in = client.post("/v1/tts", json={"text": "Hello.", "reference_id": voice["_id"]})
        assert spoken_in.headers["x-voice"] == "my-voice"
        assert client.delete(address).status_code == 200
        assert message(client.get(address), 404)
        assert message(client.delete(address), 404)


def test_equal_titles_are_numbered_and_unsupported_characters_replaced(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        titles = [
            create(client, title=title, texts=WORDS).json()["title"] for title in ("A/B @home", "A/B @home", "default")
        ]
        assert titles == ["A B home", "A B home 2", "default 2"]
        assert "title" in message(create(client, title=" ", texts=WORDS), 400)


@pytest.mark.parametrize(
    ("clips", "texts", "words"),
    [
        (1, ["One, two, three."], ["One, two, three."]),
        (2, ["One.", "Two."], ["One.", "Two."]),
        (2, ["One.,Two."], ["One.", "Two."]),
        (2, ["One."], None),
        (3, ["One.", "Two."], None),
        (9, ["One."] * 9, None),
    ],
)
def test_texts_may_be_one_per_recording_or_comma_separated(
    steered: Steer, clips: int, texts: list[str], words: list[str] | None
) -> None:
    served, _ = steered()
    with served.client() as client:
        answer = create(client, clips, texts=texts)
        if words is None:
            message(answer, 400)
        else:
            assert [sample["text"] for sample in answer.json()["samples"]] == words


def test_voices_are_listed_in_pages_and_filtered(steered: Steer) -> None:
    served, _ = steered()

    def titles(**query: Any) -> list[str]:
        return [voice["title"].lower() for voice in client.get("/model", params=query).json()["items"]]

    with served.client() as client:
        create(client, title="Zoe", texts=WORDS, tags=["calm"])
        whole = client.get("/model").json()
        assert (whole["total"], whole["has_more"]) == (3, False)
        assert titles(page_size=2) == ["anna", "bert"] and titles(page_size=2, page_number=2) == ["zoe"]
        assert client.get("/model?page_size=2").json()["has_more"] is True
        assert titles(page_number=99) == []
        assert (
            titles(self="true") == ["zoe"] == titles(tag="calm") == titles(title="ZO") == titles(title="o", tag="calm")
        )
        assert titles(sort_by="created_at")[0] == "zoe"
        client.patch("/v1/voices/zoe", json={"language": "de-DE"}).raise_for_status()
        assert titles(language="en") == ["anna", "bert"]  # voices without a language match any
        assert titles(language="de") == ["anna", "bert", "zoe"]
        assert titles(author_id=whole["items"][0]["author"]["_id"]) and not titles(author_id="f" * 32)
        assert titles(**{"tag[]": ["calm"], "language[]": ["de", "fr"]}) == ["zoe"]  # as axios writes lists
        assert len(titles(page_size=100)) == 3
        message(client.get("/model?page_size=101"), 422)
        message(client.get("/model?page_number=x"), 400)


def test_error_names_an_unknown_voice_as_the_client_did(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        voice_id = create(client, texts=WORDS).json()["_id"]
        client.delete(f"/model/{voice_id}").raise_for_status()
        assert message(client.get(f"/model/{voice_id}"), 404) == f"there is no voice '{voice_id}'"
        assert f"'{voice_id}'" in message(client.post("/v1/tts", json={"text": "Hi.", "reference_id": voice_id}), 400)


def test_too_many_files_or_fields_are_refused_and_nothing_is_stored(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        twenty = [("voices", ("upload", bytes(10 * 2**20)))] * 20
        assert "40 MiB" in message(client.post("/model", data={"title": "Big", "texts": WORDS}, files=twenty), 413)
        small = [("voices", ("upload", spoken()))] * 21
        assert "20" in message(client.post("/model", data={"title": "Many"}, files=small), 400)
        fields = {f"field {number}": "a" for number in range(300)}
        refused = client.post("/model", data={"title": "Wide", "texts": WORDS} | fields, files=small[:1])
        assert "fields" in message(refused, 400)
        empty: dict[str, list[str]] = {name: [] for name in ("title", "texts", "voices", "enhance_audio_quality")}
        assert "voices is missing" in message(client.post("/model", json=empty), 400)
        assert len(client.get("/model").json()["items"]) == 2


def test_recordings_that_are_too_long_or_lack_texts_need_a_recogniser(steered: Steer) -> None:
    served, engine = steered()
    engine.info = replace(engine.info, cannot_align="it has no attention")
    with served.client() as client:
        assert "texts" in message(create(client), 400)
        pcm, rate = samples_of(spoken())
        long = file_of(np.tile(pcm, 8), rate)
        answer = client.post("/model", data={"title": "Long", "texts": "a"}, files={"voices": ("a.wav", long)})
        assert "recogniser" in message(answer, 400)
        assert message(client.post("/v1/asr", files={"audio": ("a.wav", spoken())}), 501)


def test_a_long_recording_with_its_words_is_cut_without_a_recogniser(
    steered: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, engine = steered()
    pcm, rate = samples_of(spoken())
    recording = np.tile(pcm, ceil(60 * rate / len(pcm)))
    words = " ".join(f"word{second}," for second in range(len(recording) // rate))

    async def align(text: str, codes: np.ndarray) -> np.ndarray:
        return np.linspace(0.0, len(recording) / rate, len(text) + 1)

    monkeypatch.setattr(engine, "align", align)
    with served.client() as client:
        files = {"voices": ("a.wav", file_of(recording, rate))}
        [sample] = client.post("/model", data={"title": "Long", "texts": words}, files=files).json()["samples"]
        stored = client.get("/v1/voices/long/samples").json()["data"][0]
        assert sample["text"] in words and sample["text"].endswith(",")
        assert len(sample["text"].split()) == pytest.approx(stored["seconds"], abs=2) and stored["seconds"] <= 30
        whole = {"voices": ("a.wav", file_of(np.tile(recording[::4], 3), rate // 4))}
        answer = client.post("/model", data={"title": "Longer", "texts": words}, files=whole)
        assert "recogniser" in message(answer, 400)


def test_recordings_are_transcribed_with_a_recogniser(voices_folder: Path, tmp_path: Path) -> None:
    write_model(tmp_path / "whisper", ["hello", "you"], 1.0)
    settings = Settings(
        model="test/model",
        voices=str(voices_folder),
        home=str(tmp_path / "home"),
        transcriber=f"faster-whisper:{tmp_path / 'whisper'}",
    )
    with serve(settings, FakeEngine.start) as served, served.client() as client:
        assert create(client).json()["samples"][0]["text"] == "hello you"
        packed = client.post("/v1/asr", content=pack({"audio": spoken(), "language": None}), headers=PACKED).json()
        assert packed["text"] == "hello you" and packed["duration"] > 1
        assert [segment["text"] for segment in packed["segments"]] == ["hello", "you"]
        form = client.post("/v1/asr", data={"ignore_timestamps": "true"}, files={"audio": ("a.wav", spoken())}).json()
        assert form["segments"] == [] and form["text"] == "hello you"


class Echo:
    """A recogniser whose text is the number of seconds of its input."""

    def recognise(self, pcm: np.ndarray, language: str) -> Transcription:
        text = f"{len(pcm) / RATE:.0f}"
        return Transcription(text, "en", (Word(text, 0.0, len(pcm) / RATE, 1.0),))


def test_long_recording_is_transcribed_in_pieces_and_a_voice_uses_only_a_part(
    voices_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Recogniser, "recognise", Echo.recognise)
    settings = Settings(
        model="test/model", voices=str(voices_folder), home=str(tmp_path), transcriber="faster-whisper:base"
    )
    pcm, rate = samples_of(spoken())
    speech, silence = np.tile(pcm, 12), np.zeros(60 * rate)
    long, muted, silent = (file_of(part, rate) for part in (speech, np.concatenate([pcm, silence, pcm]), silence))
    with serve(settings, FakeEngine.start) as served, served.client() as client:
        muted_words = client.post("/v1/asr", files={"audio": ("a.wav", muted)}).json()["segments"]
        assert muted_words[0]["start"] == 0 and muted_words[-1]["end"] == pytest.approx(
            (len(silence) + 2 * len(pcm)) / rate, abs=0.01
        ), "a pause that fills a piece is left out, not the recording refused"
        refused = client.post("/v1/asr", files={"audio": ("a.wav", silent)})
        assert refused.status_code == 400 and refused.json()["message"] == "the clip is silent"
        transcript = client.post("/v1/asr", files={"audio": ("a.wav", long)}).json()
        pieces = [int(text) for text in transcript["text"].split()]
        assert (
            len(pieces) > 1
            and max(pieces) <= 30
            and sum(pieces) == pytest.approx(transcript["duration"], abs=len(pieces))
        )
        ends = [segment["end"] for segment in transcript["segments"]]
        assert [segment["start"] for segment in transcript["segments"]] == [0.0, *ends[:-1]]
        assert ends[-1] == pytest.approx(transcript["duration"], abs=0.01)
        voice = client.post("/model", data={"title": "Long", "texts": "a"}, files={"voices": ("a.wav", long)}).json()
        assert 5 < int(voice["samples"][0]["text"]) <= 15


def test_each_key_has_its_own_stable_account_id(steered: Steer) -> None:
    keys = ("first", "second")
    served, _ = steered(api_keys=read_keys(",".join(keys)))
    with served.client() as client:
        ids = []
        for key in (*keys, keys[0]):
            headers = {"Authorization": f"Bearer {key}"}
            credit = client.get("/wallet/self/api-credit?check_free_credit=true", headers=headers).json()
            package = client.get("/wallet/self/package", headers=headers).json()
            assert credit["user_id"] == package["user_id"] and float(credit["credit"]) > 0 and package["finished_at"]
            ids.append(credit["user_id"])
    assert ids[0] == ids[2] != ids[1]


@pytest.mark.parametrize("packed", [False, True])
def test_fish_speechs_references_are_voices_by_name(steered: Steer, packed: bool) -> None:
    served, _ = steered()
    query = "?format=msgpack" if packed else ""

    def read(answer: httpx.Response, status: int = 200) -> dict[str, Any]:
        assert answer.status_code == status, answer.text
        value: dict[str, Any] = unpack(answer.content) if packed else answer.json()
        assert value.get("success", True) is (status == 200)
        return value

    with served.client() as client:
        assert read(client.get(f"/v1/health{query}")) == read(client.post(f"/v1/health{query}")) == {"status": "ok"}
        add = {"id": "my voice_1", "audio": spoken(), "text": WORDS}
        content: dict[str, Any] = {"content": pack(add), "headers": PACKED}
        assert read(client.post(f"/v1/references/add{query}", **content))["reference_id"] == "my voice_1"
        read(client.post(f"/v1/references/add{query}", **content), 409)
        form: dict[str, Any] = {"data": {"id": "b", "text": " "}, "files": {"audio": ("a.wav", spoken())}}
        assert "text" in read(client.post(f"/v1/references/add{query}", **form), 400)["message"]
        read(client.post(f"/v1/references/add{query}", data={"id": "a/b", "text": "a"}, files=form["files"]), 400)
        read(client.post(f"/v1/references/add{query}", json={"id": "b", "text": "a"}), 400)
        for path in (f"/v1/references/list{query or '?format=json'}", "/v1/references/list"):
            answer = client.get(path)
            is_packed = packed or path.endswith("list")  # fish-speech's default, unlike that of the other answers
            assert "my voice_1" in (unpack(answer.content) if is_packed else answer.json())["reference_ids"]
        asked = client.get("/v1/references/list", headers={"Accept": "application/json"})
        assert "my voice_1" in asked.json()["reference_ids"]
        assert client.post("/v1/tts", json={"text": "a", "reference_id": "my voice_1"}).status_code == 200
        names = {"old_reference_id": "my voice_1", "new_reference_id": "other"}
        assert read(client.post(f"/v1/references/update{query}", json=names))["new_reference_id"] == "other"
        read(client.post(f"/v1/references/update{query}", json=names), 404)
        read(client.post(f"/v1/references/update{query}", json=names | {"old_reference_id": "other"}), 400)
        gone = {"reference_id": "other"}
        read(client.request("DELETE", f"/v1/references/delete{query}", json=gone))
        read(client.request("DELETE", f"/v1/references/delete{query}", json=gone), 404)
