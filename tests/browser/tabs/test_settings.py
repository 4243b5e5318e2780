"""The Settings area: this browser's preferences, facts about the studio, and a file for reporting a fault."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from playwright.sync_api import Locator, expect

from tests.browser.screen import Held, Screen, asks_before_leaving, go, posted
from tests.browser.test_looks import serious_violations
from tests.studio.server import Served

Open = Callable[..., Screen]
PAPER = "getComputedStyle(document.body).backgroundColor"
LIGHT, DARK = "rgb(250, 249, 247)", "rgb(16, 19, 18)"


def expect_paper(screen: Screen, colour: str) -> None:
    screen.page.wait_for_function(f"{PAPER} === '{colour}'")


def open_settings(screen: Screen) -> None:
    go(screen.page, "Settings")
    expect(screen.page.locator("#area-settings dt").first).to_be_visible()


def test_preferences_apply_at_once_and_survive_a_reload(served: Served, open_page: Open) -> None:
    screen = open_page(served, color_scheme="light").ready()
    screen.page.route("**/v1/audio/voices", lambda route: route.abort(), times=1)  # the rest of the studio answers
    open_settings(screen)
    expect_paper(screen, LIGHT)
    screen.page.get_by_label("Theme").select_option("Dark")
    screen.page.get_by_label("Default voice").select_option("Bert")
    screen.page.get_by_label("Playback buffer").select_option("0.5 s")
    screen.page.locator("#area-settings [name=volume]").fill("0.25")
    expect_paper(screen, DARK)
    screen.page.reload()
    screen.page.wait_for_selector("body[data-studio=ready]")
    expect_paper(screen, DARK)
    expect(screen.page.locator("#dock [data-part=volume]")).to_have_value("0.25")
    assert screen.page.evaluate("window.studio.player.fixedWait") == 0.5
    expect(screen.page.get_by_label("Choose a voice")).to_have_value("Bert")
    go(screen.page, "Studio")
    screen.cut_after(2)
    screen.speak.click()
    screen.until_over()
    with screen.page.expect_download() as saving:
        screen.takes.get_by_role("button", name="Download").click()
        screen.page.get_by_role("menuitem", name="FLAC").click()
    assert saving.value.path().read_bytes()[:4] == b"fLaC"
    open_settings(screen)
    screen.page.get_by_role("button", name="Reset to defaults").click()
    expect_paper(screen, LIGHT)
    expect(screen.page.get_by_label("Theme")).to_have_value("system")


def test_first_key_sees_its_adopted_items(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    answer = {"adopted": {"takes": 12, "projects": 1, "voices": 2}}
    screen.page.route("**/v1/settings", lambda route: route.fulfill(json=route.fetch().json() | answer))
    open_settings(screen)
    line = "12 takes, one project and 2 voices created before this studio had keys"
    expect(screen.page.locator("#area-settings").get_by_text(line)).to_be_visible()


def test_theme_follows_the_system_unless_one_is_selected(served: Served, open_page: Open) -> None:
    screen = open_page(served, color_scheme="dark").ready()
    expect_paper(screen, DARK)
    screen.page.emulate_media(color_scheme="light")
    expect_paper(screen, LIGHT)
    open_settings(screen)
    screen.page.get_by_label("Theme").select_option("Light")
    screen.page.emulate_media(color_scheme="dark")
    screen.page.wait_for_function("matchMedia('(prefers-color-scheme: dark)').matches")
    expect_paper(screen, LIGHT)


def test_changes_of_one_tab_appear_in_the_others(served: Served, open_page: Open) -> None:
    screen = open_page(served, color_scheme="light").ready()
    open_settings(screen)
    other = screen.page.context.new_page()
    other.goto(f"{served.url}/#settings")
    other.wait_for_selector("body[data-studio=ready]")
    screen.page.get_by_label("Theme").select_option("Dark")
    expect(other.get_by_label("Theme")).to_have_value("dark")
    expect(other.locator("body.dark")).to_have_count(1)
    other.locator("#area-settings [name=volume]").fill("0.25")
    expect(screen.page.locator("#dock [data-part=volume]")).to_have_value("0.25")
    screen.page.reload()
    screen.page.wait_for_selector("body[data-studio=ready]")
    expect_paper(screen, DARK)
    expect(screen.page.locator("#dock [data-part=volume]")).to_have_value("0.25")


def test_preferences_are_shown_while_the_studio_does_not_answer(served: Served, open_page: Open) -> None:
    screen = open_page(served, color_scheme="light").ready()
    screen.page.evaluate("studio.preferences.set({ theme: 'dark', volume: 0.25 })")
    screen.page.reload()
    screen.page.wait_for_selector("body[data-studio=ready]")
    screen.page.context.set_offline(True)
    go(screen.page, "Settings")
    expect(screen.page.get_by_label("Theme")).to_have_value("dark")
    expect(screen.page.locator("#area-settings [name=volume]")).to_have_value("0.25")


def change_what_another_changes(area: Locator, studio: Served) -> None:
    """Be told of the other pronunciation, keep what was typed, and then replace it."""
    said = area.get_by_label("Pronunciation of “GIF”")
    said.fill("yif")
    with studio.client() as client:  # as somebody else does
        ids = {one["phrase"]: one["id"] for one in client.get("/v1/pronunciations").json()["data"]}
        assert client.patch(f"/v1/pronunciations/{ids['GIF']}", json={"said": "guif"}).is_success
    said.press("Enter")
    expect(area.locator(".pron-said")).to_contain_text('changed said meanwhile: it is now "guif"')
    expect(said).to_have_value("yif")
    said.fill("yiff")
    said.press("Enter")
    expect(area.locator(".pron-said")).to_be_hidden()


def pronounce_for_one_voice(screen: Screen) -> None:
    """Add an entry, and fail to change it: the change is still there after a search and another voice's dictionary."""
    go(screen.page, "Voices")
    screen.page.get_by_role("button", name=re.compile(r"^Anna\b")).click()
    inspector = screen.page.locator("#inspector")
    inspector.get_by_text("Pronunciation", exact=True).click()
    inspector.get_by_label("Word or phrase").fill("gif")
    inspector.get_by_label("Pronounced as").fill("jeef")
    inspector.get_by_role("button", name="Add", exact=True).click()
    expect(inspector.get_by_label("Word “gif”")).to_be_visible()
    said = inspector.get_by_label("Pronunciation of “gif”")
    screen.page.route("**/v1/pronunciations/*", lambda route: route.abort())
    said.fill("jeff")
    said.press("Enter")
    expect(inspector.locator(".pron-said")).to_contain_text("not responding")
    screen.page.unroute_all()
    search = inspector.get_by_label("Find a word in the dictionary", exact=True)  # hidden in a short dictionary
    for words in ("other", ""):
        search.evaluate("(f, words) => { f.value = words; f.dispatchEvent(new Event('input')); }", words)
    for voice in ("Bert", "Anna"):
        screen.page.get_by_role("button", name=re.compile(rf"^{voice}\b")).click()
        expect(inspector.get_by_role("heading", name=voice)).to_be_visible()
        inspector.get_by_text("Pronunciation", exact=True).click()
    expect(said).to_have_value("jeff")
    said.fill("jeef")
    said.press("Enter")
    expect(inspector.locator(".pron-said")).to_be_hidden()


