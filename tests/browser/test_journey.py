"""A whole session in one test, from recording a voice to restoring it; and a take by keyboard alone."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.browser.screen import TWO_SECONDS, Screen, go, posted
from tests.browser.test_looks import looks_right_in_both_windows
from tests.studio.server import Served

Open = Callable[..., Screen]
Steer = Callable[..., Served]
MOST_STOPS = 80
"""Presses of Tab after which a control counts as out of reach."""


def hear(screen: Screen) -> None:
    """Wait until the player moves, moves again, and has played the take to its end."""
    screen.page.wait_for_function("window.studio.position > 0.2 && window.studio.heard.rendered > 0")
    screen.page.wait_for_function("(before) => window.studio.position > before", arg=0.5)
    screen.until_over()


def record_a_voice(screen: Screen, name: str) -> None:
    """Go through the four steps of a new voice, with the microphone."""
    steps = go(screen.page, "New voice")

    def press(button: str) -> None:
        steps.get_by_role("button", name=button, exact=True).click()

    press("Record")
    expect(steps.locator(".recording-time").first).to_contain_text(TWO_SECONDS)
    press("Stop recording")
    press("Next")
    expect(steps.locator("[data-part=advice]")).to_contain_text("out of 100")
    looks_right_in_both_windows(screen)
    press("Next")
    steps.get_by_label("Transcript").fill("A steady tone.")
    press("Next")
    steps.get_by_label("Name", exact=True).fill(name)
    steps.get_by_label("This is my voice").check()
    press("Save the voice")
    expect(steps.get_by_role("heading", name=f"{name} is in the library")).to_be_visible()
    press("Open the Studio")
    expect(screen.page.get_by_label("Choose a voice")).to_have_value(name)


def test_journey_from_a_first_visit_to_a_restored_voice(served: Served, open_page: Open) -> None:
    screen = open_page(served, permissions=["microphone"]).ready()
    voice = "Toni"
    record_a_voice(screen, voice)
    screen.cut_after(1)
    screen.script.fill("Two words")
    screen.speak.click()
    hear(screen)
    looks_right_in_both_windows(screen)

    compare = go(screen.page, "Compare")
    compare.get_by_role("button", name="Settings", exact=True).click()
    compare.get_by_role("button", name="Temperatures").click()
    compare.get_by_role("button", name="Speak all").click()
    expect(compare).to_contain_text("Ready: listen and vote")
    compare.get_by_role("button", name="Play B").click()
    screen.page.wait_for_function("window.studio.current.number === 'B'")
    hear(screen)
    looks_right_in_both_windows(screen)

    voices = go(screen.page, "Voices")
    voices.get_by_role("button", name=re.compile(rf"^{voice}\b")).click()
    with screen.page.expect_download() as export:
        voices.get_by_role("link", name=f"Export {voice}").click()
    with served.client() as client:
        pack = {"file": export.value.path().read_bytes()}
        assert client.post("/v1/voices/inspect", files=pack).json()["name"] == voice
    voices.get_by_role("button", name=f"Delete {voice}").click()
    expect(voices).to_contain_text(f"Deleted “{voice}”.")
    expect(screen.page.get_by_label("Choose a voice")).not_to_have_value(voice)
    voices.get_by_role("button", name="Undo").click()
    voices.get_by_role("button", name=f"Use {voice}").click()
    expect(screen.page.get_by_label("Choose a voice")).to_have_value(voice)
    with screen.page.expect_request("**/v1/audio/speech") as request:
        screen.speak.click()
    assert posted(request.value)["voice"] == "toni"
    screen.page.wait_for_function("window.studio.current.number === 2")
    hear(screen)


class Keys:
    """A user without a pointer."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def go_to(self, control: Locator, key: str = "Tab") -> None:
        """Press Tab until the control has the focus; every stop on the way must be visibly focused."""
        for _ in range(MOST_STOPS):
            self.page.keyboard.press(key)
            if control.evaluate("(element) => element === document.activeElement"):
                return
            assert self.page.evaluate(RING), self.page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
        raise AssertionError(f"{control} is not reached by {key}")


