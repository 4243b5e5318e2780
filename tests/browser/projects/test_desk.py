"""A project as a desk: its text comes first, in low windows too; a table is a sheet with its own file names."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.projects.test_longform import area_of, import_it, table
from tests.browser.screen import Held, Screen
from tests.browser.test_looks import serious_violations
from tests.studio.server import Served

Open = Callable[..., Screen]
LINES = [
    "id,character,text,Notes",
    *(f"line_{n:03},{('Mira', 'Bren')[n % 2]},Line number {n}.,n{n}" for n in range(200)),
]
IN_VIEW = """(column) => {
    const at = column.getBoundingClientRect();
    let seen = 0;
    for (let y = Math.max(0, at.top); y < Math.min(innerHeight, at.bottom); y += 1) {
        seen += column.contains(document.elementFromPoint(at.left + at.width / 2, y)) ? 1 : 0;
    }
    return seen;
}"""
"""The pixels of height in which the parts are seen, with nothing over them."""


def rows(area: Locator) -> Locator:
    return area.get_by_role("list", name="Parts").get_by_role("listitem")


def take_all_roles_and_give_them_back(area: Locator) -> None:
    """Without any, roles are not guessed again."""
    roles = {name: area.get_by_label(f"Role of the column {name}", exact=True) for name in ("id", "character", "text")}
    for chosen in ("", *roles):
        for name, select in roles.items():
            if chosen in ("", name):
                with area.page.expect_response("**/v1/projects/preview"):
                    select.select_option(chosen)
        if not chosen:
            expect(area.get_by_text("the first line must name the columns, among them text")).to_be_visible()
            assert [select.input_value() for select in roles.values()] == ["", "", ""]


def test_a_changed_table_updates_its_lines_and_files_keep_their_names(studio: Served, open_page: Open) -> None:
    screen = open_page(studio).ready()
    area, page = area_of(screen), screen.page
    area.get_by_label("Choose a document").set_input_files(table("\n".join(LINES)))
    expect(area.get_by_text("200 lines")).to_be_visible()
    speakers = area.locator("[data-part=people] .cast-list > li")  # without a press, as the table says who speaks
    expect(speakers.locator(".cast-figures")).to_have_text(["100 lines", "100 lines"])
    assert serious_violations(screen) == []
    role = area.get_by_label("Role of the column Notes")
    assert role.input_value() == ""
    with page.expect_response("**/v1/projects/preview"):  # a role belongs to one column
        role.select_option("id")
    expect(area.get_by_label("Role of the column id", exact=True)).to_have_value("")
    with page.expect_response("**/v1/projects/preview"):
        area.get_by_label("Role of the column id", exact=True).select_option("id")
    expect(role).to_have_value("")
    take_all_roles_and_give_them_back(area)
    import_it(area)
    expect(rows(area).nth(1)).to_contain_text("line_001 · Notes: n1")

    new = [LINES[0], LINES[1].replace("number 0", "zero"), LINES[1].replace("line_000", "line_new"), *LINES[2:-1]]
    for is_undone in (True, False):
        area.get_by_role("button", name="More actions").click()
        with page.expect_file_chooser() as chooser:
            page.get_by_role("menuitem", name="Update from file …").click()
        chooser.value.set_files(table("\n".join(new)))
        dialog = page.get_by_role("dialog", name="Update from My table.csv")
        expect(dialog).to_contain_text("1 changed · 1 new · 1 gone · 198 the same")
        expect(dialog.get_by_role("row").nth(1)).to_contain_text("line_000changedLine number 0. Line zero.")
        assert serious_violations(screen) == []
        dialog.get_by_role("button", name="Update", exact=True).click()
        expect(rows(area).first.get_by_role("textbox")).to_have_value("Line zero.")
        expect(page.locator("#undo-toast")).to_contain_text("1 changed · 1 new · 1 gone · 198 the same")
        if is_undone:
            page.get_by_role("button", name="Undo").click()
            expect(rows(area).first.get_by_role("textbox")).to_have_value("Line number 0.")
            expect(rows(area).nth(1)).to_contain_text("line_001")
    rows(area).first.get_by_role("button", name="Speak part 1").click()
    expect(rows(area).first).to_contain_text("Done")
    area.get_by_role("button", name="Files", exact=True).click()
    area.get_by_role("button", name="Download", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Zip of the changed parts").click()
    with zipfile.ZipFile(download.value.path()) as archive:
        assert archive.namelist() == ["manifest.csv", "line_000.wav"]
    said = area.locator("[data-part=making]")
    expect(said).to_have_text("“Zip of the changed parts” has been made. It has 1 part of 200.")
    area.get_by_role("button", name="Download", exact=True).click()
    page.get_by_role("menuitem", name="Zip of the changed parts").click()
    expect(said).to_contain_text("No line has changed since the last zip of takes")
    find_an_id_while_the_list_is_read_again(area)


def find_an_id_while_the_list_is_read_again(area: Locator) -> None:
    area.get_by_role("button", name="Parts", exact=True).click()
    find = area.get_by_label("Find", exact=True)
    find.fill("LINE_198")
    expect(area.locator("[data-part=found]")).to_have_text("Found in 1 id.")
    refreshed, found = (Held(area.page, re.compile(rf"/parts\?.*offset={first}")) for first in ("0&", "[1-9]"))
    rows(area).first.get_by_role("button", name="Speak part 1 again").click()
    refreshed.wait_for(1)
    find.press("Enter")
    found.wait_for(1)
    refreshed.answer(0)  # the list is read again before the part is there
    found.answer_all()
    expect(area.locator("[data-found]")).to_contain_text("line_198")


@pytest.mark.parametrize(
    ("width", "height", "least"), [(1280, 860, 500), (640, 430, 150), (390, 844, 250)], ids=["desk", "200 %", "phone"]
)
def test_text_stays_in_view(studio: Served, open_page: Open, width: int, height: int, least: int) -> None:
    """With a row ticked and playing, and with Replace open."""
    screen = open_page(studio, viewport={"width": width, "height": height}).ready()
    area, page = area_of(screen), screen.page
    area.get_by_label("Choose a document").set_input_files(table("text\n" + "\n".join(f"Line {n}." for n in range(40))))
    import_it(area)
    expect(rows(area).nth(3)).to_be_attached()
    top = rows(area).first.bounding_box()
    assert top and (width < 1280 or top["y"] <= 220), "a project begins with its text"
    area.get_by_role("button", name="Replace", exact=True).click()
    column = area.locator(".long-column")
    assert column.evaluate(IN_VIEW) >= least or height < 500  # scrolled to the field at 200 %
    page.keyboard.press("Escape")
    expect(area.get_by_role("button", name="Replace", exact=True)).to_be_focused()
    expect(area.get_by_label("Replace with")).to_be_hidden()
    area.get_by_role("button", name="Replace", exact=True).click()
    settings = area.get_by_role("button", name="Voice, speed and pauses")
    settings.press("Enter")
    expect(area.get_by_label("Pause after parts")).to_be_visible()
    expect(settings).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    panel, desk = area.locator("#project-inspector").bounding_box(), area.locator(".long-desk").bounding_box()
    assert panel and desk and (panel["width"] == desk["width"]) == (width < 900), "one column in a narrow window"
    settings.press("Escape")
    expect(area.get_by_label("Pause after parts")).to_be_hidden()
    row = rows(area).nth(1)
    row.get_by_role("button", name="Speak part 2").click()
    expect(row).to_contain_text("Done")
    if width == 1280:
        area.get_by_role("button", name="Replace", exact=True).click()
        assert row.evaluate("(row) => row.parentElement.getBoundingClientRect().top + scrollY") <= 225
        area.get_by_role("button", name="Replace", exact=True).click()
    row.get_by_role("checkbox").check()
    row.get_by_role("button", name="Play part 2").click()
    expect(page.locator("#dock [data-part=status]")).not_to_be_empty()
    rows(area).nth(4).scroll_into_view_if_needed()
    area.locator(".long-column").evaluate("(column) => scrollBy(0, column.getBoundingClientRect().top - 60)")
    assert column.evaluate(IN_VIEW) >= least - (250 if width == 1280 else 0)
    if height < 500:
        the_player_opens_in_a_low_window(screen)


def the_player_opens_in_a_low_window(screen: Screen) -> None:
    dock = screen.page.locator("#dock")
    position, more = dock.get_by_role("slider", name="Position"), dock.get_by_role("button", name="Position, volume")
    expect(position).to_be_hidden()
    status = dock.locator("[data-part=status]")
    assert status.evaluate("(words) => words.scrollHeight <= words.clientHeight + 1"), "the title is whole"
    more.press("Enter")
    for control in (position, dock.get_by_role("slider", name="Volume"), dock.locator(".read-along-text")):
        expect(control).to_be_in_viewport(ratio=1)
    expect(dock.get_by_role("button", name="Speak sentence again")).to_be_visible()
    assert serious_violations(screen) == []
    position.press("Escape")
    expect(position).to_be_hidden()
    expect(more).to_be_focused()
