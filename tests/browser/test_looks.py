"""The page for every eye and hand: contrast and labels, small screens, dark rooms, no motion, no third parties."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlparse

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.screen import Screen
from tests.studio.server import Served
from tests.studio.sounds import tone, wav

Open = Callable[..., Screen]
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}


def serious_violations(screen: Screen) -> list[str]:
    found = Axe().run(screen.page).response["violations"]
    return [
        f"{each['id']} ({each['impact']}): {node['html'][:160]}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(served: Served, open_page: Open, tmp_path: Path, scheme: str) -> None:
    screen = open_page(served, color_scheme=scheme).ready()
    screen.cut_after(2)
    screen.speak.click()
    screen.until_over()
    assert serious_violations(screen) == []
    screen.script.fill("")
    screen.speak.click()
    expect(screen.card).to_be_visible()
    screen.page.get_by_role("radio", name="Your own clip").check()
    (tmp_path / "me.wav").write_bytes(wav(tone(6)))
    screen.page.locator("#clip").get_by_label("Upload file").click()
    screen.page.locator("#clip input[type=file]").set_input_files(tmp_path / "me.wav")
    expect(screen.page.locator("#own-clip-advice")).to_contain_text("of 100")
    screen.page.get_by_role("button", name="All tags").click()
    assert serious_violations(screen) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_any_area(served: Served, open_page: Open, scheme: str) -> None:
    screen = open_page(served, color_scheme=scheme).ready()
    tabs = screen.page.locator("#areas").get_by_role("tab")
    for tab in tabs.all():
        tab.click()
        expect(screen.page.get_by_role("tabpanel", name=tab.inner_text(), exact=True)).to_be_visible()
        assert serious_violations(screen) == []
    screen.page.get_by_role("tab", name="API").click()
    screen.page.get_by_role("button", name="Show as code").click()
    assert serious_violations(screen) == []


def test_an_area_is_an_address_and_the_way_back(served: Served, open_page: Open) -> None:
    screen = open_page(served)
    screen.page.get_by_role("tab", name="Voices").click()
    screen.page.reload()
    expect(screen.page.get_by_role("tabpanel", name="Voices")).to_be_visible()
    screen.page.keyboard.press("Tab")
    screen.page.get_by_role("tab", name="Voices").press("ArrowRight")
    expect(screen.page.get_by_role("tabpanel", name="Voices")).to_be_hidden()
    screen.page.go_back()
    expect(screen.page.get_by_role("tabpanel", name="Voices")).to_be_visible()


def test_every_area_has_a_title_of_its_own(served: Served, open_page: Open) -> None:
    screen = open_page(served)
    expect(screen.page).to_have_title("Voice Studio")
    screen.page.get_by_role("tab", name="Long form").click()
    expect(screen.page).to_have_title("Long form · Voice Studio")
    screen.page.go_back()
    expect(screen.page).to_have_title("Voice Studio")


def test_a_file_dropped_beside_a_zone_does_not_open(served: Served, open_page: Open) -> None:
    screen = open_page(served)
    drag = """([place, holds]) => ["dragover", "drop"].map((type) => {
        const dataTransfer = new DataTransfer();
        if (holds === "file") dataTransfer.items.add(new File(["x"], "a.txt"));
        else dataTransfer.setData("text/plain", "x");
        const event = new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer });
        document.querySelector(place).dispatchEvent(event);
        return event.defaultPrevented;
    })"""
    for place in ("#masthead", "#script textarea"):
        assert screen.page.evaluate(drag, [place, "file"]) == [True, True]
        assert screen.page.evaluate(drag, [place, "words"]) == [False, False]
    assert screen.page.evaluate(drag, ["#area-new-voice input[type=file]", "file"]) == [True, True]


def test_a_script_is_written_in_its_own_direction(served: Served, open_page: Open) -> None:
    screen = open_page(served)
    screen.script.fill("مرحبا بالعالم.")
    assert screen.script.evaluate("(field) => getComputedStyle(field).direction") == "rtl"


def test_dark_follows_the_system(served: Served, open_page: Open) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    light = open_page(served, color_scheme="light").ready().page.evaluate(paper)
    dark = open_page(served, color_scheme="dark").ready().page.evaluate(paper)
    assert (light, dark) == ("rgb(250, 249, 247)", "rgb(16, 19, 18)")


def test_a_phone_shows_everything_without_scrolling_sideways(served: Served, open_page: Open) -> None:
    screen = open_page(served, **PHONE).ready()
    screen.cut_after(2)
    screen.speak.tap()
    screen.until_over()
    assert screen.page.evaluate("document.documentElement.scrollWidth") <= 390
    save = screen.takes.get_by_text("Save", exact=True)
    save.scroll_into_view_if_needed()
    box, dock = save.bounding_box(), screen.page.locator("#dock").bounding_box()
    assert box and dock and box["y"] + box["height"] <= dock["y"]


def test_reduced_motion_is_respected(served: Served, open_page: Open) -> None:
    screen = open_page(served, reduced_motion="reduce").ready()
    moving = screen.page.evaluate("document.getAnimations().filter((each) => each.playState === 'running').length")
    assert moving == 0


def test_the_page_asks_no_other_host_for_anything(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    screen.cut_after(2)
    screen.speak.click()
    screen.until_over()
    own = urlparse(served.url).netloc
    assert [
        url for url in screen.requests if urlparse(url).scheme.startswith("http") and urlparse(url).netloc != own
    ] == []


def test_every_control_of_the_player_can_be_reached_by_keyboard(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    screen.cut_after(2)
    screen.speak.click()
    screen.until_over()
    names = []
    for part in ("play", "seek", "volume", "save"):
        control = screen.page.locator(f"#dock [data-part={part}]")
        control.focus()
        expect(control).to_be_focused()
        names.append(control.get_attribute("aria-label"))
    assert names == ["Play", "Position", "Volume", "Save as WAV"]
