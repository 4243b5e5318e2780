"""Guessing keys is slowed down for the guesser, without affecting callers with a key or a sign-in."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable

import httpx
import pytest
import websockets.sync.client
from websockets.exceptions import InvalidStatus

from studio.api.error_responses import ApiError
from studio.api.wrong_keys import FREE, MAX_ADDRESSES, REMEMBERED_KEYS, WrongKeys
from studio.settings import read_keys
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered

Steer = Callable[..., Steered]
BROWSER = {"Accept": "text/html"}


def digest_of(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


KEYS = (digest_of("right"), digest_of("second"))


class Clock:
    """A clock set by the test."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Limiter:
    """The limiter alone, with a count of the keys compared."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.compared = 0
        self._wrong_keys = WrongKeys(self._is_right, self.clock)

    def _is_right(self, digest: bytes) -> bool:
        self.compared += 1
        return digest in KEYS

    def send(self, key: str, client: str | None = "192.0.2.1") -> str:
        """Returns right, wrong, or the number of seconds to wait."""
        try:
            return "right" if self._wrong_keys.accepts(client, key.encode()) else "wrong"
        except ApiError as error:
            assert (error.status, error.code) == (429, "too_many_wrong_keys")
            return error.headers["Retry-After"]

    def guess(self, count: int, client: str | None = "192.0.2.1") -> list[str]:
        """Send different wrong keys, one after the other."""
        return [self.send(f"guess {self.compared} {number}", client) for number in range(count)]


def test_five_wrong_keys_are_free_and_each_further_one_starts_a_longer_pause() -> None:
    limiter = Limiter()
    assert limiter.guess(FREE) == ["wrong"] * 5
    pauses = []
    for _ in range(9):
        assert limiter.guess(1) == ["wrong"]
        (pause,) = limiter.guess(1)
        pauses.append(pause)
        limiter.clock.now += int(pause)
    assert pauses == ["1", "2", "4", "8", "16", "32", "60", "60", "60"]


def test_keys_are_not_compared_during_a_pause() -> None:
    limiter = Limiter()
    limiter.guess(FREE + 2)
    compared = limiter.compared
    assert [limiter.send("right"), limiter.send("guess"), limiter.send("second")] == ["1", "1", "1"]
    assert limiter.compared == compared
    limiter.clock.now += 1
    assert limiter.send("right") == "right"


def test_valid_key_does_not_reset_the_free_guesses() -> None:
    limiter = Limiter()
    limiter.guess(FREE)
    assert limiter.send("right") == "right"
    assert limiter.guess(2) == ["wrong", "1"]


def test_accepted_key_is_not_delayed() -> None:
    limiter = Limiter()
    assert limiter.send("right") == "right"
    limiter.guess(FREE + 1)
    assert [limiter.send("right"), limiter.send("second")] == ["right", "1"]
    assert limiter.send("right", "192.0.2.2") == "right", "another address has no pause"


def test_repeated_wrong_key_counts_as_one_guess() -> None:
    limiter = Limiter()
    assert {limiter.send("outdated") for _ in range(1000)} == {"wrong"}
    assert limiter.guess(FREE - 1) == ["wrong"] * 4
    assert limiter.send("right") == "right", "so far nothing is held up"
    assert limiter.guess(2) == ["wrong", "1"]
    assert limiter.send("outdated") == "wrong", "a known wrong key gets the same answer during a pause"


def test_outdated_key_in_use_is_remembered_among_many_guesses() -> None:
    limiter = Limiter()
    limiter.send("outdated")
    for _ in range(2 * REMEMBERED_KEYS):
        limiter.clock.now += 60
        assert limiter.guess(1) == ["wrong"]
        assert limiter.send("outdated") == "wrong"


def test_address_is_forgotten_15_minutes_after_its_last_wrong_key() -> None:
    limiter = Limiter()
    limiter.guess(FREE + 1)
    limiter.clock.now += 899
    assert limiter.guess(2) == ["wrong", "2"]
    limiter.clock.now += 900
    assert limiter.guess(FREE + 2) == ["wrong"] * 6 + ["1"]


@pytest.mark.parametrize(
    ("one", "other", "are_one"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        (None, "a socket", True),
        (None, "192.0.2.1", False),
    ],
)
def test_addresses_are_counted_by_network(one: str | None, other: str, are_one: bool) -> None:
    limiter = Limiter()
    limiter.guess(FREE + 1, one)
    assert limiter.guess(1, other) == ["1" if are_one else "wrong"]


def test_oldest_address_is_forgotten_beyond_the_limit() -> None:
    limiter = Limiter()
    first, *others = (f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}" for number in range(MAX_ADDRESSES + 1))
    limiter.guess(FREE + 1, first)
    for address in others[:-1]:
        limiter.guess(1, address)
    assert limiter.guess(1, first) == ["1"]
    limiter.guess(1, others[-1])
    assert limiter.guess(1, first) == ["wrong"]


def test_missing_key_does_not_count_as_a_guess() -> None:
    limiter = Limiter()
    assert {limiter.send("") for _ in range(100)} == {"wrong"}
    assert limiter.compared == 0
    limiter.guess(FREE + 1)
    assert limiter.send("") == "wrong"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the studios started by the test; it only moves when set."""
    clock = Clock()
    monkeypatch.setattr("studio.api.access.WrongKeys", lambda is_right: WrongKeys(is_right, clock))
    return clock


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def basic(key: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"me:{key}".encode()).decode()}


