"""Calls through Gradio: limited for each caller, refused in a few words, and never ended by another caller."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from gradio.blocks import BlocksConfig
from gradio_client import Client
from gradio_client.exceptions import AuthenticationError
from starlette.routing import Mount

from studio.settings import Settings, read_keys
from studio.ui import call_queue
from tests.browser.hosting.intruder import called, parameters_of, result
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served, serve
from tests.waiting import wait_until_true

KEYS = {"ann": "key-of-ann", "bob": "key-of-bob"}
API_KEYS = read_keys(",".join(KEYS.values()))


@contextlib.contextmanager
def studio_in(home: Path, voices: Path) -> Iterator[Served]:
    settings = Settings(model="test/model", voices=str(voices), home=str(home), api_keys=API_KEYS)
    with serve(settings, FakeEngine.start, page=True) as studio:
        yield studio


def client_of(studio: Served, name: str) -> httpx.Client:
    return studio.client(headers={"Authorization": f"Bearer {KEYS[name]}"})


@pytest.fixture
def served(voices_folder: Path, tmp_path: Path) -> Iterator[Served]:
    with studio_in(tmp_path / "home", voices_folder) as studio:
        yield studio


@pytest.fixture
def ann(served: Served) -> Iterator[httpx.Client]:
    with client_of(served, "ann") as client:
        yield client


@pytest.fixture
def bob(served: Served) -> Iterator[httpx.Client]:
    with client_of(served, "bob") as client:
        yield client


@pytest.fixture(scope="module")
def client(voices_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A caller of one studio that is shared by all tests whose calls leave nothing behind."""
    with studio_in(tmp_path_factory.mktemp("home"), voices_folder) as studio, client_of(studio, "ann") as ann:
        yield ann


def call(client: httpx.Client, name: str, data: list[Any], **more: object) -> httpx.Response:
    return client.post(f"/gradio_api/call{name}", json={"data": data} | more)


def test_changes_wait_for_the_library_in_the_queues_of_changes(served: Served, ann: httpx.Client) -> None:
    library = served.app.state.studio.library.store.path
    with contextlib.closing(sqlite3.connect(library, isolation_level=None)) as other:
        other.execute("begin immediate")
        change = {"voice": "anna", "description": "Calm."}
        events = [keyed(ann, "/voice_update", change) for _ in range(3)] + [
            keyed(ann, "/voice_delete", {"voice": "bert"})
        ]
        events.append(keyed(ann, "/batch_submit", {"texts": ["One."], "voice": "anna"}))
        wait_until_true(lambda: [in_queue(ann, name) for name in ("writes", "changes")] == [4, 1])
        other.execute("rollback")
    for name, event in events:
        assert "event: complete" in ann.get(f"/gradio_api/call{name}/{event}").text


def keyed(client: httpx.Client, name: str, fields: dict[str, Any]) -> tuple[str, str]:
    """The name and the id of a call with these fields."""
    answer = client.post(f"/gradio_api/call/v2{name}", json=fields)
    return name, answer.json()["event_id"]


def in_queue(client: httpx.Client, name: str) -> int:
    figures = client.get("/health").json()["work"][name]
    return int(figures["running"] + figures["waiting"])


def test_only_the_caller_with_too_many_unread_responses_is_refused(
    ann: httpx.Client, bob: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_queue, "MAX_CALLS_PER_CALLER", 3)
    events = [call(bob, "/voices_list", []).json()["event_id"] for _ in range(3)]
    refused = call(bob, "/voices_list", [])
    assert refused.status_code == 503 and "at most 3 calls of one caller" in refused.json()["detail"]
    assert result(ann, "/voices_list", [])
    assert "event: complete" in bob.get(f"/gradio_api/call/voices_list/{events[0]}").text
    assert call(bob, "/voices_list", []).status_code == 200
    monkeypatch.setattr(call_queue, "UNREAD_SECONDS", -1)
    assert call(bob, "/voices_list", []).status_code == 200, "answers that nobody fetches expire"
    assert bob.get(f"/gradio_api/call/voices_list/{events[1]}").status_code == 404


