"""The API area: the page's request, sent to the API and shown as code for other programs."""

from __future__ import annotations

import re
from collections.abc import Callable

import httpx
import yaml
from playwright.sync_api import expect

from tests.browser.screen import Screen, go
from tests.studio.server import Served

Open = Callable[..., Screen]


def open_api(screen: Screen) -> None:
    go(screen.page, "API")


def test_api_docs_load_nothing_from_other_hosts(served: Served, open_page: Open) -> None:
    page = open_page(served).page
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    page.goto(f"{served.url}/docs")
    expect(page.locator(".opblock").first).to_be_visible()
    assert [url for url in urls if not url.startswith((served.url, "data:"))] == []


def test_request_is_shown_as_code_tested_and_stopped(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    screen.script.fill('Say "hello": now')
    open_api(screen)
    screen.page.get_by_role("button", name="YAML for Home Assistant").click()
    written = yaml.safe_load(screen.page.locator("#code pre").inner_text())
    (step,) = written["script"]["say_with_the_studio"]["sequence"]
    assert step["data"]["message"] == 'Say "hello": now'
    assert step["data"]["options"] == {"voice": "anna", "speed": 1}
    for kind in ("Open WebUI", "SillyTavern"):
        screen.page.get_by_role("tab", name=kind).click()
        expect(screen.page.locator("#code pre")).to_contain_text(f"{served.url}/v1")
    screen.page.keyboard.press("Escape")

    go(screen.page, "Studio")
    screen.cut_after(2)
    open_api(screen)
    screen.page.get_by_role("button", name="Test this").click()
    summary = screen.page.locator("#area-api [data-part=told]")
    expect(summary).to_contain_text("bytes in")
    words = summary.inner_text()
    assert "200 audio/wav" in words and re.search(r"first byte after \d+ ms", words)
    assert f"{44 + 2 * 43 * 2048:,} bytes in" in words
    take = httpx.get(f"{served.url}/v1/takes/{words.split(' · ')[-1]}").json()
    assert take["finish_reason"] == "length"

    go(screen.page, "Studio")
    screen.cut_after(150)
    open_api(screen)
    screen.page.get_by_role("button", name="Test this").click()
    expect(summary).to_contain_text("bytes …")
    screen.page.get_by_role("button", name="Stop the test").click()
    expect(summary).to_have_text("Stopped.")
    served.until(running=0)
    screen.page.evaluate("window.studio.fields.fill({ voice: 'nobody' })")
    screen.page.wait_for_function("window.studio.fields.values.voice === 'nobody'")
    screen.page.get_by_role("button", name="Test this").click()
    expect(summary).to_contain_text("400: ")
    go(screen.page, "Studio")
    screen.script.fill("")
    open_api(screen)
    screen.page.get_by_role("button", name="Test this").click()
    expect(summary).to_have_text("The script is empty.")
