"""Voices over HTTP: as used by OpenAI's client and vLLM-Omni's scripts, and the whole library under /v1/voices."""

from __future__ import annotations

import contextlib
import io
import re
import sqlite3
import wave
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from studio.errors import SettingsError
from tests.studio.clips import WORDS, spoken
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served

VOICES = "/v1/audio/voices"
SPEECH = "/v1/audio/speech"
Upload = dict[str, tuple[str, bytes, str]]
Steer = Callable[..., tuple[Served, FakeEngine]]


@pytest.fixture
def served(steered: Steer) -> Served:
    return steered()[0]


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client() as client:
        yield client


def clip(data: bytes | None = None, name: str = "me.wav", kind: str = "audio/x-wav") -> Upload:
    return {"audio_sample": (name, spoken() if data is None else data, kind)}


def create(client: httpx.Client, name: str = "Eve", **fields: str) -> httpx.Response:
    return client.post(VOICES, data={"name": name, "ref_text": WORDS} | fields, files=clip())


def code_of(answer: httpx.Response) -> tuple[int, str | None]:
    return answer.status_code, answer.json()["error"]["code"]


def test_openais_client_creates_uses_and_deletes_a_voice_with_a_consent(served: Served) -> None:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as sdk:
        consent = sdk.audio.voice_consents.create(
            name="Eve E.", language="en", recording=("yes.wav", spoken(), "audio/x-wav")
        )
        voice = sdk.audio.voices.create(
            name="Eve", audio_sample=("me.wav", spoken()), consent=consent.id, extra_body={"ref_text": WORDS}
        )
        assert (voice.id, voice.object, voice.name) == ("eve", "audio.voice", "Eve")
        with sdk.audio.speech.with_streaming_response.create(
            model="tts-1", input="Hello.", voice={"id": voice.id}, response_format="wav"
        ) as speech:
            assert speech.headers["x-voice"] == "eve" and speech.headers["x-voice-revision"] == "1"
            assert len(speech.read()) > 1000
        assert [row.id for row in sdk.audio.voice_consents.list(limit=5)] == [consent.id]
        assert sdk.audio.voice_consents.update(consent.id, name="Eva").name == "Eva"
        assert sdk.audio.voice_consents.retrieve(consent.id).name == "Eva"
        assert sdk.audio.voices.delete("EVE").deleted
        with pytest.raises(openai.NotFoundError):
            sdk.audio.voices.delete("eve")
        assert sdk.audio.voice_consents.delete(consent.id).deleted
        with pytest.raises(openai.NotFoundError):
            sdk.audio.voice_consents.retrieve(consent.id)


def test_responses_have_the_fields_that_vllm_omnis_scripts_read(client: httpx.Client) -> None:
    created = create(client, consent="I said yes", speaker_description="warm").json()
    assert created["success"] is True
    assert created["voice"]["name"] == "eve" and created["voice"]["ref_text"] == WORDS
    assert created["voice"]["mime_type"] == "audio/wav" and created["voice"]["file_size"] == len(spoken())
    listed = client.get(VOICES).json()
    assert {"id", "name"} <= set(listed["voices"][0]) and listed["voices"] == listed["data"]
    assert [voice["name"] for voice in listed["uploaded_voices"]] == ["eve"]
    assert "eve" in client.get(VOICES, params={"legacy": "true"}).json()["voices"]
    deleted = client.request("DELETE", f"{VOICES}/Eve", headers={"Content-Type": "application/json"})
    assert deleted.json()["success"] is True and deleted.json()["object"] == "audio.voice.deleted"


def test_a_chunked_upload_without_a_length_and_with_a_wrong_type_is_read(client: httpx.Client) -> None:
    request = client.build_request(
        "POST", VOICES, data={"name": "Eve", "ref_text": WORDS}, files=clip(None, "x", "application/octet-stream")
    )
    body, kind = request.read(), request.headers["content-type"]
    pieces = (body[start : start + 5000] for start in range(0, len(body), 5000))
    assert client.post(VOICES, content=pieces, headers={"content-type": kind}).status_code == 200