def test_calls_of_another_caller_cannot_be_read_or_cancelled(ann: httpx.Client, bob: httpx.Client) -> None:
    event = call(ann, "/history_list", ["", "", False, 5, ""], session_hash="of-ann").json()["event_id"]
    cancel = {"session_hash": "of-ann", "fn_index": 0, "event_id": event}
    intruding = call(bob, "/history_list", ["", "", False, 5, ""], session_hash="of-ann")
    assert intruding.status_code == 400 and "in use" in intruding.json()["detail"]
    assert bob.get(f"/gradio_api/call/history_list/{event}").status_code == 404
    assert bob.get(f"/gradio_api/call/v2/{event}").status_code == 404
    assert bob.get(f"/gradio_api/call/v2/history_list/{event}").status_code == 404
    assert bob.get("/gradio_api/queue/data", params={"session_hash": "of-ann"}).status_code == 404
    assert bob.post("/gradio_api/cancel", json=cancel).status_code == 404
    assert bob.post("/gradio_api/cancel", json=cancel | {"session_hash": ""}).status_code == 404
    assert bob.post("/gradio_api/cancel", json=cancel | {"event_id": ""}).status_code == 404
    assert ann.get(f"/gradio_api/call/history_list/{event}").text.startswith("event: complete")
    assert ann.post("/gradio_api/cancel", content=b"nonsense").status_code in (400, 422)


def test_disconnect_ends_calls_and_frees_the_callers_share(
    served: Served, bob: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_queue, "MAX_CALLS_PER_CALLER", 2)
    engine = served.app.state.studio.speech.host.engine()
    engine.first_frame_gate.clear()
    for name in ("/synthesize", "/synthesize_stream"):  # the first yields nothing before its end
        event = call(bob, name, STREAM).json()["event_id"]
        with bob.stream("GET", f"/gradio_api/call{name}/{event}"):
            served.until(running=1)
        served.until(running=0, waiting=0)
    engine.first_frame_gate.set()
    for _ in range(4):
        event = call(bob, "/synthesize_stream", ["Two words.", "anna", None, "", -1, 0.8, 0.9, 30, 0, 1, False])
        assert event.status_code == 200
        with bob.stream("GET", f"/gradio_api/call/synthesize_stream/{event.json()['event_id']}") as answer:
            next(answer.iter_lines())
        while (again := call(bob, "/voices_list", [])).status_code == 503:
            pass
        bob.get(f"/gradio_api/call/voices_list/{again.json()['event_id']}")


def test_dropped_session_does_not_end_the_queue(served: Served, ann: httpx.Client, bob: httpx.Client) -> None:
    (page,) = (route.app.get_blocks() for route in served.app.routes if isinstance(route, Mount) and route.path == "")  # type: ignore[attr-defined]
    page.calls.pending_messages_per_session.max_size = 1
    for _ in range(20):
        for name in ("/voices_list", "/health", "/queue_status"):
            assert call(bob, name, []).status_code == 200
    page.calls.pending_messages_per_session.max_size = 2000
    assert result(ann, "/voices_list", [])


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("/take_get", {"take_id": None}, "there is no take"),
        ("/voice_preview", {"sample": "<b>"}, "sample must be a number"),
        ("/voice_preview", {"sample": True}, "sample must be a number"),
        ("/voice_preview", {"sample": 10**30}, "sample must be a number"),
        ("/voice_get", {"voice": 5}, "voice must be a text"),
        ("/synthesize", {"store": "yes"}, "store must be true or false"),
        ("/history_list", {"query": ["x"]}, "query must be a text"),
        ("/voice_update", {"voice": "anna", "defaults": [1]}, "defaults must be an object"),
        ("/batch_submit", {"texts": None}, "texts must be a list"),
    ],
)
def test_values_of_the_wrong_type_are_refused_with_the_parameter_name(
    client: httpx.Client, name: str, changes: dict[str, Any], words: str
) -> None:
    data = [
        changes.get(parameter["parameter_name"], parameter["parameter_default"])
        for parameter in parameters_of(client)[name]
    ]
    answer = called(client, name, data)
    assert answer.startswith("event: error") and words in answer, answer


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_invalid_numbers_are_refused(client: httpx.Client, number: str) -> None:
    head = {"Content-Type": "application/json"}
    answer = client.post("/gradio_api/run/voice_preview", content=f'{{"data": ["anna", {number}]}}', headers=head)
    assert answer.status_code in (400, 422, 500) and "had an error" not in answer.text


