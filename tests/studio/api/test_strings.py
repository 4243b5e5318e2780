"""Every string of every route, endpoint and message: none breaks the server, and none stored breaks a list."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from engine import EngineConfig
from protocols.fish.fish_body import MESSAGE_PACK, URL_ENCODED
from protocols.fish.message_pack import pack, unpack
from speechtext.characters import normalize
from studio.api.body import MAX_BODY
from studio.api.middleware import MAX_LISTS, MAX_VALUES
from studio.settings import Settings, read_keys
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served, serve
from tests.studio.sounds import tone, wav
from tests.studio.voices.whisper import write_model

NASTY = {
    "half a surrogate pair": "a\ud800b",
    "NUL": "a\0b",
    "right to left": "\u202eabc\u2067\u200f",
    "a word of 5 kB, and 1000": f"{'x' * 5000} {' '.join(map(str, range(1000)))}",
}
CLIP = wav(tone(1.1))
LISTS = ("/v1/projects", "/v1/voices", "/v1/audio/voices", "/v1/audio/voice_consents", "/v1/takes", "/v1/queue")
USUAL: dict[str, Any] = {
    "input": "Hi.",
    "items": [{"input": "Hi."}],
    "ref_text": "Hello there.",
    "language": "en",
    "ids": ["req_none"],
    "samples": ["smp_none"],
    "starred": True,
    "after": None,
    "at": 1,
    "position": 0,
    "start": 0,
    "end": 1,
}
"""Values of required fields while another field is tested; the default is "a"."""
FILES = ("audio_sample", "file", "audio", "voices")
Json = dict[str, Any]


@pytest.fixture(scope="module")
def served(voices_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A studio with its page, which adds endpoints, and with room in the queue for every request."""

    def start(config: EngineConfig, progress: object) -> FakeEngine:
        return FakeEngine(config, rows=8)

    home = str(tmp_path_factory.mktemp("strings"))
    settings = Settings(model="test/model", voices=str(voices_folder), home=home)
    with serve(settings, start, page=True) as served:
        yield served


@pytest.fixture(scope="module")
def document(served: Served) -> Json:
    return httpx.get(f"{served.url}/openapi.json").json()


@pytest.fixture(scope="module")
def known(served: Served) -> dict[str, str]:
    with served.client() as client:
        return known_to(client)


def known_to(client: httpx.Client) -> dict[str, str]:
    """Values of path parameters: a voice and its sample, a take, a project and its part."""
    take = client.post("/v1/audio/speech", json={"input": "Hi."}).headers["x-request-id"]
    project = client.post("/v1/projects", json={"input": "Hi."}).json()["id"]
    part = client.get(f"/v1/projects/{project}/parts").json()["data"][0]["id"]
    voice = client.get("/v1/voices/anna").json()
    names = {"take_id": take, "project_id": project, "part_id": part, "sample_id": voice["samples"][0]["id"]}
    return names | {"reference": "anna", "voice_id": "anna", "model_id": "tts-1", "revision": "1"}


