"""The text in the player: words are highlighted as they are played, and clicking one seeks to it."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.screen import Held, Screen, go
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


def test_words_are_highlighted_while_played_and_clicking_one_seeks(steered: Steer, open_page: Open) -> None:
    studio = steered()
    screen = open_page(studio).ready()
    page, dock = screen.page, screen.page.locator("#dock")
    text, toggle = dock.locator(".read-along-text"), dock.get_by_role("button", name="Text", exact=True)
    expect(text).to_be_hidden()
    screen.script.fill("Slowly, [whisper] slowly the night train leaves the hall for Vienna.")
    screen.speak.click()
    words = text.locator(".word")
    expect(words).to_have_count(10)
    expect(text).to_have_text("Slowly, [whisper] slowly the night train leaves the hall for Vienna.")
    screen.until_over()
    expect(page.locator(LIT)).to_have_count(0)

    page.evaluate(NOTE_LIT, LIT)
    words.nth(4).click()  # playback has ended, so it restarts there
    page.wait_for_function("window.lit.includes('Vienna')")
    assert not {"Slowly", "slowly", "night"} & set(page.evaluate("window.lit")), "it sounds from the word pressed"
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
    assert not [url for url in screen.requests if "timestamps" in url][2:], "what is not shown is not asked for"
    with page.expect_response(re.compile("/timestamps")):
        toggle.click()
    expect(words).to_have_count(10)


SELECT = """([first, last]) => {
    const words = document.querySelectorAll("#dock .word");
    document.getSelection().setBaseAndExtent(words[first].firstChild, 0, words[last].firstChild, 1);
}"""


def test_sentence_is_regenerated_and_the_previous_take_stays(steered: Steer, open_page: Open) -> None:
    screen = open_page(steered()).ready()
    page, dock, facts = screen.page, screen.page.locator("#dock"), screen.page.locator("#takes .take-facts")
    again, before = (dock.get_by_role("button", name=name) for name in ("Speak sentence again", "Previous version"))
    meant, selection = dock.locator(".sentence.is-meant"), dock.locator(".read-along-said")
    screen.script.fill("One two. 🎉 Three four. Five six.")
    screen.speak.click()
    expect(again).to_be_visible()
    expect(before).to_be_hidden()
    screen.until_over()
    text = dock.locator(".read-along-text")
    text.press("ArrowLeft")  # to the word before the last one, by keys alone
    screen.until_over()
    page.keyboard.press("Tab")
    expect(again).to_be_focused()
    page.evaluate(SELECT, [1, 2])
    expect(meant).to_have_text(["One two. 🎉 ", "Three four. "])
    page.evaluate("document.getSelection().collapseToEnd()")
    expect(meant).to_have_text(["Five six."])
    page.evaluate(SELECT, [2, 2])
    with page.expect_request(re.compile("/regenerate$")) as mending:
        page.keyboard.press("Enter")
    assert mending.value.post_data_json == {"start": 11, "end": 16}
    expect(facts).to_have_count(2)
    expect(facts.first).to_contain_text("One sentence of Take 1 spoken again")
    expect(screen.status).to_contain_text("Take 2")
    expect(text).to_have_text("One two. 🎉 Three four. Five six.")
    screen.until_over()
    before.click()
    expect(screen.status).to_contain_text("Take 1")
    expect(before).to_be_hidden()
    screen.until_over()

    go(page, "History")
    rows = page.locator("#area-history [data-part=list] li")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("One sentence spoken again")
    verify = rows.get_by_role("button", name="Verify")
    expect(verify).to_have_count(1)
    rows.first.locator(".take-play").click()
    expect(before).to_be_visible()
    again.click()
    expect(rows).to_have_count(3)
    assert not serious_violations(screen)
    page.route(re.compile("/regenerate$"), lambda route: route.abort())
    screen.until_over()
    again.click()
    expect(selection).to_contain_text("is not responding")
    page.unroute_all()
    page.evaluate("fetch('/v1/voices/anna', { method: 'DELETE' })")
    again.click()
    expect(selection).to_contain_text("no longer in the library")
    expect(again).to_be_enabled()


def test_sentence_is_edited_in_place_and_undone(steered: Steer, open_page: Open) -> None:
    screen = open_page(steered()).ready()
    page, dock = screen.page, screen.page.locator("#dock")
    text, field = dock.locator(".read-along-text"), dock.get_by_role("textbox", name="Words of the sentence")
    screen.script.fill("One two. [whisper] “Three four.” Five six.")
    screen.speak.click()
    expect(dock.get_by_role("button", name="Edit sentence")).to_be_visible()
    screen.until_over()
    for _ in range(2):
        text.press("ArrowLeft")
        screen.until_over()
    text.press("ArrowLeft")  # to “four”, and plays from there
    text.press("Enter")
    expect(field).to_be_focused()
    assert not serious_violations(screen)
    page.keyboard.press("Escape")
    expect(field).to_have_count(0)
    expect(text).to_be_focused()

    held = Held(page, re.compile("/regenerate$"))  # now, as the renderer learns of it later
    text.locator(".word").nth(3).dblclick()
    expect(field).to_have_text("[whisper] “Three four.”")
    page.keyboard.press("ArrowLeft")
    page.keyboard.type(" hundred")
    page.keyboard.press("Enter")
    held[0].abort()
    expect(dock.locator(".read-along-said")).to_contain_text("is not responding")
    expect(field).to_have_text("[whisper] “Three four. hundred”")
    expect(field).to_be_focused()
    page.keyboard.press("Enter")
    held.wait_for(2)
    text.locator(".word").first.dblclick()  # another sentence: what was typed is kept, and asked for
    held[1].abort()
    expect(dock.locator(".read-along-said")).to_contain_text("is not responding")
    expect(field).to_have_text("One two.")
    page.unroute_all()
    assert page.evaluate("dispatchEvent(new Event('beforeunload', { cancelable: true }))") is False
    page.keyboard.press("Escape")
    text.locator(".word").nth(3).dblclick()
    expect(field).to_have_text("[whisper] “Three four. hundred”")
    page.keyboard.press("Control+a")
    page.keyboard.type("[whisper] “Three hundred.”")
    with page.expect_request(re.compile("/regenerate$")) as mending:
        page.keyboard.press("Enter")
    assert mending.value.post_data_json == {"start": 26, "end": 30, "replacement": "hundred"}
    expect(text).to_have_text("One two. [whisper] “Three hundred.” Five six.")
    expect(screen.takes).to_have_count(2)
    expect(screen.status).to_contain_text("Take 2")
    expect(page.locator("#undo-toast")).to_contain_text("Take 2: sentence changed.")
    expect(text).to_be_focused()
    assert page.evaluate("dispatchEvent(new Event('beforeunload', { cancelable: true }))") is True
    page.keyboard.press("Control+z")
    expect(page.locator("#undo-toast")).to_contain_text("Undone: Take 2: sentence changed.")
    expect(screen.takes).to_have_count(1)
    expect(text).to_have_text("One two. [whisper] “Three four.” Five six.")