def test_refusals_are_short_and_do_not_print_the_input(client: httpx.Client, capfd: pytest.CaptureFixture[str]) -> None:
    long = "x" * 100_000
    for name, parameters in parameters_of(client).items():
        usual = [parameter["parameter_default"] for parameter in parameters]
        for position in range(len(parameters)):
            answer = client.post(
                f"/gradio_api/run{name}", json={"data": [*usual[:position], long, *usual[position + 1 :]]}
            )
            assert len(answer.content) < 5000 or answer.status_code == 200, name
    printed = capfd.readouterr()
    assert long[:1000] not in printed.out + printed.err


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("run/predict", {"data": [], "fn_index": 9999}),
        ("run/predict", {"data": [], "fn_index": -1}),
        ("run/nobody", {"data": []}),
        ("call/nobody", {"data": []}),
        ("call/v2/nobody", {}),
        ("call/v2/voice_get", {"zzz": 1}),
        ("call/voices_list", {"data": [], "session_hash": "x" * 1000}),
        ("queue/join", {"data": [], "fn_index": 10, "session_hash": "x", "batched": True}),
        ("queue/join", {"data": [], "fn_index": 9999, "session_hash": "x"}),
    ],
)
def test_invalid_calls_return_400(client: httpx.Client, path: str, body: dict[str, Any]) -> None:
    answer = client.post(f"/gradio_api/{path}", json=body)
    assert answer.status_code == 400, answer.text
    assert json.loads(answer.text)["detail"]


def test_page_only_functions_cannot_be_called(client: httpx.Client) -> None:
    dependencies = client.get("/config").json()["dependencies"]
    scripts = [dependency for dependency in dependencies if not dependency["backend_fn"]]
    assert scripts
    for dependency in scripts:
        answer = client.post("/gradio_api/run/predict", json={"data": [None] * 20, "fn_index": dependency["id"]})
        assert answer.status_code == 422 and "cannot be called this way" in answer.json()["error"]
    batched = client.post("/gradio_api/run/voices_list", json={"data": [], "batched": True})
    assert batched.status_code == 422 and "cannot be called this way" in batched.json()["error"]


@pytest.mark.parametrize(
    ("path", "data", "words"),
    [
        ("run/voice_get", [], "1 values are needed, not 0"),
        ("api/voice_get", [], "1 values are needed, not 0"),
        ("run/voice_get", ["anna", "bert"], "1 values are needed, not 2"),
        ("run/voice_get", [7], "voice must be a text"),
        ("run/voice_get", ["nobody"], "there is no voice"),
        ("run/voice_update", ["anna", None, None, None, None, None, "yes", None], "favourite must be true or false"),
        ("run/voice_update", ["anna", None, None, None, None, None, [1], None], "favourite must be true or false"),
    ],
)
def test_refused_call_has_a_status_of_the_caller(client: httpx.Client, path: str, data: list[Any], words: str) -> None:
    answer = client.post(f"/gradio_api/{path}", json={"data": data})
    assert answer.status_code == 422 and words in answer.json()["error"], answer.text


def test_empty_favourite_leaves_a_voice_unchanged(client: httpx.Client) -> None:
    for favourite, expected in ((True, True), ([], True), (False, False), ([], False)):
        data: list[Any] = ["anna", None, None, None, None, None, favourite, None]
        answer = client.post("/gradio_api/run/voice_update", json={"data": data})
        assert answer.json()["data"][0]["favourite"] is expected, answer.text