def strings_of(schema: Json, schemas: Json, inside: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all strings that a schema allows: field names, 0 for a list's item, "*" for a free name."""
    if "$ref" in schema:
        yield from strings_of(schemas[schema["$ref"].rpartition("/")[2]], schemas, inside)
    for alternative in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from strings_of(alternative, schemas, inside)
    if schema.get("type") == "string" and schema.get("format") != "binary":
        yield inside
    for name, alternative in schema.get("properties", {}).items():
        yield from strings_of(alternative, schemas, (*inside, name))
    if isinstance(schema.get("items"), dict):
        yield from strings_of(schema["items"], schemas, (*inside, 0))
    if schema.get("type") == "object" and schema.get("additionalProperties"):
        yield (*inside, "*")
        yield (*inside, "a")


def value_at(way: tuple[Any, ...], text: str) -> Any:
    """A value with the text at the end of the path."""
    if not way:
        return text
    if way[0] == 0:
        return [value_at(way[1:], text)]
    return {text: "anna"} if way[0] == "*" else {way[0]: value_at(way[1:], text)}


def as_json(fields: Json) -> Json:
    """Encode as ASCII, which can represent half of a surrogate pair."""
    return {"content": json.dumps(fields), "headers": {"Content-Type": "application/json"}}


def as_packed(way: tuple[Any, ...], text: str, fields: Json) -> Json:
    """MessagePack with the text at the end of the path; the packer cannot encode half of a surrogate pair."""
    raw = text.encode("utf-8", "surrogatepass")
    stand_in = "~" * len(raw)
    content = pack(fields | value_at(way, stand_in)).replace(stand_in.encode(), raw)
    return {"content": content, "headers": {"Content-Type": MESSAGE_PACK}}


def required(schema: Json, schemas: Json) -> Json:
    schema = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return {name: USUAL.get(name, "a") for name in schema.get("required", ()) if name not in FILES}


def filled(path: str, known: dict[str, str]) -> str:
    for name, value in known.items():
        path = path.replace(f"{{{name}}}", value)
    return path


def requests_of(method: str, path: str, operation: Json, schemas: Json, known: dict[str, str], text: str) -> Any:
    """All requests of an operation with the text in one of its strings: the place, and arguments for httpx."""
    raw = quote(text.encode("utf-8", "surrogatepass"), safe="")
    usual = path
    for name, value in known.items():
        usual = usual.replace(f"{{{name}}}", "none" if method == "DELETE" else value)
    for name in ("request_id", "consent_id", "user_id"):
        usual = usual.replace(f"{{{name}}}", "none")
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "query":
            yield parameter["name"], {"url": f"{usual}?{parameter['name']}={raw}"}
        elif parameter["in"] == "path":
            others = {name: value for name, value in known.items() if name != parameter["name"]}
            url = path.replace(f"{{{parameter['name']}}}", raw)
            for name, value in others.items():
                url = url.replace(f"{{{name}}}", value)
            yield parameter["name"], {"url": url} | (as_json({}) if "requestBody" in operation else {})
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = content["schema"]
        for way in dict.fromkeys(strings_of(schema, schemas)):
            fields = required(schema, schemas)
            if media_type == "application/json":
                fields |= value_at(way, text)
                if path.endswith("/batch") or path == "/v1/projects":
                    fields.setdefault("items" if path.endswith("/batch") else "input", USUAL["items"])
                yield way, {"url": usual} | as_json(fields)
            elif media_type == MESSAGE_PACK:
                yield way, {"url": usual} | as_packed(way, text, fields)
            elif media_type == URL_ENCODED:
                data = fields | {way[0]: text.encode("utf-8", "surrogatepass")}
                yield way, {"url": usual, "data": data}
            else:
                data = fields | {way[0]: text.encode("utf-8", "surrogatepass")}
                is_sound = {"audio_sample", "audio", "voices"} & schema["properties"].keys()
                file = "clip.wav" if is_sound else "a.txt"
                sound = CLIP if file == "clip.wav" else b"A word."
                names = [name for name, field in schema["properties"].items() if "binary" in str(field)]
                yield way, {"url": usual, "data": data, "files": dict.fromkeys(names or ["none"], (file, sound))}


@pytest.mark.parametrize("kind", NASTY)
def test_server_and_lists_survive_any_string_in_any_route(
    served: Served, document: Json, known: dict[str, str], kind: str
) -> None:
    schemas = document["components"]["schemas"]
    sent = 0
    with served.client() as client:
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                requests = requests_of(method.upper(), path, operation, schemas, known, NASTY[kind])
                for where, request in requests:
                    with client.stream(method, **request) as answer:  # the beginning of speech is enough
                        _ = answer.read() if answer.is_error else b""
                    sent += 1
                    fine = answer.status_code < 500 or answer.status_code == 501  # no recogniser is installed
                    assert fine, f"{method} {path} {where}: {answer.text}"
                    if kind in ("half a surrogate pair", "NUL") and len(request.get("content", "")) > 2:
                        assert answer.status_code == 400, f"{method} {path} {where}"
        for path_of_list in LISTS:
            assert client.get(path_of_list).status_code == 200, path_of_list
    assert sent > 150


def test_no_answer_to_another_key_shows_a_folder_of_the_owner(voices_folder: Path, tmp_path: Path) -> None:
    owners = tmp_path / "of the owner"
    shutil.copytree(voices_folder, owners / "voices")
    write_model(owners / "whisper", ["hello", "you"], 1.0)
    folders: Any = {name: str(owners / name) for name in ("model", "voices", "home", "backup_dir")}
    for name in ("model", "refs"):
        (owners / name).mkdir()
    keys = {"api_keys": read_keys("anna=first-key-of-all,bert=second-key-of-all")}
    more: Any = keys | {"ref_sources": str(owners / "refs"), "transcriber": f"faster-whisper:{owners / 'whisper'}"}
    with (
        serve(Settings(**folders, **more), lambda config, _: FakeEngine(config, rows=8), page=True) as served,
        served.client(headers={"Authorization": "Bearer second-key-of-all"}) as client,
    ):
        document, known = client.get("/openapi.json").json(), known_to(client)
        paths: list[tuple[str, Any]] = [
            ("get", {"url": path}) for path in ("/", "/config", "/gradio_api/info", "/metrics")
        ]
        paths += [("get", {"url": filled(path, known)}) for path, one in document["paths"].items() if "get" in one]
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                requests = requests_of(method.upper(), path, operation, document["components"]["schemas"], known, "a")
                paths += [(method, request) for _, request in requests]
        for method, request in paths:
            with client.stream(method, **request) as answer:
                is_text = answer.is_error or "json" in answer.headers.get("content-type", "")
                assert owners.name not in str(answer.headers), request
                assert not is_text or owners.name not in answer.read().decode(), request
    assert len(paths) > 700


def test_huge_numbers_and_long_lists_of_a_query_are_refused(
    served: Served, document: Json, known: dict[str, str]
) -> None:
    names = set[str]()
    with served.client() as client:
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                url = filled(path, known)
                for parameter in operation.get("parameters", ()):
                    kinds = {kind.get("type") for kind in (parameter["schema"], *parameter["schema"].get("anyOf", ()))}
                    if parameter["in"] != "query" or not kinds & {"integer", "number", "array"}:
                        continue
                    values = range(2000) if "array" in kinds else (2**63,)
                    answer = client.request(method, url, params={parameter["name"]: list(values)})
                    assert answer.is_client_error, (
                        f"{method} {path} {parameter['name']}: {answer.status_code} {answer.text}"
                    )
                    names.add(parameter["name"])
    assert names >= {"limit", "offset", "tag"}


@pytest.mark.parametrize("name", [b'name="a\0b"; filename="a.txt"', b'name="odd"; filename="a\0b.txt"'])
def test_nul_in_names_of_a_form_is_refused(served: Served, name: bytes) -> None:
    """This includes the name of a file that no route reads."""
    part = b"--x\r\nContent-Disposition: form-data; " + name + b"\r\n\r\nHi.\r\n"
    wanted = b'--x\r\nContent-Disposition: form-data; name="input"\r\n\r\nHi.\r\n'
    head = {"Content-Type": "multipart/form-data; boundary=x"}
    with served.client() as client:
        before = client.get("/v1/projects").json()["data"]
        answer = client.post("/v1/projects", content=part + wanted + b"--x--\r\n", headers=head)
        assert_envelope(answer, 400)
        assert "NUL" in answer.text and client.get("/v1/projects").json()["data"] == before


def test_socket_survives_any_string_in_messages(served: Served) -> None:
    url = served.url.replace("http", "ws") + "/v1/audio/speech/stream"
    for text in NASTY.values():
        for message in (
            {"type": text},
            {"type": "session.config", "voice": text},
            {"type": "input.text", "text": text[:1000]},  # a minute of speech is as good a test as nine
        ):
            with connect(url, proxy=None) as socket:
                socket.send(json.dumps(message))
                with suppress(ConnectionClosed):  # already refused
                    socket.send(json.dumps({"type": "input.done"}))
                reply: Any = b""
                while isinstance(reply, bytes) or json.loads(reply)["type"] in (
                    "audio.start",
                    "audio.done",
                ):
                    reply = socket.recv(60)
                assert json.loads(reply)["type"] in ("error", "session.done")


def test_fish_audios_socket_survives_any_string_in_messages(served: Served) -> None:
    url = served.url.replace("http", "ws") + "/v1/tts/live"
    start: Json = {"event": "start", "request": {"text": "", "format": "pcm"}}
    for text in NASTY.values():
        for first, way in (
            ({}, ("event",)),
            (start, ("request", "reference_id")),
            (start, ("request", "text")),
            ({"event": "text"}, ("text",)),
        ):
            with connect(url, proxy=None) as socket:
                if first.get("event") == "text":
                    socket.send(pack(start))
                with suppress(ConnectionClosed):  # already refused
                    spoken = way[-1] == "text"  # a minute of speech is as good a test as nine
                    socket.send(as_packed(way, text[:1000] if spoken else text, first)["content"])
                    socket.send(pack({"event": "stop"}))
                event: Any = {"event": "audio"}
                while event["event"] == "audio":
                    event = unpack(socket.recv(60, decode=False))
                assert event["event"] == "finish"
                if text in (NASTY["NUL"], NASTY["half a surrogate pair"]):
                    assert event["reason"] == "error"


@pytest.mark.parametrize("path", ["call/synthesize", "run/synthesize", "queue/join", "reset"])
def test_oversized_or_too_complex_body_does_not_reach_gradio(served: Served, path: str) -> None:
    """Gradio would parse it in the event loop: 40 MB of empty lists delayed every stream for minutes."""
    head = {"Content-Type": "application/json"}
    with served.client() as client:
        for values, status in (
            (b"[]," * (MAX_LISTS + 1), 400),
            (b"1," * (MAX_VALUES + 1), 400),
            (rb'"\\",' + b"[]," * (MAX_LISTS + 1), 400),
            (rb'"\\\"[",' + b"[]," * (MAX_LISTS + 1), 400),
            (b'"\xe2\x88\xa2",' + b"[]," * (MAX_LISTS + 1), 400),
            (b'"' + b"a" * MAX_BODY + b'",', 413),
        ):
            body = b'{"data": [' + values + b"1]}"
            assert_envelope(client.post(f"/gradio_api/{path}", content=body, headers=head), status)
        wide = ('{"data": [' + '"\u2241",' + "[]," * (MAX_LISTS + 1) + "1]}").encode("utf-16-le")  # bytes like quotes
        assert_envelope(client.post(f"/gradio_api/{path}", content=wide, headers=head), 400)


def test_texts_of_a_call_may_have_any_signs(served: Served) -> None:
    texts = ['[a, b: "c"] \\' * 300] * 300
    with served.client() as client:
        answer = client.post("/gradio_api/run/batch_submit", json={"data": [texts, None, "", "", 0.2, 1, False]})
        assert answer.status_code == 200 and answer.json()["data"][0]["parts"]["total"] >= len(texts), answer.text


@pytest.mark.parametrize("kind", ["half a surrogate pair", "NUL"])
def test_endpoints_of_gradio_survive_any_string(served: Served, kind: str) -> None:
    with served.client() as client:
        endpoints = client.get("/gradio_api/info").json()["named_endpoints"]
        assert len(endpoints) > 10
        for name, endpoint in endpoints.items():
            parameters = endpoint["parameters"]
            texts = [
                n for n, parameter in enumerate(parameters) if parameter["component"] in ("Textbox", "Json", "JSON")
            ]
            for number in texts:
                values = [parameter["parameter_default"] for parameter in parameters]
                is_text = parameters[number]["component"] == "Textbox"
                values[number] = NASTY[kind] if is_text else {"Anna": NASTY[kind]}
                body = json.dumps({"data": values})
                call = client.post(
                    f"/gradio_api/call{name}", content=body, headers={"Content-Type": "application/json"}
                )
                events = client.get(f"/gradio_api/call{name}/{call.json()['event_id']}").text
                assert events.startswith("event: error"), f"{name} {parameters[number]['parameter_name']}: {events}"
                assert "Unicode" in events or "NUL" in events, events
        for path_of_list in LISTS:
            assert client.get(path_of_list).status_code == 200


def test_library_with_an_invalid_string_can_be_read_and_repaired(steered: Any, tmp_path: Path) -> None:
    studio: Steered = steered(home=str(tmp_path))
    with studio[0].client() as client:
        project = client.post("/v1/projects", json={"input": "Hi."}).json()["id"]
        with sqlite3.connect(tmp_path / "library.db") as database:
            database.execute("update projects set settings = ?", [json.dumps({"voice": "\ud800"})])
        listed = client.get("/v1/projects")
        assert listed.status_code == 200 and listed.json()["data"][0]["settings"]["voice"] == "?"
        assert client.get(f"/v1/projects/{project}/parts").status_code == 200
        assert client.patch(f"/v1/projects/{project}", json={"voice": "bert"}).json()["settings"]["voice"] == "bert"


def test_a_search_with_a_nul_is_refused_everywhere(served: Served) -> None:
    with served.client() as client:
        for method, path in (("GET", "/v1/takes"), ("GET", "/v1/takes/export"), ("DELETE", "/v1/takes")):
            answer = client.request(method, f"{path}?q=a%00b&confirm=true")
            assert (answer.status_code, answer.json()["error"]["param"]) == (400, "q")


@pytest.mark.parametrize("form", ["NFC", "NFKC", "NFKD"])
def test_normalisation_matches_unicode_for_any_sequence_of_marks(
    form: Literal["NFC", "NFKC", "NFKD"],
) -> None:
    marks = "\u0301\u0323\u0334\u0344\u0f73\u3099\uff9e\U0001d165"
    chance = random.Random(7)
    for length in (1, 30, 31, 32, 200):
        for signs in (marks, marks + "aé=.\u1f82ᄀ\u1161\u11a8 か"):
            text = "".join(chance.choices(signs, k=length))
            assert normalize(form, text) == unicodedata.normalize(form, text)
