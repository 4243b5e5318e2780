"""A document on the page before its import: choice of chapters, omitted content, and notes."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import FilePayload, Locator, expect

from tests.browser.projects.test_longform import area_of, import_file, import_it, table
from tests.browser.screen import Held, Screen, asks_before_leaving, go
from tests.browser.test_looks import serious_violations
from tests.studio.documents import epub, page
from tests.studio.server import Served

Open = Callable[..., Screen]

WATCH_THE_SHELF = """() => {
    const shelf = document.querySelector("#area-longform [data-part=shelf]");
    window.shelf = [];
    const seen = (changes) => window.shelf.push(...changes.filter(({ target }) => !target.hidden).map(() => "shown"));
    new MutationObserver(seen).observe(shelf, { attributes: true, attributeFilter: ["hidden"] });
}"""


def test_lines_are_counted_in_the_selected_chapters(studio: Served, open_page: Open) -> None:
    screen = open_page(studio).ready()
    area = area_of(screen)
    dialogue = "<p>“Come in,” said {0}.</p><p>“It is late,” said {0}.</p>"
    speakers = {"One": "Ann", "Two": "Ann", "Three": "Bert"}
    book = epub(
        {f"{title}.xhtml": page(f"<h1>{title}</h1>{dialogue.format(name)}") for title, name in speakers.items()}
    )
    file: FilePayload = {"name": "late.epub", "mimeType": "application/epub+zip", "buffer": book}
    area.get_by_label("Choose a document").set_input_files(file)
    area.get_by_label("Find the speakers").check()
    names, every = area.locator("[data-part=people] .cast-list > li"), area.locator("[data-part=import-all]")
    expect(names.locator(".cast-figures")).to_have_text(["4 lines", "2 lines"])
    expect(area.get_by_text("Read footnotes and endnotes")).to_be_hidden()
    area.get_by_label("One", exact=False).uncheck()
    expect(names.locator(".cast-figures")).to_have_text(["2 lines", "2 lines"])
    area.get_by_label("Three", exact=False).uncheck()
    expect(names.locator(".cast-figures")).to_have_text(["2 lines"])
    every.uncheck()
    every.check()
    expect(names.locator(".cast-figures")).to_have_text(["4 lines", "2 lines"])
    counting = Held(screen.page, "**/v1/projects/characters")
    area.get_by_label("One", exact=False).uncheck()
    counting.wait_for(1)
    area.get_by_label("Name of Bert").fill("Robert")
    area.get_by_label("Name of Bert").press("Enter")
    counting.answer(0)
    counting.answer(1)  # asked again with the new name
    expect(names.locator(".cast-figures")).to_have_text(["2 lines", "2 lines"])
    expect(area.get_by_label("Name of Robert")).to_have_value("Robert")
    assert asks_before_leaving(screen.page)


def test_pasted_text_and_its_preview_are_restored(studio: Served, open_page: Open) -> None:
    screen = open_page(studio).ready()
    area = area_of(screen)
    area.get_by_text("Or paste a text").click()
    text = area.get_by_label("Text of the project")
    text.fill("Once. Twice.")
    screen.page.wait_for_function("sessionStorage['voice-studio-/:pasted-1'] === '\"Once. Twice.\"'")
    screen.page.reload()
    expect(text).to_have_value("Once. Twice.")
    area.get_by_role("button", name="Create a project").click()
    area.get_by_label("Author", exact=True).first.fill("Somebody")
    go(screen.page, "History")
    screen.page.go_back()
    expect(area.get_by_label("Author", exact=True).first).to_have_value("Somebody")
    with screen.page.expect_event("dialog") as asked:
        screen.page.evaluate("() => void window.studio.bringBook('Another text.')")
    assert "discard" in asked.value.message.lower()
    asked.value.dismiss()
    author = area.get_by_label("Author", exact=True).first
    expect(author).to_have_value("Somebody")
    making = Held(screen.page, "**/v1/projects", "POST")
    screen.page.evaluate(WATCH_THE_SHELF)
    area.get_by_role("button", name="Import", exact=True).click()
    making.wait_for(1)
    author.focus()
    expect(author).not_to_be_focused()  # what is typed now would be lost
    making.answer_all()
    expect(area.get_by_label("Title of the project")).to_be_visible()
    assert screen.page.evaluate("window.shelf") == [], "the list was shown between the document and its project"
    area.get_by_role("button", name="All projects").click()
    expect(text).to_have_value("")
    screen.page.reload()
    expect(text).to_be_hidden()
    expect(text).to_have_value("")
    area.get_by_text("Or paste a text").click()
    text.fill("Not imported yet.")
    import_file(area, table("text\nOne.\n"))
    area.get_by_role("button", name="All projects").click()
    expect(text).to_have_value("Not imported yet.")
    drop_two_files(screen, area)
    import_slowly_and_begin_another(screen, area, text)


def drop_two_files(screen: Screen, area: Locator) -> None:
    screen.page.evaluate(
        """() => {
            const dataTransfer = new DataTransfer();
            for (const name of ["one.txt", "two.txt"]) dataTransfer.items.add(new File(["Words."], name));
            const place = document.querySelector("#area-longform [data-part=drop]");
            place.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer }));
        }"""
    )
    expect(area.locator("#undo-toast")).to_contain_text("Only “one.txt” was taken")
    expect(area.get_by_label("Title", exact=True).first).to_have_value("one")
    area.get_by_role("button", name="Cancel", exact=True).click()


def import_slowly_and_begin_another(screen: Screen, area: Locator, text: Locator) -> None:
    """A preview that is left while its project is made does not close the next one, nor take the text of that."""
    making = Held(screen.page, "**/v1/projects", "POST")
    area.get_by_role("button", name="Create a project").click()
    area.get_by_role("button", name="Import", exact=True).click()
    making.wait_for(1)
    area.get_by_role("button", name="Cancel", exact=True).click()
    text.fill("Another text.")
    area.get_by_role("button", name="Create a project").click()
    author = area.get_by_label("Author", exact=True).first
    author.fill("Somebody else")
    making.answer(0)
    expect(author).to_have_value("Somebody else")
    expect(author).to_be_visible()
    expect(text).to_have_value("Another text.")


def test_book_is_imported_by_chapters_lists_omissions_and_includes_notes_on_request(
    studio: Served, open_page: Open
) -> None:
    screen = open_page(studio).ready()
    area = area_of(screen)
    body = "<h1>One</h1><p>A dog barked.</p><aside epub:type='footnote'><p>A terrier.</p></aside>"
    about = page("<h1>About the Author</h1><p>She lives by the sea.</p>")
    book = epub({"empty.xhtml": "", "a.xhtml": page(body), "z.xhtml": about}, title="Noted")
    file: FilePayload = {"name": "noted.epub", "mimeType": "application/epub+zip", "buffer": book}
    area.get_by_label("Choose a document").set_input_files(file)
    expect(area.get_by_label("Title", exact=True)).to_have_value("Noted")
    expect(area.get_by_label("About the Author")).not_to_be_checked()
    expect(area.locator("[data-part=import-sum]")).to_have_text("1 of 2 chapters · 4 words · about 1 s of audio")
    assert serious_violations(screen) == []
    area.get_by_label("Title", exact=True).fill("Mine")
    screen.page.route("**/v1/projects", lambda route: (route.fetch(), route.abort()), times=1)  # the answer is lost
    area.get_by_role("button", name="Import", exact=True).click()
    expect(area.locator("[data-part=said]")).to_have_text("The studio is not responding.")
    import_it(area)
    with studio.client() as client:
        assert [one["title"] for one in client.get("/v1/projects").json()["data"]].count("Mine") == 1
    expect(area.get_by_label("Title of the project")).to_have_value("Mine")
    rows = area.locator(".long-parts > li")
    expect(rows).to_have_count(2)
    left_out = area.locator("[data-part=skipped]")
    left_out.get_by_text("3 items skipped").click()
    expect(left_out.get_by_text("The page empty.xhtml is left out: it is empty.")).to_be_visible()
    expect(left_out.get_by_text("1 footnote or endnote is left out.")).to_be_visible()
    area.get_by_role("button", name="All projects").click()
    area.get_by_label("Choose a document").set_input_files(file)
    one = area.get_by_role("checkbox", name=re.compile("^One"))
    one.uncheck()
    area.get_by_label("About the Author").check()
    readings = Held(screen.page, "**/v1/projects/preview*", "POST")
    notes = area.get_by_label("Read footnotes and endnotes")
    notes.check()
    readings.wait_for(1)
    with screen.page.expect_event("requestfailed"):  # the document is not uploaded several times at once
        notes.uncheck()
    notes.check()
    readings.wait_for(3)
    area.get_by_label("Title", exact=True).fill("Mine")
    readings.answer_all()
    expect(area.locator("[data-part=import-skipped]")).to_contain_text("2 items skipped")
    screen.page.keyboard.type(" again")  # the blank presses no button that has taken the focus
    expect(area.get_by_label("Title", exact=True)).to_have_value("Mine again")
    expect(one).not_to_be_checked()
    expect(area.get_by_label("About the Author")).to_be_checked()
    assert asks_before_leaving(screen.page)
    one.check()
    area.get_by_label("About the Author").uncheck()
    import_it(area)
    expect(rows.nth(1).locator("textarea").first).to_have_value("A dog barked.\n\nA terrier.")
    left_out.get_by_text("2 items skipped").click()
    expect(left_out.get_by_text("footnote or endnote")).to_have_count(0)
