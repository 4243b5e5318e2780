"""Random requests, by the document of the API, of a caller who knows the ids of somebody else's things: none fails,
shows them or changes them."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from studio.settings import Settings, read_keys
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import serve
from tests.studio.sounds import tone, wav
from tests.waiting import wait_until

Json = dict[str, Any]
KEYS = read_keys("owner=first-key-of-all,anna=second-key-of-all,bert=third-key-of-all")
ANNAS, BERTS = ({"Authorization": f"Bearer {key}-key-of-all"} for key in ("second", "third"))
MARK = "OFANNA"
NOVEL = f"Chapter 1\n\n“{MARK},” said Ofanna. “No,” said Bob.\n\nIt was late."
CLIP = ("clip.wav", wav(tone(1.1)))
FILES = [("a.txt", b"One. Two."), ("a.csv", b"text,voice\nOne.,anna\nTwo.,bert\n"), ("a.md", b"# One\n\nTwo."), CLIP]
WORDS = ["Hi.", "How are you? Fine.", "anna", "a", "", "  ", "One.\n\nTwo.", "en", "wav", "1", "-1", "[sad] Hi.", "😀"]
WORDS += ["“Go,” said Ann. “No.”", "Ann: Hi.\nBob: No.", "text,voice\nOne.,anna\nTwo.,"]
IDS = re.compile(r'"((proj|part|req|voice|char|sample)_[0-9a-f]{8,})"')
KINDS = {"project": "proj", "take": "req", "reference": "voice", "voice": "voice", "sample": "sample"}
KINDS |= {"character": "char", "into": "char"}
"""The beginnings of ids, by the names of fields without _id; the others are those of parts."""
NAMED = re.compile(r"_id$|^(after|ids?|parts|first|last|take|character|into|following|continues)$")
"""Fields that have ids."""
LEFT_OUT = re.compile("/engine/model|recogniser")
REFUSALS = {"degenerate_speech"}
"""Errors 5xx that are no faults: the fake engine speaks a long word as fast as a short one."""


class Requests:
    """Random requests with ids from the answers so far, and from ``others``."""

    def __init__(self, seed: int, document: Json, others: dict[str, list[str]]) -> None:
        self.chance, self.schemas, self.others = random.Random(seed), document["components"]["schemas"], others
        self.own = defaultdict[str, list[str]](list)
        paths = {path: one for path, one in document["paths"].items() if not LEFT_OUT.search(path)}
        self.operations = [(path, method, one[method]) for path, one in paths.items() for method in one]

    def next(self) -> tuple[str, str, Json]:
        """Method, path, and arguments for httpx."""
        path, method, operation = self.chance.choice(self.operations)
        url = re.sub(r"\{(\w+)\}", lambda name: self.id_for(name[1]), path)
        query = {
            one["name"]: self.value(one["schema"], one["name"])
            for one in operation.get("parameters", ())
            if one["in"] == "query" and self.chance.random() < 0.3
        }
        request: Json = {"params": {name: value for name, value in query.items() if value is not None}}
        for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
            body = self.value(content["schema"])
            if media_type == "application/json":
                request["json"] = body
            elif media_type == "multipart/form-data":
                fields = content["schema"].get("properties", {})
                files = [name for name, field in fields.items() if "binary" in str(field)]
                plain = {name: one for name, one in body.items() if name not in files and one is not None}
                request["data"] = {
                    name: one if isinstance(one, str) else json.dumps(one) for name, one in plain.items()
                }
                request["files"] = {name: self.any(FILES) if name == "file" else CLIP for name in files or ["none"]}
        return method, url, request

    def learn(self, text: str) -> None:
        for found, kind in IDS.findall(text):
            if found not in self.own[kind] and found not in self.others[kind]:
                self.own[kind].append(found)

    def any(self, values: list[Any]) -> Any:
        return self.chance.choice(values)

    def id_for(self, name: str) -> str:
        kind = KINDS.get(name.removesuffix("_id"), "part")
        ids = self.others[kind] if self.chance.random() < 0.35 else self.own[kind][-20:]
        return self.any(ids or ["none"])

    def value(self, schema: Json, name: str = "", depth: int = 0) -> Any:
        """A value that the schema allows, or nearly."""
        if "$ref" in schema:
            return self.value(self.schemas[schema["$ref"].rpartition("/")[2]], name, depth)
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                return self.value(self.any(schema[choice]), name, depth)
        if "const" in schema or "enum" in schema:
            return self.any(schema.get("enum") or [schema["const"]])
        kind = schema.get("type")
        if kind in ("integer", "number"):
            least = schema.get("minimum", 0)
            most = schema.get("maximum", least + 20)
            return self.any([least, min(least + 1, most), most, least - 1])
        if kind == "array":
            items, count = schema.get("items", {"type": "string"}), self.any([0, 1, 1, 2, 3])
            return [self.value(items, name, depth + 1) for _ in range(max(count, schema.get("minItems", 0)))]
        if kind == "object" or "properties" in schema:
            chosen = {
                field: one
                for field, one in schema.get("properties", {}).items()
                if field in schema.get("required", ()) or self.chance.random() < (0.25 if depth < 2 else 0.15)
            }
            return {field: self.value(one, field, depth + 1) for field, one in chosen.items()}
        if kind == "string" and NAMED.search(name):
            return self.id_for(name)
        return None if kind == "null" else self.any([True, False] if kind == "boolean" else WORDS)


def things_of(client: httpx.Client) -> dict[str, list[str]]:
    """Two takes, a spoken project, a voice, and the ids of all that is in them."""
    takes = [client.post("/v1/audio/speech", json={"input": f"{MARK} {number}."}) for number in range(2)]
    body = {"input": NOVEL, "speakers": True, "title": MARK, "start": True}
    project = client.post("/v1/projects", json=body).raise_for_status().json()["id"]
    wait_until(lambda now: now["state"] == "done", lambda: client.get(f"/v1/projects/{project}").json())
    voice = {"name": MARK, "ref_text": f"{MARK} words.", "consent": "none"}
    client.post("/v1/audio/voices", files={"audio_sample": CLIP}, data=voice).raise_for_status()
    ids = defaultdict[str, list[str]](list, req=[take.headers["x-request-id"] for take in takes])
    for path in ("/v1/voices/ofanna", *(f"/v1/projects/{project}{list}" for list in ("", "/parts", "/cast"))):
        for found, kind in IDS.findall(client.get(path).text):
            ids[kind].append(found)
    return ids


def state_of(client: httpx.Client, ids: dict[str, list[str]]) -> dict[str, list[Json]]:
    """What a caller sees of these things, which others may have added to lists."""
    at = f"/v1/projects/{ids['proj'][0]}"
    lists = ("/v1/takes", "/v1/voices", "/v1/projects", "/v1/trash", f"{at}/parts", f"{at}/cast")
    return {
        path: [one for one in client.get(path).json()["data"] if MARK in json.dumps(one) or path.startswith(at)]
        for path in lists
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_random_requests_fail_at_nothing_and_meet_nothing_of_another_key(
    seed: int, voices_folder: Path, tmp_path: Path
) -> None:
    settings = Settings(model="test/model", voices=str(voices_folder), home=str(tmp_path / "home"), api_keys=KEYS)
    with (
        serve(settings, lambda config, _: FakeEngine(config, rows=4)) as served,
        served.client(headers=ANNAS) as anna,
        served.client(headers=BERTS) as bert,
    ):
        ids = things_of(anna)
        before = state_of(anna, ids)
        assert [len(some) for some in before.values()][:4] == [2, 1, 1, 0]
        requests = Requests(seed, bert.get("/openapi.json").json(), ids)
        for project in (
            {"input": "“Go,” said Ann.\n\n“No,” said Bob.", "speakers": True},
            {"items": [{"input": "One."}]},
        ):
            requests.learn(bert.post("/v1/projects", json=project).raise_for_status().text)
        for _ in range(400):
            check(bert, requests)
        assert state_of(anna, ids) == before


def check(client: httpx.Client, requests: Requests) -> None:
    method, url, request = requests.next()
    beginning, status = bytearray(), 0
    with suppress(httpx.RemoteProtocolError), client.stream(method, url, **request) as answer:  # speech broke off
        status = answer.status_code
        for piece in answer.iter_bytes():
            beginning += piece
            if "event-stream" in answer.headers.get("content-type", ""):
                break
    text = beginning.decode(errors="replace")
    is_refusal = status == 501 or any(code in text for code in REFUSALS)
    assert 0 < status < 500 or is_refusal, (method, url, request, text)
    assert MARK not in text.upper(), (method, url, request, text)
    requests.learn(text)
