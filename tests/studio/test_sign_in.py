"""Signing in: a person's browser gets a form and a cookie, which opens what a key opens."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import httpx
import pytest
import websockets.sync.client
from websockets.exceptions import WebSocketException

from tests.studio.conftest import Steered

Steer = Callable[..., Steered]
KEYS = (hashlib.sha256("schlüssel".encode()).digest(),)
BROWSER = {"Accept": "text/html,application/xhtml+xml"}


def sign_in(client: httpx.Client, key: str, **options: object) -> httpx.Response:
    return client.post("/sign-in", data={"key": key}, **options)  # type: ignore[arg-type]


def test_the_cookie_opens_what_the_key_opens_until_signed_out(steered: Steer) -> None:
    served, _ = steered(api_keys=KEYS)
    with served.client() as client:
        form = client.get("/docs", headers=BROWSER)
        assert form.status_code == 401 and "www-authenticate" not in form.headers
        assert 'action="/sign-in"' in form.text
        answer = sign_in(client, " schlüssel ")
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert "HttpOnly" in answer.headers["set-cookie"] and "SameSite=Lax" in answer.headers["set-cookie"]
        assert client.get("/docs", headers=BROWSER).status_code == 200
        assert client.post("/v1/audio/speech", json={"input": "a"}).status_code == 200
        takes = client.get("/v1/takes").json()["data"]
        header = {"Authorization": "Bearer schlüssel".encode()}
        with served.client() as other:
            assert other.get("/v1/takes", headers=header).json()["data"] == takes
        client.post("/sign-out")
        assert client.get("/v1/takes").status_code == 401


@pytest.mark.parametrize("key", ["", "schlüsse", "x" * 5000])
def test_a_wrong_key_gets_the_form_again_and_no_cookie(steered: Steer, key: str) -> None:
    served, _ = steered(api_keys=KEYS)
    with served.client() as client:
        answer = sign_in(client, key)
        assert answer.status_code in (401, 413)
        assert "not one of this studio" in answer.text and "set-cookie" not in answer.headers
        client.cookies.set("studio_key", "no-base64!")
        assert client.get("/v1/takes").status_code == 401


def test_the_cookie_is_one_for_frames_over_https_and_stays_under_the_path(steered: Steer) -> None:
    served, _ = steered(api_keys=KEYS, root_path="/studio")
    with served.client() as client:
        answer = sign_in(client, "schlüssel", headers={"X-Forwarded-Proto": "https"})
    assert answer.headers["location"] == "/studio/"
    for part in ("Path=/studio;", "SameSite=None; Secure; Partitioned"):
        assert part in answer.headers["set-cookie"]


def test_another_sites_page_can_neither_sign_in_nor_use_the_cookie_on_a_socket(steered: Steer) -> None:
    served, _ = steered(api_keys=KEYS)
    with served.client() as client:
        assert sign_in(client, "schlüssel", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        cookie = sign_in(client, "schlüssel").headers["set-cookie"].partition(";")[0]
    url = served.url.replace("http", "ws") + "/v1/audio/speech/stream"
    with pytest.raises(WebSocketException):
        websockets.sync.client.connect(url, additional_headers={"Cookie": cookie}).recv()


def test_without_keys_there_is_nothing_to_sign_in_to(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        assert sign_in(client, "anything").status_code in (404, 405)
