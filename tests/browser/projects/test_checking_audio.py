"""The check of a project's audio on the page: progress, spots by keys, regeneration, notes while listening."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from engine import EngineConfig
from studio.voices.recogniser import MODEL
from tests.browser.projects.test_longform import area_of, import_file, table
from tests.browser.screen import Held, Screen, asks_before_leaving
from tests.browser.test_looks import serious_violations
from tests.longform.script import RECOGNISER, scripted
from tests.studio.fake_engine import FakeEngine
from tests.studio.models.hub import serve_hub
from tests.studio.server import Served
from tests.studio.voices.whisper import write_model
from tests.waiting import wait_until

Open = Callable[..., Screen]
Steer = Callable[..., Served]


def test_doubtful_spots_are_played_regenerated_and_accepted_with_keys(
    steered: Steer, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = scripted(monkeypatch)
    screen = open_page(steered(transcriber=RECOGNISER)).ready()
    area, page = area_of(screen), screen.page
    import_file(area, table("text,voice\nOne two three.,anna\nThe end is near.,anna\nAll is well here.,anna\n"))
    area.get_by_role("button", name="Speak all parts").click()
    expect(area.locator("[data-part=state]")).to_contain_text("3 of 3 parts spoken")
    area.get_by_role("button", name="Check", exact=True).click()
    expect(area.get_by_text("A check has a speech recogniser transcribe every part")).to_be_visible()
    script.texts = ["one mango three", "the end is", "all is well here"]
    area.get_by_role("button", name="Check the audio").click()
    expect(area.locator(".proof")).to_contain_text("3 of 3 parts with audio checked")
    expect(area.locator(".proof")).to_contain_text("2 doubtful spots · 181.8 wrong words per 1,000")
    spots = area.get_by_role("list", name="Doubtful spots").get_by_role("listitem")
    expect(spots).to_have_count(2)
    expect(spots.nth(0)).to_contain_text("Part 2, 0:01.0 · Ends too early")
    expect(spots.nth(1).locator("mark")).to_have_text("two")
    expect(spots.nth(1)).to_contain_text("Other words · heard “mango”")
    assert serious_violations(screen) == []

    page.keyboard.press("a")  # the focus is not in the list
    expect(spots).to_have_count(1)
    expect(spots).to_be_focused()
    page.keyboard.press("Control+z")
    expect(spots).to_have_count(2)
    spots.nth(0).get_by_role("button", name="Accept").press("Enter")
    expect(spots).to_have_count(1)
    expect(spots).to_be_focused()
    page.keyboard.press("Control+z")
    expect(spots).to_have_count(2)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("k")
    expect(spots.nth(0)).to_be_focused()
    page.keyboard.press("j")
    expect(spots.nth(1)).to_be_focused()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press(" ")
    expect(spots.nth(1).get_by_role("button", name="Pause part 1")).to_be_visible()
    page.keyboard.press(" ")
    script.texts = ["one two three"]
    page.keyboard.press("r")
    expect(spots).to_have_count(1)
    expect(spots).to_be_focused()
    page.keyboard.press("a")
    expect(spots).to_have_count(0)
    expect(area.locator(".proof")).to_contain_text("no doubtful spots")
    page.get_by_role("button", name="Undo").press("Enter")
    expect(spots).to_have_count(1)

    note_while_listening(page, spots)
    page.keyboard.press("a")
    expect(spots).to_have_text([re.compile("Note: Too happy")])
    page.keyboard.press("Control+z")
    script.texts = ["the end is near"]
    spots.nth(1).get_by_role("button", name="Regenerate").press("Enter")
    expect(spots).to_have_count(1)
    another_tab_chooses_a_take_and_accepts_a_spot(page, spots)
    unsaved_note_returns_with_the_project(page, area)


def another_tab_chooses_a_take_and_accepts_a_spot(page: Page, spots: Locator) -> None:
    """The undo of a regeneration keeps a later take, and the list follows."""
    expect(spots).to_contain_text("Note: Too happy · on take 1, which is not chosen")
    expect(spots).to_be_focused()
    read = """async () => {
        const [{ id }] = (await (await fetch("/v1/projects?limit=1")).json()).data;
        const part = (await (await fetch(`/v1/projects/${id}/parts`)).json()).data[1];
        const [spot] = (await (await fetch(`/v1/projects/${id}/proof/spots`)).json()).data;
        return { id, part, spot };
    }"""
    send = """([path, method, body]) => fetch(path, {
        method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    }).then((answer) => answer.status)"""
    found = page.evaluate(read)
    project, part = f"/v1/projects/{found['id']}", found["part"]
    assert page.evaluate(send, [f"{project}/speak", "POST", {"parts": [part["id"]]}]) < 300
    # Not page.wait_for_function, which takes the promise of an async function for true.
    spoken = wait_until(
        lambda now: now["state"] == "done" and now["chosen"] != part["chosen"], lambda: page.evaluate(read)["part"]
    )
    page.keyboard.press("Control+z")
    expect(page.locator("#undo-toast")).to_contain_text("This can no longer be undone")
    assert page.evaluate(read)["part"]["chosen"] == spoken["chosen"]
    page.mouse.move(0, 0)  # a list under the pointer stays as it is
    for is_accepted in (True, False):
        spot = f"{project}/proof/spots/{found['spot']['id']}", "PATCH", {"accepted": is_accepted}
        assert page.evaluate(send, spot) == 200
        expect(spots).to_have_count(0 if is_accepted else 1)
    page.keyboard.press("a")
    expect(spots).to_have_count(0)
    assert page.evaluate(send, [*spot[:2], {"accepted": True}]) == 200
    page.keyboard.press("Control+z")
    expect(page.locator("#undo-toast")).to_contain_text("This can no longer be undone")
    expect(spots).to_have_count(0)


def note_while_listening(page: Page, spots: Locator) -> None:
    spots.nth(0).get_by_role("button", name="Play part 2").click()
    expect(spots.nth(0).get_by_role("button", name="Pause part 2")).to_be_visible()
    page.keyboard.press("m")
    field = page.get_by_role("textbox", name="Note for part 2")
    expect(field).to_be_focused()
    field.fill("Too happy")
    page.keyboard.press("Escape")
    expect(page.get_by_text("Not saved yet. Save the note")).to_be_visible()
    assert asks_before_leaving(page)
    page.keyboard.press("Enter")
    expect(field).to_be_hidden()
    expect(spots.nth(0)).to_contain_text("Note: Too happy")
    expect(spots.nth(1).locator(".proof-play")).to_be_focused()


def unsaved_note_returns_with_the_project(page: Page, area: Locator) -> None:
    page.keyboard.press("m")
    note = page.get_by_role("textbox", name="Note for part")
    note.fill("Too slow")
    area.get_by_role("button", name="All projects").click()
    expect(note).to_have_count(0)
    page.go_back()
    expect(note).to_have_value("Too slow")
    held = Held(page, "**/proof/notes", "POST")
    note.press("Enter")
    held.wait_for(1)
    note.fill("Too slow here")  # while the first words are being saved
    held.answer_all()
    expect(page.locator("#undo-toast")).to_contain_text("Note")
    expect(note).to_have_value("Too slow here")
    note.press("Enter")
    expect(note).to_be_hidden()
    page.go_back()
    page.go_forward()
    expect(area.get_by_role("button", name="Check", exact=True)).to_be_visible()
    expect(note).to_be_hidden()


def talkative(config: EngineConfig) -> FakeEngine:
    engine = FakeEngine(config)
    engine.frames_a_word = 40
    return engine


def test_audio_is_checked_without_words_until_a_recogniser_is_downloaded(
    steered: Steer, open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "base"
    write_model(weights, ["One."], 1.0)
    with serve_hub(weights, MODEL) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        screen = open_page(steered(talkative)).ready()
        area = area_of(screen)
        import_file(area, table("text,voice\nOne.,anna\n"))
        area.get_by_role("button", name="Speak all parts").press("Enter")
        expect(area.locator("[data-part=state]")).to_contain_text("1 of 1 part spoken")
        expect(area.get_by_role("button", name="Play all")).to_be_focused()
        area.get_by_role("button", name="Check", exact=True).click()
        expect(area.locator(".proof")).to_contain_text("No speech recogniser is set up here.")
        expect(area.get_by_text("A check lists what the sound of each part shows")).to_be_visible()
        assert serious_violations(screen) == []
        area.get_by_role("button", name="Check the audio").press("Enter")
        expect(area.locator(".proof")).to_contain_text("1 of 1 part with audio checked")
        expect(area.locator(".proof > [role=status]")).to_be_focused()  # not on the download, which Space would start
        screen.page.keyboard.press(" ")
        expect(area.get_by_role("button", name="Pause part 1").first).to_be_visible()
        expect(area.locator(".proof")).to_contain_text("by sound alone: words were not compared")
        expect(area.locator(".proof")).not_to_contain_text("wrong words")
        expect(area.get_by_role("button", name="Check the audio")).to_have_count(0)
        spot = area.get_by_role("list", name="Doubtful spots").get_by_role("listitem").first
        expect(spot).to_contain_text("Part 1, 0:00.0 · Too long for its text: 2 s")
        area.get_by_role("button", name="Download a speech recogniser").click()
        expect(area.locator(".proof")).to_contain_text("0 of 1 part with audio checked")
        area.get_by_role("button", name="Check the audio").click()
        expect(area.locator(".proof")).to_contain_text("wrong words per 1,000")
        expect(area.locator(".proof")).not_to_contain_text("by sound alone")


def test_check_totals_follow_generated_and_changed_parts(steered: Steer, open_page: Open) -> None:
    served = steered()
    screen = open_page(served).ready()
    area = area_of(screen)
    gate = served.app.state.studio.speech.host.engine().first_frame_gate
    gate.clear()
    import_file(area, table("text,voice\nOne.,anna\nTwo.,anna\n"))
    area.get_by_role("button", name="Speak all parts").click()
    expect(area.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    area.get_by_role("button", name="Check", exact=True).click()
    expect(area.locator(".proof")).to_contain_text("there is no audio to check yet")
    gate.set()
    expect(area.locator(".proof")).to_contain_text("0 of 2 parts with audio checked")
    area.get_by_role("button", name="Check the audio").click()
    expect(area.locator(".proof")).to_contain_text("2 of 2 parts with audio checked")
    area.get_by_role("button", name="Parts", exact=True).click()
    text = area.get_by_label("Text of part 2")
    text.fill("Three.")
    text.blur()
    expect(area.locator("[data-part=state]")).to_contain_text("1 changed")
    area.get_by_role("button", name="Check", exact=True).click()
    expect(area.locator(".proof")).to_contain_text("1 of 1 part with audio checked")
    expect(area.locator(".proof")).to_contain_text("1 part was changed since it was checked: generate it")
    area.get_by_role("button", name="Parts", exact=True).click()
    area.get_by_role("button", name="Speak the remaining part").click()
    expect(area.locator("[data-part=state]")).to_contain_text("2 of 2 parts spoken")
    area.get_by_role("button", name="Check", exact=True).click()
    area.get_by_role("button", name="Check the remaining part").click()
    expect(area.locator(".proof")).to_contain_text("2 of 2 parts with audio checked")
    expect(area.locator(".proof")).not_to_contain_text("changed since")
