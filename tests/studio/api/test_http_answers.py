"""HTTP behaviour: methods and addresses, headers of every response, early limit errors, ranges, CORS."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import httpx
import pytest

from studio.settings import read_keys
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.library.test_former_library import DATA, addresses
from tests.waiting import wait_until

SPEECH = "/v1/audio/speech"
Steer = Callable[..., Steered]
GOOD = "https://good.example"


def test_unknown_address_returns_the_error_envelope_for_every_method(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        for path in ("/v1", "/v1/", "/v1/nothing", "/V1/audio/speech", "/V1"):
            for method in ("GET", "POST", "BREW"):
                assert_envelope(client.request(method, path), 404)
        for method in ("GET", "BREW", "QUERY", "HEAD"):
            answer = client.request(method, SPEECH)
            assert answer.status_code == 405 and answer.headers["allow"] == "POST"


def test_allow_header_lists_the_methods_of_the_exact_path(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        for path in ("takes/restore", "voices/advise", "voices/denoise", "voices/import", "voices/transcribe"):
            answer = client.put(f"/v1/{path}")
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST"), path
        for path in ("/health", "/ready", "/metrics"):
            answer = client.post(path)
            assert_envelope(answer, 405)
            assert set(answer.headers["allow"].split(", ")) <= {"GET", "HEAD"}


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/audio/speech"), ("GET", "/models"), ("POST", "/v1/audio/speech/")]
)
def test_address_without_v1_or_with_a_trailing_slash_gets_a_hint(steered: Steer, method: str, path: str) -> None:
    served, _ = steered()
    with served.client() as client:
        answer = client.request(method, path, json={"input": "a"})
        assert_envelope(answer, 404)
        right = "/v1/" + path.removeprefix("/v1").strip("/")
        assert f"the address is {right}" in answer.json()["error"]["message"]
        assert client.request(method, right, json={"input": "a"}).status_code == 200


def test_format_names_are_case_insensitive(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        answer = client.post(SPEECH, json={"input": "a", "response_format": "FLAC", "stream_format": "Audio"})
        assert answer.headers["content-type"] == "audio/flac" and answer.content[:4] == b"fLaC"
        take = client.get("/v1/takes").json()["data"][0]["id"]
        assert client.get(f"/v1/takes/{take}/audio?format=WAV").content[:4] == b"RIFF"


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        (SPEECH, {"input": "a", "voice": {"name": "maya"}}, '{"id": …}'),
        ("/v1/pronunciations", {"phrase": "GIF", "sayd": "jif"}, "unknown field 'sayd'; did you mean 'said'?"),
    ],
)
def test_misspelt_field_is_reported_with_a_suggestion(
    steered: Steer, path: str, body: dict[str, Any], words: str
) -> None:
    served, _ = steered()
    with served.client() as client:
        answer = client.post(path, json=body)
        assert_envelope(answer, 400)
        assert words in answer.json()["error"]["message"]


def test_health_and_ready_accept_head_requests(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        for path in ("/health", "/ready"):
            answer = client.head(path)
            assert (answer.status_code, answer.content) == (200, b"")


def test_listed_origin_may_use_every_method_of_the_api(steered: Steer) -> None:
    served, _ = steered(cors_origins=(GOOD,))
    with served.client() as client:
        for operations in client.get("/openapi.json").json()["paths"].values():
            for method in operations:
                ask = {"Origin": GOOD, "Access-Control-Request-Method": method.upper()}
                assert client.options("/v1/voices/x/samples", headers=ask).status_code == 200, method


def test_internal_error_has_the_usual_headers(steered: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    served, _ = steered(cors_origins=(GOOD,))
    monkeypatch.setattr(served.app.state.studio.speech, "queue_for", lambda caller: 1 / 0)
    with served.client() as client:
        answer = client.get("/v1/queue", headers={"Origin": GOOD})
    assert_envelope(answer, 500)
    assert answer.headers["access-control-allow-origin"] == GOOD
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-request-id"] in answer.json()["error"]["message"]


@pytest.mark.parametrize("name", ["seed", "top_k", "chunk_length", "sample_rate", "max_new_tokens"])
@pytest.mark.parametrize("number", ["1180591620717411303424", "9" * 400, "-" + "9" * 5000])
def test_huge_number_is_refused_naming_its_field(untouched: Steered, name: str, number: str) -> None:
    served, _ = untouched
    body = f'{{"input": "a", "{name}": {number}}}'
    with served.client() as client:
        answer = client.post(SPEECH, content=body, headers={"Content-Type": "application/json"})
    assert_envelope(answer, 400, name)


def test_large_file_is_refused_with_its_field_and_limit_in_mib(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        files = {"audio_sample": ("clip.wav", bytes(12 * 2**20))}
        answer = client.post("/v1/audio/voices", data={"name": "a", "ref_text": "b"}, files=files)
        assert_envelope(answer, 413, "audio_sample")
        assert "10.25 MiB" in answer.json()["error"]["message"]
        files = {"file": ("a.txt", bytes(33 * 2**20))}
        assert_envelope(client.post("/v1/projects", files=files), 413, "file")


def test_body_with_a_large_content_length_is_refused_before_it_arrives(steered: Steer) -> None:
    served, _ = steered()
    with socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2])), timeout=60) as connection:
        head = f"POST {SPEECH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: 41943040\r\n\r\n".encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")
    with served.client() as client:  # a client that sends it anyway can read the response
        assert_envelope(client.post(SPEECH, json={"input": "a" * 41_943_040}), 413)


def test_json_that_blocks_the_loop_is_refused(steered: Steer) -> None:
    served, _ = steered()
    body = b'{"input": "a", "x": [' + b"[]," * 5_000_000 + b"1]}"
    with served.client() as client:
        answer = client.post(SPEECH, content=body, headers={"Content-Type": "application/json"})
        assert_envelope(answer, 400)
        assert answer.json()["error"]["code"] == "json_too_complex"
        fields = {f"x{number}": 1 for number in range(99_000)}
        answer = client.post("/v1/projects", json=fields)
        assert_envelope(answer, 400)
        assert answer.json()["error"]["code"] == "json_too_complex"
        answer = client.post("/v1/projects", json={"items": [fields]})
        assert_envelope(answer, 400)
        assert "99001 fields" in answer.json()["error"]["message"]
        for name in ("a\\u0000", "a\\ud800"):
            refusal = client.post(
                SPEECH, content=f'{{"input": "a", "{name}": 1}}', headers={"Content-Type": "application/json"}
            )
            assert_envelope(refusal, 400)
        book = {"items": [{"input": "Well, yes, no, [laugh] perhaps.", "voice": "anna"} for _ in range(15_000)]}
        assert client.post("/v1/projects", json=book).status_code == 201


def sound(client: httpx.Client) -> str:
    take = client.post(SPEECH, json={"input": "Two words.", "response_format": "wav"}).headers["x-request-id"]
    return f"/v1/takes/{take}/audio"


def project_sound(client: httpx.Client) -> str:
    project = client.post("/v1/projects", json={"input": "Two words.", "start": True}).json()["id"]
    wait_until(lambda now: now["state"] == "done", lambda: client.get(f"/v1/projects/{project}").json())
    part = client.get(f"/v1/projects/{project}/parts").json()["data"][0]
    return f"/v1/projects/{project}/takes/{part['takes'][0]['id']}/audio"


def clip_of_a_voice(client: httpx.Client) -> str:
    voice = client.get("/v1/voices/anna").json()
    return f"/v1/voices/anna/samples/{voice['samples'][0]['id']}/audio"


@pytest.mark.parametrize("make_sound", [sound, project_sound, clip_of_a_voice])
def test_ranges_are_handled_alike_for_takes_parts_and_clips(
    steered: Steer, make_sound: Callable[[httpx.Client], str]
) -> None:
    served, _ = steered()
    with served.client() as client:
        path = make_sound(client)
        whole = client.get(path).content
        size = len(whole)

        def get_range(text: str, **headers: str) -> httpx.Response:
            return client.get(path, headers={"Range": text} | headers)

        for text, part in {
            "bytes=100-199": whole[100:200],
            "bytes=5-": whole[5:],
            "bytes=-10": whole[-10:],
            f"bytes=5-{size + 9}": whole[5:],
            f"bytes=-{size + 9}": whole,
            f"bytes=0-{'9' * 20}": whole,
            f"bytes=-{'9' * 20}": whole,
            "Bytes=0-1": whole[:2],
        }.items():
            answer = get_range(text)
            assert answer.status_code == 206 and answer.content == part, text
            start = size - len(part) if text.startswith("bytes=-") else int(text[6:].partition("-")[0])
            assert answer.headers["content-range"] == f"bytes {start}-{start + len(part) - 1}/{size}"
        for text in (
            f"bytes={size}-",
            "bytes=-0",
            "bytes=-",
            "bytes=9-5",
            "bytes=a-b",
            f"bytes={'9' * 20}-",
            f"bytes={'9' * 5000}-",
        ):
            refused = get_range(text)
            assert_envelope(refused, 416, "Range")
            assert refused.headers["content-range"] == f"bytes */{size}"
        for text in ("bytes=0-1,5-6", "lines=1-2", "items=0-1", "0-1"):
            answer = get_range(text)
            assert answer.status_code == 200 and answer.content == whole, text
        stale = get_range("bytes=5-9", **{"If-Range": '"another"'})
        assert stale.status_code == 200 and stale.content == whole
        tag = get_range("bytes=5-9").headers["etag"]
        assert get_range("bytes=5-9", **{"If-None-Match": tag}).status_code == 304


def test_document_describes_keys_bodies_and_content_types(steered: Steer) -> None:
    open_studio, _ = steered()
    closed_studio, _ = steered(api_keys=read_keys("secret"))
    closed: dict[str, Any] = closed_studio.app.openapi()
    document = httpx.get(f"{open_studio.url}/openapi.json").json()
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    assert "security" not in document and closed["security"] == [{"key": []}]
    assert closed["paths"]["/health"]["get"]["security"] == []

    def types(path: str, method: str = "get") -> set[str]:
        return set(document["paths"][path][method]["responses"]["200"]["content"])

    assert types("/v1/takes/export") == {"application/zip"} and types("/metrics") == {"text/plain"}
    assert types("/v1/voices/{reference}/preview") == {"audio/wav"}
    assert types("/v1/audio/voices") == {"application/json"}
    assert (
        "audio/x-m4a" in types("/v1/projects/{project_id}/audio") or len(types("/v1/projects/{project_id}/audio")) > 3
    )
    bodies = [
        f"{method} {path}"
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if method in ("post", "put", "patch") and "requestBody" not in operation
    ]
    without = ("/restore", "/pause", "/resume", "/cancel", "/undo", "/recogniser", "/download", "/zip/{receipt}")
    assert all(body.endswith(without) for body in bodies), bodies


def test_voices_are_listed_with_their_creation_time(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        listed = client.get("/v1/audio/voices").json()["data"]
        own = client.get("/v1/audio/voices/anna").json()["created_at"]
    assert {voice["id"]: voice["created_at"] for voice in listed}["anna"] == own > 0
    assert all(isinstance(voice["created_at"], int) for voice in listed)


MODELS = {
    "fishaudio/s2-pro": ("fishaudio/s2-pro", "s2-pro", "S2-Pro", "FishAudio/S2-PRO"),
    "/models/s2-pro": ("s2-pro", "fishaudio/s2-pro", "S2-PRO"),
    "/cache/models--fishaudio--s2-pro/snapshots/0123abcd": ("fishaudio/s2-pro", "s2-pro"),
}


@pytest.mark.parametrize("model", MODELS)
def test_model_has_several_names_and_speech_accepts_any(steered: Steer, model: str) -> None:
    served, _ = steered(model=model)
    with served.client() as client:
        ids = [model["id"] for model in client.get("/v1/models").json()["data"]]
        assert ids[0] == MODELS[model][0]
        for name in (*MODELS[model], "TTS-1", "gpt-4o-mini-TTS", " tts-1 "):
            assert client.post(SPEECH, json={"input": "a", "model": name}).status_code == 200, name
        assert client.get(f"/v1/models/{MODELS[model][1]}").json()["id"] == ids[0]
        for other in ("s2", "s2-pro-mini", "other/tts-2", "kokoro", "0123abcd"):
            spoken = client.post(SPEECH, json={"input": "a", "model": other, "voice": "bert"})
            assert (spoken.status_code, spoken.headers["x-model"], spoken.headers["x-voice"]) == (200, ids[0], "bert")
            assert client.get(f"/v1/models/{other}").status_code == 404, other
        assert client.post(SPEECH, json={"input": "a", "model": "bert"}).headers["x-voice"] == "bert"


def test_json_body_is_accepted_in_utf_8_and_utf_16(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        for encoding in ("utf-8", "utf-8-sig", "utf-16"):
            body = json.dumps({"input": "Grüße"}, ensure_ascii=False).encode(encoding)
            answer = client.post(SPEECH, content=body, headers={"Content-Type": "application/json"})
            assert answer.status_code == 200, encoding


def test_head_has_the_status_length_and_type_of_every_readable_address(steered: Steer, tmp_path: Path) -> None:
    shutil.unpack_archive(DATA / "library.zip", tmp_path / "home")
    served, _ = steered(home=str(tmp_path / "home"), share_days=30)
    with served.client() as client:
        for address in addresses(client):
            whole, head = client.get(address), client.head(address)
            assert (head.status_code, head.content) == (whole.status_code, b""), address
            for name in ("content-type", "content-length", "etag", "accept-ranges", "content-disposition"):
                assert head.headers.get(name) == whole.headers.get(name), (address, name)


def test_head_of_an_export_does_not_write_it(steered: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    served, _ = steered()
    closed = threading.Event()

    def endless(*_: object) -> Generator[bytes, None, None]:
        try:
            while True:
                yield b"piece"
        finally:
            closed.set()

    monkeypatch.setattr("studio.api.routes.take_routes.zipped", endless)
    with served.client() as client:
        client.post(SPEECH, json={"input": "Two words."})
        head = client.head("/v1/takes/export")
        assert (head.status_code, head.headers["content-type"]) == (200, "application/zip")
        assert closed.wait(60)
