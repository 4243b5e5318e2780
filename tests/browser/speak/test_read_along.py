"""The text that follows the sound: words lit as they are heard, a press on one goes there."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.screen import Screen
from tests.browser.test_looks import serious_violations
from tests.studio.server import Served

Open = Callable[..., Screen]
Steer = Callable[..., Served]
LIT = "#dock .read-along-text .is-heard"
NOTE_LIT = """(lit) => {
    window.lit = []; // words, as they are lit: a busy test may look too late
    const note = () => document.querySelector(lit) && window.lit.push(document.querySelector(lit).textContent);
    new MutationObserver(note).observe(document.querySelector("#dock"), { subtree: true, attributeFilter: ["class"] });
}"""


def test_words_are_lit_while_heard_and_a_press_on_one_goes_there(steered: Steer, open_page: Open) -> None:
    studio = steered()
    screen = open_page(studio).ready()
    page, dock = screen.page, screen.page.locator("#dock")
    text, toggle = dock.locator(".read-along-text"), dock.get_by_role("button", name="Text", exact=True)
    expect(text).to_be_hidden()
    screen.script.fill("Slowly, [whisper] slowly the night train leaves the hall for Vienna.")
    screen.speak.click()
    words = text.locator("span")
    expect(words).to_have_count(10)
    expect(text).to_have_text("Slowly, [whisper] slowly the night train leaves the hall for Vienna.")
    screen.until_over()
    expect(page.locator(LIT)).to_have_count(0)

    page.evaluate(NOTE_LIT, LIT)
    words.nth(4).click()  # over, so that it sounds again from there
    page.wait_for_function("window.lit.includes('Vienna')")
    assert page.evaluate("window.lit[0]") in ("train", "leaves")
    screen.until_over()
    expect(page.locator(LIT)).to_have_count(0)
    text.press("ArrowLeft")
    assert not serious_violations(screen)
    screen.until_over()

    toggle.click()
    expect(text).to_be_hidden()
    page.reload()
    page.wait_for_selector("body[data-studio=ready]")
    with page.expect_response(re.compile("/audio")):
        page.get_by_role("button", name="Play take 1").click()
    expect(toggle).to_have_attribute("aria-expanded", "false")
    assert not [url for url in screen.requests if "timestamps" in url][1:], "what is not shown is not asked for"
    with page.expect_response(re.compile("/timestamps")):
        toggle.click()
    expect(words).to_have_count(10)
