"""Writing the script: tags at the caret, a preview line, and a draft that outlives the page."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from engine import ModelCard
from tests.browser.screen import Held, Screen, go, posted
from tests.studio.fake_engine import with_card
from tests.studio.server import Served

Open = Callable[..., Screen]
Steer = Callable[..., Served]


def put_caret(screen: Screen, start: int, end: int | None = None) -> None:
    screen.script.evaluate(
        "(area, [from, to]) => { area.focus(); area.setSelectionRange(from, to); }", [start, end or start]
    )


def test_tags_are_inserted_at_the_caret_or_selection_by_click_or_keyboard(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    screen.script.fill("One two")
    put_caret(screen, 4, 7)
    screen.page.get_by_role("button", name="Insert the tag emphasis").click()
    expect(screen.script).to_have_value("One [emphasis] two")
    selected = screen.script.evaluate("(area) => area.value.slice(area.selectionStart, area.selectionEnd)")
    assert selected == "two"

    screen.script.fill("")
    screen.page.get_by_role("button", name="All tags").press("Enter")
    screen.page.keyboard.type("nostal")
    screen.page.keyboard.press("Enter")
    expect(screen.script).to_have_value("[nostalgic] ")
    screen.page.get_by_label("Find a tag, or write one of your own").fill("like a pirate")
    screen.page.keyboard.press("Enter")
    expect(screen.script).to_have_value("[nostalgic] [like a pirate] ")
    screen.page.get_by_label("Find a tag, or write one of your own").press("Escape")
    expect(screen.page.locator("#tag-panel")).to_be_hidden()
    expect(screen.page.get_by_role("button", name="All tags")).to_be_focused()

    line = screen.page.locator("#lint")
    screen.script.fill("[happy] Fifteen letters a second, so this takes three.")
    expect(line).to_have_text("54 characters · about 3 s · 1 tag")
    screen.script.fill("[hapy] Words")
    notes = line.get_by_role("status")
    expect(notes).to_contain_text("[hapy]: not a known tag")
    note = notes.locator("span").element_handle()
    screen.script.press_sequentially("more")
    expect(line).to_contain_text("16 characters")
    assert note.is_visible(), "what has not changed is not read aloud again"
    screen.script.fill("[happy Words")
    expect(line).to_contain_text("A tag is not closed")
    screen.script.fill("[happy]")
    expect(line).to_contain_text("no words to say")
    screen.script.fill("x" * 16388)
    expect(line).to_contain_text("4 characters too many")
    screen.script.fill("word " * 60)
    screen.cut_after(5)
    expect(line).to_contain_text("Probably longer than 5 s")

    screen.cut_after(2)
    screen.script.fill("One. Two.")
    put_caret(screen, 4)
    screen.page.get_by_role("button", name="Insert the tag whispering").click()
    expect(screen.script).to_have_value("One. [whispering] Two.")
    expect(screen.script).to_be_focused()
    with screen.page.expect_request("**/v1/audio/speech") as request:
        screen.script.press("Control+Enter")
    assert posted(request.value)["input"] == "One. [whispering] Two."


def test_reuse_and_tags_in_the_script_can_be_undone(steered: Steer, open_page: Open) -> None:
    screen = open_page(steered()).ready()
    page = screen.page
    first = "Hello\n\nfrom\n<b> &amp; first.\n"
    screen.script.fill(first)
    screen.speak.click()
    expect(screen.takes).to_have_count(1)
    screen.until_over()
    reuse = screen.takes.get_by_role("button", name="Reuse")
    replaced = page.get_by_text("Script replaced.")

    screen.script.fill("")
    screen.script.press_sequentially("A second")
    put_caret(screen, 1)
    page.get_by_role("button", name="Insert the tag emphasis").click()
    expect(screen.script).to_have_value("A [emphasis] second")
    screen.script.evaluate("(area) => area.addEventListener('input', () => (window.inputs = (window.inputs ?? 0) + 1))")
    reuse.click()  # at once: line by line, a long script would take many seconds
    expect(screen.script).to_have_value(first)
    expect(replaced).to_be_visible()
    page.wait_for_function("(first) => window.studio.fields.values.text === first && window.inputs === 1", arg=first)
    assert screen.script.evaluate("(area) => area.selectionStart === area.value.length"), "the caret is at the end"
    screen.script.press("Control+z")
    expect(screen.script).to_have_value("A [emphasis] second")
    expect(replaced).to_be_hidden()
    screen.script.press("Control+z")
    expect(screen.script).to_have_value("A second")

    page.get_by_role("switch", name="Dialogue").click()
    screen.cut_after(7)
    page.route("**/v1/audio/voices", lambda route: route.fulfill(status=503), times=1)
    reuse.click()
    expect(screen.script).to_have_value(first)
    page.locator("#undo-toast").get_by_role("button", name="Undo").click()
    expect(screen.script).to_have_value("A second")
    expect(page.get_by_role("switch", name="Dialogue")).to_be_checked()
    page.wait_for_function(
        "window.studio.fields.values.cutAfter === 7 && window.studio.fields.values.text === 'A second'"
    )
    with page.expect_request("**/v1/audio/speech") as request:
        screen.speak.click()
    assert posted(request.value)["input"] == "A second"


def test_long_script_becomes_a_project_and_dropped_files_open_in_the_matching_area(
    steered: Steer, open_page: Open
) -> None:
    screen = open_page(steered()).ready()
    page = screen.page
    drop = """([name, type, words, ...others]) => {
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File([typeof words === "string" ? words : new Uint8Array(words)], name, { type }));
        for (const other of others) dataTransfer.items.add(new File(["x"], other));
        const told = { bubbles: true, cancelable: true, dataTransfer };
        document.querySelector("#script textarea").dispatchEvent(new DragEvent("drop", told));
    }"""
    page.evaluate(drop, ["notes.md", "text/markdown", list("Café words.".encode("cp1252")), "more.md"])
    expect(screen.script).to_have_value("Café words.")
    expect(page.locator("#undo-toast")).to_contain_text("Script replaced. Only “notes.md” was taken")
    page.locator("#undo-toast").get_by_role("button", name="Undo").click()
    expect(screen.script).to_have_value(re.compile("^Hello"))
    page.evaluate(drop, ["sheet.xlsx", "application/vnd.ms-excel", "x"])
    expect(screen.card).to_contain_text("sheet.xlsx cannot be used here.")

    make = page.get_by_role("button", name="Create a project from it")
    expect(make).to_be_hidden()
    screen.script.fill("Many words. " * 1400)
    make.click()
    area = page.get_by_role("region", name="Projects")
    expect(area.locator("[data-part=import-sum]")).to_contain_text("2,800 words")
    go(page, "Studio")
    page.evaluate(drop, ["A book.csv", "text/csv", "text\nOne row.\n"])
    expect(area.get_by_label("Title", exact=True)).to_have_value("A book")
    go(page, "Studio")
    page.evaluate(drop, ["voice.wav", "audio/wav", "no sound"])
    expect(page.get_by_role("region", name="New voice")).to_contain_text("voice.wav")


def test_draft_and_settings_survive_a_reload_and_stay_private(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    screen.script.fill("My draft")
    screen.cut_after(7)
    screen.page.get_by_label("Choose a voice").click()
    screen.page.get_by_role("option", name="Bert").click()
    screen.page.wait_for_function(
        "() => { const kept = JSON.parse(sessionStorage['voice-studio-/:1'] ?? '{}');"
        " return kept.text === 'My draft' && kept.voice === 'bert' && kept.cutAfter === 7; }"
    )
    expect(open_page(served).ready().script).not_to_have_value("My draft")
    seeds = area_compare(screen.page).get_by_label("Seed of row 1")
    go(screen.page, "Compare")
    area_compare(screen.page).get_by_role("button", name="Settings", exact=True).click()
    seeds.fill("1234")
    go(screen.page, "Studio")
    with screen.page.context.new_page() as tab:  # it starts with this draft, then keeps its own
        tab.goto(served.url)
        tab.wait_for_selector("body[data-studio=ready]")
        script = tab.get_by_role("textbox", name="Script", exact=True)
        expect(script).to_have_value("My draft")
        script.fill("Another draft")
        tab.wait_for_function("() => sessionStorage['voice-studio-/:1']?.includes('Another draft')")
        go(tab, "Compare")
        area_compare(tab).get_by_role("button", name="Auditions").click()
    screen.script.fill("My draft!")
    screen.page.reload()  # before Gradio has reported the last keys
    screen.page.wait_for_selector("body[data-studio=ready]")
    expect(screen.script).to_have_value("My draft!")
    expect(screen.page.get_by_label("Choose a voice")).to_have_value("Bert")
    go(screen.page, "Compare")
    expect(seeds).to_have_value("1234")
    go(screen.page, "Studio")
    with screen.page.expect_request("**/v1/audio/speech") as request:
        screen.speak.click()
    sent = posted(request.value)
    assert (sent["input"], sent["voice"], sent["max_new_tokens"]) == ("My draft!", "bert", 151)
    draft_outlives_a_start_without_voices(screen)
    screen.reopen_with({"voice": "gone", "text": "My draft"})  # a voice that is gone falls back to the default
    expect(screen.script).to_have_value("My draft")
    expect(screen.page.get_by_label("Choose a voice")).to_have_value("Anna")


def area_compare(page: Page) -> Locator:
    return page.get_by_role("region", name="Compare", exact=True)


def draft_outlives_a_start_without_voices(screen: Screen) -> None:
    """The request for the voices breaks, and later is slow: the page shows the draft, or what is typed meanwhile."""
    page, voices = screen.page, "**/v1/audio/voices"
    page.route(voices, lambda route: route.abort())
    page.route(voices, lambda route: route.fulfill(status=503), times=2)  # first: the library is busy
    page.reload()
    page.wait_for_selector("body[data-studio=ready]")
    expect(screen.script).to_have_value("My draft!")
    screen.script.press("End")
    screen.script.press_sequentially("!")
    page.wait_for_function("() => sessionStorage['voice-studio-/:1']?.includes('My draft!!')")
    page.unroute_all()
    expect(page.get_by_label("Choose a voice")).to_have_value("Bert")

    page.evaluate("document.activeElement.blur()")
    held = Held(page, voices)
    page.reload(wait_until="commit")
    held.wait_for(1)
    expect(screen.script).to_have_value("My draft!!")
    screen.script.fill("Typed early")
    held.answer_all()
    page.wait_for_selector("body[data-studio=ready]")
    expect(page.get_by_label("Choose a voice")).to_have_value("Bert")
    expect(screen.script).to_have_value("Typed early")


def test_readings_tags_and_languages_of_the_model_are_shown_before_speaking(steered: Steer, open_page: Open) -> None:
    studio = steered(with_card(ModelCard(languages=("en",), tags=("whisper",), normalize=True)))
    engine = studio.app.state.studio.speech.host.engine()
    screen = open_page(studio).ready()
    line = screen.page.locator("#reading")
    screen.script.fill("Meet me at 5 pm.")
    expect(line).to_contain_text("Will be read as: Meet me at five PM.")
    expect(line.locator("strong")).to_have_text(" five PM.")
    screen.script.fill("Meet me.")
    expect(line).to_be_hidden()
    screen.script.fill("Meet me at 6 pm.")
    screen.page.get_by_role("button", name="Speak as written").click()
    expect(line).to_contain_text("spoken as written")
    screen.speak.click()
    expect(screen.takes).to_have_count(1)
    screen.until_over()
    screen.page.get_by_role("button", name="Read them as words").click()
    screen.page.get_by_role("button", name="Edit these words").click()
    expect(screen.script).to_have_value("Meet me at six PM.")
    screen.script.press("Control+z")
    expect(screen.script).to_have_value("Meet me at 6 pm.")
    screen.script.press("Control+Shift+z")
    expect(screen.script).to_have_value("Meet me at six PM.")
    expect(line).to_be_hidden()
    screen.speak.click()
    expect(screen.takes).to_have_count(2)
    assert [utterance.text for utterance in engine.utterances if "Meet" in utterance.text] == [
        "Meet me at 6 pm.",
        "Meet me at six PM.",
    ]

    lint = screen.page.locator("#lint")
    screen.script.fill("")
    screen.page.get_by_role("button", name="Insert the tag whisper", exact=True).click()
    screen.script.press_sequentially("[excited] Das ist nicht von mir.")
    expect(lint).to_contain_text("This model does not know [excited]")
    expect(lint).not_to_contain_text("[whisper]")
    expect(lint).to_contain_text("This model speaks English; this text looks like German.")
    screen.page.get_by_role("button", name="All tags").click()
    expect(screen.page.get_by_role("heading", name="Other models only")).to_be_visible()
    screen.page.get_by_label("Find a tag, or write one of your own").press("Escape")
    screen.script.fill("😀🎉 ***")
    expect(lint).to_contain_text("no letters or numbers")
