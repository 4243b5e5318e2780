"""The cast of a project on the page: detected before the import, changed, decided by keys, merged and restored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Route, expect

from tests.browser.projects.test_longform import area_of, import_it
from tests.browser.screen import Screen
from tests.browser.test_looks import serious_violations
from tests.studio.server import Served

Open = Callable[..., Screen]
NOVEL = (
    "“Come in,” said Eleanor. “She is waiting.”\n\nMr Thornton wiped his boots.\n\n"
    "“Then I wait,” said Mr Thornton.\n\nThe rain went on.\n\nIt rained.\n\nIt went on.\n\n“Somebody is here.”\n\n"
    "The rain went on.\n\nIt rained.\n\nIt went on.\n\n“Who is it?”"
)


def import_novel(studio: Served, open_page: Open, **size: int) -> tuple[Screen, Locator]:
    """A project of the novel, whose speakers were found, with its cast shown."""
    screen = open_page(studio, **size).ready()
    area = area_of(screen)
    area.get_by_label("Choose a document").set_input_files(
        {"name": "Novel.txt", "mimeType": "text/plain", "buffer": NOVEL.encode()}
    )
    speakers = area.get_by_label("Find the speakers")
    speakers.check()
    expect(area.locator("[data-part=names] label")).to_have_count(2)
    assert serious_violations(screen) == []
    area.get_by_label("Voice of Eleanor").select_option("bert")
    speakers.uncheck()
    expect(area.locator("[data-part=names] label")).to_have_count(0)
    speakers.check()
    expect(area.get_by_label("Voice of Eleanor")).to_have_value("bert")
    import_it(area)
    area.get_by_role("button", name="Cast", exact=True).click()
    expect(area.locator(".cast-list > li")).to_have_count(3)
    return screen, area


def test_novel_gets_an_editable_cast(studio: Served, open_page: Open) -> None:
    screen, area = import_novel(studio, open_page)
    expect(area.get_by_label("Voice of Eleanor")).to_have_value("bert")
    area.get_by_label("Voice of Eleanor").select_option("anna")
    assert serious_violations(screen) == []
    area.get_by_role("button", name="Parts", exact=True).click()
    area.locator("[data-part=filter]").select_option(label="Eleanor (2)")
    rows = area.locator(".long-parts > li")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("Eleanor")
    expect(rows.first.get_by_label("Voice of part 1")).to_have_value("anna")
    area.get_by_role("checkbox", name="Select all").check()
    area.get_by_role("button", name="Direction").click()
    area.get_by_role("combobox", name="Tag", exact=True).select_option("sad")
    area.get_by_role("combobox", name="Delivery", exact=True).select_option(label="Lively")
    expect(rows.first.get_by_role("textbox")).to_have_value("[sad] “Come in,”")
    expect(rows.first.get_by_role("img", name="Direction: Lively · [sad]")).to_be_visible()
    assert serious_violations(screen) == []
    area.get_by_role("combobox", name="Character", exact=True).select_option(label="Narrator")
    expect(area.get_by_text("No part matches the filter.")).to_be_visible()
    area.locator("[data-part=filter]").select_option(label="All parts")
    expect(rows.first.get_by_label("Voice of part 1")).to_have_value("")
    expect(rows.nth(1)).to_contain_text("Not spoken")
    expect(rows.nth(1).get_by_role("img")).to_have_count(0)
    screen.page.get_by_role("button", name="Cast", exact=True).click()
    thornton = area.locator(".cast-list > li").nth(1)
    thornton.get_by_label("More for Mr Thornton").click()
    thornton.get_by_label("Merge into").select_option("Eleanor")
    expect(area.locator(".cast-list > li")).to_have_count(2)
    expect(area.locator("#undo-toast")).to_contain_text("Mr Thornton")  # until then it is about the part
    screen.page.get_by_role("button", name="Undo").click()
    expect(area.locator(".cast-list > li")).to_have_count(3)


def test_unsure_lines_are_decided_by_single_keys(studio: Served, open_page: Open) -> None:
    screen, area = import_novel(studio, open_page)
    area.get_by_role("button", name="Decide 2 unsure lines").click()
    lines = area.locator(".cast-lines > li")
    expect(lines).to_have_count(2)
    expect(lines.first).to_be_focused()
    press = screen.page.keyboard.press
    press("1")
    expect(lines.nth(0)).to_contain_text("Decided: Mr Thornton")
    expect(lines.nth(1)).to_be_focused()
    press("u")
    expect(lines.nth(0)).to_contain_text("Probably")
    expect(lines.nth(0)).to_be_focused()
    press("0")
    expect(lines.nth(0)).to_contain_text("Decided: Narrator")
    press("Enter")
    expect(lines.nth(1)).to_contain_text("Decided:")
    expect(area.locator(".cast-bar button").first).to_be_hidden()
    assert serious_violations(screen) == []


def test_proposals_of_a_chat_endpoint_are_shown_and_accepted_or_rejected(steered: Any, open_page: Open) -> None:
    served = steered(chat=("http://127.0.0.1:9/v1", "tiny"))
    screen, area = import_novel(served, open_page)

    def propose(route: Route) -> None:
        part = (route.request.post_data_json or {})["ids"][0]
        route.fulfill(json={"data": [{"part": part, "character": None, "name": "The Cook", "tags": []}]})

    area.get_by_role("button", name="Decide 2 unsure lines").click()
    area.get_by_role("button", name="Ask tiny").click()
    expect(area.locator(".cast-panel [role=status]")).to_contain_text("it cannot be reached")
    screen.page.route("**/cast/proposals", propose)
    area.get_by_role("button", name="Ask tiny").click()
    lines = area.locator(".cast-lines > li")
    expect(lines.first).to_contain_text("tiny proposes: The Cook")
    expect(lines.first).to_be_focused()
    screen.page.keyboard.press("Enter")
    expect(lines.first).to_contain_text("Decided: The Cook")
    expect(area.get_by_label("Name of The Cook")).to_have_value("The Cook")
