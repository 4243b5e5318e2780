"""The list of requests: the page's and the API's together, what became of them, and ending one from here."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
from playwright.sync_api import expect

from tests.browser.screen import Screen
from tests.studio.server import Served

Open = Callable[..., Screen]
Steer = Callable[..., Served]


def test_a_request_of_the_api_is_seen_and_ended_on_the_page(steered: Steer, open_page: Open) -> None:
    studio = steered()
    engine = studio.app.state.studio.speech.host.engine()
    engine.first_frame_gate.clear()
    screen = open_page(studio).ready()
    screen.page.get_by_role("tab", name="Queue").click()
    area = screen.page.get_by_role("tabpanel", name="Queue")
    expect(area).to_contain_text("Nothing yet")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(
            httpx.post, f"{studio.url}/v1/audio/speech", json={"input": "Two words", "seed": 42}, timeout=60
        )
        expect(area.locator("tbody tr")).to_contain_text("42")
        expect(area).to_contain_text("1 of 2 slots busy, 0 waiting.")
        area.get_by_role("button", name="Stop").click()
        assert answer.result().status_code >= 400
    expect(area.locator("tbody tr")).to_contain_text("Stopped")
    studio.until(running=0)


def test_the_pages_own_takes_are_listed_and_a_list_that_cannot_be_asked_for_comes_back(
    served: Served, open_page: Open
) -> None:
    screen = open_page(served).ready()
    screen.cut_after(2)
    screen.speak.click()
    screen.until_over()
    seed = screen.figure("Seed")
    screen.page.get_by_role("tab", name="Queue").click()
    row = screen.page.get_by_role("tabpanel", name="Queue").locator("tbody tr", has_text=seed)
    expect(row.locator("td").first).to_have_text("Cut")
    expect(row.locator("td").nth(2)).to_have_text("2.0 s")
    expect(row.locator("td").nth(3)).to_have_text(screen.figure("Server"))
    screen.page.get_by_role("tab", name="Studio").click()
    expect(row).to_be_hidden()

    screen.page.get_by_role("tab", name="Queue").click()
    area = screen.page.get_by_role("tabpanel", name="Queue")
    expect(area).to_contain_text("slots busy")
    screen.page.route("**/v1/queue", lambda route: route.abort())
    expect(area).to_contain_text("The studio does not answer.")
    screen.page.unroute("**/v1/queue")
    expect(area).to_contain_text("slots busy")