def test_answer_that_was_read_is_gone_at_once(client: httpx.Client) -> None:
    name = client.post("/gradio_api/call/voice_get", json={"data": ["anna"]}).json()["event_id"]
    assert "event: complete" in client.get(f"/gradio_api/call/voice_get/{name}").text
    again = client.get(f"/gradio_api/call/voice_get/{name}", timeout=60)
    assert again.status_code == 404 and "expired" in again.json()["detail"]


def test_call_does_not_describe_the_page(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    described: list[int] = []
    monkeypatch.setattr(BlocksConfig, "config_for_block", lambda _, key, *__: described.append(key))
    assert client.post("/gradio_api/run/voice_get", json={"data": ["anna"]}).is_success
    assert result(client, "/voice_get", ["anna"]) and not described


def test_answer_has_one_reader_at_a_time(served: Served, bob: httpx.Client) -> None:
    engine = served.app.state.studio.speech.host.engine()
    engine.first_frame_gate.clear()
    event = call(bob, "/synthesize", STREAM).json()["event_id"]
    with bob.stream("GET", f"/gradio_api/call/synthesize/{event}") as first:
        again = bob.get(f"/gradio_api/call/synthesize/{event}")
        assert again.status_code == 404 and "another request reads it" in again.json()["detail"]
        engine.first_frame_gate.set()
        assert b"event: complete" in first.read()


def test_call_larger_than_four_mebibytes_is_refused(client: httpx.Client) -> None:
    answer = call(client, "/voice_get", ["x" * (4 * 2**20)])
    assert answer.status_code == 413 and "4 MiB" in answer.json()["error"]["message"]


@pytest.mark.parametrize("host", ["a:b:c", "evil.example/x", '"><script>', "a b", "[::::]", "999.1.1.1"])
def test_forged_hosts_are_not_inserted_into_the_page(client: httpx.Client, host: str) -> None:
    headers = {"X-Forwarded-Host": host, "X-Gradio-Server": "https://evil.example"}
    for path in ("/", "/config", "/gradio_api/info"):
        answer = client.get(path, headers=headers)
        assert answer.status_code == 200 and "evil" not in answer.text and '<script>"' not in answer.text, path


STREAM = ["One two three four five six seven eight.", "anna", None, "", -1, 0.8, 0.9, 30, 0, 1, False]


def number_of(client: httpx.Client, name: str) -> int:
    dependencies = client.get("/config").json()["dependencies"]
    return int(next(dependency["id"] for dependency in dependencies if dependency["api_name"] == name))


def test_cancelled_call_does_not_end_others_of_its_session(ann: httpx.Client) -> None:
    join = {"data": STREAM, "session_hash": "shared", "fn_index": number_of(ann, "synthesize_stream")}
    first, second = (ann.post("/gradio_api/queue/join", json=join).json()["event_id"] for _ in range(2))
    cancel = {"session_hash": "shared", "fn_index": join["fn_index"], "event_id": first}
    assert ann.post("/gradio_api/cancel", json=cancel).json() == {"success": True}
    with ann.stream("GET", "/gradio_api/queue/data", params={"session_hash": "shared"}) as answer:
        messages = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: ")]
    completed = {message["event_id"]: message for message in messages if message["msg"] == "process_completed"}
    assert completed.keys() == {first, second}
    assert completed[second]["output"]["data"][0]["done"] and not completed[first]["output"]


def test_concurrent_cancels_release_the_slot_once(ann: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_queue, "MAX_CALLS_PER_CALLER", 2)
    with ThreadPoolExecutor(4) as threads:
        for _ in range(8):
            event = call(ann, "/synthesize_stream", STREAM).json()["event_id"]
            body = {"event_id": event}
            answers = [threads.submit(ann.post, "/gradio_api/cancel", json=body) for _ in range(4)]
            assert {answer.result().status_code for answer in answers} <= {200, 404}
            ann.get(f"/gradio_api/call/synthesize_stream/{event}")
        assert [call(ann, "/voices_list", []).status_code for _ in range(3)] == [200, 200, 503]


@pytest.mark.parametrize("content", [b"nonsense", b"[" * 1000, b'{"event_id": 5}', b"[]", b"{}", b"null", b"\xff"])
def test_cancel_without_a_call_returns_400(client: httpx.Client, content: bytes) -> None:
    answer = client.post("/gradio_api/cancel", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400 and "event_id" in answer.json()["detail"]


@pytest.mark.parametrize("session", ["", "x<gradio-sep>y", "a b", "\u00e9", "x" * 129])
def test_invalid_session_names_are_refused(client: httpx.Client, session: str) -> None:
    answer = call(client, "/voices_list", [], session_hash=session)
    assert answer.status_code == 400 and "letters, digits" in answer.json()["detail"]


def test_calls_of_a_caller_are_limited_in_bytes(
    ann: httpx.Client, bob: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_queue, "MAX_BYTES_PER_CALLER", 1000)
    refused = call(ann, "/voice_get", ["x" * 1000])
    assert refused.status_code == 503 and "of one caller's calls" in refused.json()["detail"]
    for _ in range(5):
        assert result(ann, "/voices_list", [])


def test_response_is_404_after_its_reader_disconnects(ann: httpx.Client) -> None:
    event = call(ann, "/synthesize_stream", STREAM).json()["event_id"]
    address = f"/gradio_api/call/synthesize_stream/{event}"
    with ann.stream("GET", address) as answer:
        next(line for line in answer.iter_lines() if line == "event: generating")  # the call has begun
    while ann.get("/v1/queue").json()["requests"]:  # until the server notices: two readers would share one answer
        pass
    while (again := answer_or_none(ann, address)) is None or again.status_code == 200:
        assert again is None or "event: " in again.text
    assert again.json()["detail"].startswith("There is no such call")


def answer_or_none(client: httpx.Client, address: str) -> httpx.Response | None:
    """None if the stream broke off: the server had not yet noticed that the first reader left, and ended both."""
    try:
        return client.get(address)
    except httpx.RemoteProtocolError:
        return None


def test_finished_call_of_the_largest_caller_is_dropped_if_the_queue_is_full(
    ann: httpx.Client, bob: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_queue, "MAX_CALLS", 3)
    events = [call(bob, "/voices_list", []).json()["event_id"] for _ in range(3)]
    while (answer := call(ann, "/voices_list", [])).status_code == 503:  # until one of bob's calls ends
        pass
    assert ann.get(f"/gradio_api/call/voices_list/{answer.json()['event_id']}").text.startswith("event: complete")
    statuses = [bob.get(f"/gradio_api/call/voices_list/{event}").status_code for event in events]
    assert sorted(statuses) == [200, 200, 404]  # bob's first call to end is dropped, whichever it is


def test_gradio_client_signs_in_with_auth_token_or_headers(served: Served) -> None:
    options: list[dict[str, Any]] = [
        {"auth": ("any name", KEYS["ann"])},
        {"token": KEYS["ann"]},
        {"headers": {"Authorization": f"Bearer {KEYS['ann']}"}},
    ]
    for option in options:
        with contextlib.closing(Client(served.url, verbose=False, **option)) as client:
            file, _ = client.predict("A word.", max_new_tokens=4, api_name="/synthesize")
            assert file
    with served.client(headers={"Authorization": f"Bearer {KEYS['ann']}"}) as ann:
        assert len(ann.get("/v1/takes").json()["data"]) == 3
    wrong_options: tuple[dict[str, Any], ...] = (
        {"auth": ("ann", "wrong")},
        {"token": "wrong"},
        {"token": "hf_of_the_user"},
    )
    for wrong in wrong_options:
        with pytest.raises(AuthenticationError):
            Client(served.url, verbose=False, **wrong)
