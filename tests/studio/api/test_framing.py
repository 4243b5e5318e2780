"""Sites that may frame a page of the studio: its own, configured origins and, on a Space, the hub."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from studio.settings import Settings, read_keys
from tests.studio.api.test_wrong_keys import bearer
from tests.studio.conftest import Steered
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import serve

Steer = Callable[..., Steered]
BROWSER = {"Accept": "text/html"}


def test_only_the_studio_may_frame_its_pages(tmp_path: Path, voices_folder: Path) -> None:
    home, voices = str(tmp_path), str(voices_folder)
    settings = Settings(model="test/model", home=home, voices=voices, api_keys=read_keys("right"), share_days=7)
    with serve(settings, FakeEngine.start, page=True) as served, served.client(headers=bearer("right")) as client:
        take = client.post("/v1/audio/speech", json={"input": "a"}).headers["x-request-id"]
        served.until_left(headers=bearer("right"))
        share = client.post(f"/v1/takes/{take}/shares", json={}).json()["path"]
        pages = [(path, 200) for path in ("/", "/docs", "/sign-in", share)] + [("/shared/gone", 404)]
        answers = [(client.get(path, headers=BROWSER), status) for path, status in pages]
        with served.client(headers=BROWSER) as stranger:
            answers += [(stranger.get("/"), 401), (stranger.post("/sign-in", data={"key": "wrong"}), 401)]
        for answer, status in answers:
            assert answer.status_code == status
            assert answer.headers["content-type"].startswith("text/html")
            (policy,) = answer.headers.get_list("content-security-policy")
            assert policy.split("; ")[-1] == "frame-ancestors 'self'", answer.url
        assert answers[3][0].headers["content-security-policy"].startswith("default-src 'none';")
        assert "content-security-policy" not in client.get("/v1/takes").headers
        assert "frame-ancestors" not in client.get(f"{share}/audio").headers["content-security-policy"]


@pytest.mark.parametrize(
    ("origins", "is_space", "expected"),
    [
        (("https://home.example", "http://10.0.0.2:8123"), False, "'self' https://home.example http://10.0.0.2:8123"),
        (("*",), False, "'self'"),
        ((), True, "'self' https://huggingface.co https://*.hf.space"),
        (("*", "https://home.example"), True, "'self' https://home.example https://huggingface.co https://*.hf.space"),
    ],
)
def test_page_may_be_framed_by_listed_origins_and_on_a_space_by_the_hub(
    steered: Steer, monkeypatch: pytest.MonkeyPatch, origins: tuple[str, ...], is_space: bool, expected: str
) -> None:
    if is_space:
        monkeypatch.setenv("SPACE_ID", "somebody/studio")
    served, _ = steered(cors_origins=origins)
    with served.client() as client:
        assert client.get("/docs").headers["content-security-policy"] == f"frame-ancestors {expected}"
