"""The page on other hosts: behind a key, and under a path of a reverse proxy."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlparse

import httpx
import pytest
from fastapi import FastAPI
from playwright.sync_api import Locator, Page, expect
from starlette.types import Receive, Scope, Send

from launch import startup as studio_app
from studio import services
from studio.errors import LibraryFull
from studio.library import Library
from studio.settings import Settings, read_keys
from tests.browser.screen import Screen, go
from tests.browser.test_looks import serious_violations
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served, serve

Open = Callable[..., Screen]
PREFIX = "/voices/studio"


class StrippingProxy:
    """The app behind a reverse proxy, which removes the prefix from every path."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self.state = app.state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            assert scope["path"].startswith(PREFIX), f"the page asked for {scope['path']} outside of its path"
            path = scope["path"].removeprefix(PREFIX) or "/"
            scope = {**scope, "path": path, "raw_path": path.encode()}
        await self._app(scope, receive, send)


def behind_proxy(*args: object, **options: object) -> StrippingProxy:
    """Like `create_app`."""
    return StrippingProxy(studio_app.create_app(*args, **options))  # type: ignore[arg-type]


def test_keys_have_names_limits_and_rights_and_a_lost_key_is_requested_again(
    voices_folder: Path, new_page: Callable[[], Page], tmp_path: Path
) -> None:
    settings = Settings(
        model="test/model",
        voices=str(voices_folder),
        home=str(tmp_path),
        api_keys=read_keys("ann=first,bob=second"),
        max_per_caller=2,
    )
    with serve(settings, FakeEngine.start, page=True) as studio:
        page = new_page()
        page.goto(studio.url)
        page.get_by_label("Key").fill("second")
        page.get_by_role("button", name="Sign in").click()
        screen = Screen(page, studio).ready()
        signed_in = page.locator("#signed-in")
        expect(signed_in).to_have_text("bob")
        signed_in.click()
        expect(page.get_by_role("menuitem", name="Sign out")).to_be_focused()
        page.keyboard.press("Escape")
        statuses: list[int] = []
        page.on("response", lambda answer: statuses.append(answer.status) if "/v1/" in answer.url else None)
        page.get_by_role("button", name="4 takes").click()
        expect(screen.takes).to_have_count(4)
        expect(screen.speak).to_be_visible()
        assert 429 not in statuses
        go(page, "Settings")
        area = page.locator("#area-settings")
        expect(area.locator("[data-part=facts]")).to_contain_text(
            "Library2 voicesVersions"
        )  # no sizes, which tell when others work
        expect(area.get_by_text("All settings")).to_be_hidden()
        expect(area).not_to_contain_text(str(tmp_path))

        go(page, "Studio")
        with page.expect_response(
            "**/v1/audio/speech/reading"
        ):  # or its refusal would open the dialog before the click
            screen.script.fill("What I wrote")
        page.context.clear_cookies()  # as if the keys had changed
        screen.speak.click()
        dialog = page.get_by_role("dialog", name="Sign in again")
        expect(dialog).to_be_visible()
        assert serious_violations(screen) == []
        dialog.get_by_label("Key").fill("third")
        dialog.get_by_role("button", name="Sign in").click()
        expect(dialog).to_contain_text("does not know that key")
        dialog.get_by_label("Key").fill("second")
        dialog.get_by_role("button", name="Sign in").click()
        expect(dialog).to_be_hidden()
        expect(screen.card).to_be_hidden()
        expect(screen.script).to_have_value("What I wrote")
        expect(screen.takes).to_have_count(5)  # the refused click is carried out

        continue_as_another_person(screen, dialog)
        go(page, "Settings")
        expect(area).to_contain_text(str(tmp_path))
        expect(area.get_by_text("All settings")).to_be_visible()


def continue_as_another_person(screen: Screen, dialog: Locator) -> None:
    screen.page.context.clear_cookies()
    screen.speak.click()
    dialog.get_by_label("Key").fill("first")
    dialog.get_by_role("button", name="Sign in").click()
    expect(screen.page.locator("#signed-in")).to_have_text("ann")
    screen.ready()
    expect(screen.script).not_to_have_value("What I wrote")
    expect(screen.takes).to_have_count(0)


