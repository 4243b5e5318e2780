"""The page in its reader's language, taken from the browser or chosen in Settings."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.screen import Screen, go
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served

Open = Callable[..., Screen]


def language_of(page: Page) -> str | None:
    return page.locator("html").get_attribute("lang")


def test_german_browser_gets_a_german_page_and_may_choose_another_language(
    steered: Callable[..., Served], open_page: Open
) -> None:
    studio = steered(FakeEngine)
    page = open_page(studio, locale="de-DE").ready().page
    assert language_of(page) == "de"
    expect(page.locator("#pill")).to_contain_text("Bereit")
    expect(page.get_by_role("radio", name="Eigene Aufnahme")).to_be_attached()  # of Gradio's fields
    script = page.get_by_role("textbox", name="Skript", exact=True)
    script.fill("x" * 1234)
    expect(page.locator("#lint")).to_contain_text("1.234 Zeichen")
    script.fill("Good evening.")
    page.get_by_role("button", name="Sprechen", exact=True).click()
    expect(page.locator("#takes li")).to_contain_text("Take 1")
    expect(page.get_by_role("button", name="Übernehmen")).to_be_visible()
    page.get_by_role("link", name="Stimmen", exact=True).click()
    page.get_by_role("link", name="Neue Stimme").click()
    expect(page).to_have_title("Neue Stimme · Voice Studio")
    expect(page.get_by_role("heading", name="Stimme aufnehmen")).to_be_visible()
    expect(page.get_by_role("region", name="Neue Stimme").get_by_label("Vorlesen auf")).to_have_value("de")
    expect(page.get_by_text("Zuerst etwas aufnehmen oder hochladen.")).to_be_visible()
    expect(page.get_by_role("button", name="Aufnehmen", exact=True)).to_be_visible()
    assert "{{" not in page.locator("body").inner_text()
    page.locator("#gear").click()
    expect(page.get_by_text("2 Stimmen und 1 Take: ")).to_be_visible()
    go(page, "Studio")
    page.request.patch(f"{studio.url}/v1/voices/bert", data={"gender": "male", "favourite": True, "accent": "British"})
    page.reload()
    page.get_by_label("Stimme wählen").click()
    expect(page.get_by_role("option")).to_have_text(
        [re.compile(name) for name in ("Bert · männlich · britisch", "Anna", "Zufällig")]
    )
    page.keyboard.press("Escape")
    start = {"status": "starting", "doing": "loading weights", "progress": 0.4}
    page.route("**/health", lambda route: route.fulfill(json=start))
    page.evaluate("window.studio.health.look()")
    expect(page.locator("#pill")).to_contain_text("Startet: 40 % · lädt die Gewichte")
    page.unroute_all()
    page.locator("#gear").click()
    with page.expect_navigation():
        page.locator("select[name=language]").select_option("日本語")
    page.wait_for_selector("body[data-studio=ready]")
    assert language_of(page) == "ja"
    expect(page.get_by_role("link", name="設定").first).to_have_attribute("aria-current", "page")
    with page.expect_navigation():
        page.locator("select[name=language]").select_option("")
    page.wait_for_selector("body[data-studio=ready]")
    assert language_of(page) == "de"
