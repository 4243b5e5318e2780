"""Proposals of a chat endpoint over HTTP: a local one that answers correctly, wrongly, at excessive length or never."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from studio.diagnostics import settings_in_force
from studio.projects.casting import chat_endpoint
from studio.settings import Settings
from tests.studio.answers import assert_envelope
from tests.studio.projects.test_projects import PROJECTS, Json, Steer, create_project, parts_of
from tests.studio.server import Served

KEY = "sk-very-secret"


class FakeChat:
    """Answers with ``status`` and ``body``; a body of None leaves the request unanswered."""

    def __init__(self) -> None:
        self.status = 200
        self.body: bytes | None = b""
        self.headers: dict[str, str] = {}
        self.requests: list[Json] = []
        self.keys: list[str | None] = []
        self.is_over = threading.Event()

    def says(self, content: object) -> None:
        text = content if isinstance(content, str) else json.dumps(content)
        self.body = json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


@pytest.fixture
def chat() -> Iterator[tuple[FakeChat, str]]:
    fake = FakeChat()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            fake.keys.append(self.headers["Authorization"])
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            fake.requests.append(request | {"path": self.path})
            if fake.body is None:
                fake.is_over.wait(30)
                return
            self.send_response(fake.status)
            for name, value in (fake.headers | {"Content-Length": str(len(fake.body))}).items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(fake.body)
            except OSError:  # the client stops reading at its limit
                return

        def log_message(self, format: str, *values: object) -> None:
            """Keep the test output quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield fake, f"http://127.0.0.1:{server.server_address[1]}/v1"
        fake.is_over.set()
        server.shutdown()
        thread.join()


def project_of(steered: Steer, url: str) -> tuple[Served, str, list[str]]:
    served, _ = steered(chat=(url, "tiny", KEY))
    items: list[Any] = [{"input": "“Go!”", "character": "Ann"}, {"input": "“No.”"}, {"input": "It rained."}]
    project = create_project(served, items=items)
    return served, f"{PROJECTS}/{project['id']}", [part["id"] for part in parts_of(served, project)]


def test_proposals_are_returned_and_change_nothing(steered: Steer, chat: tuple[FakeChat, str]) -> None:
    fake, url = chat
    served, at, ids = project_of(steered, url)
    lines: list[Any] = [
        {"n": 1, "speaker": "ANN", "tags": ["[shouting]", "<|im_end|>", 3]},
        {"n": 2, "speaker": "Bea", "tags": "none"},
        {"n": 3, "speaker": ""},
        {"n": 9, "speaker": "Nobody"},
        {"n": 3},
        "?",
    ]
    fake.says(f"Here you are:\n```json\n{json.dumps({'lines': lines[:4]})}\n```")
    with served.client() as client:
        before = client.get(f"{at}/parts").json()
        cast = client.get(f"{at}/cast").json()
        answer = client.post(f"{at}/cast/proposals", json={"ids": ids}).json()
        assert client.get(f"{at}/parts").json() == before
        ann = cast["data"][0]["id"]
        assert (cast["assistant"], answer["model"]) == ("tiny", "tiny")
        assert answer["data"] == [
            {"part": ids[0], "character": ann, "name": "ANN", "tags": ["shouting"]},
            {"part": ids[1], "character": None, "name": "Bea", "tags": []},
            {"part": ids[2], "character": None, "name": "", "tags": []},
        ]
        fake.says({"lines": lines})
        assert [one["name"] for one in client.post(f"{at}/cast/proposals", json={"ids": ids}).json()["data"]] == [
            "ANN",
            "Bea",
        ]
        assert_envelope(client.post(f"{at}/cast/proposals", json={"ids": ["part_x"]}), 404, "ids")
        everything = json.dumps([client.get("/v1/about").json(), cast, answer])
    request = fake.requests[0]
    assert (request["path"], request["model"], fake.keys[0]) == ("/v1/chat/completions", "tiny", f"Bearer {KEY}")
    sent = json.loads(request["messages"][1]["content"])
    assert sent["characters"] == ["Ann"]
    assert sent["lines"][1] == {"n": 2, "before": "“Go!”", "line": "“No.”", "after": "It rained."}
    assert KEY not in everything


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (401, b"{}", "refused the key"),
        (404, b"no such page", "status 404"),
        (302, b"", "status 302"),
        (200, b"<html>", "not the requested JSON"),
        (200, b'{"choices": []}', "not the requested JSON"),
        (200, b'{"choices": [{"message": {"content": "I cannot help with that."}}]}', "not the requested JSON"),
        (200, b'{"choices": [{"message": {"content": null}}]}', "not the requested JSON"),
        (200, b"[" * 100_000, "not the requested JSON"),
        (200, b"x" * 10_000_000, "more than 1000000 bytes"),
        (200, None, "did not answer within"),
    ],
)
def test_chat_endpoint_error_is_reported_with_its_reason(
    steered: Steer,
    chat: tuple[FakeChat, str],
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    body: bytes | None,
    reason: str,
) -> None:
    fake, url = chat
    if body is None:
        monkeypatch.setattr(chat_endpoint, "SECONDS", 0.2)
    served, at, ids = project_of(steered, url)
    fake.status, fake.body, fake.headers = status, body, {"Location": f"{url}/elsewhere"} if status == 302 else {}
    with served.client() as client:
        answer = client.post(f"{at}/cast/proposals", json={"ids": ids})
        assert_envelope(answer, 502)
        assert answer.json()["error"]["code"] == "chat_failed"
        assert reason in answer.json()["error"]["message"]
    assert len(fake.requests) == 1, "no redirect is followed"


def test_chat_endpoint_is_disabled_without_valid_settings(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": "One."}])
    with served.client() as client:
        at = f"{PROJECTS}/{project['id']}/cast"
        assert client.get(at).json()["assistant"] is None
        assert_envelope(client.post(f"{at}/proposals", json={"ids": [parts_of(served, project)[0]["id"]]}), 400, "ids")
    for wrong in ("http://127.0.0.1:1/v1", "file:///etc/passwd x", "http://a/v1 x k more"):
        with pytest.raises(ValueError, match="it must be an address, a model"):
            Settings(chat=wrong)  # type: ignore[arg-type]
    settings = Settings(chat=f"http://a/v1 x {KEY}")  # type: ignore[arg-type]
    assert KEY not in repr(settings) + str(settings_in_force(settings)) and settings.chat[1] == "x"
