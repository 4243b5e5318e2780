"""Parts of a project on the page: split, merged, moved, inserted, and their words replaced."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from playwright.sync_api import Locator, Route, expect

from tests.browser.projects.test_longform import area_of, import_file, import_it, table
from tests.browser.screen import Held, Screen, asks_before_leaving
from tests.browser.test_looks import serious_violations
from tests.studio.server import Served

Open = Callable[..., Screen]


def show(area: Locator, *texts: str) -> None:
    """Assert that the parts of a project have these texts."""
    rows = area.locator(".long-parts > li")
    expect(rows).to_have_count(len(texts))
    for number, text in enumerate(texts):
        expect(rows.nth(number).locator("textarea").first).to_have_value(text)


def paste_sentences(area: Locator, text: str) -> None:
    """Make a project of this text, one sentence per part."""
    area.get_by_text("Or paste a text").click()
    area.get_by_label("Text of the project").fill(text)
    area.get_by_role("button", name="Create a project").click()
    area.get_by_label("Split into").select_option("sentence")
    import_it(area)


def replace_one(area: Locator) -> None:
    area.get_by_label("Find", exact=True).fill("o")
    area.get_by_label("Find", exact=True).press("Enter")
    expect(area.get_by_text("1 of 2 · Found 3 times in 2 parts.")).to_be_visible()
    expect(area.locator("[data-found]")).to_have_attribute("aria-posinset", "2")
    area.get_by_label("Find", exact=True).press("Shift+Enter")
    expect(area.locator("[data-found]")).to_have_attribute("aria-posinset", "3")
    area.get_by_role("button", name="Replace", exact=True).click()
    area.get_by_label("Whole words").check()
    expect(area.get_by_text("Not found in any part.")).to_be_visible()
    expect(area.get_by_role("button", name="Replace all")).to_be_disabled()
    area.get_by_label("Find", exact=True).fill("one")
    area.get_by_label("Replace with").fill("No")
    expect(area.get_by_text("Found 1 time in 1 part.")).to_be_visible()
    area.get_by_role("button", name="Replace all").click()
    expect(area.get_by_text("Replaced 1 time in 1 part.")).to_be_visible()
    show(area, "Between.", "Four.", "No 🙂 and two.")


def undo_all(area: Locator, studio: Served) -> None:
    """Ctrl+Z, step by step, until the parts are as they were pasted."""
    for before in (
        ("Between.", "One 🙂 and two.", "Four."),
        ("Between.", "One 🙂 and two.", "Three.", "Four."),
        ("Between.", "Three.", "Four.", "One 🙂 and two."),
        ("Between.", "One 🙂 and two.", "Three.", "Four."),
        ("Between.", "Three.", "One 🙂 and two.", "Four."),
        ("Between.", "One 🙂 and two.", "Three.", "Four."),
        ("One 🙂 and two.", "Between.", "Three.", "Four."),
        ("One 🙂 and two.", "Three.", "Four."),
        ("One 🙂 and", "two.", "Three.", "Four."),
        ("One 🙂", "two.", "Three.", "Four."),
        ("One 🙂 two.", "Three.", "Four."),
    ):
        area.page.keyboard.press("Control+z")
        show(area, *before)
        expect(area.locator("#undo-toast")).to_contain_text("Undone: ")
    with studio.client() as client:
        trash = [item["title"] for item in client.get("/v1/trash").json()["data"]]
    assert "two." not in trash, "the undo of a split leaves nothing behind"


def test_pending_edits_are_saved_before_the_next_action(studio: Served, open_page: Open) -> None:
    screen = open_page(studio).ready()
    area, page = area_of(screen), screen.page
    written: list[str] = []
    page.on("request", lambda request: written.append(request.url) if request.method in ("PATCH", "POST") else None)
    for press, texts in (("Merge with next", ["One and Two."]), ("Replace all", ["Nine and", "Two."])):
        import_file(area, table("text\nOne.\nTwo.\n"))
        row = area.locator(".long-parts > li").first
        area.get_by_role("button", name="Replace", exact=True).click()
        area.get_by_label("Find", exact=True).fill("One")
        area.get_by_label("Replace with").fill("Nine")
        expect(area.get_by_role("button", name="Replace all")).to_be_enabled()
        written.clear()
        words = Held(page, "**/v1/projects/*/parts/*")
        row.get_by_label("Text of part 1").fill("One and")
        if press == "Merge with next":
            row.get_by_role("button", name="Arrange part 1", exact=True).click()
            page.get_by_role("menuitem", name=press).click()
        else:
            area.get_by_role("button", name=press).click()
        words.wait_for(1)
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert len(written) == 1
        words.answer(0)
        page.unroute_all()
        show(area, *texts)
        area.get_by_role("button", name="All projects").click()


def add_new_part(screen: Screen, row: Locator) -> None:
    """Type it, and press Add again while it is being added."""
    new = row.get_by_label("Text of a new part after part 1")
    expect(new).to_be_focused()
    new.press_sequentially("Between.")
    held = Held(screen.page, "**/parts", "POST")
    add = row.get_by_role("button", name="Add", exact=True)
    add.click()
    held.wait_for(1)
    add.click()
    held.answer_all()


def delete_while_typing(area: Locator, delete: Callable[[], object]) -> None:
    """The answer takes no focus from the field in which somebody types by then."""
    answers, find = Held(area.page, "**/parts/delete", "POST"), area.get_by_label("Find", exact=True)
    delete()
    answers.wait_for(1)
    find.click()
    answers.answer_all()
    expect(area.locator(".long-parts > li")).to_have_count(3)
    area.page.keyboard.type("typed on")
    expect(find).to_have_value("typed on")
    find.clear()


def move_faster_than_the_studio_answers(screen: Screen, handle: Locator) -> None:
    """Two presses move the part by two."""
    moves = Held(screen.page, "**/move", "POST")
    handle.press("ArrowDown")
    moves.wait_for(1)
    handle.press("ArrowDown")
    moves.answer_all()


def test_parts_are_arranged_and_words_replaced(studio: Served, open_page: Open) -> None:
    screen = open_page(studio).ready()
    area = area_of(screen)
    paste_sentences(area, "One 🙂 two. Three.\n\nFour.")
    rows = area.locator(".long-parts > li")
    shows = partial(show, area)

    def press(number: int, name: str) -> None:
        rows.nth(number).get_by_role("button", name=f"Arrange part {number + 1}", exact=True).click()
        screen.page.get_by_role("menuitem", name=name, exact=True).click()

    shows("One 🙂 two.", "Three.", "Four.")
    rows.nth(0).get_by_role("button", name="Arrange part 1").click()
    expect(screen.page.get_by_role("menuitem", name="Move up")).to_be_disabled()
    screen.page.keyboard.press("Escape")
    text = rows.nth(0).get_by_label("Text of part 1")
    text.evaluate("box => box.setSelectionRange(0, 0)")
    press(0, "Split at cursor")
    expect(rows.nth(0)).to_contain_text("First put the cursor between two words")
    text.evaluate("box => { box.focus(); box.setSelectionRange(7, 7); }")
    press(0, "Split at cursor")
    shows("One 🙂", "two.", "Three.", "Four.")
    text.fill("One 🙂 and")  # not sent yet: the next button sends it
    press(0, "Merge with next")
    shows("One 🙂 and two.", "Three.", "Four.")
    press(0, "Insert below")
    add_new_part(screen, rows.nth(0))
    shows("One 🙂 and two.", "Between.", "Three.", "Four.")
    move_faster_than_the_studio_answers(screen, rows.nth(0).get_by_role("button", name="Part 1: drag"))
    shows("Between.", "Three.", "One 🙂 and two.", "Four.")
    rows.nth(2).get_by_role("button", name="Part 3: drag").press("ArrowUp")
    shows("Between.", "One 🙂 and two.", "Three.", "Four.")
    expect(rows.nth(1).get_by_role("button", name="Part 2: drag")).to_be_focused()  # the same key moves it again
    rows.nth(1).get_by_role("button", name="Part 2: drag").drag_to(rows.nth(3).locator(".long-facts"))
    shows("Between.", "Three.", "Four.", "One 🙂 and two.")
    rows.nth(3).get_by_role("button", name="Part 4: drag").drag_to(
        rows.nth(1).locator("textarea"), target_position={"x": 9, "y": 2}
    )
    shows("Between.", "One 🙂 and two.", "Three.", "Four.")
    press(2, "Delete")
    shows("Between.", "One 🙂 and two.", "Four.")
    expect(area.locator("#undo-toast")).to_contain_text("Part 3 deleted: Three.")
    expect(rows.nth(2).get_by_role("button", name="Arrange part 3")).to_be_focused()
    area.get_by_role("button", name="Undo").click()
    shows("Between.", "One 🙂 and two.", "Three.", "Four.")
    delete_while_typing(area, partial(press, 2, "Delete"))
    press(1, "Move down")
    shows("Between.", "Four.", "One 🙂 and two.")

    area.get_by_role("button", name="Close", exact=True).click()  # and no longer offers Undo
    expect(area.get_by_role("button", name="Undo")).to_have_count(0)
    replace_one(area)
    assert serious_violations(screen) == []
    area.get_by_role("button", name="Undo").click()
    shows("Between.", "Four.", "One 🙂 and two.")
    undo_all(area, studio)
    screen.page.set_viewport_size({"width": 390, "height": 844})
    assert screen.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def rename_what_another_renames(area: Locator, studio: Served) -> None:
    """Be told of the chapter's other title, keep what was typed, and then replace it."""
    titles = area.locator(".chapter-title")
    area.get_by_role("button", name="Rename chapter “Two”").click()
    field = area.get_by_role("textbox", name="Rename chapter “Two”")
    field.fill("Mine")
    with studio.client() as client:  # as somebody else does
        parts = f"/v1/projects/{area.page.url.rpartition('/')[2]}/parts"
        part = client.get(parts).json()["data"][2]["id"]
        assert client.patch(f"{parts}/{part}", json={"chapter": "Theirs", "chapter_before": "Two"}).is_success
    field.press("Enter")
    expect(area.locator("[data-part=told]")).to_contain_text('meanwhile: it is now "Theirs"')
    expect(titles).to_have_text(["One", "Theirs"])
    area.get_by_label("Find", exact=True).click()
    expect(field).to_have_value("Mine")
    area.page.once("dialog", lambda dialog: dialog.accept())
    area.page.reload()
    field = area.get_by_role("textbox", name="Rename chapter “Theirs”")
    expect(field).to_have_value("Mine")
    field.click()
    area.get_by_label("Find", exact=True).click()  # leaving the field does not replace theirs
    expect(area.locator("[data-part=told]")).to_contain_text('meanwhile: it is now "Theirs"')
    field.press("Enter")
    expect(titles).to_have_text(["One", "Mine"])


