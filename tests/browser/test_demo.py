"""A demo model says so on the page, and leads to models that clone; other models show neither."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from engine import ModelCard
from studio.settings import read_keys
from tests.browser.screen import Screen, go, sign_in
from tests.browser.test_looks import WINDOWS, in_both_schemes, serious_violations
from tests.studio.fake_engine import with_card
from tests.studio.server import Served
from tests.studio.sounds import tone, wav

NewPage = Callable[..., Page]
Open = Callable[..., Screen]
Steer = Callable[..., Served]
DEMO = ModelCard(languages=("en",), demo=True)
CLONE = "Cloned with the demo model, which cannot copy a voice."


def more(screen: Screen) -> Locator:
    return screen.page.get_by_role("button", name="Choose a model that can")


def test_demo_is_described_and_links_its_owner_to_the_models(steered: Steer, open_page: Open) -> None:
    screen = open_page(steered(with_card(DEMO))).ready()
    expect(screen.page.locator("#demo-line")).to_contain_text(
        "This is a small demo model: English only, with synthetic voices; it cannot copy a real voice."
    )
    for window in WINDOWS.values():
        screen.page.set_viewport_size(window)
        assert in_both_schemes(screen) == []
        more(screen).press("Enter")
        dialog = screen.page.get_by_role("dialog", name="Models")
        expect(dialog.get_by_role("listitem").filter(has_text="clones any voice").first).to_be_visible()
        screen.page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        expect(more(screen)).to_be_focused()


def test_visitor_sees_how_to_run_the_model(steered: Steer, new_page: NewPage) -> None:
    studio = steered(with_card(DEMO), api_keys=read_keys("ann=first,bob=second"))
    rights = ["clipboard-read", "clipboard-write"]
    page = new_page(permissions=rights)
    sign_in(page, studio, "second")
    screen = Screen(page, studio).ready()
    more(screen).press("Enter")
    dialog = screen.page.get_by_role("dialog", name="Models that clone voices")
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    expect(dialog.get_by_role("link", name="Fish Audio Research License")).to_be_visible()
    for window in WINDOWS.values():
        screen.page.set_viewport_size(window)
        assert in_both_schemes(screen) == []
        assert screen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    commands = ["MODEL=Edge0/Audio8-TTS-Preview-0.6b make run", "MODEL=fishaudio/s2-pro make run"]
    for number, command in enumerate(commands):
        dialog.get_by_role("button", name="Copy").first.click()
        expect(dialog.get_by_role("button", name="Copied")).to_have_count(number + 1)
        assert screen.page.evaluate("navigator.clipboard.readText()") == command
    screen.page.mouse.click(5, 5)
    expect(dialog).to_be_hidden()
    expect(more(screen)).to_be_focused()


def test_clone_notice_appears_when_creating_a_voice_and_once_at_its_first_take(
    steered: Steer, open_page: Open, tmp_path: Path
) -> None:
    studio = steered(with_card(DEMO))
    with studio.client() as client:
        fields = {"name": "Cleo", "ref_text": "A steady tone."}
        client.post("/v1/audio/voices", data=fields, files={"audio_sample": wav(tone(6))}).raise_for_status()
    screen = open_page(studio).ready()
    screen.script.fill("Eight words are enough to compare the voices.")
    go(screen.page, "New voice")
    expect(screen.page.get_by_role("region", name="New voice")).to_contain_text("The demo model cannot copy a voice")
    go(screen.page, "Studio")

    def speak(count: int) -> Locator:
        screen.speak.click()
        screen.until_over()
        expect(screen.takes).to_have_count(count)
        return screen.takes.first

    expect(speak(1)).not_to_contain_text(CLONE)
    screen.page.evaluate(
        "window.studio.fields.fill({ voice: window.studio.fields.voices.find(({ name }) => name === 'Cleo').id })"
    )
    expect(screen.page.locator("#voice input")).to_have_value("Cleo")
    expect(speak(2)).to_contain_text(CLONE)
    expect(screen.takes.first.get_by_role("status")).to_contain_text("the person in the clip (")
    expect(speak(3)).not_to_contain_text(CLONE)
    (tmp_path / "me.wav").write_bytes(wav(tone(6)))
    screen.bring_clip(tmp_path / "me.wav")
    screen.page.get_by_label("Transcript of the clip").fill("A steady tone.")
    first = speak(4)
    expect(first).to_contain_text(CLONE)
    expect(first.get_by_role("status")).to_contain_text("the person in the clip (")
    expect(speak(5)).not_to_contain_text(CLONE)
    assert serious_violations(screen) == []
    screen.takes.nth(1).get_by_role("button", name="Choose a model that can").click()
    expect(screen.page.get_by_role("dialog", name="Models")).to_be_visible()


def test_closest_voice_is_offered_before_a_clone(steered: Steer, open_page: Open, tmp_path: Path) -> None:
    """The tests' bundled voices are tones; the clip has Bert's tone."""
    screen = open_page(steered(with_card(DEMO))).ready()
    go(screen.page, "New voice")
    steps = screen.page.get_by_role("region", name="New voice")
    (tmp_path / "me.wav").write_bytes(wav(tone(6, hertz=150)))
    steps.get_by_label("A recording of the voice").set_input_files(tmp_path / "me.wav")
    steps.get_by_role("button", name="Next").click()
    expect(steps).to_contain_text("This demo model cannot copy this voice. The closest of its own 2 voices is Bert.")
    for window in WINDOWS.values():
        screen.page.set_viewport_size(window)
        assert in_both_schemes(screen) == []
        assert screen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    steps.get_by_role("button", name="Use Bert").click()
    expect(screen.page.locator("#voice input")).to_have_value("Bert")
    screen.bring_clip(tmp_path / "me.wav")
    own = screen.page.locator("#own-clip-advice")
    expect(own).to_contain_text("The closest of its own 2 voices is Bert")
    own.get_by_role("button", name="Use Bert").click()
    expect(own).to_be_hidden()
    expect(screen.page.locator("#voice input")).to_have_value("Bert")


def test_real_model_shows_no_demo_notice(steered: Steer, open_page: Open, tmp_path: Path) -> None:
    studio = steered(with_card(ModelCard()))
    with studio.client() as client:
        fields = {"name": "Cleo", "ref_text": "A steady tone."}
        client.post("/v1/audio/voices", data=fields, files={"audio_sample": wav(tone(6))}).raise_for_status()
    screen = open_page(studio).ready()
    screen.page.evaluate(
        "window.studio.fields.fill({ voice: window.studio.fields.voices.find(({ name }) => name === 'Cleo').id })"
    )
    expect(screen.page.locator("#voice input")).to_have_value("Cleo")
    screen.script.fill("Two words")
    screen.speak.click()
    screen.until_over()
    expect(screen.takes.first).to_contain_text("Cleo")
    (tmp_path / "me.wav").write_bytes(wav(tone(6)))
    screen.bring_clip(tmp_path / "me.wav")
    expect(screen.page.locator("#own-clip-advice")).to_contain_text("out of 100")
    closest = screen.page.locator("#own-clip-advice .advice-closest")
    expect(closest).to_be_attached()
    expect(closest).to_be_hidden()
    for tab in ("Studio", "New voice"):
        go(screen.page, tab)
        expect(more(screen)).to_have_count(0)