def guess(client: httpx.Client, count: int, name: str = "guess") -> list[int]:
    return [client.get("/v1/takes", headers=bearer(f"{name} {number}")).status_code for number in range(count)]


def test_guesses_are_delayed_over_http_and_accepted_keys_and_sign_ins_are_not(steered: Steer, clock: Clock) -> None:
    served, _ = steered(api_keys=read_keys("right,second"))
    with served.client() as client, served.client() as browser:
        assert browser.post("/sign-in", data={"key": "right"}).status_code == 303
        assert client.get("/v1/takes", headers=bearer("right")).status_code == 200
        assert guess(client, FREE) == [401] * 5
        assert guess(client, FREE, "more") == [401, 429, 429, 429, 429]
        refused = client.get("/v1/takes", headers=bearer("second"))
        assert_envelope(refused, 429)
        assert refused.json()["error"]["code"] == "too_many_wrong_keys" and refused.headers["retry-after"] == "1"
        assert client.get("/v1/takes", headers=bearer("right")).status_code == 200
        assert client.get("/v1/takes", headers=bearer("guess 0")).status_code == 401
        assert browser.get("/v1/takes").status_code == 200
        assert browser.get("/docs", headers=basic("forgotten")).status_code == 200, "the cookie is enough"
        assert client.get("/v1/takes").status_code == 401, "a request without a key is not a guess"
        for headers in ({}, bearer("second")):
            assert client.get("/health", headers=headers).status_code == 200
        clock.now += 1
        assert client.get("/v1/takes", headers=bearer("second")).status_code == 200


def test_guesses_by_bearer_key_password_and_form_are_counted_together(steered: Steer, clock: Clock) -> None:
    served, _ = steered(api_keys=read_keys("right,second"))
    with served.client() as client:
        assert guess(client, 2) == [401, 401]
        assert [client.get("/docs", headers=basic(f"password {n}")).status_code for n in range(2)] == [401, 401]
        assert [client.post("/sign-in", data={"key": f"form {n}"}).status_code for n in range(2)] == [401, 401]
        form = client.post("/sign-in", data={"key": "right"})
        assert (form.status_code, form.headers["retry-after"]) == (429, "1")
        assert "Too many wrong keys" in form.text and 'action="/sign-in"' in form.text
        assert "set-cookie" not in form.headers
        german = client.post("/sign-in", data={"key": "right"}, headers={"Accept-Language": "de"})
        assert "zu viele falsche Schlüssel" in german.text
        plain = client.get("/docs", headers=basic("right"))
        assert (plain.status_code, plain.headers["retry-after"]) == (429, "1")
        assert plain.headers["content-type"].startswith("text/plain")
        page = client.get("/docs", headers=basic("right") | BROWSER)
        assert page.status_code == 429 and 'action="/sign-in"' in page.text
        assert client.get("/sign-in").status_code == 200
        url = served.url.replace("http", "ws") + "/v1/audio/speech/stream"
        with pytest.raises(InvalidStatus):
            websockets.sync.client.connect(url, additional_headers=bearer("right"))
        clock.now += 1
        with websockets.sync.client.connect(url, additional_headers=bearer("right")):
            assert client.post("/sign-in", data={"key": "second"}).status_code == 303


def test_guesses_are_not_counted_without_keys(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        assert set(guess(client, 20)) == {200}