def rename_before_the_answer(area: Locator) -> None:
    """Rename a chapter twice while the first title is on its way, and again after an answer was lost."""
    held = list[Route]()
    area.page.route("**/v1/projects/*/parts/*", lambda route: held.append(route) if not held else route.continue_())
    for title in ("Sent", "Mine too"):
        area.get_by_role("button", name="Rename chapter “Mine”").click()
        area.get_by_role("textbox", name="Rename chapter “Mine”").fill(title)
        area.page.keyboard.press("Enter")
    held[0].continue_()
    expect(area.locator(".chapter-title")).to_have_text(["One", "Mine too"])
    expect(area.locator("#undo-toast")).to_contain_text("Chapter renamed to “Mine too”.")
    expect(area.locator("[data-part=told]")).to_have_text("")  # nobody else has changed it
    area.page.unroute_all()
    area.page.route("**/v1/projects/*/parts/*", lambda route: (route.fetch(), route.abort()), times=1)
    area.get_by_role("button", name="Rename chapter “Mine too”").click()
    field = area.get_by_role("textbox", name="Rename chapter “Mine too”")
    field.fill("Lost")
    area.page.keyboard.press("Enter")
    expect(area.locator(".chapter-title")).to_have_text(["One", "Lost"])
    expect(field).to_have_value("Lost")
    field.fill("Found")
    area.page.once("dialog", lambda dialog: dialog.accept())
    area.page.reload()
    expect(area.get_by_role("textbox", name="Rename chapter “Lost”")).to_have_value("Found")
    area.get_by_role("textbox", name="Rename chapter “Lost”").press("Enter")
    expect(area.locator(".chapter-title")).to_have_text(["One", "Found"])