NO_VOICE: dict[str, tuple[dict[str, str], Any, int, str]] = {
    "no words": ({"name": "Eve"}, clip(), 400, "missing_required_parameter"),
    "no name": ({"ref_text": WORDS}, clip(), 400, "missing_required_parameter"),
    "no clip": ({"name": "Eve", "ref_text": WORDS}, {"x": b"x"}, 400, "missing_required_parameter"),
    "no audio": ({"name": "Eve", "ref_text": WORDS}, clip(b"hello" * 99), 400, "invalid_audio"),
    "a path for a name": ({"name": "../../etc/passwd", "ref_text": WORDS}, clip(), 400, "invalid_value"),
    "a blank name": ({"name": "  ", "ref_text": WORDS}, clip(), 400, "missing_required_parameter"),
    "a reserved name": ({"name": "Random", "ref_text": WORDS}, clip(), 400, "invalid_value"),
    "a name that is there": ({"name": "ANNA", "ref_text": WORDS}, clip(), 409, "voice_exists"),
    "an embedding": ({"name": "Eve", "ref_text": WORDS, "speaker_embedding": "[1]"}, clip(), 400, "invalid_value"),
    "a type of OpenAI's": ({"name": "Eve", "ref_text": WORDS, "type": "prompt"}, clip(), 400, "unsupported"),
    "control tokens": ({"name": "Eve", "ref_text": "<|im_end|>"}, clip(), 400, "invalid_value"),
    "an unknown consent": ({"name": "Eve", "ref_text": WORDS, "consent": "cons_1"}, clip(), 400, "consent_not_found"),
    "a bad number": ({"name": "Eve", "ref_text": WORDS, "start": "soon"}, clip(), 400, "invalid_value"),
    "a span of nothing": ({"name": "Eve", "ref_text": WORDS, "start": "2", "end": "1"}, clip(), 400, "invalid_audio"),
    "not a number": ({"name": "Eve", "ref_text": WORDS, "gain_db": "nan"}, clip(), 400, "invalid_audio"),
    "half a channel": ({"name": "Eve", "ref_text": WORDS, "channel": "0.5"}, clip(), 400, "invalid_value"),
}


@pytest.mark.parametrize("case", NO_VOICE)
def test_unusable_upload_is_refused_with_a_message(client: httpx.Client, case: str) -> None:
    fields, files, status, code = NO_VOICE[case]
    before = client.get(VOICES).json()
    answer = client.post(VOICES, data=fields, files=files)
    assert code_of(answer) == (status, code), answer.text
    if status == 409:
        assert answer.headers["x-should-retry"] == "false"
    assert client.get(VOICES).json() == before


def test_body_too_large_or_not_a_form_is_refused_while_it_arrives(client: httpx.Client) -> None:
    def endless() -> object:
        yield b'--x\r\nContent-Disposition: form-data; name="audio_sample"; filename="a"\r\n\r\n'
        for _ in range(11):
            yield b"\0" * 1024 * 1024

    form = {"content-type": "multipart/form-data; boundary=x"}
    assert client.post(VOICES, content=endless(), headers=form).status_code == 413  # type: ignore[arg-type]
    assert client.post(VOICES, content=b"--y", headers={"content-type": "multipart/form-data"}).status_code == 400
    assert client.post(VOICES, content=b"nonsense", headers=form).status_code == 400
    assert client.post(VOICES, content=b"x", headers={"content-type": "text/plain"}).status_code == 415
    assert client.post(VOICES, json={"type": "prompt", "name": "x", "prompt": "a pirate"}).status_code == 400


def test_matching_etag_gives_304_and_an_outdated_write_412(client: httpx.Client) -> None:
    create(client)
    first = client.get("/v1/voices/eve")
    etag = first.headers["etag"]
    assert etag.startswith('"') and not etag.startswith('W/"')
    assert client.get("/v1/voices/eve", headers={"If-None-Match": etag}).status_code == 304
    changed = client.patch("/v1/voices/eve", json={"tags": ["new"]}, headers={"If-Match": etag})
    assert changed.status_code == 200 and changed.headers["etag"] != etag
    assert client.get("/v1/voices/eve", headers={"If-None-Match": etag}).json()["tags"] == ["new"]
    late = client.patch("/v1/voices/eve", json={"tags": ["old"]}, headers={"If-Match": etag})
    assert code_of(late) == (412, "changed")
    assert client.delete("/v1/voices/eve", headers={"If-Match": etag}).status_code == 412
    assert client.patch("/v1/voices/eve", json={}, headers={"If-Match": '"other"'}).status_code == 400


