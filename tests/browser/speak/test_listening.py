"""The player and the keys: a voice's recording, the level, Space, and where the player stands."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.screen import Screen, go
from tests.studio.server import Served

Open = Callable[..., Screen]
Steer = Callable[..., Served]


def test_sample_of_the_selected_voice_plays_and_the_level_meter_moves_during_a_take(
    served: Served, open_page: Open
) -> None:
    screen = open_page(served).ready()
    page = screen.page
    listen = page.get_by_role("button", name="Play sample")
    dock = page.locator("#dock")
    expect(dock).to_be_hidden()  # there is nothing to play yet
    with page.expect_response("**/v1/voices/anna/preview?**") as answer:
        listen.click()
    assert answer.value.ok and answer.value.headers["content-type"].startswith("audio/")
    expect(dock).to_contain_text("Anna’s sample")
    expect(dock.get_by_role("button", name="Play", exact=True)).to_be_enabled()
    room = "parseFloat(getComputedStyle(document.documentElement).getPropertyValue('--dock-height'))"
    page.wait_for_function(f"{room} > 0 && {room} === document.querySelector('#dock').offsetHeight")
    expect(listen).not_to_have_attribute("data-playing", "yes")  # it is short and ends by itself

    screen.cut_after(2)
    level = screen.page.locator("#dock [role=meter]")
    expect(level).to_have_attribute("aria-valuenow", "0")
    screen.speak.click()
    screen.page.wait_for_function(
        "Number(document.querySelector('[data-part=level]').getAttribute('aria-valuenow')) > 0"
    )
    screen.until_over()
    expect(level).to_have_attribute("aria-valuenow", "0")


def test_listener_sets_the_speed_skips_repeats_and_lets_it_stop(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    page, dock = screen.page, screen.page.locator("#dock")
    screen.cut_after(2)
    screen.speak.click()
    screen.until_over()
    whole = screen.heard()["rendered"]

    def choose(name: str) -> None:
        dock.get_by_role("button", name="Playback speed").click()
        page.get_by_role("menuitemradio", name=name, exact=True).click()

    choose("2×")
    choose("Stop in 15 minutes")
    expect(dock.locator("[data-part=rate]")).to_have_text("2×15 min")  # how long the timer still runs
    page.locator("#takes").get_by_role("button", name="Play").first.click()
    page.wait_for_function(
        """(whole) => document.querySelector("#dock").dataset.state === "over"
            && Math.abs(window.studio.heard.rendered / whole - 0.5) < 0.1""",
        arg=whole,
    )
    page.locator("#takes h2").click()  # the focus leaves the fields
    page.keyboard.press("j")
    page.wait_for_function("window.studio.position === 0")
    dock.get_by_role("button", name="Forward 10 seconds").click()
    page.wait_for_function("window.studio.position > 1")
    choose("Repeat this")
    page.keyboard.press("j")
    page.wait_for_function("window.studio.position === 0")
    page.keyboard.press("k")
    page.wait_for_function("(whole) => window.studio.heard.rendered > 2 * whole", arg=whole)  # it began again
    page.keyboard.press("k")
    expect(dock).to_have_attribute("data-state", "paused")
    page.reload()
    expect(dock.locator("[data-part=rate]")).to_have_text("2×")


def test_space_plays_a_take_and_focus_moves_to_stop_and_back(steered: Steer, open_page: Open) -> None:
    studio = steered()
    engine = studio.app.state.studio.speech.host.engine()
    screen = open_page(studio).ready()
    page, speech = screen.page, screen.asked_for_speech()
    screen.script.fill("Two words")
    engine.later_frames_gate.clear()
    screen.speak.press("Enter")
    expect(screen.stop).to_be_focused()
    engine.later_frames_gate.set()
    expect(screen.takes).to_have_count(1)
    expect(screen.speak).to_be_focused()
    screen.until_over()
    page.evaluate(
        "window.states = [];"
        " window.studio.nowPlaying.addEventListener('state', ({ detail }) => states.push(detail.state))"
    )
    page.keyboard.press("Space")
    page.wait_for_function("states.includes('playing')")
    screen.until_over()
    assert len(speech) == 1
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    expect(screen.speak).to_be_focused()
    page.keyboard.press("Space")  # focused by keyboard, it is a button
    expect(screen.takes).to_have_count(2)

    screen.speak.click()
    expect(screen.takes).to_have_count(3)
    screen.until_over()
    page.evaluate("states.length = 0")
    page.keyboard.press("Space")
    page.wait_for_function("states.includes('playing')")
    screen.until_over()
    assert len(speech) == 3


def test_player_does_not_cover_controls_and_can_be_closed(steered: Steer, open_page: Open) -> None:
    screen = open_page(steered()).ready()
    page, dock = screen.page, screen.page.locator("#dock")
    screen.script.fill("Two words")
    screen.speak.click()
    expect(screen.takes).to_have_count(1)
    screen.until_over()

    def is_above_the_dock(selector: str) -> None:
        page.wait_for_function(
            "(selector) => document.querySelector(selector).getBoundingClientRect().bottom"
            " <= document.querySelector('#dock').getBoundingClientRect().top",
            arg=selector,
        )

    is_above_the_dock("#takes li")
    page.get_by_role("button", name="Sampling").click()
    is_above_the_dock("#sampling")
    expect(dock).not_to_have_attribute("data-thin", "")
    tall = dock.bounding_box()
    go(page, "Settings")
    expect(dock).to_have_attribute("data-thin", "")
    thin = dock.bounding_box()
    assert tall and thin and thin["height"] < 60 < tall["height"]
    expect(dock.get_by_role("button", name="Play", exact=True)).to_be_visible()
    dock.get_by_role("button", name="Close the player").click()
    expect(dock).to_be_hidden()
    page.wait_for_function("getComputedStyle(document.documentElement).getPropertyValue('--dock-height') === '0px'")
    go(page, "Studio")
    expect(dock).to_be_hidden()
    screen.takes.get_by_role("button", name="Play take 1").click()
    expect(dock).to_be_visible()
    screen.until_over()
    page.set_viewport_size({"width": 390, "height": 844})
    screen.speak.click()
    expect(screen.takes).to_have_count(2)
    is_above_the_dock("#takes li")
    expect(screen.speak).to_be_in_viewport()


def test_leaving_the_voice_picker_closes_its_list_and_focuses_the_next_control(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    page, picker, voices = screen.page, screen.page.get_by_role("combobox"), screen.page.get_by_role("listbox")
    scrolls = "{ max-height: 3rem !important; overflow: auto; }"
    page.add_style_tag(content=f"[role=listbox], :has(> [role=listbox]) {scrolls}")
    expect(screen.script).to_be_focused()  # as the page does when it is ready, and not in the middle of what follows
    page.evaluate("window.studio.fields.fill({ text: 'Shown.' })")
    expect(screen.script).to_have_value("Shown.")  # and so the voices, which were filled in before
    page.evaluate("requestAnimationFrame = (run) => setTimeout(run, 50)")  # a busy machine's: timers come first
    for key in ("ArrowDown", "ArrowUp", "ArrowDown"):
        picker.press(key)
    marked = "[...document.querySelectorAll('[role=option]')].map((one) => getComputedStyle(one).boxShadow !== 'none')"
    page.wait_for_function(f"() => String({marked}) === 'false,true,false'")
    picker.press("Enter")
    expect(picker).to_have_value("Bert")
    expect(picker).to_be_focused()
    expect(voices).to_have_count(0)
    page.locator("#hear-voice").focus()
    for key, control in (("Tab", "#hear-voice"), ("Shift+Tab", "#source input[value=clip]"), ("Alt+2", "")):
        picker.focus()
        expect(voices).to_be_visible()
        picker.press(key)
        if control:
            expect(page.locator(control)).to_be_focused()
        expect(voices).to_have_count(0)
        expect(page.locator("#voice input")).to_have_attribute("aria-expanded", "false")
    go(page, "Studio")
    expect(voices).to_have_count(0)
    expect(picker).to_have_value("Bert")
