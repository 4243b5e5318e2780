"""The page for tests: methods for a user's actions, and for what the user sees and hears."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, Request, Route, expect

from tests.studio.server import Served

PATIENCE_MS = 60_000
"""Time limit after which a step counts as failed; speed is not tested here."""
expect.set_options(timeout=PATIENCE_MS)

TWO_SECONDS = re.compile(r"0:(0[2-9]|[1-5]\d)")
"""A recording's time, two seconds or more: a busy browser may show one second and then four."""


WITHIN = {"Compare": "Studio", "New voice": "Voices", "API": "Settings"}
"""The areas of views that are not areas themselves."""


def go(page: Page, view: str) -> Locator:
    """Open a view through its links, and return its region."""
    area = WITHIN.get(view, view)
    links = page.locator("#masthead")
    (links.locator("#pill") if view == "Activity" else links.get_by_role("link", name=area, exact=True)).click()
    if view != area:
        page.get_by_role("navigation", name=area, exact=True).get_by_role("link", name=view, exact=True).click()
    shown = page.get_by_role("region", name=view, exact=True)
    expect(shown).to_be_visible()
    return shown


def posted(request: Request) -> dict[str, Any]:
    """The JSON object in a request's body."""
    body = request.post_data_json
    assert isinstance(body, dict), f"{request.url} brings {body!r}"
    return body


def press_while_heard(play: Locator, key: str, seconds: float) -> float:
    """Click a play button, and press a key at the moment at which this many seconds have been played.

    Returns the position in seconds. In a busy browser, a test that waits and then presses might be too late.
    """
    return play.evaluate(
        """(play, [key, seconds]) => new Promise((resolve) => {
            const { nowPlaying } = window.studio;
            nowPlaying.addEventListener("moved", function look({ detail: { position, state } }) {
                if (state !== "playing" || position < seconds) return;
                nowPlaying.removeEventListener("moved", look);
                document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
                resolve(position);
            });
            play.click();
        })""",
        [key, seconds],
    )


def double_click(first: Locator, second: Locator) -> None:
    """Click twice at one place, the second time after another control has appeared there."""
    box, mouse = first.bounding_box(), first.page.mouse
    assert box
    mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    for count, there in enumerate((first, second), start=1):
        there.wait_for()
        mouse.down(click_count=count)
        mouse.up(click_count=count)


