"""The files of a project on the page: mastering, credits, samples, and the menu of downloads."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Locator, Route, expect

from tests.browser.projects.test_longform import area_of, downloaded, import_file, table
from tests.browser.screen import Screen
from tests.browser.test_looks import serious_violations
from tests.studio.documents import epub, page, png
from tests.studio.server import Served

Open = Callable[..., Screen]


def test_credits_become_parts_refused_templates_stay_and_samples_cover_the_chosen_parts(
    studio: Served, open_page: Open
) -> None:
    screen = open_page(studio).ready()
    area = area_of(screen)
    import_file(area, table("text,chapter\nOne.,First\nTwo.,\n"))
    area.get_by_role("button", name="Files").click()
    opening = area.get_by_label("Opening credits")
    opening.fill("{title}. By {autor}.")
    opening.blur()
    expect(area.locator("[data-part=told]")).to_contain_text("opening_credits contains {autor}")
    expect(opening).to_have_value("{title}. By {autor}.")
    opening.fill("{title}. By {author}.")
    area.get_by_role("textbox", name="Narrator").fill("Zoë")
    area.get_by_label("MP3 quality").select_option("192 kbit/s")
    author = area.locator("[data-panel=files]").get_by_label("Author")
    author.fill("Ann")
    author.blur()
    area.get_by_label("Read chapter titles aloud").uncheck()
    area.get_by_role("button", name="Parts", exact=True).click()
    expect(area.get_by_label("Text of part 1")).to_have_value("My table. By Ann.")
    area.get_by_role("button", name="Speak all parts").click()
    expect(area.locator("[data-part=state]")).to_contain_text("3 of 3 parts spoken")
    area.get_by_role("button", name="Files").click()
    area.get_by_label("From part").fill("2")
    area.get_by_label("To part").fill("3")
    with screen.page.expect_download() as saving:
        area.get_by_role("button", name="Download sample").click()
    assert saving.value.suggested_filename == "My table sample.mp3"
    area.get_by_label("From part").fill("3")
    area.get_by_label("To part").fill("2")
    area.get_by_role("button", name="Download sample").click()
    expect(area.locator("[data-part=told]")).to_have_text("Last must not be before first")
    area.get_by_label("Closing credits").fill("By {autor}.")
    screen.page.on("dialog", lambda dialog: dialog.accept())
    screen.page.reload()
    area.get_by_role("button", name="Files").click()
    expect(area.get_by_label("Closing credits")).to_have_value("By {autor}.")
    expect(area.locator("[data-part=told]")).to_contain_text("closing_credits contains {autor}")
    expect(area.get_by_label("MP3 quality")).to_have_value("192")
    expect(area.get_by_role("textbox", name="Narrator")).to_have_value("Zoë")
    expect(area.get_by_label("Read chapter titles aloud")).not_to_be_checked()
    assert serious_violations(screen) == []
    screen.page.set_viewport_size({"width": 390, "height": 844})
    area.get_by_role("button", name="Download", exact=True).click()
    expect(screen.page.get_by_role("menuitem", name="Zip of the parts")).to_be_in_viewport()
    assert screen.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert serious_violations(screen) == []


def test_player_shows_the_new_part_number_after_credits_are_added(studio: Served, open_page: Open) -> None:
    screen = open_page(studio).ready()
    area = area_of(screen)
    import_file(area, table("text,voice\nOne.,anna\nTwo.,anna\n"))
    area.get_by_role("button", name="Speak all parts").click()
    expect(area.locator("[data-part=state]")).to_contain_text("2 of 2 parts spoken")
    area.get_by_role("button", name="Play part 2").click()
    status = screen.page.locator(".dock-status")
    expect(status).to_have_text("My table, part 2 of 2")
    area.get_by_role("button", name="Files").click()
    opening = area.get_by_label("Opening credits")
    opening.fill("{title}.")
    opening.blur()
    expect(status).to_have_text("My table, part 3 of 3")


def test_project_files_follow_their_settings_and_one_sentence_is_regenerated(studio: Served, open_page: Open) -> None:
    screen = open_page(studio).ready()
    area = area_of(screen)
    book = epub(
        {"a.xhtml": page("<h1>One</h1><p>Hello you.</p>")}, "A Book", author=("Ann",), language="en", cover=png()
    )
    import_file(area, {"name": "book.epub", "mimeType": "application/epub+zip", "buffer": book})
    area.get_by_role("button", name="Speak all parts").click()
    expect(area.locator("[data-part=state]")).to_contain_text("2 of 2 parts spoken")
    area.get_by_role("button", name="Files").click()
    expect(area.locator("[data-panel=files]").get_by_label("Author")).to_have_value("Ann")
    expect(area.get_by_role("img", name="Cover")).to_be_visible()
    mend_what_it_lacks(screen, area)
    for name, file_name in (("MP3 by chapter", "A Book mp3.zip"), ("EPUB to read along", "A Book.epub")):
        assert downloaded(screen, area, name) == file_name
    make_a_feed_and_revoke_it(screen, area)
    area.get_by_role("button", name="All projects").click()

    import_file(area, table("text,voice\n🙂 One two. Three four. Five.,anna\n"))
    row = area.locator(".long-parts > li")
    menu, again = (
        row.get_by_role("button", name="Arrange part 1"),
        screen.page.get_by_role("menuitem", name="Speak sentence again"),
    )
    menu.click()
    expect(again).to_be_disabled()
    screen.page.keyboard.press("Escape")
    expect(menu).to_be_focused()
    area.get_by_role("button", name="Speak all parts").click()
    expect(row).to_contain_text("Done")
    menu.click()
    again.click()
    expect(row).to_contain_text("First put the cursor in the sentence")
    row.get_by_label("Text of part 1").evaluate("box => { box.focus(); box.setSelectionRange(14, 18); }")
    held: list[Route] = []
    screen.page.route("**/regenerate", lambda route: held.append(route))
    menu.click()
    with screen.page.expect_request("**/regenerate") as mending:
        again.click()
    sent = mending.value.post_data_json or {}
    assert (sent["start"], sent["end"]) == (13, 17)  # an emoji is one character
    expect(row).to_contain_text("Speaking the sentence …")
    menu.click()
    expect(again).to_be_disabled()
    screen.page.keyboard.press("Escape")
    held[0].continue_()
    take = row.get_by_label("Take of part 1")
    expect(take.locator("option")).to_have_count(2)
    expect(row).to_contain_text("Done")
    new = take.input_value()
    expect(area.locator("#undo-toast")).to_contain_text("Part 1 changed.")
    menu.press("Control+z")
    expect(take).not_to_have_value(new)
    assert serious_violations(screen) == []


def mend_what_it_lacks(screen: Screen, area: Locator) -> None:
    lacks = area.get_by_role("list", name="Ready to publish?")
    lacks.get_by_role("button", name="no loudness standard is chosen").press("Enter")
    expect(area.get_by_label("Loudness")).to_be_focused()
    area.get_by_label("Loudness").select_option("podcast")
    expect(lacks).to_contain_text("the cover has 8 × 8 pixels; a square of at least 1,400 is expected")
    lacks.get_by_role("button", name="peaks, loudness and silences are not measured").press("Enter")
    expect(area.get_by_role("button", name="Measure loudness")).to_be_focused()
    screen.page.keyboard.press("Enter")
    expect(area.locator("[data-part=measured]")).to_contain_text("In the files: −16.")
    expect(lacks).not_to_contain_text("measured")
    area.get_by_label("Choose a cover").set_input_files(
        {"name": "x.png", "mimeType": "image/png", "buffer": b"no picture"}
    )
    expect(area.locator("[data-part=told]")).to_contain_text("not a readable JPEG or PNG")
    assert not serious_violations(screen)
    drawing = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20"><circle r="9"/></svg>'
    area.get_by_label("Choose a cover").set_input_files(
        {"name": "x.svg", "mimeType": "image/svg+xml", "buffer": drawing}
    )
    expect(lacks).not_to_contain_text("cover")  # it was drawn large enough
    area.get_by_role("button", name="Remove the cover").click()
    expect(area.get_by_role("img", name="Cover")).to_be_hidden()
    area.get_by_role("button", name="Undo").click()
    expect(area.get_by_role("img", name="Cover")).to_be_visible()


def make_a_feed_and_revoke_it(screen: Screen, area: Locator) -> None:
    button = area.get_by_role("button", name="Podcast feed")
    button.focus()
    screen.page.keyboard.press("Enter")
    dialog = screen.page.get_by_role("dialog", name="Podcast feed")
    dialog.get_by_label("Expires after").select_option("30 days")
    dialog.get_by_role("button", name="Make an address").click()
    expect(dialog.get_by_role("button", name="Copy")).to_be_focused()
    link = dialog.get_by_label("Addresses of this feed").get_by_role("link")
    expect(dialog.get_by_label("Episodes").get_by_role("listitem")).to_have_text("One · 1 s")
    expect(dialog).to_contain_text("This address works on this machine only")
    feed = str(link.get_attribute("href"))
    assert screen.page.request.get(feed).headers["content-type"] == "application/rss+xml"
    assert serious_violations(screen) == []
    dialog.get_by_role("button", name="Revoke").click()  # the browser's question is dismissed
    expect(link).to_have_count(1)
    screen.page.once("dialog", lambda question: question.accept())
    dialog.get_by_role("button", name="Revoke").click()
    expect(link).to_have_count(0)
    expect(dialog.get_by_label("Episodes")).to_be_hidden()
    assert screen.page.request.get(feed).status == 404
    screen.page.keyboard.press("Escape")
    expect(button).to_be_focused()
