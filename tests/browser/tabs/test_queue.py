"""Activity: long work and requests, the page's and the API's together, with their outcomes; cancelling one."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
from playwright.sync_api import expect

from tests.browser.screen import Screen, go
from tests.browser.test_looks import serious_violations
from tests.studio.server import Served

Open = Callable[..., Screen]
Steer = Callable[..., Served]


def test_api_request_is_listed_on_the_page_and_can_be_cancelled(steered: Steer, open_page: Open) -> None:
    studio = steered()
    engine = studio.app.state.studio.speech.host.engine()
    engine.first_frame_gate.clear()
    screen = open_page(studio).ready()
    go(screen.page, "Activity")
    area = screen.page.get_by_role("region", name="Activity")
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
    items = [{"input": text} for text in ("One.", "Two.", "Three.")]
    book = {"items": items, "title": "Counting", "start": True}
    assert httpx.post(f"{studio.url}/v1/projects", json=book, timeout=60).status_code == 201
    job = area.locator(".jobs li")
    expect(job).to_contain_text("Speaking “Counting”")
    expect(job).to_contain_text("3 parts in the queue")
    assert serious_violations(screen) == []
    cancel = area.get_by_role("button", name="Cancel: Speaking “Counting”")
    screen.page.route("**/v1/jobs/*", lambda route: route.fulfill(status=503, json={}), times=1)
    with screen.page.expect_response(lambda response: response.status == 503):
        cancel.click()
    cancel.click()  # enabled again, as the first one was refused
    expect(job).to_have_count(0)
    studio.until(running=0)


def test_own_takes_are_listed_and_a_failed_list_is_retried(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    screen.cut_after(2)
    screen.speak.click()
    screen.until_over()
    seed = screen.figure("Seed")
    go(screen.page, "Activity")
    row = screen.page.get_by_role("region", name="Activity").locator("tbody tr", has_text=seed)
    expect(row.locator("td").nth(1)).to_contain_text("Hello")
    expect(row.locator("td").nth(2)).to_have_text("Cut off")
    expect(row.locator("td").nth(3)).to_have_text("Anna")
    expect(row.locator("td").nth(4)).to_have_text("2.0 s")
    expect(row.locator("td").nth(5)).to_have_text(screen.figure("Server"))
    go(screen.page, "Studio")
    expect(row).to_be_hidden()

    go(screen.page, "Activity")
    area = screen.page.get_by_role("region", name="Activity")
    expect(area).to_contain_text("slots busy")
    screen.page.route("**/v1/queue", lambda route: route.abort())
    expect(area).to_contain_text("The studio is not responding.")
    screen.page.unroute("**/v1/queue")
    expect(area).to_contain_text("slots busy")


def test_take_stopped_on_the_page_counts_as_stopped(steered: Steer, open_page: Open) -> None:
    studio = steered()
    engine = studio.app.state.studio.speech.host.engine()
    screen = open_page(studio).ready()
    area = screen.page.get_by_role("region", name="Activity")
    for gate in (engine.later_frames_gate, engine.first_frame_gate):
        gate.clear()
        go(screen.page, "Studio")
        screen.script.fill("Two words")
        screen.speak.click()
        if gate is engine.later_frames_gate:
            screen.page.wait_for_function("window.studio.current.samples > 0")
        go(screen.page, "Activity")
        area.get_by_role("button", name="Stop").first.click()
        # "Stopped after 0:00", or "Take 1: stopped by you" if all received audio has been heard by then.
        expect(screen.status).to_contain_text(re.compile("stopped", re.IGNORECASE))
        expect(screen.card).to_be_hidden()
        gate.set()
    expect(screen.page.locator("body")).not_to_have_attribute("data-speaking", "yes")
    go(screen.page, "Studio")
    expect(screen.takes).to_have_count(1)
    expect(screen.takes).to_contain_text("Stopped by you")
