"""Ownership of takes, projects and favourites: shared by all without keys, else by the name or the key used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from longform.library.project_records import NewPart, ProjectSettings
from studio.library import VoiceFields
from studio.settings import read_keys
from tests.studio.answers import assert_envelope
from tests.studio.clips import new_sample
from tests.studio.conftest import Steered
from tests.studio.server import Served

Steer = Callable[..., Steered]


def asking(served: Served, key: str = "", address: str = "127.0.0.1") -> httpx.Client:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    transport = httpx.HTTPTransport(local_address=address)
    return httpx.Client(base_url=served.url, transport=transport, headers=headers, timeout=60)


def make(client: httpx.Client, text: str) -> str:
    """Speak a text and create a project from it; the project's id."""
    client.post("/v1/audio/speech", json={"input": text}).raise_for_status()
    return str(client.post("/v1/projects", json={"input": text}).raise_for_status().json()["id"])


def seen(client: httpx.Client) -> tuple[set[str], set[str]]:
    """The excerpts of the takes, and the ids of the projects."""
    takes, projects = client.get("/v1/takes").json()["data"], client.get("/v1/projects").json()["data"]
    return {take["excerpt"] for take in takes}, {project["id"] for project in projects}


def test_all_addresses_share_projects_without_keys(steered: Steer) -> None:
    served, _ = steered()
    with asking(served, address="127.0.0.2") as before, asking(served, address="127.0.0.3") as after:
        project = make(before, "A long book.")
        assert seen(after) == ({"A long book."}, {project})
        path = f"/v1/projects/{project}"
        part = after.get(f"{path}/parts").json()["data"][0]["id"]
        assert after.patch(f"{path}/parts/{part}", json={"text": "A short one."}).status_code == 200
        assert after.patch(path, json={"title": "Mine"}).json()["title"] == "Mine"
        assert after.post(f"{path}/speak", json={}).status_code == 200
        assert after.delete(path).status_code == 200
        assert before.get(path).status_code == 404


def test_a_project_of_an_earlier_version_is_found_from_any_address(steered: Steer) -> None:
    served, _ = steered()
    projects = served.app.state.studio.library.projects
    project = projects.create("address 10.0.0.7", "Old", "txt", [NewPart("Hello.")], ProjectSettings())
    with asking(served) as client:
        assert client.get(f"/v1/projects/{project.id}").json()["title"] == "Old"


def test_changing_a_named_key_keeps_its_takes_and_projects(steered: Steer, tmp_path: Path) -> None:
    home = {"home": str(tmp_path / "home")}
    unnamed, _ = steered(**home, api_keys=read_keys("first,second"))
    with asking(unnamed, "first") as anna, asking(unnamed, "second") as bert:
        project, other = make(anna, "Anna's words."), make(bert, "Bert's words.")
    named, _ = steered(**home, api_keys=read_keys("anna=first,bert=second"))
    with asking(named, "first") as anna:
        assert seen(anna) == ({"Anna's words."}, {project})
    changed, _ = steered(**home, api_keys=read_keys("anna=third,anna=first,bert=second"))
    with asking(changed, "third") as anna, asking(changed, "second") as bert:
        assert seen(anna) == ({"Anna's words."}, {project})
        assert seen(bert) == ({"Bert's words."}, {other})
        assert anna.get(f"/v1/projects/{other}").status_code == 404


def test_items_made_without_keys_belong_to_the_first_key(
    steered: Steer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = {"home": str(tmp_path / "home"), "share_days": 30}
    open_to_all, _ = steered(**home)
    with asking(open_to_all, address="127.0.0.2") as anybody:
        project = make(anybody, "Made without a key.")
        take = anybody.post("/v1/audio/speech", json={"input": "Spoken without."}).headers["x-request-id"]
        shared = anybody.post(f"/v1/takes/{take}/shares", json={"days": 1}).json()["path"]
        assert anybody.get("/v1/settings").json()["adopted"] is None
    with_keys, _ = steered(**home, api_keys=read_keys("anna=first,bert=second"))
    assert (
        "created without a key now belong to the first of STUDIO_API_KEYS (takes: 2, projects: 1, voices: 0)"
        in caplog.text
    )
    with asking(with_keys, "first") as anna, asking(with_keys, "second") as bert, with_keys.client() as nobody:
        assert seen(anna) == ({"Made without a key.", "Spoken without."}, {project}) and seen(bert) == (set(), set())
        assert anna.get("/v1/settings").json()["adopted"] == {"takes": 2, "projects": 1, "voices": 0}
        assert bert.get("/v1/settings").json()["adopted"] is None
        assert nobody.get(shared).status_code == 200
        assert bert.get(f"/v1/takes/{take}").status_code == bert.get(f"/v1/projects/{project}").status_code == 404
    again, _ = steered(**home)
    with asking(again) as anybody:
        assert seen(anybody) == ({"Made without a key.", "Spoken without."}, {project})


def test_favourite_belongs_to_its_key(steered: Steer) -> None:
    served, _ = steered(api_keys=read_keys("anna=first,bert=second"))
    mine = served.app.state.studio.library.seen_by("owner anna").voices
    voice = mine.create(VoiceFields(name="Eve", sharing="read"), [new_sample()]).id
    at = f"/v1/voices/{voice}"
    with asking(served, "first") as anna, asking(served, "second") as bert:
        before = bert.get(at)
        after = bert.patch(at, json={"favourite": True})
        assert after.json() == before.json() | {"favourite": True}, "for which a right to read is enough"
        had = {"If-None-Match": before.headers["etag"]}
        assert bert.get(at, headers=had).json()["favourite"] is True
        assert anna.get(at, headers=had).status_code == 304, "for others nothing changed"
        for client, favourites in ((bert, [voice]), (anna, [])):
            listed = client.get("/v1/voices?favourite=true").json()["data"]
            assert [row["id"] for row in listed] == favourites
        assert bert.get("/v1/voices?order=favourites&limit=1").json()["last_id"] == voice
        assert_envelope(bert.patch(at, json={"favourite": False, "tags": []}), 403)
        anna.patch(at, json={"favourite": True}).raise_for_status()
        assert bert.patch(at, json={"favourite": False}).json()["favourite"] is False
        assert anna.get(at).json()["favourite"] is True
