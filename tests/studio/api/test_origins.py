"""Origins that may use the studio, and its accepted host names: routes, forms, Gradio's endpoints, sockets."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from studio.errors import SettingsError
from studio.settings import Settings, read_keys
from tests.studio.answers import assert_envelope
from tests.studio.api.test_access import basic
from tests.studio.conftest import Steered
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served, serve
from tests.studio.sounds import tone, wav

SPEECH = "/v1/audio/speech"
Steer = Callable[..., Steered]
KEYS = read_keys("secret")
EVIL = "https://evil.example"
GOOD = "https://good.example"


@pytest.fixture(scope="module")
def with_page(voices_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = str(tmp_path_factory.mktemp("origins"))
    settings = Settings(model="test/model", voices=str(voices_folder), home=home)
    with serve(settings, FakeEngine.start, page=True) as served:
        yield served


@pytest.mark.parametrize(
    ("site", "origin", "status"),
    [
        ("cross-site", EVIL, 403),
        ("cross-site", None, 403),
        ("same-site", "http://127.0.0.1:3000", 403),  # another program on this machine is another origin
        ("cross-site", GOOD, 200),
        ("same-origin", "https://proxied.example", 200),
        ("none", None, 200),
        (None, EVIL, 403),  # at an http: address other than localhost, browsers send only the origin
        (None, "null", 403),
        (None, GOOD, 200),
        (None, None, 200),  # not a browser
    ],
)
def test_a_page_of_another_origin_cannot_change_anything(
    steered: Steer, site: str | None, origin: str | None, status: int
) -> None:
    served, engine = steered(cors_origins=(GOOD,))
    sent = {"Sec-Fetch-Site": site, "Origin": origin}
    with served.client() as client:
        answer = client.post(SPEECH, json={"input": "a"}, headers={name: text for name, text in sent.items() if text})
        assert answer.status_code == status
        assert client.get("/v1/models", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200
    if status == 403:
        assert_envelope(answer, 403)
        assert answer.json()["error"]["code"] == "origin_not_allowed"
        assert not engine.utterances


def test_a_page_of_another_origin_cannot_use_a_form_or_gradio(with_page: Served) -> None:
    clip = {"audio_sample": ("clip.wav", wav(tone(2)))}
    with with_page.client(headers={"Origin": EVIL}) as client:
        assert client.post("/v1/audio/voices", data={"name": "forged", "ref_text": "hi"}, files=clip).status_code == 403
        assert client.post("/v1/projects", data={"start": "true"}, files={"file": ("a.txt", b"A.")}).status_code == 403
        assert client.post("/v1/projects/proj_none/pause").status_code == 403
        assert client.post("/gradio_api/upload", files={"files": ("a.txt", b"a")}).status_code == 403
        assert client.post("/gradio_api/call/synthesize", json={"data": ["a"]}).status_code == 403
    with with_page.client(headers={"Origin": with_page.url}) as client:
        assert client.post("/gradio_api/upload", files={"files": ("a.txt", b"a")}).status_code == 200


@pytest.mark.parametrize(
    ("origin", "headers"),
    [
        ("https://studio.example", {"Host": "studio.example"}),
        ("https://studio.example", {"Host": "studio.example:443"}),
        ("http://Studio.Example", {"Host": "studio.example:80"}),
        ("http://studio.example:8080", {"Host": "studio.example:8080"}),
        ("https://studio.example", {"Host": "localhost", "X-Forwarded-Host": "studio.example, inner"}),
    ],
)
def test_studios_own_page_is_recognised_behind_a_proxy(steered: Steer, origin: str, headers: dict[str, str]) -> None:
    served, _ = steered(allowed_hosts=("studio.example",))
    with served.client() as client:
        answer = client.post(SPEECH, json={"input": "a"}, headers=headers | {"Origin": origin})
        assert answer.status_code == 200
        other = client.post(SPEECH, json={"input": "a"}, headers=headers | {"Origin": origin + ".evil.example"})
        assert_envelope(other, 403)


def test_star_origin_allows_pages_with_a_key_but_not_a_sign_in(steered: Steer) -> None:
    served, _ = steered(cors_origins=("*",), api_keys=KEYS)
    foreign = {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"}
    with served.client() as client:
        assert client.post("/sign-in", data={"key": "secret"}, headers=foreign).status_code == 401
        assert client.post("/sign-in", data={"key": "secret"}).status_code == 303
        assert client.post(SPEECH, json={"input": "a"}).status_code == 200
        for headers in (foreign, {"Origin": EVIL}, {"Origin": EVIL, "Sec-Fetch-Site": "same-site"}):
            assert_envelope(client.post(SPEECH, json={"input": "a"}, headers=headers), 401)
            assert_envelope(client.get("/v1/takes", headers=headers), 401)
            remembered = headers | {"Authorization": basic("secret")}
            assert_envelope(client.post(SPEECH, json={"input": "a"}, headers=remembered), 401)
            bearer = headers | {"Authorization": "Bearer secret"}
            assert client.post(SPEECH, json={"input": "a"}, headers=bearer).status_code == 200
        assert client.post("/sign-out", headers=foreign).status_code == 401
        assert client.get("/v1/takes").status_code == 200, "a stranger's page has signed somebody out"
        link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
        assert client.get("/v1/takes", headers=link).status_code == 200


def test_star_origin_without_keys_allows_every_page(steered: Steer) -> None:
    served, _ = steered(cors_origins=("*",))
    with served.client() as client:
        assert client.post(SPEECH, json={"input": "a"}, headers={"Origin": EVIL}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example:7860", "evil.example", "127.0.0.1.evil.example", "[::2]:7860", "x"])
def test_loopback_studio_without_keys_answers_only_to_its_own_names(with_page: Served, host: str) -> None:
    rebound = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
    with with_page.client(headers=rebound) as client:
        for answer in (
            client.get("/v1/takes"),
            client.get("/v1/settings"),
            client.delete("/v1/audio/voices/anna"),
            client.post(SPEECH, json={"input": "a"}),
        ):
            assert_envelope(answer, 403)
            assert answer.json()["error"]["code"] == "host_not_allowed"
            assert "ALLOWED_HOSTS" in answer.json()["error"]["message"]
        page = client.get("/", headers={"Accept": "text/html"})
        assert page.status_code == 403 and "ALLOWED_HOSTS" in page.text
        assert client.get("/gradio_api/info").status_code == 403
    url, port = f"ws://{host}/v1/audio/speech/stream", int(with_page.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as way, pytest.raises(InvalidStatus) as refused:
        connect(url, sock=way, proxy=None, origin=Origin(f"http://{host}"))
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:7860", "localhost.", "127.0.0.1:7860", "[::1]:7860", "[::1]"])
def test_loopback_names_are_accepted_as_own_names(with_page: Served, host: str) -> None:
    with with_page.client(headers={"Host": host}) as client:
        assert client.get("/v1/models").status_code == 200
        assert client.post(SPEECH, json={"input": "a"}, headers={"Origin": f"http://{host}"}).status_code == 200


@pytest.mark.parametrize(
    ("settings", "answers"),
    [
        ({"host": "127.0.0.2"}, {"127.0.0.2": 200, "localhost": 200, "studio.lan": 403}),
        ({"host": "::1"}, {"[::1]:80": 200, "studio.lan": 403}),
        ({"allowed_hosts": ("studio.lan", "fd00::5")}, {"Studio.LAN:80": 200, "[fd00::5]": 200, "b.studio.lan": 403}),
        ({"allowed_hosts": ("*",)}, {"anything.example": 200}),
        ({"api_keys": KEYS}, {"anything.example": 200}),
        ({"host": "0.0.0.0"}, {"anything.example": 200}),
        (
            {"host": "0.0.0.0", "allowed_hosts": ("studio.lan",)},
            {"studio.lan": 200, "localhost": 200, "a.example": 403},
        ),
        ({"api_keys": KEYS, "allowed_hosts": ("studio.lan",)}, {"studio.lan": 200, "a.example": 403}),
    ],
)
def test_accepted_host_names_depend_on_the_settings(
    steered: Steer, settings: dict[str, object], answers: dict[str, int]
) -> None:
    served, _ = steered(**settings)
    with served.client(headers={"Authorization": "Bearer secret"}) as client:
        got = {host: client.get("/v1/models", headers={"Host": host}).status_code for host in answers}
    assert got == answers


def test_allowed_hosts_are_names_and_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDIO_ALLOWED_HOSTS", "Studio.LAN, [fd00::5],10.0.0.7,*")
    assert Settings.load().allowed_hosts == ("studio.lan", "fd00::5", "10.0.0.7", "*")
    for wrong in ("http://studio.lan", "studio.lan:7860", "*.lan", "a b"):
        monkeypatch.setenv("STUDIO_ALLOWED_HOSTS", wrong)
        with pytest.raises(SettingsError, match="STUDIO_ALLOWED_HOSTS"):
            Settings.load()
