"""The takes of a part: a sentence edited in the player's text, takes compared, a note while listening; by keys."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Locator, expect

from tests.browser.projects.test_longform import area_of, import_file, table
from tests.browser.projects.test_unsaved import CHANGE_PART
from tests.browser.screen import Screen
from tests.browser.test_looks import serious_violations
from tests.studio.server import Served

Open = Callable[..., Screen]
Steer = Callable[..., Served]


def test_sentence_of_a_part_is_edited_its_takes_compared_and_a_spot_marked(steered: Steer, open_page: Open) -> None:
    screen = open_page(steered()).ready()
    area, page, dock = area_of(screen), screen.page, screen.page.locator("#dock")
    import_file(area, table("text,voice\nOne two. Three four. Five six.,anna\nAll is well here.,anna\n"))
    area.get_by_role("button", name="Speak all parts").click()
    row = area.locator(".long-parts > li").first
    expect(area.locator("[data-part=state]")).to_contain_text("2 of 2 parts spoken")
    row.get_by_role("button", name="Play part 1").click()
    text, words = dock.locator(".read-along-text"), row.get_by_label("Text of part 1")
    text.locator(".word").first.wait_for()
    screen.until_over()

    text.press("Enter")
    field = dock.get_by_role("textbox", name="Words of the sentence")
    expect(field).to_have_text("Five six.")
    page.keyboard.press("Control+a")
    page.keyboard.type("Seven hundred.")
    page.keyboard.press("Enter")
    expect(words).to_have_value("One two. Three four. Seven hundred.")
    expect(row).to_contain_text("Done")
    expect(text).to_have_text("One two. Three four. Seven hundred.")
    expect(text).to_be_focused()
    page.keyboard.press("Control+z")
    expect(words).to_have_value("One two. Three four. Five six.")
    expect(row).to_contain_text("Done")
    take = row.get_by_label("Take of part 1")
    expect(take.locator("option")).to_have_count(2)
    expect(text).to_have_text("One two. Three four. Five six.")  # the player has the first take again

    row.get_by_role("button", name="Compare the takes of part 1").press("Enter")
    bar = dock.get_by_role("group", name="Compare the takes of part 1")
    first, second = (bar.get_by_role("button", name=name) for name in ("Take 1", "Take 2"))
    expect(first).to_have_attribute("aria-pressed", "true")
    expect(bar.get_by_role("button", name="Keep this")).to_be_disabled()
    assert not serious_violations(screen)
    page.keyboard.press("x")
    expect(second).to_have_attribute("aria-pressed", "true")
    expect(text).to_have_text("One two. Three four. Seven hundred.")
    bar.get_by_role("button", name="Keep this").press("Enter")
    expect(bar).to_be_hidden()
    expect(row.get_by_role("button", name="Compare the takes of part 1")).to_be_focused()
    expect(page.get_by_role("status").filter(has_text="Take 2 of part 1 kept.")).to_be_visible()
    expect(take).to_have_value(page.evaluate("window.studio.current.id"))
    page.keyboard.press("Control+z")
    expect(take).not_to_have_value(page.evaluate("window.studio.current.id"))
    edit_what_another_tab_continues(screen, row)
    mark_spots(screen, area)


def edit_what_another_tab_continues(screen: Screen, row: Locator) -> None:
    """Undoing a sentence keeps what somebody else has written since."""
    page, words = screen.page, row.get_by_label("Text of part 1")
    row.get_by_role("button", name="Play part 1").click()
    text = page.locator("#dock .read-along-text")
    expect(text).to_have_text("One two. Three four. Five six.")
    screen.until_over()
    text.press("Enter")
    page.keyboard.press("Control+a")
    page.keyboard.type("Eight.")
    page.keyboard.press("Enter")
    expect(words).to_have_value("One two. Three four. Eight.")
    page.evaluate(CHANGE_PART, {"number": 0, "text": "One two. Three four. Eight. Nine."})
    page.keyboard.press("Control+z")
    expect(page.locator("#undo-toast")).to_contain_text("This can no longer be undone")
    expect(words).to_have_value("One two. Three four. Eight. Nine.")


def mark_spots(screen: Screen, area: Locator) -> None:
    """Mark spots with a key, then by touch on a phone."""
    page, dock = screen.page, screen.page.locator("#dock")
    area.get_by_role("button", name="Play part 2").click()
    expect(area.get_by_role("button", name="Pause part 2")).to_be_visible()
    page.keyboard.press("m")
    note = dock.get_by_role("textbox", name="Note for part 2")
    expect(note).to_be_focused()
    expect(dock).to_have_attribute("data-state", "paused")
    assert not serious_violations(screen)
    page.keyboard.press("Escape")
    expect(note).to_be_hidden()
    expect(area.get_by_role("button", name="Play part 2")).to_be_focused()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(dock.locator(".dock-status")).to_contain_text("part 2 of 2")
    assert dock.locator(".dock-status").evaluate("(words) => words.scrollWidth <= words.clientWidth")
    dock.get_by_role("button", name="Mark this spot").click()
    note.fill("Too happy")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not serious_violations(screen)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Note for part 2 saved.")).to_be_visible()
    expect(dock.get_by_role("button", name="Mark this spot")).to_be_focused()
    area.get_by_role("button", name="Check", exact=True).click()
    spots = area.get_by_role("list", name="Doubtful spots").get_by_role("listitem")
    expect(spots).to_contain_text(["Note: Too happy"])


def test_switching_takes_continues_at_the_same_word(steered: Steer, open_page: Open) -> None:
    """At half the speed, the same position is at another word."""
    screen = open_page(steered()).ready()
    area, page = area_of(screen), screen.page
    import_file(area, table("text,voice\nOne two three four five six seven eight.,anna\n"))
    area.get_by_role("button", name="Speak all parts").click()
    row = area.locator(".long-parts > li").first
    expect(row).to_contain_text("Done")
    area.get_by_role("button", name="Voice, speed and pauses").click()
    area.locator("[data-part=speed]").fill("0.5")
    area.locator("[data-part=speed]").press("Tab")
    expect(row).to_contain_text("Changed")
    row.get_by_role("button", name="Speak part 1 again").click()
    expect(row).to_contain_text("Done")
    row.get_by_role("button", name="Compare the takes of part 1").click()
    page.evaluate(
        """() => new Promise((resolve) => {
            const { nowPlaying } = window.studio;
            nowPlaying.addEventListener("moved", function look({ detail: { position } }) {
                if (position < 1) return;
                nowPlaying.removeEventListener("moved", look);
                const play = nowPlaying.play;
                nowPlaying.play = (track, from, row) => {
                    resolve();
                    window.places = [nowPlaying.position, from];
                    return play.call(nowPlaying, track, from, row);
                };
                document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "x", bubbles: true }));
            });
        })"""
    )
    slow, fast = page.evaluate("window.places")
    assert abs(fast - slow / 2) < 0.15, (slow, fast)
