"""The trash over HTTP: listed page by page, restored, emptied; each key sees its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx

from studio.settings import read_keys
from tests.longform.test_projects import create_project
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered

TRASH = "/v1/trash"
Steer = Callable[..., Steered]


def list_items(client: httpx.Client, **query: Any) -> list[tuple[str, str]]:
    return [(item["kind"], item["id"]) for item in client.get(TRASH, params=query).json()["data"]]


def test_deleted_items_are_listed_restored_and_removed(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": "One."}, {"input": "Two."}])
    at = f"/v1/projects/{project['id']}"
    with served.client() as client:
        take = client.post("/v1/audio/speech", json={"input": "Two words."}).headers["x-request-id"]
        part = client.get(f"{at}/parts").json()["data"][0]["id"]
        client.post(f"{at}/replace", json={"find": "o", "replace": "a"}).raise_for_status()
        voice = client.delete("/v1/voices/anna").json()["id"]
        for path in (f"{at}/parts/{part}", f"/v1/takes/{take}"):
            assert client.delete(path).json()["undo_seconds"] == 7 * 86_400
        first = client.get(TRASH, params={"limit": 2}).json()
        assert first["has_more"] and first["last_id"] == part
        item = first["data"][0]
        assert item["expires"] - item["deleted"] == 7 * 86_400
        assert item | {"deleted": 0, "expires": 0} == {
            "object": "trash.item", "kind": "take", "id": take, "title": "Two words.", "parts": None,
            "project_id": None, "deleted": 0, "expires": 0,
        }  # fmt: skip
        rest = client.get(TRASH, params={"after": part}).json()["data"]
        assert [(item["kind"], item["parts"]) for item in rest] == [("voice", None), ("replacement", 2)]
        replacement = rest[1]["id"]
        items = [{"kind": "voice", "id": voice}, {"kind": "part", "id": part}, {"kind": "take", "id": "none"}]
        restored = client.post(f"{TRASH}/restore", json={"items": items}).json()["data"]
        assert sorted(item["id"] for item in restored) == sorted([voice, part])
        assert client.get("/v1/voices/anna").json()["id"] == voice
        assert list_items(client) == [("take", take), ("replacement", replacement)]
        assert client.delete(TRASH, params={"kind": "voice"}).json() == {"object": "trash.emptied", "count": 0}
        assert client.delete(TRASH, params={"ids": f"{take}, {voice}"}).json()["count"] == 1
        assert client.post(f"/v1/takes/{take}/restore").status_code == 404
        assert_envelope(client.delete(TRASH, params={"id": voice}), 400, "id")
        assert_envelope(client.request("DELETE", TRASH, json={"ids": [voice]}), 400, "body")
        assert_envelope(client.request("DELETE", TRASH, content=iter([b"in pieces"])), 400, "body")
        assert client.delete(TRASH).json()["count"] == 1 and list_items(client) == []


def test_invalid_trash_requests_are_refused(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        restore = f"{TRASH}/restore"
        assert_envelope(client.get(TRASH, params={"limit": 0}), 400, "limit")
        assert_envelope(client.get(TRASH, params={"after": "none"}), 404, "after")
        assert_envelope(client.delete(TRASH, params={"kind": "song"}), 400, "kind")
        assert_envelope(client.post(restore, json={"items": []}), 400, "items")
        assert_envelope(client.post(restore, json={"items": [{"kind": "take", "id": "none"}]}), 404, "items")
        some_id = ",req_0123456789abcdef0123456789abcdef"
        assert client.delete(f"{TRASH}?ids={some_id * 1000}").json()["count"] == 0
        assert_envelope(client.delete(f"{TRASH}?ids={some_id * 1001}"), 400, "ids")
        too_long = client.get(TRASH, headers={"X-Ids": some_id * 2000})
        assert too_long.status_code == 400 and "64 KiB" in too_long.text


def test_each_key_has_its_own_trash(steered: Steer) -> None:
    served, _ = steered(api_keys=read_keys("one,two"))
    one, two = (served.client(headers={"Authorization": f"Bearer {name}"}) for name in ("one", "two"))
    with one, two:
        project = one.post("/v1/projects", json={"input": "Mine."}).json()["id"]
        one.delete(f"/v1/projects/{project}").raise_for_status()
        assert list_items(one) == [("project", project)] and list_items(two) == []
        items = {"items": [{"kind": "project", "id": project}]}
        assert_envelope(two.post(f"{TRASH}/restore", json=items), 404, "items")
        assert_envelope(two.post(f"/v1/projects/{project}/restore"), 404, "project")
        assert two.delete(TRASH, params={"ids": project}).json()["count"] == 0
        voice = one.delete("/v1/voices/anna").json()["id"]
        restored = {"items": [{"kind": "voice", "id": voice}]}
        assert two.delete(TRASH).json()["count"] == 0
        assert_envelope(two.post(f"{TRASH}/restore", json=restored), 404, "items")
        assert one.post(f"{TRASH}/restore", json=restored).status_code == 200
        assert one.post(f"{TRASH}/restore", json=items).status_code == 200
        assert one.get(f"/v1/projects/{project}").json()["title"] == "Mine."
        words, csv = "/v1/pronunciations", b"phrase,said\nGIF,gif\nNguyen,new\n"
        of_project = {"project": project}
        for phrase in ("GIF", "SQL"):
            for where in ({}, of_project):
                one.post(words, json={"phrase": phrase, "said": "old"} | where).raise_for_status()
        two.put(f"{words}/csv?replace=true", files={"file": csv}).raise_for_status()
        [(kind, lost)] = list_items(one)
        assert kind == "dictionary" and list_items(two) == [(kind, lost)], "everybody shares the global dictionary"
        assert two.delete(TRASH).json()["count"] == 0
        assert one.post(f"{TRASH}/restore", json={"items": [{"kind": kind, "id": lost}]}).status_code == 200
        listed = {entry["phrase"]: entry["said"] for entry in one.get(words).json()["data"]}
        assert listed == {"GIF": "old", "SQL": "old", "Nguyen": "new"} and list_items(one) == []
        one.put(f"{words}/csv", params=of_project | {"replace": "true"}, files={"file": csv}).raise_for_status()
        [entry] = [each for each in one.get(words, params=of_project).json()["data"] if each["phrase"] == "GIF"]
        one.patch(f"{words}/{entry['id']}", json={"said": "mine"}).raise_for_status()
        for _ in range(2):
            one.delete(f"{words}/{one.get(words).json()['data'][0]['id']}").raise_for_status()
        assert one.delete(TRASH, params={"ids": one.get(TRASH).json()["data"][0]["id"]}).json()["count"] == 1
        [single, replaced] = one.get(TRASH).json()["data"]
        assert (single["title"], replaced["title"], replaced["parts"]) == ("GIF", "GIF, SQL", 2)
        assert replaced["project_id"] == project and list_items(two) == [("dictionary", single["id"])]
        one.post(f"{TRASH}/restore", json={"items": [{"kind": "dictionary", "id": replaced["id"]}]}).raise_for_status()
        listed = {entry["phrase"]: entry["said"] for entry in one.get(words, params=of_project).json()["data"]}
        assert listed == {"GIF": "mine", "SQL": "old", "Nguyen": "new"}, "an entry edited since stays"
        [_, rest] = one.get(TRASH).json()["data"]
        assert (rest["title"], rest["parts"], rest["deleted"]) == ("GIF", 1, replaced["deleted"]), (
            "its earlier text too"
        )
        left = {"items": [{"kind": "dictionary", "id": rest["id"]}]}
        assert_envelope(one.post(f"{TRASH}/restore", json=left), 412, "ids")
        one.delete(f"{words}/{entry['id']}").raise_for_status()
        assert one.post(f"{TRASH}/restore", json=left).status_code == 200
        listed = {entry["phrase"]: entry["said"] for entry in one.get(words, params=of_project).json()["data"]}
        assert listed == {"GIF": "old", "SQL": "old", "Nguyen": "new"}