def test_one_of_many_simultaneous_requests_for_a_name_succeeds(served: Served) -> None:
    def attempt(_: int) -> int:
        with served.client() as client:
            return create(client, "Eve").status_code

    with ThreadPoolExecutor(6) as pool:
        statuses = sorted(pool.map(attempt, range(6)))
    assert statuses == [200] + [409] * 5


def test_samples_are_added_played_edited_and_removed_and_revisions_stay(client: httpx.Client) -> None:
    create(client)
    other = spoken(1)
    fields = {"ref_text": "Another voice says this sentence.", "speaker": "1", "start": "0.2", "gain_db": "-6"}
    added = client.post("/v1/voices/eve/samples", data=fields, files=clip(other)).json()
    assert added["address"] == "eve@2" and [sample["speaker"] for sample in added["samples"]] == [0, 1]
    second = added["samples"][1]
    assert second["cut"] == {"start": 0.2, "end": None, "gain_db": -6, "channel": None}
    url = f"/v1/voices/eve/samples/{second['id']}"
    assert client.get(url + "/audio").content == other
    edited = client.patch(url, json={"text": "Edited.", "cut": {"start": 0.5}}).json()
    assert edited["revision"] == 3 and edited["samples"][1]["text"] == "Edited."
    assert edited["samples"][1]["seconds"] < second["seconds"]
    with wave.open(io.BytesIO(client.get("/v1/voices/eve/preview", params={"sample": 1}).content)) as preview:
        assert abs(preview.getnframes() / preview.getframerate() - edited["samples"][1]["seconds"]) < 0.01
    assert client.delete(url).json()["revision"] == 4
    assert client.get("/v1/voices/eve@3").json()["samples"] == edited["samples"]
    assert [voice["revision"] for voice in client.get("/v1/voices/eve/revisions").json()["data"]] == [4, 3, 2, 1]
    assert code_of(client.delete(url)) == (404, "sample_not_found")
    last = client.get("/v1/voices/eve/samples").json()["data"]
    assert client.delete(f"/v1/voices/eve/samples/{last[0]['id']}").status_code == 400


@pytest.mark.parametrize(
    "body",
    [{"name": ""}, {"nmae": "x"}, {"tags": "x"}, {"defaults": {"speed": 2}}, {"defaults": {"top_k": 2.5}},
     {"favourite": "maybe"}, {"language": "?"}, {"gender": "f"}, {"colour": "red"}, {"accent": "x" * 51},
     {"name": "\ud800"}],
)  # fmt: skip
def test_a_change_with_a_bad_field_is_refused(client: httpx.Client, body: dict[str, object]) -> None:
    before = client.get("/v1/voices/anna").json()
    answer = client.patch("/v1/voices/anna", json=body) if "\ud800" not in str(body.get("name")) else client.patch(
        "/v1/voices/anna", content=b'{"name": "\\ud800"}', headers={"content-type": "application/json"}
    )  # fmt: skip
    assert answer.status_code == 400, answer.text
    assert client.get("/v1/voices/anna").json() == before