RING = """() => {
  const drawn = ({ outlineStyle, boxShadow }) => outlineStyle !== "none" || boxShadow !== "none";
  const rings = (element) => drawn(getComputedStyle(element));
  const near = (element, up) => element && up && (rings(element) || near(element.parentElement, up - 1));
  return document.activeElement === document.body || near(document.activeElement, 3);
}"""


def test_take_is_generated_starred_shown_as_code_and_deleted_by_keyboard_alone(steered: Steer, open_page: Open) -> None:
    studio = steered()
    screen = open_page(studio).ready()
    page, keys = screen.page, Keys(screen.page)
    expect(screen.script).to_be_focused()
    keys.press("Control+a")
    page.keyboard.type("Two words")
    keys.press("Control+Enter")
    hear(screen)
    take = screen.takes.first
    star = take.get_by_role("button", name="Star")
    keys.go_to(star)
    keys.press("Space")
    expect(star).to_have_attribute("aria-pressed", "true")
    code, dialog = take.get_by_role("button", name="Code"), page.get_by_role("dialog")
    keys.go_to(code, "Shift+Tab")
    keys.press("Enter")
    expect(dialog).to_contain_text("curl")
    keys.go_to(dialog.get_by_role("tab", selected=True))
    keys.press("ArrowRight")
    expect(dialog.get_by_role("tab", selected=True)).to_be_focused()
    expect(dialog).to_contain_text("from openai import OpenAI")
    keys.press("Escape")
    expect(dialog).to_be_hidden()
    expect(code).to_be_focused()
    keys.go_to(take.get_by_role("button", name="Delete"))
    keys.press("Enter")
    expect(page.get_by_role("button", name="Undo")).to_be_focused()
    keys.press("Enter")
    expect(take.get_by_role("button", name="Play take 1")).to_be_focused()
    keys.press("Enter")
    hear(screen)


def test_focus_moves_on_from_elements_that_are_hidden_or_redrawn(steered: Steer, open_page: Open) -> None:
    studio = steered()
    engine = studio.app.state.studio.speech.host.engine()
    screen = open_page(studio).ready()
    page, keys = screen.page, Keys(screen.page)
    engine.later_frames_gate.clear()
    keys.go_to(screen.speak)
    keys.press("Enter")
    expect(screen.stop).to_be_focused()
    keys.press("Escape")
    expect(screen.speak).to_be_focused()
    engine.later_frames_gate.set()
    keys.go_to(screen.script, "Shift+Tab")
    keys.press("Control+a", "Delete", "Control+Enter")
    expect(screen.card).to_contain_text("There is nothing to say.")
    keys.go_to(screen.card.get_by_role("button"))
    keys.press("Enter")
    expect(screen.script).to_be_focused()
    keys.press("Alt+3")
    voices = page.get_by_role("region", name="Voices")
    keys.go_to(page.get_by_role("button", name="Skip to the content"), "Shift+Tab")
    keys.press("Enter")
    expect(voices).to_be_focused()
    star = voices.get_by_role("button", name="Favourite Bert")
    keys.go_to(star)
    keys.press("Space")
    expect(star).to_have_attribute("aria-pressed", "true")
    expect(star).to_be_focused()
    keys.go_to(voices.get_by_role("button", name=re.compile(r"^Bert\b")), "Shift+Tab")
    keys.press("Enter")
    expect(page.get_by_role("complementary", name="Bert")).to_be_focused()
    keys.go_to(voices.get_by_role("button", name="Duplicate Bert"))
    keys.press("Enter")
    expect(page.get_by_role("complementary", name="Bert copy")).to_be_visible()
    keys.go_to(voices.get_by_role("button", name="Delete Bert copy"))
    keys.press("Enter")
    undo = voices.get_by_role("button", name="Undo")
    expect(undo).to_be_focused()
    keys.press("Enter")
    expect(undo).to_be_hidden()
    expect(page.locator("body")).not_to_be_focused()
    expect(voices.locator(":focus")).to_have_count(1)
