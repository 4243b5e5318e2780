"""Signing in: a browser gets a form and a cookie, which grants the same access as a key."""

from __future__ import annotations

import base64
import errno
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import httpx
import pytest
import websockets.sync.client
from websockets.exceptions import WebSocketException

from studio.api import sessions
from studio.api.sessions import LIFETIME_SECONDS, Sessions
from studio.settings import read_keys
from tests.studio.conftest import Steered
from tests.studio.server import Served

Steer = Callable[..., Steered]
KEYS = read_keys("schlüssel")
BROWSER = {"Accept": "text/html,application/xhtml+xml"}


def sign_in(client: httpx.Client, key: str, **options: object) -> httpx.Response:
    return client.post("/sign-in", data={"key": key}, **options)  # type: ignore[arg-type]


def test_cookie_grants_the_access_of_its_key_until_sign_out(steered: Steer) -> None:
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
        header = {b"Authorization": "Bearer schlüssel".encode()}
        with served.client() as other:
            assert other.get("/v1/takes", headers=header).json()["data"] == takes
        client.post("/sign-out")
        assert client.get("/v1/takes").status_code == 401


def test_studios_at_two_ports_of_a_host_do_not_sign_each_other_out(steered: Steer, tmp_path: Path) -> None:
    """The browser sends each of them the cookies of both."""
    studios = [steered(api_keys=KEYS, home=str(tmp_path / name))[0] for name in ("one", "two")]
    with httpx.Client() as browser:

        def post(studio: Served, path: str) -> httpx.Response:
            origin = {"Origin": studio.url, "Sec-Fetch-Site": "same-origin"}
            return browser.post(studio.url + path, data={"key": "schlüssel"}, headers=origin)

        def statuses() -> list[int]:
            return [browser.get(f"{studio.url}/v1/takes").status_code for studio in studios]

        for studio in studios:
            post(studio, "/sign-in")
        assert statuses() == [200, 200]
        post(studios[0], "/sign-out")
        assert statuses() == [401, 200]
        port = studios[1].url.rpartition(":")[2]
        assert [name for name, value in browser.cookies.items() if value] == [
            f"studio_session_{port}", f"studio_owner_{port}",
        ]  # fmt: skip


@pytest.mark.parametrize("key", ["", "schlüsse", "x" * 5000])
def test_wrong_key_returns_the_form_without_a_cookie(steered: Steer, key: str) -> None:
    served, _ = steered(api_keys=KEYS)
    with served.client() as client:
        answer = sign_in(client, key)
        assert answer.status_code in (401, 413)
        assert "does not know that key" in answer.text and "set-cookie" not in answer.headers
        assert "kennt den Schlüssel nicht" in sign_in(client, key, headers={"Accept-Language": "de"}).text
        client.cookies.set("studio_session", "nobody's")
        assert client.get("/v1/takes").status_code == 401


@pytest.mark.parametrize(
    "sent",
    [
        {"content": b"key=secret", "headers": {"Content-Type": "multipart/form-data"}},
        {"content": b"--x\r\nbroken", "headers": {"Content-Type": "multipart/form-data; boundary=x"}},
        {"files": {"key": ("key.txt", "schlüssel".encode())}},
        {"json": {"key": "schlüssel"}},
        {"content": b"key=schl\xfc\xffssel", "headers": {"Content-Type": "application/x-www-form-urlencoded"}},
    ],
)
def test_sign_in_form_of_another_type_is_refused(steered: Steer, sent: dict[str, object]) -> None:
    served, _ = steered(api_keys=KEYS)
    with served.client() as client:
        answer = client.post("/sign-in", **sent)  # type: ignore[arg-type]
    assert answer.status_code in (401, 415) and "set-cookie" not in answer.headers
    assert 'action="/sign-in"' in answer.text


@pytest.mark.parametrize(
    ("on_space", "scheme", "expected"),
    [
        (False, "http", "HttpOnly; SameSite=Lax"),
        (False, "https", "HttpOnly; SameSite=Lax; Secure"),
        (True, "https", "HttpOnly; SameSite=None; Secure; Partitioned"),
    ],
)
def test_cookie_is_third_party_only_on_a_space_and_limited_to_the_root_path(
    steered: Steer, monkeypatch: pytest.MonkeyPatch, on_space: bool, scheme: str, expected: str
) -> None:
    if on_space:
        monkeypatch.setenv("SPACE_ID", "somebody/studio")
    served, _ = steered(api_keys=KEYS, root_path="/studio")
    with served.client() as client:
        answer = sign_in(client, "schlüssel", headers={"X-Forwarded-Proto": scheme})
    assert answer.headers["location"] == "/studio/"
    cookie, owner = answer.headers.get_list("set-cookie")
    assert "Path=/studio;" in cookie and cookie.endswith(expected)
    assert owner.startswith(f"studio_owner_{served.url.rpartition(':')[2]}=") and "HttpOnly" not in owner, (
        "for the page's scripts"
    )
    assert owner.endswith(expected.removeprefix("HttpOnly")) and "Path=/studio;" in owner


def test_cookie_does_not_reveal_the_key_and_sign_out_invalidates_its_copies(steered: Steer) -> None:
    served, _ = steered(api_keys=KEYS)
    with served.client() as client:
        sign_in(client, "schlüssel")
        cookies = dict(client.cookies)
        value, owner = cookies.values()
        assert owner not in (KEYS[0].digest.hex(), KEYS[0].digest.hex()[: len(owner)])
        padded = value + "=" * (-len(value) % 4)
        assert "schlüssel".encode() not in base64.urlsafe_b64decode(padded) and KEYS[0].digest.hex() not in value
        with served.client(cookies=cookies) as stolen, served.client() as elsewhere:
            sign_in(elsewhere, "schlüssel")
            assert stolen.get("/v1/takes").status_code == 200
            client.post("/sign-out")
            assert stolen.get("/v1/takes").status_code == 401
            assert elsewhere.get("/v1/takes").status_code == 200