def test_voices_are_listed_in_pages_searched_and_restored(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(client, "Eve", language="en")
    names = [voice["name"] for voice in client.get("/v1/voices").json()["data"]]
    assert names == ["Anna", "Bert", "Eve"]
    page = client.get("/v1/voices", params={"limit": 2}).json()
    assert page["has_more"]
    rest = client.get("/v1/voices", params={"limit": 2, "after": page["last_id"]}).json()
    assert [voice["name"] for voice in rest["data"]] == ["Eve"] and not rest["has_more"]
    assert [voice["name"] for voice in client.get("/v1/voices", params={"q": "EV"}).json()["data"]] == ["Eve"]
    assert client.patch("/v1/voices/eve", json={"favourite": True}).json()["favourite"]
    with monkeypatch.context() as small:
        small.setattr("studio.library.voices.MAX_PAGE", 1)  # a favourite behind the first page is still in the picker
        assert [voice["id"] for voice in client.get(VOICES).json()["voices"]] == ["eve", "anna", "random"]
    voice_id = client.delete("/v1/voices/eve").json()["id"]
    assert [voice["id"] for voice in client.get("/v1/voices?deleted=true").json()["data"]] == [voice_id]
    assert client.post(f"/v1/voices/{voice_id}/restore").json()["slug"] == "eve"
    assert client.post(f"/v1/voices/{voice_id}/restore").status_code == 404


def test_clip_can_be_rated_without_saving_it(client: httpx.Client) -> None:
    advice = client.post("/v1/voices/advise", data={"ref_text": "Too short."}, files=clip()).json()
    assert "transcript_short" in [finding["code"] for finding in advice["findings"]]
    assert advice["score"] < 100 and advice["figures"]["snr_db"] > 20


def test_upload_without_an_engine_is_stored_and_encoded_at_its_first_use(steered: Steer) -> None:
    served, engine = steered()
    engine.dead = "the cable is out"
    with served.client() as client:
        assert create(client).status_code == 200
        engine.dead = None
        assert client.post(SPEECH, json={"input": "Hi.", "voice": "eve"}).status_code == 200
    assert engine.utterances[-1].references[0].text == WORDS


def test_the_real_engine_speaks_in_an_uploaded_voice(studio: Served) -> None:
    with studio.client() as client:
        assert create(client).status_code == 200
        body = {"input": "Hi.", "voice": "eve", "response_format": "wav", "max_new_tokens": 4, "seed": 1}
        assert client.post(SPEECH, json=body).status_code == 200
        client.delete(f"{VOICES}/eve")


def test_voices_are_filtered_by_facts_and_sorted_by_favourite_or_last_change(client: httpx.Client) -> None:
    create(client, "Eve", tags="warm, slow ,", gender="female", accent="Irish", language="en-IE", colour="#BE123C")
    create(client, "Dan", tags="warm")
    client.patch("/v1/voices/bert", json={"favourite": True})

    def names(**wanted: str | list[str]) -> list[str]:
        ids: list[str] = []
        after: dict[str, str] = {}
        while True:  # page by page
            page = client.get("/v1/voices", params={"limit": 2, **wanted, **after}).json()
            assert page["tags"] == ["slow", "warm"] and page["accents"] == ["Irish"]
            ids += [voice["name"] for voice in page["data"]]
            if not page["has_more"]:
                return ids
            after = {"after": page["last_id"]}

    assert names() == ["Anna", "Bert", "Dan", "Eve"]
    assert names(order="favourites") == ["Bert", "Anna", "Dan", "Eve"]
    assert names(order="recent")[:3] == ["Bert", "Dan", "Eve"]
    assert names(tag=["warm"]) == ["Dan", "Eve"]
    assert names(tag=["warm", "slow"]) == names(gender="female", accent="irish", language="en") == ["Eve"]
    listed = {voice["id"]: voice for voice in client.get(VOICES).json()["voices"]}
    assert (listed["eve"]["gender"], listed["eve"]["colour"], listed["anna"]["accent"]) == ("female", "#be123c", "")
    assert client.patch("/v1/voices/eve", json={"accent": ""}).json()["accent"] == ""
    assert client.get("/v1/voices", params={"gender": "f"}).json()["error"]["param"] == "gender"
    assert client.get("/v1/voices", params={"order": "age"}).status_code == 400


def test_samples_can_be_chosen_and_an_old_revision_restored(client: httpx.Client) -> None:
    create(client)
    second = client.post("/v1/voices/eve/samples", data={"ref_text": "More words."}, files=clip()).json()
    first_id, second_id = (sample["id"] for sample in second["samples"])
    url = "/v1/voices/eve/samples"
    only = client.put(url, json={"samples": [second_id]}).json()
    assert only["revision"] == 3 and [sample["id"] for sample in only["samples"]] == [second_id]
    both = client.put(url, json={"samples": [second_id, first_id]}).json()
    assert [sample["text"] for sample in both["samples"]] == ["More words.", WORDS]
    for wrong in ([], ["sample_1"], [first_id, first_id]):
        assert client.put(url, json={"samples": wrong}).status_code == 400
    back = client.post("/v1/voices/eve/revisions/2/restore").json()
    assert back["revision"] == 5 and back["samples"] == second["samples"]
    assert client.post("/v1/voices/eve/revisions/9/restore").status_code == 404
    etag = client.get("/v1/voices/eve@1").headers["etag"]
    client.patch("/v1/voices/eve", json={"favourite": True})
    late = client.post("/v1/voices/eve/revisions/1/restore", headers={"If-Match": etag})
    assert code_of(late) == (412, "changed")


def test_copied_voice_is_independent_and_has_the_same_codes(steered: Steer) -> None:
    served, engine = steered()
    with served.client() as client:
        create(client, tags="warm")
        client.patch("/v1/voices/eve", json={"defaults": {"temperature": 0.5}, "favourite": True})
        encoded = len(engine.encoded)
        copy = client.post("/v1/voices/eve/duplicate", json={"name": "Eva"}).json()
        assert (copy["slug"], copy["tags"], copy["defaults"]) == ("eva", ["warm"], {"temperature": 0.5})
        assert not copy["favourite"] and len(engine.encoded) == encoded
        client.delete("/v1/voices/eve")
        assert client.get("/v1/voices/eva/preview").status_code == 200
        assert code_of(client.post("/v1/voices/eva/duplicate", json={"name": "eva"})) == (409, "voice_exists")


def test_chosen_slug_stays_with_the_voice(client: httpx.Client) -> None:
    create(client)
    assert client.patch("/v1/voices/eve", json={"slug": "narrator"}).json()["slug"] == "narrator"
    assert client.get("/v1/voices/narrator").json()["name"] == "Eve"
    assert code_of(client.patch("/v1/voices/narrator", json={"slug": "anna"})) == (409, "voice_exists")
    assert client.patch("/v1/voices/narrator", json={"slug": "Not this"}).status_code == 400
    assert client.patch("/v1/voices/narrator", json={"slug": "random"}).status_code == 400
    assert client.patch("/v1/voices/narrator", json={"name": "Eve B", "slug": "eve-b"}).json()["slug"] == "eve-b"


def test_name_equal_to_another_voices_slug_or_id_is_refused(
    client: httpx.Client,
) -> None:
    create(client, name="Eve's voice")
    voice_id = client.get("/v1/voices/eve-s-voice").json()["id"]
    for name in ("eve-s-voice", voice_id.upper()):
        assert code_of(client.patch("/v1/voices/anna", json={"name": name})) == (409, "voice_exists")
    client.patch("/v1/voices/anna", json={"name": "narrator", "slug": "teller"}).raise_for_status()
    assert code_of(client.patch("/v1/voices/eve-s-voice", json={"slug": "narrator"})) == (409, "voice_exists")


def test_locked_library_is_reported_with_a_remedy_and_logged_with_its_path(
    steered: Steer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("studio.library.store.BUSY_SECONDS", 0.05)
    served = steered()[0]
    path = served.app.state.studio.speech.voices.library.store.path
    with served.client() as client:
        with contextlib.closing(sqlite3.connect(path)) as other:
            other.execute("begin immediate")
            refused = create(client)
            assert code_of(refused) == (503, "library_unavailable")
            message = refused.json()["error"]["message"]
            assert "another program has locked it" in message and str(path.parent) not in message
            assert f"{path} is busy" in caplog.text
        assert create(client).status_code == 200


def test_refusal_of_an_unknown_voice_suggests_similar_names(client: httpx.Client) -> None:
    create(client, "Eve")
    answer = client.post("/v1/audio/speech", json={"input": "Hello.", "voice": "evee"})
    assert code_of(answer) == (400, "voice_not_found")
    assert "did you mean eve?" in answer.json()["error"]["message"]


def test_only_aliases_of_a_deleted_voice_change(steered: Steer, tmp_path: Path) -> None:
    for name in ("ada", "ben", "cleo", "dan", "eve"):
        (tmp_path / f"{name}.wav").write_bytes(spoken())
        (tmp_path / f"{name}.txt").write_text(WORDS)
    (tmp_path / "aliases.json").write_text('{"default": ["cleo"], "nova": ["nobody", "eve", "ada"]}')
    with steered(voices=str(tmp_path))[0].client() as client:
        before = client.get(VOICES).json()["aliases"]
        assert (before["default"], before["nova"]) == ("cleo", "eve")
        for gone in ("ada", "cleo", "eve"):
            client.delete(f"{VOICES}/{gone}").raise_for_status()
            after = client.get(VOICES).json()["aliases"]
            assert gone not in after.values()
            assert {name for name in before if before[name] != after[name]} == {
                name for name in before if before[name] == gone
            }
            before = after
        assert before["default"] == "ben" and before["nova"] in ("ben", "dan")


def test_invalid_aliases_file_stops_the_start(tmp_path: Path, steered: Steer) -> None:
    for content in ("{", "[]", '{"nova": "eve"}', '{"nova": [1]}'):
        (tmp_path / "aliases.json").write_text(content)
        with pytest.raises(SettingsError, match=r"aliases\.json"):
            steered(voices=str(tmp_path))


def test_deleted_voice_is_restored_by_the_id_in_the_response(client: httpx.Client) -> None:
    for name in ("bert", "BERT"):
        answer = client.delete(f"{VOICES}/{name}").json()
        assert answer["id"] == name
        assert client.post(f"/v1/voices/{answer['id']}/restore").json()["slug"] == "bert"
    answer = client.delete("/v1/voices/bert").json()
    assert client.post(f"/v1/voices/{answer['id']}/restore").json()["slug"] == "bert"
    assert code_of(client.post("/v1/voices/bert/restore")) == (404, "voice_not_found")


@pytest.mark.parametrize("name", ["UTF-8''na%C3%AFve.wav", "iso-8859-1'en'na%EFve.wav"])
def test_file_with_only_an_extended_name_is_accepted(client: httpx.Client, name: str) -> None:
    def post(path: str, files: Upload, **fields: str) -> httpx.Response:
        request = client.build_request("POST", path, data=fields, files=files)
        body = re.sub(rb'filename="[^"]*"', f"filename*={name}".encode(), request.read())
        return client.post(path, content=body, headers={"Content-Type": request.headers["content-type"]})

    assert post(VOICES, clip(), name="Eve", ref_text=WORDS).status_code == 200
    project = post("/v1/projects", {"file": ("a.txt", b"Hello.", "text/plain")})
    assert project.status_code == 400 and "'naïve.wav' cannot be read" in project.json()["error"]["message"]


def test_a_take_without_a_reference_becomes_a_voice_that_other_takes_can_use(client: httpx.Client) -> None:
    def speak(voice: str, **fields: object) -> str:
        body = {"input": "[whisper] Hello there, all of you.", "voice": voice, "response_format": "wav"} | fields
        return client.post(SPEECH, json=body).raise_for_status().headers["x-request-id"]

    def keep(files: Upload | None = None, **fields: str) -> httpx.Response:
        form: dict[str, Any] = {name: (None, text) for name, text in fields.items()}
        return client.post(VOICES, files=form | (files or {}))

    take = speak("random", seed=7)
    kept = keep(name="Kept", take_id=take, gender="female").raise_for_status().json()
    assert kept["id"] == "kept" and client.get("/v1/voices/kept").json()["gender"] == "female"
    [sample] = client.get("/v1/voices/kept/samples").json()["data"]
    assert sample["text"] == "Hello there, all of you."
    audio = client.get(f"/v1/takes/{take}/audio").content
    assert client.get(f"/v1/voices/kept/samples/{sample['id']}/audio").content == audio
    again = client.get(f"/v1/takes/{speak('kept')}").json()
    assert again["voice"] == "kept"
    for fields, files, field in (
        ({"take_id": speak("anna")}, None, "take_id"),
        ({"take_id": speak("random", max_new_tokens=20)}, None, "take_id"),
        ({"take_id": speak("random", input="Hello there, all of you. " * 40)}, None, "take_id"),
        ({"take_id": take}, clip(), "audio_sample"),
        ({"take_id": take, "ref_text": "Hello"}, None, "ref_text"),
    ):
        answer = keep(files, name="Other", **fields)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, field), answer.text
    assert keep(name="Other", take_id="nothing").status_code == 404