class Held:
    """Holds back the page's further requests for an address, so that the test can choose the order of the responses.

    With a method, only those with it.
    """

    def __init__(self, page: Page, address: str | re.Pattern[str], method: str = "") -> None:
        self._page = page
        self._address = address
        self._routes: list[Route] = []

        def hold(route: Route) -> None:
            self._routes.append(route) if method in ("", route.request.method) else route.fallback()

        page.route(address, hold)

    def wait_for(self, count: int) -> None:
        """Wait until this many requests have been made."""
        for _ in range(PATIENCE_MS // 10):
            if len(self._routes) >= count:
                return
            self._page.wait_for_timeout(10)
        raise AssertionError(f"{len(self._routes)} requests have been made, not {count}")

    def __getitem__(self, number: int) -> Route:
        """Wait for a request, counted from 0, and return it."""
        self.wait_for(number + 1)
        return self._routes[number]

    def answer_all(self) -> None:
        """Let the server answer all requests, also further ones."""
        for route in self._routes:
            route.continue_()
        self._page.unroute(self._address)

    def answer(self, number: int) -> None:
        """Let the server answer a request, and wait until the page has read the response."""
        route = self[number]
        route.continue_()
        response = route.request.response()
        assert response
        response.finished()
        self._page.evaluate("fetch('/health').then((answer) => answer.text())")  # a later response has arrived


def asks_before_leaving(page: Page) -> bool:
    """Whether the browser asks before the page is left; it stays. Fails at the deadline if it is not asked."""
    with page.expect_event("dialog") as asked:
        page.evaluate("() => void setTimeout(() => location.reload())")
    asked.value.dismiss()
    return bool(asked.value.type == "beforeunload")


def sign_in(page: Page, studio: Served, key: str) -> None:
    page.goto(studio.url)
    page.get_by_label("Key").fill(key)
    page.get_by_role("button", name="Sign in").click()


class Screen:
    """One open page of one studio."""

    def __init__(self, page: Page, studio: Served) -> None:
        self.page = page
        self.studio = studio
        self.requests: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(studio.url)
        page.wait_for_selector("body[data-studio=ready]")

    @property
    def speak(self) -> Locator:
        return self.page.get_by_role("button", name="Speak", exact=True)

    @property
    def stop(self) -> Locator:
        return self.page.get_by_role("button", name="Stop", exact=True)

    @property
    def script(self) -> Locator:
        return self.page.get_by_role("textbox", name="Script", exact=True)

    @property
    def status(self) -> Locator:
        return self.page.locator("#dock [data-part=status]")

    @property
    def takes(self) -> Locator:
        return self.page.locator("#takes li")

    @property
    def card(self) -> Locator:
        return self.page.locator("#card")

    @property
    def own_clip(self) -> Locator:
        """The Studio's card for capturing a clip, with its transcript and its assessment."""
        return self.page.locator("#own-clip")

    def bring_clip(self, file: Path) -> None:
        """Choose this file as the Studio's own clip, without waiting for its assessment."""
        self.page.get_by_role("radio", name="Your own clip").check()
        self.own_clip.get_by_label("A recording of the voice").set_input_files(file)
        expect(self.own_clip.locator("[data-part=clip-words]")).to_have_text(file.name)

    def asked_for_speech(self) -> list[dict[str, Any]]:
        """A growing list of the speech requests that the page sends from now on."""
        sent: list[dict[str, Any]] = []

        def note(request: Request) -> None:
            if request.url.endswith("/v1/audio/speech"):
                sent.append(posted(request))

        self.page.on("request", note)
        return sent

    def width(self) -> int:
        """Width of the window, in CSS pixels."""
        assert self.page.viewport_size
        return self.page.viewport_size["width"]

    def ready(self) -> Screen:
        """Wait until the page says that the engine is ready."""
        expect(self.page.locator("#pill")).to_have_attribute("data-status", "ready")
        return self

    def cut_after(self, seconds: float) -> None:
        """Limit takes to this many seconds: a random model never ends by itself."""
        self.open_sampling()
        field = self.page.get_by_label("Maximum length (seconds)")
        field.fill(str(seconds))
        field.press("Tab")
        self.page.wait_for_function("(seconds) => window.studio.fields.values.cutAfter === seconds", arg=seconds)

    def open_sampling(self) -> None:
        seed = self.page.locator("#seed input")
        if not seed.is_visible():
            self.page.get_by_role("button", name="Sampling").click()
        expect(seed).to_be_visible()

    def reopen_with(self, draft: dict[str, Any]) -> None:
        """Reload the page with this draft in the browser's storage, and discard any pending draft of the page."""
        keep = "(draft) => { sessionStorage['voice-studio-/:1'] = draft; Storage.prototype.setItem = () => {}; }"
        self.page.evaluate(keep, json.dumps(draft))
        self.page.reload()
        self.page.wait_for_selector("body[data-studio=ready]")

    def heard(self) -> dict[str, int]:
        """The worklet's counts for the take in the player: rendered samples and underruns."""
        return self.page.evaluate("() => window.studio.heard")

    def figure(self, name: str) -> str:
        return self.page.locator(f"#dock [data-figure={name.lower()}] dd").inner_text()

    def until_over(self) -> None:
        """Wait until the take in the player has been played to its end."""
        expect(self.page.locator("#dock")).to_have_attribute("data-state", "over")
        expect(self.card).to_be_hidden()  # it would show why playback ended early