def test_page_speaks_after_sign_in(voices_folder: Path, new_page: Callable[[], Page], tmp_path: Path) -> None:
    settings = Settings(model="test/model", voices=str(voices_folder), home=str(tmp_path), api_keys=read_keys("secret"))
    with serve(settings, FakeEngine.start, page=True) as studio:
        assert httpx.get(studio.url).status_code == 401
        page = new_page()
        page.goto(studio.url)
        page.get_by_label("Key").fill("secre")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("does not know that key")
        page.get_by_label("Key").fill("secret")
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("#pill")).to_have_attribute("data-status", "ready")
        screen = Screen(page, studio)
        screen.script.fill("Two words")
        screen.speak.click()
        screen.until_over()
        assert screen.heard()["rendered"] == 2 * 6 * 2048
        cookies = page.context.cookies()
        assert [
            (cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies if "studio_session" in cookie["name"]
        ] == [(True, "Lax")]
        program = keyed_program(screen)
        (tmp_path / "program.py").write_text(program.replace("YOUR_KEY", "secret"), "utf-8")
        subprocess.run([sys.executable, "program.py"], cwd=tmp_path, check=True, timeout=60, capture_output=True)
        go(page, "Settings")
        other_tab = page.context.new_page()
        other_tab.goto(studio.url)
        expect(other_tab.get_by_role("textbox", name="Script", exact=True)).to_have_value("Two words")
        page.get_by_role("button", name="Sign out").click()
        for tab in (page, other_tab):  # the next person at this browser finds nothing of the one before
            expect(tab.get_by_label("Key", exact=True)).to_be_visible()
            left = tab.evaluate("Object.keys({ ...localStorage, ...sessionStorage })")
            assert set(left) <= {"voice-studio-/:left"}


def keyed_program(screen: Screen) -> str:
    """The gradio_client program for the current speech, as shown by a studio with keys."""
    go(screen.page, "API")
    screen.page.get_by_role("button", name="Show as code").click()
    screen.page.get_by_role("tab", name="gradio_client").click()
    program = screen.page.locator("#code pre").inner_text()
    screen.page.keyboard.press("Escape")
    return program


@pytest.mark.parametrize("slash", ["/", ""], ids=["with its slash", "without"])
def test_page_speaks_under_a_proxy_path(
    voices_folder: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, slash: str
) -> None:
    monkeypatch.setattr("tests.studio.server.create_app", behind_proxy)
    settings = Settings(model="test/model", voices=str(voices_folder), home=str(tmp_path), root_path=PREFIX)
    with serve(settings, FakeEngine.start, page=True) as studio:
        screen = open_page(Served(f"{studio.url}{PREFIX}{slash}#compare", studio.app)).ready()
        assert screen.page.url == f"{studio.url}{PREFIX}/#studio/compare"
        go(screen.page, "Studio")
        screen.script.fill("Two words")
        screen.speak.click()
        screen.until_over()
        assert screen.heard()["rendered"] == 2 * 6 * 2048
        outside = [url for url in screen.requests if not urlparse(url).path.startswith(PREFIX)]
        if slash:  # without it, a few requests miss the path before the page redirects
            addresses = {url for url in outside if urlparse(url).scheme.startswith("http")}
            assert addresses <= {f"{studio.url}/manifest.json"}
        expect(screen.takes).to_have_count(1)
        kept = screen.page.evaluate("Object.keys({ ...localStorage, ...sessionStorage })")
        assert kept and all(name.startswith(f"voice-studio-{PREFIX}/:") for name in kept), (
            "not for other paths' studios"
        )


def test_space_without_a_bucket_warns_that_voices_are_temporary(
    voices_folder: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPACE_ID", "me/studio")
    for bucket, shown in ((None, 1), (str(tmp_path / "bucket"), 0)):
        settings = Settings(
            model="test/model", voices=str(voices_folder), home=str(tmp_path / f"{shown}"), backup_dir=bucket
        )
        with serve(settings, FakeEngine.start, page=True) as studio:
            note = open_page(studio).page.get_by_role("note").filter(has_text="temporary")
            expect(note).to_have_count(shown)


def test_full_disk_is_said_on_the_page(
    voices_folder: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    settings = Settings(model="test/model", voices=str(voices_folder), home=str(tmp_path / "home"))
    with serve(settings, FakeEngine.start, page=True) as studio:
        screen = open_page(studio).ready()
        unsaved = screen.page.get_by_text("The latest takes are not saved yet: the disk of the library is full")
        expect(unsaved).to_be_hidden()
        with monkeypatch.context() as full, studio.client() as client:
            full.setattr("studio.library.audio_files.os.fsync", refuse)
            client.post("/v1/audio/speech", json={"input": "Two words"})
            screen.page.reload()
            expect(unsaved).to_be_visible()
    imported = services.import_bundled

    def import_elsewhere(library: Library, folder: Path) -> None:
        if library.home == tmp_path / "new":
            raise LibraryFull("the library has no room left on its disk")
        imported(library, folder)

    monkeypatch.setattr(services, "import_bundled", import_elsewhere)
    with serve(settings.model_copy(update={"home": str(tmp_path / "new")}), FakeEngine.start, page=True) as studio:
        screen = open_page(studio).ready()
        note = screen.page.get_by_role("note").filter(has_text="The disk of this studio's library is full.")
        expect(note).to_contain_text("Free 50 MB on the disk of STUDIO_HOME, then restart the studio.")
        screen.script.fill("Two words")
        screen.speak.click()
        screen.until_over()
        assert screen.heard()["rendered"] == 2 * 6 * 2048


NO_STORAGE = """for (const name of ["localStorage", "sessionStorage"]) {
    Object.defineProperty(window, name, { get() { throw new DOMException("denied", "SecurityError"); } });
}"""
"""Like a browser that blocks storage for other sites' frames, or for all sites."""


def test_page_speaks_without_browser_storage(steered: Callable[..., Served], new_page: Callable[[], Page]) -> None:
    page = new_page()
    page.add_init_script(NO_STORAGE)
    screen = Screen(page, steered()).ready()
    screen.script.fill("Two words")
    screen.speak.click()
    screen.until_over()
    assert screen.heard()["rendered"] == 2 * 6 * 2048
    for area in ("Projects", "Settings"):
        go(page, area)
    page.get_by_label("Theme").select_option("Dark")
    expect(page.locator("body.dark")).to_have_count(1)
