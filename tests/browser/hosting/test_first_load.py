"""Requests for opening the page: few files of the studio, and none that the browser has cached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlparse

import httpx
import pytest
from fastapi import FastAPI
from playwright.sync_api import BrowserContext, Response
from starlette.types import Receive, Scope, Send

from launch import startup as studio_app
from studio.settings import Settings
from tests.browser.screen import Screen
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import serve

Open = Callable[..., Screen]
MOST, MOST_IN_ALL = 12, 40
"""Limits for the page's files, and for all requests."""
MOST_SHIFT = 0.03
"""Layout shift of a load, as browsers measure it; 0.1 is considered good."""
SHIFT = """() => new Promise((told) => {
    let sum = 0;
    const add = (list) => list.getEntries().forEach(({ value }) => (sum += value));
    new PerformanceObserver(add).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => told(sum), 200); // for what is told of the time before
})"""

COUNT_FRAMES = """(() => {
    const ask = window.requestAnimationFrame;
    window.framesAsked = 0;
    window.requestAnimationFrame = (step) => {
        window.framesAsked += 1;
        return ask.call(window, step);
    };
})()"""
STANDS_STILL = """() => new Promise((told) => {
    let [asked, looks] = [-1, 0];
    const look = () => {
        if (window.framesAsked === asked || looks === 80) return told(looks < 80);
        [asked, looks] = [window.framesAsked, looks + 1];
        setTimeout(look, 250);
    };
    look();
})"""
"""Whether the page eventually stops requesting frames: while nothing happens there is nothing to draw."""


class Counted:
    """The app, which records the requested paths: a browser does not request files that it has cached."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self.state = app.state
        self.paths: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.paths.append(scope["path"])
        await self._app(scope, receive, send)

    @property
    def ours(self) -> list[str]:
        return [path for path in self.paths if path.startswith("/page")]


def opened(context: BrowserContext, url: str) -> list[Response]:
    """Open the page in a new tab, wait until it can be used, and return all responses."""
    page = context.new_page()
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))
    page.add_init_script(COUNT_FRAMES)
    page.goto(url)
    page.wait_for_selector("body[data-studio=ready]")
    page.wait_for_load_state("networkidle")
    assert page.evaluate(SHIFT) <= MOST_SHIFT
    assert page.evaluate(STANDS_STILL)
    page.close()
    return answers


def test_first_load_takes_few_requests_and_none_for_cached_files(
    voices_folder: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    apps: list[Counted] = []

    def counted(*args: object, **options: object) -> Counted:
        apps.append(Counted(studio_app.create_app(*args, **options)))  # type: ignore[arg-type]
        return apps[-1]

    monkeypatch.setattr("tests.studio.server.create_app", counted)
    settings = Settings(model="test/model", voices=str(voices_folder), home=str(tmp_path))
    with serve(settings, FakeEngine.start, page=True) as studio:
        context = open_page(studio).ready().page.context
        first_page = context.pages[-1]
        first_page.wait_for_load_state("networkidle")
        assert first_page.evaluate(SHIFT) <= MOST_SHIFT
        assert first_page.evaluate("document.activeElement.matches('#script textarea')")
        assert first_page.get_by_text("Home", exact=True).count() == 0  # no navigation bar of Gradio's
        first, everything = apps[0].ours, len(apps[0].paths)
        print(f"first load: {len(first)} files of the page {first}, {everything} requests in all")
        assert 0 < len(first) <= MOST and len(first) == len(set(first))
        assert everything <= MOST_IN_ALL

        apps[0].paths.clear()
        answers = opened(context, studio.url)
        print(f"warm: {len(apps[0].ours)} files of the page, {len(apps[0].paths)} requests in all")
        assert apps[0].ours == []

        files = [answer for answer in answers if urlparse(answer.url).path.startswith("/page/")]
        assert files and all("immutable" in file.headers["cache-control"] for file in files)
        digests = {urlparse(file.url).path.split("/")[2] for file in files}
        assert len(digests) == 1
        assert httpx.get(f"{studio.url}/page/{'0' * 16}/page.js").status_code == 404
