"""A long project by keyboard alone: from a match into its text, and to the bar for selected parts and back."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.browser.projects.test_longform import area_of, import_file, table
from tests.browser.screen import Screen
from tests.studio.server import Served


def test_search_leads_into_the_text_and_speaking_a_selection_keeps_the_position(
    studio: Served, open_page: Callable[..., Screen]
) -> None:
    screen = open_page(studio).ready()
    area, press = area_of(screen), screen.page.keyboard.press
    lines = (f"Line {n} goes on and on and on and on.,{f'Chapter {n}' if n % 3 == 1 else ''}\n" for n in range(1, 61))
    import_file(area, table("text,chapter\n" + "".join(lines)))
    find, matches = area.get_by_role("searchbox", name="Find", exact=True), area.locator("[data-part=found]")
    find.fill("Line 4")
    expect(matches).to_contain_text("11 times")
    press("Enter")
    press("Enter")
    expect(matches).to_contain_text("2 of 11")
    text = area.get_by_label("Text of part 40")
    expect(text).to_be_in_viewport()
    assert set(area.locator(".long-parts mark").all_text_contents()) == {"Line 4"}
    press("Escape")
    expect(text).to_be_focused()
    expect(find).to_have_value("Line 4")
    find.fill("")
    expect(area.locator(".long-parts mark, [data-found]")).to_have_count(0)

    for number in (41, 40):
        area.get_by_label(f"Select part {number}").focus()
        press("Space")
    screen.page.wait_for_function(  # the bar covers no chapter
        """() => {
            const box = (selector) => document.querySelector(`#area-longform ${selector}`).getBoundingClientRect();
            return box("[data-part=chapters]").bottom <= box(".long-foot").top;
        }"""
    )
    an_arrow_opens_a_list_and_escape_closes_what_a_button_opened(screen.page, area)
    press("s")
    expect(speak := area.get_by_role("button", name="Speak 2 selected")).to_be_focused()
    press("Enter")
    expect(area.locator("[data-part=state]")).to_contain_text("2 of 60 parts spoken")
    expect(speak).to_be_hidden()
    expect(area.get_by_label("Select part 40")).to_be_focused()
    expect(text).to_be_in_viewport()
    press("Space")
    area.get_by_role("button", name="Clear selection").press("Tab")
    expect(area.locator(".long-parts :focus")).to_have_count(1)  # the bar stands right before the list

    area.get_by_role("button", name="Play all").press("Space")
    expect(area.get_by_role("button", name="Pause playback")).to_be_focused()
    screen.page.wait_for_function("window.studio.position > 0.1")
    press("Space")
    expect(area.get_by_role("button", name="Resume playback")).to_be_focused()
    press("Space")
    expect(area.get_by_role("button", name="Pause playback")).to_be_focused()
    expect(area.get_by_role("button", name="Play all")).to_be_visible()  # the second part is over

    screen.page.set_viewport_size({"width": 390, "height": 844})
    screen.page.wait_for_function(  # large enough for a finger; the list is drawn again for another size
        """() => {
            const box = document.querySelector("#area-longform .long-parts [type=checkbox]")?.getBoundingClientRect();
            return box && Math.min(box.width, box.height) >= 24;
        }"""
    )
    in_a_low_window_the_focus_stays_in_view(screen.page, area)


def in_a_low_window_the_focus_stays_in_view(page: Page, area: Locator) -> None:
    page.set_viewport_size({"width": 640, "height": 430})  # as at 200 %
    find = area.get_by_role("searchbox", name="Find", exact=True)
    find.fill("Line 40")
    find.press("Enter")
    expect(area.get_by_label("Text of part 40")).to_be_in_viewport()
    expect(find).to_be_focused()
    expect(find).to_be_in_viewport(ratio=1)
    for name in ("Direction", "Clear selection"):  # of part 40
        area.get_by_role("button", name=name).focus()
        expect(area.get_by_role("button", name=name)).to_be_in_viewport(ratio=1)
    page.evaluate("scrollBy(0, -100)")
    page.keyboard.press("Enter")
    expect(area.locator(".long-parts input:focus")).to_be_in_viewport(ratio=1)


def an_arrow_opens_a_list_and_escape_closes_what_a_button_opened(page: Page, area: Locator) -> None:
    voice, gap = area.get_by_label("Set the voice"), area.locator("[data-part=selected-gap]")
    voice.press("ArrowDown")
    assert voice.evaluate("(list) => list.matches(':open')")
    expect(voice).to_have_value("-")
    page.keyboard.press("Escape")
    direction = area.get_by_role("button", name="Direction", exact=True)
    direction.press("Enter")
    gap.press("Escape")
    expect(direction).to_be_focused()
    expect(gap).to_be_hidden()
