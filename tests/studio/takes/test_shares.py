"""Links to single takes: opened without a key until they expire or are revoked; disabled by default."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from studio.library import shares
from studio.settings import read_keys
from tests.studio.answers import assert_envelope
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served

Steer = Callable[..., tuple[Served, FakeEngine]]
KEYS: dict[str, object] = {"api_keys": read_keys("Ann=one,Bea=two")}
DAY = 86_400


def as_owner(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def speak(client: httpx.Client, text: str = "A <b>bold</b> {text} word.", **fields: object) -> str:
    answer = client.post("/v1/audio/speech", json={"input": text, "voice": "random", "response_format": "wav"} | fields)
    assert answer.status_code == 200, answer.text
    return answer.headers["x-request-id"]


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"home": str(tmp_path / "home")}


def test_a_link_gives_access_to_its_take_alone(steered: Steer, home: dict[str, str]) -> None:
    served, _ = steered(share_days=30, **KEYS, **home)
    with served.client() as stranger, served.client(headers=as_owner("one")) as ann:
        take = speak(ann)
        answer = ann.post(f"/v1/takes/{take}/shares", json={"days": 7})
        assert answer.status_code == 201
        link = answer.json()
        assert link["expires"] - link["created"] == 7 * DAY and link["take"] == take
        page = stranger.get(link["path"])
        assert page.status_code == 200 and "A &lt;b&gt;bold&lt;/b&gt; &#123;text} word." in page.text
        assert page.headers["cache-control"] == "no-store" and page.headers["x-robots-tag"] == "noindex"
        sound = stranger.get(f"{link['path']}/audio", headers={"Range": "bytes=0-3"})
        assert (sound.status_code, sound.content) == (206, b"RIFF")
        whole = stranger.get(f"{link['path']}/audio").content
        assert whole == ann.get(f"/v1/takes/{take}/audio").content
        for path in (f"/v1/takes/{take}", f"/v1/takes/{take}/audio", f"/v1/takes/{take}/shares", "/v1/takes"):
            assert stranger.get(path).status_code == 401
        for path in (f"{link['path']}/audio/more", "/shared/", "/shared/%2E%2E/v1/takes"):
            assert stranger.get(path).status_code == 401
        assert stranger.post(link["path"]).status_code == 401


@pytest.mark.parametrize("settings", [{}, KEYS])
def test_head_request_for_a_link_matches_get(steered: Steer, home: dict[str, str], settings: dict[str, object]) -> None:
    served, _ = steered(share_days=30, **settings, **home)
    with served.client() as stranger, served.client(headers=as_owner("one")) as ann:
        path = ann.post(f"/v1/takes/{speak(ann)}/shares", json={"days": 7}).json()["path"]
        for address, wanted in ((path, {}), (f"{path}/audio", {}), (f"{path}/audio", {"Range": "bytes=4-9"})):
            head, whole = (stranger.request(method, address, headers=wanted) for method in ("HEAD", "GET"))
            assert whole.content and not head.content
            assert head.status_code == whole.status_code
            for answer in (head, whole):
                del answer.headers["date"], answer.headers["x-request-id"]
            assert head.headers == whole.headers
        assert stranger.head("/shared/none").status_code == stranger.get("/shared/none").status_code == 404


def test_link_stops_working_if_revoked_expired_or_its_take_is_deleted(
    steered: Steer, home: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    served, _ = steered(share_days=3, **home)
    with served.client() as client:
        take = speak(client)
        path = f"/v1/takes/{take}/shares"
        longest, other = (client.post(path, json=body).json() for body in ({}, {"days": 1}))
        assert longest["expires"] - longest["created"] == 3 * DAY
        assert [share["token"] for share in client.get(path).json()["data"]] == [other["token"], longest["token"]]
        assert client.delete(f"{path}/{other['token']}").json()["deleted"] is True
        gone = client.get(other["path"])
        assert gone.status_code == 404 and "This link no longer works" in gone.text
        gone = client.get(other["path"], headers={"Accept-Language": "de"})
        assert '<html lang="de">' in gone.text and "gilt nicht mehr" in gone.text and "{{" not in gone.text
        assert client.get(f"{other['path']}/audio").status_code == 404
        assert_envelope(client.delete(f"{path}/{other['token']}"), 404, "token")
        client.delete(f"/v1/takes/{take}")
        assert client.get(longest["path"]).status_code == 404
        client.post(f"/v1/takes/{take}/restore")
        assert client.get(longest["path"]).status_code == 200
        later = longest["expires"] + 1.0
        monkeypatch.setattr(time, "time", lambda: later)  # the clock has jumped, which may be an error
        client.post(path, json={})
        assert client.get(longest["path"]).status_code == 200
        monkeypatch.setattr(shares, "now", lambda: later + 3 * DAY)
        assert client.get(longest["path"]).status_code == 404
        assert client.get(path).json()["data"] == []


def test_only_the_owner_manages_links_and_within_limits(steered: Steer, home: dict[str, str]) -> None:
    served, _ = steered(share_days=30, **KEYS, **home)
    with served.client(headers=as_owner("one")) as ann, served.client(headers=as_owner("two")) as bea:
        take = speak(ann)
        path = f"/v1/takes/{take}/shares"
        token = ann.post(path, json={}).json()["token"]
        for answer in (bea.post(path, json={}), bea.get(path), bea.delete(f"{path}/{token}")):
            assert_envelope(answer, 404, "take_id")
        for days in (0, -1, 31, "many", 1.5, True):
            assert_envelope(ann.post(path, json={"days": days}), 400, "days")
        assert_envelope(ann.post(path, json={"weeks": 1}), 400, "weeks")
        for _ in range(shares.MAX_SHARES - 1):
            assert ann.post(path, json={"days": 1}).status_code == 201
        assert_envelope(ann.post(path, json={"days": 1}), 400, "take_id")
        unstored = speak(ann, store=False)
        assert_envelope(ann.post(f"/v1/takes/{unstored}/shares", json={}), 404, "take_id")


def test_links_are_disabled_without_the_setting(steered: Steer, home: dict[str, str]) -> None:
    served, _ = steered(share_days=30, **home)
    with served.client() as client:
        take = speak(client)
        assert client.get("/v1/takes").json()["share_days"] == 30
        link = client.post(f"/v1/takes/{take}/shares", json={}).json()
    off, _ = steered(**home)
    with off.client() as client:
        assert client.get("/v1/takes").json()["share_days"] == 0
        assert_envelope(client.post(f"/v1/takes/{take}/shares", json={}), 501, "take_id")
        assert client.get(link["path"]).status_code == 404
        assert len(client.get(f"/v1/takes/{take}/shares").json()["data"]) == 1
