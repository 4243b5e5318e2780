"""Accessibility: contrast, labels, small screens, dark mode and reduced motion; and no requests to third parties."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal
from urllib.parse import urlparse

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import ViewportSize, expect

from tests.browser.screen import Screen, go
from tests.studio.server import Served
from tests.studio.sounds import tone, wav

Open = Callable[..., Screen]
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
MOST_REQUESTS = 20
"""Of an opened page, without the API's: more would be modules that are loaded one by one."""
WINDOWS: dict[Literal["light", "dark"], ViewportSize] = {
    "light": {"width": 1280, "height": 860},
    "dark": {"width": 390, "height": 844},
}
"""A desktop's and a phone's, each with the scheme in which it is checked."""
PHONE = {"viewport": WINDOWS["dark"], "has_touch": True, "is_mobile": True, "device_scale_factor": 2}


SLIGHT = re.findall(r'\{id:"([\w-]+)",impact:"(?:minor|moderate)"', AXE_SCRIPT)
"""Axe's rules that find nothing serious."""
OF_NAMES = "label-content-name-mismatch"
"""An experimental rule of axe, off by default: people who control the browser by voice say the words that they see."""
SERIOUS: dict[str, object] = {"rules": {rule: {"enabled": False} for rule in SLIGHT} | {OF_NAMES: {"enabled": True}}}
OF_COLOURS: dict[str, object] = {"runOnly": ["color-contrast", "link-in-text-block"]}
"""The rules whose findings depend on colours."""


OF_WHAT_IS_SEEN = """(options) => {
    const isGone = (element) => !element.checkVisibility() && getComputedStyle(element).display === "none";
    const accepted = (element) => (isGone(element) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
    const walker = document.createTreeWalker.bind(document);
    document.createTreeWalker = (root, nodes, filter = accepted) => walker(root, nodes, filter ?? accepted);
    const isTop = (element) => isGone(element) && !isGone(element.parentElement);
    const exclude = [...document.querySelectorAll("body *")].filter(isTop);
    const checked = axe.run({ include: document, exclude }, { resultTypes: ["violations"], ...options });
    return checked.finally(() => delete document.createTreeWalker).then(({ violations }) => violations);
}"""
"""Axe's findings. It would spend half its time on the styles of hidden elements, nine of ten, and find nothing."""


