"""What is heard beside takes: the recording of the chosen voice, and how loud it is now."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.screen import Screen
from tests.studio.server import Served

Open = Callable[..., Screen]


def test_the_chosen_voices_recording_is_heard_and_stopped(served: Served, open_page: Open) -> None:
    page = open_page(served).ready().page
    with page.expect_response("**/v1/voices/*/preview") as answer:
        page.get_by_role("button", name="Listen to its recording").click()
    assert answer.value.status in (200, 206)
    page.get_by_role("button", name="Stop listening").click()
    expect(page.get_by_role("button", name="Listen to its recording")).to_be_visible()


def test_the_level_moves_while_a_take_sounds_and_rests_after_it(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    screen.cut_after(2)
    level = screen.page.get_by_role("meter", name="Level")
    expect(level).to_have_attribute("aria-valuenow", "0")
    screen.speak.click()
    screen.page.wait_for_function(
        "Number(document.querySelector('[data-part=level]').getAttribute('aria-valuenow')) > 0"
    )
    screen.until_over()
    expect(level).to_have_attribute("aria-valuenow", "0")