def test_chapter_is_renamed_in_the_list_together_with_its_heading(studio: Served, open_page: Open) -> None:
    screen = open_page(studio).ready()
    area, press = area_of(screen), screen.page.keyboard.press
    import_file(area, table("text,chapter\nOne,One\nIt was late.,\nIt was early.,Two\n"))
    chapters, titles = area.get_by_role("list", name="Chapters"), area.locator(".chapter-title")
    first = chapters.get_by_role("button", name=re.compile("^One"))
    first.focus()
    press("F2")
    field = chapters.get_by_role("textbox", name="Rename chapter “One”")
    expect(field).to_be_focused()
    assert serious_violations(screen) == []
    field.fill(" ")
    press("Enter")
    expect(field).to_have_js_property("validationMessage", "A chapter needs a title.")
    press("Escape")
    expect(field).to_have_count(0)
    expect(first).to_be_focused()
    expect(titles).to_have_text(["One", "Two"])
    chapters.get_by_role("button", name="Rename chapter “One”").click()
    field.fill("The Beginning")
    press("Enter")
    expect(titles).to_have_text(["The Beginning", "Two"])
    show(area, "The Beginning", "It was late.", "It was early.")
    chapters.get_by_role("button", name="Rename chapter “Two”").click()
    chapters.get_by_role("textbox", name="Rename chapter “Two”").fill("The End")
    assert asks_before_leaving(screen.page)
    screen.page.route("**/v1/projects/*/parts/*", lambda route: route.abort())
    area.get_by_label("Find", exact=True).click()
    expect(area.locator("[data-part=told]")).to_contain_text("not responding")
    screen.page.unroute_all()
    screen.page.keyboard.type("late")
    expect(area.get_by_label("Find", exact=True)).to_have_value("late")  # the title comes back without the focus
    chapters.get_by_role("textbox", name="Rename chapter “Two”").click()
    area.get_by_label("Find", exact=True).click()  # leaving the field keeps the title
    expect(titles).to_have_text(["The Beginning", "The End"])
    expect(area.locator("#undo-toast")).to_contain_text("Chapter renamed to “The End”.")
    area.get_by_role("button", name="Undo").click()
    expect(titles).to_have_text(["The Beginning", "Two"])
    area.get_by_role("button", name="All projects").focus()
    press("Control+z")
    expect(titles).to_have_text(["One", "Two"])
    show(area, "One", "It was late.", "It was early.")
    rename_what_another_renames(area, studio)
    rename_before_the_answer(area)
    chapters.get_by_role("button", name="Rename chapter “One”").click()
    field.fill("The Start")
    with studio.client() as client:  # as somebody else does
        parts = f"/v1/projects/{screen.page.url.rpartition('/')[2]}/parts"
        assert client.delete(f"{parts}/{client.get(parts).json()['data'][0]['id']}").is_success
    expect(titles).to_have_text(["The Start", "Found"])
    assert serious_violations(screen) == []