def serious_violations(screen: Screen, rules: dict[str, object] = SERIOUS) -> list[str]:
    """Serious findings of axe on what the current page shows; its script is injected once per page."""
    if not screen.page.evaluate("'axe' in window"):
        screen.page.evaluate(AXE_SCRIPT)
    violations = screen.page.evaluate(OF_WHAT_IS_SEEN, rules)
    return [
        f"{violation['id']} ({violation['impact']}): {node['html'][:160]}"
        for violation in violations
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


def show_in(screen: Screen, scheme: Literal["light", "dark"]) -> None:
    """Switch the page to this scheme, without colour transitions."""
    screen.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    screen.page.wait_for_function("(dark) => document.body.classList.contains('dark') === dark", arg=scheme == "dark")


def in_both_schemes(screen: Screen) -> list[str]:
    """Serious violations in light, and those of colours in dark."""
    violations = []
    for scheme in SCHEMES:
        show_in(screen, scheme)
        found = serious_violations(screen, SERIOUS if scheme == SCHEMES[0] else OF_COLOURS)
        violations += [f"{scheme}: {violation}" for violation in found]
    return violations


def looks_right_in_both_windows(screen: Screen) -> None:
    """Nothing serious in a desktop's window in light, and in a phone's in dark; neither scrolls sideways.

    The one that it was not in stays: a test of several steps then goes on there.
    """
    for scheme, window in sorted(WINDOWS.items(), key=lambda each: each[1]["width"] != screen.width()):
        screen.page.set_viewport_size(window)
        show_in(screen, scheme)
        assert serious_violations(screen) == []
        assert screen.page.evaluate("document.documentElement.scrollWidth") <= screen.width()
    screen.page.emulate_media(reduced_motion="no-preference")


def test_shared_take_page_uses_no_other_host_and_is_accessible(served: Served, open_page: Open, tmp_path: Path) -> None:
    screen = open_page(served).ready()
    screen.cut_after(2)
    screen.speak.click()
    screen.until_over()
    own = urlparse(served.url).netloc
    assert [
        url for url in screen.requests if urlparse(url).scheme.startswith("http") and urlparse(url).netloc != own
    ] == []
    opened = [url for url in screen.requests if "/v1/" not in url]
    assert not [url for url in opened if "/assets/" in url], "Gradio's modules are requested one by one"
    assert len(opened) <= MOST_REQUESTS
    names = []
    for part in ("play", "seek", "volume", "save"):
        control = screen.page.locator(f"#dock [data-part={part}]")
        control.focus()
        expect(control).to_be_focused()
        names.append(control.get_attribute("aria-label"))
    assert names == ["Play", "Position", "Volume", "Download"]

    assert in_both_schemes(screen) == []
    screen.script.fill("")
    screen.speak.click()
    expect(screen.card).to_be_visible()
    (tmp_path / "me.wav").write_bytes(wav(tone(6)))
    screen.bring_clip(tmp_path / "me.wav")
    expect(screen.page.locator("#own-clip-advice")).to_contain_text("out of 100")
    screen.page.get_by_role("button", name="All tags").click()
    assert in_both_schemes(screen) == []


def test_axe_finds_nothing_serious_in_any_area(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    for view in ("Studio", "Compare", "Projects", "Voices", "New voice", "History", "Activity", "Settings", "API"):
        go(screen.page, view)
        assert in_both_schemes(screen) == []
        if view == "Voices":
            screen.page.get_by_role("button", name=re.compile(r"^Anna\b")).click()
            screen.page.get_by_role("button", name="Duplicate Anna").wait_for()
            assert serious_violations(screen) == []
    screen.page.get_by_role("button", name="Show as code").click()
    assert in_both_schemes(screen) == []


def test_areas_have_addresses_back_works_and_dropped_files_do_not_open(served: Served, open_page: Open) -> None:
    screen = open_page(served)
    expect(screen.page).to_have_title("Voice Studio")
    go(screen.page, "Voices")
    screen.page.reload()
    screen.page.wait_for_selector("body[data-studio=ready]")
    expect(screen.page.get_by_role("region", name="Voices")).to_be_visible()
    expect(screen.page).to_have_title("Voices · Voice Studio")
    screen.page.keyboard.press("Alt+4")
    expect(screen.page.get_by_role("region", name="Voices")).to_be_hidden()
    screen.page.keyboard.press("?")
    expect(screen.page.get_by_role("dialog", name="Keyboard shortcuts")).to_contain_text("Speak the script")
    assert in_both_schemes(screen) == []
    screen.page.keyboard.press("Escape")
    screen.page.go_back()
    expect(screen.page.get_by_role("region", name="Voices")).to_be_visible()
    go(screen.page, "Projects")
    expect(screen.page).to_have_title("Projects · Voice Studio")
    screen.page.go_back()
    screen.page.go_back()
    expect(screen.page).to_have_title("Voice Studio")

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
    screen.script.fill("مرحبا بالعالم.")
    for area in ("", "Compare", "Voices"):
        if area:
            go(screen.page, area)
        if area == "Voices":
            screen.page.get_by_role("button", name=re.compile(r"^Anna\b")).click()
            screen.page.get_by_label("Description").last.wait_for()
        for field in screen.page.locator("textarea:visible").all():
            field.fill("مرحبا بالعالم.")
            looks = field.evaluate("(field) => ((style) => [style.unicodeBidi, style.direction])(getComputedStyle(field))")
            is_script = field.evaluate("(field) => field === document.querySelector('#script textarea')")
            assert looks == ["plaintext", "ltr" if is_script else "rtl"]  # long texts may be pasted into the script


def test_dark_mode_and_reduced_motion_follow_the_system(served: Served, open_page: Open) -> None:
    screen = open_page(served, color_scheme="dark", reduced_motion="reduce").ready()
    expect(screen.page.locator("body")).to_have_css("background-color", "rgb(16, 19, 18)")
    moving = screen.page.evaluate("document.getAnimations().filter((each) => each.playState === 'running').length")
    assert moving == 0
    screen.page.emulate_media(color_scheme="light")
    expect(screen.page.locator("body")).to_have_css("background-color", "rgb(250, 249, 247)")


def test_a_phone_shows_everything_without_scrolling_sideways(served: Served, open_page: Open) -> None:
    screen = open_page(served, **PHONE).ready()
    screen.cut_after(2)
    screen.speak.tap()
    screen.until_over()
    assert screen.page.evaluate("document.documentElement.scrollWidth") <= 390
    screen.page.get_by_role("radio", name="Your own clip").check()
    expect(screen.own_clip.get_by_role("button", name="Record", exact=True)).to_be_visible()
    assert screen.page.evaluate("document.documentElement.scrollWidth") <= 390 and serious_violations(screen) == []
    save = screen.takes.get_by_text("Download", exact=True)
    save.scroll_into_view_if_needed()
    box, dock = save.bounding_box(), screen.page.locator("#dock").bounding_box()
    assert box and dock and box["y"] + box["height"] <= dock["y"]


def test_pressed_and_chosen_controls_are_visible_in_forced_colours(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    page = screen.page
    page.emulate_media(forced_colors="active")
    tab = page.locator("#areas a")
    expect(screen.speak).to_have_css("border-top-width", "1px")
    expect(page.locator("#pill .dot")).to_have_css("background-color", "rgb(21, 128, 61)")
    chosen, other = (link.evaluate("(tab) => getComputedStyle(tab).backgroundColor") for link in (tab.first, tab.last))
    assert chosen != other
    for selector in ("#presets [aria-pressed=true]", "#source .selected"):
        expect(page.locator(selector)).to_have_css("background-color", chosen)


def test_long_name_without_spaces_fits_a_phone(steered: Callable[..., Served], open_page: Open) -> None:
    studio = steered()
    with studio.client() as client:
        voice = {"name": "W" * 60, "ref_text": "A steady tone."}
        client.post("/v1/audio/voices", data=voice, files={"audio_sample": wav(tone(6))}).raise_for_status()
    screen = open_page(studio, **PHONE).ready()
    for area, named in (("Compare", ".chip"), ("History", "[data-part=voice] option"), ("Voices", ".card")):
        go(screen.page, area)
        panel = screen.page.get_by_role("region", name=area)
        expect(panel.locator(named, has_text="WWW")).to_have_count(1)
        right = "(panel) => Math.max(...[...panel.querySelectorAll('*')].map((e) => e.getBoundingClientRect().right))"
        assert panel.evaluate(right) <= 390, area