def speak_by_dictionary(screen: Screen, studio: Served) -> None:
    """Words are spoken as in the dictionary, and can be played."""
    area = screen.page.locator("#area-settings")
    area.get_by_text("Dictionary", exact=True).click()
    for phrase, reading in (("GIF", "jif"), ("gif", "x")):
        area.get_by_label("Word or phrase").fill(phrase)
        area.get_by_label("Pronounced as").fill(reading)
        area.get_by_role("button", name="Add", exact=True).click()
        expect(area.get_by_label("Word “GIF”")).to_have_value("GIF")
    expect(area.locator(".pron-said")).to_contain_text("'gif' already has an entry here")
    with screen.page.expect_request("**/v1/audio/speech") as spoken:
        area.get_by_role("button", name="Hear “GIF”").click()
    assert posted(spoken.value)["input"] == "jif"
    area.get_by_label("Import a dictionary").set_input_files(
        {"name": "x.csv", "mimeType": "text/csv", "buffer": b"phrase,said\nNguyen,win\nSQL,\n"}
    )
    expect(area.locator(".pron-said")).to_contain_text("Line 3: said is blank")
    area.get_by_label("Word or phrase").fill("Anh")
    added = Held(screen.page, re.compile("/v1/pronunciations$"))  # and not before another entry is being edited
    area.get_by_role("button", name="Add", exact=True).click()
    area.get_by_label("Word or phrase").fill("Bao")  # while the one before is being added
    other = area.get_by_label("Pronunciation of “Anh”")
    held = Held(screen.page, "**/v1/pronunciations/*")
    area.get_by_label("Pronunciation of “GIF”").fill("ghif")
    for request in (0, 1):  # the entry, then the list
        added.answer(request)
    other.press_sequentially("ee")  # while the other row is being saved
    held.answer(0)
    added.answer(2)
    expect(area.locator(".pron-said")).to_be_hidden()
    expect(area.get_by_label("Word or phrase")).to_have_value("Bao")
    expect(other).to_be_focused()
    expect(other).to_have_value(re.compile("ee"))
    assert asks_before_leaving(screen.page)
    screen.page.unroute_all()
    assert serious_violations(screen) == []
    screen.page.route("**/v1/pronunciations/*", lambda route: route.abort())
    exact = area.locator(".pron-case").first
    exact.click()
    expect(exact.get_by_role("checkbox")).not_to_be_checked()  # it could not be saved
    for _ in range(2):  # closed, which saves the entry, and opened again
        area.get_by_text("Dictionary", exact=True).click()
    expect(other).to_have_value(re.compile("ee"))
    screen.page.unroute_all()
    go(screen.page, "Studio")
    screen.script.fill("A GIF.")
    expect(screen.page.locator("#reading")).to_contain_text("Will be read as: A ghif.")
    pronounce_for_one_voice(screen)
    go(screen.page, "Studio")
    expect(screen.page.locator("#reading")).to_contain_text("Will be read as: A jeef.")
    open_settings(screen)
    change_what_another_changes(area, studio)
    area.get_by_role("button", name="Delete “GIF”").click()
    expect(area.get_by_label("Word “GIF”")).to_have_count(0)


def test_studio_facts_can_be_read_and_saved_and_the_dictionary_edited(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    open_settings(screen)
    facts = screen.page.locator("#area-settings [data-part=facts]")
    expect(facts).to_contain_text("2 at once")
    expect(facts).to_contain_text("2 voices and")
    expect(facts).to_contain_text("gradio 6.")
    screen.page.get_by_text("All settings").click()
    row = screen.page.locator("#area-settings tbody tr", has=screen.page.get_by_text("STUDIO_MAX_ROWS", exact=True))
    expect(row.locator("td")).to_have_text(["STUDIO_MAX_ROWS", "2", "environment"])
    expect(screen.page.get_by_role("button", name="Sign out")).to_be_hidden()
    with screen.page.expect_download() as saving:
        screen.page.get_by_role("button", name="Save a diagnostics file").click()
    file = json.loads(saving.value.path().read_text("utf-8"))
    assert file["status"]["state"] == "ready" and file["engine"]["max_rows"] == 2
    speak_by_dictionary(screen, served)
