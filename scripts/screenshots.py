"""Takes pictures of the page of a running studio, for README and docs: python -m scripts.screenshots http://127.0.0.1:7860"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.common.chromium import NoChromium, find

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
PATIENCE_MS = 120_000
Look = dict[str, Any]
DESKTOP: Look = {"viewport": {"width": 1280, "height": 860}, "reduced_motion": "reduce"}
PHONE: Look = {
    "viewport": {"width": 390, "height": 844},
    "is_mobile": True,
    "has_touch": True,
    "device_scale_factor": 2,
}
PICTURES: dict[str, Look] = {
    "studio": DESKTOP | {"color_scheme": "light"},
    "studio-dark": DESKTOP | {"color_scheme": "dark"},
    "studio-phone": PHONE | {"color_scheme": "light"},
}


AREAS = {
    "new-voice": "voices/new",
    "longform": "projects",
    "cast": "projects",
    "compare": "studio/compare",
    "history": "history",
}
"""The addresses of the pictured views."""

STORY = """# The lighthouse

The keeper climbed the stairs before dusk. Nobody had lit the lamp for years.

“Is anybody there?” asked Eleanor.

“Only the sea,” said Mr Thornton, “and you.”

“Then I am not alone.”

# The morning after

In the morning, the ships were back.

“They saw it,” said Eleanor."""


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        program = find()
    except NoChromium as missing:
        sys.exit(str(missing))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for name, look in PICTURES.items():
            take_picture(browser, sys.argv[1], FOLDER / f"{name}.png", look)
        for area, show in {
            "new-voice": new_voice,
            "longform": longform,
            "cast": cast,
            "compare": compare,
            "history": history,
        }.items():
            picture_area(browser, sys.argv[1], area, show)
        browser.close()


def take_picture(browser: Browser, address: str, file: Path, look: Look) -> None:
    """Open the page, speak two takes, and picture it while the first plays again."""
    page = open_page(browser, address, look)
    for number in (1, 2):
        page.click("#speak")
        page.wait_for_selector(f"#takes li[data-take='{number}']")
        page.wait_for_selector("#dock[data-state=over]")
    page.get_by_role("button", name="Play take 1").click()
    page.wait_for_function("window.studio.position > 0.6 * window.studio.current.seconds")
    shoot(page, file)


def picture_area(browser: Browser, address: str, area: str, show: Callable[[Page], None]) -> None:
    page = open_page(browser, address, PICTURES["studio"])
    page.goto(f"{address}/#{AREAS[area]}")
    show(page)
    shoot(page, FOLDER / f"{area}.png")


def shoot(page: Page, file: Path) -> None:
    """Scroll to the top, move the pointer away, save the picture once the studio is idle, and close the page."""
    page.wait_for_function("!document.querySelector('#pill').textContent.includes('speaking')")
    page.evaluate("() => { document.activeElement.blur(); scrollTo(0, 0); }")
    page.mouse.move(0, 0)
    page.screenshot(path=str(file))
    page.close()


def new_voice(page: Page) -> None:
    page.get_by_role("button", name="Record", exact=True).wait_for()


def longform(page: Page) -> None:
    document = {"name": "lighthouse.md", "mimeType": "text/markdown", "buffer": STORY.encode()}
    page.get_by_label("Choose a document").set_input_files(document)  # type: ignore[arg-type]
    page.get_by_label("Find the speakers").check()
    page.locator("#area-longform .long-cast .cast-list > li").first.wait_for()
    page.click("#area-longform [data-part=make]")
    page.click("#area-longform [data-part=speak]")
    page.wait_for_function("document.querySelector('#area-longform [data-part=progress]').value === 1")


def cast(page: Page) -> None:
    """The cast of the newest project."""
    page.locator("#area-longform").get_by_role("button", name="The lighthouse").first.click()
    page.get_by_role("button", name="Cast", exact=True).click()
    page.locator(".cast-list > li").first.wait_for()


def compare(page: Page) -> None:
    page.click("#areas [data-view=studio]")
    page.get_by_role("button", name="Hear this in other voices").click()
    page.get_by_text("Ready: listen and vote").wait_for()


def history(page: Page) -> None:
    page.locator("#area-history li").first.wait_for()


def open_page(browser: Browser, address: str, look: Look) -> Page:
    page: Page = browser.new_page(**look)
    page.set_default_timeout(PATIENCE_MS)
    page.goto(address)
    page.wait_for_selector("body[data-studio=ready]")
    page.wait_for_selector("#pill[data-status=ready]")
    return page


if __name__ == "__main__":
    main()
