"""Compare: takes of several voices or settings, switched at the same position and voted on, optionally blind."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.screen import Held, Screen, double_click, go, press_while_heard
from tests.studio.server import Served

Open = Callable[..., Screen]


@pytest.fixture
def compare(served: Served, open_page: Open) -> Screen:
    """The area Compare with two voices chosen, takes cut after two seconds."""
    screen = open_page(served).ready()
    screen.cut_after(2)
    screen.script.fill("Two words")
    go(screen.page, "Compare")
    for name in ("Anna", "Bert"):
        screen.page.get_by_role("button", name=name, exact=True).click()
    return screen


def area(screen: Screen) -> Locator:
    return screen.page.get_by_role("region", name="Compare")


def cell(screen: Screen, letter: str) -> Locator:
    return area(screen).locator(f"[data-cell={letter}]")


def speak_all(screen: Screen) -> list[dict[str, Any]]:
    """Speak every candidate to its end, and return the requests sent."""
    sent = screen.asked_for_speech()
    area(screen).get_by_role("button", name="Speak all").click()
    expect(area(screen)).to_contain_text("Ready: listen and vote")
    return sent


def test_click_on_a_voice_counts_even_if_the_list_is_redrawn_meanwhile(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    page, mouse = screen.page, screen.page.mouse
    for name, listed, chosen in (
        ("Compare", area(screen).get_by_role("button", name="Anna", exact=True), ("aria-pressed", "true")),
        ("Voices", page.get_by_role("button", name="Favourite Anna"), ("aria-pressed", "true")),
    ):
        go(page, name)
        expect(listed).to_be_visible()
        go(page, "API")
        held = Held(page, re.compile(r"/v1/(audio/)?voices(\?|$)"))
        go(page, name)
        held.wait_for(1)
        listed.hover()
        mouse.down()
        held.answer(0)
        mouse.up()
        page.unroute_all()
        expect(listed).to_have_attribute(*chosen)


def test_speak_all_waits_for_the_list_of_voices_and_its_refusal_stays(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    state, speak = area(screen).locator("[data-part=said]"), area(screen).get_by_role("button", name="Speak all")
    screen.page.route("**/v1/audio/voices", lambda route: route.abort(), times=1)  # the rest of the studio answers
    go(screen.page, "Compare")
    expect(state).to_have_text("The studio is not responding.")
    area(screen).get_by_role("button", name="Anna", exact=True).wait_for()
    expect(state).to_be_empty()
    go(screen.page, "API")
    held = Held(screen.page, re.compile(r"/v1/(audio/)?voices(\?|$)"))
    go(screen.page, "Compare")
    held.wait_for(1)
    speak.click()
    expect(area(screen).get_by_role("button", name="Stop")).to_be_visible()
    expect(state).to_be_empty()
    held.answer(0)
    screen.page.unroute_all()
    expect(speak).to_be_visible()
    expect(state).to_contain_text("at least two")


def test_script_is_spoken_in_several_voices_with_one_click(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    screen.cut_after(2)
    screen.script.fill("Two words")
    go(screen.page, "Compare")
    text = area(screen).get_by_role("textbox", name="Text")
    text.fill("Typed here.")
    go(screen.page, "Studio")
    screen.page.get_by_role("button", name="Hear this in other voices").click()
    expect(area(screen)).to_contain_text("Ready: listen and vote")
    expect(text).to_have_value("Two words")
    expect(cell(screen, "A")).to_contain_text("Anna")
    expect(cell(screen, "B")).to_contain_text("Bert")
    screen.until_over()
    assert screen.heard()["rendered"] == 43 * 2048
    area(screen).get_by_role("button", name="Undo").click()
    expect(text).to_have_value("Typed here.")


def test_compared_takes_differ_only_in_voice_switch_in_place_and_can_be_downloaded(compare: Screen) -> None:
    requests = speak_all(compare)
    assert len({body["seed"] for body in requests}) == 1
    assert {body["voice"] for body in requests} == {"anna", "bert"}
    compare.until_over()
    switched = press_while_heard(cell(compare, "A").get_by_role("button", name="Play A"), "2", 0.3)
    compare.page.wait_for_function("window.studio.current.number === 'B' && window.studio.heard.rendered > 0")
    assert compare.page.evaluate("window.studio.position") >= switched
    expect(cell(compare, "B")).to_have_attribute("aria-current", "")
    with compare.page.expect_download() as saving:
        cell(compare, "B").get_by_text("Download").click()
    assert re.fullmatch(r"take-B-bert-seed-\d+\.wav", saving.value.suggested_filename)
    assert saving.value.path().stat().st_size == 44 + 2 * 43 * 2048


def test_blind_candidates_have_no_name_until_they_are_voted_on(compare: Screen) -> None:
    area(compare).get_by_label("Blind").check()
    speak_all(compare)
    shown = area(compare).locator("[data-part=cells]")
    dock = compare.page.locator("#dock")
    for tells in (shown, dock):
        expect(tells).not_to_contain_text(re.compile("Anna|Bert|Seed"))
        assert not re.search("anna|bert", tells.evaluate("(element) => element.innerHTML"), re.IGNORECASE)
    expect(area(compare).get_by_role("button", name="Reveal the names")).to_be_disabled()
    expect(area(compare).get_by_role("heading", name="Results")).to_be_hidden()
    by_other_tab = '[{"id": 1, "votes": [{"label": "Zoe", "score": 5, "best": false}]}]'
    compare.page.evaluate("(rounds) => localStorage.setItem('voice-studio-/:votes-1', rounds)", by_other_tab)
    cell(compare, "B").get_by_role("radio", name="4").check()
    cell(compare, "B").get_by_role("button", name="B is the best").click()
    area(compare).get_by_role("button", name="Reveal the names").click()
    name = cell(compare, "B").locator(".cell-name")
    expect(name).to_have_text(re.compile("^(Anna|Bert)$"))
    winner = name.inner_text()
    rows = area(compare).locator("[data-part=tally] tr")
    expect(rows.first.locator("td")).to_have_text([winner, "4.0", "1", "1", "1"])
    expect(cell(compare, "A").get_by_role("radio", name="5")).to_be_disabled()
    speak_all(compare)
    cell(compare, "A").get_by_role("button", name="A is the best").click()
    area(compare).locator("[data-part=text]").fill("Other words")
    compare.page.reload()
    compare.page.wait_for_selector("body[data-studio=ready]")
    expect(rows.filter(has_text=re.compile("Anna|Bert")).locator("td:last-child")).to_have_text(["2", "2"])
    expect(rows.filter(has_text="Zoe")).to_have_count(1)
    expect(area(compare).locator("[data-part=text]")).to_have_value("Other words")
    area(compare).get_by_role("button", name="Clear these results").click()
    expect(rows).to_have_count(0)
    compare.page.locator("#undo-toast").get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(3)


def test_auditions_are_played_in_a_row_and_the_winner_is_used_in_the_studio_or_kept_as_a_voice(compare: Screen) -> None:
    area(compare).get_by_role("button", name="Settings").click()
    area(compare).get_by_role("combobox", name="Voice").select_option("random")
    area(compare).get_by_role("button", name="Auditions").click()
    area(compare).get_by_label("Temperature of row 2").fill("0.35")
    area(compare).get_by_role("button", name="Speeds").click()
    compare.page.locator("#undo-toast").get_by_role("button", name="Undo").click()
    for row in (5, 4):
        area(compare).get_by_role("button", name=f"Remove row {row}").click()
    requests = speak_all(compare)
    seeds = [int(field.input_value()) for field in area(compare).get_by_label("Seed of row").all()]
    expected = zip(seeds, (0.8, 0.35, 0.8), strict=True)
    assert sorted((body["seed"], body["temperature"]) for body in requests) == sorted(expected) and len(set(seeds)) == 3
    assert {body["voice"] for body in requests} == {"random"}
    area(compare).get_by_role("button", name="Play in a row").click()
    for name in "AB":
        expect(cell(compare, name)).to_have_attribute("aria-current", "")
    cell(compare, "B").get_by_role("button", name="Use in Studio: B").click()
    compare.page.wait_for_function(
        f"[window.studio.fields.values.temperature, window.studio.fields.values.seed].join() === '0.35,{seeds[1]}'"
    )
    go(compare.page, "Compare")
    cell(compare, "B").get_by_role("button", name="Keep this voice").click()
    compare.page.get_by_role("button", name="Transcript").click()
    expect(compare.page.get_by_role("textbox", name="Transcript")).to_have_value(requests[0]["input"])


def test_a_dialogue_is_compared_with_its_cast(compare: Screen) -> None:
    go(compare.page, "Studio")
    compare.script.fill("It was late.\nAnna: Good evening.\nOld Bert: Is it?")
    compare.page.get_by_role("switch", name="Dialogue").click()
    compare.page.get_by_label("Voice of Old Bert").select_option("bert")
    compare.page.get_by_role("button", name="Hear this in other voices").click()
    expect(area(compare)).to_contain_text("Ready: listen and vote")
    area(compare).get_by_role("textbox", name="Text").fill("Anna: Good evening.\nOld Bert: Is it?")
    area(compare).get_by_role("button", name="Speak all").click()
    expect(area(compare)).to_contain_text("already has a voice")
    area(compare).get_by_role("button", name="Settings", exact=True).click()
    area(compare).get_by_role("button", name="Speeds").click()
    requests = speak_all(compare)
    assert [body["cast"] for body in requests] == [{"Anna": "anna", "Old Bert": "bert"}] * 3
    assert sorted(body.get("speed", 1) for body in requests) == [0.85, 1, 1.15]


def test_invalid_comparison_is_explained_and_stop_cancels_all_takes(compare: Screen, served: Served) -> None:
    area(compare).get_by_role("button", name="Bert", exact=True).click()
    area(compare).get_by_role("button", name="Speak all").click()
    expect(area(compare)).to_contain_text("at least two candidates")
    area(compare).get_by_role("button", name="Bert", exact=True).click()
    compare.page.evaluate("window.studio.fields.fill({ cutAfter: 100 })")
    compare.page.wait_for_function("window.studio.fields.values.cutAfter === 100")
    go(compare.page, "Studio")
    go(compare.page, "Compare")
    double_click(*(area(compare).get_by_role("button", name=name) for name in ("Speak all", "Stop")))
    expect(cell(compare, "B")).to_contain_text("Speaking")
    area(compare).get_by_role("button", name="Stop").click()
    served.until(running=0, waiting=0)
    expect(cell(compare, "B")).to_contain_text("stopped", ignore_case=True)


def test_late_first_audio_does_not_interrupt_the_player(steered: Callable[..., Served], open_page: Open) -> None:
    studio = steered()
    gate = studio.app.state.studio.speech.host.engine().first_frame_gate
    gate.clear()
    screen = open_page(studio).ready()
    screen.script.fill("Two words")
    screen.page.get_by_role("button", name="Hear this in other voices").click()
    studio.until(running=2, waiting=1)  # the two voices, and a randomly drawn one
    go(screen.page, "Voices")
    screen.page.get_by_role("button", name="Listen to Bert").click()
    expect(screen.status).to_have_text("Bert’s sample")
    gate.set()
    go(screen.page, "Compare")
    expect(area(screen)).to_contain_text("Ready: listen and vote")
    expect(screen.status).to_have_text("Bert’s sample")

    gate.clear()
    area(screen).get_by_role("button", name="Speak all").click()
    studio.until(running=2, waiting=1)  # the two voices, and a randomly drawn one
    go(screen.page, "Studio")
    screen.speak.click()
    studio.until(running=2, waiting=2)
    gate.set()
    expect(screen.takes).to_have_count(1)
    screen.until_over()
    assert screen.page.evaluate("window.studio.current.number") == 1
    assert screen.heard()["rendered"] == 2 * 6 * 2048
    expect(screen.takes.locator("[data-ending]")).to_have_count(0)


def test_comparison_without_results_is_not_ready(compare: Screen) -> None:
    refused = {"status": 500, "json": {"error": {"message": "No."}}}
    compare.page.route("**/v1/audio/speech", lambda route: route.fulfill(**refused))
    area(compare).get_by_role("button", name="Speak all").click()
    expect(area(compare)).to_contain_text("None could be generated")
    expect(area(compare)).not_to_contain_text("Ready")
    expect(cell(compare, "B")).to_contain_text("No.")
