"""The log of a studio shows the requests, but nothing that lets its reader repeat them."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Literal

import httpx
import pytest
import websockets.sync.client

from fleet.frontends.relay import Relay
from studio.server import redacted
from studio.settings import Settings, read_keys
from tests.fleet.frontends.several import several
from tests.fleet.frontends.test_relay import SOUND, own, serving
from tests.studio.fake_engine import FakeEngine

WORD = "an-0pen_word-of-nobody"
KEYS = read_keys(WORD)


def settings_of(home: Path, level: Literal["info", "debug"]) -> Settings:
    return Settings(home=str(home), model="test/model", log_level=level, api_keys=KEYS, share_days=7)


PATHS = [
    f"/shared/{WORD}",
    f"/shared/{WORD}/audio",
    f"/v1/takes/req_1/shares/{WORD}",
    f"/v1/projects/proj_1/feeds/{WORD}",
    f"/shared/{WORD}/feed.xml",
    f"/gradio_api/file=/tmp/gradio/{WORD}/take.wav",
    f"/gradio_api/file/{WORD}/take.wav",
    f"/gradio_api/call/synthesize/{WORD}",
    f"/gradio_api/call/v2/synthesize/{WORD}",
    f"/gradio_api/heartbeat/{WORD}",
    f"/gradio_api/stream/{WORD}/0/3/playlist.m3u8",
    f"/gradio_api/queue/data?session_hash={WORD}",
    f"/gradio_api/queue/data?a=1&session%5Fhash={WORD}&b=2",
    f"/gradio_api/upload_progress?upload_id={WORD}",
    f"/v1/takes?api_key={WORD}",
    f"/%73hared/{WORD}",
]


def test_the_access_log_has_no_tokens(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with (
        several(settings_of(tmp_path, "info"), lambda: FakeEngine.start, count=0) as studio,
        httpx.Client(base_url=studio.url) as client,
    ):
        for path in PATHS:
            client.get(path)
        client.get("/v1/takes", params={"q": "words", "limit": 3}, headers={"Authorization": f"Bearer {WORD}"})
        client.post("/sign-in", data={"key": WORD})
    output = "".join(capfd.readouterr())
    logged = [line for line in output.splitlines() if " HTTP/1.1" in line]
    assert len(logged) >= len(PATHS) + 2
    assert WORD not in output and KEYS[0].digest.hex() not in output
    for shown in ("/shared/[redacted]", "/v1/takes/req_1/shares/[redacted]", "/call/synthesize/[redacted]"):
        assert any(shown in line for line in logged), shown
    assert any("/v1/takes?q=words&limit=3" in line for line in logged), "the rest of a request is shown"
    assert any("a=1&session%5Fhash=[redacted]&b=2" in line for line in logged)


def test_keys_and_cookies_are_not_logged_at_debug_level(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with several(settings_of(tmp_path, "debug"), lambda: FakeEngine.start, count=0) as studio:
        url = studio.url.replace("http", "ws") + f"/v1/audio/speech/stream?token={WORD}"
        headers = {"Authorization": f"Bearer {WORD}", "Cookie": f"studio_session={WORD}"}
        with websockets.sync.client.connect(url, additional_headers=headers):
            pass
    output = "".join(capfd.readouterr())
    assert "< authorization: [redacted]" in output.lower() and "< cookie: [redacted]" in output.lower()
    assert WORD not in output


async def test_failed_relay_is_logged_without_the_token(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as public:
        public.bind(("127.0.0.1", 0))
        relay = Relay(own, lambda scope: scope["path"] == SOUND, str(tmp_path / "gone"))
        address = f"http://127.0.0.1:{public.getsockname()[1]}"
        async with serving(relay, public), httpx.AsyncClient(base_url=address) as client:
            assert (await client.get(f"/shared/{WORD}")).status_code == 503
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("fleet")]
    assert any("GET /shared/[redacted] was not passed on" in line for line in lines)
    assert not [line for line in lines if WORD in line]


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("/v1/takes/req_1", "/v1/takes/req_1"),
        ("/v1/takes/req_1/shares", "/v1/takes/req_1/shares"),
        ("/voices/studio/shared/abc", "/voices/studio/shared/[redacted]"),
        ("/gradio_api/file%3D/tmp/a b", "/gradio_api/file%3D[redacted] b"),
        ("https://store.example/clip.wav?X-Signature=abc&x=1", "https://store.example/clip.wav?[redacted]"),
        ("/docs?key=&monkey=1", "/docs?key=[redacted]&monkey=1"),
    ],
)
def test_addresses_are_redacted(address: str, shown: str) -> None:
    assert redacted(address) == shown
