"""Addresses of a project, a voice and a take: opened, titled, left by Back, and a message if it no longer exists."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import httpx
from playwright.sync_api import Locator, Page, expect

from studio.settings import Settings
from tests.browser.screen import Screen, go
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import serve

Open = Callable[..., Screen]


def test_projects_voices_and_takes_have_addresses(voices_folder: Path, tmp_path: Path, open_page: Open) -> None:
    settings = Settings(model="test/model", voices=str(voices_folder), home=str(tmp_path), share_days=30)
    with serve(settings, FakeEngine.start, page=True) as studio, studio.client() as client:
        project = client.post("/v1/projects", json={"input": "One.", "title": "A book"}).json()
        voice = client.get("/v1/voices").json()["data"][0]
        for text in ("First words", "Other words"):
            client.post("/v1/audio/speech", json={"input": text, "response_format": "wav"}).raise_for_status()
        take = client.get("/v1/takes", params={"q": "First"}).json()["data"][0]["id"]
        screen = open_page(studio).ready()
        page = screen.page

        page.goto(f"{studio.url}/#longform/{project['id']}")  # an earlier address
        expect(page).to_have_url(f"{studio.url}/#projects/{project['id']}")
        expect(page).to_have_title(f"{project['title']} · Projects · Voice Studio")
        page.get_by_role("button", name="All projects").click()
        expect(page).to_have_title("Projects · Voice Studio")
        expect(page).to_have_url(f"{studio.url}/#projects")
        page.get_by_role("list", name="Projects").get_by_role("button").click()
        expect(page).to_have_title(f"{project['title']} · Projects · Voice Studio")
        page.go_back()
        expect(page.get_by_role("list", name="Projects")).to_be_visible()
        page.go_forward()
        expect(page.get_by_label("Title of the project")).to_have_value(project["title"])

        go(page, "Voices")
        page.get_by_role("button", name=re.compile(r"^Anna\b")).click()
        expect(page).to_have_title("Anna · Voices · Voice Studio")
        expect(page).to_have_url(f"{studio.url}/#voices/{voice['id']}")
        page.reload()
        page.wait_for_selector("body[data-studio=ready]")
        expect(page.locator("#inspector")).to_be_visible()
        page.go_back()
        expect(page.locator("#inspector")).to_be_hidden()

        page.goto(f"{studio.url}/#history/{take}")
        rows = page.locator("#area-history li")
        expect(rows).to_have_count(1)
        expect(page).to_have_title("First words · History · Voice Studio")
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        rows.get_by_role("button", name="Link").click()
        expect(rows.get_by_role("button", name="Copied")).to_be_visible()
        expect(page).to_have_url(f"{studio.url}/#history/{take}")
        assert page.evaluate("navigator.clipboard.readText()") == f"{studio.url}/#history/{take}"
        share_with_a_stranger(page, rows)
        page.get_by_role("button", name="Show all takes").click()
        expect(rows).to_have_count(2)
        page.go_back()
        expect(rows).to_have_count(1)

        httpx.delete(f"{studio.url}/v1/takes/{take}").raise_for_status()
        for gone, area, message in (
            ("projects/proj_gone", "Projects", "This project no longer exists"),
            ("voices/gone", "Voices", "gone"),
            (f"history/{take}", "History", "This take was deleted"),
        ):
            page.goto(f"{studio.url}/#{gone}")
            expect(page.get_by_role("region", name=area, exact=True)).to_contain_text(message)
        page.goto(f"{studio.url}/#history/caf%C3")  # cut off
        expect(screen.script).to_be_visible()


def share_with_a_stranger(page: Page, row: Locator) -> None:
    """Create a link to the take, open it, and revoke it."""
    row.get_by_role("button", name="Share").click()
    dialog = page.get_by_role("dialog", name="Share this take")
    expect(dialog.get_by_label("Expires after")).to_have_value("7")
    dialog.get_by_role("button", name="Make a link").click()
    expect(dialog.get_by_role("button", name="Copy")).to_be_focused()
    link = dialog.get_by_role("link")
    with page.expect_popup() as opening:
        link.click()
    shared = opening.value
    expect(shared.locator("blockquote")).to_have_text("First words")
    expect(shared.locator("audio")).not_to_have_js_property("readyState", 0)  # the duration has loaded
    dialog.get_by_role("button", name="Revoke").click()  # the browser's question is dismissed
    expect(link).to_have_count(1)
    page.once("dialog", lambda question: question.accept())
    dialog.get_by_role("button", name="Revoke").click()
    expect(link).to_have_count(0)
    shared.reload()
    expect(shared.get_by_role("heading")).to_have_text("This link no longer works")
    shared.close()
    dialog.get_by_role("button", name="Close").click()
