"""The initial voice of a page whose browser has stored none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from studio.settings import Settings
from tests.browser.screen import Screen, go
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import serve
from tests.studio.voices.test_bundled import bundle

Open = Callable[..., Screen]


def test_selected_voice_is_the_default_one_not_the_first_by_name(
    tmp_path: Path, ports: tuple[int, int], open_page: Open
) -> None:
    folder = bundle(tmp_path, anna=300, bert=150, carl=120)
    (folder / "aliases.json").write_text(json.dumps({"default": ["bert"]}))
    settings = Settings(model="test/model", voices=str(folder), home=str(tmp_path / "home"))
    with serve(settings, FakeEngine.start, page=True, port=ports[0]) as served:
        screen = open_page(served).ready()
        expect(screen.page.locator("#voice input")).to_have_value("Bert")
        go(screen.page, "Projects")
        expect(screen.page.locator("#area-longform .long-voice [data-part=voice]")).to_have_value("bert")
        go(screen.page, "Compare")
        expect(screen.page.locator("#area-compare [data-part=chips] button").first).to_have_text("Bert")
        screen.reopen_with({"text": "Two words", "source": "bundled", "voice": "gone"})
        expect(screen.page.locator("#voice input")).to_have_value("Bert")


def test_new_visitor_is_not_offered_a_default_voice_deleted_since_the_start(
    tmp_path: Path, ports: tuple[int, int], open_page: Open
) -> None:
    folder = bundle(tmp_path, anna=300, bert=150)
    settings = Settings(model="test/model", voices=str(folder), home=str(tmp_path / "home"))
    with serve(settings, FakeEngine.start, page=True, port=ports[0]) as served:
        with served.client() as client:
            assert client.delete("/v1/audio/voices/anna").status_code == 200
        screen = open_page(served).ready()
        expect(screen.page.locator("#voice input")).to_have_value("Bert")
        asked = screen.asked_for_speech()
        screen.speak.click()
        screen.until_over()
        assert [body["voice"] for body in asked] == ["bert"]
