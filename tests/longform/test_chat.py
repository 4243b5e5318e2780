"""Proposals of a chat endpoint over HTTP: a local one that answers correctly, wrongly, at excessive length or never."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from longform import chat_endpoint
from studio.diagnostics import settings_in_force
from studio.settings import Settings
from tests.longform.fake_chat import FakeChat, serving
from tests.longform.test_projects import PROJECTS, Steer, create_project, parts_of
from tests.studio.answers import assert_envelope
from tests.studio.server import Served
from tests.waiting import wait_until_true

KEY = "sk-very-secret"


@pytest.fixture
def chat() -> Iterator[tuple[FakeChat, str]]:
    with serving() as served:
        yield served


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
            {"part": ids[2], "character": None, "name": "", "tags": []},
        ]
        fake.says({"lines": lines})
        again = client.post(f"{at}/cast/proposals", json={"ids": ids}).json()["data"]
        assert [one["name"] for one in again] == ["ANN", ""]  # nobody in the cast or in the scene is called Bea
        assert_envelope(client.post(f"{at}/cast/proposals", json={"ids": ["part_x"]}), 404, "ids")
        everything = json.dumps([client.get("/v1/about").json(), cast, answer])
    request = fake.requests[0]
    assert (request["path"], request["model"], fake.keys[0]) == ("/v1/chat/completions", "tiny", f"Bearer {KEY}")
    sent = json.loads(request["messages"][1]["content"])
    assert sent["characters"] == [{"name": "Ann", "aliases": [], "gender": "female"}]
    assert sent["scene"] == [
        {"n": 1, "text": "“Go!”"}, {"n": 2, "text": "“No.”"}, {"n": 3, "text": "It rained."},
    ]  # fmt: skip
    assert KEY not in everything


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (401, b"{}", "refused the key"),
        (404, b"no such page", "status 404: check STUDIO_CHAT"),
        (429, b"too many requests", "status 429: try again in a minute"),
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


def test_scenes_have_certain_lines_and_their_cost_is_told_before(steered: Steer, chat: tuple[FakeChat, str]) -> None:
    fake, url = chat
    served, _ = steered(chat=(url, "tiny", KEY))
    spoken = ["“Come,” said Anna.", "“Why?” said Ben.", "“It is late.”", *["It rained on and on. " * 60] * 20, "“No.”"]
    project = create_project(served, input="\n\n".join(spoken), speakers=True, split_by="paragraph")
    at = f"{PROJECTS}/{project['id']}/cast/proposals"
    ids = {part["text"]: part["id"] for part in parts_of(served, project)}
    asked = [ids["“It is late.”"], ids["“No.”"]]
    fake.says({"lines": [{"n": 1, "speaker": "Anna"}]})
    with served.client() as client:
        cost = client.post(at, json={"ids": asked, "estimate": True}).json()
        assert (cost["questions"], cost["model"], fake.requests) == (2, "tiny", [])
        answer = client.post(at, json={"ids": asked}).json()["data"]
        assert_envelope(client.post(at, json={"ids": ["part_x"], "estimate": True}), 404, "ids")
    assert [one["part"] for one in answer] == asked
    scene = json.loads(fake.requests[0]["messages"][1]["content"])["scene"]
    anchors = {line["text"]: line["speaker"] for line in scene if "speaker" in line}
    assert anchors == {"“Come,”": "Anna", "“Why?”": "Ben"}
    sent = sum(len(message["content"].encode()) for one in fake.requests for message in one["messages"])
    assert cost["tokens"] == sent // 4


def test_answers_before_a_failure_are_kept(steered: Steer, chat: tuple[FakeChat, str]) -> None:
    fake, url = chat
    served, _ = steered(chat=(url, "tiny", KEY))
    items: list[Any] = [{"input": f"“Line {number}.”"} for number in range(30)]
    project = create_project(served, items=items)
    fake.says({"lines": [{"n": 1, "speaker": ""}]})
    fake.fails_after = 1
    with served.client() as client:
        ids = [part["id"] for part in parts_of(served, project)]
        answer = client.post(f"{PROJECTS}/{project['id']}/cast/proposals", json={"ids": ids})
    assert [one["part"] for one in answer.json()["data"]] == ids[:1]
    assert len(fake.requests) == 2


async def test_another_callers_question_comes_between_those_of_a_long_request(chat: tuple[FakeChat, str]) -> None:
    fake, url = chat
    answers = {name: threading.Event() for name in ("long 0", "other 0", "short")}

    def answer(question: Any) -> object:
        for name, released in answers.items():
            if name in str(question):
                released.wait(30)
        return {"lines": []}

    fake.answer = answer
    endpoint = chat_endpoint.ChatEndpoint(url, "tiny")

    def propose(name: str, questions: int) -> asyncio.Task[Any]:
        scenes = [[chat_endpoint.SceneLine(f"{name} {number}", key=str(number))] for number in range(questions)]
        return asyncio.create_task(endpoint.propose(scenes, [], None))

    long, other = propose("long", 2), propose("other", 2)
    await asyncio.to_thread(wait_until_true, lambda: len(fake.requests) == 2)
    short = propose("short", 1)
    await asyncio.sleep(0)  # it waits for a place now
    answers["long 0"].set()
    await asyncio.to_thread(wait_until_true, lambda: len(fake.requests) == 3)
    assert "short" in str(fake.requests[2]["messages"])
    for released in answers.values():
        released.set()
    await asyncio.gather(long, other, short)
