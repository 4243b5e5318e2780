"""What is heard beside takes: the recording of the chosen voice, and how loud it is now."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.screen import Screen
from tests.studio.server import Served

Open = Callable[..., Screen]


def test_the_chosen_voices_recording_is_heard_and_the_level_moves_while_a_take_sounds(
    served: Served, open_page: Open
) -> None:
    screen = open_page(served).ready()
    page = screen.page
    listen = page.get_by_role("button", name="Listen to its recording")
    dock = page.locator("#dock")
    expect(dock).to_be_hidden()  # there is nothing to play yet
    with page.expect_response("**/v1/voices/anna/preview?**") as answer:
        listen.click()
    assert answer.value.ok and answer.value.headers["content-type"].startswith("audio/")
    expect(dock).to_contain_text("Anna’s recording")
    expect(dock.get_by_role("button", name="Play", exact=True)).to_be_enabled()
    room = "parseFloat(getComputedStyle(document.documentElement).getPropertyValue('--dock-height'))"
    page.wait_for_function(f"{room} > 0 && {room} === document.querySelector('#dock').offsetHeight")
    expect(listen).not_to_have_attribute("data-playing", "yes")  # it is short, and over by itself

    screen.cut_after(2)
    level = screen.page.locator("#dock [role=meter]")
    expect(level).to_have_attribute("aria-valuenow", "0")
    screen.speak.click()
    screen.page.wait_for_function(
        "Number(document.querySelector('[data-part=level]').getAttribute('aria-valuenow')) > 0"
    )
    screen.until_over()
    expect(level).to_have_attribute("aria-valuenow", "0")
