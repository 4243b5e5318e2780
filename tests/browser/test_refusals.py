"""A walk through refusals: each explains the problem where it occurred, and disappears with its cause."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from engine import EngineConfig
from studio.settings import Settings
from tests.browser.screen import Screen, go
from tests.studio.clips import spoken
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served, serve
from tests.studio.sounds import tone, wav

Open = Callable[..., Screen]
Bring = Callable[[Locator, str, bytes], None]
"""Chooses a file of this name and content."""
SILENT = "The studio is not responding."


class Stopping:
    """A studio that can be stopped and started again: the same library at the same address."""

    def __init__(self, voices: Path, home: Path, port: int) -> None:
        self._settings = Settings(model="test/model", voices=str(voices), home=str(home))
        self._port = port
        self._stack = ExitStack()
        self.served = self.start()

    def start(self) -> Served:
        def engine(config: EngineConfig, _: object) -> FakeEngine:
            return FakeEngine(config)

        self.served = self._stack.enter_context(serve(self._settings, engine, page=True, port=self._port))
        self._port = int(self.served.url.rpartition(":")[2])
        return self.served

    def stop(self) -> None:
        self._stack.close()


@pytest.fixture
def studio(voices_folder: Path, tmp_path: Path, ports: tuple[int, int]) -> Iterator[Stopping]:
    stopping = Stopping(voices_folder, tmp_path / "home", ports[1])
    yield stopping
    stopping.stop()


@pytest.fixture
def bring(tmp_path: Path) -> Bring:
    def choose(zone: Locator, name: str, data: bytes) -> None:
        (tmp_path / name).write_bytes(data)
        zone.set_input_files(tmp_path / name)

    return choose


def test_unusable_files_are_refused_where_they_are_dropped(studio: Stopping, open_page: Open, bring: Bring) -> None:
    screen = open_page(studio.served).ready()
    new = go(screen.page, "New voice")
    message, forth = new.locator("[data-part=capture-said]"), new.get_by_role("button", name="Next")
    hour = wav(np.full(3000 * 60 * 66, 0.1, np.float32), 3000)  # the browser reads only its duration
    for name, data, words in (
        ("lecture.pdf", b"%PDF-1.4", "This file is not readable audio; send WAV, FLAC"),
        ("silent.wav", wav(np.zeros(5 * 44_100, np.float32)), "The clip is silent."),
        ("short.wav", wav(tone(0.6)), "The clip is 0.60 s long; at least 1 s are needed."),
        ("hour.wav", hour, "hour.wav is 1 h 6 min long; the limit is 1 h 5 min."),
        ("empty.wav", b"", "The clip is empty."),
    ):
        bring(new.locator("input[type=file]").first, name, data)
        expect(message).to_contain_text(words)
        expect(message).to_have_attribute("data-bad", "")
        expect(forth).to_be_disabled()
    bring(new.locator("input[type=file]").first, "good.wav", spoken())
    expect(forth).to_be_enabled()
    expect(message).to_be_empty()

    voices = go(screen.page, "Voices")
    message, pack = voices.locator("[data-part=said]"), voices.locator("[data-part=import]")
    whole = screen.page.request.get(f"{studio.served.url}/v1/voices/anna/export").body()
    for name, data in (("broken.fishvoice", b"PK"), ("half.fishvoice", whole[: len(whole) // 2])):
        bring(pack, name, data)
        expect(message).to_contain_text("not a readable voice pack")
    bring(pack, "anna.fishvoice", whole)
    expect(voices.get_by_label("Import as")).to_be_visible()
    expect(message).to_be_empty()
    voices.get_by_role("button", name="Cancel").click()

    longform = go(screen.page, "Projects")
    message, file = longform.locator("[data-part=said]"), longform.locator("[data-part=file]")
    for name, data, words in (
        ("broken.epub", b"PK", "not a readable EPUB"),
        ("program.exe", b"MZ", "send .txt, .md, .epub, .docx, .pdf, .srt, .vtt, .ass or .csv"),
        ("blank.txt", b" ", "has no text to speak"),
    ):
        bring(file, name, data)
        expect(message).to_contain_text(words)
    bring(file, "story.txt", b"Two words.")
    expect(longform.get_by_role("button", name="Import", exact=True)).to_be_visible()
    expect(message).to_be_empty()

    compare = go(screen.page, "Compare")
    message = compare.locator("[data-part=said]")
    compare.get_by_role("button", name="Speak all").click()
    expect(message).to_contain_text("at least two")
    compare.get_by_role("button", name="Anna").click()
    expect(message).to_be_empty()


def bring_unjudged(screen: Screen, bring: Bring) -> None:
    """Choose an own clip in the Studio while the server does not respond."""
    screen.page.get_by_role("radio", name="Your own clip").check()
    bring(screen.own_clip.locator("input[type=file]"), "good.wav", spoken())
    expect(screen.own_clip).to_contain_text(SILENT)
    screen.page.get_by_role("radio", name="Library voices").check()


def test_stopped_studio_is_reported_in_every_area_until_it_restarts(
    studio: Stopping, open_page: Open, bring: Bring
) -> None:
    screen = open_page(studio.served).ready()
    page, dock = screen.page, screen.page.locator("#dock")
    screen.script.fill("Two words. And more.")
    screen.speak.click()
    screen.until_over()
    expect(dock.locator(".word")).to_have_count(4)
    go(screen.page, "Voices").get_by_role("button", name=re.compile(r"^Anna\b")).wait_for()
    go(screen.page, "Projects")
    for name in ("Anna", "Bert"):
        go(screen.page, "Compare").get_by_role("button", name=name, exact=True).click()
    go(screen.page, "History").get_by_role("button", name="Star “Two words").wait_for()
    studio.stop()

    history = go(screen.page, "History")
    history.locator(".take-play").click()
    expect(history).to_contain_text(SILENT)
    lost = page.get_by_text("Not connected to the studio. Trying again …")
    expect(lost).to_be_visible()  # at once, without waiting for the next poll
    go(screen.page, "Studio")  # elsewhere the player is compact
    dock.get_by_role("button", name="Speak sentence again").click()
    expect(dock.locator(".read-along-said")).to_contain_text(SILENT)
    expect(go(screen.page, "Voices")).to_contain_text(SILENT)
    longform = go(screen.page, "Projects")
    longform.get_by_text("Paste a text").click()
    longform.locator("[data-part=paste]").fill("Some words.")
    longform.get_by_role("button", name="Create a project").click()
    expect(longform).to_contain_text(SILENT)
    compare = go(screen.page, "Compare")
    compare.get_by_role("button", name="Speak all").click()
    expect(compare).to_contain_text(SILENT)
    expect(go(screen.page, "Activity")).to_contain_text(SILENT)
    go(screen.page, "Settings")
    expect(lost).to_be_visible()  # and no further request needs a message there
    new = go(screen.page, "New voice")
    bring(new.locator("input[type=file]").first, "good.wav", spoken())
    new.get_by_role("button", name="Next").click()
    expect(new).to_contain_text(SILENT)
    go(screen.page, "Studio")
    screen.speak.click()
    expect(screen.card).to_contain_text("The connection was lost.")
    expect(screen.status).to_contain_text("The connection was lost.")
    expect(lost).to_be_visible()
    bring_unjudged(screen, bring)

    studio.start()
    expect(lost).to_be_hidden()
    expect(screen.own_clip).to_contain_text("out of 100")
    expect(screen.card).to_be_hidden()
    expect(screen.status).not_to_contain_text("lost")
    expect(dock.locator(".read-along-said")).to_be_empty()
    for name in ("Voices", "Projects", "History", "Activity", "Settings", "New voice"):
        expect(go(screen.page, name)).not_to_contain_text(SILENT)
    expect(new.get_by_role("button", name="Next")).to_be_enabled()
    expect(go(screen.page, "Compare").locator("[data-part=said]")).not_to_contain_text("answer")
    go(screen.page, "Studio")
    screen.speak.click()
    expect(screen.takes).to_have_count(2)


def test_changes_of_another_tab_are_shown(studio: Stopping, open_page: Open) -> None:
    screen = open_page(studio.served).ready()
    project = screen.page.request.post(f"{studio.served.url}/v1/projects", data={"input": "Two words."}).json()
    voices = go(screen.page, "Voices")
    voices.get_by_role("button", name=re.compile(r"^Bert\b")).click()
    description = voices.get_by_label("Description")
    expect(description).to_be_visible()
    with screen.page.context.new_page() as other:
        other.goto(f"{studio.served.url}/#longform/{project['id']}")
        expect(other.get_by_role("button", name="Speak all parts")).to_be_visible()
        screen.page.request.patch(f"{studio.served.url}/v1/voices/bert", data={"description": "deep"})
        description.fill("high")
        voices.get_by_role("button", name="Save", exact=True).click()
        expect(voices).to_contain_text("Someone else changed this voice in the meantime.")
        expect(description).to_have_value("high")
        screen.page.request.delete(f"{studio.served.url}/v1/projects/{project['id']}")
        expect(other.get_by_text("This project no longer exists.")).to_be_visible()
    voices.get_by_role("button", name="Save", exact=True).click()
    expect(voices).not_to_contain_text("Someone else")
    description.fill("low")
    screen.page.request.delete(f"{studio.served.url}/v1/voices/bert")
    # The button may be hidden: the list is still being read after the last save.
    voices.locator("[data-part=save]").dispatch_event("click")
    expect(voices.locator("[data-part=inspector-said]")).to_contain_text("Someone deleted this voice")
    expect(description).to_have_value("low")
    voices.locator("#inspector [data-part=close]").click()
    expect(description).to_be_hidden()
