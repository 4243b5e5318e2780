"""Writing a dialogue: names in the script get voices below it, which can be changed."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.screen import Screen, choose, posted
from tests.studio.server import Served

Open = Callable[..., Screen]
Steer = Callable[..., Served]


def test_script_is_spoken_by_its_cast_which_survives_a_reload_and_is_restored_by_reuse(
    steered: Steer, open_page: Open
) -> None:
    screen = open_page(steered()).ready()
    screen.script.fill("It was late.\nAnna: Good evening.\nThe fish: Is it? I say: no.")
    cast = screen.page.get_by_role("group", name="Cast")
    expect(cast).to_be_hidden()
    switch = screen.page.get_by_role("switch", name="Dialogue")
    switch.press("Enter")
    expect(cast.get_by_label("Voice of Anna")).to_have_value("anna")
    fish = cast.get_by_label("Voice of The fish")
    expect(fish).to_have_value("bert")  # the only unused voice
    choose(fish, "anna")
    screen.script.press("End")
    screen.script.press_sequentially("\nEve: Ha.")
    expect(cast.get_by_label("Voice of Eve")).to_have_value("bert")
    expect(fish).to_have_value("anna")  # the choice is kept
    screen.script.fill("It was late.\nAnna: Good evening.\nThe fish: Is it? I say: no.")
    choose(fish, "bert")
    with screen.page.expect_request("**/v1/audio/speech") as request:
        screen.speak.click()
    assert posted(request.value)["cast"] == {"Anna": "anna", "The fish": "bert"}
    screen.until_over()
    expect(screen.takes.first).to_contain_text("Dialogue")
    screen.takes.first.get_by_role("button", name="Code").click()
    screen.page.get_by_role("tab", name="gradio_client").click()
    expect(screen.page.locator("#code-panel")).to_contain_text('api_name="/dialogue"')
    screen.page.keyboard.press("Escape")

    screen.script.fill("Bo: Good evening.")
    role = cast.get_by_label("Voice of Bo")
    choose(role, "bert")
    screen.speak.click()
    expect(screen.takes).to_have_count(2)
    screen.until_over()
    screen.page.wait_for_function("() => (sessionStorage['voice-studio-/:1'] ?? '').includes('Good evening')")
    switch.click()
    expect(role).to_be_hidden()
    screen.page.get_by_role("button", name="Reuse").first.click()
    expect(switch).to_have_attribute("aria-checked", "true")
    screen.page.reload()
    screen.page.wait_for_selector("body[data-studio=ready]")
    expect(role).to_have_value("bert")