def test_sign_in_survives_a_restart_but_not_a_key_change(steered: Steer, tmp_path: Path) -> None:
    home = {"home": str(tmp_path / "home")}
    first, _ = steered(api_keys=KEYS, **home)
    with first.client() as client:
        sign_in(client, "schlüssel")
        cookies = dict(client.cookies)
    [session] = (tmp_path / "home" / "sessions").iterdir()
    assert not any(value in session.name + session.read_text("utf-8") for value in cookies.values())
    again, _ = steered(api_keys=KEYS, **home)
    with again.client(cookies=cookies) as client:
        assert client.get("/v1/takes").status_code == 200
    rotated, _ = steered(api_keys=read_keys("another"), **home)
    with rotated.client(cookies=cookies) as client:
        assert client.get("/v1/takes").status_code == 401


@pytest.mark.parametrize("kept", ["", "[]", "{}", "a b", f"{KEYS[0].digest.hex()} never", "\x00"])
def test_damaged_session_ends_alone_and_a_new_sign_in_is_possible(tmp_path: Path, kept: str) -> None:
    sessions = Sessions(tmp_path, [KEYS[0].digest])
    damaged, other = sessions.begin(KEYS[0].digest), sessions.begin(KEYS[0].digest)
    next(path for path in tmp_path.iterdir() if path.name == sha256(damaged.encode()).hexdigest()).write_text(kept)
    assert sessions.key_of(damaged) is None
    assert sessions.key_of(other) == sessions.key_of(sessions.begin(KEYS[0].digest)) == KEYS[0].digest


def test_sign_ins_in_several_processes_are_all_known(tmp_path: Path) -> None:
    studios = [Sessions(tmp_path, [KEYS[0].digest]) for _ in range(2)]  # threads share nothing else, as processes
    with ThreadPoolExecutor(2) as pool:
        tokens = list(pool.map(lambda n: studios[n % 2].begin(KEYS[0].digest), range(60)))
    for studio in studios:
        assert [studio.key_of(token) for token in tokens] == [KEYS[0].digest] * 60
    studios[0].end(tokens[0])
    assert studios[1].key_of(tokens[0]) is None


def test_oldest_and_expired_sign_ins_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 3)
    studio = Sessions(tmp_path, [KEYS[0].digest])
    tokens = [studio.begin(KEYS[0].digest) for _ in range(3)]
    for age, token in zip((3, 2, 1), tokens, strict=True):
        begun = time.time() - age
        os.utime(tmp_path / sha256(token.encode()).hexdigest(), (begun, begun))
    tokens.append(studio.begin(KEYS[0].digest))
    assert [studio.key_of(token) is not None for token in tokens] == [False, True, True, True]
    (tmp_path / "mix.wav").touch()  # the library is in somebody's folder, who has a folder "sessions" too
    for path in tmp_path.iterdir():
        os.utime(path, (0, 0))
    tokens.append(studio.begin(KEYS[0].digest))
    left = sorted(path.name for path in tmp_path.iterdir())
    assert len(left) == 2 and left[1] == "mix.wav", "long expired ones are removed"
    later = time.time() + LIFETIME_SECONDS + 1
    monkeypatch.setattr(time, "time", lambda: later)  # the clock has jumped, which may be an error
    tokens.append(studio.begin(KEYS[0].digest))
    assert studio.key_of(tokens[4]) and studio.key_of(tokens[5])
    monkeypatch.setattr(sessions, "now", lambda: later)
    assert studio.key_of(tokens[4]) is None


def test_many_sign_ins_with_one_key_end_none_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 4)
    one, other = b"1" * 32, b"2" * 32
    studio = Sessions(tmp_path, [one, other])
    first = studio.begin(other)
    os.utime(tmp_path / sha256(first.encode()).hexdigest(), (time.time() - 60,) * 2)
    tokens = [studio.begin(one) for _ in range(6)]
    assert studio.key_of(first) == other
    assert sum(studio.key_of(token) == one for token in tokens) == 3
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 20)
    for _ in range(17):
        studio.begin(one)
    assert len(list(tmp_path.iterdir())) == 19, "some more end at once, since looking for the oldest reads all"


def test_sign_in_works_without_room_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    studio = Sessions(tmp_path, [KEYS[0].digest])

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sessions, "write_whole", refuse)
    token = studio.begin(KEYS[0].digest)
    assert studio.key_of(token) == KEYS[0].digest and "lost on a restart" in caplog.text
    studio.end(token)
    assert studio.key_of(token) is None


def test_sign_in_from_another_site_and_the_cookie_on_a_socket_are_refused(steered: Steer) -> None:
    served, _ = steered(api_keys=KEYS)
    with served.client() as client:
        assert sign_in(client, "schlüssel", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        cookie = sign_in(client, "schlüssel").headers["set-cookie"].partition(";")[0]
    url = served.url.replace("http", "ws") + "/v1/audio/speech/stream"
    with pytest.raises(WebSocketException):
        websockets.sync.client.connect(url, additional_headers={"Cookie": cookie}).recv()


def test_sign_in_is_unavailable_without_keys(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        assert sign_in(client, "anything").status_code in (404, 405)
